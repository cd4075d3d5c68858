//! The consistency check: compares the shared sums with the executors' cells while no other call is in progress.

use std::collections::HashMap;
use std::fmt;

use crate::config::QueueId;
use crate::kernel::Core;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::executor_state::CellStage;
use crate::kernel::state::queues::QueueAmount;
use crate::limits;
use crate::time::Timestamp;

/// An inconsistency in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl Core {
    pub(crate) fn check(&self) -> Result<(), Violation> {
        let admission = self.admission.load();
        let mut executors = 0u32;
        let mut cores = 0u64;
        let mut gpus = 0u64;
        let mut unreachable = 0u64;
        let mut live = 0;
        let mut on_agent: HashMap<u32, u32> = HashMap::new();
        let mut booked: HashMap<QueueId, QueueAmount> = HashMap::new();
        for (id, executor, state) in self.live() {
            live += 1;
            let allocation = executor.allocation();
            if allocation.agent != NO_AGENT {
                *on_agent.entry(allocation.agent).or_default() += 1;
            }
            unreachable += u64::from(!state.stage.is_reachable());
            if state.stage.counted() {
                executors += 1;
                cores += allocation.resources.cores.millis();
                gpus += u64::from(allocation.resources.gpus.get());
                if let Some(queue) = self.read_queue(id) {
                    let sum = booked.entry(queue).or_default();
                    *sum = sum.plus(allocation.booked());
                }
            }
            if let Some(numbers) = &self.numbers {
                // Adopted executors are found by their own names.
                let own = self.adopted.name(id).is_none();
                let found = numbers.find(id.sequence);
                agree("slot of an executor by its number", found, own.then_some(id.slot))?;
            }
        }
        let reserved =
            self.executors.iter().filter(|(_, e)| e.state().stage == CellStage::Reserved);
        agree("executors reserved while no batch is answered", reserved.count(), 0)?;
        agree("executors in the admission word", admission.executors(), executors)?;
        agree("cores in the admission word", admission.cores().millis(), cores)?;
        agree("GPUs in their word", self.gpus.taken(), gpus)?;
        self.check_queues(booked)?;
        let counted_unreachable = self.unreachable.load(crate::sync::Ordering::Relaxed);
        agree("unreachable executors", counted_unreachable, unreachable)?;
        let mut agents = 0;
        for (index, agent, name) in self.agents.views(Timestamp::ORIGIN) {
            agents += 1;
            let expected = on_agent.remove(&index).unwrap_or(0);
            agree(&format!("executors of agent {}", name.id), agent.executors.into(), expected)?;
            let found = self.agents.find(&name.id).map(|key| key.index());
            agree(&format!("entry of agent {}", name.id), found, Some(index))?;
        }
        agree("executors on forgotten agents", on_agent.len(), 0)?;
        agree("agents in the map", self.agents.len(), agents)?;
        if let Some(numbers) = &self.numbers {
            let next = self.sequence.load(crate::sync::Ordering::Relaxed);
            agree("numbers that are not retired", numbers.live(next), live)?;
        }
        Ok(())
    }
}

impl Core {
    /// Compares the words of the queues with what is `booked` by the cells, and the footprints with the words.
    fn check_queues(&self, booked: HashMap<QueueId, QueueAmount>) -> Result<(), Violation> {
        let Some(queues) = self.queues.get() else { return Ok(()) };
        let mut footprints = (0, 0);
        for queue in (0..limits::QUEUES_MAX as u8).map(QueueId::new) {
            let quotas = queues.quotas(queue);
            let expected = booked.get(&queue).copied().unwrap_or_default();
            let what = format!("cores in the word of queue {queue}");
            agree(&what, quotas.cores.held(), expected.cores.millis())?;
            let what = format!("memory in the word of queue {queue}");
            agree(&what, quotas.memory.held(), expected.memory.get())?;
            footprints.0 += quotas.cores.footprint();
            footprints.1 += quotas.memory.footprint();
        }
        agree("footprints of the queues", queues.footprints(), footprints)
    }
}

fn agree<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Violation> {
    if found == expected {
        return Ok(());
    }
    Err(Violation(format!("{what}: {found:?}, but {expected:?} by the cells")))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use crate::sync::Ordering;
    use crate::{Config, IdScheme, Kernel};

    /// Goal: a sum that differs from the cells is found. Method: change words behind the kernel's back, one at a time.
    #[test]
    fn wrong_sums_are_found() {
        for scheme in [IdScheme::plain(), IdScheme::unique("app", 1).unwrap()] {
            let kernel = Kernel::new(Config::builder().build().unwrap(), scheme);
            kernel.check().unwrap();
            kernel.0.unreachable.fetch_add(1, Ordering::Relaxed);
            let violation = kernel.check().unwrap_err().to_string();
            assert_eq!(violation, "unreachable executors: 1, but 0 by the cells");
            kernel.0.unreachable.fetch_sub(1, Ordering::Relaxed);
            kernel.check().unwrap();
        }
    }
}
