//! The plain loop's updates: what becomes of executors.

use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{StatusUpdate, TaskState, Timestamp};

use super::rows::Placed;
use super::{Executor, Plain};
use crate::support::EXCLUSION;

/// What an update did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateOutcome {
    /// Nothing: no such executor was ever started here.
    Unknown,
    /// Nothing: it was known before, or came too late.
    Nothing,
    /// The executor was seen running for the first time.
    Running,
    /// The executor has ended, and this is what it held.
    Ended(MilliCpus, Mebibytes),
}

impl Plain {
    /// Applies an update. The states that the benches don't report change nothing.
    pub(crate) fn update(&mut self, update: &StatusUpdate<'_>, now: Timestamp) -> UpdateOutcome {
        let Some((sequence, slot)) = self.place_of(update.executor) else {
            return self.unknown_executor();
        };
        let executor = self.executors.get_mut(slot as usize);
        let Some(executor) = executor.filter(|it| it.sequence == sequence && it.live) else {
            return if sequence < self.next_sequence {
                UpdateOutcome::Nothing
            } else {
                self.unknown_executor()
            };
        };
        match update.state {
            TaskState::Running if !executor.running => {
                executor.running = true;
                UpdateOutcome::Running
            }
            TaskState::Finished => self.end(slot),
            TaskState::Failed => {
                let until = EXCLUSION.expiry.map_or(Timestamp::MAX, |expiry| now.plus(expiry));
                self.agents.accounts[executor.agent as usize].excluded_until = until;
                self.end(slot)
            }
            _ => UpdateOutcome::Nothing,
        }
    }

    /// The number of an executor and where it is, by the text of its id.
    fn place_of(&self, id: &str) -> Option<(u64, u32)> {
        match &self.by_number {
            Some(by_number) => {
                let sequence = id.parse().ok()?;
                // An executor that has ended is nowhere.
                Some((sequence, by_number.get(&sequence).copied().unwrap_or(u32::MAX)))
            }
            None => {
                let (sequence, slot) = id.strip_prefix(&*self.id_prefix)?.split_once('.')?;
                Some((sequence.parse().ok()?, slot.parse().ok()?))
            }
        }
    }

    fn unknown_executor(&mut self) -> UpdateOutcome {
        self.counts.unknown_updates += 1;
        UpdateOutcome::Unknown
    }

    fn end(&mut self, slot: u32) -> UpdateOutcome {
        let executor = &mut self.executors[slot as usize];
        executor.live = false;
        let Executor { sequence, agent, cores, memory, .. } = *executor;
        if let Some(by_number) = &mut self.by_number {
            by_number.remove(&sequence);
        }
        self.agents.accounts[agent as usize].executors -= 1;
        self.live -= 1;
        self.acquired -= cores;
        self.free.push(slot);
        UpdateOutcome::Ended(MilliCpus::from_millis(cores), Mebibytes::new(memory))
    }

    /// The text of an executor's id, as the kernel's: what a cluster sends back in an update.
    pub(crate) fn write_name(&self, executor: &Placed, name: &mut String) {
        executor.write_name(self.is_numbered(), name);
    }

    /// Whether ids are plain numbers.
    pub(crate) fn is_numbered(&self) -> bool {
        self.by_number.is_some()
    }

    /// How many executors live, their cores, and how many updates were about none.
    pub(crate) fn totals(&self) -> (u32, MilliCpus, u64) {
        (self.live, MilliCpus::from_millis(self.acquired), self.counts.unknown_updates)
    }
}
