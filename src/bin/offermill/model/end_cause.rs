//! Why an executor ended, in a word for programs.

use offermill::{ProcessExit, TaskState, UpdateReason};

/// Why an executor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// Its process ended by itself.
    Exited,
    /// A signal ended its process, which this run had not asked to end.
    Signaled,
    /// It was asked to end.
    Requested,
    /// It could not be started.
    NotStarted,
    /// The cluster took its resources back before it was launched.
    Dropped,
    /// Its agent is lost.
    AgentLost,
    /// The cluster took its resources for others, or drains its agent.
    Preempted,
    /// The cluster doesn't say.
    Unknown,
}

impl EndCause {
    /// The cause that a final update tells, of an executor that has or has not run before it.
    pub(crate) fn new(
        state: TaskState,
        reason: UpdateReason,
        exit: Option<ProcessExit>,
        has_run: bool,
    ) -> EndCause {
        match (state, reason, exit) {
            (_, UpdateReason::Preempted | UpdateReason::AgentDraining, _) => EndCause::Preempted,
            (TaskState::Killed, ..) => EndCause::Requested,
            (TaskState::Dropped, ..) | (_, UpdateReason::InvalidOffers, _) => EndCause::Dropped,
            (TaskState::Error, ..) => EndCause::NotStarted,
            (TaskState::Gone, UpdateReason::Reconciliation, _) => EndCause::Unknown,
            (TaskState::Gone, ..) | (_, UpdateReason::AgentRemoved, _) => EndCause::AgentLost,
            (_, _, Some(ProcessExit::Signal(_))) => EndCause::Signaled,
            (TaskState::Finished, ..) | (_, _, Some(_)) => EndCause::Exited,
            (TaskState::Failed, _, None) if !has_run => EndCause::NotStarted,
            _ => EndCause::Unknown,
        }
    }

    /// The cause's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            EndCause::Exited => "exited",
            EndCause::Signaled => "signaled",
            EndCause::Requested => "requested",
            EndCause::NotStarted => "not_started",
            EndCause::Dropped => "dropped",
            EndCause::AgentLost => "agent_lost",
            EndCause::Preempted => "preempted",
            EndCause::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each final update has the cause that the guide lists. Method: a row each.
    #[test]
    fn causes_are_told_apart() {
        use UpdateReason::{
            AgentDraining, AgentRemoved, InvalidOffers, Other, Preempted, Reconciliation,
        };
        let (code, signal) = (Some(ProcessExit::Code(3)), Some(ProcessExit::Signal(9)));
        for (state, reason, exit, has_run, cause) in [
            (TaskState::Finished, Other, None, true, "exited"),
            (TaskState::Failed, Other, code, true, "exited"),
            (TaskState::Failed, Other, code, false, "exited"),
            (TaskState::Failed, Other, signal, true, "signaled"),
            (TaskState::Killed, Other, signal, true, "requested"),
            (TaskState::Killed, Other, None, false, "requested"),
            (TaskState::Failed, Other, None, false, "not_started"),
            (TaskState::Failed, Other, None, true, "unknown"),
            (TaskState::Error, Other, None, false, "not_started"),
            (TaskState::Dropped, InvalidOffers, None, false, "dropped"),
            (TaskState::Lost, InvalidOffers, None, false, "dropped"),
            (TaskState::Gone, AgentRemoved, None, true, "agent_lost"),
            (TaskState::Gone, Other, None, true, "agent_lost"),
            (TaskState::Gone, Reconciliation, None, true, "unknown"),
            (TaskState::Failed, Preempted, None, true, "preempted"),
            (TaskState::Killed, AgentDraining, None, true, "preempted"),
            (TaskState::Lost, Other, None, true, "unknown"),
        ] {
            let told = EndCause::new(state, reason, exit, has_run).as_str();
            assert_eq!(told, cause, "{state:?} {reason:?} {exit:?} {has_run}");
        }
    }
}
