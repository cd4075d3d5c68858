//! Handlers of the simulated framework: each answers a batch at once, or commits it and makes its calls one by one, at
//! moments of their own, with other events between them.

use super::agenda::{Agenda, Item};
use super::corners::Seen;
use super::framework::{Framework, SimulatedCalls, World};
use super::wire::SimOffer;
use crate::engine::launches::LaunchBatch;
use crate::engine::offer_handler::OfferHandler;
use crate::engine::recorded_kernel::DueRevives;
use crate::time::Timestamp;

/// The application's name, as executors are told it.
const APP: &str = "simulated";

/// A handler.
pub(super) struct SimHandler {
    answerer: OfferHandler,
    /// Whether it was told that there is something in the offer queue, or answers a batch in steps.
    called: bool,
    slow: Option<SlowAnswer>,
}

/// A batch that is committed, and whose calls have not all been made.
struct SlowAnswer {
    batch: Vec<SimOffer>,
    epoch: u64,
    answered: DueRevives,
    /// Until the cluster was told of all launches.
    launches: Option<LaunchBatch>,
    /// What had happened when it was committed.
    seen: Seen,
    /// How many calls were made, and how many there are.
    made: usize,
    calls: usize,
    /// When the last is made at the latest, in virtual milliseconds.
    until: u64,
}

impl SimHandler {
    pub(super) fn new(answerer: OfferHandler) -> SimHandler {
        SimHandler { answerer, called: false, slow: None }
    }
}

impl Framework {
    /// Tells a handler that there is something in the offer queue: this one, or the next that isn't busy. A busy one looks
    /// by itself when it is done.
    pub(super) fn call_handler(&mut self, handler: usize, agenda: &mut Agenda) {
        let count = self.handlers.len();
        let mut order = (0..count).map(|further| (handler + further) % count);
        let Some(free) = order.find(|at| self.handlers[*at].slow.is_none()) else { return };
        if !std::mem::replace(&mut self.handlers[free].called, true) {
            // Now and then the machine has other things to do.
            let most = if self.dice.percent(5) { 60 } else { 3 };
            let soon = self.dice.roll(most);
            agenda.after(soon, Item::Answer { handler: free });
        }
    }

    /// A handler takes a batch from the offer queue and answers it, or makes the next call of the batch that it is at.
    pub(super) fn answer(&mut self, handler: usize, world: &mut World<'_>) {
        if let Some(slow) = self.handlers[handler].slow.take() {
            return self.make_next_call(handler, slow, world);
        }
        self.handlers[handler].called = false;
        if self.offer_queue.len() == 0 {
            return;
        }
        self.batch.clear();
        let Some(epoch) = self.offer_queue.pop(self.options.batch_max, &mut self.batch) else {
            return;
        };
        if self.offer_queue.len() > 0 {
            // Another handler goes on with what is left.
            self.call_handler((handler + 1) % self.handlers.len(), world.agenda);
        }
        let mut now = self.now(world.agenda);
        if self.lagging.hits(world.agenda.now, &mut self.dice) {
            let behind = self.dice.between(0, self.lagging.amount);
            now = Timestamp::from_millis(now.as_millis().saturating_sub(behind));
        }
        world.judge.batch_begins(handler, &self.batch, now, self.settings, world.agenda.now);
        if self.slow.hits(world.agenda.now, &mut self.dice) {
            self.commit(handler, epoch, now, world);
        } else {
            self.answer_at_once(handler, epoch, now, world);
        }
    }

    fn answer_at_once(
        &mut self,
        handler: usize,
        epoch: u64,
        now: Timestamp,
        world: &mut World<'_>,
    ) {
        let offers = self.sheet.write(&self.batch);
        let mut desk =
            SimulatedCalls::new(&self.kernel, self.stream, now, world).of_handler(handler);
        let answerer = &mut self.handlers[handler].answerer;
        answerer.answer(APP, epoch, &offers.offers(), now, &mut desk);
        let never = std::mem::take(&mut desk.never_launched);
        let placed = desk.placed;
        drop(offers);
        world.recorder.answered(answerer.decisions(), placed);
        world.corners.batch_answered();
        world.judge.batch_answered(handler, answerer.decisions());
        world.judge.batch_ends(handler, answerer.decisions(), now);
        self.take_back(never, world);
    }

    /// The first step: the batch is decided and counted, and nobody has heard of it.
    fn commit(&mut self, handler: usize, epoch: u64, now: Timestamp, world: &mut World<'_>) {
        let written = self.sheet.write(&self.batch);
        let offers = written.offers();
        let answerer = &mut self.handlers[handler].answerer;
        let (answered, batch) = answerer.decide(&offers, now);
        let placed = answerer.placed(&offers);
        world.recorder.answered(answerer.decisions(), placed.len() as u32);
        world.judge.committed(handler, &placed, now);
        world.judge.batch_answered(handler, answerer.decisions());
        world.corners.batch_answered();
        let calls = answerer.calls(&offers);
        drop(offers);
        let slow = SlowAnswer {
            batch: std::mem::take(&mut self.batch),
            epoch,
            answered,
            launches: Some(batch),
            seen: world.corners.seen,
            made: 0,
            calls,
            until: world.agenda.now.saturating_add(self.slow.amount),
        };
        self.go_on_later(handler, slow, world);
        let busy = self.handlers.iter().all(|handler| handler.slow.is_some());
        world.judge.handlers_busy(busy, world.agenda.now);
    }

    /// The steps that are left share the time that is left; each takes a part of it by chance.
    fn go_on_later(&mut self, handler: usize, slow: SlowAnswer, world: &mut World<'_>) {
        let left = slow.until.saturating_sub(world.agenda.now);
        let steps = (slow.calls - slow.made) as u64 + 1;
        let after = self.dice.roll(left.min(left.saturating_mul(2) / steps) + 1);
        let it = &mut self.handlers[handler];
        (it.called, it.slow) = (true, Some(slow));
        world.agenda.after(after, Item::Answer { handler });
    }

    /// A further step: one call, or the end after the last.
    fn make_next_call(&mut self, handler: usize, mut slow: SlowAnswer, world: &mut World<'_>) {
        let now = self.now(world.agenda);
        let answerer = &self.handlers[handler].answerer;
        world.corners.step(slow.seen);
        if slow.made < slow.calls {
            let written = self.sheet.write(&slow.batch);
            let mut desk =
                SimulatedCalls::new(&self.kernel, self.stream, now, world).of_handler(handler);
            answerer.make_call(slow.made, APP, slow.epoch, &written.offers(), &mut desk);
            let never = std::mem::take(&mut desk.never_launched);
            slow.made += 1;
            if slow.made >= answerer.decisions().accepts().len() {
                slow.launches = None;
            } else if let Some(batch) = &slow.launches {
                batch.set_returned(slow.made as u32);
            }
            self.go_on_later(handler, slow, world);
            return self.take_back(never, world);
        }
        answerer.calls_made(slow.answered, now);
        world.judge.batch_answered(handler, answerer.decisions());
        world.judge.batch_ends(handler, answerer.decisions(), now);
        world.judge.handlers_busy(false, world.agenda.now);
        self.handlers[handler].called = false;
        if self.offer_queue.len() > 0 {
            self.call_handler(handler, world.agenda);
        }
    }

    /// The launch of these surely had no effect.
    fn take_back(&mut self, never_launched: Vec<String>, world: &mut World<'_>) {
        if !never_launched.is_empty() {
            let now = self.now(world.agenda);
            let mut desk = SimulatedCalls::new(&self.kernel, self.stream, now, world);
            self.controller.never_launched(never_launched, now, &mut desk);
        }
    }

    /// All batches are answered, those that wait included, before time goes on.
    pub(super) fn finish_batches(&mut self, world: &mut World<'_>) {
        self.slow = Default::default();
        for handler in 0..self.handlers.len() {
            while let Some(slow) = self.handlers[handler].slow.take() {
                self.make_next_call(handler, slow, world);
            }
        }
        while self.offer_queue.len() > 0 {
            self.answer(0, world);
        }
    }
}
