//! The order in which a host may report. What comes out of it makes no sense, and is not believed.
//!
//! Which tasks a host may report is the registry's to say. Here is what needs no knowledge of tasks, and keeps a host
//! from sending without end what nobody asked for.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frame::{invalid, read_frame};
use super::message::{HostReport, HostRequest, REPORT_BYTES_MAX};

/// The number of [pings](HostRequest::Ping) that a host hasn't answered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenPings(Arc<Mutex<u32>>);

impl OpenPings {
    /// Counts a request that is about to be sent.
    pub(super) fn count(&self, request: &HostRequest) {
        if *request == HostRequest::Ping {
            let mut open = self.number();
            *open = open.saturating_add(1);
        }
    }

    /// One is answered. Returns false if none is open.
    fn answer(&self) -> bool {
        let mut open = self.number();
        let less = open.checked_sub(1);
        *open = less.unwrap_or_default();
        less.is_some()
    }

    fn number(&self) -> MutexGuard<'_, u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a host's earlier reports say of the next one.
#[derive(Debug)]
pub(super) struct ReportOrder {
    open_pings: OpenPings,
    is_swept: bool,
}

impl ReportOrder {
    /// The order of the reports of a host that has sent none.
    pub(super) fn new(open_pings: OpenPings) -> ReportOrder {
        ReportOrder { open_pings, is_swept: false }
    }

    /// Reads the next report. `None` at the end of the stream, if that is between reports. `see` gets each report
    /// before it is known whether the host may send it now.
    ///
    /// # Errors
    /// With a sentence and the kind `InvalidData`, if it is no report, or one that no host sends after what has come
    /// before. Else if the stream can't be read, or ends within a report.
    pub(super) fn read(
        &mut self,
        input: &mut dyn Read,
        see: &mut dyn FnMut(&HostReport),
    ) -> io::Result<Option<HostReport>> {
        let Some(frame) = read_frame(input, REPORT_BYTES_MAX)? else { return Ok(None) };
        let report = HostReport::decode(&frame)?;
        see(&report);
        self.accept(report).map(Some)
    }

    fn accept(&mut self, report: HostReport) -> io::Result<HostReport> {
        if self.is_swept {
            return Err(invalid("a report after its sweeper's last one"));
        }
        match &report {
            HostReport::Swept => self.is_swept = true,
            HostReport::Pong if !self.open_pings.answer() => {
                return Err(invalid("a sign of life that it wasn't asked for"));
            }
            _ => {}
        }
        Ok(report)
    }

    /// Whether the last report was that nothing of the host's tasks is left.
    pub(super) fn is_swept(&self) -> bool {
        self.is_swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a host answers each ping once, and says nothing after its sweeper. Method: answers to two of three pings,
    /// one to none, and each report after the last.
    #[test]
    fn only_what_was_asked_is_answered() {
        let open = OpenPings::default();
        let mut order = ReportOrder::new(open.clone());
        let mut why = |report: HostReport| order.accept(report).map_err(|error| error.to_string());
        let unasked = Err("a sign of life that it wasn't asked for".to_owned());
        assert_eq!(why(HostReport::Pong), unasked);
        open.count(&HostRequest::Finish { grace: std::time::Duration::ZERO });
        assert_eq!(why(HostReport::Pong), unasked);
        open.count(&HostRequest::Ping);
        open.count(&HostRequest::Ping);
        assert_eq!(why(HostReport::Pong), Ok(HostReport::Pong));
        assert_eq!(why(HostReport::Ready { sweeper: 7 }), Ok(HostReport::Ready { sweeper: 7 }));
        assert_eq!(why(HostReport::Pong), Ok(HostReport::Pong));
        assert_eq!(why(HostReport::Pong), unasked);
        open.count(&HostRequest::Ping);
        assert_eq!(why(HostReport::Swept), Ok(HostReport::Swept));
        for report in [HostReport::Pong, HostReport::Swept, HostReport::Ready { sweeper: 7 }] {
            assert_eq!(why(report), Err("a report after its sweeper's last one".to_owned()));
        }
        assert!(order.is_swept());
    }
}
