//! What a host of tasks sends to its cluster, read as the cluster reads it: the stream of frames, the order of reports,
//! and the registry of hosts and tasks. Whatever comes, and whenever the host and its connection end: nothing is told
//! of a host after its end; a task runs once at most, and ends once at most, not before it was sent; one that exited
//! has run, and one that wasn't started hasn't; at the end of the host nothing of its tasks is left; and sentences
//! about nonsense are short.
//!
//! Input: a line of steps, then the bytes that the host sends. Steps, a letter each:
//!
//! | step | |
//! |---|---|
//! | `a` to `d` | the task of this name is sent |
//! | `A` to `D` | it is asked to end |
//! | `r` | the cluster reads a report |
//! | `l` | the cluster looks at the host, and asks for a sign of life |
//! | `f` | the host is asked to end |
//! | `x` | its process ends |
//!
//! Afterwards all bytes that are left are read, and the process ends.

#![cfg_attr(fuzzing, no_main)]
#![allow(dead_code, reason = "of the library's files only a part is used here")]

#[path = "../../src/cluster/task_host/frame.rs"]
mod frame;
#[path = "../../src/cluster/task_host/message.rs"]
mod message;
#[path = "../../src/cluster/task_host/registered_host.rs"]
mod registered_host;
#[path = "../../src/cluster/task_host/registry.rs"]
mod registry;
#[path = "../../src/cluster/task_host/report_order.rs"]
mod report_order;

/// A connection without threads: what is sent is counted, and the target itself reads.
mod connection {
    use std::cell::RefCell;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;

    use super::message::{HostReport, HostRequest};
    use super::report_order::OpenPings;

    thread_local! {
        /// The pings that are open on the connection that was opened last.
        pub(crate) static OPEN_PINGS: RefCell<OpenPings> = RefCell::default();
    }

    #[derive(Debug)]
    pub(crate) enum HostEvent {
        Report(HostReport),
        Nonsense(String),
        Closed { is_swept: bool },
    }

    #[derive(Debug)]
    pub(crate) struct HostConnection(OpenPings);

    impl HostConnection {
        pub(crate) fn open(
            _mark: &str,
            _deliver: impl Fn(HostEvent) -> bool + Send + 'static,
        ) -> io::Result<(HostConnection, OwnedFd)> {
            let open_pings = OpenPings::default();
            OPEN_PINGS.set(open_pings.clone());
            Ok((HostConnection(open_pings), File::open("/dev/null")?.into()))
        }

        pub(crate) fn begin(&self, _folder: String) {}

        pub(crate) fn send(&self, request: HostRequest) {
            self.0.count(&request);
        }

        pub(crate) fn cut(&self) {}
    }
}

/// What the files above know by these names.
mod cluster {
    pub(crate) mod process {
        use offermill::ProcessExit;

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Exit {
            Code(i32),
            Signal(i32),
            Unknown,
        }

        impl Exit {
            pub(crate) fn known(self) -> Option<ProcessExit> {
                match self {
                    Exit::Code(code) => Some(ProcessExit::Code(code)),
                    Exit::Signal(signal) => Some(ProcessExit::Signal(signal)),
                    Exit::Unknown => None,
                }
            }
        }

        impl std::fmt::Display for Exit {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{self:?}")
            }
        }

        #[derive(Debug)]
        pub(crate) struct RunningExecutor<T> {
            pub(crate) id: String,
            pub(crate) record: T,
        }
    }
}
mod status {
    pub(crate) use offermill::TaskState;

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct ProcessReport {
        pub(crate) pid: Option<u32>,
        pub(crate) sandbox: Option<String>,
        pub(crate) exit: Option<offermill::ProcessExit>,
    }
}

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cluster::process::{Exit, RunningExecutor};
use connection::{HostEvent, OPEN_PINGS};
use registered_host::HostPatience;
use registry::{HostOutcome, HostRegistry, HostedEnd, HostedKill, NewHostedTask};
use report_order::ReportOrder;

const HOST: &str = "h";
/// The longest sentence about nonsense, in bytes: 80 characters of a name among them.
const SENTENCE_BYTES_MAX: usize = 500;

/// What has been told of a task.
#[derive(Debug, Default)]
struct Told {
    runs: bool,
    has_ended: bool,
}

/// A cluster with one host, and what it has told.
struct Checked<'a> {
    registry: HostRegistry<char>,
    order: ReportOrder,
    input: &'a [u8],
    /// `None` once the connection has ended.
    is_closed: bool,
    is_process_gone: bool,
    has_host_ended: bool,
    tasks: BTreeMap<char, Told>,
    now: Instant,
}

fn check(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (steps, input) = (&data[..end], &data[end + 1..]);
    let mut checked = Checked::new(input);
    for step in steps {
        checked.step(char::from(*step));
    }
    while !checked.is_closed {
        checked.read();
    }
    checked.end_process();
    assert!(checked.has_host_ended, "both the process and the connection have ended");
    assert_eq!(checked.registry.task_ids().count(), 0, "a task outlives its host");
    assert!(checked.tasks.values().all(|task| task.has_ended));
    assert!(!checked.registry.is_host(HOST) && !checked.registry.has_unreported_ends());
}

impl Checked<'_> {
    fn new(input: &[u8]) -> Checked<'_> {
        let now = Instant::now();
        let mut registry = HostRegistry::new(HostPatience::default());
        registry.add(HOST);
        let opened = registry.open(HOST, "a mark", |_| true);
        assert!(opened.is_some(), "/dev/null can't be opened");
        assert!(registry.started(HOST, Some(Path::new("/folder")), now).is_empty());
        let order = ReportOrder::new(OPEN_PINGS.take());
        Checked {
            registry,
            order,
            input,
            is_closed: false,
            is_process_gone: false,
            has_host_ended: false,
            tasks: BTreeMap::new(),
            now,
        }
    }

    fn step(&mut self, step: char) {
        match step {
            'a'..='d' => self.start(step),
            'A'..='D' => self.kill(step.to_ascii_lowercase()),
            'r' => self.read(),
            'l' => {
                self.now += HostPatience::default().look_interval;
                // A process that has ended is not waited for longer here than its connection.
                if !self.is_process_gone {
                    let outcomes = self.registry.run_due(self.now);
                    self.follow(outcomes);
                }
            }
            'f' => self.registry.finish(HOST, Duration::ZERO),
            'x' => self.end_process(),
            _ => {}
        }
    }

    fn start(&mut self, task: char) {
        if self.tasks.contains_key(&task) {
            return;
        }
        let id = task.to_string();
        let new = NewHostedTask {
            id: id.clone(),
            host: HOST.to_owned(),
            name: id,
            argv: vec!["true".to_owned()],
            environment: Vec::new(),
            record: task,
        };
        if self.registry.start(new).is_ok() {
            self.tasks.insert(task, Told::default());
        }
    }

    fn kill(&mut self, task: char) {
        let known = self.tasks.get(&task).is_some_and(|task| !task.has_ended);
        let killed = self.registry.kill(&task.to_string(), Duration::ZERO);
        assert_eq!(killed.is_some(), known, "{task} is known until its end is told");
        if let Some(HostedKill::Ended(outcome)) = killed {
            self.follow(vec![outcome]);
        }
    }

    /// Reads as a connection's thread does.
    fn read(&mut self) {
        if self.is_closed {
            return;
        }
        match self.order.read(&mut self.input, &mut |_| {}) {
            Ok(Some(message::HostReport::Swept)) => {}
            Ok(Some(report)) => self.tell(HostEvent::Report(report)),
            Ok(None) => self.close(self.order.is_swept()),
            Err(error) => {
                if error.kind() == std::io::ErrorKind::InvalidData {
                    let what = error.to_string();
                    assert!(what.len() <= SENTENCE_BYTES_MAX, "{what}");
                    self.tell(HostEvent::Nonsense(what));
                }
                self.close(false);
            }
        }
    }

    fn close(&mut self, is_swept: bool) {
        self.is_closed = true;
        self.tell(HostEvent::Closed { is_swept });
    }

    fn end_process(&mut self) {
        if std::mem::replace(&mut self.is_process_gone, true) {
            return;
        }
        let executor = RunningExecutor { id: HOST.to_owned(), record: 'h' };
        let outcomes = self.registry.process_ended(executor, Exit::Signal(9), self.now);
        self.follow(outcomes.expect("it is a host"));
    }

    fn tell(&mut self, event: HostEvent) {
        let outcomes = self.registry.on_event(HOST, event, str::to_owned);
        self.follow(outcomes);
    }

    fn follow(&mut self, outcomes: Vec<HostOutcome<char>>) {
        for outcome in outcomes {
            assert!(!self.has_host_ended, "{outcome:?} after the host's end");
            match outcome {
                HostOutcome::HostReady(_) | HostOutcome::EndHost(_) => {}
                HostOutcome::HostEnded { end, .. } => {
                    self.has_host_ended = true;
                    assert!(self.is_closed && self.is_process_gone, "{end:?}");
                    assert!(format!("{end:?}").len() <= SENTENCE_BYTES_MAX, "{end:?}");
                }
                HostOutcome::TaskRuns { id, .. } => {
                    let told = told_of(&mut self.tasks, &id);
                    assert!(!told.has_ended, "{id} runs after its end");
                    assert!(!std::mem::replace(&mut told.runs, true), "{id} runs twice");
                }
                HostOutcome::TaskEnded { id, end, process, .. } => {
                    let told = told_of(&mut self.tasks, &id);
                    assert!(!std::mem::replace(&mut told.has_ended, true), "{id} ends twice");
                    // Of a task that was asked to end before, it isn't told that it runs.
                    assert!(process.is_some() || !told.runs, "{id} has run: {end:?}");
                    match end {
                        HostedEnd::Exited { .. } => assert!(process.is_some(), "{id} never ran"),
                        HostedEnd::NotStarted { .. } | HostedEnd::Withdrawn => {
                            assert!(process.is_none(), "{id} has run: {end:?}");
                        }
                        HostedEnd::HostGone { is_sent, .. } => {
                            assert!(is_sent || process.is_none(), "{id} ran unsent");
                        }
                    }
                }
            }
        }
    }
}

fn told_of<'a>(tasks: &'a mut BTreeMap<char, Told>, id: &str) -> &'a mut Told {
    let task = id.chars().next().and_then(|task| tasks.get_mut(&task));
    task.expect("only tasks that were sent run and end")
}

offermill_fuzz::harness!(check);
