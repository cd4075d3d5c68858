//! What happens to executors' processes on other threads, and where it is reported.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::group::{ProcessGroup, StartError};
use super::watchdog::Watchdog;

/// Something that happened to the executor with a number.
#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// Its process has ended.
    Ended(u64),
    /// It was started, or could not be.
    Started { number: u64, started: Result<ProcessGroup, StartError> },
    /// A replacement of its watchdog was started, or could not be.
    WatchdogReplaced { number: u64, watchdog: io::Result<Watchdog> },
}

/// Takes an event to the thread that owns the executors. Returns the event if that thread has ended.
type Deliver = dyn Fn(ProcessEvent) -> Option<ProcessEvent> + Send + Sync;

/// Where the events of processes are reported, from any thread.
#[derive(Clone)]
pub(crate) struct ProcessEventSink(Arc<Deliver>);

impl ProcessEventSink {
    /// Creates a sink. `deliver` must not block, and returns the event if nothing receives it any more.
    pub(crate) fn new(
        deliver: impl Fn(ProcessEvent) -> Option<ProcessEvent> + Send + Sync + 'static,
    ) -> ProcessEventSink {
        ProcessEventSink(Arc::new(deliver))
    }

    /// Reports an event. Processes that nothing receives any more are ended.
    pub(super) fn send(&self, event: ProcessEvent) {
        if let Some(ProcessEvent::Started { started: Ok(mut group), .. }) = (self.0)(event) {
            let _how = group.reap();
        }
    }
}

impl fmt::Debug for ProcessEventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEventSink").finish_non_exhaustive()
    }
}
