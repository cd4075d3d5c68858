//! Concurrent batches and ends: a batch gives back everything that it reserved and doesn't get.

use super::scenes::{NOW, config, finish, kernel, offer, offer_to};
use super::{explore, race};
use crate::config::ExecutorGpus;
use crate::kernel::state::admission::ReleaseCounter;
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::{ConfigBuilder, Decisions, ExecutorId, Handler, Kernel, Offer, Resource};

const CORE: MilliCpus = MilliCpus::from_cores(1);

/// Answers a batch and returns the executors placed.
type Answer = fn(&Kernel, &mut Handler) -> Vec<ExecutorId>;

fn answer(_: &Kernel, handler: &mut Handler) -> Vec<ExecutorId> {
    offer_to(handler, "S0", 1)
}

/// A batch that reserves as the kernel does, and gives nothing back if its commit fails.
fn answer_and_keep(kernel: &Kernel, _: &mut Handler) -> Vec<ExecutorId> {
    let core = &*kernel.0;
    let admission = core.admission.load();
    if admission.executors() > 0 {
        return Vec::new();
    }
    let agent = core.agents.find("S0").unwrap();
    core.agents.reserve(agent, 1, NOW).unwrap();
    let mut cells = Vec::new();
    assert!(core.executors.claim(1, &mut cells));
    let cell = core.executors.get(cells[0]).unwrap();
    let sequence = 99;
    let memory = Mebibytes::new(1);
    let resources = ExecutorResources { cores: CORE, memory, ..ExecutorResources::NONE };
    let allocation = Allocation { agent: agent.index(), resources };
    ExecutorCell::before_reserving();
    cell.reserve(sequence, &allocation, NOW);
    match core.admission.commit(admission, 1, CORE) {
        Ok(_) => cell.publish(sequence),
        Err(_) => return Vec::new(),
    }
    vec![ExecutorId { sequence, slot: cells[0] }]
}

/// Two batches at once, one answered by `answer_there`, with room for one executor.
fn two_batches(config: ConfigBuilder, answer_there: Answer) {
    let kernel = kernel(config.executor_limit(Some(1)));
    let (here, there) = (kernel.clone(), kernel.clone());
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (first, second) =
        race(move || answer(&here, &mut one), move || answer_there(&there, &mut other));
    assert_eq!(first.len() + second.len(), 1);
    assert_eq!(kernel.totals().executors, 1);
    kernel.check().unwrap();
    kernel.set_executor_limit(None).unwrap();
    assert_eq!(offer_to(&mut kernel.handler(), "S0", 1).len(), 1);
    assert_eq!(kernel.0.executors.iter().count(), 2, "a cell was lost");
}

/// Goal: if two batches find room for one executor, one gets it, and the other leaves nothing behind in agents, cells
/// and sums. Method: both at once; then the sums are checked against the cells.
#[test]
fn a_batch_that_comes_second_leaves_nothing() {
    explore("commit/batch-batch", Some(3), || two_batches(config(), answer));
}

/// Mutant: the second batch keeps what it reserved.
#[test]
#[ignore = "mutant"]
fn mutant_claims_kept() {
    explore("mutant commit/batch-batch", Some(3), || two_batches(config(), answer_and_keep));
}

/// An executor ends while a batch is answered by `answer_there`, with a limit of one.
fn batch_and_end(answer_there: Answer) {
    let kernel = kernel(config().executor_limit(Some(1)));
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = kernel.handler();
    let ((), placed) =
        race(move || finish(&here, &executor), move || answer_there(&there, &mut handler));
    assert_eq!(kernel.totals().executors as usize, placed.len());
    kernel.check().unwrap();
}

/// Goal: an end and a batch that uses its room leave consistent sums. Method: both at once, with a limit of one.
#[test]
fn a_batch_and_an_end_leave_consistent_sums() {
    explore("commit/batch-end", Some(3), || batch_and_end(answer));
}

/// Mutant: the batch uses the room and the cell of the ended executor before it is subtracted from the sums.
#[test]
#[ignore = "mutant"]
fn mutant_room_taken_early() {
    explore("mutant commit/batch-end", Some(3), || {
        batch_and_end(|kernel, handler| {
            let live = kernel.0.executors.iter().filter(|(_, cell)| cell.state().stage.live());
            if live.count() == 0 && kernel.totals().executors == 1 {
                kernel.0.admission.release(ReleaseCounter::SHARED, 1, CORE);
            }
            answer(kernel, handler)
        });
    });
}

/// A batch by `answer_there`, while another batch changes the word and then the limit is changed as often as there are
/// versions under loom, finally to the number that the other batch has placed.
fn batch_and_limits(answer_there: Answer) {
    let kernel = kernel(config().executor_limit(Some(5)));
    let (here, there) = (kernel.clone(), kernel.clone());
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (after_setting, _) = race(
        move || {
            assert_eq!(offer_to(&mut one, "S0", 1).len(), 1);
            for limit in [4, 3, 2, 1] {
                here.set_executor_limit(Some(limit)).unwrap();
            }
            here.totals().executors
        },
        move || answer_there(&there, &mut other),
    );
    assert_eq!(kernel.totals().executors, after_setting, "placed beyond the limit in force");
}

/// Goal: a commit that is retried after another launch follows the policy that it was planned with, or none. Method:
/// one batch comes between another's plan and its commit, and then lower limits are set.
#[test]
fn a_commit_that_is_tried_again_follows_its_policy() {
    explore("commit/retry-limits", Some(2), || batch_and_limits(answer));
}

/// Mutant: a retried commit is not planned again when the policy has changed.
#[test]
#[ignore = "mutant"]
fn mutant_tried_again_under_an_old_policy() {
    explore("mutant commit/retry-limits", Some(2), || {
        batch_and_limits(|kernel, _| {
            let core = &*kernel.0;
            let mut admission = core.admission.load();
            let policy = core.policy.load();
            while policy.headroom(admission).is_ok() {
                match core.admission.commit(admission, 1, CORE) {
                    Ok(_) => break,
                    Err(current) => admission = current,
                }
            }
            Vec::new()
        });
    });
}

/// Executors with a GPU each, and a GPU cap of `cap`.
fn with_gpus(cap: u32) -> ConfigBuilder {
    let gpus = ExecutorGpus::Exactly(Gpus::new(1));
    config().executor_gpus(gpus).gpu_cap(Gpus::new(cap))
}

/// Offers cores and GPUs of the one agent. Returns how many executors are placed.
fn offer_gpus(handler: &mut Handler, count: u32) -> u32 {
    let count = f64::from(count);
    let resources = ["cpus", "mem", "gpus"].map(|name| Resource::scalar(name, count));
    let offers = [Offer::new("o", "S0", "host", &resources, &[])];
    let mut decisions = Decisions::new();
    handler.resource_offers(&offers, NOW, &mut decisions);
    decisions.executors() as u32
}

/// A batch by `answer_there` that takes two GPUs, while the GPU cap is lowered from two to one and another batch takes
/// one.
fn batch_and_gpu_cap(answer_there: fn(&Kernel, &mut Handler)) {
    let kernel = kernel(config());
    kernel.reconfigure(with_gpus(2).build().unwrap());
    let (here, there) = (kernel.clone(), kernel.clone());
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (after_setting, ()) = race(
        move || {
            here.reconfigure(with_gpus(1).build().unwrap());
            let executors = here.totals().executors;
            offer_gpus(&mut one, 1);
            executors
        },
        move || answer_there(&there, &mut other),
    );
    let executors = kernel.totals().executors;
    assert!(
        executors <= after_setting.max(1),
        "{executors} with a GPU each, {after_setting} before"
    );
    // The word counts the GPUs of the executors: unused ones were given back, once.
    kernel.check().unwrap();
    assert_eq!(offer_gpus(&mut kernel.handler(), 1), u32::from(executors == 0));
}

/// Goal: the GPU cap holds once it is set, and GPUs that a batch reserved in vain are given back once. Method: a batch
/// while the cap is lowered and another batch is answered; the sums are checked.
#[test]
fn a_gpu_cap_holds_once_it_is_set() {
    explore("commit/gpus-reconfigure", Some(2), || {
        batch_and_gpu_cap(|_, handler| {
            offer_gpus(handler, 2);
        });
    });
}

/// Mutant: GPUs that were reserved in vain are kept.
#[test]
#[ignore = "mutant"]
fn mutant_gpus_kept() {
    explore("mutant commit/gpus-reconfigure", Some(2), || {
        batch_and_gpu_cap(|kernel, handler| {
            if offer_gpus(handler, 2) == 0 {
                kernel.0.gpus.reserve(2, 1, 2);
            }
        });
    });
}
