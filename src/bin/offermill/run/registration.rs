//! The end of a run that no cluster registers in time (`offermill.registrationTimeout`).

use offermill::Timestamp;
use offermill::config::text::format_duration;

use super::Session;
use crate::model::end_reason::EndReason;
use crate::model::event::RunEvent;

impl Session {
    /// Stops the run if the cluster has not registered the framework in time.
    pub(super) fn stop_if_unregistered(&mut self, now: Timestamp) {
        let Some(timeout) = self.settings.registration_timeout else { return };
        let is_registered = !self.run_state.framework_id.is_empty();
        if is_registered || self.end_reason.is_some() || now.since(Timestamp::ORIGIN) < timeout {
            return;
        }
        let unconnected = self.run_state.why_unconnected().unwrap_or_default();
        let timeout = format_duration(timeout);
        let why = format!("after {timeout} (offermill.registrationTimeout) {unconnected}");
        self.publish(now, RunEvent::Refused { why: why.clone() });
        self.stop(EndReason::Refused(why));
    }
}
