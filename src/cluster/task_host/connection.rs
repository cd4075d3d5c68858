//! The cluster's end of the connection to a host: a thread that writes requests, and one that reads reports.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use super::frame::write_frame;
use super::message::{HostReport, HostRequest, REQUEST_BYTES_MAX, VERSION};
use super::remains::Remains;
use super::report_order::{OpenPings, ReportOrder};

/// The stack of each of the two threads, in bytes.
const STACK_BYTES: usize = 128 * 1024;

/// Something that a host's connection tells its cluster.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Report(HostReport),
    /// What came makes no sense, and the sentence says why. The end of the connection follows.
    Nonsense(String),
    /// The connection has ended. The host's tasks are gone with it, or were killed and don't end.
    Closed {
        is_swept: bool,
    },
}

/// Where requests to a host go. They are sent in their order, without waiting.
#[derive(Debug)]
pub(crate) struct HostConnection {
    requests: Sender<HostRequest>,
    open_pings: OpenPings,
    own: UnixStream,
}

impl HostConnection {
    /// Opens a connection to the host with this mark. Its events go to `deliver` on a thread of its own until that
    /// returns false. Returns also the host's end.
    ///
    /// # Errors
    /// If there are no sockets or threads.
    pub(crate) fn open(
        mark: &str,
        deliver: impl Fn(HostEvent) -> bool + Send + 'static,
    ) -> io::Result<(HostConnection, OwnedFd)> {
        let (own, hosts) = UnixStream::pair()?;
        let (input, output) = (own.try_clone()?, own.try_clone()?);
        let (requests, queued) = channel();
        let remains = Remains::new(mark);
        let open_pings = OpenPings::default();
        let order = ReportOrder::new(open_pings.clone());
        let thread = |name: &str| Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        thread("offermill-host-write").spawn(move || write_requests(output, &queued))?;
        thread("offermill-host-read")
            .spawn(move || read_reports(input, remains, order, &deliver))?;
        Ok((HostConnection { requests, open_pings, own }, hosts.into()))
    }

    /// The first request: the host's tasks have their folders in `folder`.
    pub(crate) fn begin(&self, folder: String) {
        self.send(HostRequest::Begin { version: VERSION, folder });
    }

    /// Sends a request. A host that is gone doesn't get it; its end is told by the connection.
    pub(crate) fn send(&self, request: HostRequest) {
        self.open_pings.count(&request);
        let _sent = self.requests.send(request);
    }

    /// Ends the connection, whoever else holds it. What the host leaves is killed before that is told.
    pub(crate) fn cut(&self) {
        let _cut = self.own.shutdown(Shutdown::Both);
    }
}

fn write_requests(mut output: UnixStream, queued: &Receiver<HostRequest>) {
    for request in queued {
        if write_frame(&mut output, &request.encode(), REQUEST_BYTES_MAX).is_err() {
            // A host that doesn't get a request can't be used any more. The reader sees the end.
            let _closed = output.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Delivers what comes. At the end, if the host's sweeper hasn't said that it has swept, does it in its place.
fn read_reports(
    input: UnixStream,
    mut remains: Remains,
    mut order: ReportOrder,
    deliver: &dyn Fn(HostEvent) -> bool,
) {
    let mut input = BufReader::new(input);
    let is_swept = loop {
        // What a report names is killed even if the report is refused.
        match order.read(&mut input, &mut |report| remains.follow(report)) {
            Ok(Some(HostReport::Swept)) => {}
            Ok(Some(report)) => {
                if !deliver(HostEvent::Report(report)) {
                    return;
                }
            }
            Ok(None) => break order.is_swept(),
            Err(error) => {
                // A host that is killed may leave part of a report.
                let is_nonsense = error.kind() == io::ErrorKind::InvalidData;
                if is_nonsense && !deliver(HostEvent::Nonsense(error.to_string())) {
                    return;
                }
                // The host is killed for it, and its sweeper ends the connection once it has swept.
                let _rest = io::copy(&mut input, &mut io::sink());
                break false;
            }
        }
    };
    deliver(HostEvent::Closed { is_swept: is_swept || remains.kill() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::task_host::frame::read_frame;
    use crate::cluster::task_host::message::REPORT_BYTES_MAX;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Goal: a report after the one that all is swept is refused, and the task that it names is killed before the end
    /// is told. Method: a process that only that report names, and the host's end of a connection, closed afterwards.
    #[test]
    fn what_follows_the_last_report_is_not_believed() {
        let mut task = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let (events, told) = channel();
        let mark = format!("a mark of {} that no process has", std::process::id());
        let (connection, hosts) =
            HostConnection::open(&mark, move |event| events.send(event).is_ok()).unwrap();
        let mut hosts = UnixStream::from(hosts);
        let started = HostReport::Started {
            task: "t2".to_owned(),
            pid: i32::try_from(task.id()).unwrap(),
            folder: "/folder/t2".to_owned(),
        };
        let sent = [HostReport::Ready { sweeper: i32::MAX }, HostReport::Swept, started];
        for report in sent {
            write_frame(&mut hosts, &report.encode(), REPORT_BYTES_MAX).unwrap();
        }
        drop(hosts);
        let told: Vec<String> = told.iter().map(|event| format!("{event:?}")).collect();
        let was_killed = task.try_wait().unwrap().is_some();
        let _ended = task.kill();
        task.wait().unwrap();
        drop(connection);
        let expected = [
            "Report(Ready { sweeper: 2147483647 })",
            "Nonsense(\"a report after its sweeper's last one\")",
            "Closed { is_swept: true }",
        ];
        assert_eq!(told, expected);
        assert!(was_killed);
    }

    /// Goal: signs of life that nobody asked for are not delivered, however many there are. Method: one ping, a
    /// thousand answers.
    #[test]
    fn unasked_signs_of_life_are_not_delivered() {
        let (events, told) = channel();
        let mark = format!("another mark of {} that no process has", std::process::id());
        let (connection, hosts) =
            HostConnection::open(&mark, move |event| events.send(event).is_ok()).unwrap();
        let mut hosts = UnixStream::from(hosts);
        connection.send(HostRequest::Ping);
        assert!(read_frame(&mut hosts, REQUEST_BYTES_MAX).unwrap().is_some());
        for _ in 0..1000 {
            write_frame(&mut hosts, &HostReport::Pong.encode(), REPORT_BYTES_MAX).unwrap();
        }
        drop(hosts);
        let told: Vec<String> = told.iter().map(|event| format!("{event:?}")).collect();
        let expected = [
            "Report(Pong)",
            "Nonsense(\"a sign of life that it wasn't asked for\")",
            "Closed { is_swept: true }",
        ];
        assert_eq!(told, expected);
    }
}
