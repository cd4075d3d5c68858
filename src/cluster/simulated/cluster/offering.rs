//! Offers: made each second of what is free and not refused, answered, rescinded.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Cluster, Life, Link, Task, View, millis};
use crate::cluster::simulated::agenda::{Agenda, Item};
use crate::cluster::simulated::wire::{
    AgentRef, Amounts, FrameworkCall, MasterEvent, Order, SimOffer, masters_update,
};
use crate::status::{TaskState, UpdateReason};

/// The master's allocation interval, in milliseconds (`--allocation_interval`).
const ALLOCATE_EVERY: u64 = 1_000;
/// An offer that nobody answers is taken back after so long (`--offer_timeout`): answers can be lost.
const OFFER_TIMEOUT: u64 = 60_000;
/// Less than this isn't offered, in thousandths (`MIN_CPUS`, `MIN_MEM`).
const CPUS_MIN: u64 = 10;
const MEM_MIN: u64 = 32_000;

impl Cluster {
    /// The allocation cycle.
    pub(super) fn cycle(&mut self, agenda: &mut Agenda) {
        agenda.after(ALLOCATE_EVERY, Item::Allocate);
        let old = agenda.now.saturating_sub(OFFER_TIMEOUT);
        while let Some(number) = self.offers.oldest_before(old) {
            self.rescind(agenda, number);
        }
        if !self.suppressed {
            self.offer(agenda);
        }
    }

    /// Offers what is free, suppressed or not.
    pub(super) fn offer(&mut self, agenda: &mut Agenda) {
        if !self.leads || !self.subscribed {
            return;
        }
        let mut batch = Vec::new();
        let count = self.machines.len();
        let first = self.dice.roll(count as u64) as usize;
        for position in 0..count {
            let number = (first + position) % count;
            let machine = &mut self.machines[number];
            let enough = machine.free.of("cpus") >= CPUS_MIN && machine.free.of("mem") >= MEM_MIN;
            if machine.view != View::Active || machine.refuse_until > agenda.now || !enough {
                continue;
            }
            let amounts = std::mem::take(&mut machine.free);
            let zone = machine.zone;
            let agent = self.agent(number as u32);
            let offer = SimOffer { number: self.offers.next_number(), agent, zone, amounts };
            self.offers.push(agenda.now, offer);
            if self.rescinding.hits(agenda.now, &mut self.dice) {
                let soon = self.dice.roll(5);
                agenda.after(soon, Item::Rescind { offer: offer.number });
            }
            batch.push(offer);
        }
        if !batch.is_empty() {
            self.network.tell(agenda, MasterEvent::Offers(batch));
        }
    }

    /// Forgets all refusals.
    pub(super) fn forget_refusals(&mut self) {
        self.machines.iter_mut().for_each(|machine| machine.refuse_until = 0);
    }

    /// Takes an offer back, if it is still held.
    pub(super) fn rescind(&mut self, agenda: &mut Agenda, number: u64) {
        if self.withdraw(number).is_some() && self.subscribed {
            self.network.tell(agenda, MasterEvent::Rescinded(number));
        }
    }

    /// Rescinds all offers of a machine.
    pub(super) fn rescind_offers_of(&mut self, agenda: &mut Agenda, machine: u32) {
        let own = self.offers.iter().filter(|offer| offer.agent.machine == machine);
        let numbers: Vec<u64> = own.map(|offer| offer.number).collect();
        numbers.into_iter().for_each(|number| self.rescind(agenda, number));
    }

    /// All offers are dead; nobody needs to be told.
    pub(super) fn drop_offers(&mut self) {
        let numbers: Vec<u64> = self.offers.iter().map(|offer| offer.number).collect();
        for number in numbers {
            self.withdraw(number);
        }
    }

    /// An outstanding offer's resources are free again.
    fn withdraw(&mut self, number: u64) -> Option<SimOffer> {
        let offer = self.offers.take(number)?;
        let machine = self.machines.get_mut(offer.agent.machine as usize)?;
        if machine.incarnation == offer.agent.incarnation {
            machine.free.add(&offer.amounts);
        }
        Some(offer)
    }

    /// A call arrives. One that comes on another stream than the present is refused.
    pub(super) fn asked(&mut self, agenda: &mut Agenda, stream: u64, ask: FrameworkCall) {
        if !self.leads || !self.subscribed || stream != self.network.stream {
            return;
        }
        match ask {
            FrameworkCall::Accept { agent, offers, tasks, refuse } => {
                self.accept(agenda, agent, &offers, tasks, refuse);
            }
            FrameworkCall::Decline { offers, refuse } => {
                for number in offers {
                    // A dead offer's decline is ignored.
                    if let Some(offer) = self.withdraw(number) {
                        self.refuse(agenda.now, &offer, refuse);
                    }
                }
            }
            FrameworkCall::Revive => {
                self.suppressed = false;
                self.forget_refusals();
                self.offer(agenda);
            }
            FrameworkCall::Suppress => self.suppressed = true,
            FrameworkCall::Kill { executor, agent, grace } => {
                self.kill(agenda, &executor, agent, grace)
            }
            FrameworkCall::Reconcile(questioned) if questioned.is_empty() => self.tell_all(agenda),
            FrameworkCall::Reconcile(questioned) => {
                questioned.iter().for_each(|(executor, agent)| {
                    self.reconcile(agenda, executor, *agent);
                });
            }
            FrameworkCall::Acknowledge { executor, uuid } => {
                self.acknowledge(agenda, &executor, uuid)
            }
        }
    }

    fn refuse(&mut self, now: u64, offer: &SimOffer, refuse: Duration) {
        if let Some(machine) = self.machines.get_mut(offer.agent.machine as usize) {
            machine.refuse_until = machine.refuse_until.max(now.saturating_add(millis(refuse)));
        }
    }

    /// One offer that is dead spoils all: the others are discarded, and every task is dropped.
    fn accept(
        &mut self,
        agenda: &mut Agenda,
        agent: AgentRef,
        offers: &[u64],
        tasks: Vec<Order>,
        refuse: Duration,
    ) {
        let found: Vec<SimOffer> =
            offers.iter().filter_map(|number| self.withdraw(*number)).collect();
        let of_one = found.iter().all(|offer| offer.agent == agent);
        if found.len() != offers.len() || !of_one {
            let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
            for task in tasks {
                let update = masters_update(&task.executor, agent, state, reason);
                self.network.tell(agenda, MasterEvent::Update(update));
            }
            return;
        }
        for offer in &found {
            self.refuse(agenda.now, offer, refuse);
        }
        let mut left = Amounts::default();
        found.iter().for_each(|offer| left.add(&offer.amounts));
        for task in tasks {
            let known = self.names.contains_key(&*task.executor);
            if known || !left.take(&task.amounts) {
                // More than was offered, or an id that is in use.
                let (state, reason) = (TaskState::Error, UpdateReason::Other);
                let update = masters_update(&task.executor, agent, state, reason);
                self.network.tell(agenda, MasterEvent::Update(update));
                continue;
            }
            self.machines[agent.machine as usize].free.take(&task.amounts);
            let launched = self.enter(Task {
                name: task.executor.into(),
                serial: 0,
                agent,
                amounts: task.amounts,
                life: Life::Ordered,
                hung: false,
                outlives: false,
                visible: true,
                known: TaskState::Staging,
                held: true,
                pending: VecDeque::new(),
            });
            // Sent to the agent once. Is it out of reach, the order is lost.
            if self.machines[agent.machine as usize].link == Link::Up {
                let soon = self.dice.between(1, 20);
                agenda.after(soon, Item::TaskArrives(launched));
            }
        }
    }
}
