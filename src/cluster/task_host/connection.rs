//! The cluster's end of the connection to a host: a thread that writes requests, and one that reads reports.

use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use super::frame::{read_frame, write_frame};
use super::message::{HostReport, HostRequest, REPORT_BYTES_MAX, REQUEST_BYTES_MAX, VERSION};

/// The stack of each of the two threads, in bytes.
const STACK_BYTES: usize = 128 * 1024;

/// Something that a host's connection tells its cluster.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Report(HostReport),
    /// The connection has ended, and with it the host's tasks; or it makes no sense, and the sentence says why.
    Closed(Option<String>),
}

/// Where requests to a host go. They are sent in their order, without waiting.
#[derive(Debug)]
pub(crate) struct HostConnection {
    requests: Sender<HostRequest>,
}

impl HostConnection {
    /// Opens a connection, whose events go to `deliver` on a thread of its own until that returns false. Returns also
    /// the host's end.
    ///
    /// # Errors
    /// If there are no sockets or threads.
    pub(crate) fn open(
        deliver: impl Fn(HostEvent) -> bool + Send + 'static,
    ) -> io::Result<(HostConnection, OwnedFd)> {
        let (own, hosts) = UnixStream::pair()?;
        let output = own.try_clone()?;
        let (requests, queued) = channel();
        let thread = |name: &str| Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        thread("offermill-host-write").spawn(move || write_requests(output, &queued))?;
        thread("offermill-host-read").spawn(move || read_reports(own, &deliver))?;
        Ok((HostConnection { requests }, hosts.into()))
    }

    /// The first request: the host's tasks have their folders in `folder`.
    pub(crate) fn begin(&self, folder: String) {
        self.send(HostRequest::Begin { version: VERSION, folder });
    }

    /// Sends a request. A host that is gone doesn't get it; its end is told by the connection.
    pub(crate) fn send(&self, request: HostRequest) {
        let _sent = self.requests.send(request);
    }
}

fn write_requests(mut output: UnixStream, queued: &Receiver<HostRequest>) {
    for request in queued {
        if write_frame(&mut output, &request.encode(), REQUEST_BYTES_MAX).is_err() {
            // A host that doesn't get a request can't be used any more. The reader sees the end.
            let _closed = output.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read_reports(input: UnixStream, deliver: &dyn Fn(HostEvent) -> bool) {
    let mut input = BufReader::new(input);
    loop {
        let read = read_frame(&mut input, REPORT_BYTES_MAX);
        let event = match read.and_then(|read| read.map(|it| HostReport::decode(&it)).transpose()) {
            Ok(Some(report)) => HostEvent::Report(report),
            Ok(None) => HostEvent::Closed(None),
            // A host that is killed may leave part of a report.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                HostEvent::Closed(Some(error.to_string()))
            }
            Err(_) => HostEvent::Closed(None),
        };
        let is_last = matches!(event, HostEvent::Closed(_));
        if !deliver(event) || is_last {
            return;
        }
    }
}
