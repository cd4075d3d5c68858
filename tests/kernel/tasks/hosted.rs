//! Tasks in hosts and queues against naive books.

use proptest::prelude::*;

use super::host_books::{AGENTS, HostStep, HostedPair, QUEUES, QueueTerms};

fn terms() -> impl Strategy<Value = QueueTerms> {
    let most = || prop::option::weighted(0.5, 100u64..3_000);
    let least = || prop_oneof![2 => Just(0u64), 1 => 1u64..1_000];
    (most(), most(), least(), least()).prop_map(|(max_cores, max_memory, cores, memory)| {
        let most = [max_cores, max_memory];
        let least = [cores, memory];
        QueueTerms { most, least: [0, 1].map(|kind| most[kind].unwrap_or(9_999).min(least[kind])) }
    })
}

fn step() -> impl Strategy<Value = HostStep> {
    let agent = || 0..AGENTS;
    let task = (0..QUEUES as u8, 100u64..1_500, 1u64..300);
    let caps = (prop_oneof![Just(0u64), 1_000u64..9_000], prop_oneof![Just(0u64), 100u64..2_000]);
    prop_oneof![
        8 => (agent(), prop::collection::vec(task, 1..5))
            .prop_map(|(agent, tasks)| HostStep::Place { agent, tasks }),
        6 => agent().prop_map(HostStep::Up),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(which, failed)| HostStep::End(which, failed)),
        2 => agent().prop_map(HostStep::Lose),
        2 => agent().prop_map(HostStep::Look),
        2 => agent().prop_map(HostStep::EndIdle),
        1 => agent().prop_map(HostStep::EndHost),
        2 => (terms(), terms(), caps, 0u32..20).prop_map(|(first, second, (cores, memory), limit)| {
            HostStep::Reconfigure { terms: [first, second], caps: (cores, memory, limit) }
        }),
        1 => (0..QUEUES as u8, any::<bool>()).prop_map(|(queue, has)| HostStep::Demand(queue, has)),
    ]
}

proptest! {
    /// Goal: an agent has one host at most, which is placed with its first tasks or not at all; tasks join it while it
    /// runs, and end with it once; nothing that is said of a former host counts; queues and caps admit what they should
    /// of hosts and tasks alike, also after they were changed. Method: random histories beside naive books.
    #[test]
    fn hosted_tasks_agree_with_the_books(
        steps in prop::collection::vec(step(), 1..80),
        plain in any::<bool>(),
    ) {
        let mut pair = HostedPair::new(plain);
        steps.iter().for_each(|step| pair.play(step));
    }
}
