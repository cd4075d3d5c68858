//! The host itself: a process that a cluster starts, and that runs tasks which the cluster sends.
//!
//! One thread owns the tasks. Two others send it messages: one reads requests, and one waits for children to end.

use std::io::{self, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::frame::{read_frame, write_frame};
use super::message::{HostReport, HostRequest, REPORT_BYTES_MAX, REQUEST_BYTES_MAX, VERSION};
use super::sweeper::{MARK_VARIABLE, Sweeper};
use super::tasks::RunningTasks;
use crate::private_files::PrivateFolder;

/// Something for the thread that owns the tasks.
enum HostMessage {
    Request(HostRequest),
    /// The connection to the cluster is of no more use.
    Closed(String),
    /// Some child may have ended.
    ChildEnded,
}

/// Runs tasks for the cluster that has started this process as a [host](crate::launch::Hosting), until it says that
/// they are to end, or is gone. Standard input is the connection to it. The process should do nothing else, before or
/// after.
///
/// # Errors
/// With a sentence: if this process was not started by a cluster, or the connection breaks. Tasks are ended then.
pub fn run_task_host() -> Result<(), String> {
    let failed = |error: io::Error| format!("the connection to the cluster: {error}");
    let stdin = io::stdin();
    let is_socket =
        fstat(&stdin).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Socket);
    let mark = std::env::var(MARK_VARIABLE).ok().filter(|_| is_socket);
    let mark = mark.ok_or("a host of tasks is started by a cluster, not by hand")?;
    let connection = || stdin.as_fd().try_clone_to_owned().map(UnixStream::from);
    let mut input = BufReader::new(connection().map_err(failed)?);
    let output = connection().map_err(failed)?;
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
    let sweeper = Sweeper::start(&mark, held).map_err(|error| format!("its sweeper: {error}"))?;
    let mut host =
        TaskHostProcess { tasks: RunningTasks::new(folder, sweeper), output, is_finishing: false };
    host.report(&HostReport::Ready).map_err(failed)?;
    let (sender, inbox) = channel();
    let wake = spawn_threads(input, sender).map_err(|error| format!("a thread: {error}"))?;
    let ended = host.run(&inbox, &wake);
    // The sweeper does the same, if it is there.
    host.tasks.kill_now();
    ended
}

/// The tasks, and the way to the cluster.
struct TaskHostProcess {
    tasks: RunningTasks,
    output: UnixStream,
    /// The host ends with its last task.
    is_finishing: bool,
}

impl TaskHostProcess {
    fn report(&mut self, report: &HostReport) -> io::Result<()> {
        write_frame(&mut self.output, &report.encode(), REPORT_BYTES_MAX)?;
        self.output.flush()
    }

    fn run(&mut self, inbox: &Receiver<HostMessage>, wake: &SyncSender<()>) -> Result<(), String> {
        loop {
            let due = self.tasks.next_due();
            let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
            let message = match wait {
                Some(wait) => inbox.recv_timeout(wait),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(HostMessage::Closed(why)) => return Err(why),
                Ok(HostMessage::Request(request)) => self.follow(request)?,
                Ok(HostMessage::ChildEnded) => {
                    let reports = self.tasks.reap().map_err(|error| error.to_string())?;
                    for report in reports {
                        self.report(&report).map_err(|error| error.to_string())?;
                    }
                    let _waiting = wake.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => self.tasks.kill_due(Instant::now()),
                Err(RecvTimeoutError::Disconnected) => return Err("its threads ended".to_owned()),
            }
            if self.is_finishing && self.tasks.is_empty() {
                return Ok(());
            }
        }
    }

    fn follow(&mut self, request: HostRequest) -> Result<(), String> {
        let now = Instant::now();
        match request {
            HostRequest::Begin { .. } => return Err("the cluster began twice".to_owned()),
            HostRequest::Start { task, .. } if self.is_finishing => {
                let why = "its host is about to end".to_owned();
                let report = HostReport::NotStarted { task, why, is_busy: true };
                return self.report(&report).map_err(|error| error.to_string());
            }
            HostRequest::Start { task, argv, environment } => {
                let started = self.tasks.start(task, &argv, environment);
                let report = started.map_err(|error| format!("its sweeper: {error}"))?;
                self.report(&report).map_err(|error| error.to_string())?;
            }
            HostRequest::Kill { task, grace } => {
                self.tasks.kill(&task, grace, now);
                self.tasks.kill_due(now);
            }
            HostRequest::Finish { grace } => {
                self.is_finishing = true;
                self.tasks.kill_all(grace, now);
                self.tasks.kill_due(now);
            }
        }
        Ok(())
    }
}

/// Starts the threads that read requests and that wait for children. Returns where the second one is told to look
/// again.
fn spawn_threads(
    mut input: BufReader<UnixStream>,
    sender: Sender<HostMessage>,
) -> io::Result<SyncSender<()>> {
    let (wake, woken) = sync_channel(1);
    let requests = sender.clone();
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
    let wait = move || wait_for_children(&sender, &woken);
    Builder::new().name("task-host-wait".into()).spawn(wait)?;
    Ok(wake)
}

fn decoded(content: Vec<u8>) -> io::Result<Option<HostRequest>> {
    HostRequest::decode(&content).map(Some)
}

/// Tells of children that have ended, and then waits until they were looked at: a child that has ended, and is not
/// reaped, is found again and again.
fn wait_for_children(sender: &Sender<HostMessage>, woken: &Receiver<()>) {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::All, how) {
            Ok(_) if sender.send(HostMessage::ChildEnded).is_err() => return,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // There is none, not even a sweeper.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
        if woken.recv().is_err() {
            return;
        }
    }
}
