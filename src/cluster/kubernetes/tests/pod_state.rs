//! Each row of the table of `pod_state.rs`, with status as a real server has shown it.

use serde_json::{Value, json};

use crate::cluster::kubernetes::objects::Pod;
use crate::cluster::kubernetes::pod_state::{KnownPod, PodState, read, read_deleted};
use crate::status::{ProcessExit, TaskState, UpdateReason};

const OURS: KnownPod<'_> =
    KnownPod { is_end_requested: true, is_made_anew: false, container_id: None, pod_ip: "" };

fn pod(node: &str, status: Value) -> Pod {
    let pod =
        json!({ "metadata": { "name": "a" }, "spec": { "nodeName": node }, "status": status });
    serde_json::from_value(pod).unwrap()
}

fn deleting(pod: Pod) -> Pod {
    let mut pod = pod;
    pod.metadata.deletion_timestamp = Some("2026-11-23T21:00:00Z".to_owned());
    pod
}

fn of(pod: &Pod) -> (TaskState, UpdateReason) {
    let state = read(pod, KnownPod::default());
    (state.state, state.reason)
}

fn running(ready: &str, reason: &str, container_ready: bool) -> Pod {
    pod(
        "n1",
        json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": ready, "reason": reason }],
            "containerStatuses": [{
                "name": "executor", "containerID": "fake://1", "ready": container_ready,
                "state": { "running": { "startedAt": "2026-11-23T21:00:00Z" } },
            }],
        }),
    )
}

fn ended(code: i32, reason: &str) -> Pod {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let terminated = json!({ "exitCode": code, "reason": reason, "message": "" });
    let container = json!({ "name": "executor", "containerID": "fake://1",
        "state": { "terminated": terminated } });
    pod("n1", json!({ "phase": phase, "containerStatuses": [container] }))
}

fn failed(reason: &str) -> Pod {
    pod("n1", json!({ "phase": "Failed", "reason": reason, "message": "why" }))
}

fn container(state: Value) -> Pod {
    pod(
        "n1",
        json!({ "phase": "Pending", "containerStatuses": [{ "name": "executor", "state": state }] }),
    )
}

/// Goal: the way of a pod from its creation to its end is the executor's. Method: the status after each step.
#[test]
fn a_life_is_reported_step_by_step() {
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    for (pod, state) in [
        (pod("", json!({})), TaskState::Staging),
        (pod("", json!({ "phase": "Pending" })), TaskState::Staging),
        (pod("n1", json!({ "phase": "Pending" })), TaskState::Staging),
        (container(creating), TaskState::Starting),
        (running("True", "", true), TaskState::Running),
        (deleting(running("True", "", true)), TaskState::Killing),
        (ended(0, "Completed"), TaskState::Finished),
        (ended(3, "Error"), TaskState::Failed),
    ] {
        assert_eq!(of(&pod), (state, UpdateReason::Other), "{pod:?}");
    }
}

/// Goal: what a program said last is part of why it failed; not of an end that was asked for, nor is it that nothing
/// was found. Method: each.
#[test]
fn last_words_are_told() {
    let pod = |message: &str| {
        let mut pod = ended(3, "Error");
        if let Some(end) = &mut pod.status.container_statuses[0].state.terminated {
            end.message = Some(message.to_owned());
        }
        pod
    };
    let said = |pod: &Pod, known| read(pod, known).message;
    assert_eq!(said(&pod("no disk\n"), KnownPod::default()), "exit code 3: no disk");
    assert_eq!(said(&pod("no disk"), OURS), "exit code 3");
    let unread = "Error on reading termination message from logs: failed to tail";
    assert_eq!(said(&pod(unread), KnownPod::default()), "exit code 3");
}

/// Goal: an end says how. Method: an exit code, the kernel's reason, a signal.
#[test]
fn an_end_says_how() {
    let said = |pod: &Pod| {
        let state = read(pod, KnownPod::default());
        (state.message, state.exit)
    };
    let code = |code| Some(ProcessExit::Code(code));
    assert_eq!(said(&ended(3, "Error")), ("exit code 3".to_owned(), code(3)));
    assert_eq!(said(&ended(137, "OOMKilled")), ("exit code 137: OOMKilled".to_owned(), code(137)));
    let mut signalled = ended(1, "");
    if let Some(end) = &mut signalled.status.container_statuses[0].state.terminated {
        end.signal = 9;
    }
    assert_eq!(said(&signalled), ("signal 9".to_owned(), Some(ProcessExit::Signal(9))));
}

/// Goal: what isn't the node's or the program's fault blames neither. Method: each reason for which pods are ended by
/// others, before and after they ran.
#[test]
fn ends_by_others_are_told_apart() {
    use UpdateReason::{AgentDraining, Other, Preempted};
    for reason in ["Evicted", "NodeShutdown", "Terminated", "NodeLost"] {
        assert_eq!(of(&failed(reason)), (TaskState::Failed, AgentDraining), "{reason}");
    }
    assert_eq!(of(&failed("Preempting")), (TaskState::Failed, Preempted));
    for reason in
        ["OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "UnexpectedAdmissionError"]
    {
        assert_eq!(of(&failed(reason)), (TaskState::Dropped, Other), "{reason}");
    }
    assert_eq!(of(&failed("DeadlineExceeded")), (TaskState::Failed, Other));
    let target = |reason: &str| {
        let condition = json!({ "type": "DisruptionTarget", "status": "True", "reason": reason });
        pod("n1", json!({ "phase": "Failed", "conditions": [condition] }))
    };
    assert_eq!(of(&target("PreemptionByScheduler")), (TaskState::Failed, Preempted));
    assert_eq!(of(&target("EvictionByEvictionAPI")), (TaskState::Failed, AgentDraining));
    let deleted = deleting(ended(143, "Error"));
    assert_eq!(of(&deleted), (TaskState::Gone, Other));
    assert_eq!(read(&deleted, OURS).state, TaskState::Killed);
    assert_eq!(read(&deleted, OURS).exit, Some(ProcessExit::Code(143)));
    // What finished before its deletion was noticed has finished.
    assert_eq!(read(&deleting(ended(0, "Completed")), OURS).state, TaskState::Finished);
}

/// Goal: a pod that was deleted without an end has one. Method: the last state of pods that were deleted by this
/// manager, by others, and for the sake of others.
#[test]
fn a_deleted_pod_has_ended() {
    let pod = running("True", "", true);
    assert_eq!(read_deleted(&pod, KnownPod::default()).state, TaskState::Gone);
    assert_eq!(read_deleted(&pod, OURS).state, TaskState::Killed);
    assert_eq!(read_deleted(&ended(3, "Error"), KnownPod::default()).state, TaskState::Failed);
    let mut preempted = pod;
    let reason = Some("PreemptionByScheduler".to_owned());
    let (kind, status) = ("DisruptionTarget".to_owned(), "True".to_owned());
    let condition =
        crate::cluster::kubernetes::objects::PodCondition { kind, status, reason, message: None };
    preempted.status.conditions.push(condition);
    let state = read_deleted(&preempted, KnownPod::default());
    assert_eq!((state.state, state.reason), (TaskState::Failed, UpdateReason::Preempted));
    assert_eq!(read_deleted(&preempted, OURS).state, TaskState::Killed);
}

/// Goal: a silent node is told apart from a program that isn't ready. Method: who says that the pod isn't ready.
#[test]
fn a_silent_node_makes_its_pods_unreachable() {
    let silent = running("False", "", true);
    assert_eq!(of(&silent).0, TaskState::Unreachable);
    assert_eq!(
        of(&deleting(silent)).0,
        TaskState::Unreachable,
        "evicted, and perhaps still running"
    );
    assert_eq!(of(&running("False", "NodeNotReady", true)).0, TaskState::Unreachable);
    assert_eq!(of(&running("Unknown", "NodeStatusNeverUpdated", true)).0, TaskState::Unreachable);
    assert_eq!(of(&running("False", "ContainersNotReady", false)).0, TaskState::Running);
    assert_eq!(of(&running("False", "ReadinessGatesNotReady", true)).0, TaskState::Running);
    assert_eq!(of(&pod("n1", json!({ "phase": "Unknown" }))).0, TaskState::Unreachable);
}

/// Goal: another container than the first isn't taken for the executor that was lost. Method: a node that has
/// forgotten its containers starts the pod anew, with the restart count still 0, in another container or at another
/// address.
#[test]
fn another_container_is_another_life() {
    let known = |id| KnownPod { container_id: Some(id), ..KnownPod::default() };
    let pod = running("True", "", true);
    assert_eq!(read(&pod, known("fake://1")).state, TaskState::Running);
    let replaced = read(&pod, known("fake://0"));
    // It counts until it is deleted.
    assert!(replaced.state == TaskState::Killing && replaced.is_replaced);
    assert_eq!(read(&deleting(ended(143, "Error")), known("fake://0")).state, TaskState::Gone);
    let waiting = container(json!({ "waiting": { "reason": "ContainerCreating" } }));
    assert_eq!(read(&waiting, known("fake://0")).state, TaskState::Starting, "no other one yet");
    // Some runtimes give the new container the name of the old one.
    let mut moved = pod;
    moved.status.pod_ip = "10.0.0.2".to_owned();
    let known = |pod_ip| KnownPod { pod_ip, ..known("fake://1") };
    for (before, state) in [
        ("", TaskState::Running),
        ("10.0.0.2", TaskState::Running),
        ("10.0.0.1", TaskState::Killing),
    ] {
        assert_eq!(read(&moved, known(before)).state, state, "{before}");
    }
}

/// Goal: what an executor waits for is said, and whether only somebody's help ends it. Method: no room, an image that
/// can't be pulled, a secret that is missing.
#[test]
fn what_is_waited_for_is_said() {
    let waiting = |pod: &Pod| {
        let PodState { state, waiting, is_blocked, .. } = read(pod, KnownPod::default());
        assert_eq!(state, TaskState::Staging);
        (waiting, is_blocked)
    };
    let no_room = "0/3 nodes are available: 3 Insufficient cpu.";
    let unscheduled = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": no_room });
    let unscheduled = pod("", json!({ "phase": "Pending", "conditions": [unscheduled] }));
    assert_eq!(waiting(&unscheduled), (no_room.to_owned(), false));
    for reason in ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"] {
        let state = json!({ "waiting": { "reason": reason, "message": "not found" } });
        assert_eq!(waiting(&container(state)), (format!("{reason}: not found"), true));
    }
    assert_eq!(waiting(&pod("n1", json!({ "phase": "Pending" }))), (String::new(), false));
}

/// Goal: a container beside the executor's doesn't decide about it. Method: the other one first, and an executor that
/// ended while the other one runs on.
#[test]
fn the_executors_container_decides() {
    let containers = json!([
        { "name": "proxy", "containerID": "fake://9", "ready": true, "state": { "running": {} } },
        { "name": "executor", "containerID": "fake://1", "state": { "terminated": { "exitCode": 2 } } },
    ]);
    let pod = pod("n1", json!({ "phase": "Running", "containerStatuses": containers }));
    assert_eq!(of(&pod), (TaskState::Failed, UpdateReason::Other));
}
