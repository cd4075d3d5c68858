//! Executors on their agents: they start, run and end. Their updates are sent one at a time, until acknowledged.

use std::time::Duration;

use super::{AgentLink, Cluster, MasterView, PendingUpdate, SimTask, TaskPhase, millis};
use crate::cluster::simulated::event_queue::{EventQueue, SimEvent, TaskRef};
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, master_update};
use crate::engine::cluster_manager::Update;
use crate::launch::Hosting;
use crate::status::{TaskState, UpdateReason};

/// The time after which an unacknowledged update is sent again (`STATUS_UPDATE_RETRY_INTERVAL_MIN`). It doubles each
/// time.
const UPDATE_RETRY_MIN: Duration = Duration::from_secs(10);
/// The maximum time between two repetitions (`STATUS_UPDATE_RETRY_INTERVAL_MAX`).
const UPDATE_RETRY_MAX: Duration = Duration::from_secs(600);
/// The time that a message between agent and master takes, in milliseconds.
const HOP_MS: u64 = 2;

impl Cluster {
    /// Adds a task.
    pub(super) fn insert_task(&mut self, task: SimTask) -> TaskRef {
        let machine = task.agent.machine as usize;
        let name = task.name.clone();
        let cell = match self.vacant.pop() {
            Some(cell) => {
                let serial = self.tasks[cell as usize].serial + 1;
                self.tasks[cell as usize] = SimTask { serial, ..task };
                cell
            }
            None => {
                self.tasks.push(SimTask { serial: 1, ..task });
                self.tasks.len() as u32 - 1
            }
        };
        self.names.insert(name, cell);
        self.machines[machine].tasks.push(cell);
        self.reference(cell)
    }

    /// Removes a task. Cells have odd serial numbers while they hold a task.
    pub(super) fn remove_task(&mut self, cell: u32) {
        let task = &mut self.tasks[cell as usize];
        task.serial += 1;
        task.phase = TaskPhase::Ended;
        task.pending.clear();
        let name = std::mem::take(&mut task.name);
        let machine = task.agent.machine as usize;
        self.names.remove(&name);
        self.machines[machine].tasks.retain(|other| *other != cell);
        self.vacant.push(cell);
    }

    pub(super) fn task_arrives(&mut self, events: &mut EventQueue, task: TaskRef) {
        let failing = self.failing;
        let hanging = self.hanging;
        let outliving = self.outliving;
        let ordered = |found: &&mut SimTask| found.phase == TaskPhase::Ordered;
        let Some(machine) = self.task(task).filter(ordered).map(|found| found.agent.machine) else {
            return;
        };
        if self.machines[machine as usize].link != AgentLink::Up {
            // The launch is lost. The master notices when the agent registers without the task.
            return;
        }
        if self.host_phase(&self.tasks[task.cell as usize]) == Some(TaskPhase::Ended) {
            return self.end(events, task, TaskState::Dropped);
        }
        let hung = hanging.hits(events.now, &mut self.rng);
        let outlives = outliving.hits(events.now, &mut self.rng);
        let fails = machine % 3 == 0 && failing.hits(events.now, &mut self.rng);
        let starting = self.rng.percent(50);
        let up_after = self.rng.between(200, 3_000);
        if let Some(found) = self.task(task) {
            found.phase = TaskPhase::Starting;
            found.is_named = true;
            found.hung = hung;
            found.outlives = outlives;
        }
        if starting {
            self.report(events, task, TaskState::Starting);
        }
        if fails {
            events.after(up_after, SimEvent::TaskEnds(task, true));
        } else if !hung {
            events.after(up_after, SimEvent::TaskRuns(task));
        }
    }

    pub(super) fn task_runs(&mut self, events: &mut EventQueue, task: TaskRef) {
        let host = self.host_phase(&self.tasks[task.cell as usize]);
        let Some(found) = self.task(task).filter(|found| found.phase == TaskPhase::Starting) else {
            return;
        };
        if host.is_some_and(|host| host != TaskPhase::Running) {
            // It waits for its host.
            return;
        }
        found.phase = TaskPhase::Running;
        let name = found.name.clone();
        self.begins(name);
        self.report(events, task, TaskState::Running);
        self.start_hosted(events, task);
        if self.lifetime > 0 && !self.faults_over {
            let lives = self.rng.lifetime(self.lifetime);
            let fails = self.rng.percent(self.failures_percent);
            events.after(lives, SimEvent::TaskEnds(task, fails));
        }
    }

    /// An executor begins to run.
    pub(super) fn begins(&mut self, executor: Box<str>) {
        if let Some(begun) = &mut self.begun {
            begun.insert(executor);
        }
    }

    /// Whether an executor has run, told or not.
    pub(in super::super) fn has_begun(&self, executor: &str) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.contains(executor))
    }

    pub(super) fn task_ends(&mut self, events: &mut EventQueue, task: TaskRef, fails: bool) {
        if !self.faults_over {
            self.end(events, task, if fails { TaskState::Failed } else { TaskState::Finished });
        } else if self.task(task).is_some_and(|found| found.phase == TaskPhase::Starting) {
            events.after(0, SimEvent::TaskRuns(task));
        }
    }

    /// Crashes about `percent` of the running executors.
    pub(in super::super) fn crash_executors(&mut self, events: &mut EventQueue, percent: u8) {
        for cell in 0..self.tasks.len() as u32 {
            let running = self.tasks[cell as usize].phase == TaskPhase::Running;
            if running && self.rng.percent(percent) {
                self.end(events, self.reference(cell), TaskState::Failed);
            }
        }
    }

    pub(super) fn end(&mut self, events: &mut EventQueue, task: TaskRef, state: TaskState) {
        let Some(found) = self.task(task).filter(|found| found.alive()) else { return };
        found.phase = TaskPhase::Ended;
        let host = (found.hosting == Hosting::Host).then(|| found.name.clone());
        let machine = found.agent.machine;
        let Some(host) = host else { return self.report(events, task, state) };
        if self.rng.percent(50) {
            self.end_hosted(events, machine, &host);
            return self.report(events, task, state);
        }
        self.report(events, task, state);
        self.end_hosted(events, machine, &host);
    }

    /// The master forwards a kill to the agent, if the agent can be reached.
    pub(super) fn kill(
        &mut self,
        events: &mut EventQueue,
        executor: &str,
        agent: Option<AgentRef>,
        grace: Duration,
    ) {
        let known = self.names.get(executor).copied();
        let Some(cell) = known.filter(|cell| self.tasks[*cell as usize].visible) else {
            // The master answers as to a reconciliation.
            match agent {
                Some(agent) => self.reconcile(events, executor, agent),
                None if self.late.is_some() => self.reconcile_unbound(events, executor),
                None => {}
            }
            return;
        };
        let task = &self.tasks[cell as usize];
        let machine = self.machine_of(task.agent);
        if machine.is_some_and(|it| it.view == MasterView::Active && it.link == AgentLink::Up) {
            events.after(HOP_MS, SimEvent::KillArrives(self.reference(cell), grace));
        }
    }

    pub(super) fn kill_arrives(&mut self, events: &mut EventQueue, task: TaskRef, grace: Duration) {
        let within = self.rng.below(millis(grace) + 1);
        let Some(found) = self.task(task).filter(|found| found.alive()) else { return };
        if !found.outlives {
            // An executor that hangs doesn't end by itself.
            let after = if found.hung { millis(grace) } else { within };
            events.after(after, SimEvent::TaskKilled(task));
        }
    }

    /// The agent reports a state.
    pub(super) fn report(&mut self, events: &mut EventQueue, task: TaskRef, state: TaskState) {
        let uuid = self.next_uuid;
        self.next_uuid += 1;
        let Some(found) = self.task(task) else { return };
        found.pending.push_back(PendingUpdate { uuid, state, reason: UpdateReason::Other });
        if found.pending.len() == 1 {
            self.transmit(events, task, UPDATE_RETRY_MIN);
        }
    }

    /// Sends the first unacknowledged update.
    pub(super) fn transmit(&mut self, events: &mut EventQueue, task: TaskRef, again: Duration) {
        let Some(found) = self.task(task) else { return };
        let Some(uuid) = found.pending.front().map(|pending| pending.uuid) else { return };
        let next = (again * 2).min(UPDATE_RETRY_MAX);
        events.after(millis(again), SimEvent::UpdateAgain(task, uuid, next));
        events.after(HOP_MS, SimEvent::UpdateArrives(task, uuid));
    }

    pub(super) fn update_again(
        &mut self,
        events: &mut EventQueue,
        task: TaskRef,
        uuid: u64,
        again: Duration,
    ) {
        let waits = |found: &mut SimTask| found.pending.front().is_some_and(|it| it.uuid == uuid);
        if self.task(task).is_some_and(waits) {
            self.transmit(events, task, again);
        }
    }

    pub(super) fn update_arrives(&mut self, events: &mut EventQueue, task: TaskRef, uuid: u64) {
        let Some(found) = self.task(task) else { return };
        let Some(pending) = found.pending.front().copied().filter(|it| it.uuid == uuid) else {
            return;
        };
        let agent = found.agent;
        let machine = &self.machines[agent.machine as usize];
        let registered =
            machine.incarnation == agent.incarnation && machine.view == MasterView::Active;
        if !self.leads || !registered || machine.link != AgentLink::Up {
            return;
        }
        let Some(found) = self.task(task) else { return };
        found.known = pending.state;
        found.visible = true;
        let name = found.name.clone();
        if found.known_ended() && std::mem::take(&mut found.held) {
            let amounts = found.amounts;
            self.machines[agent.machine as usize].free.add(&amounts);
        }
        if self.subscribed {
            let update = Update {
                uuid: Some(uuid.to_le_bytes().to_vec()),
                ..master_update(&name, agent, pending.state, pending.reason)
            };
            let update = self.tasks[task.cell as usize].describe(self.zone_told(agent), update);
            self.network.send_event(events, MasterEvent::Update(update));
        }
    }

    /// The framework acknowledges an update. The agent sends the next one.
    pub(super) fn acknowledge(&mut self, events: &mut EventQueue, executor: &str, uuid: u64) {
        let Some(cell) = self.names.get(executor).copied() else { return };
        let task = &self.tasks[cell as usize];
        let machine = self.machine_of(task.agent);
        let in_reach =
            machine.is_some_and(|it| it.view == MasterView::Active && it.link == AgentLink::Up);
        let first = task.pending.front().is_some_and(|pending| pending.uuid == uuid);
        if !in_reach || !first {
            return;
        }
        let task = &mut self.tasks[cell as usize];
        task.pending.pop_front();
        if !task.pending.is_empty() {
            self.transmit(events, self.reference(cell), UPDATE_RETRY_MIN);
        } else if task.phase == TaskPhase::Ended {
            self.remove_task(cell);
        }
    }

    /// Ends the faults of executors: those that hang start to run, and kills end all.
    pub(super) fn heal_tasks(&mut self, events: &mut EventQueue) {
        self.faults_over = true;
        for cell in 0..self.tasks.len() as u32 {
            let task = &mut self.tasks[cell as usize];
            task.outlives = false;
            let is_stuck = Cluster::is_stuck(task);
            if std::mem::take(&mut task.hung) {
                let task = self.reference(cell);
                let next =
                    if is_stuck { SimEvent::TaskArrives(task) } else { SimEvent::TaskRuns(task) };
                events.after(0, next);
            }
        }
    }

    /// Sends all unacknowledged updates again, after a subscription.
    pub(super) fn transmit_all(&mut self, events: &mut EventQueue) {
        for cell in 0..self.tasks.len() as u32 {
            if !self.tasks[cell as usize].pending.is_empty() {
                self.transmit(events, self.reference(cell), UPDATE_RETRY_MIN);
            }
        }
    }
}
