//! Rare situations, and how often a run comes to them.

use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::scenario::Scenario;
use crate::engine::Notice;
use crate::engine::cluster_manager::Call;
use crate::kernel::Change;

/// So close to a deadline, in milliseconds, an executor is back at it.
const CLOSE: u64 = 1_500;

macro_rules! corners {
    ($($corner:ident = $text:literal,)+) => {
        /// A rare situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Corner {
            $($corner,)+
        }

        /// In words, in the order of [`Corner`].
        const TEXTS: &[&str] = &[$($text,)+];
    };
}

corners! {
    Update = "an update between a batch's commit and a call of it",
    Registered = "a further subscription between a batch's commit and a call of it",
    Question = "a question by name between a batch's commit and a call of it",
    Kill = "a kill between a batch's commit and a call of it",
    Poll = "time that passes between a batch's commit and a call of it",
    Batch = "another batch between a batch's commit and a call of it",
    Stale = "an answer to an offer of a former subscription",
    BackAtRelease = "an executor is back when it is about to be given up, or just was",
    BackAtForget = "an executor is back when it is about to be forgotten",
    BackAfterGivenUp = "an executor is back after it was given up",
    UnreachableAgain = "an executor is out of sight again after it came back",
}

/// What has happened so far that may come between the steps of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    updates: u64,
    registrations: u64,
    questions: u64,
    kills: u64,
    polls: u64,
    batches: u64,
}

/// Where an executor that was out of sight is, and since when in virtual milliseconds.
#[derive(Clone, Copy, Debug)]
enum Sight {
    Out(u64),
    GivenUp(u64),
    Back,
}

#[derive(Debug)]
pub(super) struct Corners {
    reached: [u64; TEXTS.len()],
    pub(super) seen: Seen,
    sights: HashMap<String, Sight, FixedState>,
    release_after: u64,
    forget_after: u64,
}

impl Corners {
    pub(super) fn new(scenario: &Scenario) -> Corners {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Corners {
            reached: [0; TEXTS.len()],
            seen: Seen::default(),
            sights: HashMap::default(),
            release_after: millis(scenario.release_after),
            forget_after: millis(scenario.forget_after()),
        }
    }

    /// Each with how often the run came to it.
    pub(super) fn reached(&self) -> Vec<(&'static str, u64)> {
        TEXTS.iter().copied().zip(self.reached).collect()
    }

    pub(super) fn polled(&mut self) {
        self.seen.polls += 1;
    }

    pub(super) fn batch_answered(&mut self) {
        self.seen.batches += 1;
    }

    pub(super) fn called(&mut self, call: &Call<'_>, stale: bool) {
        match call {
            Call::Reconcile(questioned) if !questioned.is_empty() => self.seen.questions += 1,
            Call::Kill { .. } => self.seen.kills += 1,
            _ => {}
        }
        self.note(Corner::Stale, stale);
    }

    /// A call is made of a batch that was committed when so much had been seen.
    pub(super) fn step(&mut self, committed: Seen) {
        let seen = self.seen;
        self.note(Corner::Update, seen.updates > committed.updates);
        self.note(Corner::Registered, seen.registrations > committed.registrations);
        self.note(Corner::Question, seen.questions > committed.questions);
        self.note(Corner::Kill, seen.kills > committed.kills);
        self.note(Corner::Poll, seen.polls > committed.polls);
        self.note(Corner::Batch, seen.batches > committed.batches);
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: u64) {
        let (executor, change) = match notice {
            Notice::Registered { .. } => {
                self.seen.registrations += 1;
                return;
            }
            Notice::Updated { executor, change, .. } => {
                self.seen.updates += 1;
                (executor, *change)
            }
            Notice::GivenUp { executor } => {
                self.sights.insert(executor.clone(), Sight::GivenUp(now));
                return;
            }
            Notice::Forgotten { executor } => {
                self.sights.remove(executor);
                return;
            }
            _ => return,
        };
        match change {
            Change::Unreachable => {
                let before = self.sights.insert(executor.clone(), Sight::Out(now));
                self.note(Corner::UnreachableAgain, matches!(before, Some(Sight::Back)));
            }
            Change::Returned => {
                let before = self.sights.insert(executor.clone(), Sight::Back);
                self.back(before, now);
            }
            Change::Ended(_) if !self.sights.is_empty() => drop(self.sights.remove(executor)),
            _ => {}
        }
    }

    fn back(&mut self, before: Option<Sight>, now: u64) {
        let close = |since: u64, after: u64| since.saturating_add(after).abs_diff(now) <= CLOSE;
        match before {
            Some(Sight::Out(since)) => {
                self.note(Corner::BackAtRelease, close(since, self.release_after));
            }
            Some(Sight::GivenUp(since)) => {
                self.note(Corner::BackAfterGivenUp, true);
                self.note(Corner::BackAtRelease, close(since, 0));
                self.note(Corner::BackAtForget, close(since, self.forget_after));
            }
            _ => {}
        }
    }

    fn note(&mut self, corner: Corner, reached: bool) {
        self.reached[corner as usize] += u64::from(reached);
    }
}
