//! The table of a Kubernetes run's pods. Whatever a server shows of pods, and in whatever order its answers, its lists,
//! its watches and the engine's calls come: an executor ends once, with one state; only an end whose pod is there has a
//! token, the pod's uid; what was reported last is what a reconciliation answers; pods that don't run yet are counted;
//! of a former run's pods that are being deleted nothing is reported.
//!
//! Input: a line a step, `WORD EXECUTOR`, the executor a digit, and for what shows a pod its `spec` and `status` as
//! JSON: `{"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}`.
//! Another uid than the executor's is a digit before the JSON.

#![cfg_attr(fuzzing, no_main)]
#![allow(dead_code, reason = "of the library's files only a part is used here")]

#[path = "../../src/cluster/kubernetes/leaving.rs"]
mod leaving;
#[path = "../../src/cluster/kubernetes/names.rs"]
mod names;
#[path = "../../src/cluster/kubernetes/objects.rs"]
mod objects;
#[path = "../../src/cluster/kubernetes/pod_entry.rs"]
mod pod_entry;
#[path = "../../src/cluster/kubernetes/pod_state.rs"]
mod pod_state;
#[path = "../../src/cluster/kubernetes/pods.rs"]
mod pods;
#[path = "../../src/cluster/kubernetes/adoption_annotations.rs"]
mod adoption_annotations;

/// Which nodes a pod may get is of no interest here.
mod node_choice {
    #[derive(Debug)]
    pub(crate) struct NodeChoice;
}
/// What the files above know by these names.
mod status {
    pub(crate) use offermill::{ProcessExit, ProcessReport, TaskState, UpdateReason};
}
use offermill::{engine, limits, resources};

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use engine::cluster_manager::Update;
use objects::Pod;
use pods::{PodChange, PodRef, Pods};
use status::TaskState;

/// The table, and what it has reported.
struct Checked {
    pods: Pods,
    last: BTreeMap<String, Update>,
    /// The pods that were created and not answered.
    unanswered: BTreeSet<String>,
    /// The uids of pods that are left out.
    left_out: BTreeSet<String>,
    now: Instant,
}

fn check(data: &[u8]) {
    let Ok(script) = std::str::from_utf8(data) else { return };
    let (pods, last) = (Pods::default(), BTreeMap::new());
    let (unanswered, left_out) = (BTreeSet::new(), BTreeSet::new());
    let mut checked = Checked { pods, last, unanswered, left_out, now: Instant::now() };
    for line in script.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(word), Some(number)) = (words.next(), words.next()) else { continue };
        if !matches!(number.as_bytes(), [b'0'..=b'9']) {
            continue;
        }
        checked.step(word, number, words.next().unwrap_or("{}"));
    }
}

/// The pod of an executor with what a script says of it.
fn pod(number: &str, text: &str) -> Option<Pod> {
    let (uid, text) = match text.split_once(' ') {
        Some((uid @ ("0" | "1" | "2"), text)) => (format!("{number}-{uid}"), text),
        _ => (number.to_owned(), text),
    };
    let mut pod: Pod = serde_json::from_str(text).ok()?;
    pod.metadata.name = format!("e-1-{number}-0");
    pod.metadata.uid = uid;
    pod.metadata.labels.insert(names::EXECUTOR_LABEL.to_owned(), format!("e-1-{number}.0"));
    Some(pod)
}

impl Checked {
    fn step(&mut self, word: &str, number: &str, text: &str) {
        let executor = format!("e-1-{number}.0");
        let now = self.now;
        // Ids are used once: a pod of an executor that has ended is that of the end.
        let is_over = self.last.get(&executor).is_some_and(|last| is_end(last.state));
        let changes = match word {
            "create" if !is_over => {
                if self.pods.create(&executor, &format!("e-1-{number}-0"), None) {
                    self.unanswered.insert(executor);
                }
                Vec::new()
            }
            "answer" if self.unanswered.remove(&executor) => match pod(number, text) {
                Some(pod) => self.pods.created(&executor, &pod, now),
                None => self.pods.not_created(&executor, text),
            },
            "show" => {
                let Some(pod) = pod(number, text).filter(|_| self.may_show(&executor)) else { return };
                let changes = self.pods.observe(&pod, now);
                assert!(changes.is_empty() || !self.left_out.contains(&pod.metadata.uid));
                changes
            }
            "leave" if !self.last.contains_key(&executor) && !self.is_known(&executor) => {
                let Some(pod) = pod(number, text) else { return };
                self.pods.leave_out(std::slice::from_ref(&pod), "c", now);
                if pod.is_being_deleted() {
                    self.left_out.insert(pod.metadata.uid);
                }
                assert!(self.pods.leaving().count(now) <= self.left_out.len());
                Vec::new()
            }
            "delete" => {
                let Some(pod) = pod(number, text) else { return };
                self.left_out.remove(&pod.metadata.uid);
                self.pods.deleted(&pod)
            }
            "list" => {
                self.pods.begin_list();
                let shown = pod(number, text).filter(|_| self.may_show(&executor));
                let uid = shown.as_ref().map(|pod| pod.metadata.uid.clone());
                self.left_out.retain(|left_out| uid.as_ref() == Some(left_out));
                self.pods.listed(&Vec::from_iter(shown), now)
            }
            "kill" => {
                let changes = self.pods.kill(&executor, 1);
                // Answered as a question is, of which an unknown executor is gone.
                let is_known = self.is_known(&executor);
                if is_known { changes } else { Vec::new() }
            }
            "acknowledge" => {
                let removed = self.pods.acknowledged(&executor, text.as_bytes());
                assert!(removed.is_none() || is_over, "only ends are acknowledged");
                let is_same = |(pod, _): &(PodRef, bool)| pod.uid.as_deref() == Some(text);
                assert!(removed.as_ref().is_none_or(is_same));
                Vec::new()
            }
            "late" => {
                self.now += Duration::from_secs(60);
                self.pods.expire_blocked(Duration::from_secs(30), self.now)
            }
            _ => return,
        };
        self.apply(changes);
        self.compare();
    }

    /// Whether the pod of an executor can be shown: it isn't gone.
    fn may_show(&self, executor: &String) -> bool {
        self.is_known(executor) || !self.last.contains_key(executor)
    }

    fn is_known(&self, executor: &String) -> bool {
        self.pods.executors().contains(executor)
    }

    fn apply(&mut self, changes: Vec<PodChange>) {
        for change in changes {
            match change {
                PodChange::Updated(update) => self.report(update),
                // The pod is looked at, and gone.
                PodChange::Confirm { executor, pod, last } => {
                    let changes = self.pods.confirmed_gone(&executor, &pod, last);
                    self.apply(changes);
                }
                PodChange::Remove { grace, .. } => assert_ne!(grace, Some(0)),
                PodChange::Waiting { .. } | PodChange::Ended => {}
            }
        }
    }

    fn report(&mut self, update: Update) {
        if let Some(uuid) = &update.uuid {
            assert!(is_end(update.state), "only ends have tokens: {update:?}");
            assert!(!uuid.is_empty() && self.pods.executors().contains(&update.executor));
        }
        if let Some(former) = self.last.get(&update.executor) {
            if is_end(former.state) {
                assert_eq!(former.state, update.state, "an executor ends once");
            }
            if former.agent_id.is_some() {
                assert_eq!(former.agent_id, update.agent_id, "an executor stays on its node");
            }
        }
        self.last.insert(update.executor.clone(), update);
    }

    fn compare(&self) {
        let known: BTreeSet<String> = self.pods.executors().into_iter().collect();
        assert_eq!(self.pods.creating(), self.unanswered.len());
        let waits = |executor: &&String| {
            let last = self.last.get(*executor);
            last.is_some_and(|it| matches!(it.state, TaskState::Staging | TaskState::Starting))
        };
        assert_eq!(self.pods.pending(), known.iter().filter(waits).count());
        for (executor, last) in &self.last {
            let answer = self.pods.reconcile(executor).state;
            let expected = if known.contains(executor) { last.state } else { TaskState::Gone };
            assert_eq!(answer, expected, "{executor}");
        }
    }
}

fn is_end(state: TaskState) -> bool {
    use TaskState::{Dropped, Error, Failed, Finished, Gone, Killed};
    matches!(state, Dropped | Error | Failed | Finished | Gone | Killed)
}

offermill_fuzz::harness!(check);
