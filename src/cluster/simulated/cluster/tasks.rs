//! Executors on their agents: they start, run and end; their updates are sent until they are acknowledged, one at a
//! time.

use std::time::Duration;

use super::{Cluster, Life, Link, Pending, Task, View, millis};
use crate::cluster::simulated::agenda::{Agenda, Item, TaskRef};
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, masters_update};
use crate::engine::cluster_manager::Update;
use crate::status::{TaskState, UpdateReason};

/// An update is sent again after so long, then after twice as long, up to the most
/// (`STATUS_UPDATE_RETRY_INTERVAL_MIN`, `_MAX`).
const UPDATE_AGAIN: Duration = Duration::from_secs(10);
const UPDATE_AGAIN_MAX: Duration = Duration::from_secs(600);
/// From agent to master and back, in milliseconds.
const HOP: u64 = 2;

impl Cluster {
    pub(super) fn enter(&mut self, task: Task) -> TaskRef {
        let machine = task.agent.machine as usize;
        let name = task.name.clone();
        let cell = match self.vacant.pop() {
            Some(cell) => {
                let serial = self.tasks[cell as usize].serial + 1;
                self.tasks[cell as usize] = Task { serial, ..task };
                cell
            }
            None => {
                self.tasks.push(Task { serial: 1, ..task });
                self.tasks.len() as u32 - 1
            }
        };
        self.names.insert(name, cell);
        self.machines[machine].tasks.push(cell);
        self.reference(cell)
    }

    /// Nobody will ask about it any more. Cells have odd serials while they hold a task.
    pub(super) fn forget_task(&mut self, cell: u32) {
        let task = &mut self.tasks[cell as usize];
        task.serial += 1;
        task.life = Life::Ended;
        task.pending.clear();
        let name = std::mem::take(&mut task.name);
        let machine = task.agent.machine as usize;
        self.names.remove(&name);
        self.machines[machine].tasks.retain(|other| *other != cell);
        self.vacant.push(cell);
    }

    pub(super) fn task_arrives(&mut self, agenda: &mut Agenda, task: TaskRef) {
        let (failing, hanging, outliving) = (self.failing, self.hanging, self.outliving);
        let ordered = |found: &&mut Task| found.life == Life::Ordered;
        let Some(machine) = self.task(task).filter(ordered).map(|found| found.agent.machine) else {
            return;
        };
        if self.machines[machine as usize].link != Link::Up {
            // The order is lost; the master finds out when the agent registers without it.
            return;
        }
        let hung = hanging.hits(agenda.now, &mut self.dice);
        let outlives = outliving.hits(agenda.now, &mut self.dice);
        let fails = machine % 3 == 0 && failing.hits(agenda.now, &mut self.dice);
        let starting = self.dice.percent(50);
        let up_after = self.dice.between(200, 3_000);
        if let Some(found) = self.task(task) {
            found.life = Life::Starting;
            (found.hung, found.outlives) = (hung, outlives);
        }
        if starting {
            self.report(agenda, task, TaskState::Starting);
        }
        if fails {
            agenda.after(up_after, Item::TaskEnds(task, true));
        } else if !hung {
            agenda.after(up_after, Item::TaskRuns(task));
        }
    }

    pub(super) fn task_runs(&mut self, agenda: &mut Agenda, task: TaskRef) {
        let Some(found) = self.task(task).filter(|found| found.life == Life::Starting) else {
            return;
        };
        found.life = Life::Running;
        self.report(agenda, task, TaskState::Running);
        if self.lifetime > 0 && !self.calm {
            let lives = self.dice.lifetime(self.lifetime);
            let badly = self.dice.percent(self.failures_percent);
            agenda.after(lives, Item::TaskEnds(task, badly));
        }
    }

    pub(super) fn task_ends(&mut self, agenda: &mut Agenda, task: TaskRef, badly: bool) {
        if !self.calm {
            self.end(agenda, task, if badly { TaskState::Failed } else { TaskState::Finished });
        } else if self.task(task).is_some_and(|found| found.life == Life::Starting) {
            agenda.after(0, Item::TaskRuns(task));
        }
    }

    /// Part of the running executors crash.
    pub(in super::super) fn crash(&mut self, agenda: &mut Agenda, percent: u8) {
        for cell in 0..self.tasks.len() as u32 {
            let running = self.tasks[cell as usize].life == Life::Running;
            if running && self.dice.percent(percent) {
                self.end(agenda, self.reference(cell), TaskState::Failed);
            }
        }
    }

    pub(super) fn end(&mut self, agenda: &mut Agenda, task: TaskRef, state: TaskState) {
        let Some(found) = self.task(task).filter(|found| found.alive()) else { return };
        found.life = Life::Ended;
        self.report(agenda, task, state);
    }

    /// The master passes a kill on to the agent, if it can.
    pub(super) fn kill(
        &mut self,
        agenda: &mut Agenda,
        executor: &str,
        agent: Option<AgentRef>,
        grace: Duration,
    ) {
        let known = self.names.get(executor).copied();
        let Some(cell) = known.filter(|cell| self.tasks[*cell as usize].visible) else {
            // As if it had been asked about.
            if let Some(agent) = agent {
                self.reconcile(agenda, executor, agent);
            }
            return;
        };
        let task = &self.tasks[cell as usize];
        let machine = self.machine_of(task.agent);
        if machine.is_some_and(|it| it.view == View::Active && it.link == Link::Up) {
            agenda.after(HOP, Item::KillArrives(self.reference(cell), grace));
        }
    }

    pub(super) fn kill_arrives(&mut self, agenda: &mut Agenda, task: TaskRef, grace: Duration) {
        let within = self.dice.roll(millis(grace) + 1);
        let Some(found) = self.task(task).filter(|found| found.alive()) else { return };
        if !found.outlives {
            // One that hangs doesn't end by itself.
            let after = if found.hung { millis(grace) } else { within };
            agenda.after(after, Item::TaskKilled(task));
        }
    }

    /// The agent has an update for the framework.
    fn report(&mut self, agenda: &mut Agenda, task: TaskRef, state: TaskState) {
        let uuid = self.next_uuid;
        self.next_uuid += 1;
        let Some(found) = self.task(task) else { return };
        found.pending.push_back(Pending { uuid, state, reason: UpdateReason::Other });
        if found.pending.len() == 1 {
            self.transmit(agenda, task, UPDATE_AGAIN);
        }
    }

    /// Sends the first update that is not acknowledged.
    pub(super) fn transmit(&mut self, agenda: &mut Agenda, task: TaskRef, again: Duration) {
        let Some(found) = self.task(task) else { return };
        let Some(uuid) = found.pending.front().map(|pending| pending.uuid) else { return };
        let next = (again * 2).min(UPDATE_AGAIN_MAX);
        agenda.after(millis(again), Item::UpdateAgain(task, uuid, next));
        agenda.after(HOP, Item::UpdateArrives(task, uuid));
    }

    pub(super) fn update_again(
        &mut self,
        agenda: &mut Agenda,
        task: TaskRef,
        uuid: u64,
        again: Duration,
    ) {
        let waits = |found: &mut Task| found.pending.front().is_some_and(|it| it.uuid == uuid);
        if self.task(task).is_some_and(waits) {
            self.transmit(agenda, task, again);
        }
    }

    pub(super) fn update_arrives(&mut self, agenda: &mut Agenda, task: TaskRef, uuid: u64) {
        let Some(found) = self.task(task) else { return };
        let Some(pending) = found.pending.front().copied().filter(|it| it.uuid == uuid) else {
            return;
        };
        let agent = found.agent;
        let machine = &self.machines[agent.machine as usize];
        let registered = machine.incarnation == agent.incarnation && machine.view == View::Active;
        if !self.leads || !registered || machine.link != Link::Up {
            return;
        }
        let Some(found) = self.task(task) else { return };
        (found.known, found.visible) = (pending.state, true);
        let name = found.name.clone();
        if found.known_ended() && std::mem::take(&mut found.held) {
            let amounts = found.amounts;
            self.machines[agent.machine as usize].free.add(&amounts);
        }
        if self.subscribed {
            let update = Update {
                uuid: Some(uuid.to_le_bytes().to_vec()),
                ..masters_update(&name, agent, pending.state, pending.reason)
            };
            self.network.tell(agenda, MasterEvent::Update(update));
        }
    }

    /// The framework has taken an update in. The agent goes on to the next.
    pub(super) fn acknowledge(&mut self, agenda: &mut Agenda, executor: &str, uuid: u64) {
        let Some(cell) = self.names.get(executor).copied() else { return };
        let task = &self.tasks[cell as usize];
        let machine = self.machine_of(task.agent);
        let in_reach = machine.is_some_and(|it| it.view == View::Active && it.link == Link::Up);
        let first = task.pending.front().is_some_and(|pending| pending.uuid == uuid);
        if !in_reach || !first {
            return;
        }
        let task = &mut self.tasks[cell as usize];
        task.pending.pop_front();
        if !task.pending.is_empty() {
            self.transmit(agenda, self.reference(cell), UPDATE_AGAIN);
        } else if task.life == Life::Ended {
            self.forget_task(cell);
        }
    }

    /// Nothing is wrong with executors any more: those that hang get up, and those that outlived kills don't the next.
    pub(super) fn heal_tasks(&mut self, agenda: &mut Agenda) {
        self.calm = true;
        for cell in 0..self.tasks.len() as u32 {
            let task = &mut self.tasks[cell as usize];
            task.outlives = false;
            if std::mem::take(&mut task.hung) {
                agenda.after(0, Item::TaskRuns(self.reference(cell)));
            }
        }
    }

    /// Sends everything again that waits for an acknowledgement: after a subscription.
    pub(super) fn transmit_all(&mut self, agenda: &mut Agenda) {
        for cell in 0..self.tasks.len() as u32 {
            if !self.tasks[cell as usize].pending.is_empty() {
                self.transmit(agenda, self.reference(cell), UPDATE_AGAIN);
            }
        }
    }
}
