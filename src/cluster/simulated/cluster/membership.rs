//! Agents and masters that fail and come back, and the framework's subscription.

use super::{AgentLink, Cluster, MasterView, TaskPhase};
use crate::cluster::simulated::event_queue::{EventQueue, SimEvent};
use crate::cluster::simulated::network::FaultWindow;
use crate::cluster::simulated::wire::{MasterEvent, master_update};
use crate::launch::Hosting;
use crate::status::{TaskState, UpdateReason};
use std::time::Duration;

/// The time after which an agent that doesn't answer is unreachable, in milliseconds (`--agent_ping_timeout` times
/// `--max_agent_ping_timeouts`).
const AGENT_TIMEOUT_MS: u64 = 75_000;
/// The time within which agents register with a new master, in milliseconds (`--registration_backoff_factor`).
const REGISTER_WITHIN_MS: u64 = 15_000;

impl Cluster {
    /// Ends the machine and all executors on it. The master notices the broken connection.
    pub(in super::super) fn kill_machine(
        &mut self,
        events: &mut EventQueue,
        machine: u32,
        back: u64,
        new_id: bool,
    ) {
        let Some(it) = self.machines.get_mut(machine as usize) else { return };
        if it.link == AgentLink::Dead {
            return;
        }
        it.link = AgentLink::Dead;
        it.serial += 1;
        let serial = it.serial;
        events.after(back, SimEvent::MachineBack { machine, serial, new_id });
        for cell in it.tasks.clone() {
            // A task that never arrived can't fail.
            if self.tasks[cell as usize].phase != TaskPhase::Ordered {
                self.end(events, self.reference(cell), TaskState::Failed);
            }
        }
        if self.machines[machine as usize].view == MasterView::Active {
            self.machines[machine as usize].view = MasterView::Disconnected;
            self.rescind_offers_of(events, machine);
            events.after(AGENT_TIMEOUT_MS, SimEvent::MachineTimesOut { machine, serial });
        }
    }

    /// Drops all messages to and from the machine. The master notices when its pings have failed for a while.
    pub(in super::super) fn partition(&mut self, events: &mut EventQueue, machine: u32, back: u64) {
        let Some(it) = self.machines.get_mut(machine as usize) else { return };
        if it.link != AgentLink::Up {
            return;
        }
        it.link = AgentLink::Cut;
        it.serial += 1;
        let serial = it.serial;
        events.after(back, SimEvent::MachineReached { machine, serial });
        events.after(AGENT_TIMEOUT_MS, SimEvent::MachineTimesOut { machine, serial });
    }

    pub(super) fn machine_times_out(&mut self, events: &mut EventQueue, machine: u32, serial: u32) {
        let it = &self.machines[machine as usize];
        let waited_for = matches!(it.view, MasterView::Active | MasterView::Disconnected);
        if !self.leads || it.serial != serial || it.link == AgentLink::Up || !waited_for {
            return;
        }
        self.machines[machine as usize].view = MasterView::Unreachable;
        self.report_lost(events, machine, TaskState::Unreachable);
        self.rescind_offers_of(events, machine);
    }

    /// Reports every executor on the machine as `state`, and the agent as lost, in random order.
    fn report_lost(&mut self, events: &mut EventQueue, machine: u32, state: TaskState) {
        let agent = self.agent(machine);
        let agent_first = self.rng.percent(50);
        if agent_first {
            self.network.send_event(events, MasterEvent::AgentLost(agent));
        }
        for cell in &self.machines[machine as usize].tasks {
            let task = &self.tasks[*cell as usize];
            if task.visible && !task.known_ended() {
                let reason = UpdateReason::AgentRemoved;
                let update = master_update(&task.name, agent, state, reason);
                let update = task.describe(self.zone_told(agent), update);
                self.network.send_event(events, MasterEvent::Update(update));
            }
        }
        if !agent_first {
            self.network.send_event(events, MasterEvent::AgentLost(agent));
        }
    }

    pub(super) fn machine_back(
        &mut self,
        events: &mut EventQueue,
        machine: u32,
        serial: u32,
        new_id: bool,
    ) {
        let it = &mut self.machines[machine as usize];
        if it.serial != serial || it.link != AgentLink::Dead {
            return;
        }
        it.link = AgentLink::Up;
        it.serial += 1;
        if new_id {
            self.assign_new_id(events, machine);
        }
        self.register(events, machine);
    }

    /// The machine comes back under a new agent id.
    fn assign_new_id(&mut self, events: &mut EventQueue, machine: u32) {
        let known = matches!(
            self.machines[machine as usize].view,
            MasterView::Active | MasterView::Disconnected
        );
        if self.leads && known {
            // An agent registers from the address of a known one, which is therefore gone.
            self.report_lost(events, machine, TaskState::Gone);
            self.rescind_offers_of(events, machine);
        }
        for cell in self.machines[machine as usize].tasks.clone() {
            self.remove_task(cell);
        }
        let it = &mut self.machines[machine as usize];
        it.incarnation += 1;
        it.view = MasterView::Absent;
        it.refuse_until = 0;
    }

    pub(super) fn machine_reached(&mut self, events: &mut EventQueue, machine: u32, serial: u32) {
        let it = &mut self.machines[machine as usize];
        if it.serial == serial && it.link == AgentLink::Cut {
            it.link = AgentLink::Up;
            it.serial += 1;
            self.register(events, machine);
        }
    }

    pub(super) fn machine_registers(&mut self, events: &mut EventQueue, machine: u32, serial: u32) {
        let it = &self.machines[machine as usize];
        if it.serial == serial && it.link == AgentLink::Up && it.view == MasterView::Absent {
            self.register(events, machine);
        }
    }

    /// The master learns which executors are on the machine, and reports states that differ from those it reported
    /// before.
    fn register(&mut self, events: &mut EventQueue, machine: u32) {
        if !self.leads {
            return;
        }
        let before = self.machines[machine as usize].view;
        let given_up =
            before == MasterView::Absent && self.masters > 0 && self.waited_for_all(events.now);
        self.rescind_offers_of(events, machine);
        let agent = self.agent(machine);
        let zone = self.zone_told(agent);
        let mut lost_hosts = Vec::new();
        for cell in self.machines[machine as usize].tasks.clone() {
            let task = &mut self.tasks[cell as usize];
            let event = |task: &super::SimTask, state| {
                let reason = UpdateReason::Reconciliation;
                let update = master_update(&task.name, agent, state, reason);
                MasterEvent::Update(task.describe(zone, update))
            };
            if task.phase == TaskPhase::Ordered {
                // The launch was lost in transit.
                if task.visible {
                    let dropped = event(task, TaskState::Dropped);
                    self.network.send_event(events, dropped);
                }
                if task.hosting == Hosting::Host {
                    lost_hosts.push(task.name.clone());
                }
                self.remove_task(cell);
                continue;
            }
            let was_unreachable = before == MasterView::Unreachable && task.visible || given_up;
            if was_unreachable && !task.known_ended() {
                let back = event(task, task.known);
                self.network.send_event(events, back);
            }
            task.visible = true;
            task.held = !task.known_ended();
            self.transmit(events, self.reference(cell), Duration::from_secs(10));
        }
        lost_hosts.iter().for_each(|host| self.end_hosted(events, machine, host));
        let mut free = self.machines[machine as usize].capacity;
        for cell in &self.machines[machine as usize].tasks {
            let task = &self.tasks[*cell as usize];
            if task.held {
                free.subtract(&task.amounts);
            }
        }
        let it = &mut self.machines[machine as usize];
        it.free = free;
        it.view = MasterView::Active;
    }

    /// The master fails, and its state is lost.
    pub(in super::super) fn fail_over(&mut self, events: &mut EventQueue, back: u64) {
        if !self.leads {
            return;
        }
        self.leads = false;
        self.masters += 1;
        self.unsubscribe();
        self.machines.iter_mut().for_each(|machine| machine.view = MasterView::Absent);
        self.tasks.iter_mut().for_each(|task| task.visible = false);
        events.after(back, SimEvent::MasterBack { serial: self.masters });
    }

    pub(super) fn master_back(&mut self, events: &mut EventQueue, serial: u32) {
        if self.leads || serial != self.masters {
            return;
        }
        self.leads = true;
        self.leads_since = events.now;
        for (machine, it) in (0..).zip(&self.machines) {
            if it.link == AgentLink::Up {
                let soon = self.rng.below(REGISTER_WITHIN_MS);
                let serial = it.serial;
                events.after(soon, SimEvent::MachineRegisters { machine, serial });
            }
        }
    }

    /// Ends the subscription: its offers are invalid.
    pub(in super::super) fn unsubscribe(&mut self) {
        self.subscribed = false;
        self.drop_offers();
    }

    /// Subscribes the framework. Returns `false` if there is no master. A new subscription is not suppressed and has no
    /// refusals.
    pub(in super::super) fn subscribe(&mut self, events: &mut EventQueue) -> bool {
        if self.leads {
            self.network.connect();
            self.subscribed = true;
            self.suppressed = false;
            self.forget_refusals();
            self.transmit_all(events);
        }
        self.leads
    }

    /// Ends all faults: agents and master come back.
    pub(in super::super) fn heal(&mut self, events: &mut EventQueue) {
        self.network.heal();
        let none = FaultWindow::default();
        self.failing = none;
        self.hanging = none;
        self.outliving = none;
        self.rescinding = none;
        for (machine, it) in (0..).zip(&self.machines) {
            let serial = it.serial;
            let soon = self.rng.below(5_000);
            match it.link {
                AgentLink::Up => {}
                AgentLink::Cut => events.after(soon, SimEvent::MachineReached { machine, serial }),
                AgentLink::Dead => {
                    events.after(soon, SimEvent::MachineBack { machine, serial, new_id: false });
                }
            }
        }
        if !self.leads {
            events.after(0, SimEvent::MasterBack { serial: self.masters });
        }
        self.heal_tasks(events);
    }
}
