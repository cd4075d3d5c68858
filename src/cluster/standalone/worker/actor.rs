//! The worker's thread: takes what happens to the connection and to processes, and does what the worker's logic says.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep_until, timeout};

use super::config::WorkerConfig;
use super::dialer::Dialer;
use super::identity::IdentityFile;
use super::link::{Link, LinkEnd, LinkEvent};
use super::notice::{WorkerEnd, WorkerNotice, WorkerObserver};
use super::processes::WorkerProcesses;
use super::state::WorkerState;
use super::step::{ExitReason, WorkerAction, WorkerInput, WorkerTime};
use crate::cluster::process::ProcessEvent;
use crate::cluster::standalone::protocol::{MESSAGE_BYTES_MAX, WorkerCall, frame_call};
use crate::cluster::task_host::HostEvent;

/// The maximum time that the last message may take to be sent.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// A message to the worker's thread.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Process(ProcessEvent),
    /// Something of the connection to the host of tasks with this id.
    Host(String, HostEvent),
    /// The worker is to end its executors, and then itself.
    Stop,
}

/// The state of the thread.
pub(super) struct WorkerActor {
    pub(super) config: WorkerConfig,
    pub(super) inbox: UnboundedReceiver<WorkerMessage>,
    pub(super) state: WorkerState,
    pub(super) processes: WorkerProcesses,
    pub(super) identity: IdentityFile,
    pub(super) dialer: Dialer,
    pub(super) link: Option<Link>,
    pub(super) observer: WorkerObserver,
    pub(super) began: Instant,
    /// The interval of heartbeats on the present connection.
    pub(super) heartbeat: Duration,
    /// When the next heartbeat is sent.
    pub(super) heartbeat_at: Instant,
    /// How the worker ends, once that is due.
    pub(super) end: Option<WorkerEnd>,
}

/// What the thread has waited for.
enum Woken {
    Message(WorkerMessage),
    Link(LinkEvent),
    Time,
}

impl WorkerActor {
    /// Runs until the worker has ended.
    pub(super) async fn run(mut self) -> WorkerEnd {
        loop {
            let now = Instant::now();
            let mut inputs: VecDeque<WorkerInput> = self.processes.run_due(now).into();
            inputs.push_back(WorkerInput::Tick);
            self.handle(inputs);
            if let Some(end) = self.end.take() {
                self.say_farewell().await;
                return end;
            }
            self.dial_if_due(now);
            let inputs = match self.wait().await {
                Woken::Message(WorkerMessage::Process(event)) => {
                    self.processes.handle(event, Instant::now()).into()
                }
                Woken::Message(WorkerMessage::Host(host, event)) => {
                    self.processes.on_host_event(&host, event, Instant::now()).into()
                }
                Woken::Message(WorkerMessage::Stop) => {
                    VecDeque::from([WorkerInput::Leave { grace: self.config.grace }])
                }
                Woken::Link(event) => self.on_link(event).into_iter().collect(),
                Woken::Time => VecDeque::new(),
            };
            self.handle(inputs);
        }
    }

    /// Waits for the next message, or the next time at which something is due.
    async fn wait(&mut self) -> Woken {
        let now = Instant::now();
        let tick = self.state.next_tick().map(|since_start| self.began + since_start);
        let heartbeat = self.state.is_subscribed().then_some(self.heartbeat_at);
        let dial = self.link.is_none().then(|| self.dialer.next_at());
        let due = [self.processes.next_due(now), tick, heartbeat, dial];
        let due = due.into_iter().flatten().min().unwrap_or(now + self.config.heartbeat);
        let events = async {
            match &mut self.link {
                Some(link) => link.events.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Ends of executors come first: they are reported with the next registration if there is one.
            biased;
            Some(message) = self.inbox.recv() => Woken::Message(message),
            Some(event) = events => Woken::Link(event),
            () = sleep_until(due.into()) => Woken::Time,
        }
    }

    fn dial_if_due(&mut self, now: Instant) {
        if self.link.is_none() && self.dialer.next_at() <= now {
            self.link = Some(self.dialer.dial(&self.config));
        } else if self.state.is_subscribed() && self.heartbeat_at <= now {
            self.heartbeat_at = now + self.heartbeat;
            self.send(&WorkerCall::Heartbeat);
        }
    }

    fn on_link(&mut self, event: LinkEvent) -> Option<WorkerInput> {
        match event {
            LinkEvent::Connected(reply) => {
                let frame = self.registration();
                if let Some(link) = &mut self.link {
                    link.register(reply, frame);
                }
                None
            }
            LinkEvent::Event(event) => Some(WorkerInput::Event(*event)),
            LinkEvent::Ended(end) => {
                self.link = None;
                if let LinkEnd::Unauthorized(why) = &end
                    && !self.dialer.was_registered()
                {
                    let why = format!("{}: {why}", self.dialer.master());
                    self.end = Some(WorkerEnd::Refused { why });
                } else {
                    let notice = self.dialer.on_end(end);
                    notice.into_iter().for_each(|notice| (self.observer)(notice));
                }
                Some(WorkerInput::Disconnected)
            }
        }
    }

    /// The first message of a connection. If it is too long, sentences for people and the folders of tasks are left
    /// out.
    fn registration(&mut self) -> Vec<u8> {
        let now = self.now();
        let mut call = self.state.subscribe(now);
        let frame = frame_call(&call);
        match &mut call {
            WorkerCall::Subscribe(subscribe) if frame.len() > MESSAGE_BYTES_MAX => {
                for update in &mut subscribe.unacknowledged {
                    update.message = None;
                    update.folder = None;
                }
                frame_call(&call)
            }
            _ => frame,
        }
    }

    fn now(&self) -> WorkerTime {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WorkerTime { since_start: self.began.elapsed(), unix: unix.as_secs_f64() }
    }

    fn send(&mut self, call: &WorkerCall) {
        let is_taken = self.link.as_ref().is_none_or(|link| link.send(frame_call(call)));
        if !is_taken {
            // What wasn't sent is listed in the next registration.
            self.link = None;
            let why = "it doesn't read what it is sent".to_owned();
            let notice = self.dialer.on_end(LinkEnd::Lost(why));
            notice.into_iter().for_each(|notice| (self.observer)(notice));
            let now = self.now();
            let _nothing = self.state.handle(WorkerInput::Disconnected, now);
        }
    }

    /// Sends what waits to be sent.
    async fn say_farewell(&mut self) {
        if let Some(link) = self.link.take() {
            // The master may be slow.
            let _late = timeout(FAREWELL_MAX, link.finish()).await;
        }
    }

    /// Lets the worker's logic handle inputs, and does what it says.
    fn handle(&mut self, mut inputs: VecDeque<WorkerInput>) {
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            for action in self.state.handle(input, now) {
                inputs.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: WorkerAction) -> Vec<WorkerInput> {
        match action {
            WorkerAction::Persist { id, term } => {
                if let Err(error) = self.identity.write(&id, term) {
                    let why = format!("the worker's id and term can't be written: {error}");
                    (self.observer)(WorkerNotice::Trouble { why });
                }
                Vec::new()
            }
            WorkerAction::Send(call) => {
                self.send(&call);
                Vec::new()
            }
            WorkerAction::Changed(update) => {
                (self.observer)(WorkerNotice::Executor(update));
                Vec::new()
            }
            WorkerAction::Drains { executors, grace } => {
                (self.observer)(WorkerNotice::Drains { executors, grace });
                Vec::new()
            }
            WorkerAction::Disconnect { why } => {
                self.link = None;
                let notice = self.dialer.on_end(LinkEnd::Lost(why));
                notice.into_iter().for_each(|notice| (self.observer)(notice));
                Vec::new()
            }
            WorkerAction::Start(launch) => {
                let worker_id = self.state.id().unwrap_or_default().to_owned();
                self.processes.start(*launch, &worker_id)
            }
            WorkerAction::End { key, grace } => self.processes.end(&key, grace, Instant::now()),
            WorkerAction::Registered { id, term, heartbeat } => {
                self.heartbeat = heartbeat.map_or(self.config.heartbeat, Duration::from_millis);
                self.heartbeat_at = Instant::now() + self.heartbeat;
                self.dialer.on_registered();
                let master = self.dialer.master().to_string();
                (self.observer)(WorkerNotice::Registered { master, id, term });
                Vec::new()
            }
            WorkerAction::Exit(reason) => {
                self.end = Some(match reason {
                    ExitReason::Left => WorkerEnd::Left {
                        told: self.state.is_subscribed(),
                        forced: self.processes.has_forced(),
                    },
                    ExitReason::Refused { why } => WorkerEnd::Refused { why },
                });
                Vec::new()
            }
        }
    }
}
