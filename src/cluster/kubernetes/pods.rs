//! The pods of the run, as far as this manager knows them, and the reports that their changes are.
//!
//! An entry begins with the creation of a pod, or when a list or a watch shows one, and ends when the pod is gone. Each
//! change of a state is reported once. The end of an executor is reported with a token, the pod's uid: the pod is
//! deleted when the engine acknowledges it, not before. So an end that no run has applied is found by the next.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::adoption_annotations::{RESOURCES_ANNOTATION, read_queue, read_resources};
use super::leaving::LeavingPods;
use super::names::{CREATOR_LABEL, EXECUTOR_LABEL, PodNames};
use super::node_choice::NodeChoice;
use super::objects::Pod;
pub(super) use super::pod_entry::{Entry, PodChange, PodRef};
use super::pod_state::{self, PodState};
use crate::engine::cluster_manager::{RecoveredExecutor, Update};
use crate::status::{TaskState, UpdateReason};

/// The pods of a run.
#[derive(Debug, Default)]
pub(super) struct Pods {
    names: PodNames,
    /// By the executor's id.
    entries: HashMap<String, Entry>,
    /// The number of lists that were begun.
    lists: u64,
    /// The executors whose pods' creations haven't been answered.
    creating: HashSet<String>,
    /// The executors whose pods exist and don't run yet.
    pending: HashSet<String>,
    /// Since when an executor's image or configuration has kept it from starting.
    blocked: HashMap<String, Instant>,
    /// Pods of former runs that are left out.
    leaving: LeavingPods,
}

/// The executor of a pod, whose name follows from the executor's id: others may have given its labels to their pods.
fn executor_of<'a>(names: &PodNames, pod: &'a Pod) -> Option<&'a String> {
    let executor = pod.metadata.labels.get(EXECUTOR_LABEL)?;
    (names.name(executor).as_ref() == Some(&pod.metadata.name)).then_some(executor)
}

/// Whether another program than this one has created a pod.
fn is_foreign(pod: &Pod, creator: &str) -> bool {
    pod.metadata.labels.get(CREATOR_LABEL).is_none_or(|label| label != creator)
}

impl Pods {
    /// No pods, which will be named so.
    pub(super) fn new(names: PodNames) -> Pods {
        Pods { names, ..Pods::default() }
    }

    /// How pods are named.
    pub(super) fn names(&self) -> &PodNames {
        &self.names
    }

    /// The number of pods whose creation hasn't been answered.
    pub(super) fn creating(&self) -> usize {
        self.creating.len()
    }

    /// The number of pods that were created and don't run yet.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Leaves out those pods of former runs that are being deleted, as the first list shows them.
    pub(super) fn leave_out(&mut self, pods: &[Pod], creator: &str, now: Instant) {
        let leaving = pods.iter().filter(|pod| is_foreign(pod, creator) && pod.is_being_deleted());
        leaving.for_each(|pod| self.leaving.insert(pod, now));
    }

    /// The pods of former runs that are left out.
    pub(super) fn leaving(&self) -> &LeavingPods {
        &self.leaving
    }

    /// The creation of a pod begins, which may get these nodes. False if there is a pod of this executor.
    pub(super) fn create(
        &mut self,
        executor: &str,
        name: &str,
        choice: Option<Arc<NodeChoice>>,
    ) -> bool {
        if self.entries.contains_key(executor) {
            return false;
        }
        let entry = Entry { choice, ..Entry::new(name, u64::MAX) };
        self.entries.insert(executor.to_owned(), entry);
        self.creating.insert(executor.to_owned());
        true
    }

    /// The pod was created, or found to be there. Returns the pod to delete if its end was requested meanwhile.
    pub(super) fn created(&mut self, executor: &str, pod: &Pod, now: Instant) -> Vec<PodChange> {
        self.creating.remove(executor);
        let Some(entry) = self.entries.get_mut(executor) else {
            // It was created, seen and deleted before the answer came.
            return Vec::new();
        };
        entry.listed_from = self.lists + 1;
        let is_known = entry.uid.is_some();
        let is_unwanted = entry.is_end_requested;
        entry.uid.get_or_insert_with(|| pod.metadata.uid.clone());
        let remove = is_unwanted.then(|| entry.remove(executor));
        // A watch may have shown a later state already.
        let mut changes = if is_known { Vec::new() } else { self.observe(pod, now) };
        changes.extend(remove);
        changes
    }

    /// Whether the pod of an executor is known to exist.
    pub(super) fn is_shown(&self, executor: &str) -> bool {
        self.entries.get(executor).is_none_or(|entry| entry.uid.is_some())
    }

    /// The pod wasn't created and won't be, as far as its creation knows.
    pub(super) fn not_created(&mut self, executor: &str, why: &str) -> Vec<PodChange> {
        self.creating.remove(executor);
        if let Some(entry) = self.entries.get(executor).filter(|entry| entry.uid.is_some()) {
            // A watch has shown it: an attempt without an answer took effect.
            return entry.is_end_requested.then(|| entry.remove(executor)).into_iter().collect();
        }
        let Some(entry) = self.entries.remove(executor) else { return Vec::new() };
        self.pending.remove(executor);
        self.blocked.remove(executor);
        let update = if entry.is_end_requested {
            Update::new(executor, TaskState::Killed)
        } else {
            Update::new(executor, TaskState::Dropped)
                .with_reason(UpdateReason::InvalidOffers)
                .with_message(why)
        };
        vec![PodChange::Updated(update)]
    }

    /// A pod has this state, according to a watch or an answer.
    pub(super) fn observe(&mut self, pod: &Pod, now: Instant) -> Vec<PodChange> {
        self.show(pod, false, now)
    }

    fn show(&mut self, pod: &Pod, is_listed: bool, now: Instant) -> Vec<PodChange> {
        let Some(executor) = executor_of(&self.names, pod) else { return Vec::new() };
        if self.leaving.show(pod, now) {
            return Vec::new();
        }
        let lists = self.lists;
        let entry = self.entries.entry(executor.clone()).or_insert_with(|| Entry {
            affinity: Some(pod.spec.affinity.clone()),
            ..Entry::new(&pod.metadata.name, lists + 1)
        });
        let uid = &pod.metadata.uid;
        if entry.uid.as_ref().is_some_and(|known| known != uid) {
            // Another pod under the name of this one, which only others can have created.
            let name = pod.metadata.name.clone();
            let pod = PodRef { name, uid: Some(uid.clone()) };
            return vec![PodChange::Remove { executor: executor.clone(), pod, grace: None }];
        }
        entry.uid.get_or_insert_with(|| uid.clone());
        entry.listed_from = entry.listed_from.min(lists + 1);
        if entry.node.is_empty() && !pod.spec.node_name.is_empty() {
            entry.node.clone_from(&pod.spec.node_name);
            (entry.choice, entry.affinity) = (None, None);
        }
        entry.is_nominated = !pod.status.nominated_node_name.is_empty();
        entry.version.clone_from(&pod.metadata.resource_version);
        entry.is_over = pod_state::has_ended(pod);
        let known = entry.known();
        let state = pod_state::read(pod, known);
        if entry.container_id.is_none() {
            entry.container_id = pod_state::container_id(pod).map(str::to_owned);
        }
        if entry.pod_ip.is_empty() {
            entry.pod_ip.clone_from(&pod.status.pod_ip);
        }
        let must_remove = state.is_replaced && !std::mem::replace(&mut entry.is_replaced, true);
        let mut changes = entry.change(executor, state, is_listed);
        changes.extend(must_remove.then(|| entry.remove(executor)));
        self.classify(executor, now);
        changes
    }

    /// Counts an executor as pending or blocked, if it is.
    fn classify(&mut self, executor: &str, now: Instant) {
        let entry = self.entries.get(executor);
        let has = |set: &HashSet<String>| set.contains(executor);
        match (entry.is_some_and(Entry::is_pending), has(&self.pending)) {
            (true, false) => {
                self.pending.insert(executor.to_owned());
            }
            (false, true) => {
                self.pending.remove(executor);
            }
            _ => {}
        }
        let is_blocked =
            |entry: &Entry| entry.last.as_ref().is_some_and(|it| it.is_blocked && !it.is_end());
        match (entry.is_some_and(is_blocked), self.blocked.contains_key(executor)) {
            (true, false) => {
                self.blocked.insert(executor.to_owned(), now);
            }
            (false, true) => {
                self.blocked.remove(executor);
            }
            _ => {}
        }
    }

    /// A pod was deleted, or its labels have changed; this is its last state.
    pub(super) fn deleted(&mut self, pod: &Pod) -> Vec<PodChange> {
        self.leaving.remove(pod);
        let Some(executor) = executor_of(&self.names, pod) else { return Vec::new() };
        let Some(entry) = self.entries.get(executor) else { return Vec::new() };
        if entry.uid.as_ref().is_some_and(|known| *known != pod.metadata.uid) {
            return Vec::new();
        }
        let known = entry.known();
        if entry.has_ended() {
            return self.gone(executor, None);
        }
        let (name, uid) = (entry.name.clone(), Some(pod.metadata.uid.clone()));
        let last = Some(pod_state::read_deleted(pod, known));
        vec![PodChange::Confirm { executor: executor.clone(), pod: PodRef { name, uid }, last }]
    }

    /// The pod with this uid isn't there any more. If that is the executor's, its end is reported.
    pub(super) fn confirmed_gone(
        &mut self,
        executor: &str,
        pod: &PodRef,
        last: Option<PodState>,
    ) -> Vec<PodChange> {
        let is_same = |entry: &Entry| entry.uid.is_none() || entry.uid == pod.uid;
        if self.entries.get(executor).is_some_and(is_same) {
            self.gone(executor, last)
        } else {
            Vec::new()
        }
    }

    /// The pod of an executor isn't there any more.
    fn gone(&mut self, executor: &str, state: Option<PodState>) -> Vec<PodChange> {
        let Some(entry) = self.entries.remove(executor) else { return Vec::new() };
        self.pending.remove(executor);
        self.blocked.remove(executor);
        if entry.has_ended() {
            return Vec::new();
        }
        let state = state.unwrap_or_else(|| PodState::vanished(entry.known()));
        let update = entry.update(executor, &state, false);
        vec![PodChange::Updated(update), PodChange::Ended]
    }

    /// A list begins: the pods that are known now must be in it.
    pub(super) fn begin_list(&mut self) {
        self.lists += 1;
    }

    /// The list that was begun last shows these pods. States are reported again where they are ends, because an
    /// acknowledgement may have been lost.
    pub(super) fn listed(&mut self, pods: &[Pod], now: Instant) -> Vec<PodChange> {
        self.leaving.listed(pods);
        let names = &self.names;
        let shown: HashSet<&String> =
            pods.iter().filter_map(|pod| executor_of(names, pod)).collect();
        let is_missing = |(executor, entry): &(&String, &Entry)| {
            entry.listed_from <= self.lists && !shown.contains(executor)
        };
        let missing: Vec<String> =
            self.entries.iter().filter(is_missing).map(|(executor, _)| executor.clone()).collect();
        let mut changes = Vec::new();
        for executor in missing {
            match self.entries.get(&executor).filter(|entry| !entry.has_ended()) {
                Some(entry) => {
                    let pod = entry.pod_ref();
                    changes.push(PodChange::Confirm { executor, pod, last: None });
                }
                None => changes.extend(self.gone(&executor, None)),
            }
        }
        for pod in pods {
            changes.extend(self.show(pod, true, now));
        }
        changes
    }

    /// The executors of former runs in a list, for the kernel to adopt. Those that are being deleted aren't: their
    /// ends were asked for.
    pub(super) fn recovered(&self, pods: &[Pod], creator: &str) -> Vec<RecoveredExecutor> {
        let foreign = pods.iter().filter(|pod| is_foreign(pod, creator) && !pod.is_being_deleted());
        let recovered = foreign.filter_map(|pod| {
            let executor = executor_of(&self.names, pod)?;
            let annotations = &pod.metadata.annotations;
            let resources = read_resources(annotations.get(RESOURCES_ANNOTATION)?)?;
            let recovered = match pod.spec.node_name.as_str() {
                "" => RecoveredExecutor::late(executor, resources),
                node => RecoveredExecutor::new(executor, node, node, resources),
            };
            Some(match read_queue(annotations) {
                Some(queue) => recovered.in_queue_called(queue),
                None => recovered,
            })
        });
        recovered.collect()
    }

    /// The present state of an executor; that it is gone, if there is no pod of it.
    pub(super) fn reconcile(&self, executor: &str) -> Update {
        let Some(entry) = self.entries.get(executor) else {
            return Update::new(executor, TaskState::Gone).with_message("there is no such pod");
        };
        match &entry.last {
            Some(state) => entry.update(executor, state, true),
            None => Update::new(executor, TaskState::Staging),
        }
    }

    /// The pods that wait for a node, each with its executor.
    pub(super) fn unplaced(&self) -> impl Iterator<Item = (&String, &Entry)> {
        let pending = self.pending.iter().filter_map(|it| self.entries.get_key_value(it));
        pending.filter(|(_, entry)| entry.is_unplaced())
    }

    /// The nodes that the pod of an executor may get, if that is known.
    pub(super) fn choice(&self, executor: &str) -> Option<&Arc<NodeChoice>> {
        self.entries.get(executor)?.choice.as_ref()
    }

    /// The pod of an executor may get these nodes, it was found.
    pub(super) fn set_choice(&mut self, executor: &str, choice: &Arc<NodeChoice>) {
        if let Some(entry) = self.entries.get_mut(executor) {
            (entry.choice, entry.affinity) = (Some(Arc::clone(choice)), None);
        }
    }

    /// The pod of an executor is deleted if it has no node (or isn't any more), because it would be created with other
    /// nodes now.
    pub(super) fn set_made_anew(&mut self, executor: &str, is_made_anew: bool) {
        if let Some(entry) = self.entries.get_mut(executor) {
            entry.is_made_anew = is_made_anew;
        }
    }

    /// The ids of all executors.
    pub(super) fn executors(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// An executor is to be ended. Returns the pod to delete, if it is known to exist, and reports the end of one that
    /// isn't known at all.
    pub(super) fn kill(&mut self, executor: &str, grace: u64) -> Vec<PodChange> {
        let Some(entry) = self.entries.get_mut(executor) else {
            return vec![PodChange::Updated(self.reconcile(executor))];
        };
        if entry.has_ended() {
            return vec![PodChange::Updated(self.reconcile(executor))];
        }
        entry.is_end_requested = true;
        entry.grace = Some(grace);
        // If it is being created, it is deleted when that was answered.
        entry.uid.is_some().then(|| entry.remove(executor)).into_iter().collect()
    }

    /// An end was applied: the pod to remove, if it is the one of the token; and whether all its containers have ended.
    pub(super) fn acknowledged(&self, executor: &str, token: &[u8]) -> Option<(PodRef, bool)> {
        let entry = self.entries.get(executor)?;
        let is_same = entry.uid.as_ref().is_some_and(|uid| uid.as_bytes() == token);
        (is_same && entry.has_ended()).then(|| (entry.pod_ref(), entry.is_over))
    }

    /// The deletion of a pod has failed. Whether it must be repeated: the engine repeats its kills, but acknowledges an
    /// end once, and doesn't know of another container.
    pub(super) fn must_remove_again(&self, executor: &str, pod: &PodRef) -> bool {
        let must_end = |entry: &Entry| entry.has_ended() || entry.is_replaced;
        self.entries.get(executor).is_some_and(|entry| must_end(entry) && entry.uid == pod.uid)
    }

    /// Ends the executors whose image or configuration has kept them from starting for too long.
    pub(super) fn expire_blocked(&mut self, timeout: Duration, now: Instant) -> Vec<PodChange> {
        let is_due = |since: &Instant| now.saturating_duration_since(*since) >= timeout;
        let due: Vec<String> = self
            .blocked
            .iter()
            .filter(|(_, since)| is_due(since))
            .map(|(executor, _)| executor.clone())
            .collect();
        let mut changes = Vec::new();
        for executor in due {
            let Some(entry) = self.entries.get_mut(&executor) else { continue };
            let waiting = entry.last.as_ref().map(|last| last.waiting.clone()).unwrap_or_default();
            entry.is_end_requested = true;
            // Nothing of it runs that would need time.
            entry.grace = Some(1);
            let state = PodState::rejected(waiting);
            changes.push(PodChange::Updated(entry.update(&executor, &state, false)));
            changes.push(entry.remove(&executor));
            entry.last = Some(state);
            self.classify(&executor, now);
        }
        changes
    }

    /// When [`Pods::expire_blocked`] has something to do next.
    pub(super) fn next_expiry(&self, timeout: Duration) -> Option<Instant> {
        self.blocked.values().min().map(|since| *since + timeout)
    }
}
