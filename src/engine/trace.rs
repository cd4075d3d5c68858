//! Events for the crate `tracing`, with the feature of that name; without it these functions do nothing.
//!
//! The engine emits each [`Notice`](crate::engine::Notice) just before its observer gets it, on the control thread, and
//! the beginning and the end of a drain. Cluster managers emit what no notice says. All have the target `offermill`.
//! The kernel emits nothing.
//!
//! A subscriber is foreign code. If it panics, the event is lost and the panic ends here: a status update, a shutdown
//! or a drop of the engine goes on as without it. The control thread reports the first such panic to the observer.
//!
//! Texts from the cluster are [printable](crate::foreign_text::Printable), because a subscriber may write them to a
//! terminal. None contains a secret, and executors' messages to the framework are left out but for their length.

#[cfg(feature = "tracing")]
pub(crate) use emitted::{drain_began, drain_ended, notice};
#[cfg(all(feature = "tracing", feature = "mesos"))]
pub(crate) use emitted::{subscribing, subscription_ended, torn_down};

#[cfg(not(feature = "tracing"))]
pub(crate) use omitted::{drain_began, drain_ended, notice};
#[cfg(all(not(feature = "tracing"), feature = "mesos"))]
pub(crate) use omitted::{subscribing, subscription_ended, torn_down};

/// The functions with the feature.
#[cfg(feature = "tracing")]
mod emitted {
    use std::time::Duration;

    use tracing::{debug, error, info, warn};

    use crate::engine::notice::{Notice, PlacedExecutor};
    use crate::engine::sync::catch;
    use crate::foreign_text::Printable;
    use crate::kernel::Change;
    use crate::status::Fate;
    use crate::status::TaskState;
    use crate::time::Timestamp;

    const TARGET: &str = "offermill";

    /// Runs the subscriber. A panic of it ends here: callers are in the middle of something that must go on.
    fn emit(event: impl FnOnce()) -> Result<(), String> {
        catch(event)
    }

    /// A notice for the observer.
    ///
    /// # Errors
    /// Returns the panic's message if the subscriber panicked.
    pub(crate) fn notice(notice: &Notice, now: Timestamp) -> Result<(), String> {
        emit(|| any_notice(notice, now))
    }

    /// A shutdown begins to wait for executors.
    pub(crate) fn drain_began(timeout: Duration) {
        let _panicked = emit(|| info!(target: TARGET, ?timeout, "drain began"));
    }

    /// A shutdown no longer waits for executors; `executors` have not ended.
    pub(crate) fn drain_ended(drained: bool, executors: usize) {
        let _panicked = emit(|| info!(target: TARGET, drained, executors, "drain ended"));
    }

    /// An attempt to subscribe at a master of Mesos begins.
    #[cfg(feature = "mesos")]
    pub(crate) fn subscribing(master: &dyn std::fmt::Display) {
        let _panicked = emit(|| debug!(target: TARGET, %master, "subscribing"));
    }

    /// A subscription at a master of Mesos has ended, or was not possible.
    #[cfg(feature = "mesos")]
    pub(crate) fn subscription_ended(master: &dyn std::fmt::Display, why: &str) {
        let why = Printable(why);
        let _panicked = emit(|| warn!(target: TARGET, %master, %why, "no subscription"));
    }

    /// The manager of Mesos has tried to tear the framework down; `why_left` if that failed.
    #[cfg(feature = "mesos")]
    pub(crate) fn torn_down(why_left: Option<&str>) {
        let _panicked = emit(|| match why_left {
            None => info!(target: TARGET, "torn down"),
            Some(why) => warn!(target: TARGET, why = %Printable(why), "left behind"),
        });
    }

    fn any_notice(notice: &Notice, now: Timestamp) {
        match notice {
            Notice::Registered { framework_id, again } => {
                info!(target: TARGET, framework_id = %Printable(framework_id), again, "registered");
            }
            Notice::Disconnected => warn!(target: TARGET, "disconnected"),
            Notice::Resumed { finished } => info!(target: TARGET, finished, "resumed a former run"),
            Notice::Placed(placed) => self::placed(placed, "placed"),
            Notice::Adopted(adopted) => self::placed(adopted, "adopted"),
            Notice::Updated { executor, state, change, message, .. } => {
                updated(executor, *state, *change, message);
            }
            Notice::AgentExcluded { agent_id, until } => {
                // Left out if the exclusion doesn't end.
                let is_finite = *until != Timestamp::MAX;
                let remaining_s = is_finite.then(|| until.since(now).as_secs_f64());
                let agent_id = Printable(agent_id);
                warn!(target: TARGET, %agent_id, remaining_s, "agent excluded");
            }
            Notice::AgentLost { agent_id } => {
                warn!(target: TARGET, agent_id = %Printable(agent_id), "agent lost");
            }
            Notice::ExecutorLost { executor } => {
                warn!(target: TARGET, executor = %Printable(executor), "executor process lost");
            }
            Notice::GivenUp { executor } => {
                warn!(target: TARGET, executor = %Printable(executor), "given up");
            }
            Notice::Forgotten { executor } => {
                warn!(target: TARGET, executor = %Printable(executor), "forgotten");
            }
            Notice::Message { executor, data, .. } => {
                let bytes = data.len();
                debug!(target: TARGET, executor = %Printable(executor), bytes, "message");
            }
            Notice::Demand(call) => debug!(target: TARGET, ?call, "demand"),
            failure => self::failure(failure),
        }
    }

    /// A notice of something that failed.
    fn failure(notice: &Notice) {
        match notice {
            Notice::Overflow { offers, refuse } => {
                warn!(target: TARGET, offers, ?refuse, "offers without room were declined");
            }
            Notice::Unreadable { offers, unanswered, agent_id, why, .. } => {
                let agent_id = agent_id.as_deref().map(|id| Printable(id).to_string());
                let why = Printable(why);
                warn!(target: TARGET, offers, unanswered, agent_id, %why, "unreadable offers");
            }
            Notice::CallFailed { why } => {
                warn!(target: TARGET, why = %Printable(why), "call failed")
            }
            Notice::JournalEnded { why } => {
                error!(target: TARGET, why = %Printable(why), "journal ended");
            }
            Notice::HandlerPanicked { why } => {
                error!(target: TARGET, why = %Printable(why), "handler panicked");
            }
            Notice::Broken { why } => {
                error!(target: TARGET, why = %Printable(why), "engine broken")
            }
            Notice::Refused { why } => error!(target: TARGET, why = %Printable(why), "refused"),
            _ => {}
        }
    }

    /// An executor that the engine launches, or has adopted.
    fn placed(placed: &PlacedExecutor, what: &'static str) {
        let PlacedExecutor { executor, agent_id, hostname, resources, .. } = placed;
        let (executor, agent_id) = (Printable(executor), Printable(agent_id));
        let (millicores, memory_mib) = (resources.cores.millis(), resources.memory.get());
        let hostname = Printable(hostname);
        info!(target: TARGET, %executor, %agent_id, %hostname, millicores, memory_mib, "{what}");
    }

    /// A status update. Ends are reported at a higher level than the rest, and failures at a higher one than other
    /// ends.
    fn updated(executor: &str, state: TaskState, change: Change, message: &str) {
        let (executor, why) = (Printable(executor), Printable(message));
        match change {
            Change::Ended(fate @ (Fate::Failed | Fate::Lost)) => {
                warn!(target: TARGET, %executor, ?state, ?fate, %why, "ended");
            }
            Change::Ended(fate) => info!(target: TARGET, %executor, ?state, ?fate, %why, "ended"),
            Change::Unreachable => warn!(target: TARGET, %executor, ?state, %why, "unreachable"),
            change => debug!(target: TARGET, %executor, ?state, ?change, %why, "updated"),
        }
    }
}

/// The functions without the feature.
#[cfg(not(feature = "tracing"))]
mod omitted {
    use std::time::Duration;

    use crate::engine::notice::Notice;
    use crate::time::Timestamp;

    pub(crate) fn notice(_notice: &Notice, _now: Timestamp) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn drain_began(_timeout: Duration) {}

    pub(crate) fn drain_ended(_drained: bool, _executors: usize) {}

    #[cfg(feature = "mesos")]
    pub(crate) fn subscribing(_master: &dyn std::fmt::Display) {}

    #[cfg(feature = "mesos")]
    pub(crate) fn subscription_ended(_master: &dyn std::fmt::Display, _why: &str) {}

    #[cfg(feature = "mesos")]
    pub(crate) fn torn_down(_why_left: Option<&str>) {}
}
