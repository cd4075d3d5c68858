//! Queues: maxima and guarantees against naive books, by example, and with threads.

mod books;
mod documented;
mod racing;

use offermill::config::QueueId;
use proptest::prelude::*;

use books::{Bounds, QueueBooks, QueueStep};

/// Bounds that a configuration can have: guarantees below maxima.
fn bounds() -> impl Strategy<Value = Bounds> {
    let most = |range: u64| prop::option::weighted(0.6, 0..range);
    (most(6000), most(3000), 0u64..2500, 0u64..1200).prop_map(
        |(max_cores, max_memory, guaranteed_cores, guaranteed_memory)| Bounds {
            max_cores,
            max_memory,
            guaranteed_cores: guaranteed_cores.min(max_cores.unwrap_or(u64::MAX)) / 500 * 500,
            guaranteed_memory: guaranteed_memory.min(max_memory.unwrap_or(u64::MAX)) / 400 * 400,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let pick = (0u8..4, 1u64..2500, 0u64..1200);
    let settings = (
        prop::collection::vec(bounds(), 3),
        prop::option::weighted(0.7, 0u64..12_000),
        prop::option::weighted(0.5, 0u64..6_000),
        0u8..3,
    );
    let which = any::<prop::sample::Index>;
    let step = prop_oneof![
        6 => (prop::collection::vec(pick, 0..8), prop::bool::weighted(0.3))
            .prop_map(|(picks, is_gang)| QueueStep::Place { picks, is_gang }),
        2 => (1u64..8).prop_map(|cores| QueueStep::Offer { cores }),
        5 => which().prop_map(QueueStep::End),
        2 => which().prop_map(QueueStep::Unreachable),
        1 => Just(QueueStep::GiveUp),
        2 => which().prop_map(QueueStep::Return),
        1 => settings.prop_map(|(bounds, cap, memory, executors)| QueueStep::Reconfigure {
            bounds,
            cap,
            memory,
            executors,
        }),
        2 => (0u8..3, any::<bool>())
            .prop_map(|(queue, has)| QueueStep::Demand(QueueId::new(queue), has)),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    /// Goal: what is placed, what is refused and why, and what each queue holds, is as documented: maxima and
    /// guarantees hold, amounts are booked once and released once. Method: random histories of tasks, executors, ends,
    /// absences, settings and demand, on agents with room for all; books that add everything up anew say what must
    /// happen.
    #[test]
    fn any_history_agrees_with_the_books(
        bounds in prop::collection::vec(bounds(), 3),
        cap in prop::option::weighted(0.7, 0u64..12_000),
        memory in prop::option::weighted(0.5, 0u64..6_000),
        steps in steps(),
    ) {
        let mut books = QueueBooks::new(bounds, cap, memory);
        for step in &steps {
            books.play(step);
        }
    }
}
