//! Records of executors and agents, and the states of executors.

use std::time::{Duration, SystemTime};

use offermill::engine::UnstartedEnd;
use offermill::resources::ExecutorResources;
use offermill::{ProcessReport, Timestamp};

use crate::model::end_cause::EndCause;
use crate::model::executor_kind::ExecutorKind;

/// An executor of the run.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorRecord {
    pub(crate) name: String,
    pub(crate) agent_id: String,
    pub(crate) host: String,
    /// The name or address at which this machine reaches it, if that is known.
    pub(crate) address: Option<String>,
    pub(crate) state: ExecutorState,
    pub(crate) resources: ExecutorResources,
    /// The tag of the task that it is, if it is one.
    pub(crate) tag: Option<u64>,
    pub(crate) placed_at: Timestamp,
    pub(crate) changed_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    /// Whether it has been seen running.
    pub(crate) has_run: bool,
    /// When it began to run, by the cluster's clock.
    pub(crate) running_since: Option<SystemTime>,
    /// How long it ran, by the cluster's clock, once it has ended.
    pub(crate) ran_by_cluster: Option<Duration>,
    pub(crate) message: String,
    /// What the cluster says of its process.
    pub(crate) process: ProcessReport,
    /// Why it ended; `None` if it is alive.
    pub(crate) cause: Option<EndCause>,
    /// How it ended, if it had not run.
    pub(crate) unstarted: Option<UnstartedEnd>,
    pub(crate) replaced_by: Option<String>,
    /// Whether it counts against the caps.
    pub(crate) is_counted: bool,
}

/// The state of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExecutorState {
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

impl ExecutorState {
    /// All states, in the order in which they are shown.
    pub(crate) const ALL: [ExecutorState; 9] = [
        ExecutorState::Running,
        ExecutorState::Starting,
        ExecutorState::Ending,
        ExecutorState::Unreachable,
        ExecutorState::GivenUp,
        ExecutorState::Finished,
        ExecutorState::Failed,
        ExecutorState::Killed,
        ExecutorState::Lost,
    ];

    /// The state's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ExecutorState::Starting => "starting",
            ExecutorState::Running => "running",
            ExecutorState::Ending => "ending",
            ExecutorState::Unreachable => "unreachable",
            ExecutorState::GivenUp => "given up",
            ExecutorState::Finished => "finished",
            ExecutorState::Failed => "failed",
            ExecutorState::Killed => "killed",
            ExecutorState::Lost => "lost",
        }
    }

    /// Whether an executor in this state has ended.
    pub(crate) const fn is_end(self) -> bool {
        matches!(
            self,
            ExecutorState::Finished
                | ExecutorState::Failed
                | ExecutorState::Killed
                | ExecutorState::Lost
        )
    }
}

impl ExecutorRecord {
    /// An executor that was placed at this time on an agent, of which nothing else is known yet. It counts against the
    /// caps.
    pub(crate) fn starting(
        name: String,
        agent_id: String,
        host: String,
        at: Timestamp,
    ) -> ExecutorRecord {
        ExecutorRecord {
            name,
            agent_id,
            host,
            address: None,
            state: ExecutorState::Starting,
            resources: ExecutorResources::NONE,
            tag: None,
            placed_at: at,
            changed_at: at,
            ended_at: None,
            has_run: false,
            running_since: None,
            ran_by_cluster: None,
            message: String::new(),
            process: ProcessReport::default(),
            cause: None,
            unstarted: None,
            replaced_by: None,
            is_counted: true,
        }
    }

    /// How long it ran, by the cluster's clock; if the cluster doesn't say it, the time from its placement to the
    /// report about its end. `None` if it is alive.
    pub(crate) fn ran(&self) -> Option<Duration> {
        self.ended_at.map(|ended| self.ran_by_cluster.unwrap_or(ended.since(self.placed_at)))
    }

    /// How long it ran, or if it is alive, the time from its placement to `now`.
    pub(crate) fn age(&self, now: Timestamp) -> Duration {
        self.ran().unwrap_or(now.since(self.placed_at))
    }
}

/// How many executors are in each state, by the state's number.
pub(crate) type StateCounts = [u64; ExecutorState::ALL.len()];

/// An agent on which executors were placed.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRecord {
    pub(crate) host: String,
    pub(crate) counts: StateCounts,
    /// Those of `counts` that are hosts of tasks.
    pub(crate) hosts: StateCounts,
    pub(crate) last_failure: String,
    pub(crate) exclusions: Vec<AgentExclusion>,
    pub(crate) is_lost: bool,
}

impl AgentRecord {
    /// The counts that an executor of this kind is in.
    pub(crate) fn counts_of(
        &mut self,
        kind: ExecutorKind,
    ) -> impl Iterator<Item = &mut StateCounts> {
        let hosts = (kind == ExecutorKind::Host).then_some(&mut self.hosts);
        [&mut self.counts].into_iter().chain(hosts)
    }

    /// How many of its executors are in this state.
    pub(crate) fn count(&self, state: ExecutorState) -> u64 {
        self.counts[state as usize]
    }
}

/// An exclusion of an agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentExclusion {
    pub(crate) agent_id: String,
    pub(crate) host: String,
    /// The number of failures that led to it.
    pub(crate) failures: u8,
    /// The last failure's message.
    pub(crate) why: String,
    /// When it began.
    pub(crate) at: Timestamp,
    /// When it ends; [`Timestamp::MAX`] is never.
    pub(crate) until: Timestamp,
    /// The end that the event about it showed; later failures may lengthen it.
    pub(crate) shown_until: Timestamp,
    /// When it ends, in wall-clock time; `None` is never.
    pub(crate) ends: Option<SystemTime>,
}

impl AgentExclusion {
    /// Its whole duration, rounded to a second; `None` is for ever.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let exact = self.until.since(self.at);
        let rounded = (exact + Duration::from_millis(500)).as_secs();
        self.ends.map(|_| Duration::from_secs(rounded))
    }
}

/// Whether `text` is a short form of an executor's name: the name's end after the last `-`, or its number there.
pub(crate) fn is_short_for(text: &str, name: &str) -> bool {
    let text = text.trim_start_matches("…-");
    let end = name.rsplit_once('-').map_or(name, |(_, end)| end);
    end == text || end.split_once('.').is_some_and(|(number, _)| number == text)
}

/// Ids are shortened on terminals with fewer columns.
const WIDE: usize = 100;

/// An executor's id, without the prefix that all ids share if the terminal is narrow.
pub(crate) fn short_name(name: &str, columns: usize) -> String {
    match name.rsplit_once('-') {
        Some((_, rest)) if columns < WIDE => format!("…-{rest}"),
        _ => name.to_owned(),
    }
}
