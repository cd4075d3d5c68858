//! Offer handlers of the simulated framework. A handler answers a batch at once, or commits it and makes its calls one
//! by one, with other events between them.

use super::Framework;
use super::calls::SimulatedCalls;
use crate::cluster::simulated::corners::EventCounts;
use crate::cluster::simulated::event_queue::{EventQueue, SimEvent};
use crate::cluster::simulated::wire::SimOffer;
use crate::cluster::simulated::world::World;
use crate::engine::launches::LaunchBatch;
use crate::engine::offer_handler::OfferHandler;
use crate::engine::recorded_kernel::DueRevives;
use crate::time::Timestamp;

/// The application's name that executors get.
const APP_NAME: &str = "simulated";

/// An offer handler and the batch that it answers.
pub(super) struct SimHandler {
    answerer: OfferHandler,
    /// Whether it was woken for offers in the queue, or answers a batch in steps.
    is_awake: bool,
    slow: Option<SlowAnswer>,
}

/// A committed batch whose calls have not all been made.
struct SlowAnswer {
    batch: Vec<SimOffer>,
    epoch: u64,
    answered: DueRevives,
    /// `None` once all launches have been sent to the cluster.
    launches: Option<LaunchBatch>,
    /// The events so far when the batch was committed.
    seen: EventCounts,
    /// How many calls have been made, and how many there are.
    made: usize,
    calls: usize,
    /// The latest time of the last call, in virtual milliseconds.
    until: u64,
}

impl SimHandler {
    pub(super) fn new(answerer: OfferHandler) -> SimHandler {
        SimHandler { answerer, is_awake: false, slow: None }
    }
}

impl Framework {
    /// Wakes this handler, or the next one that isn't busy, because the offer queue isn't empty. A busy handler checks
    /// the queue when it is done.
    pub(super) fn wake_handler(&mut self, handler: usize, events: &mut EventQueue) {
        let count = self.handlers.len();
        let mut order = (0..count).map(|further| (handler + further) % count);
        let Some(free) = order.find(|at| self.handlers[*at].slow.is_none()) else { return };
        if !std::mem::replace(&mut self.handlers[free].is_awake, true) {
            // Sometimes the thread is scheduled late.
            let delay_max = if self.rng.percent(5) { 60 } else { 3 };
            let delay = self.rng.below(delay_max);
            events.after(delay, SimEvent::Answer { handler: free });
        }
    }

    /// Makes a handler answer a batch from the offer queue, or make the next call of its open batch.
    pub(in super::super) fn answer(&mut self, handler: usize, world: &mut World<'_>) {
        if let Some(slow) = self.handlers[handler].slow.take() {
            return self.make_next_call(handler, slow, world);
        }
        self.handlers[handler].is_awake = false;
        if self.offer_queue.len() == 0 {
            return;
        }
        self.batch.clear();
        let Some(epoch) = self.offer_queue.pop(self.options.batch_max, &mut self.batch) else {
            return;
        };
        if self.offer_queue.len() > 0 {
            // Another handler answers the rest.
            self.wake_handler((handler + 1) % self.handlers.len(), world.events);
        }
        let mut now = self.now(world.events);
        if self.lagging.hits(world.events.now, &mut self.rng) {
            let behind = self.rng.between(0, self.lagging.amount);
            now = Timestamp::from_millis(now.as_millis().saturating_sub(behind));
        }
        world.checker.batch_begins(handler, &self.batch, now, self.settings, world.events.now);
        if self.slow.hits(world.events.now, &mut self.rng) {
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
        let offers = self.buffer.write(&self.batch);
        let mut calls =
            SimulatedCalls::new(&self.kernel, self.stream, now, world).of_handler(handler);
        let answerer = &mut self.handlers[handler].answerer;
        answerer.answer(APP_NAME, epoch, &offers.offers(), now, &mut calls);
        let never_launched = std::mem::take(&mut calls.never_launched);
        let placed = calls.placed;
        drop(offers);
        world.recorder.answered(answerer.decisions(), placed);
        world.corners.batch_answered();
        if let Some(tasks) = &self.tasks {
            world.checker.tasks_decided(&tasks.take_picked(), answerer.decisions());
            world.checker.tasks_joined(&tasks.take_joined());
        }
        world.checker.batch_answered(handler, answerer.decisions());
        world.checker.batch_ends(handler, answerer.decisions(), now);
        self.report_never_launched(never_launched, world);
    }

    /// The first step: commits the batch and counts it. No call has been made yet.
    fn commit(&mut self, handler: usize, epoch: u64, now: Timestamp, world: &mut World<'_>) {
        let written = self.buffer.write(&self.batch);
        let offers = written.offers();
        let answerer = &mut self.handlers[handler].answerer;
        let (answered, batch) = answerer.decide(&offers, now);
        if let Some(tasks) = &self.tasks {
            world.checker.tasks_decided(&tasks.take_picked(), answerer.decisions());
            world.checker.tasks_joined(&tasks.take_joined());
        }
        let placed = answerer.placed(&offers);
        world.recorder.answered(answerer.decisions(), placed.len() as u32);
        world.checker.committed(handler, &placed, now);
        world.checker.batch_answered(handler, answerer.decisions());
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
            until: world.events.now.saturating_add(self.slow.amount),
        };
        self.schedule_next_call(handler, slow, world);
        let busy = self.handlers.iter().all(|handler| handler.slow.is_some());
        world.checker.handlers_busy(busy, world.events.now);
    }

    /// Schedules the next step at a random time. The remaining steps share the remaining time.
    fn schedule_next_call(&mut self, handler: usize, slow: SlowAnswer, world: &mut World<'_>) {
        let remaining = slow.until.saturating_sub(world.events.now);
        let steps = (slow.calls - slow.made) as u64 + 1;
        let after = self.rng.below(remaining.min(remaining.saturating_mul(2) / steps) + 1);
        let it = &mut self.handlers[handler];
        it.is_awake = true;
        it.slow = Some(slow);
        world.events.after(after, SimEvent::Answer { handler });
    }

    /// A later step: makes the next call, or ends the batch after the last one.
    fn make_next_call(&mut self, handler: usize, mut slow: SlowAnswer, world: &mut World<'_>) {
        let now = self.now(world.events);
        let answerer = &self.handlers[handler].answerer;
        world.corners.call_made(slow.seen);
        if slow.made < slow.calls {
            let written = self.buffer.write(&slow.batch);
            let mut calls =
                SimulatedCalls::new(&self.kernel, self.stream, now, world).of_handler(handler);
            answerer.make_call(slow.made, APP_NAME, slow.epoch, &written.offers(), &mut calls);
            let never_launched = std::mem::take(&mut calls.never_launched);
            slow.made += 1;
            if slow.made >= answerer.decisions().accepts().len() {
                slow.launches = None;
            } else if let Some(batch) = &slow.launches {
                batch.set_returned(slow.made as u32);
            }
            self.schedule_next_call(handler, slow, world);
            return self.report_never_launched(never_launched, world);
        }
        answerer.calls_made(slow.answered, now);
        world.checker.batch_answered(handler, answerer.decisions());
        world.checker.batch_ends(handler, answerer.decisions(), now);
        world.checker.handlers_busy(false, world.events.now);
        self.handlers[handler].is_awake = false;
        if self.offer_queue.len() > 0 {
            self.wake_handler(handler, world.events);
        }
    }

    /// Reports launches that certainly had no effect to the controller.
    fn report_never_launched(&mut self, never_launched: Vec<String>, world: &mut World<'_>) {
        if !never_launched.is_empty() {
            let now = self.now(world.events);
            let mut calls = SimulatedCalls::new(&self.kernel, self.stream, now, world);
            self.controller.never_launched(never_launched, now, &mut calls);
        }
    }

    /// Answers all batches, including those in the queue, at the present virtual time.
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
