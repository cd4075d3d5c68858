//! What changes of nodes lead to, if the constraint is checked on their labels.

use std::time::{Duration, Instant};

use super::KubernetesActor;
use crate::cluster::kubernetes::pod_placement::{Nodes, PodPlacement};
use crate::cluster::kubernetes::pods::PodRef;
use crate::cluster::kubernetes::reflector::Observation;
use crate::cluster::kubernetes::removal::Removal;
use crate::engine::cluster_manager::Event;

/// The least time between two replacements of pods that wait for a node.
const REPLACEMENT_PAUSE: Duration = Duration::from_secs(10);

/// The nodes, and what is to be done about them.
pub(super) struct Places {
    pub(super) nodes: Nodes,
    /// Whether the nodes must be read, and were.
    must_read: bool,
    were_read: bool,
    /// Whether it was said that they can't be read.
    is_lack_told: bool,
    /// Whether it was said that no node meets the constraint.
    is_nowhere_told: bool,
    /// When pods that wait for a node are replaced, and when they were last.
    pub(super) replace_at: Option<Instant>,
    replaced_last: Option<Instant>,
}

impl Places {
    /// No nodes so far.
    pub(super) fn new(placement: PodPlacement) -> Places {
        Places {
            must_read: placement.reads_nodes(),
            nodes: Nodes::new(placement),
            were_read: false,
            is_lack_told: false,
            is_nowhere_told: false,
            replace_at: None,
            replaced_last: None,
        }
    }

    /// There is another node for pods.
    fn plan_replacement(&mut self, now: Instant) {
        let earliest = self.replaced_last.map_or(now, |last| now.max(last + REPLACEMENT_PAUSE));
        self.replace_at.get_or_insert(earliest);
    }
}

impl KubernetesActor {
    /// Takes over what was seen of nodes.
    pub(super) fn nodes_seen(&mut self, seen: Observation, now: Instant) {
        let is_more = match seen {
            Observation::Nodes(nodes) => {
                self.places.were_read = true;
                self.places.nodes.listed(nodes)
            }
            Observation::Node(node) => self.places.nodes.seen(*node),
            Observation::NodeDeleted(name) => {
                self.places.nodes.deleted(&name);
                false
            }
            Observation::NodesUnread(why) => {
                if !std::mem::replace(&mut self.places.is_lack_told, true) {
                    let why = format!("labels of nodes: {why}");
                    self.events.send(Event::CallFailed { why });
                }
                return;
            }
            _ => return,
        };
        self.places.is_lack_told = false;
        if is_more {
            self.places.plan_replacement(now);
        }
        self.report_no_node();
    }

    /// Whether there are nodes for pods, as far as is known. If the constraint is checked on nodes' labels, no pod is
    /// created before they were read.
    pub(super) fn has_place(&self) -> bool {
        let places = &self.places;
        !places.must_read || places.were_read && !places.nodes.selection().is_empty(&self.avoided)
    }

    /// Says once that executors wait because no node meets the constraint.
    pub(super) fn report_no_node(&mut self) {
        let has_place = self.has_place();
        if !std::mem::replace(&mut self.places.is_nowhere_told, !has_place) && !has_place {
            let why =
                "no node meets the constraint, or all that do are excluded: no pod is created";
            self.events.send(Event::CallFailed { why: why.to_owned() });
        }
    }

    /// Looks soon for pods that wait for a node although another meets the constraint now.
    pub(super) fn check_unplaced_soon(&mut self, now: Instant) {
        if self.places.must_read {
            self.places.plan_replacement(now);
        }
    }

    /// A pod wasn't deleted that was to be if it had no node. It has one now, or only what the scheduler says of it has
    /// changed. What was asked for meanwhile is done: its end waits for its acknowledgement as ever.
    pub(super) fn after_refused_removal(
        &mut self,
        executor: String,
        pod: PodRef,
        waiting: Option<Removal>,
        now: Instant,
    ) {
        match waiting {
            Some(how) => self.remove(executor, pod, how),
            None => self.check_unplaced_soon(now),
        }
    }

    /// Deletes pods that wait for a node although another meets the constraint now, which they don't name: they are
    /// lost as if they had been deleted by others, and replaced. One that gets a node meanwhile stays.
    pub(super) fn replace_unplaced(&mut self, now: Instant) {
        if self.places.replace_at.is_none_or(|at| now < at) || !self.may_create(now) {
            return;
        }
        self.places.replace_at = None;
        let Some(nodes) = self.places.nodes.names() else { return };
        let unplaced = self.pods.unplaced(&nodes);
        if unplaced.is_empty() {
            return;
        }
        self.places.replaced_last = Some(now);
        for (executor, pod, version) in unplaced {
            self.remove(executor, pod, Removal::IfUnplaced { version });
        }
    }
}
