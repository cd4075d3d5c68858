//! What changes of the nodes that pods may get lead to: of nodes and labels, of exclusions, and of the constraint.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::KubernetesActor;
use crate::cluster::kubernetes::creation::abandon;
use crate::cluster::kubernetes::manifest::{self, PodContext};
use crate::cluster::kubernetes::node_choice::NodeChoice;
use crate::cluster::kubernetes::pod_placement::{Nodes, PodPlacement};
use crate::cluster::kubernetes::pods::{Entry, PodRef};
use crate::cluster::kubernetes::reflector::Observation;
use crate::cluster::kubernetes::removal::Removal;
use crate::engine::cluster_manager::Event;

/// The least time between two replacements of pods that wait for a node.
const REPLACEMENT_PAUSE: Duration = Duration::from_secs(10);

/// The least time between two looks at pods that wait for a node.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Why a creation was abandoned, if not because of a kill.
pub(super) const MAY_GET_OTHERS: &str =
    "the nodes that its pod may get have changed before it was created";

/// The nodes, and what is to be done about them.
pub(super) struct Places {
    pub(super) nodes: Nodes,
    were_read: bool,
    /// Whether it was said that they can't be read.
    is_lack_told: bool,
    /// Whether it was said that no node meets the constraint.
    is_nowhere_told: bool,
    /// When pods that wait for a node are looked at next.
    look_at: Option<Instant>,
    /// The earliest time for that.
    look_from: Option<Instant>,
}

/// What was found of the pods that wait for a node.
struct OutdatedPods {
    /// Those that would get other nodes now, each with its executor and its version.
    outdated: Vec<(String, PodRef, String)>,
    /// The executors of those that a former run has created as this one would.
    current: Vec<String>,
    /// Whether one of the former sort stays, because others were preempted for it.
    is_any_nominated: bool,
}

impl Places {
    /// No nodes so far.
    pub(super) fn new(placement: PodPlacement) -> Places {
        Places {
            nodes: Nodes::new(placement),
            were_read: false,
            is_lack_told: false,
            is_nowhere_told: false,
            look_at: None,
            look_from: None,
        }
    }

    /// Whether there are nodes for pods, as far as is known. If the constraint is checked on nodes' labels, no pod is
    /// created before they were read.
    pub(super) fn has_place(&self) -> bool {
        !self.is_unknown() && !self.nodes.choice().is_empty()
    }

    /// Whether the nodes must be read first.
    fn is_unknown(&self) -> bool {
        self.nodes.must_be_read() && !self.were_read
    }

    /// When pods that wait for a node are to be looked at. Those that name nodes mustn't stay if none is left for them.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at.filter(|_| !self.is_unknown())
    }

    /// Pods that wait for a node are to be looked at.
    fn plan_look(&mut self, now: Instant) {
        let earliest = self.look_from.map_or(now, |from| now.max(from));
        self.look_at.get_or_insert(earliest);
    }
}

impl KubernetesActor {
    /// Takes over what was seen of nodes.
    pub(super) fn nodes_seen(&mut self, seen: Observation, now: Instant) {
        let places = &mut self.places;
        match seen {
            Observation::Nodes(nodes) => {
                places.were_read = true;
                places.nodes.listed(nodes);
            }
            Observation::Node(node) => places.nodes.seen(*node),
            Observation::NodeDeleted(name) => places.nodes.deleted(&name),
            Observation::NodesUnread(why) => {
                if !std::mem::replace(&mut places.is_lack_told, true) {
                    let why = format!("labels of nodes: {why}");
                    self.events.send(Event::CallFailed { why });
                }
                return;
            }
            _ => return,
        }
        places.is_lack_told = false;
        self.nodes_changed(now);
    }

    /// The nodes that pods may get are perhaps others now.
    pub(super) fn nodes_changed(&mut self, now: Instant) {
        self.places.plan_look(now);
        self.abandon_creations();
        let is_nowhere = !self.places.is_unknown() && !self.places.has_place();
        if !std::mem::replace(&mut self.places.is_nowhere_told, is_nowhere) && is_nowhere {
            let why =
                "no node meets the constraint, or all that do are excluded: no pod is created";
            self.events.send(Event::CallFailed { why: why.to_owned() });
        }
    }

    /// Ends the creations that would be repeated with nodes that their pods [mustn't get](NodeChoice::is_too_wide) any
    /// more: their executors are dropped, and others take their places.
    fn abandon_creations(&self) {
        if self.places.is_unknown() {
            return;
        }
        for (executor, signal) in &self.creations {
            if self.is_too_wide(executor) {
                abandon(signal);
            }
        }
    }

    /// Whether the pod of an executor could get a node that it mustn't get now, as far as is known.
    fn is_too_wide(&self, executor: &str) -> bool {
        let nodes = &self.places.nodes;
        self.pods.choice(executor).is_some_and(|then| {
            !Arc::ptr_eq(then, nodes.choice())
                && then.is_too_wide(nodes.choice(), |name| nodes.is_there(name))
        })
    }

    /// What a pod that is created now has in common with all others.
    pub(super) fn pod_context(&self) -> PodContext<'_> {
        PodContext {
            config: &self.config,
            nodes: self.places.nodes.choice(),
            creator: &self.creator,
            lease: (&self.config.name, &self.lease.uid),
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
        self.pods.set_made_anew(&executor, false);
        match waiting {
            Some(how) => self.remove(executor, pod, how),
            None => self.places.plan_look(now),
        }
    }

    /// Deletes pods that wait for a node and [would get others](NodeChoice::is_outdated) if they were created now: they
    /// are lost as if others had deleted them, and replaced. One that gets a node meanwhile stays.
    pub(super) fn replace_unplaced(&mut self, now: Instant) {
        if self.places.next_look().is_none_or(|at| now < at) || !self.may_create(now) {
            return;
        }
        self.places.look_at = None;
        let OutdatedPods { outdated, current, is_any_nominated } = self.outdated_pods();
        let choice = Arc::clone(self.places.nodes.choice());
        for executor in current {
            self.pods.set_choice(&executor, &choice);
        }
        let pause = if outdated.is_empty() { LOOK_PAUSE } else { REPLACEMENT_PAUSE };
        self.places.look_from = Some(now + pause);
        if is_any_nominated {
            // That ends without a sign of its own.
            self.places.plan_look(now);
        }
        for (executor, pod, version) in outdated {
            self.pods.set_made_anew(&executor, true);
            self.remove(executor, pod, Removal::IfUnplaced { version });
        }
    }

    /// Compares the pods that wait for a node with what they would be now.
    fn outdated_pods(&self) -> OutdatedPods {
        let nodes = &self.places.nodes;
        let context = self.pod_context();
        let (mut outdated, mut current) = (Vec::new(), Vec::new());
        let mut is_any_nominated = false;
        // Most pods were created with one of a few choices.
        let mut known: HashMap<*const NodeChoice, bool> = HashMap::new();
        let mut is_outdated =
            |executor: &String, entry: &Entry| match (&entry.choice, &entry.affinity) {
                (Some(choice), _) => *known.entry(Arc::as_ptr(choice)).or_insert_with(|| {
                    choice.is_outdated(nodes.choice(), |name| nodes.is_there(name))
                }),
                (None, Some(affinity)) => {
                    let is_other = !manifest::names_nodes(&context, executor, affinity);
                    if !is_other {
                        current.push(executor.clone());
                    }
                    is_other
                }
                (None, None) => false,
            };
        for (executor, entry) in self.pods.unplaced() {
            let pod = entry.pod_ref();
            if self.removing.contains_key(&pod) || !is_outdated(executor, entry) {
                continue;
            }
            // Of a former run's pod nothing says which nodes it may get.
            if entry.is_nominated && entry.choice.is_some() && !self.is_too_wide(executor) {
                is_any_nominated = true;
            } else {
                outdated.push((executor.clone(), pod, entry.version.clone()));
            }
        }
        OutdatedPods { outdated, current, is_any_nominated }
    }
}
