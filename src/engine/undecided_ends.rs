//! [`UndecidedEnds`]: tasks that are gone with their hosts, as long as it isn't known whether they had begun.
//!
//! Reports about a host and reports about the tasks in it have no common order. On Mesos each has a stream of
//! updates of its own: a task that had begun may be told as gone before its host is told as running. But of one host it
//! is told that it runs before it is told that it has ended, and no task begins before its host is known to run. So the
//! end of a host decides it for its tasks, and whichever end is told first waits for the other:
//!
//! | the host of a task that is gone | the task |
//! |---|---|
//! | was told as running | may have begun |
//! | has ended without that, and its end says that it never ran | has not begun |
//! | has ended in another way, was given up, or isn't known | may have begun |
//! | has not been told as running, nor as ended | is undecided, until its agent is told as lost, and for 60 s since the first such task of the host; then it may have begun |
//!
//! Until then the host isn't ended as idle: such an end would decide nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::host_ledger::HostLedger;
use super::notice::Notice;
use crate::time::Timestamp;

/// How long the end of a host is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most hosts that are kept in mind after they have ended before they ran: until their tasks' ends are told.
const UNSTARTED_MAX: usize = 1024;

/// Whether a task that has ended had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStart {
    /// Nothing of it has run.
    Never,
    /// Nothing of it has run: the cluster has rejected it in a host that may have ended before the framework was told.
    /// It may also be at fault itself: put it back a few times at most, such as
    /// [`REJECTIONS_MAX`](super::REJECTIONS_MAX).
    Rejected,
    /// It may have run, partly or whole.
    Possible,
    /// The end of its host will say it: [`AgentPauses::take_decided`](super::AgentPauses::take_decided).
    Undecided,
}

/// A task that was [undecided](TaskStart::Undecided) and isn't any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecidedTask {
    /// Its tag.
    pub tag: u64,
    /// Nothing of it has run. Otherwise it may have run.
    pub was_never_started: bool,
}

/// The notice of an end that is told once it is known whether the task had begun. It is in flight until then.
pub(super) struct KeptEnd {
    pub(super) at: Timestamp,
    pub(super) notice: Notice,
}

/// The tasks that are undecided, and what is known of hosts that have ended. Not more than the tasks in flight, and
/// 1024 hosts: of one that is forgotten, the tasks may have begun.
#[derive(Debug, Default)]
pub(super) struct UndecidedEnds {
    /// By the tag of their host.
    waiting: BTreeMap<u64, UndecidedTasks>,
    /// The tags of the last hosts that have ended before they ran, in the order of their ends.
    unstarted: VecDeque<u64>,
}

/// The undecided tasks of a host.
#[derive(Debug)]
struct UndecidedTasks {
    agent_id: String,
    tags: Vec<u64>,
    /// When they aren't undecided any more, whatever is known.
    until: Timestamp,
}

impl UndecidedEnds {
    /// Whether a task has begun that is gone with its host. To be asked once, before the task leaves its host.
    pub(super) fn start_of(
        &mut self,
        hosts: &mut HostLedger,
        tag: u64,
        now: Timestamp,
    ) -> TaskStart {
        let Some(host) = hosts.host_of(tag) else { return TaskStart::Possible };
        match (hosts.has_run(host), hosts.agent_of(host)) {
            (Some(false), Some(agent_id)) => {
                let new = || UndecidedTasks {
                    agent_id: agent_id.to_owned(),
                    tags: Vec::new(),
                    until: now.plus(PATIENCE),
                };
                let tasks = self.waiting.entry(host).or_insert_with(new);
                tasks.tags.push(tag);
                hosts.keep_deciding(host, tasks.until);
                TaskStart::Undecided
            }
            (None, _) if self.unstarted.contains(&host) => TaskStart::Never,
            _ => TaskStart::Possible,
        }
    }

    /// A host has ended before it ran, as its end says.
    pub(super) fn host_never_ran(&mut self, host: u64) {
        if !self.unstarted.contains(&host) {
            self.unstarted.push_back(host);
        }
        if self.unstarted.len() > UNSTARTED_MAX {
            self.unstarted.pop_front();
        }
    }

    /// An agent is lost: the ends of its hosts may never be told.
    pub(super) fn agent_lost(&mut self, agent_id: &str) {
        let lost = self.waiting.values_mut().filter(|tasks| tasks.agent_id == agent_id);
        lost.for_each(|tasks| tasks.until = Timestamp::ORIGIN);
    }

    /// The tasks that are decided by now.
    pub(super) fn take_decided(&mut self, hosts: &HostLedger, now: Timestamp) -> Vec<DecidedTask> {
        let UndecidedEnds { waiting, unstarted } = self;
        let mut decided = Vec::new();
        waiting.retain(|host, tasks| {
            if hosts.has_run(*host) == Some(false) && now < tasks.until {
                return true;
            }
            let was_never_started = unstarted.contains(host);
            let tags = std::mem::take(&mut tasks.tags).into_iter();
            decided.extend(tags.map(|tag| DecidedTask { tag, was_never_started }));
            false
        });
        decided
    }

    /// The tags of the tasks that are undecided.
    #[cfg(feature = "simulated")]
    pub(super) fn tags(&self) -> impl Iterator<Item = u64> {
        self.waiting.values().flat_map(|tasks| tasks.tags.iter().copied())
    }

    /// All tasks that are undecided. None of them is any more: no end of a host is told after this.
    pub(super) fn take_all(&mut self) -> Vec<DecidedTask> {
        let all = std::mem::take(&mut self.waiting).into_values().flat_map(|tasks| tasks.tags);
        all.map(|tag| DecidedTask { tag, was_never_started: false }).collect()
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    /// Goal: the hosts that ended last are kept in mind, whatever their tags, and no more than the bound. Method: twice
    /// as many as that, the last tags first, each told twice.
    #[test]
    fn the_last_ends_are_kept_in_mind() {
        let mut ends = UndecidedEnds::default();
        for host in (0..2 * UNSTARTED_MAX as u64).rev() {
            ends.host_never_ran(host);
            ends.host_never_ran(host);
            assert!(ends.unstarted.contains(&host), "{host}");
        }
        assert_eq!(ends.unstarted.len(), UNSTARTED_MAX);
    }
}
