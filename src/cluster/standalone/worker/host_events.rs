//! [`HostEventSink`]: where what comes from hosts of tasks goes, on the way to the worker's thread.

use std::fmt;
use std::sync::Arc;

use crate::cluster::task_host::HostEvent;

/// Takes the events of the host with an id to the thread that owns it. Returns false if that thread has ended.
type DeliverEvent = dyn Fn(String, HostEvent) -> bool + Send + Sync;

/// Where the events of hosts' connections go, from any thread.
#[derive(Clone)]
pub(super) struct HostEventSink(Arc<DeliverEvent>);

impl HostEventSink {
    /// Creates a sink. `deliver` must not block.
    pub(super) fn new(
        deliver: impl Fn(String, HostEvent) -> bool + Send + Sync + 'static,
    ) -> HostEventSink {
        HostEventSink(Arc::new(deliver))
    }

    /// Takes an event of this host to the thread. Returns false if that has ended.
    pub(super) fn deliver(&self, host: &str, event: HostEvent) -> bool {
        (self.0)(host.to_owned(), event)
    }
}

impl fmt::Debug for HostEventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostEventSink").finish_non_exhaustive()
    }
}
