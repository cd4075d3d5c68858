//! The program of a host: a process that a cluster starts, and that runs tasks which the cluster sends.
//!
//! One thread owns the tasks (`TaskLoop`). Others send it messages: one receives requests, and one waits for children
//! to end.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::message::{HostReport, HostRequest};
use super::tasks::RunningTasks;

/// Something for the thread that owns the tasks.
pub(crate) enum HostMessage {
    Request(HostRequest),
    /// The connection to the cluster is of no more use.
    Closed(String),
    /// Some child may have ended.
    ChildEnded,
}

/// Where a host's reports go.
pub(crate) trait ReportOutput {
    /// Sends a report.
    ///
    /// # Errors
    /// If the connection is of no more use.
    fn report(&mut self, report: HostReport) -> io::Result<()>;
}

/// The tasks, and the way to the cluster.
pub(crate) struct TaskLoop<O> {
    tasks: RunningTasks,
    output: O,
    /// The host ends with its last task.
    is_finishing: bool,
}

impl<O: ReportOutput> TaskLoop<O> {
    /// A loop without tasks.
    pub(crate) fn new(tasks: RunningTasks, output: O) -> TaskLoop<O> {
        TaskLoop { tasks, output, is_finishing: false }
    }

    /// Runs until the tasks are asked to finish, and have. What is for it comes from `inbox`, whose sender is `sender`.
    /// No task is left afterwards.
    ///
    /// # Errors
    /// With a sentence: if the connection is of no more use, or the sweeper.
    pub(crate) fn run(
        mut self,
        sender: Sender<HostMessage>,
        inbox: &Receiver<HostMessage>,
    ) -> Result<(), String> {
        let wake = start_waiting(sender).map_err(|error| format!("a thread: {error}"))?;
        let ended = self.follow_messages(inbox, &wake);
        // The sweeper does the same, if it is there.
        self.tasks.kill_now();
        ended
    }

    fn follow_messages(
        &mut self,
        inbox: &Receiver<HostMessage>,
        wake: &SyncSender<()>,
    ) -> Result<(), String> {
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
                    let others = self.tasks.reap_others().map_err(|error| error.to_string())?;
                    for report in reports.into_iter().chain(others) {
                        self.report(report)?;
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
                return self.report(report);
            }
            HostRequest::Start { task, argv, environment } => {
                let started = self.tasks.start(task, &argv, environment);
                let report = started.map_err(|error| format!("its sweeper: {error}"))?;
                self.report(report)?;
            }
            HostRequest::Kill { task, grace } => {
                self.tasks.kill(&task, grace, now);
                self.tasks.kill_due(now);
            }
            HostRequest::Ping => self.report(HostReport::Pong)?,
            HostRequest::Finish { grace } => {
                self.is_finishing = true;
                self.tasks.kill_all(grace, now);
                self.tasks.kill_due(now);
            }
        }
        Ok(())
    }

    fn report(&mut self, report: HostReport) -> Result<(), String> {
        self.output.report(report).map_err(|error| error.to_string())
    }
}

/// Starts the thread that waits for children. Returns where it is told to look again.
fn start_waiting(sender: Sender<HostMessage>) -> io::Result<SyncSender<()>> {
    let (wake, woken) = sync_channel(1);
    let wait = move || wait_for_children(&sender, &woken);
    Builder::new().name("task-host-wait".into()).spawn(wait)?;
    Ok(wake)
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
