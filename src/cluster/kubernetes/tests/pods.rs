//! The table of pods against random orders of what a server, its watches and the engine do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use crate::cluster::kubernetes::names::PodNames;
use crate::cluster::kubernetes::objects::Pod;
use crate::cluster::kubernetes::pods::{PodChange, PodRef, Pods};
use crate::status::TaskState;

fn pod_name(executor: &str) -> String {
    PodNames::OfId.name(executor).unwrap()
}

fn pod(executor: &str, uid: &str, phase: &str) -> Pod {
    let container = json!({ "name": "executor", "containerID": format!("c-{uid}"), "ready": true,
        "state": { "running": {} } });
    let node = if phase == "Pending" { "" } else { "n1" };
    let statuses = if phase == "Running" { json!([container]) } else { json!([]) };
    let pod = json!({
        "metadata": { "name": pod_name(executor), "uid": uid,
            "labels": { "offermill/executor": executor, "offermill/creator": "c1" } },
        "spec": { "nodeName": node },
        "status": { "phase": phase, "containerStatuses": statuses },
    });
    serde_json::from_value(pod).unwrap()
}

fn states(changes: &[PodChange]) -> Vec<TaskState> {
    let state = |change: &PodChange| match change {
        PodChange::Updated(update) => Some(update.state),
        _ => None,
    };
    changes.iter().filter_map(state).collect()
}

/// Changes, in which the pods that aren't shown any more are found to be gone.
fn confirmed(pods: &mut Pods, changes: Vec<PodChange>) -> Vec<PodChange> {
    let confirm = |change| match change {
        PodChange::Confirm { executor, pod, last } => pods.confirmed_gone(&executor, &pod, last),
        other => vec![other],
    };
    changes.into_iter().flat_map(confirm).collect()
}

/// Goal: an answer that comes late doesn't undo what a watch has shown. Method: the watch is faster than the answer to
/// the creation.
#[test]
fn a_late_answer_changes_nothing() {
    let now = Instant::now();
    let mut pods = Pods::default();
    assert!(pods.create("e-1-0.0", "e-1-0-0", None));
    assert!(!pods.create("e-1-0.0", "e-1-0-0", None));
    assert_eq!((pods.creating(), pods.pending()), (1, 0));
    let running = pods.observe(&pod("e-1-0.0", "u1", "Running"), now);
    assert_eq!(states(&running), [TaskState::Running]);
    assert_eq!(states(&pods.created("e-1-0.0", &pod("e-1-0.0", "u1", "Pending"), now)), []);
    assert_eq!((pods.creating(), pods.pending()), (0, 0));
    assert_eq!(pods.reconcile("e-1-0.0").state, TaskState::Running);
}

/// Goal: a list doesn't take a pod for missing that was created while the list was read. Method: creations answered
/// before and after the list began, and one that isn't answered yet.
#[test]
fn a_list_knows_what_it_cant_show() {
    let now = Instant::now();
    let mut pods = Pods::default();
    for executor in ["e-1-0.0", "e-1-1.0", "e-1-2.0"] {
        pods.create(executor, &pod_name(executor), None);
    }
    pods.created("e-1-0.0", &pod("e-1-0.0", "u0", "Pending"), now);
    pods.begin_list();
    pods.created("e-1-1.0", &pod("e-1-1.0", "u1", "Pending"), now);
    let missing = pods.listed(&[], now);
    assert!(matches!(missing[..], [PodChange::Confirm { .. }]), "it may only have lost its labels");
    let gone = confirmed(&mut pods, missing);
    assert_eq!(states(&gone), [TaskState::Gone], "only the first had to be there");
    assert_eq!(pods.reconcile("e-1-0.0").state, TaskState::Gone);
    pods.begin_list();
    let missing = pods.listed(&[], now);
    assert_eq!(states(&confirmed(&mut pods, missing)), [TaskState::Gone], "now the second, too");
    assert_eq!(pods.reconcile("e-1-2.0").state, TaskState::Staging);
    assert_eq!(states(&pods.not_created("e-1-2.0", "no room")), [TaskState::Dropped]);
}

/// Goal: only the pod whose end was applied is deleted. Method: acknowledgements before the end, of another pod, and
/// the right one.
#[test]
fn an_acknowledgement_names_its_pod() {
    let now = Instant::now();
    let mut pods = Pods::default();
    pods.observe(&pod("e-1-0.0", "u1", "Running"), now);
    assert_eq!(pods.acknowledged("e-1-0.0", b"u1"), None);
    let ended = pods.observe(&pod("e-1-0.0", "u1", "Failed"), now);
    assert!(
        matches!(&ended[0], PodChange::Updated(update) if update.uuid.as_deref() == Some(b"u1"))
    );
    assert_eq!(pods.acknowledged("e-1-0.0", b"u2"), None);
    let (acknowledged, is_over) = pods.acknowledged("e-1-0.0", b"u1").unwrap();
    assert_eq!((acknowledged.uid.as_deref(), is_over), (Some("u1"), true));
}

/// Goal: a pod that others have created under an executor's name is deleted, and isn't the executor. Method: another
/// uid.
#[test]
fn another_uid_is_another_pod() {
    let now = Instant::now();
    let mut pods = Pods::default();
    pods.observe(&pod("e-1-0.0", "u1", "Running"), now);
    let changes = pods.observe(&pod("e-1-0.0", "u2", "Failed"), now);
    assert!(
        matches!(&changes[..], [PodChange::Remove { pod, .. }] if pod.uid.as_deref() == Some("u2"))
    );
    assert_eq!(pods.deleted(&pod("e-1-0.0", "u2", "Failed")), []);
    assert_eq!(pods.reconcile("e-1-0.0").state, TaskState::Running);
}

/// Goal: only what is said of the executor's own pod ends it. Method: another pod that is missing, one of another name
/// with the executor's label, and a denial after a watch has shown the pod.
#[test]
fn only_the_own_pod_ends_an_executor() {
    let now = Instant::now();
    let mut pods = Pods::default();
    pods.create("e-1-0.0", "e-1-0-0", None);
    pods.observe(&pod("e-1-0.0", "u1", "Running"), now);
    assert_eq!(pods.not_created("e-1-0.0", "denied"), [], "it was shown");
    let other = PodRef { name: "e-1-0-0".to_owned(), uid: Some("u2".to_owned()) };
    assert_eq!(pods.confirmed_gone("e-1-0.0", &other, None), []);
    let mut copy = pod("e-1-0.0", "u3", "Failed");
    copy.metadata.name = "copy".to_owned();
    assert_eq!(pods.observe(&copy, now), []);
    assert_eq!(pods.deleted(&copy), []);
    assert_eq!(pods.reconcile("e-1-0.0").state, TaskState::Running);
}

#[derive(Clone, Debug)]
enum CreationStep {
    Create,
    ApiAnswer,
    Fail,
    Show(&'static str),
    Delete,
    Kill,
    List(bool),
    Expire,
}

fn steps() -> impl Strategy<Value = (u8, CreationStep)> {
    let step = prop_oneof![
        Just(CreationStep::Create),
        Just(CreationStep::ApiAnswer),
        Just(CreationStep::Fail),
        prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed", "Unknown"])
            .prop_map(CreationStep::Show),
        Just(CreationStep::Delete),
        Just(CreationStep::Kill),
        any::<bool>().prop_map(CreationStep::List),
        Just(CreationStep::Expire),
    ];
    (0..3_u8, step)
}

proptest! {
    /// Goal: an executor ends once, with one state, whatever the order of answers, events, lists and kills; nothing
    /// panics. Method: random steps; each end is compared with those before.
    #[test]
    fn an_executor_ends_once(steps in prop::collection::vec(steps(), 0..40)) {
        let now = Instant::now();
        let mut pods = Pods::default();
        let mut ends: BTreeMap<String, TaskState> = BTreeMap::new();
        for (number, step) in steps {
            let executor = format!("e-1-{number}.0");
            let uid = format!("u{number}");
            // An executor's id is used once.
            if ends.contains_key(&executor) && !matches!(step, CreationStep::List(_)) {
                continue;
            }
            let changes = match step {
                CreationStep::Create => {
                    pods.create(&executor, &pod_name(&executor), None);
                    Vec::new()
                }
                CreationStep::ApiAnswer => pods.created(&executor, &pod(&executor, &uid, "Pending"), now),
                CreationStep::Fail => pods.not_created(&executor, "no room"),
                CreationStep::Show(phase) => pods.observe(&pod(&executor, &uid, phase), now),
                CreationStep::Delete => pods.deleted(&pod(&executor, &uid, "Running")),
                CreationStep::Kill => pods.kill(&executor, 1),
                CreationStep::List(shows) => {
                    pods.begin_list();
                    let shown: Vec<Pod> =
                        shows.then(|| pod(&executor, &uid, "Running")).into_iter().collect();
                    let shown = if ends.contains_key(&executor) { Vec::new() } else { shown };
                    pods.listed(&shown, now)
                }
                CreationStep::Expire => pods.expire_blocked(Duration::ZERO, now),
            };
            for change in confirmed(&mut pods, changes) {
                let PodChange::Updated(update) = change else { continue };
                use TaskState::{Dropped, Error, Failed, Finished, Gone, Killed};
                let is_end = matches!(update.state, Dropped | Error | Failed | Finished | Gone | Killed);
                let former = ends.get(&update.executor);
                prop_assert!(former.is_none_or(|former| *former == update.state), "{former:?} {update:?}");
                if is_end {
                    ends.insert(update.executor, update.state);
                }
            }
        }
    }
}
