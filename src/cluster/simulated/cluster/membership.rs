//! Agents and masters come and go, and subscriptions with them.

use super::{Cluster, Life, Link, View};
use crate::cluster::simulated::agenda::{Agenda, Item};
use crate::cluster::simulated::network::Window;
use crate::cluster::simulated::wire::{MasterEvent, masters_update};
use crate::status::{TaskState, UpdateReason};
use std::time::Duration;

/// An agent that doesn't answer is unreachable after so long, in milliseconds (`--agent_ping_timeout` times
/// `--max_agent_ping_timeouts`).
const AGENT_TIMEOUT: u64 = 75_000;
/// Agents register with a new master within so long (`--registration_backoff_factor`).
const REGISTER_WITHIN: u64 = 15_000;

impl Cluster {
    /// The machine and all executors on it die. The master notices the broken link.
    pub(in super::super) fn die(
        &mut self,
        agenda: &mut Agenda,
        machine: u32,
        back: u64,
        new_id: bool,
    ) {
        let Some(it) = self.machines.get_mut(machine as usize) else { return };
        if it.link == Link::Dead {
            return;
        }
        it.link = Link::Dead;
        it.serial += 1;
        let serial = it.serial;
        agenda.after(back, Item::MachineBack { machine, serial, new_id });
        for cell in it.tasks.clone() {
            // What never arrived can't fail.
            if self.tasks[cell as usize].life != Life::Ordered {
                self.end(agenda, self.reference(cell), TaskState::Failed);
            }
        }
        if self.machines[machine as usize].view == View::Active {
            self.machines[machine as usize].view = View::Disconnected;
            self.rescind_offers_of(agenda, machine);
            agenda.after(AGENT_TIMEOUT, Item::MachineTimesOut { machine, serial });
        }
    }

    /// Nothing comes through to the machine or from it. The master finds out when it has pinged in vain for a while.
    pub(in super::super) fn cut_off(&mut self, agenda: &mut Agenda, machine: u32, back: u64) {
        let Some(it) = self.machines.get_mut(machine as usize) else { return };
        if it.link != Link::Up {
            return;
        }
        it.link = Link::Cut;
        it.serial += 1;
        let serial = it.serial;
        agenda.after(back, Item::MachineReached { machine, serial });
        agenda.after(AGENT_TIMEOUT, Item::MachineTimesOut { machine, serial });
    }

    pub(super) fn machine_times_out(&mut self, agenda: &mut Agenda, machine: u32, serial: u32) {
        let it = &self.machines[machine as usize];
        let waited_for = matches!(it.view, View::Active | View::Disconnected);
        if !self.leads || it.serial != serial || it.link == Link::Up || !waited_for {
            return;
        }
        self.machines[machine as usize].view = View::Unreachable;
        self.lose(agenda, machine, TaskState::Unreachable);
        self.rescind_offers_of(agenda, machine);
    }

    /// Tells of every executor on the machine that it is in `state`, and of the agent's loss, in no particular order.
    fn lose(&mut self, agenda: &mut Agenda, machine: u32, state: TaskState) {
        let agent = self.agent(machine);
        let agent_first = self.dice.percent(50);
        if agent_first {
            self.network.tell(agenda, MasterEvent::AgentLost(agent));
        }
        for cell in &self.machines[machine as usize].tasks {
            let task = &self.tasks[*cell as usize];
            if task.visible && !task.known_ended() {
                let reason = UpdateReason::AgentRemoved;
                let update = masters_update(&task.name, agent, state, reason);
                self.network.tell(agenda, MasterEvent::Update(update));
            }
        }
        if !agent_first {
            self.network.tell(agenda, MasterEvent::AgentLost(agent));
        }
    }

    pub(super) fn machine_back(
        &mut self,
        agenda: &mut Agenda,
        machine: u32,
        serial: u32,
        new_id: bool,
    ) {
        let it = &mut self.machines[machine as usize];
        if it.serial != serial || it.link != Link::Dead {
            return;
        }
        it.link = Link::Up;
        it.serial += 1;
        if new_id {
            self.renew(agenda, machine);
        }
        self.register(agenda, machine);
    }

    /// A machine comes back that has forgotten who it was.
    fn renew(&mut self, agenda: &mut Agenda, machine: u32) {
        let known =
            matches!(self.machines[machine as usize].view, View::Active | View::Disconnected);
        if self.leads && known {
            // Another agent registers from the address of one that is known: that one is gone.
            self.lose(agenda, machine, TaskState::Gone);
            self.rescind_offers_of(agenda, machine);
        }
        for cell in self.machines[machine as usize].tasks.clone() {
            self.forget_task(cell);
        }
        let it = &mut self.machines[machine as usize];
        it.incarnation += 1;
        it.view = View::Absent;
        it.refuse_until = 0;
    }

    pub(super) fn machine_reached(&mut self, agenda: &mut Agenda, machine: u32, serial: u32) {
        let it = &mut self.machines[machine as usize];
        if it.serial == serial && it.link == Link::Cut {
            it.link = Link::Up;
            it.serial += 1;
            self.register(agenda, machine);
        }
    }

    pub(super) fn machine_registers(&mut self, agenda: &mut Agenda, machine: u32, serial: u32) {
        let it = &self.machines[machine as usize];
        if it.serial == serial && it.link == Link::Up && it.view == View::Absent {
            self.register(agenda, machine);
        }
    }

    /// The master learns what is on the machine, and tells what it had told otherwise.
    fn register(&mut self, agenda: &mut Agenda, machine: u32) {
        if !self.leads {
            return;
        }
        let before = self.machines[machine as usize].view;
        let given_up =
            before == View::Absent && self.masters > 0 && self.waited_for_all(agenda.now);
        self.rescind_offers_of(agenda, machine);
        let agent = self.agent(machine);
        for cell in self.machines[machine as usize].tasks.clone() {
            let task = &mut self.tasks[cell as usize];
            let tell = |task: &super::Task, state| {
                let reason = UpdateReason::Reconciliation;
                MasterEvent::Update(masters_update(&task.name, agent, state, reason))
            };
            if task.life == Life::Ordered {
                // The order was lost on its way.
                if task.visible {
                    let dropped = tell(task, TaskState::Dropped);
                    self.network.tell(agenda, dropped);
                }
                self.forget_task(cell);
                continue;
            }
            let told_unreachable = before == View::Unreachable && task.visible || given_up;
            if told_unreachable && !task.known_ended() {
                let back = tell(task, task.known);
                self.network.tell(agenda, back);
            }
            task.visible = true;
            task.held = !task.known_ended();
            self.transmit(agenda, self.reference(cell), Duration::from_secs(10));
        }
        let mut free = self.machines[machine as usize].capacity;
        for cell in &self.machines[machine as usize].tasks {
            let task = &self.tasks[*cell as usize];
            if task.held {
                free.take(&task.amounts);
            }
        }
        let it = &mut self.machines[machine as usize];
        (it.free, it.view) = (free, View::Active);
    }

    /// The master dies, with all that it held.
    pub(in super::super) fn fail_over(&mut self, agenda: &mut Agenda, back: u64) {
        if !self.leads {
            return;
        }
        self.leads = false;
        self.masters += 1;
        self.unsubscribe();
        self.machines.iter_mut().for_each(|machine| machine.view = View::Absent);
        self.tasks.iter_mut().for_each(|task| task.visible = false);
        agenda.after(back, Item::MasterBack { serial: self.masters });
    }

    pub(super) fn master_back(&mut self, agenda: &mut Agenda, serial: u32) {
        if self.leads || serial != self.masters {
            return;
        }
        self.leads = true;
        self.leads_since = agenda.now;
        for (machine, it) in (0..).zip(&self.machines) {
            if it.link == Link::Up {
                let soon = self.dice.roll(REGISTER_WITHIN);
                let serial = it.serial;
                agenda.after(soon, Item::MachineRegisters { machine, serial });
            }
        }
    }

    /// The framework's stream is broken: its offers are dead.
    pub(in super::super) fn unsubscribe(&mut self) {
        self.subscribed = false;
        self.drop_offers();
    }

    /// The framework subscribes; `false` if there is no master. A subscription knows of no suppression and no refusal.
    pub(in super::super) fn subscribe(&mut self, agenda: &mut Agenda) -> bool {
        if self.leads {
            self.network.connect();
            self.subscribed = true;
            self.suppressed = false;
            self.forget_refusals();
            self.transmit_all(agenda);
        }
        self.leads
    }

    /// All faults are over: everybody comes back.
    pub(in super::super) fn heal(&mut self, agenda: &mut Agenda) {
        self.network.heal();
        let none = Window::default();
        (self.failing, self.hanging, self.outliving, self.rescinding) = (none, none, none, none);
        for (machine, it) in (0..).zip(&self.machines) {
            let (serial, soon) = (it.serial, self.dice.roll(5_000));
            match it.link {
                Link::Up => {}
                Link::Cut => agenda.after(soon, Item::MachineReached { machine, serial }),
                Link::Dead => {
                    agenda.after(soon, Item::MachineBack { machine, serial, new_id: false });
                }
            }
        }
        if !self.leads {
            agenda.after(0, Item::MasterBack { serial: self.masters });
        }
        self.heal_tasks(agenda);
    }
}
