//! One pod of the run: what is known of it, and what its changes lead to.

use std::sync::Arc;

use serde_json::Value;

use super::node_choice::NodeChoice;
use super::pod_state::{KnownPod, PodState};
use crate::engine::cluster_manager::{AgentFacts, Update};
use crate::status::{ProcessReport, TaskState};

/// What a change of a pod leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PodChange {
    /// The executor's state has changed.
    Updated(Update),
    /// What the executor waits for has changed; empty if it waits no more.
    Waiting { executor: String, why: String },
    /// The pod must be deleted, within this many seconds (or its own grace period).
    Remove { executor: String, pod: PodRef, grace: Option<u64> },
    /// The pod isn't shown any more. If it is gone, this was its last state, if that is known: see
    /// `Pods::confirmed_gone`.
    Confirm { executor: String, pod: PodRef, last: Option<PodState> },
    /// One of the own pods has ended.
    Ended,
}

/// A pod to delete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PodRef {
    pub(super) name: String,
    /// Only the pod with this uid is deleted, if it is known.
    pub(super) uid: Option<String>,
}

/// A pod of the run.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// `None` until the server has answered its creation, or a watch has shown it.
    pub(super) uid: Option<String>,
    /// The nodes that it may get, if this manager has created it or compared them.
    pub(super) choice: Option<Arc<NodeChoice>>,
    /// As long as that isn't known, the affinity with which a former run has created it.
    pub(super) affinity: Option<Value>,
    /// Whether it is deleted if it has no node, because it would now be created with others.
    pub(super) is_made_anew: bool,
    /// Empty until the scheduler has chosen one.
    pub(super) node: String,
    /// Whether the scheduler has preempted others for it, which aren't gone yet.
    pub(super) is_nominated: bool,
    /// The version in which the pod was seen last.
    pub(super) version: String,
    /// Whether a report has named the node.
    pub(super) is_bound_reported: bool,
    pub(super) container_id: Option<String>,
    /// Empty until the pod has an address.
    pub(super) pod_ip: String,
    /// Whether this manager has asked for its deletion, or will when its creation was answered.
    pub(super) is_end_requested: bool,
    /// Whether the pod is deleted because it runs another container than the executor's.
    pub(super) is_replaced: bool,
    /// Whether all its containers have ended.
    pub(super) is_over: bool,
    /// The grace period of that deletion, in seconds.
    pub(super) grace: Option<u64>,
    pub(super) last: Option<PodState>,
    /// The list from which on it must be shown: the one that began after it was known to exist.
    pub(super) listed_from: u64,
}

impl Entry {
    pub(super) fn new(name: &str, listed_from: u64) -> Entry {
        Entry {
            name: name.to_owned(),
            uid: None,
            choice: None,
            affinity: None,
            is_made_anew: false,
            node: String::new(),
            is_nominated: false,
            version: String::new(),
            is_bound_reported: false,
            container_id: None,
            pod_ip: String::new(),
            is_end_requested: false,
            is_replaced: false,
            is_over: false,
            grace: None,
            last: None,
            listed_from,
        }
    }

    pub(super) fn known(&self) -> KnownPod<'_> {
        KnownPod {
            is_end_requested: self.is_end_requested,
            is_made_anew: self.is_made_anew,
            container_id: self.container_id.as_deref(),
            pod_ip: &self.pod_ip,
        }
    }

    pub(super) fn pod_ref(&self) -> PodRef {
        PodRef { name: self.name.clone(), uid: self.uid.clone() }
    }

    pub(super) fn remove(&self, executor: &str) -> PodChange {
        PodChange::Remove { executor: executor.to_owned(), pod: self.pod_ref(), grace: self.grace }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.last.as_ref().is_some_and(PodState::is_end)
    }

    pub(super) fn is_pending(&self) -> bool {
        let state = self.last.as_ref().map(|last| last.state);
        self.uid.is_some() && matches!(state, None | Some(TaskState::Staging | TaskState::Starting))
    }

    /// Whether it waits for a node, and nobody has asked for its end.
    pub(super) fn is_unplaced(&self) -> bool {
        self.is_pending() && self.node.is_empty() && !self.is_end_requested
    }

    /// The report of its state. Ends have a token if the pod is still there.
    pub(super) fn update(&self, executor: &str, state: &PodState, is_there: bool) -> Update {
        let mut update = Update::new(executor, state.state)
            .with_reason(state.reason)
            .with_message(state.message.clone());
        if !self.node.is_empty() {
            let facts = AgentFacts::new(self.node.clone());
            update = update.with_agent(self.node.clone()).with_facts(facts);
        }
        if let Some(exit) = state.exit {
            update = update.with_process(ProcessReport::default().with_exit(exit));
        }
        match &self.uid {
            Some(uid) if is_there && state.is_end() => update.with_uuid(uid.clone().into_bytes()),
            _ => update,
        }
    }

    /// Takes over a new state, and reports what has changed. An end is final: of what the pod shows later, only that it
    /// is still there is of interest, and only to a list (`is_listed`), which reports the end again.
    pub(super) fn change(
        &mut self,
        executor: &str,
        state: PodState,
        is_listed: bool,
    ) -> Vec<PodChange> {
        if let Some(last) = self.last.as_ref().filter(|last| last.is_end()) {
            let repeated = is_listed.then(|| PodChange::Updated(self.update(executor, last, true)));
            return repeated.into_iter().collect();
        }
        let mut changes = Vec::new();
        let waiting = self.last.as_ref().map(|it| it.waiting.as_str()).unwrap_or_default();
        if waiting != state.waiting {
            let why = state.waiting.clone();
            changes.push(PodChange::Waiting { executor: executor.to_owned(), why });
        }
        let is_bound = !self.node.is_empty();
        let is_same = self
            .last
            .as_ref()
            .is_some_and(|last| (last.state, last.reason) == (state.state, state.reason));
        if !is_same || is_bound != self.is_bound_reported {
            changes.push(PodChange::Updated(self.update(executor, &state, true)));
        }
        self.is_bound_reported = is_bound;
        if state.is_end() {
            changes.push(PodChange::Ended);
        }
        self.last = Some(state);
        changes
    }
}
