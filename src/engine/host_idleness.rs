//! [`HostIdleness`]: since when a host is without tasks.

use std::time::Duration;

use crate::kernel::{IdleHost, TaskHost};
use crate::time::Timestamp;

/// How a host was found idle, and when first. The default is one that wasn't.
#[derive(Debug, Default)]
pub(crate) struct HostIdleness(Option<(IdleHost, Timestamp)>);

impl HostIdleness {
    /// Has the host take no more tasks if it is idle, and nothing has happened to it since a look at least `timeout`
    /// ago. Returns whether it was this call that has done so: then the host's executor is to be ended.
    pub(crate) fn end_after(&mut self, timeout: Duration, host: &TaskHost, now: Timestamp) -> bool {
        let Some(idle) = host.idle() else {
            self.0 = None;
            return false;
        };
        let since = match self.0.take() {
            Some((before, since)) if before.is_same(&idle) => since,
            _ => now,
        };
        if now.since(since) < timeout {
            self.0 = Some((idle, since));
            return false;
        }
        idle.end()
    }
}
