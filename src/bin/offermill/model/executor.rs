//! What is known of one executor, and of one agent.

use std::time::Duration;

use offermill::Timestamp;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};

use crate::model::event::Exclusion;

/// An executor.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorInfo {
    pub(crate) name: String,
    pub(crate) agent_id: String,
    pub(crate) host: String,
    pub(crate) state: State,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) gpus: Gpus,
    pub(crate) port: Option<u16>,
    pub(crate) placed_at: Timestamp,
    pub(crate) changed_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) message: String,
    pub(crate) replaced_by: Option<String>,
}

/// Where in its life an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Starting,
    Running,
    Ending,
    Unreachable,
    GivenUp,
    Finished,
    Failed,
    Killed,
    Lost,
}

impl State {
    /// All, in the order in which people want to hear of them.
    pub(crate) const ALL: [State; 9] = [
        State::Running,
        State::Starting,
        State::Ending,
        State::Unreachable,
        State::GivenUp,
        State::Finished,
        State::Failed,
        State::Killed,
        State::Lost,
    ];

    /// In a word or two.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Running => "running",
            State::Ending => "ending",
            State::Unreachable => "unreachable",
            State::GivenUp => "given up",
            State::Finished => "finished",
            State::Failed => "failed",
            State::Killed => "killed",
            State::Lost => "lost",
        }
    }

    /// Whether it has ended.
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, State::Finished | State::Failed | State::Killed | State::Lost)
    }
}

impl ExecutorInfo {
    /// From its placement to its end; `None` while it lives.
    pub(crate) fn ran(&self) -> Option<Duration> {
        self.ended_at.map(|ended| ended.since(self.placed_at))
    }

    /// Its age, or the age that it reached.
    pub(crate) fn age(&self, now: Timestamp) -> Duration {
        self.ended_at.unwrap_or(now).since(self.placed_at)
    }
}

/// An agent, as far as executors were placed on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRecord {
    pub(crate) host: String,
    pub(crate) counts: [u64; State::ALL.len()],
    pub(crate) last_failure: String,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) is_lost: bool,
}

impl AgentRecord {
    /// How many of its executors are in this state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts[state as usize]
    }
}

/// Terminals with fewer columns see ids shortened.
const WIDE: usize = 100;

/// An executor's id, as far as there is room: all begin alike, and the rest will do.
pub(crate) fn short_name(name: &str, columns: usize) -> String {
    match name.rsplit_once('-') {
        Some((_, rest)) if columns < WIDE => format!("…-{rest}"),
        _ => name.to_owned(),
    }
}
