//! The order in which a host may report. What comes out of it makes no sense, and is not believed.

use std::io;

use super::frame::invalid;
use super::message::HostReport;

/// What a host's earlier reports say of the next one.
#[derive(Debug, Default)]
pub(super) struct ReportOrder {
    is_swept: bool,
}

impl ReportOrder {
    /// Returns the report if the host may send it now.
    ///
    /// # Errors
    /// With a sentence, if no host sends it after what has come before.
    pub(super) fn accept(&mut self, report: HostReport) -> io::Result<HostReport> {
        if self.is_swept {
            return Err(invalid("a report after its sweeper's last one"));
        }
        self.is_swept = report == HostReport::Swept;
        Ok(report)
    }

    /// Whether the last report was that nothing of the host's tasks is left.
    pub(super) fn is_swept(&self) -> bool {
        self.is_swept
    }
}
