//! Starts that are under way: each on a thread of its own, as a file system or a warden may let it wait.
//!
//! A start that hangs delays nothing else: not other executors, not kills, not the stop. It is given up when its time
//! is over, or when the grace of a kill that came meanwhile is; the executor's end is reported then. What such a start
//! brings forth later is killed at once. Its thread can't be ended; when too many threads hang, nothing is started any
//! more until some come back.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::agent::Room;
use super::message::{Message, Order};
use super::process::{Blame, Environment, Group, Unstarted};
use super::sandbox::Sandboxes;
use super::waiting::QueuedLaunch;

/// As many are begun at a time …
const AT_ONCE_MAX: usize = 8;
/// … not counting those that have taken longer than this.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// As many threads may hang.
const HANGING_MAX: usize = 64;
/// No start is killed with a longer grace than this.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A start that is under way.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) id: String,
    pub(super) seat: usize,
    pub(super) agent_id: String,
    pub(super) room: Room,
    pub(super) port: Option<u16>,
    /// If it was killed meanwhile: when it is ended by force.
    pub(super) force_at: Option<Instant>,
    /// The executor has ended already.
    pub(super) has_ended: bool,
    begun: Instant,
    give_up_at: Instant,
}

/// What a start has brought forth.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) sandbox: PathBuf,
}

/// How executors are started.
#[derive(Clone, Debug)]
pub(super) struct Starter {
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) environment: Environment,
    /// What wardens run in.
    pub(super) shell: PathBuf,
    /// How long a start may take.
    pub(super) within: Duration,
    pub(super) inbox: Sender<Message>,
}

/// All starts that are under way, numbered like executors.
#[derive(Debug)]
pub(super) struct Starts {
    starter: Starter,
    under_way: BTreeMap<u64, Start>,
    numbers: HashMap<String, u64>,
    numbered: u64,
    /// Starts that were given up and have not come to an end.
    hanging: usize,
}

impl Starts {
    pub(super) fn new(starter: Starter) -> Starts {
        let (under_way, numbers) = (BTreeMap::new(), HashMap::new());
        Starts { starter, under_way, numbers, numbered: 0, hanging: 0 }
    }

    /// Begins a start.
    ///
    /// # Errors
    /// Why it could not be begun, and what was to be started.
    pub(super) fn begin(
        &mut self,
        waiting: QueuedLaunch,
        now: Instant,
    ) -> Result<(), Box<(Start, Unstarted)>> {
        let QueuedLaunch { order, seat, agent_id } = waiting;
        let start = Start {
            id: order.executor.clone(),
            seat,
            agent_id: agent_id.clone(),
            room: order.room,
            port: order.port,
            force_at: None,
            has_ended: false,
            begun: now,
            give_up_at: now + self.starter.within,
        };
        if self.hanging >= HANGING_MAX {
            let why = format!("{HANGING_MAX} starts before it hang");
            return Err(Box::new((start, Unstarted { why, blame: Blame::Executor })));
        }
        let number = self.numbered;
        self.numbered += 1;
        let starter = self.starter.clone();
        let work = move || starter.report(number, &order, &agent_id);
        if let Err(error) = Builder::new().name("offermill-start".into()).spawn(work) {
            let unstarted = Unstarted::by("no thread can be started", &error);
            return Err(Box::new((start, unstarted)));
        }
        self.numbers.insert(start.id.clone(), number);
        self.under_way.insert(number, start);
        Ok(())
    }

    /// Whether another may be begun.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.quick(now).count() < AT_ONCE_MAX
    }

    /// When there will be room for another or one is given up, if nothing else happens.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let room = self.quick(now).map(|start| start.begun + SLOW_AFTER).min();
        let room = room.filter(|_| !self.has_room(now));
        self.under_way.values().map(Start::due).chain(room).min()
    }

    fn quick(&self, now: Instant) -> impl Iterator<Item = &Start> {
        self.under_way.values().filter(move |start| now < start.begun + SLOW_AFTER)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Start> {
        self.under_way.get(self.numbers.get(id)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Start> {
        self.under_way.values()
    }

    /// Has an executor ended within `grace`, started or not. `None` if it isn't being started, else whether this is the
    /// first kill.
    pub(super) fn kill(&mut self, id: &str, grace: Duration, now: Instant) -> Option<bool> {
        let start = self.under_way.get_mut(self.numbers.get(id)?)?;
        Some(start.kill(grace, now))
    }

    /// Has all ended within `grace`.
    pub(super) fn kill_all(&mut self, grace: Duration, now: Instant) {
        for start in self.under_way.values_mut() {
            start.kill(grace, now);
        }
    }

    /// The start with this number has come to an end; `None` if it was given up before.
    pub(super) fn take(&mut self, number: u64) -> Option<Start> {
        let start = self.remove(number);
        if start.is_none() {
            self.hanging = self.hanging.saturating_sub(1);
        }
        start
    }

    /// The executor with this number has ended; `false` if it isn't being started.
    pub(super) fn note_end(&mut self, number: u64) -> bool {
        let Some(start) = self.under_way.get_mut(&number) else { return false };
        start.has_ended = true;
        true
    }

    /// Gives up those whose time is over.
    pub(super) fn give_up(&mut self, now: Instant) -> Vec<Start> {
        self.give_up_if(|start| start.due() <= now)
    }

    /// Gives up those on an agent.
    pub(super) fn abandon(&mut self, agent_id: &str) -> Vec<Start> {
        self.give_up_if(|start| start.agent_id == agent_id)
    }

    fn give_up_if(&mut self, is_over: impl Fn(&Start) -> bool) -> Vec<Start> {
        let over = self.under_way.iter().filter(|(_, start)| is_over(start));
        let numbers: Vec<u64> = over.map(|(number, _)| *number).collect();
        self.hanging += numbers.len();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<Start> {
        let start = self.under_way.remove(&number)?;
        self.numbers.remove(&start.id);
        Some(start)
    }
}

impl Start {
    /// When it is given up.
    fn due(&self) -> Instant {
        self.force_at.map_or(self.give_up_at, |force_at| force_at.min(self.give_up_at))
    }

    fn kill(&mut self, grace: Duration, now: Instant) -> bool {
        let is_first = self.force_at.is_none();
        let force_at = now + grace.min(GRACE_MAX);
        self.force_at = Some(self.force_at.map_or(force_at, |sooner| sooner.min(force_at)));
        is_first
    }
}

impl Starter {
    /// Starts an executor, and reports what came of it.
    fn report(self, number: u64, order: &Order, agent_id: &str) {
        let started = self.start(number, order, agent_id);
        let sent = self.inbox.send(Message::Started { number, started });
        // The cluster has stopped meanwhile.
        if let Err(SendError(Message::Started { started: Ok(mut started), .. })) = sent {
            let _how = started.group.reap();
        }
    }

    fn start(&self, number: u64, order: &Order, agent_id: &str) -> Result<Started, Unstarted> {
        let sandbox = self
            .sandboxes
            .make(agent_id, &order.executor)
            .map_err(|error| Unstarted::by("the sandbox can't be made", &error))?;
        let path = sandbox.path.clone();
        let inbox = self.inbox.clone();
        let ended = move || {
            let _ = inbox.send(Message::Ended(number));
        };
        let group = Group::start(self, &order.command, sandbox, ended)?;
        Ok(Started { group, sandbox: path })
    }
}
