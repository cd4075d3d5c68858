//! A host whose cluster is at the other end of a pair of sockets, which is its standard input.

use std::io::{self, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use rustix::fs::{FileType, fstat};

use super::frame::{read_frame, write_frame};
use super::message::{HostReport, HostRequest, REPORT_BYTES_MAX, REQUEST_BYTES_MAX, VERSION};
use super::program::{HostMessage, ReportOutput, TaskLoop};
use super::sweeper::{MARK_VARIABLE, Sweeper};
use super::tasks::RunningTasks;
use crate::private_files::PrivateFolder;

/// The mark of the host that this process is; `None` if it was not started by a cluster with a pair of sockets.
pub(crate) fn mark_of_pipe() -> Option<String> {
    let stdin = io::stdin();
    let is_socket =
        fstat(&stdin).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Socket);
    std::env::var(MARK_VARIABLE).ok().filter(|_| is_socket)
}

/// Runs tasks for the cluster at the other end of standard input, as the host with this mark.
///
/// # Errors
/// With a sentence: if the connection breaks. Tasks are ended then.
pub(crate) fn run_on_pipe(mark: String) -> Result<(), String> {
    let failed = |error: io::Error| format!("the connection to the cluster: {error}");
    let stdin = io::stdin();
    let connection = || stdin.as_fd().try_clone_to_owned().map(UnixStream::from);
    let mut input = BufReader::new(connection().map_err(failed)?);
    let mut output = PipeOutput(connection().map_err(failed)?);
    let first = read_frame(&mut input, REQUEST_BYTES_MAX).map_err(failed)?;
    let folder = match HostRequest::decode(&first.unwrap_or_default()).map_err(failed)? {
        HostRequest::Begin { version: VERSION, folder } => folder,
        HostRequest::Begin { version, .. } => {
            return Err(format!("the cluster speaks version {version}, this host {VERSION}"));
        }
        _ => return Err("the cluster's first message is another one".to_owned()),
    };
    let folder = PrivateFolder::open_existing(Path::new(&folder)).map_err(|e| e.to_string())?;
    let held: OwnedFd = connection().map_err(failed)?.into();
    let mut last_word = Vec::new();
    write_frame(&mut last_word, &HostReport::Swept.encode(), REPORT_BYTES_MAX).map_err(failed)?;
    let sweeper = Sweeper::start(&mark, held, &last_word);
    let sweeper = sweeper.map_err(|error| format!("its sweeper: {error}"))?;
    let ready = HostReport::Ready { sweeper: sweeper.pid() };
    let tasks = RunningTasks::new(folder, sweeper, mark);
    output.report(ready).map_err(failed)?;
    let (sender, inbox) = channel();
    start_reading(input, sender.clone()).map_err(|error| format!("a thread: {error}"))?;
    TaskLoop::new(tasks, output).run(sender, &inbox)
}

struct PipeOutput(UnixStream);

impl ReportOutput for PipeOutput {
    fn report(&mut self, report: HostReport) -> io::Result<()> {
        write_frame(&mut self.0, &report.encode(), REPORT_BYTES_MAX)?;
        self.0.flush()
    }
}

/// Starts the thread that reads requests.
fn start_reading(
    mut input: BufReader<UnixStream>,
    requests: Sender<HostMessage>,
) -> io::Result<()> {
    let read = move || {
        loop {
            let read = read_frame(&mut input, REQUEST_BYTES_MAX);
            let message = match read.and_then(|read| read.map_or(Ok(None), decoded)) {
                Ok(Some(request)) => HostMessage::Request(request),
                Ok(None) => HostMessage::Closed("the cluster has ended".to_owned()),
                Err(error) => HostMessage::Closed(format!("the cluster sent {error}")),
            };
            let is_last = matches!(message, HostMessage::Closed(_));
            if requests.send(message).is_err() || is_last {
                return;
            }
        }
    };
    Builder::new().name("task-host-read".into()).spawn(read)?;
    Ok(())
}

fn decoded(content: Vec<u8>) -> io::Result<Option<HostRequest>> {
    HostRequest::decode(&content).map(Some)
}
