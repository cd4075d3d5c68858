//! [`SharedMaster`]: the master with its connections, its journal and its clock, shared by the tasks of one thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::access::MasterAccess;
use super::history::{HistoryReport, MasterHistory};
use super::journal::{JournalError, MasterJournal};
use super::observer::NoticeGate;
use super::options::MasterOptions;
use super::pace::{CallPace, calls_of};
use super::stream::{EventBody, RecordSender, record_stream};
use crate::cluster::standalone::master::{
    ConnectionNumber, ExecutorReports, MasterAction, MasterNotice, MasterReport, MasterSettings,
    RefusedCall, StandaloneMaster,
};
use crate::cluster::standalone::protocol::{WorkerCall, WorkerSubscribe, frame_event};
use crate::foreign_text::cut;
use crate::mesos_v1::codec::Encoding;
use crate::mesos_v1::messages::call::Subscribe;
use crate::mesos_v1::messages::{Call, Event};

/// The most executors in a report.
const EXECUTORS_LISTED_MAX: usize = 2000;

/// The most bytes of a framework's name and user in reports. What is longer is cut, with a mark.
const REPORTED_BYTES_MAX: usize = 256;

/// The master and all that belongs to it.
#[derive(Debug)]
pub(super) struct SharedMaster {
    pub(super) access: MasterAccess,
    started: Instant,
    /// What the ids of this cluster begin with.
    pub(super) cluster: String,
    master: RefCell<StandaloneMaster>,
    journal: RefCell<MasterJournal>,
    history: RefCell<MasterHistory>,
    connections: RefCell<HashMap<ConnectionNumber, OpenStream>>,
    /// How fast the calls of each principal come.
    paces: RefCell<HashMap<Option<String>, CallPace>>,
    /// How fast each principal asks for reports.
    report_paces: RefCell<HashMap<Option<String>, CallPace>>,
    next_connection: Cell<ConnectionNumber>,
    /// Tells the operator.
    notices: NoticeGate,
    /// Takes the reason for which the master can't go on.
    broken: RefCell<Option<oneshot::Sender<String>>>,
}

/// A connection that events are sent on.
#[derive(Debug)]
struct OpenStream {
    sender: RecordSender,
    encoding: Encoding,
    /// Set if it is a framework's.
    framework: Option<FrameworkStream>,
    /// The task that reads a worker's messages.
    reader: Option<AbortHandle>,
}

/// The stream of a framework.
#[derive(Debug)]
pub(super) struct FrameworkStream {
    /// What the framework's calls must name. Random.
    pub(super) id: String,
    /// Whose credentials the calls must have; `None` if none are needed.
    pub(super) principal: Option<String>,
}

impl SharedMaster {
    /// A master that goes on from its journal, and where the reason comes if it can't go on.
    pub(super) fn new(
        mut journal: MasterJournal,
        options: MasterOptions,
    ) -> (Rc<SharedMaster>, oneshot::Receiver<String>) {
        let (broken, receiver) = oneshot::channel();
        let settings = MasterSettings {
            cluster: journal.cluster().to_owned(),
            term: journal.term(),
            launch_key: journal.launch_key().clone(),
            max_cores: options.max_cores,
            recovery_timeout: options.recovery_timeout,
            worker_timeout: options.worker_timeout,
        };
        let cluster = settings.cluster.clone();
        let master = StandaloneMaster::new(settings, journal.take_entries());
        let mut access = options.access;
        access.is_tls = options.tls.is_some();
        access.answers_all_users = options.is_insecure;
        let shared = SharedMaster {
            access,
            started: Instant::now(),
            cluster,
            master: RefCell::new(master),
            journal: RefCell::new(journal),
            history: RefCell::new(MasterHistory::default()),
            connections: RefCell::new(HashMap::new()),
            paces: RefCell::new(HashMap::new()),
            report_paces: RefCell::default(),
            next_connection: Cell::new(0),
            notices: NoticeGate::new(options.observer),
            broken: RefCell::new(Some(broken)),
        };
        (Rc::new(shared), receiver)
    }

    /// Lets time pass.
    pub(super) fn tick(&self) {
        let now = self.now();
        self.master.borrow_mut().tick(now);
        self.perform();
        self.notices.tick(now);
        let mut history = self.history.borrow_mut();
        if history.is_due(now) {
            history.record(now, &self.report());
        }
    }

    /// A picture of all that the master knows. What frameworks choose is cut.
    pub(super) fn report(&self) -> MasterReport {
        let mut report = self.master.borrow().overview();
        for framework in &mut report.frameworks {
            for text in [&mut framework.name, &mut framework.user] {
                *text = cut(std::mem::take(text), REPORTED_BYTES_MAX);
            }
        }
        report
    }

    /// The executors that haven't ended.
    pub(super) fn executors(&self) -> ExecutorReports {
        self.master.borrow().executors(EXECUTORS_LISTED_MAX)
    }

    /// The figures of the last hour.
    pub(super) fn history(&self) -> HistoryReport {
        self.history.borrow().report()
    }

    /// Drains a worker. Returns whether there is such a worker, with a connection.
    pub(super) fn drain_worker(&self, id: &str, grace: Duration) -> bool {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let is_known = self.master.borrow_mut().drain_worker(id, grace, self.now());
        self.perform();
        is_known
    }

    /// Tears a framework of a principal down. Returns whether there was one.
    pub(super) fn tear_down(&self, framework: &str, principal: Option<&str>) -> bool {
        let is_known = self.master.borrow_mut().tear_down_of(framework, principal, self.now());
        self.perform();
        is_known
    }

    /// Decommissions a worker. Returns whether there is such a worker, with a connection.
    pub(super) fn decommission_worker(&self, id: &str) -> bool {
        let is_known = self.master.borrow_mut().decommission_worker(id, self.now());
        self.perform();
        is_known
    }

    /// Does nothing more of what the master wants done. Connections that end from now on, because the server ends, are
    /// no goodbyes of their clients.
    pub(super) fn stop(&self) {
        self.broken.borrow_mut().take();
    }

    /// Opens a stream of events.
    pub(super) fn open(
        self: &Rc<Self>,
        encoding: Encoding,
        framework: Option<FrameworkStream>,
    ) -> (ConnectionNumber, EventBody) {
        let number = self.next_connection.get();
        self.next_connection.set(number + 1);
        let shared = Rc::downgrade(self);
        let (sender, body) = record_stream(move || {
            if let Some(shared) = shared.upgrade() {
                shared.closed(number);
            }
        });
        let stream = OpenStream { sender, encoding, framework, reader: None };
        self.connections.borrow_mut().insert(number, stream);
        (number, body)
    }

    /// Remembers the task that reads a worker's messages. It ends with the stream.
    pub(super) fn set_reader(&self, number: ConnectionNumber, reader: AbortHandle) {
        match self.connections.borrow_mut().get_mut(&number) {
            Some(stream) => stream.reader = Some(reader),
            None => reader.abort(),
        }
    }

    /// How long what counts as a number of calls of a principal has to wait; `None` if too many wait already.
    pub(super) fn pace_calls(&self, principal: Option<&str>, calls: u32) -> Option<Duration> {
        // Principals are those of a file.
        let mut paces = self.paces.borrow_mut();
        paces.entry(principal.map(str::to_owned)).or_default().take(calls, self.now())
    }

    /// How long a report for a principal has to wait, which counts as more calls the more there is to report; `None` if
    /// too many wait already. Calls of frameworks don't wait for reports.
    pub(super) fn pace_report(&self, principal: Option<String>) -> Option<Duration> {
        let calls = 1 + calls_of(self.master.borrow().items());
        // Principals are those of a file.
        let mut paces = self.report_paces.borrow_mut();
        paces.entry(principal).or_default().take(calls, self.now())
    }

    /// The time since the master's start.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The connection whose calls name this stream, and its principal.
    pub(super) fn connection_of(&self, id: &str) -> Option<(ConnectionNumber, Option<String>)> {
        let connections = self.connections.borrow();
        connections.iter().find_map(|(number, stream)| {
            let framework = stream.framework.as_ref().filter(|framework| framework.id == id)?;
            Some((*number, framework.principal.clone()))
        })
    }

    pub(super) fn framework_subscribes(&self, number: ConnectionNumber, subscribe: Subscribe) {
        self.master.borrow_mut().framework_subscribes(number, subscribe, self.now());
        self.perform();
    }

    pub(super) fn framework_calls(
        &self,
        number: ConnectionNumber,
        call: Call,
    ) -> Result<(), RefusedCall> {
        let called = self.master.borrow_mut().framework_calls(number, call, self.now());
        self.perform();
        called
    }

    pub(super) fn worker_subscribes(
        &self,
        number: ConnectionNumber,
        said: WorkerSubscribe,
        owner: Option<String>,
    ) {
        self.master.borrow_mut().worker_subscribes(number, said, owner, self.now());
        self.perform();
    }

    pub(super) fn worker_calls(
        &self,
        number: ConnectionNumber,
        call: WorkerCall,
    ) -> Result<(), RefusedCall> {
        let called = self.master.borrow_mut().worker_calls(number, call, self.now());
        self.perform();
        called
    }

    /// The number of executors of the framework with this connection.
    pub(super) fn executors_of(&self, number: ConnectionNumber) -> usize {
        self.master.borrow().executors_of(number)
    }

    /// A connection has ended, from whichever side.
    pub(super) fn closed(&self, number: ConnectionNumber) {
        let stream = self.connections.borrow_mut().remove(&number);
        let Some(stream) = stream else { return };
        if let Some(reader) = stream.reader {
            reader.abort();
        }
        self.master.borrow_mut().connection_closed(number, self.now());
        self.perform();
    }

    /// Tells the operator of something, while nothing of the master is borrowed.
    pub(super) fn tell(&self, notice: &MasterNotice) {
        self.notices.tell(notice, self.now());
    }

    /// Does what the master wants done, and tells the operator what has happened.
    fn perform(&self) {
        self.perform_actions();
        let notices = self.master.borrow_mut().take_notices();
        // After its end nobody leaves.
        if self.broken.borrow().is_some() {
            notices.iter().for_each(|notice| self.tell(notice));
        }
    }

    /// The journal can't be written: the master ends.
    fn end_broken(&self, error: &JournalError) {
        let broken = self.broken.borrow_mut().take();
        let why = error.to_string();
        self.tell(&MasterNotice::JournalFailed { why: why.clone() });
        let _ended = broken.map(|broken| broken.send(why));
    }

    /// Does what the master wants done. What can't be recorded isn't done, nor anything after it.
    fn perform_actions(&self) {
        loop {
            let actions = self.master.borrow_mut().take_actions();
            if actions.is_empty() || self.broken.borrow().is_none() {
                return self.compact_journal();
            }
            for action in actions {
                let slow = match action {
                    MasterAction::Record(entry) => {
                        let appended = self.journal.borrow_mut().append(&entry);
                        if let Err(error) = appended {
                            return self.end_broken(&error);
                        }
                        None
                    }
                    MasterAction::TellWorker { to, event } => {
                        self.send(to, |_| frame_event(&event))
                    }
                    MasterAction::TellFramework { to, event } => {
                        self.send(to, |encoding| frame_of(&event, encoding))
                    }
                    MasterAction::Close(number) => {
                        let stream = self.connections.borrow_mut().remove(&number);
                        if let Some(reader) = stream.and_then(|stream| stream.reader) {
                            reader.abort();
                        }
                        None
                    }
                };
                if let Some(number) = slow {
                    self.tell(&MasterNotice::ClientTooSlow);
                    self.connections.borrow_mut().remove(&number);
                    self.master.borrow_mut().connection_closed(number, self.now());
                }
            }
        }
    }

    /// Writes the journal anew if it has become long. Failures that keep the former one are no reason to end.
    fn compact_journal(&self) {
        if self.broken.borrow().is_none() || !self.journal.borrow().is_long() {
            return;
        }
        let entries = self.master.borrow().journal_entries();
        let written = self.journal.borrow_mut().rewrite(&entries);
        match written {
            Ok(None) => {}
            Ok(Some(why)) => self.tell(&MasterNotice::JournalKept { why }),
            Err(error) => self.end_broken(&error),
        }
    }

    /// Sends a frame. Returns the connection if its client reads too slowly.
    fn send(
        &self,
        to: ConnectionNumber,
        frame: impl FnOnce(Encoding) -> Vec<u8>,
    ) -> Option<ConnectionNumber> {
        let connections = self.connections.borrow();
        let stream = connections.get(&to)?;
        (!stream.sender.send(frame(stream.encoding))).then_some(to)
    }
}

fn frame_of(event: &Event, encoding: Encoding) -> Vec<u8> {
    let record = match encoding {
        Encoding::Protobuf => event.encode_to_vec(),
        // Writing to memory can't fail, because all keys of maps are strings.
        Encoding::Json => serde_json::to_vec(event).unwrap_or_default(),
    };
    let mut frame = format!("{}\n", record.len()).into_bytes();
    frame.extend(record);
    frame
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cluster::standalone::master::RegistryEntry;

    /// Goal: a crowd that asks for reports waits, is refused at last, and keeps neither calls nor other principals
    /// waiting. Method: reports for one principal at one moment.
    #[test]
    fn reports_have_their_pace() {
        let folder = tempfile::tempdir().unwrap();
        let journal = MasterJournal::open(&folder.path().join("state")).unwrap();
        let (shared, _broken) = SharedMaster::new(journal, MasterOptions::default());
        let noisy = || shared.pace_report(Some("noisy".to_owned()));
        let asked = (0..100_000).take_while(|_| noisy().is_some()).count();
        assert!((4000..100_000).contains(&asked), "{asked}");
        assert_eq!(shared.pace_report(Some("calm".to_owned())), Some(Duration::ZERO));
        assert_eq!(shared.pace_calls(Some("noisy"), 1), Some(Duration::ZERO));
    }

    /// Goal: a master whose journal can't be written anew goes on. Method: a long journal whose folder has another
    /// name.
    #[test]
    fn a_failed_rewrite_ends_no_master() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        let gone = RegistryEntry::FrameworkGone { id: "n".repeat(60_000) };
        while !journal.is_long() {
            journal.append(&gone).unwrap();
        }
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        let (shared, mut broken) = SharedMaster::new(journal, MasterOptions::default());
        shared.tick();
        assert!(broken.try_recv().is_err());
        assert!(shared.broken.borrow().is_some());
    }
}
