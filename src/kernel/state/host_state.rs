//! The word of an agent's host: whether there is one, how far it is, and how many tasks are in it.
//!
//! ```text
//!                 join                  up
//! None (0 tasks) ─────► Starting ─────────────────► Up ─┐ join: a task more; leave: a task less
//!   ▲  round + 1        │      │                    │ ◄─┘
//!   │  lost, cancelled  │      └─ end ─► Ending ◄───┘ end: nobody joins any more
//!   └───────────────────┴──────────────────┴────────┘ lost: the host has ended, and its tasks with it
//! ```
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler, for the first task on an agent | [`join`](HostWord::join): `None` → `Starting` with one task, in a new round | AcqRel | the loss of the host before: what its end freed is free |
//! | the same handler, for further tasks of the same batch | [`join_again`](HostWord::join_again), also while it is `Starting` | Relaxed | nothing: it reads what it wrote itself, or a loss that it is told of later |
//! | any handler | `join`: `Up` → `Up` with a task more | AcqRel | [`up`](HostWord::up): the cluster knows the host by then |
//! | the thread that reads updates | `up` | AcqRel | the joins that follow |
//! | | [`leave`](HostWord::leave): a task less, in the same round | AcqRel | [`end_unchanged`](HostWord::end_unchanged): who sees no task sees what the last one left |
//! | | [`lost`](HostWord::lost): any stage → `None` without tasks, once a round | AcqRel | the join of the next round |
//! | handler whose plan was cut off | `leave`, `lost` | AcqRel | as above |
//! | timer | [`state`](HostWord::state), then `end_unchanged`: → `Ending`, if the word is what it was when it was read first | AcqRel | the joins: one that came before changes the word, one that comes after sees `Ending` |
//! | on request | [`end`](HostWord::end): → `Ending` | AcqRel | as above |
//!
//! Each transition is one compare-exchange of the whole word, so of two first tasks one adds the host, and a task
//! either joins before the host ends or not at all. The round keeps what is said of a former host from the present one:
//! it is counted up with each host. The number of joins tells the timer whether a host without tasks has had one
//! meanwhile. Both wrap: a host is ended too early, which is no mistake, if exactly 2¹⁶ tasks came and went between two
//! looks; and a statement is about another host after 2²⁴ hosts of one agent.

use crate::limits::EXECUTORS_MAX;
use crate::sync::{AtomicU64, Ordering};

const STAGE_BITS: u32 = 2;
const TASKS_BITS: u32 = 22;
const JOINS_BITS: u32 = 16;
const ROUND_BITS: u32 = 24;
const TASKS_SHIFT: u32 = STAGE_BITS;
const JOINS_SHIFT: u32 = TASKS_SHIFT + TASKS_BITS;
const ROUND_SHIFT: u32 = JOINS_SHIFT + JOINS_BITS;
const TASKS_MAX: u32 = (1 << TASKS_BITS) - 1;
const ROUND_MASK: u32 = (1 << ROUND_BITS) - 1;
const _: () = assert!(ROUND_SHIFT + ROUND_BITS == u64::BITS);
const _: () = assert!(EXECUTORS_MAX <= TASKS_MAX);

/// How far a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TaskHostStage {
    /// There is none.
    None,
    /// It was added with a first task, and the cluster hasn't reported it running.
    Starting,
    /// It runs and takes tasks.
    Up,
    /// It is to end, and takes no more tasks.
    Ending,
}

/// What the word of a host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostState {
    pub(crate) stage: TaskHostStage,
    pub(crate) tasks: u32,
    /// How many tasks have joined, modulo 2¹⁶.
    pub(crate) joins: u16,
    /// How many hosts the agent has had, modulo 2²⁴.
    pub(crate) round: u32,
}

impl HostState {
    const NEW: HostState = HostState { stage: TaskHostStage::None, tasks: 0, joins: 0, round: 0 };

    const fn pack(self) -> u64 {
        let HostState { stage, tasks, joins, round } = self;
        let stage = match stage {
            TaskHostStage::None => 0,
            TaskHostStage::Starting => 1,
            TaskHostStage::Up => 2,
            TaskHostStage::Ending => 3,
        };
        stage
            | (tasks as u64) << TASKS_SHIFT
            | (joins as u64) << JOINS_SHIFT
            | (round as u64) << ROUND_SHIFT
    }

    const fn unpack(word: u64) -> HostState {
        let stage = match word & ((1 << STAGE_BITS) - 1) {
            0 => TaskHostStage::None,
            1 => TaskHostStage::Starting,
            2 => TaskHostStage::Up,
            _ => TaskHostStage::Ending,
        };
        let tasks = (word >> TASKS_SHIFT) as u32 & TASKS_MAX;
        let joins = (word >> JOINS_SHIFT) as u16;
        HostState { stage, tasks, joins, round: (word >> ROUND_SHIFT) as u32 }
    }

    fn with_task(self) -> Option<HostState> {
        let tasks = self.tasks.checked_add(1).filter(|tasks| *tasks <= TASKS_MAX)?;
        Some(HostState { tasks, joins: self.joins.wrapping_add(1), ..self })
    }

    /// Whether it takes tasks of the batch that added it, or of the framework in general.
    fn is_open(self) -> bool {
        matches!(self.stage, TaskHostStage::Starting | TaskHostStage::Up)
    }
}

/// The word.
#[derive(Debug)]
pub(crate) struct HostWord(AtomicU64);

impl HostWord {
    pub(crate) fn new() -> HostWord {
        HostWord(AtomicU64::new(HostState::NEW.pack()))
    }

    pub(crate) fn state(&self) -> HostState {
        // Acquire: see the module's head.
        HostState::unpack(self.0.load(Ordering::Acquire))
    }

    /// A task of another batch: returns the state that it has made, in which the stage says whether it was the first
    /// (`Starting`). `None` if the host takes no task now.
    pub(crate) fn join(&self) -> Option<HostState> {
        self.change(|state| match state.stage {
            TaskHostStage::None => {
                let round = state.round.wrapping_add(1) & ROUND_MASK;
                HostState { stage: TaskHostStage::Starting, round, ..state }.with_task()
            }
            TaskHostStage::Up => state.with_task(),
            TaskHostStage::Starting | TaskHostStage::Ending => None,
        })
    }

    /// A further task of a batch that has a task in the host of this round. Returns whether it may join.
    pub(crate) fn join_again(&self, round: u32) -> bool {
        let join = |state: HostState| if state.is_open() { state.with_task() } else { None };
        self.change_in(round, join).is_some()
    }

    /// The host of this round runs. Returns whether this call has found out.
    pub(crate) fn up(&self, round: u32) -> bool {
        let up = |state: HostState| {
            let is_new = state.stage == TaskHostStage::Starting;
            is_new.then_some(HostState { stage: TaskHostStage::Up, ..state })
        };
        self.change_in(round, up).is_some()
    }

    /// A task has left the host of this round: it ended, or it was not placed. Returns how many are left; `None` if the
    /// host, and so the task, was lost before.
    pub(crate) fn leave(&self, round: u32) -> Option<u32> {
        let leave = |state: HostState| {
            let tasks = state.tasks.checked_sub(1)?;
            Some(HostState { tasks, ..state })
        };
        self.change_in(round, leave).map(|state| state.tasks)
    }

    /// The host of this round takes no more tasks. Returns whether this call has decided that.
    pub(crate) fn end(&self, round: u32) -> bool {
        let end = |state: HostState| {
            state.is_open().then_some(HostState { stage: TaskHostStage::Ending, ..state })
        };
        self.change_in(round, end).is_some()
    }

    /// As [`end`](HostWord::end), if it has no task and nothing has happened since it was `seen`.
    pub(crate) fn end_unchanged(&self, seen: HostState) -> bool {
        if !seen.is_open() || seen.tasks > 0 {
            return false;
        }
        let ending = HostState { stage: TaskHostStage::Ending, ..seen };
        let swapped = self.0.compare_exchange(
            seen.pack(),
            ending.pack(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        swapped.is_ok()
    }

    /// The host of this round has ended, or was not placed, and its tasks with it. Returns how many were in it, to the
    /// first call alone.
    pub(crate) fn lost(&self, round: u32) -> Option<u32> {
        let mut tasks = 0;
        self.change_in(round, |state| {
            tasks = state.tasks;
            Some(HostState { stage: TaskHostStage::None, tasks: 0, ..state })
        })?;
        Some(tasks)
    }

    /// As [`change`](HostWord::change), if there is a host and it is that of this round.
    fn change_in(
        &self,
        round: u32,
        mut next: impl FnMut(HostState) -> Option<HostState>,
    ) -> Option<HostState> {
        self.change(|state| {
            let is_it = state.round == round && state.stage != TaskHostStage::None;
            if is_it { next(state) } else { None }
        })
    }

    /// Moves the word to the state that `next` returns for its current one, and returns that. `None` if `next` does.
    fn change(&self, mut next: impl FnMut(HostState) -> Option<HostState>) -> Option<HostState> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let wanted = next(HostState::unpack(word))?;
            // AcqRel: see the module's head.
            let swapped = self.0.compare_exchange_weak(
                word,
                wanted.pack(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match swapped {
                Ok(_) => return Some(wanted),
                Err(current) => word = current,
            }
        }
    }

    /// What a mutant of the loom models writes without a comparison.
    #[cfg(all(loom, test))]
    pub(crate) fn store(&self, state: HostState) {
        self.0.store(state.pack(), Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Goal: fields keep apart, and round and joins wrap alone. Method: extreme values of each, and a host that comes
    /// and goes at the end of all counts.
    #[test]
    fn fields_keep_apart() {
        let stages = [
            TaskHostStage::None,
            TaskHostStage::Starting,
            TaskHostStage::Up,
            TaskHostStage::Ending,
        ];
        for stage in stages {
            for (tasks, joins, round) in
                [(TASKS_MAX, 0, 0), (0, u16::MAX, 0), (0, 0, ROUND_MASK), (1, 1, 1)]
            {
                let state = HostState { stage, tasks, joins, round };
                assert_eq!(HostState::unpack(state.pack()), state);
            }
        }
        let last = HostState { joins: u16::MAX, round: ROUND_MASK, ..HostState::NEW };
        let word = HostWord(AtomicU64::new(last.pack()));
        let first = HostState { stage: TaskHostStage::Starting, tasks: 1, joins: 0, round: 0 };
        assert_eq!(word.join(), Some(first));
        assert_eq!(word.lost(ROUND_MASK), None);
        assert_eq!(word.lost(0), Some(1));
    }

    /// An operation on the word, about the last host or about one of those before.
    #[derive(Clone, Copy, Debug)]
    enum WordStep {
        Join,
        JoinAgain(u32),
        Up(u32),
        Leave(u32),
        End(u32),
        Look,
        EndUnchanged,
        Lost(u32),
    }

    fn step() -> impl Strategy<Value = WordStep> {
        let back = || prop_oneof![8 => Just(0u32), 1 => 1u32..3];
        prop_oneof![
            4 => Just(WordStep::Join),
            1 => back().prop_map(WordStep::JoinAgain),
            3 => back().prop_map(WordStep::Up),
            4 => back().prop_map(WordStep::Leave),
            1 => back().prop_map(WordStep::End),
            1 => Just(WordStep::Look),
            1 => Just(WordStep::EndUnchanged),
            1 => back().prop_map(WordStep::Lost),
        ]
    }

    proptest! {
        /// Goal: the word does what its diagram says. Method: random operations, also on former hosts, beside a list of
        /// hosts that were added, each with its own stage and tasks.
        #[test]
        fn a_word_is_its_diagram(steps in prop::collection::vec(step(), 1..200)) {
            let word = HostWord::new();
            let mut hosts = vec![(TaskHostStage::None, 0u32)];
            let mut changes = 0;
            let mut looked: Option<(HostState, u32)> = None;
            for step in steps {
                let last = hosts.len() - 1;
                let (stage, tasks) = hosts[last];
                let about = |back: u32| (hosts.len() as u32 - 1).checked_sub(back).unwrap_or(999);
                let is_last = |back: u32| about(back) as usize == last && stage != TaskHostStage::None;
                let is_open = matches!(stage, TaskHostStage::Starting | TaskHostStage::Up);
                let before = hosts.clone();
                match step {
                    WordStep::Join => {
                        let joined = word.join().map(|it| it.stage);
                        match stage {
                            TaskHostStage::None => {
                                hosts.push((TaskHostStage::Starting, 1));
                                prop_assert_eq!(joined, Some(TaskHostStage::Starting));
                            }
                            TaskHostStage::Up => {
                                hosts[last].1 += 1;
                                prop_assert_eq!(joined, Some(TaskHostStage::Up));
                            }
                            _ => prop_assert_eq!(joined, None),
                        }
                    }
                    WordStep::JoinAgain(back) => {
                        let may = is_last(back) && is_open;
                        prop_assert_eq!(word.join_again(about(back)), may);
                        hosts[last].1 += u32::from(may);
                    }
                    WordStep::Up(back) => {
                        let is_new = is_last(back) && stage == TaskHostStage::Starting;
                        prop_assert_eq!(word.up(about(back)), is_new);
                        hosts[last].0 = if is_new { TaskHostStage::Up } else { stage };
                    }
                    WordStep::Leave(back) => {
                        let may = is_last(back) && tasks > 0;
                        prop_assert_eq!(word.leave(about(back)), may.then(|| tasks - 1));
                        hosts[last].1 -= u32::from(may);
                    }
                    WordStep::End(back) => {
                        let may = is_last(back) && is_open;
                        prop_assert_eq!(word.end(about(back)), may);
                        hosts[last].0 = if may { TaskHostStage::Ending } else { stage };
                    }
                    WordStep::Look => looked = Some((word.state(), changes)),
                    WordStep::EndUnchanged => if let Some((seen, then)) = looked {
                        let may = is_open && tasks == 0 && then == changes;
                        prop_assert_eq!(word.end_unchanged(seen), may);
                        hosts[last].0 = if may { TaskHostStage::Ending } else { stage };
                    },
                    WordStep::Lost(back) => {
                        let may = is_last(back);
                        prop_assert_eq!(word.lost(about(back)), may.then_some(tasks));
                        if may {
                            hosts[last] = (TaskHostStage::None, 0);
                        }
                    }
                }
                changes += u32::from(hosts != before);
                let state = word.state();
                prop_assert_eq!((state.stage, state.tasks), hosts[hosts.len() - 1]);
                prop_assert_eq!(state.round as usize, hosts.len() - 1);
            }
        }
    }
}
