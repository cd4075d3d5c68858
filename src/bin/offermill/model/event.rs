//! The events of a run, with their severity.

use std::time::{Duration, SystemTime};

use offermill::spark::shuffle::ShuffleEvent;
use offermill::{DemandCall, Timestamp};

use crate::model::executor::{AgentExclusion, ExecutorRecord, ExecutorState};
use crate::model::executor_kind::KindCounts;
use crate::model::queue::BoundChange;
use crate::model::reply::{CommandAnswer, ControlReply};
use crate::model::target::OnExit;
use crate::model::task::{TaskChange, TaskEvent};
use crate::model::waiting::Stall;
use crate::text::stdout::Rank;

/// An event and its time.
#[derive(Clone, Debug)]
pub(crate) struct TimedEvent {
    /// On the engine's clock.
    pub(crate) at: Timestamp,
    pub(crate) event: RunEvent,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub(crate) enum RunEvent {
    /// The framework has subscribed.
    Registered { framework_id: String, again: bool },
    /// The subscription has ended; what becomes of executors meanwhile.
    Disconnected(OnExit),
    /// An executor was placed.
    Placed { record: ExecutorRecord, replaces: Option<String> },
    /// The cluster has chosen an executor's agent.
    Bound(ExecutorRecord),
    /// The agent that the cluster has chosen doesn't take the executor, which is ended.
    Unwelcome { executor: String, host: String, why: String },
    /// This run continues a former one, in which this many executors had finished.
    Resumed { finished: u64 },
    /// An executor of a former run was adopted.
    Adopted(ExecutorRecord),
    /// An executor runs.
    Running(ExecutorRecord),
    /// An executor was asked to end.
    Ending(ExecutorRecord),
    /// An executor's agent is unreachable; when it is given up, if it is.
    Unreachable { record: ExecutorRecord, given_up_at: Option<SystemTime> },
    /// An executor's agent is reachable again.
    Returned(ExecutorRecord),
    /// An executor's agent is reachable again, but the executor has been replaced and is killed.
    RefusedReturn(ExecutorRecord),
    /// An executor was unreachable for too long and is replaced.
    GivenUp(ExecutorRecord),
    /// An executor has ended.
    Ended(ExecutorRecord),
    /// An agent was excluded after failures.
    Excluded(AgentExclusion),
    /// All agents that can run executors are excluded.
    AllExcluded { agents: usize },
    /// Executors are wanted, and none could be placed for a while.
    Stalled(Stall),
    /// An agent is lost.
    AgentLost { agent_id: String, host: String },
    /// Offers were suppressed or revived.
    Demand(DemandCall),
    /// Offers were declined because the queue was full.
    Overflow { offers: usize },
    /// Offers were declined because they can't be read, or because an id, a name or an attribute is too long.
    Unreadable { offers: usize, unanswered: usize, agent_id: Option<String>, why: String },
    /// Calls to the cluster failed: how many, and why the last one did.
    CallFailed { why: String, calls: u64 },
    /// The state of an agent's shuffle service changed.
    Shuffle { event: ShuffleEvent, port: u16 },
    /// The journal can't be written any more.
    JournalEnded { why: String },
    /// The cluster can't be reached, or refuses this framework.
    Refused { why: String },
    /// A thread that answers offers panicked. Its batch was declined, and the run continues.
    Panicked { why: String },
    /// The engine's control thread panicked. The run can't continue.
    Broken { why: String },
    /// The executor limit changed.
    LimitSet { from: Option<u32>, to: Option<u32>, why: String },
    /// Bounds of queues were changed.
    QueuesChanged { changes: Vec<BoundChange>, why: String },
    /// Executors were asked to end.
    KillAsked { executors: Vec<String>, why: String },
    /// A task changed.
    Task(TaskEvent),
    /// A command from standard input got its reply.
    Answered(CommandAnswer),
    /// The run stops.
    Stopping { why: String, timeout: Duration, living: KindCounts, by_signal: bool },
}

/// How severe an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSeverity {
    /// Everything is as it should be.
    Routine,
    /// Worth a line even above a live table.
    Notable,
    /// Something failed.
    Bad,
}

impl EventSeverity {
    /// The rank of its lines if not all can be written.
    pub(crate) fn rank(self) -> Rank {
        match self {
            EventSeverity::Routine => Rank::Routine,
            EventSeverity::Notable | EventSeverity::Bad => Rank::Notable,
        }
    }
}

impl RunEvent {
    /// How severe the event is.
    pub(crate) fn severity(&self) -> EventSeverity {
        match self {
            RunEvent::Ended(ExecutorRecord {
                state: ExecutorState::Failed | ExecutorState::Lost,
                ..
            })
            | RunEvent::Task(TaskEvent {
                what: TaskChange::Failed | TaskChange::Skipped, ..
            })
            | RunEvent::Disconnected(_)
            | RunEvent::Excluded(_)
            | RunEvent::AllExcluded { .. }
            | RunEvent::AgentLost { .. }
            | RunEvent::CallFailed { .. }
            | RunEvent::Refused { .. }
            | RunEvent::Panicked { .. }
            | RunEvent::Broken { .. }
            | RunEvent::Shuffle { event: ShuffleEvent::Failing { .. }, .. }
            | RunEvent::JournalEnded { .. }
            | RunEvent::RefusedReturn(_)
            | RunEvent::Answered(CommandAnswer { reply: ControlReply::Refused(_), .. })
            | RunEvent::GivenUp(_) => EventSeverity::Bad,
            RunEvent::Task(TaskEvent {
                what:
                    TaskChange::Retried
                    | TaskChange::Lost
                    | TaskChange::NotStarted
                    | TaskChange::Waiting
                    | TaskChange::Stopped,
                ..
            })
            | RunEvent::Registered { again: true, .. }
            | RunEvent::Placed { replaces: Some(_), .. }
            | RunEvent::Resumed { .. }
            | RunEvent::Shuffle { event: ShuffleEvent::Registered { again: true, .. }, .. }
            | RunEvent::Adopted(_)
            | RunEvent::Unreachable { .. }
            | RunEvent::Unwelcome { .. }
            | RunEvent::Returned(_)
            | RunEvent::Overflow { .. }
            | RunEvent::Unreadable { .. }
            | RunEvent::LimitSet { .. }
            | RunEvent::QueuesChanged { .. }
            | RunEvent::KillAsked { .. }
            | RunEvent::Answered(_)
            | RunEvent::Stopping { .. } => EventSeverity::Notable,
            _ => EventSeverity::Routine,
        }
    }
}
