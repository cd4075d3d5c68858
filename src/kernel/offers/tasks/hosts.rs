//! [`Hosts`]: which agents have a host for tasks, and how many tasks are in each.
//!
//! A *host* is one long-lived executor an agent, in which tasks run: starting a task in it costs less than starting an
//! executor of its own. What of it belongs in the kernel:
//!
//! * **The host itself is an ordinary executor**, and so are its tasks: each has an id, a cell with its own amounts,
//!   its own updates and its own end. So admission, caps, losses, drains, snapshots and reconciliation hold for hosts
//!   as for all executors, with the proofs that they have, and cost nothing more.
//! * **The first task counts host and task in one step**, since a framework picks both as a
//!   [gang](crate::Picks::push_gang), with all further tasks of that batch on that room: all are placed or none. So no
//!   task is ever placed whose host isn't.
//! * **New is one word an agent**: who adds the host, who may join, and who may end it. The kernel's other words can't
//!   say it: that an executor runs doesn't say whether another thread is about to end it. The word isn't on the path of
//!   offers, and nothing of the kernel reads it. See `state/host_state` for its table.
//! * **What becomes of tasks when their host is lost** is the cluster's to say, as for a lost agent: a report for each.
//!   The ledger only sees to it that nothing that is said of a former host's tasks counts for the next host.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::kernel::state::host_state::{HostState, HostWord, TaskHostStage};
use crate::sync::{Mutex, lock};

/// The hosts of a framework for its [tasks](crate::Task): at most one on each agent.
///
/// All methods may be called from any thread; each has its effect at one instant. A look-up of an agent's host takes a
/// lock for a few instructions; what is done with a [`TaskHost`] is lock-free. Entries of agents without a host are
/// dropped whenever the number of entries has doubled, so agents that have left don't take memory for ever.
///
/// ```
/// use offermill::{Hosts, Joined, TaskHostStage};
///
/// let hosts = Hosts::new();
/// // The first task on an agent adds its host: the batch picks both as a gang.
/// let Joined::First(host) = hosts.join("S1") else { panic!() };
/// assert!(host.join(), "a second task of the same batch");
/// // Other batches wait until the cluster has reported the host running.
/// assert!(matches!(hosts.join("S1"), Joined::Elsewhere));
/// host.up();
/// let Joined::Member(same) = hosts.join("S1") else { panic!() };
/// assert_eq!(same.tasks(), 3);
/// // Its tasks end. It has been idle if nothing has happened between two looks.
/// for _ in 0..3 {
///     same.leave();
/// }
/// let idle = host.idle().unwrap();
/// assert!(idle.end(), "now the framework ends the executor");
/// assert!(matches!(hosts.join("S1"), Joined::Elsewhere));
/// // When its end is reported, the next task adds another.
/// assert_eq!(host.lost(), Some(0));
/// assert_eq!(hosts.stage("S1"), TaskHostStage::None);
/// ```
#[derive(Default)]
pub struct Hosts {
    words: Mutex<Words>,
}

/// The words of agents, by the agents' ids.
#[derive(Default)]
struct Words {
    of_agents: HashMap<Box<str>, Arc<HostWord>>,
    /// The number of entries at which those without a host are dropped.
    drop_at: usize,
}

/// Up to this number of entries none is dropped.
const ENTRIES_MIN: usize = 64;

/// What became of a task that was to [join](Hosts::join) an agent's host.
#[derive(Clone, Debug)]
pub enum Joined {
    /// There is no host: the task is the first in a new one, which must be placed with it or
    /// [cancelled](TaskHost::lost).
    First(TaskHost),
    /// It is in the host, which runs.
    Member(TaskHost),
    /// The host is being started or ended, and takes no task now.
    Elsewhere,
}

/// The host of an agent, from its first task to its end. Statements about a host that was [lost](TaskHost::lost) have
/// no effect on the next one of its agent.
#[derive(Clone)]
pub struct TaskHost {
    word: Arc<HostWord>,
    round: u32,
}

/// A host without tasks, as it was at one instant.
#[derive(Debug)]
pub struct IdleHost {
    host: TaskHost,
    seen: HostState,
}

impl Hosts {
    /// Creates a set without hosts.
    #[must_use]
    pub fn new() -> Hosts {
        Hosts::default()
    }

    /// Adds a task to the host of this agent, or begins to add the host. Of several threads that do so at once, one
    /// gets [`Joined::First`].
    #[must_use]
    pub fn join(&self, agent_id: &str) -> Joined {
        let word = self.word(agent_id);
        match word.join() {
            None => Joined::Elsewhere,
            Some(HostState { stage, round, .. }) => {
                let host = TaskHost { word, round };
                if stage == TaskHostStage::Starting {
                    Joined::First(host)
                } else {
                    Joined::Member(host)
                }
            }
        }
    }

    /// How far the host of this agent is.
    #[must_use]
    pub fn stage(&self, agent_id: &str) -> TaskHostStage {
        let words = lock(&self.words);
        words.of_agents.get(agent_id).map_or(TaskHostStage::None, |word| word.state().stage)
    }

    fn word(&self, agent_id: &str) -> Arc<HostWord> {
        let mut words = lock(&self.words);
        if let Some(word) = words.of_agents.get(agent_id) {
            return Arc::clone(word);
        }
        words.drop_unused();
        let word = Arc::new(HostWord::new());
        words.of_agents.insert(agent_id.into(), Arc::clone(&word));
        word
    }
}

impl Words {
    /// Drops the entries of agents without a host, if entries have doubled since the last time. A word that another
    /// thread or a [`TaskHost`] still refers to is kept: a task may join by it, and the next host of the agent must
    /// have the same word. While the map is locked nobody else gets at the other words.
    fn drop_unused(&mut self) {
        if self.of_agents.len() < self.drop_at.max(ENTRIES_MIN) {
            return;
        }
        let is_used = |word: &mut Arc<HostWord>| {
            Arc::get_mut(word).is_none_or(|word| word.state().stage != TaskHostStage::None)
        };
        self.of_agents.retain(|_, word| is_used(word));
        self.drop_at = self.of_agents.len() * 2;
    }
}

impl TaskHost {
    /// Adds a further task of the batch that has one in it. Returns whether it may join: not if the host is to end, or
    /// was lost.
    #[must_use]
    pub fn join(&self) -> bool {
        self.word.join_again(self.round)
    }

    /// The cluster has reported the host running: other batches may join. Returns whether this call has said so first.
    pub fn up(&self) -> bool {
        self.word.up(self.round)
    }

    /// A task has ended, or was not placed. Returns how many are left; `None` if the host was lost before.
    pub fn leave(&self) -> Option<u32> {
        self.word.leave(self.round)
    }

    /// Has no more tasks join, whatever is in it: the executor is about to be ended. Returns whether this call has
    /// decided that.
    pub fn end(&self) -> bool {
        self.word.end(self.round)
    }

    /// The host as it is now, if it has no tasks and isn't to end.
    #[must_use]
    pub fn idle(&self) -> Option<IdleHost> {
        let seen = self.word.state();
        let is_idle = seen.round == self.round
            && seen.tasks == 0
            && matches!(seen.stage, TaskHostStage::Starting | TaskHostStage::Up);
        is_idle.then(|| IdleHost { host: self.clone(), seen })
    }

    /// The executor has ended, or it was not placed, and its tasks with it. Returns how many there were, to the first
    /// call alone. From now on the agent has no host.
    pub fn lost(&self) -> Option<u32> {
        self.word.lost(self.round)
    }

    /// How far it is; [`TaskHostStage::None`] if it was lost.
    #[must_use]
    pub fn stage(&self) -> TaskHostStage {
        let state = self.word.state();
        if state.round == self.round { state.stage } else { TaskHostStage::None }
    }

    /// How many tasks are in it; 0 if it was lost.
    #[must_use]
    pub fn tasks(&self) -> u32 {
        let state = self.word.state();
        if state.round == self.round { state.tasks } else { 0 }
    }
}

impl IdleHost {
    /// Whether nothing has happened to the host between this look and `later`.
    #[must_use]
    pub fn is_same(&self, later: &IdleHost) -> bool {
        self.seen == later.seen
    }

    /// Has no more tasks join, if nothing has happened since the look. Returns whether that is so: then the executor is
    /// to be ended.
    #[must_use]
    pub fn end(self) -> bool {
        self.host.word.end_unchanged(self.seen)
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("agents", &lock(&self.words).of_agents.len()).finish()
    }
}

impl fmt::Debug for TaskHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHost")
            .field("stage", &self.stage())
            .field("tasks", &self.tasks())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    /// Goal: agents that have left take no memory for ever, and no entry is dropped that has a host, or to which
    /// something refers. Method: many agents, each with a host that is lost at once; one with a host whose handle is
    /// dropped, and one whose host was lost but whose handle is kept.
    #[test]
    fn agents_that_have_left_are_forgotten() {
        let hosts = Hosts::new();
        let join = |agent: &str| match hosts.join(agent) {
            Joined::First(host) => host,
            other => panic!("{other:?}"),
        };
        assert!(join("up").up());
        let former = join("former");
        assert_eq!(former.lost(), Some(1));
        for agent in 0..10 * ENTRIES_MIN {
            assert_eq!(join(&agent.to_string()).lost(), Some(1));
            assert!(lock(&hosts.words).of_agents.len() <= ENTRIES_MIN);
        }
        assert!(matches!(hosts.join("up"), Joined::Member(host) if host.tasks() == 2));
        let next = join("former");
        assert_eq!((former.lost(), former.tasks(), next.tasks()), (None, 0, 1));
        assert!(Arc::ptr_eq(&former.word, &next.word));

        // All have a host: the limit grows with them.
        for agent in 0..3 * ENTRIES_MIN {
            assert!(join(&format!("agent {agent}")).up());
        }
        let all = (0..3 * ENTRIES_MIN).map(|agent| hosts.stage(&format!("agent {agent}")));
        assert!(all.into_iter().all(|stage| stage == TaskHostStage::Up));
    }
}
