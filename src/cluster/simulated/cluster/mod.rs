//! The simulated master and agents. As far as a framework can observe, they behave as Mesos does:
//!
//! | here | in Mesos 1.11 |
//! |---|---|
//! | `offers.rs` | `HierarchicalAllocatorProcess::__allocate`, `Master::offer`, `Master::accept`, `Master::decline`, `removeOffer` |
//! | `tasks.rs` | the agent's executors and its `TaskStatusUpdateManager`; `Master::kill`, `Master::acknowledge` |
//! | `membership.rs` | `Master::exited`, `markUnreachable`, `registerSlave`, `reregisterSlave`, `reconcileKnownSlave`; a new leader; `deactivate` |
//! | `reconciliation.rs` | `Master::reconcile` |
//! | `hosts.rs` | `Slave::executorTerminated`, `Slave::runTask`: an executor with several tasks |
//! | `late.rs` | nothing: a cluster that chooses the agents itself, as Kubernetes does |
//!
//! The framework is partition-aware and has an unlimited failover timeout.

mod hosts;
mod late;
mod membership;
mod offers;
mod outstanding;
mod reconciliation;
mod tasks;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::event_queue::{EventQueue, SimEvent, TaskRef};
use super::network::{FaultWindow, SimNetwork};
use super::rng::Rng;
use super::scenario::Scenario;
use super::wire::{AgentRef, Amounts, SCALARS};
use late::LateBinding;
use outstanding::OutstandingOffers;

use crate::launch::Hosting;
use crate::status::{TaskState, UpdateReason};

/// The streams of random numbers that the cluster uses.
const MACHINES_STREAM: u64 = 2;
const CLUSTER_STREAM: u64 = 3;
const NETWORK_STREAM: u64 = 4;

/// The master, the agents and their executors.
pub(super) struct Cluster {
    pub(super) machines: Vec<Machine>,
    tasks: Vec<SimTask>,
    vacant: Vec<u32>,
    names: HashMap<Box<str>, u32, FixedState>,
    /// The executors that have begun, if that is asked for.
    begun: Option<HashSet<Box<str>, FixedState>>,
    offers: OutstandingOffers,
    next_uuid: u64,
    /// Whether a master leads.
    leads: bool,
    /// The time since which it leads.
    leads_since: u64,
    /// The number of earlier masters.
    masters: u32,
    subscribed: bool,
    suppressed: bool,
    pub(super) network: SimNetwork,
    pub(super) rng: Rng,
    /// Faults of executors and offers.
    pub(super) failing: FaultWindow,
    pub(super) hanging: FaultWindow,
    pub(super) outliving: FaultWindow,
    pub(super) rescinding: FaultWindow,
    lifetime: u64,
    failures_percent: u8,
    /// Set when faults are over: executors no longer end by themselves.
    faults_over: bool,
    /// What it does if it chooses the agents.
    pub(super) late: Option<LateBinding>,
}

/// Whether an agent can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentLink {
    Up,
    /// The agent runs, but no messages get through.
    Cut,
    Dead,
}

/// An agent's state at the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MasterView {
    Active,
    /// The connection broke, and the master waits for the agent.
    Disconnected,
    Unreachable,
    /// The agent has not registered with this master yet.
    Absent,
}

/// A machine with an agent.
pub(super) struct Machine {
    pub(super) incarnation: u32,
    pub(super) link: AgentLink,
    pub(super) view: MasterView,
    pub(super) zone: u32,
    pub(super) capacity: Amounts,
    /// The resources that are neither used nor offered, as the master counts them.
    pub(super) free: Amounts,
    refuse_until: u64,
    /// Changes whenever `link` does.
    serial: u32,
    /// The cells of its tasks. A task keeps its cell until its end is acknowledged.
    tasks: Vec<u32>,
}

/// The phases of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskPhase {
    /// The launch has not arrived at the agent.
    Ordered,
    Starting,
    Running,
    Ended,
}

/// An executor: the master's and the agent's state of it.
struct SimTask {
    name: Box<str>,
    serial: u32,
    agent: AgentRef,
    amounts: Amounts,
    hosting: Hosting,
    phase: TaskPhase,
    /// Whether it stays in startup or, if it has no agent yet, without one.
    hung: bool,
    /// Whether the cluster names its agent.
    is_named: bool,
    /// Whether it survives kills.
    outlives: bool,
    /// Whether the master knows the task.
    visible: bool,
    /// The state that the master knows.
    known: TaskState,
    /// Whether the master counts its resources as used.
    held: bool,
    /// Unacknowledged updates in order. The first one has been sent.
    pending: VecDeque<PendingUpdate>,
}

/// An update that the framework has not acknowledged.
#[derive(Clone, Copy)]
struct PendingUpdate {
    uuid: u64,
    state: TaskState,
    reason: UpdateReason,
}

/// An executor that has not ended.
pub(super) struct ClusterExecutor<'a> {
    pub(super) name: &'a str,
    /// Whether its agent is up, reachable and registered.
    pub(super) in_reach: bool,
}

impl Cluster {
    pub(super) fn new(scenario: &Scenario) -> Cluster {
        let mut rng = Rng::new(scenario.seed, MACHINES_STREAM);
        let machines = (0..scenario.agents).map(|number| Machine::new(scenario, number, &mut rng));
        Cluster {
            machines: machines.collect(),
            tasks: Vec::new(),
            vacant: Vec::new(),
            names: HashMap::default(),
            begun: scenario.has_work_queue().then(HashSet::default),
            offers: OutstandingOffers::default(),
            next_uuid: 1,
            leads: true,
            leads_since: 0,
            masters: 0,
            subscribed: false,
            suppressed: false,
            network: SimNetwork::new(Rng::new(scenario.seed, NETWORK_STREAM)),
            rng: Rng::new(scenario.seed, CLUSTER_STREAM),
            failing: FaultWindow::default(),
            hanging: FaultWindow::default(),
            outliving: FaultWindow::default(),
            rescinding: FaultWindow::default(),
            lifetime: u64::try_from(scenario.lifetime.as_millis()).unwrap_or(u64::MAX),
            failures_percent: scenario.failures_percent,
            faults_over: false,
            late: scenario.binds_late.then(LateBinding::default),
        }
    }

    /// Processes an event of the cluster.
    pub(super) fn process(&mut self, events: &mut EventQueue, item: SimEvent) {
        match item {
            SimEvent::CallArrives { stream, call } => self.receive(events, stream, call),
            SimEvent::Allocate => self.allocate(events),
            SimEvent::Storm => {
                self.forget_refusals();
                self.offer(events);
            }
            SimEvent::Rescind { offer } => self.rescind(events, offer),
            SimEvent::TaskArrives(task) => self.task_arrives(events, task),
            SimEvent::TaskRuns(task) => self.task_runs(events, task),
            SimEvent::TaskEnds(task, badly) => self.task_ends(events, task, badly),
            SimEvent::KillArrives(task, grace) => self.kill_arrives(events, task, grace),
            SimEvent::TaskKilled(task) => self.end(events, task, TaskState::Killed),
            SimEvent::UpdateArrives(task, uuid) => self.update_arrives(events, task, uuid),
            SimEvent::UpdateAgain(task, uuid, again) => {
                self.update_again(events, task, uuid, again)
            }
            SimEvent::MachineBack { machine, serial, new_id } => {
                self.machine_back(events, machine, serial, new_id);
            }
            SimEvent::MachineReached { machine, serial } => {
                self.machine_reached(events, machine, serial);
            }
            SimEvent::MachineTimesOut { machine, serial } => {
                self.machine_times_out(events, machine, serial);
            }
            SimEvent::MachineRegisters { machine, serial } => {
                self.machine_registers(events, machine, serial);
            }
            SimEvent::MasterBack { serial } => self.master_back(events, serial),
            // Events of the framework and the simulation.
            SimEvent::EventArrives { .. }
            | SimEvent::Subscribe
            | SimEvent::Answer { .. }
            | SimEvent::Poll
            | SimEvent::Fault { .. }
            | SimEvent::Heal
            | SimEvent::Sample
            | SimEvent::ShutdownTimesOut => {}
        }
    }

    /// Whether the framework has a subscription.
    pub(super) fn subscribed(&self) -> bool {
        self.subscribed
    }

    /// The agent's present id.
    pub(super) fn agent(&self, machine: u32) -> AgentRef {
        let incarnation = self.machines.get(machine as usize).map_or(0, |it| it.incarnation);
        AgentRef { machine, incarnation }
    }

    /// All executors that have not ended.
    pub(super) fn executors(&self) -> impl Iterator<Item = ClusterExecutor<'_>> {
        let alive = self.tasks.iter().filter(|task| task.alive());
        alive.map(|task| {
            let machine = &self.machines[task.agent.machine as usize];
            let in_reach = machine.link == AgentLink::Up && machine.view == MasterView::Active;
            ClusterExecutor { name: &task.name, in_reach }
        })
    }

    /// The number of agents that are up and reachable, and the number of executors that run.
    pub(super) fn count_running(&self) -> (u32, u32) {
        let up = self.machines.iter().filter(|machine| machine.link == AgentLink::Up).count();
        let running = self.tasks.iter().filter(|task| task.phase == TaskPhase::Running).count();
        (up as u32, running as u32)
    }

    /// The distribution of executors over agents: pairs of a number of executors and the number of agents that hold
    /// that number, in ascending order.
    pub(super) fn spread(&self) -> Vec<(u32, u32)> {
        let mut agents = BTreeMap::new();
        for machine in &self.machines {
            let own = machine.tasks.iter().map(|cell| &self.tasks[*cell as usize]);
            let alive = own.filter(|task| task.alive()).count() as u32;
            *agents.entry(alive).or_insert(0) += 1;
        }
        agents.into_iter().collect()
    }

    /// The free resources of agents that are up and reachable, and their zones.
    pub(super) fn free_resources(&self) -> impl Iterator<Item = (AgentRef, u32, Amounts)> {
        let machines = (0..).zip(&self.machines);
        let active =
            machines.filter(|(_, it)| it.link == AgentLink::Up && it.view == MasterView::Active);
        active.map(|(number, machine)| {
            let mut free = machine.capacity;
            for cell in &machine.tasks {
                let task = &self.tasks[*cell as usize];
                if task.alive() || task.held {
                    free.subtract(&task.amounts);
                }
            }
            (self.agent(number), machine.zone, free)
        })
    }

    /// The task, if its cell still holds it.
    fn task(&mut self, task: TaskRef) -> Option<&mut SimTask> {
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

impl SimTask {
    /// Whether the executor runs or will be started.
    fn alive(&self) -> bool {
        self.serial % 2 == 1 && self.phase != TaskPhase::Ended
    }

    /// Whether the master knows that it has ended.
    fn known_ended(&self) -> bool {
        matches!(
            self.known,
            TaskState::Finished
                | TaskState::Failed
                | TaskState::Killed
                | TaskState::Dropped
                | TaskState::Gone
        )
    }
}

impl Machine {
    fn new(scenario: &Scenario, number: u32, rng: &mut Rng) -> Machine {
        let larger = |rng: &mut Rng, size: u64| size + rng.below(size / 2 + 1);
        let cores = larger(rng, u64::from(scenario.agent_cores)) * 1000;
        let memory = larger(rng, scenario.agent_memory.get()) * 1000;
        let reserved = rng.percent(scenario.reserved_percent);
        let split =
            |amount: u64| if reserved { (amount - amount / 2, amount / 2) } else { (amount, 0) };
        let (cpus, own_cpus) = split(cores);
        let (mem, own_mem) = split(memory);
        let mut scalars = [0; SCALARS.len()];
        scalars.copy_from_slice(&[cpus, own_cpus, mem, own_mem, rng.below(3) * 1000, 1_000_000]);
        let capacity = Amounts { scalars, port: true };
        Machine {
            incarnation: 0,
            link: AgentLink::Up,
            view: MasterView::Active,
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
