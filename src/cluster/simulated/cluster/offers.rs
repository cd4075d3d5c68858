//! Offers of the simulated master: made each second from free resources, answered, rescinded. Also dispatches calls.

use std::collections::VecDeque;
use std::time::Duration;

use super::late::LateBinding;
use super::{AgentLink, Cluster, MasterView, SimTask, TaskPhase, millis};
use crate::cluster::simulated::event_queue::{EventQueue, SimEvent, TaskRef};
use crate::cluster::simulated::wire::{
    AgentRef, Amounts, FrameworkCall, MasterEvent, SimOffer, TaskLaunch, master_update,
};
use crate::status::{TaskState, UpdateReason};

/// The master's allocation interval, in milliseconds (`--allocation_interval`).
const ALLOCATION_INTERVAL_MS: u64 = 1_000;
/// The time after which an unanswered offer is rescinded, in milliseconds (`--offer_timeout`): answers can be lost.
const OFFER_TIMEOUT_MS: u64 = 60_000;
/// The minimum amounts that are offered, in thousandths (`MIN_CPUS`, `MIN_MEM`).
const CPUS_MIN: u64 = 10;
const MEM_MIN: u64 = 32_000;

impl Cluster {
    /// Runs the allocation cycle.
    pub(super) fn allocate(&mut self, events: &mut EventQueue) {
        events.after(ALLOCATION_INTERVAL_MS, SimEvent::Allocate);
        let old = events.now.saturating_sub(OFFER_TIMEOUT_MS);
        while let Some(number) = self.offers.oldest_before(old) {
            self.rescind(events, number);
        }
        if !self.suppressed {
            self.offer(events);
        }
    }

    /// Offers all free resources, even if suppressed.
    pub(super) fn offer(&mut self, events: &mut EventQueue) {
        if !self.leads || !self.subscribed {
            return;
        }
        let mut batch = Vec::new();
        let count = self.machines.len();
        let first = self.rng.below(count as u64) as usize;
        for position in 0..count {
            let number = (first + position) % count;
            let machine = &mut self.machines[number];
            let enough = machine.free.of("cpus") >= CPUS_MIN && machine.free.of("mem") >= MEM_MIN;
            if machine.view != MasterView::Active || machine.refuse_until > events.now || !enough {
                continue;
            }
            let agent = AgentRef { machine: number as u32, incarnation: machine.incarnation };
            let late = self.late.as_ref();
            if late.is_some_and(|late| late.avoids(agent, machine.zone, events.now)) {
                continue;
            }
            let is_late = late.is_some();
            let amounts = std::mem::take(&mut machine.free);
            let zone = machine.zone;
            let number = self.offers.next_number();
            let offer = SimOffer { number, agent, zone, amounts, is_late };
            self.offers.push(events.now, offer);
            if self.rescinding.hits(events.now, &mut self.rng) {
                let soon = self.rng.below(5);
                events.after(soon, SimEvent::Rescind { offer: offer.number });
            }
            batch.push(offer);
        }
        if !batch.is_empty() {
            self.network.send_event(events, MasterEvent::Offers(batch));
        }
    }

    /// Forgets all refusals.
    pub(super) fn forget_refusals(&mut self) {
        self.machines.iter_mut().for_each(|machine| machine.refuse_until = 0);
    }

    /// Rescinds an offer, if it is outstanding.
    pub(super) fn rescind(&mut self, events: &mut EventQueue, number: u64) {
        if self.withdraw(number).is_some() && self.subscribed {
            self.network.send_event(events, MasterEvent::Rescinded(number));
        }
    }

    /// Rescinds all offers of a machine.
    pub(super) fn rescind_offers_of(&mut self, events: &mut EventQueue, machine: u32) {
        let own = self.offers.iter().filter(|offer| offer.agent.machine == machine);
        let numbers: Vec<u64> = own.map(|offer| offer.number).collect();
        numbers.into_iter().for_each(|number| self.rescind(events, number));
    }

    /// Invalidates all offers, without events.
    pub(super) fn drop_offers(&mut self) {
        let numbers: Vec<u64> = self.offers.iter().map(|offer| offer.number).collect();
        for number in numbers {
            self.withdraw(number);
        }
    }

    /// Removes an outstanding offer and frees its resources.
    fn withdraw(&mut self, number: u64) -> Option<SimOffer> {
        let offer = self.offers.remove(number)?;
        let machine = self.machines.get_mut(offer.agent.machine as usize)?;
        if machine.incarnation == offer.agent.incarnation {
            machine.free.add(&offer.amounts);
        }
        Some(offer)
    }

    /// Carries out a call. Calls on another stream than the present one are ignored.
    pub(super) fn receive(&mut self, events: &mut EventQueue, stream: u64, call: FrameworkCall) {
        if !self.leads || !self.subscribed || stream != self.network.stream {
            return;
        }
        match call {
            FrameworkCall::Accept { agent, offers, tasks, refuse } => {
                self.accept(events, agent, &offers, tasks, refuse);
            }
            FrameworkCall::Decline { offers, refuse } => {
                for number in offers {
                    // Declines of invalid offers are ignored.
                    if let Some(offer) = self.withdraw(number) {
                        self.refuse(events.now, &offer, refuse);
                    }
                }
            }
            FrameworkCall::Revive => {
                self.suppressed = false;
                self.forget_refusals();
                self.offer(events);
            }
            FrameworkCall::Suppress => self.suppressed = true,
            FrameworkCall::Kill { executor, agent, grace } => {
                self.kill(events, &executor, agent, grace)
            }
            FrameworkCall::Reconcile(tasks) if tasks.is_empty() => self.reconcile_all(events),
            FrameworkCall::Reconcile(tasks) => {
                tasks.iter().for_each(|(executor, agent)| match agent {
                    Some(agent) => self.reconcile(events, executor, *agent),
                    None => self.reconcile_unbound(events, executor),
                });
            }
            FrameworkCall::Avoid(agents) => {
                if let Some(late) = &mut self.late {
                    late.avoid(agents, events.now);
                }
            }
            FrameworkCall::Acknowledge { executor, uuid } => {
                self.acknowledge(events, &executor, uuid)
            }
        }
    }

    fn refuse(&mut self, now: u64, offer: &SimOffer, refuse: Duration) {
        if let Some(machine) = self.machines.get_mut(offer.agent.machine as usize) {
            machine.refuse_until = machine.refuse_until.max(now.saturating_add(millis(refuse)));
        }
    }

    /// Launches tasks. If one of the offers is invalid, none is used, and every task is dropped.
    fn accept(
        &mut self,
        events: &mut EventQueue,
        agent: Option<AgentRef>,
        offers: &[u64],
        tasks: Vec<TaskLaunch>,
        refuse: Duration,
    ) {
        let found: Vec<SimOffer> =
            offers.iter().filter_map(|number| self.withdraw(*number)).collect();
        let agent = agent.or(found.first().map(|offer| offer.agent)).unwrap_or_default();
        let same_agent = found.iter().all(|offer| offer.agent == agent);
        if found.len() != offers.len() || !same_agent {
            let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
            for task in tasks {
                let update = master_update(&task.executor, agent, state, reason);
                let update = self.without_task(update);
                self.network.send_event(events, MasterEvent::Update(update));
            }
            return;
        }
        for offer in &found {
            self.refuse(events.now, offer, refuse);
        }
        let mut remaining = Amounts::default();
        found.iter().for_each(|offer| remaining.add(&offer.amounts));
        for task in tasks {
            let known = self.names.contains_key(&*task.executor);
            if known || !remaining.subtract(&task.amounts) {
                // The task needs more than was offered, or its id is in use.
                let (state, reason) = (TaskState::Error, UpdateReason::Other);
                let update = master_update(&task.executor, agent, state, reason);
                let update = self.without_task(update);
                self.network.send_event(events, MasterEvent::Update(update));
                continue;
            }
            self.machines[agent.machine as usize].free.subtract(&task.amounts);
            let launched = self.insert_task(SimTask {
                name: task.executor.into(),
                serial: 0,
                agent,
                amounts: task.amounts,
                hosting: task.hosting,
                phase: TaskPhase::Ordered,
                hung: false,
                is_named: self.late.is_none(),
                outlives: false,
                visible: true,
                known: TaskState::Staging,
                held: true,
                pending: VecDeque::new(),
            });
            // The launch is sent to the agent once. If the agent can't be reached, the launch is lost.
            if self.machines[agent.machine as usize].link == AgentLink::Up {
                self.send_to_agent(events, launched);
            }
        }
    }

    /// Sends a launch to its agent. If the cluster chooses the agents, that may take long, or until faults are over.
    fn send_to_agent(&mut self, events: &mut EventQueue, launched: TaskRef) {
        if self.late.is_none() {
            let soon = self.rng.between(1, 20);
            return events.after(soon, SimEvent::TaskArrives(launched));
        }
        if self.rng.percent(50) {
            self.report(events, launched, TaskState::Staging);
        }
        let after = LateBinding::delay(&mut self.rng);
        if self.hanging.hits(events.now, &mut self.rng) {
            self.tasks[launched.cell as usize].hung = true;
        } else {
            events.after(after, SimEvent::TaskArrives(launched));
        }
    }
}
