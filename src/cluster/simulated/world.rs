//! The part of a simulation on which the framework acts: virtual time, the cluster, and the observers.

use super::checker::Checker;
use super::cluster::Cluster;
use super::corners::Corners;
use super::event_queue::EventQueue;
use super::framework::SimulatedWork;
use super::recorder::Recorder;

/// Virtual time, the cluster, and the observers of a simulation.
pub(super) struct World<'a> {
    pub(super) events: &'a mut EventQueue,
    pub(super) cluster: &'a mut Cluster,
    pub(super) checker: &'a mut Checker,
    pub(super) recorder: &'a mut Recorder,
    pub(super) corners: &'a mut Corners,
    /// What the framework places, if it isn't equal executors.
    pub(super) tasks: Option<&'a dyn SimulatedWork>,
}
