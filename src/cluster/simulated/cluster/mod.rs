//! Master and agents. What each does is Mesos' way, as far as a framework can tell:
//!
//! | here | in Mesos 1.11 |
//! |---|---|
//! | `offering.rs` | `HierarchicalAllocatorProcess::__allocate`, `Master::offer`, `Master::accept`, `Master::decline`, `removeOffer` |
//! | `tasks.rs` | the agent's executors and its `TaskStatusUpdateManager`; `Master::kill`, `Master::acknowledge` |
//! | `membership.rs` | `Master::exited`, `markUnreachable`, `registerSlave`, `reregisterSlave`, `reconcileKnownSlave`; a new leader; `deactivate` |
//! | `reconciling.rs` | `Master::reconcile` |
//!
//! The framework is partition-aware and has an unlimited failover timeout.

mod membership;
mod offering;
mod outstanding;
mod reconciling;
mod tasks;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::agenda::{Agenda, Item, TaskRef};
use super::network::{Network, Window};
use super::rng::Rng;
use super::scenario::Scenario;
use super::wire::{AgentRef, Amounts, SCALARS};
use outstanding::Outstanding;

use crate::status::{TaskState, UpdateReason};

/// The purposes of the cluster's dice.
const MACHINES: u64 = 2;
const CHANCE: u64 = 3;
const NETWORK: u64 = 4;

pub(super) struct Cluster {
    pub(super) machines: Vec<Machine>,
    tasks: Vec<Task>,
    vacant: Vec<u32>,
    names: HashMap<Box<str>, u32, FixedState>,
    offers: Outstanding,
    next_uuid: u64,
    /// Whether a master leads, since when, and how many there were.
    leads: bool,
    leads_since: u64,
    masters: u32,
    subscribed: bool,
    suppressed: bool,
    pub(super) network: Network,
    pub(super) dice: Rng,
    /// What befalls executors and offers at the moment.
    pub(super) failing: Window,
    pub(super) hanging: Window,
    pub(super) outliving: Window,
    pub(super) rescinding: Window,
    lifetime: u64,
    failures_percent: u8,
    /// Executors live on from now on.
    calm: bool,
}

/// Whether an agent can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// It runs, but nothing comes through.
    Cut,
    Dead,
}

/// What the master holds of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Active,
    /// Its link broke a moment ago.
    Disconnected,
    Unreachable,
    /// This master has not heard of it yet.
    Absent,
}

pub(super) struct Machine {
    pub(super) incarnation: u32,
    pub(super) link: Link,
    pub(super) view: View,
    pub(super) zone: u32,
    pub(super) capacity: Amounts,
    /// Neither used nor offered, by the master's account.
    pub(super) free: Amounts,
    refuse_until: u64,
    /// Changes whenever the link does.
    serial: u32,
    /// The cells of its tasks, until their end is acknowledged.
    tasks: Vec<u32>,
}

/// How far an executor has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The order to launch is on its way.
    Ordered,
    Starting,
    Running,
    Ended,
}

struct Task {
    name: Box<str>,
    serial: u32,
    agent: AgentRef,
    amounts: Amounts,
    life: Life,
    /// It never gets up.
    hung: bool,
    /// It outlives kills.
    outlives: bool,
    /// Whether the master knows of it, what it knows, and whether it counts its resources as used.
    visible: bool,
    known: TaskState,
    held: bool,
    /// Updates that are not acknowledged, in order; the first is on its way.
    pending: VecDeque<Pending>,
}

#[derive(Clone, Copy)]
struct Pending {
    uuid: u64,
    state: TaskState,
    reason: UpdateReason,
}

/// An executor as the cluster has it.
pub(super) struct Fact<'a> {
    pub(super) name: &'a str,
    /// Whether the agent is up, in reach and known to the master.
    pub(super) in_reach: bool,
}

impl Cluster {
    pub(super) fn new(scenario: &Scenario) -> Cluster {
        let mut dice = Rng::new(scenario.seed, MACHINES);
        let machines = (0..scenario.agents).map(|number| Machine::new(scenario, number, &mut dice));
        Cluster {
            machines: machines.collect(),
            tasks: Vec::new(),
            vacant: Vec::new(),
            names: HashMap::default(),
            offers: Outstanding::default(),
            next_uuid: 1,
            leads: true,
            leads_since: 0,
            masters: 0,
            subscribed: false,
            suppressed: false,
            network: Network::new(Rng::new(scenario.seed, NETWORK)),
            dice: Rng::new(scenario.seed, CHANCE),
            failing: Window::default(),
            hanging: Window::default(),
            outliving: Window::default(),
            rescinding: Window::default(),
            lifetime: u64::try_from(scenario.lifetime.as_millis()).unwrap_or(u64::MAX),
            failures_percent: scenario.failures_percent,
            calm: false,
        }
    }

    /// What is due in the cluster.
    pub(super) fn happen(&mut self, agenda: &mut Agenda, item: Item) {
        match item {
            Item::Asked { stream, ask } => self.asked(agenda, stream, ask),
            Item::Allocate => self.cycle(agenda),
            Item::Storm => {
                self.forget_refusals();
                self.offer(agenda);
            }
            Item::Rescind { offer } => self.rescind(agenda, offer),
            Item::TaskArrives(task) => self.task_arrives(agenda, task),
            Item::TaskRuns(task) => self.task_runs(agenda, task),
            Item::TaskEnds(task, badly) => self.task_ends(agenda, task, badly),
            Item::KillArrives(task, grace) => self.kill_arrives(agenda, task, grace),
            Item::TaskKilled(task) => self.end(agenda, task, TaskState::Killed),
            Item::UpdateArrives(task, uuid) => self.update_arrives(agenda, task, uuid),
            Item::UpdateAgain(task, uuid, again) => self.update_again(agenda, task, uuid, again),
            Item::MachineBack { machine, serial, new_id } => {
                self.machine_back(agenda, machine, serial, new_id);
            }
            Item::MachineReached { machine, serial } => {
                self.machine_reached(agenda, machine, serial);
            }
            Item::MachineTimesOut { machine, serial } => {
                self.machine_times_out(agenda, machine, serial);
            }
            Item::MachineRegisters { machine, serial } => {
                self.machine_registers(agenda, machine, serial);
            }
            Item::MasterBack { serial } => self.master_back(agenda, serial),
            // These are the framework's and the simulation's.
            Item::Told { .. }
            | Item::Subscribe
            | Item::Answer { .. }
            | Item::Poll
            | Item::Fault { .. }
            | Item::Heal
            | Item::Sample
            | Item::ShutdownTimesOut => {}
        }
    }

    /// Whether the framework has a subscription.
    pub(super) fn subscribed(&self) -> bool {
        self.subscribed
    }

    /// An agent's present id.
    pub(super) fn agent(&self, machine: u32) -> AgentRef {
        let incarnation = self.machines.get(machine as usize).map_or(0, |it| it.incarnation);
        AgentRef { machine, incarnation }
    }

    /// Every executor that the cluster knows of and that has not ended.
    pub(super) fn executors(&self) -> impl Iterator<Item = Fact<'_>> {
        let alive = self.tasks.iter().filter(|task| task.alive());
        alive.map(|task| {
            let machine = &self.machines[task.agent.machine as usize];
            let in_reach = machine.link == Link::Up && machine.view == View::Active;
            Fact { name: &task.name, in_reach }
        })
    }

    /// How many agents are up and in reach, and how many executors run.
    pub(super) fn census(&self) -> (u32, u32) {
        let up = self.machines.iter().filter(|machine| machine.link == Link::Up).count();
        let running = self.tasks.iter().filter(|task| task.life == Life::Running).count();
        (up as u32, running as u32)
    }

    /// How many agents hold how many executors, in ascending order.
    pub(super) fn spread(&self) -> Vec<(u32, u32)> {
        let mut agents = BTreeMap::new();
        for machine in &self.machines {
            let own = machine.tasks.iter().map(|cell| &self.tasks[*cell as usize]);
            let alive = own.filter(|task| task.alive()).count() as u32;
            *agents.entry(alive).or_insert(0) += 1;
        }
        agents.into_iter().collect()
    }

    /// What agents that are up and in reach have left beside their executors, and their zones.
    pub(super) fn rooms(&self) -> impl Iterator<Item = (AgentRef, u32, Amounts)> {
        let machines = (0..).zip(&self.machines);
        let active = machines.filter(|(_, it)| it.link == Link::Up && it.view == View::Active);
        active.map(|(number, machine)| {
            let mut free = machine.capacity;
            for cell in &machine.tasks {
                let task = &self.tasks[*cell as usize];
                if task.alive() || task.held {
                    free.take(&task.amounts);
                }
            }
            (self.agent(number), machine.zone, free)
        })
    }

    /// The task, unless its cell is another's by now.
    fn task(&mut self, task: TaskRef) -> Option<&mut Task> {
        self.tasks.get_mut(task.cell as usize).filter(|found| found.serial == task.serial)
    }

    fn reference(&self, cell: u32) -> TaskRef {
        TaskRef { cell, serial: self.tasks[cell as usize].serial }
    }

    fn machine_of(&self, agent: AgentRef) -> Option<&Machine> {
        let machine = self.machines.get(agent.machine as usize)?;
        (machine.incarnation == agent.incarnation).then_some(machine)
    }
}

impl Task {
    /// Whether there is a process, or an order to start one.
    fn alive(&self) -> bool {
        self.serial % 2 == 1 && self.life != Life::Ended
    }

    /// Whether the master was told of its end.
    fn known_ended(&self) -> bool {
        matches!(
            self.known,
            TaskState::Finished | TaskState::Failed | TaskState::Killed | TaskState::Dropped
        )
    }
}

impl Machine {
    fn new(scenario: &Scenario, number: u32, dice: &mut Rng) -> Machine {
        let larger = |dice: &mut Rng, size: u64| size + dice.roll(size / 2 + 1);
        let cores = larger(dice, u64::from(scenario.agent_cores)) * 1000;
        let memory = larger(dice, scenario.agent_memory.get()) * 1000;
        let reserved = dice.percent(scenario.reserved_percent);
        let split =
            |amount: u64| if reserved { (amount - amount / 2, amount / 2) } else { (amount, 0) };
        let ((cpus, own_cpus), (mem, own_mem)) = (split(cores), split(memory));
        let mut scalars = [0; SCALARS.len()];
        scalars.copy_from_slice(&[cpus, own_cpus, mem, own_mem, dice.roll(3) * 1000, 1_000_000]);
        let capacity = Amounts { scalars, port: true };
        Machine {
            incarnation: 0,
            link: Link::Up,
            view: View::Active,
            zone: number % scenario.zones,
            capacity,
            free: capacity,
            refuse_until: 0,
            serial: 0,
            tasks: Vec::new(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
