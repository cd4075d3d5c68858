//! Names of the kernel's shared words by their addresses, for the tests that count writes to cache lines.
//!
//! | threads that may write it | words |
//! |---|---|
//! | all that launch or end executors, whichever these are: the contended lines | [`SharedWord::Admission`], [`SharedWord::Sequence`], [`SharedWord::Demand`], [`SharedWord::Gpus`], [`SharedWord::Unreachable`], [`SharedWord::Maps`], [`SharedWord::Policy`] |
//! | all that end executors by the same counter | [`SharedWord::Released`], [`SharedWord::EndedCounts`]: 32 of these share a line |
//! | all that launch, or end, executors whose numbers are in the same page, with plain ids | [`SharedWord::Numbers`] |
//! | the handlers that prefer the same stack, and threads that end what they launched | [`SharedWord::Stack`] |
//! | handlers that launch executors in neighbouring cells; 32 hints share a line | [`SharedWord::Hints`] |
//! | the same, and threads that free such cells; 16 links share a line | [`SharedWord::Links`] |
//! | those that use the same agent or executor at the same time | [`SharedWord::Agent`], [`SharedWord::Executor`] |
//! | one handler alone | [`SharedWord::Own`] |

use std::collections::BTreeMap;
use std::ops::Range;

use super::offers::handler::Handler;
use super::state::ended_counts::EndedCounts;
use super::{Core, Kernel};
use crate::sync::counting::Write;

/// The size of a cache line in bytes.
pub(crate) const LINE: usize = 64;

/// A word, or a kind of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SharedWord {
    Admission,
    /// The counters of what was released.
    Released,
    Sequence,
    Demand,
    /// The counts of GPUs, and of unreachable executors.
    Gpus,
    Unreachable,
    /// The count of updates of unknown executors.
    UnknownUpdates,
    /// The count of owners of the policy in force.
    Policy,
    /// A shard of a map.
    Maps,
    /// The heads of the stacks of free executor cells, and the number of cells.
    Stack,
    Grown,
    /// The pages of the table of numbers.
    Numbers,
    /// The heads of the stacks of free pages, and the number of pages.
    PageSlab,
    /// The same of agents' cells, and the next agent's generation.
    AgentSlab,
    Agent,
    /// The ends on agents that updaters have counted, apart from the cells.
    EndedCounts,
    Executor,
    /// The agents of executors, apart from their cells. Which of them share a line depends on the allocator.
    Hints,
    /// The links of executors' cells, apart from them; 16 share a line.
    Links,
    /// What is recorded of agents' offers, apart from their cells.
    Offered,
    /// The counters and near misses of a handler, by its position among the handlers given.
    Own(usize),
    /// What polls, ticks and reports write: the counters' lock, and times.
    Timers,
    /// The clock of the locality wait.
    LocalityClock,
    /// What batches and updates read, written only when the cluster or the host reports something new.
    Settings,
    /// None of the above.
    Other,
}

/// The writes to words of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) writes: u64,
    /// The number of different lines among them. A handler's own lines count as one, and so do those of hints and of
    /// links.
    pub(crate) lines: u64,
}

/// The addresses of a kernel's words. Cells that came into use later are missing.
#[derive(Debug)]
pub(crate) struct WordAddresses(BTreeMap<usize, (usize, SharedWord)>);

impl WordAddresses {
    pub(crate) fn of(kernel: &Kernel, handlers: &[&Handler]) -> WordAddresses {
        let mut lines = WordAddresses(BTreeMap::new());
        lines.add_core(&kernel.0);
        for (number, handler) in handlers.iter().enumerate() {
            let counters = handler.counters();
            lines.add(SharedWord::Own(number), counters);
            lines.add(SharedWord::Own(number), handler.pin());
            counters.near_misses().for_each(|cell| lines.add(SharedWord::Own(number), cell));
        }
        lines
    }

    fn add_core(&mut self, core: &Core) {
        let (word, released) = core.admission.words();
        self.add(SharedWord::Admission, word);
        released.for_each(|counter| self.add(SharedWord::Released, counter));
        self.add(SharedWord::Sequence, &*core.sequence);
        let (word, history) = core.demand.words();
        self.add(SharedWord::Demand, word);
        self.add(SharedWord::Timers, history);
        self.add(SharedWord::Gpus, &*core.gpus);
        self.add(SharedWord::Unreachable, &*core.unreachable);
        self.add(SharedWord::UnknownUpdates, &*core.unknown_updates);
        self.add(SharedWord::Policy, &core.policy);
        self.add(SharedWord::Settings, &core.ids);
        self.add(SharedWord::Settings, &core.subscription);
        self.add(SharedWord::Settings, &core.adopted);
        self.add(SharedWord::LocalityClock, &*core.locality_clock);
        self.add(SharedWord::Timers, &*core.counters);
        self.add(SharedWord::Timers, &*core.snapshots);
        self.add(SharedWord::Timers, &*core.swept_at);
        self.add(SharedWord::Settings, core.executors.segments());
        self.add(SharedWord::Settings, core.agents.words().0.segments());
        if let Some(numbers) = &core.numbers {
            let (pages, slab) = numbers.words();
            pages.for_each(|page| self.add(SharedWord::Numbers, page));
            let (heads, page_count) = slab.words();
            heads.for_each(|head| self.add(SharedWord::PageSlab, head));
            self.add(SharedWord::PageSlab, page_count);
            self.add(SharedWord::Settings, slab.segments());
        }
        let (heads, cell_count) = core.executors.words();
        heads.for_each(|head| self.add(SharedWord::Stack, head));
        self.add(SharedWord::Grown, cell_count);
        core.executors.iter().for_each(|(_, cell)| self.add(SharedWord::Executor, cell));
        core.executors.hints().for_each(|hint| self.add(SharedWord::Hints, hint));
        core.executors.links().for_each(|link| self.add(SharedWord::Links, link));
        let (cells, by_id, next_generation) = core.agents.words();
        let (heads, cell_count) = cells.words();
        heads.for_each(|head| self.add(SharedWord::AgentSlab, head));
        self.add(SharedWord::AgentSlab, cell_count);
        self.add(SharedWord::AgentSlab, next_generation);
        self.add(SharedWord::Maps, by_id);
        cells.iter().for_each(|(_, cell)| self.add(SharedWord::Agent, cell));
        let ended = cells.beside().flat_map(EndedCounts::words);
        ended.for_each(|word| self.add(SharedWord::EndedCounts, word));
        cells.hints().for_each(|offered| self.add(SharedWord::Offered, offered));
        let (pieces, numbers) = core.agents.offered.words();
        self.add(SharedWord::Settings, pieces);
        numbers.for_each(|line| self.add(SharedWord::Offered, line));
    }

    fn add<T>(&mut self, word: SharedWord, place: &T) {
        let start = std::ptr::from_ref(place).addr();
        self.0.insert(start, (start + size_of::<T>(), word));
    }

    /// Returns the word at an address.
    pub(crate) fn word(&self, address: usize) -> SharedWord {
        let below = self.0.range(..=address).next_back();
        below
            .filter(|(_, (end, _))| address < *end)
            .map_or(SharedWord::Other, |(_, (_, word))| *word)
    }

    /// The address ranges of a kind of words.
    pub(crate) fn places(&self, word: SharedWord) -> impl Iterator<Item = Range<usize>> {
        let places = self.0.iter().filter(move |(_, (_, is))| *is == word);
        places.map(|(start, (end, _))| *start..*end)
    }

    /// Sums up writes by kind of word.
    pub(crate) fn count(&self, writes: &[Write]) -> BTreeMap<SharedWord, Count> {
        let line = |write: &Write| match self.word(write.address) {
            word @ (SharedWord::Own(_)
            | SharedWord::Hints
            | SharedWord::Links
            | SharedWord::Offered) => (word, 0),
            word => (word, write.address / LINE),
        };
        let mut touched: Vec<(SharedWord, usize)> = writes.iter().map(line).collect();
        let mut counts = BTreeMap::<SharedWord, Count>::new();
        for (word, _) in &touched {
            counts.entry(*word).or_default().writes += 1;
        }
        touched.sort_unstable();
        touched.dedup();
        for (word, _) in &touched {
            counts.entry(*word).or_default().lines += 1;
        }
        counts
    }
}
