//! [`PodPlacement`]: where pods may be placed, as it is now.
//!
//! A constraint that node affinities can express is one, once and for all. One that they can't (it has `like`,
//! `matches`, a comparison of numbers, or too many values) is checked on the labels of all nodes, and pods may be
//! placed on the nodes that meet it, by name. As nodes come, go and are labelled, those are others; pods that were
//! created before keep theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::affinity::{NodeSelection, REGION_LABEL, ZONE_LABEL};
use super::node_choice::NodeChoice;
use super::objects::Metadata;
use crate::constraint::Constraint;
use crate::offer::{Attribute, Offer};

/// Where pods may be placed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PodPlacement {
    /// On the nodes of this selection.
    Affinity(NodeSelection),
    /// On the nodes whose labels meet the constraint.
    Labels(Constraint),
}

impl PodPlacement {
    /// Where pods may be placed that this constraint is for.
    pub(super) fn of(constraint: &Constraint) -> PodPlacement {
        let selection = NodeSelection::of(constraint);
        if constraint.is_exact_in_labels() || selection == NodeSelection::Nowhere {
            PodPlacement::Affinity(selection)
        } else {
            PodPlacement::Labels(constraint.clone())
        }
    }

    /// Whether nodes must be read for it.
    pub(super) fn reads_nodes(&self) -> bool {
        matches!(self, PodPlacement::Labels(_))
    }

    /// Whether no node can meet it.
    pub(super) fn is_nowhere(&self) -> bool {
        *self == PodPlacement::Affinity(NodeSelection::Nowhere)
    }
}

/// Whether a node with this name and these labels meets the constraint.
pub(super) fn meets(
    constraint: &Constraint,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let attributes: Vec<Attribute<'_>> =
        labels.iter().map(|(key, value)| Attribute::text(key, value)).collect();
    let mut offer = Offer::new("", name, name, &[], &attributes);
    offer.region = labels.get(REGION_LABEL).map(String::as_str);
    offer.zone = labels.get(ZONE_LABEL).map(String::as_str);
    constraint.check(&offer).is_ok()
}

/// The nodes of the cluster with their labels, and those of them that pods may get.
#[derive(Debug)]
pub(super) struct Nodes {
    placement: PodPlacement,
    labels: BTreeMap<String, BTreeMap<String, String>>,
    meeting: BTreeSet<String>,
    /// What pods are created with, made anew when it changes.
    choice: Arc<NodeChoice>,
}

impl Nodes {
    /// No nodes so far.
    pub(super) fn new(placement: PodPlacement) -> Nodes {
        let (labels, meeting) = (BTreeMap::new(), BTreeSet::new());
        let nowhere = NodeChoice { selection: NodeSelection::Nowhere, avoided: Vec::new() };
        let mut nodes = Nodes { placement, labels, meeting, choice: Arc::new(nowhere) };
        nodes.select();
        nodes
    }

    /// The nodes that pods may get now.
    pub(super) fn choice(&self) -> &Arc<NodeChoice> {
        &self.choice
    }

    /// Whether there is a node of this name, as far as nodes were read.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.labels.contains_key(name)
    }

    /// Whether nodes must be read for it.
    pub(super) fn must_be_read(&self) -> bool {
        self.placement.reads_nodes()
    }

    /// Another constraint counts from now on.
    pub(super) fn place(&mut self, placement: PodPlacement) {
        self.placement = placement;
        self.meet();
    }

    /// These nodes are excluded, the latest first.
    pub(super) fn avoid(&mut self, avoided: Vec<String>) {
        if avoided != self.choice.avoided {
            let selection = self.choice.selection.clone();
            self.choice = Arc::new(NodeChoice { selection, avoided });
        }
    }

    /// Checks all nodes.
    fn meet(&mut self) {
        self.meeting = self
            .labels
            .iter()
            .filter(|(name, labels)| self.is_met(name, labels))
            .map(|(name, _)| name.clone())
            .collect();
        self.select();
    }

    /// These are all nodes.
    pub(super) fn listed(&mut self, nodes: Vec<Metadata>) {
        self.labels = nodes.into_iter().map(|node| (node.name, node.labels)).collect();
        self.meet();
    }

    /// A node is there, or has other labels.
    pub(super) fn seen(&mut self, node: Metadata) {
        let Metadata { name, labels, .. } = node;
        let is_met = self.is_met(&name, &labels);
        self.labels.insert(name.clone(), labels);
        let is_changed =
            if is_met { self.meeting.insert(name) } else { self.meeting.remove(&name) };
        if is_changed {
            self.select();
        }
    }

    /// A node is gone.
    pub(super) fn deleted(&mut self, name: &str) {
        self.labels.remove(name);
        if self.meeting.remove(name) {
            self.select();
        }
    }

    fn is_met(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match &self.placement {
            PodPlacement::Affinity(_) => false,
            PodPlacement::Labels(constraint) => meets(constraint, name, labels),
        }
    }

    fn select(&mut self) {
        let selection = match &self.placement {
            PodPlacement::Affinity(selection) => selection.clone(),
            PodPlacement::Labels(_) => {
                NodeSelection::Named(self.meeting.iter().cloned().collect::<Arc<[String]>>())
            }
        };
        if selection != self.choice.selection {
            let avoided = self.choice.avoided.clone();
            self.choice = Arc::new(NodeChoice { selection, avoided });
        }
    }
}
