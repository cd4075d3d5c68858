//! The executors that have processes, from their start until they are reaped.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::agent::Room;
use super::exit::Exit;
use super::message::{Message, Order};
use super::process::{Environment, Group, Unstarted};
use super::sandbox::Sandboxes;
use crate::status::TaskState;

/// No executor is given longer than this to end.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// How often wardens are looked after.
const ROUND: Duration = Duration::from_secs(1);

/// An executor with processes.
pub(super) struct Executor {
    pub(super) id: String,
    pub(super) seat: usize,
    pub(super) agent_id: String,
    pub(super) room: Room,
    pub(super) port: Option<u16>,
    pub(super) stage: Stage,
    pub(super) sandbox: PathBuf,
    group: Group,
}

/// How far an executor has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Running,
    /// Asked to end, and killed at this moment if it hasn't by then.
    Ending {
        force_at: Instant,
    },
    /// Killed.
    Forced,
    /// Killed with its agent, and reported so: its end is no news.
    Abandoned,
}

impl Executor {
    /// The process number.
    pub(super) fn pid(&self) -> i32 {
        self.group.pid()
    }

    /// What there is to report of it.
    pub(super) fn state(&self) -> TaskState {
        match self.stage {
            Stage::Running => TaskState::Running,
            Stage::Ending { .. } | Stage::Forced => TaskState::Killing,
            Stage::Abandoned => TaskState::Gone,
        }
    }

    fn end(&mut self, force_at: Instant, now: Instant) {
        match self.stage {
            Stage::Running => self.group.terminate(),
            Stage::Ending { force_at: sooner } if force_at < sooner => {}
            Stage::Ending { .. } | Stage::Forced | Stage::Abandoned => return,
        }
        self.stage = Stage::Ending { force_at };
        self.force_if_due(now);
    }

    fn force_if_due(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Ending { force_at } if force_at <= now) {
            self.group.kill();
            self.stage = Stage::Forced;
        }
    }
}

/// All executors with processes. They are numbered, so that the end of a process finds its executor
/// whatever happened to the id since.
pub(super) struct Executors {
    sandboxes: Sandboxes,
    environment: Environment,
    inbox: Sender<Message>,
    alive: BTreeMap<u64, Executor>,
    /// Those that are not abandoned, by id.
    numbers: HashMap<String, u64>,
    numbered: u64,
    round_at: Instant,
}

impl Executors {
    pub(super) fn new(
        sandboxes: Sandboxes,
        environment: Environment,
        inbox: Sender<Message>,
    ) -> Executors {
        Executors {
            sandboxes,
            environment,
            inbox,
            alive: BTreeMap::new(),
            numbers: HashMap::new(),
            numbered: 0,
            round_at: Instant::now() + ROUND,
        }
    }

    /// Starts an executor.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(super) fn start(
        &mut self,
        order: Order,
        seat: usize,
        agent_id: &str,
    ) -> Result<&Executor, Unstarted> {
        let sandbox = self
            .sandboxes
            .make(agent_id, &order.executor)
            .map_err(|error| Unstarted::by("the sandbox can't be made", &error))?;
        let path = sandbox.path.clone();
        let number = self.numbered;
        self.numbered += 1;
        let inbox = self.inbox.clone();
        let ended = move || {
            let _ = inbox.send(Message::Ended(number));
        };
        let group = Group::start(&order.command, self.environment, sandbox, ended)?;
        self.numbers.insert(order.executor.clone(), number);
        Ok(self.alive.entry(number).or_insert(Executor {
            id: order.executor,
            seat,
            agent_id: agent_id.to_owned(),
            room: order.room,
            port: order.port,
            stage: Stage::Running,
            sandbox: path,
            group,
        }))
    }

    pub(super) fn get(&self, id: &str) -> Option<&Executor> {
        self.alive.get(self.numbers.get(id)?)
    }

    /// All that were not abandoned.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Executor> {
        self.alive.values().filter(|executor| executor.stage != Stage::Abandoned)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Asks an executor to end within `grace`. A second time, only a shorter grace counts. `None`
    /// if there is none.
    pub(super) fn end(&mut self, id: &str, grace: Duration, now: Instant) -> Option<&Executor> {
        let executor = self.alive.get_mut(self.numbers.get(id)?)?;
        executor.end(now + grace.min(GRACE_MAX), now);
        Some(executor)
    }

    /// Asks all executors to end within `grace`.
    pub(super) fn end_all(&mut self, grace: Duration, now: Instant) {
        for executor in self.alive.values_mut() {
            executor.end(now + grace.min(GRACE_MAX), now);
        }
    }

    /// Kills all executors of an agent, as if the machine had gone; these are their ids.
    pub(super) fn abandon(&mut self, agent_id: &str) -> Vec<String> {
        let mut abandoned = Vec::new();
        for executor in self.alive.values_mut() {
            if executor.agent_id == agent_id && executor.stage != Stage::Abandoned {
                executor.group.kill();
                executor.stage = Stage::Abandoned;
                self.numbers.remove(&executor.id);
                abandoned.push(executor.id.clone());
            }
        }
        abandoned
    }

    /// Clears up after the executor with this number, whose process has ended.
    pub(super) fn reap(&mut self, number: u64) -> Option<(Executor, Exit)> {
        let mut executor = self.alive.remove(&number)?;
        if self.numbers.get(&executor.id) == Some(&number) {
            self.numbers.remove(&executor.id);
        }
        let exit = executor.group.reap();
        Some((executor, exit))
    }

    /// Does what is due: kills those whose grace is over, and replaces wardens that are gone.
    pub(super) fn tend(&mut self, now: Instant) {
        for executor in self.alive.values_mut() {
            executor.force_if_due(now);
        }
        if self.round_at <= now {
            self.round_at = now + ROUND;
            for executor in self.alive.values_mut() {
                // If it fails now, the next round tries again.
                let _ = executor.group.keep_warden(&executor.sandbox);
            }
        }
    }

    /// When something will be due.
    pub(super) fn tend_next(&self) -> Option<Instant> {
        let forces = self.alive.values().filter_map(|executor| match executor.stage {
            Stage::Ending { force_at } => Some(force_at),
            _ => None,
        });
        let round = (!self.alive.is_empty()).then_some(self.round_at);
        forces.chain(round).min()
    }
}
