//! What a pod's status means for its executor.
//!
//! The phase alone doesn't say it: `Pending` is a pod without a node as well as one whose image can't be pulled;
//! `Failed` is a program that failed, a node that was drained, and an end that this manager asked for; and of a node
//! that is silent the pods stay `Running`. By the first row that fits:
//!
//! | observed | state | reason |
//! |---|---|---|
//! | another container or another address than before | `Killing`, for it is deleted, then `Gone`: the first one ended with its node's memory of it | |
//! | `Succeeded`, or the executor's container ended with 0 | `Finished` | |
//! | refused by its node before it ran (`OutOfcpu`, `NodeAffinity`, …) | `Dropped` | |
//! | `Failed`, and this manager had asked for its end | `Killed` | |
//! | `Failed`, preempted by the scheduler or by its node | `Failed` | `Preempted` |
//! | `Failed`, evicted, or its node shut down | `Failed` | `AgentDraining` |
//! | `Failed`, deleted by others | `Gone` | |
//! | `Failed` otherwise, or the executor's container ended with another code | `Failed` | |
//! | phase `Unknown`, or not ready only because its node is silent | `Unreachable` | |
//! | `Running`, and a deletion was requested | `Killing` | |
//! | `Running` | `Running` | |
//! | its image or its configuration keeps the container from starting | `Staging`, and what it waits for | |
//! | the container is being made | `Starting` | |
//! | no node, or nothing of its container yet | `Staging`; without a node, what the scheduler says | |

use super::objects::{Pod, PodCondition, PodContainerStatus, Terminated};
use crate::status::{ProcessExit, TaskState, UpdateReason};

/// What this manager knows of an executor beside its pod's status.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownPod<'a> {
    /// Whether this manager has asked for the pod's deletion.
    pub(super) is_end_requested: bool,
    /// Whether this manager deletes the pod because it would be created with other nodes now.
    pub(super) is_made_anew: bool,
    /// The executor's container when it was first seen.
    pub(super) container_id: Option<&'a str>,
    /// The pod's address when it was first seen; empty if it had none yet.
    pub(super) pod_ip: &'a str,
}

/// The state of an executor, according to its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodState {
    pub(super) state: TaskState,
    pub(super) reason: UpdateReason,
    /// How it ended, or why it is in this state. May be empty.
    pub(super) message: String,
    /// What it waits for before it can start; empty if it doesn't wait.
    pub(super) waiting: String,
    /// Whether it waits for something that its image or configuration lacks, rather than for room.
    pub(super) is_blocked: bool,
    /// Whether the pod runs another container than the executor's, so that it is to be deleted.
    pub(super) is_replaced: bool,
    pub(super) exit: Option<ProcessExit>,
}

impl PodState {
    fn new(state: TaskState) -> PodState {
        PodState {
            state,
            reason: UpdateReason::Other,
            message: String::new(),
            waiting: String::new(),
            is_blocked: false,
            is_replaced: false,
            exit: None,
        }
    }

    /// The end of an executor whose pod isn't there any more, and whose last state isn't known.
    pub(super) fn vanished(known: KnownPod<'_>) -> PodState {
        if known.is_end_requested {
            return PodState::new(TaskState::Killed);
        }
        let why = match known.is_made_anew {
            true => "its pod had no node yet and may get others now: it is made anew",
            false => "its pod was deleted by others",
        };
        PodState::new(TaskState::Gone).saying(why.to_owned())
    }

    /// The end of an executor whose image or configuration has kept it from starting.
    pub(super) fn rejected(waiting: String) -> PodState {
        PodState::new(TaskState::Error).saying(waiting)
    }

    fn because(self, reason: UpdateReason) -> PodState {
        PodState { reason, ..self }
    }

    fn saying(self, message: String) -> PodState {
        PodState { message, ..self }
    }

    /// Whether the executor has ended, so that its pod is of no more use.
    pub(super) fn is_end(&self) -> bool {
        use TaskState::{Dropped, Error, Failed, Finished, Gone, Killed};
        matches!(self.state, Dropped | Error | Failed | Finished | Gone | Killed)
    }
}

/// The name of the container in which the executor runs. A template may add others beside it.
pub(super) const EXECUTOR_CONTAINER: &str = "executor";

/// Returns the status of the executor's container.
pub(super) fn executor_container(pod: &Pod) -> Option<&PodContainerStatus> {
    let statuses = &pod.status.container_statuses;
    statuses.iter().find(|it| it.name == EXECUTOR_CONTAINER).or_else(|| statuses.first())
}

/// Returns the id of the executor's container, once there is one.
pub(super) fn container_id(pod: &Pod) -> Option<&str> {
    executor_container(pod)?.container_id.as_deref().filter(|id| !id.is_empty())
}

/// Whether all containers of a pod have ended.
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// Reads the state of an executor from its pod.
pub(super) fn read(pod: &Pod, known: KnownPod<'_>) -> PodState {
    let container = executor_container(pod);
    let is_other_container =
        container_id(pod).is_some_and(|now| known.container_id.is_some_and(|before| before != now));
    let pod_ip = pod.status.pod_ip.as_str();
    if is_other_container || is_other_address(known.pod_ip, pod_ip) {
        let why = "its node has lost its container and started another".to_owned();
        if has_ended(pod) {
            return PodState::new(TaskState::Gone).saying(why);
        }
        return PodState { is_replaced: true, ..PodState::new(TaskState::Killing).saying(why) };
    }
    let terminated = container.and_then(|it| it.state.terminated.as_ref());
    match (pod.status.phase.as_deref(), terminated) {
        (Some("Succeeded"), _) => ended(TaskState::Finished, terminated),
        (Some("Failed"), _) => failed(pod, terminated, known),
        (_, Some(end)) if end.exit_code == 0 => ended(TaskState::Finished, terminated),
        // Other containers of the pod may still run.
        (_, Some(_)) => failed(pod, terminated, known),
        (Some("Unknown"), None) => unreachable(pod),
        (Some("Running"), None) if is_node_silent(pod) => unreachable(pod),
        (Some("Running"), None) if pod.is_being_deleted() => PodState::new(TaskState::Killing),
        (Some("Running"), None) => PodState::new(TaskState::Running),
        _ => not_started(pod, container),
    }
}

/// Whether the pod's sandbox was made anew, and its containers with it: then it has another address.
fn is_other_address(before: &str, now: &str) -> bool {
    !before.is_empty() && !now.is_empty() && before != now
}

/// An end with its exit code and what the node says of it.
fn ended(state: TaskState, terminated: Option<&Terminated>) -> PodState {
    let Some(end) = terminated else { return PodState::new(state) };
    let (exit, code) = match end.signal {
        0 => (ProcessExit::Code(end.exit_code), format!("exit code {}", end.exit_code)),
        signal => (ProcessExit::Signal(signal), format!("signal {signal}")),
    };
    // "Completed" and "Error" say no more than the code does.
    let reason = end.reason.as_deref().filter(|it| !matches!(*it, "" | "Completed" | "Error"));
    // Of an end that was asked for, what the program said last is of no interest; nor is that the node found nothing.
    let message = end
        .message
        .as_deref()
        .filter(|message| state != TaskState::Killed && !message.starts_with(NO_LAST_WORDS));
    let said = [Some(code.as_str()), reason, message];
    PodState { exit: Some(exit), ..PodState::new(state).saying(joined(&said)) }
}

/// How a node begins to say that a program's output, of which the end would be the message, can't be read.
const NO_LAST_WORDS: &str = "Error on reading termination message from logs";

/// Reads the end of an executor from the last state of its pod, which was deleted.
pub(super) fn read_deleted(pod: &Pod, known: KnownPod<'_>) -> PodState {
    let state = read(pod, known);
    if state.is_end() {
        return state;
    }
    let disrupted = disruption(pod).filter(|_| !known.is_end_requested);
    disrupted.map_or_else(
        || PodState::vanished(known),
        |(cause, why)| PodState::new(TaskState::Failed).because(cause).saying(why),
    )
}

fn failed(pod: &Pod, terminated: Option<&Terminated>, known: KnownPod<'_>) -> PodState {
    let reason = pod.status.reason.as_deref().unwrap_or_default();
    let message = pod.status.message.as_deref();
    if is_refusal(reason) {
        return PodState::new(TaskState::Dropped).saying(joined(&[Some(reason), message]));
    }
    if known.is_end_requested {
        return ended(TaskState::Killed, terminated);
    }
    if let Some((cause, why)) = disruption(pod) {
        let end = ended(TaskState::Failed, terminated);
        return end.because(cause).saying(why);
    }
    if pod.is_being_deleted() {
        let end = ended(TaskState::Gone, terminated);
        let why = joined(&[Some("its pod was deleted by others"), Some(&end.message)]);
        return end.saying(why);
    }
    let end = ended(TaskState::Failed, terminated);
    let why = joined(&[Some(&end.message), Some(reason), message]);
    end.saying(why)
}

/// Whether a pod was ended for the sake of its node or of other pods, and what is said of it.
fn disruption(pod: &Pod) -> Option<(UpdateReason, String)> {
    let reason = pod.status.reason.as_deref().unwrap_or_default();
    let target = condition(pod, "DisruptionTarget").filter(|it| it.status == "True");
    let target_reason = target.and_then(|it| it.reason.as_deref());
    let cause = if reason == "Preempting" || target_reason == Some("PreemptionByScheduler") {
        UpdateReason::Preempted
    } else if target.is_some() || DRAINED.contains(&reason) {
        UpdateReason::AgentDraining
    } else {
        return None;
    };
    let target_message = target.and_then(|it| it.message.as_deref());
    let said = [Some(reason), pod.status.message.as_deref(), target_reason, target_message];
    Some((cause, joined(&said)))
}

/// The reasons of pods that were ended because their nodes lacked something, shut down or were lost.
const DRAINED: [&str; 5] = ["Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"];

/// Whether its node refused the pod before any of it ran.
fn is_refusal(reason: &str) -> bool {
    reason.starts_with("OutOf") || matches!(reason, "NodeAffinity" | "UnexpectedAdmissionError")
}

/// Whether the pod isn't ready although its containers are: then not the kubelet says so, which would give a reason,
/// but the node controller, which hasn't heard of the node.
fn is_node_silent(pod: &Pod) -> bool {
    let ready = condition(pod, "Ready");
    let by_controller = ready.is_some_and(|it| {
        let reason = it.reason.as_deref().unwrap_or_default();
        it.status != "True"
            && matches!(reason, "" | "NodeNotReady" | "NodeLost" | "NodeStatusNeverUpdated")
    });
    by_controller && executor_container(pod).is_some_and(|it| it.ready)
}

fn unreachable(pod: &Pod) -> PodState {
    let why = match pod.spec.node_name.as_str() {
        "" => "its node is silent".to_owned(),
        node => format!("its node {node} is silent"),
    };
    PodState::new(TaskState::Unreachable).saying(why)
}

fn not_started(pod: &Pod, container: Option<&PodContainerStatus>) -> PodState {
    let waiting = container.and_then(|it| it.state.waiting.as_ref());
    let reason = waiting.and_then(|it| it.reason.as_deref()).unwrap_or_default();
    if is_blocking(reason) {
        let message = waiting.and_then(|it| it.message.as_deref());
        let waiting = joined(&[Some(reason), message]);
        return PodState { waiting, is_blocked: true, ..PodState::new(TaskState::Staging) };
    }
    if !pod.spec.node_name.is_empty() {
        let state = if container.is_some() { TaskState::Starting } else { TaskState::Staging };
        return PodState::new(state);
    }
    let scheduled = condition(pod, "PodScheduled").filter(|it| it.status == "False");
    let said = scheduled.map(|it| [it.message.as_deref().or(it.reason.as_deref())]);
    let waiting = said.map(|it| joined(&it)).unwrap_or_default();
    PodState { waiting, ..PodState::new(TaskState::Staging) }
}

/// Whether a container that waits for this reason needs somebody to mend its image or its configuration.
fn is_blocking(reason: &str) -> bool {
    matches!(
        reason,
        "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "CrashLoopBackOff"
    )
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.conditions.iter().find(|it| it.kind == kind)
}

/// Joins the parts that aren't empty.
fn joined(parts: &[Option<&str>]) -> String {
    let parts: Vec<&str> =
        parts.iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
