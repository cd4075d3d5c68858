//! The executors that have processes, from their start until they are reaped.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::agent::Room;
use super::exit::Exit;
use super::message::Message;
use super::process::Group;
use super::starts::{Start, Started, Starter};
use super::warden::Warden;
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
    /// Another warden is on its way.
    is_relieved: bool,
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

    /// Has another warden started on a thread of its own, which may hang.
    fn send_for_warden(&self, number: u64, starter: &Starter) -> bool {
        let Starter { shell, within, inbox, .. } = starter.clone();
        let start = self.group.relief(shell, &self.sandbox, within);
        let work = move || {
            // If the cluster has stopped meanwhile, the warden ends with the message.
            let _stopped = inbox.send(Message::Relief { number, warden: start() });
        };
        Builder::new().name("offermill-warden".into()).spawn(work).is_ok()
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
    /// How wardens are started.
    starter: Starter,
    alive: BTreeMap<u64, Executor>,
    /// Those that are not abandoned, by id.
    numbers: HashMap<String, u64>,
    round_at: Instant,
}

impl Executors {
    pub(super) fn new(starter: Starter) -> Executors {
        let (alive, numbers) = (BTreeMap::new(), HashMap::new());
        Executors { starter, alive, numbers, round_at: Instant::now() + ROUND }
    }

    /// Takes over an executor that was started.
    pub(super) fn take_over(&mut self, number: u64, start: Start, started: Started) -> &Executor {
        let Start { id, seat, agent_id, room, port, .. } = start;
        let Started { group, sandbox } = started;
        self.numbers.insert(id.clone(), number);
        let (stage, is_relieved) = (Stage::Running, false);
        self.alive.entry(number).or_insert(Executor {
            id,
            seat,
            agent_id,
            room,
            port,
            stage,
            sandbox,
            group,
            is_relieved,
        })
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

    /// Asks an executor to end before `force_at`.
    pub(super) fn end_before(&mut self, number: u64, force_at: Instant, now: Instant) {
        if let Some(executor) = self.alive.get_mut(&number) {
            executor.end(force_at, now);
        }
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

    /// Another warden has come, or none.
    pub(super) fn relieve(&mut self, number: u64, warden: io::Result<Warden>) {
        let Some(executor) = self.alive.get_mut(&number) else { return };
        executor.is_relieved = false;
        // If there is none now, the next round tries again.
        if let Ok(warden) = warden {
            executor.group.relieve(warden);
        }
    }

    /// Does what is due: kills those whose grace is over, and has wardens replaced that are gone.
    pub(super) fn tend(&mut self, now: Instant) {
        for executor in self.alive.values_mut() {
            executor.force_if_due(now);
        }
        if self.round_at <= now {
            self.round_at = now + ROUND;
            for (number, executor) in &mut self.alive {
                if !executor.is_relieved && executor.group.needs_warden() {
                    executor.is_relieved = executor.send_for_warden(*number, &self.starter);
                }
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
