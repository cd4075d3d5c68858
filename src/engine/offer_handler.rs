//! From a batch of offers, through the kernel, into calls.
//!
//! The launcher, the reader of offers and the cluster manager are others' code, and may panic. A panic costs a handler
//! its batch and no more: offers that no call has answered are declined, and executors that are committed but whose
//! launch was not begun are taken back. A call that panicked counts as made: its outcome is the cluster's to tell.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{Accept, Call, Launch, Shape, Taken};
use super::control::Control;
use super::encoded::{EncodedOffer, ReadOffers};
use super::gate::Gate;
use super::launches::Batch;
use super::notice::PlacedExecutor;
use super::offer_queue::QueuedOffer;
use super::owned::lend;
use super::recorded_kernel::{Answered, RecordedKernel};
use super::shared::Shared;
use super::sync::catch;
use crate::kernel::{Accepted, Decisions, Handler, Placed};
use crate::launch::{Facts, Launcher};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Answers offers until the offer queue is closed and empty: a handler thread's work.
pub(super) fn answer_offers(shared: &Shared, gate: &Gate) {
    let mut answerer =
        OfferHandler::new(shared.recorded_kernel.clone(), Arc::clone(&shared.launcher));
    let mut reader = offer_reader(shared);
    let (mut batch, mut owned, mut encoded) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(epoch) = shared.offer_queue.pop(shared.options.batch_max, &mut batch) {
        for waiting in batch.drain(..) {
            match waiting {
                QueuedOffer::Owned(offer) => owned.push(offer),
                QueuedOffer::Encoded(offer) => encoded.push(offer),
            }
        }
        let (app, now) = (shared.app(), shared.clock.now());
        let mut out = AnswerCalls { shared, gate };
        let mut answer = |offers: &[Offer<'_>]| {
            if let Err(why) = catch(|| answerer.answer(&app, epoch, offers, now, &mut out)) {
                shared.tell(Control::HandlerPanicked { why });
                answerer.make_good(epoch, offers, now, &mut out);
            }
        };
        if !owned.is_empty() {
            lend(&owned, &mut answer);
        }
        let (unreadable, panicked) = read(reader.as_deref_mut(), &encoded, &mut answer);
        if let Some(why) = panicked {
            shared.tell(Control::HandlerPanicked { why });
            reader = offer_reader(shared);
        }
        if !unreadable.is_empty() {
            shared.tell(Control::Unreadable { epoch, offers: unreadable });
        }
        owned.clear();
        encoded.clear();
    }
}

/// The manager's reader; if it panics, none.
fn offer_reader(shared: &Shared) -> Option<Box<dyn ReadOffers>> {
    catch(|| shared.manager.offer_reader()).unwrap_or_else(|why| {
        shared.tell(Control::HandlerPanicked { why });
        None
    })
}

/// Has offers read and answered. Returns the ids of those that can't be read, and what the reader said if it panicked:
/// then those that it had not handed over can't be read.
fn read(
    reader: Option<&mut (dyn ReadOffers + 'static)>,
    encoded: &[EncodedOffer],
    answer: &mut impl FnMut(&[Offer<'_>]),
) -> (Vec<String>, Option<String>) {
    let all = || encoded.iter().map(|offer| offer.id().to_owned()).collect();
    if encoded.is_empty() {
        return (Vec::new(), None);
    }
    let Some(reader) = reader else { return (all(), None) };
    let mut ids = None;
    let read = catch(|| {
        reader.read(encoded, &mut |offers, unreadable| {
            if !offers.is_empty() {
                answer(offers);
            }
            let ids = ids.get_or_insert_with(Vec::new);
            let unreadable = unreadable.filter_map(|place| encoded.get(place));
            ids.extend(unreadable.map(|offer| offer.id().to_owned()));
        });
    });
    let panicked = read.err();
    let unread = || if panicked.is_some() { all() } else { Vec::new() };
    (ids.unwrap_or_else(unread), panicked)
}

/// Where answers go.
pub(crate) trait AnswerSink {
    /// Makes a call; `false` if it surely had no effect.
    fn call(&mut self, call: Call<'_>) -> bool;
    /// Told before the call that launches them, so that no update can come before it.
    fn placed(&mut self, placed: Vec<PlacedExecutor>);
    /// The call that was to launch them surely had no effect.
    fn never_launched(&mut self, executors: Vec<String>);
}

/// A handler's way out.
struct AnswerCalls<'a> {
    shared: &'a Shared,
    gate: &'a Gate,
}

impl AnswerSink for AnswerCalls<'_> {
    fn call(&mut self, call: Call<'_>) -> bool {
        self.shared.call(self.gate, call)
    }

    fn placed(&mut self, placed: Vec<PlacedExecutor>) {
        self.shared.tell(Control::Placed(placed));
    }

    fn never_launched(&mut self, executors: Vec<String>) {
        self.shared.tell(Control::NeverLaunched(executors));
    }
}

/// One handler, and what it needs to turn decisions into calls.
pub(crate) struct OfferHandler {
    recorded_kernel: RecordedKernel,
    launcher: Arc<dyn Launcher>,
    handler: Handler,
    decisions: Decisions,
    progress: Cell<Progress>,
}

/// How far the answer to a batch has come.
#[derive(Clone, Copy)]
enum Progress {
    /// The kernel has not decided.
    Undecided,
    Decided {
        answered: Answered,
        /// So many acceptances' executors have been told of.
        placed: usize,
        /// So many acceptances' calls have been begun,
        accepts: usize,
        /// and so many calls that decline.
        declines: usize,
    },
}

impl OfferHandler {
    /// `recorded_kernel` is a clone of the one that the [`Controller`](super::controller::Controller) has.
    pub(crate) fn new(
        recorded_kernel: RecordedKernel,
        launcher: Arc<dyn Launcher>,
    ) -> OfferHandler {
        let decisions = Decisions::new();
        let progress = Cell::new(Progress::Undecided);
        OfferHandler {
            handler: recorded_kernel.kernel().handler(),
            decisions,
            recorded_kernel,
            launcher,
            progress,
        }
    }

    /// Answers offers that came under one subscription.
    pub(crate) fn answer(
        &mut self,
        app: &str,
        epoch: u64,
        offers: &[Offer<'_>],
        now: Timestamp,
        out: &mut dyn AnswerSink,
    ) {
        let (answered, batch) = self.decide(offers, now);
        for (accepted, number) in self.decisions.accepts().zip(1..) {
            self.accept(app, epoch, offers, &accepted, out);
            // The manager was told of these: they may be asked about by name, and killed.
            batch.made(number);
        }
        drop(batch);
        for (refuse, declined) in by_duration(offers, &self.decisions) {
            self.went_on(|_, _, declines| *declines += 1);
            out.call(Call::Decline { epoch, offers: &declined, refuse });
        }
        self.calls_made(answered, now);
    }

    /// The first step of an answer: commits the batch.
    pub(crate) fn decide(&mut self, offers: &[Offer<'_>], now: Timestamp) -> (Answered, Batch) {
        self.progress.set(Progress::Undecided);
        let batch = self.recorded_kernel.launches().begin(self.recorded_kernel.kernel());
        let answered =
            self.recorded_kernel.answer(&mut self.handler, offers, now, &mut self.decisions);
        self.progress.set(Progress::Decided { answered, placed: 0, accepts: 0, declines: 0 });
        batch.placed(&self.decisions);
        (answered, batch)
    }

    /// One of the steps between: makes the call with this number, accepts first. Does nothing if there are fewer.
    #[cfg(feature = "simulated")]
    pub(crate) fn make_call(
        &self,
        number: usize,
        app: &str,
        epoch: u64,
        offers: &[Offer<'_>],
        out: &mut dyn AnswerSink,
    ) {
        if let Some(accepted) = self.decisions.accepts().nth(number) {
            return self.accept(app, epoch, offers, &accepted, out);
        }
        let declines = by_duration(offers, &self.decisions).into_iter();
        for (refuse, declined) in declines.skip(number - self.decisions.accepts().len()).take(1) {
            out.call(Call::Decline { epoch, offers: &declined, refuse });
        }
    }

    /// How many calls the answer to the last batch has.
    #[cfg(feature = "simulated")]
    pub(crate) fn calls(&self, offers: &[Offer<'_>]) -> usize {
        self.decisions.accepts().len() + by_duration(offers, &self.decisions).len()
    }

    /// The executors that the last batch places, as notices tell of them.
    #[cfg(feature = "simulated")]
    pub(crate) fn placed(&self, offers: &[Offer<'_>]) -> Vec<PlacedExecutor> {
        let of_one = |accepted: Accepted<'_>| {
            let first = accepted.offers.first().and_then(|offer| offers.get(*offer as usize));
            first.map(|first| describe(&accepted, &self.names(&accepted), first))
        };
        self.decisions.accepts().filter_map(of_one).flatten().collect()
    }

    /// The last step of an answer: all its calls have been made.
    pub(crate) fn calls_made(&self, answered: Answered, now: Timestamp) {
        self.recorded_kernel.answers_sent(&self.decisions, answered, now);
    }

    fn went_on(&self, step: impl FnOnce(&mut usize, &mut usize, &mut usize)) {
        let mut progress = self.progress.get();
        if let Progress::Decided { placed, accepts, declines, .. } = &mut progress {
            step(placed, accepts, declines);
        }
        self.progress.set(progress);
    }

    /// Does what is left of a batch in which something panicked, as far as it needs nobody who might do it again.
    fn make_good(
        &mut self,
        epoch: u64,
        offers: &[Offer<'_>],
        now: Timestamp,
        out: &mut dyn AnswerSink,
    ) {
        let refuse = self.recorded_kernel.kernel().config().refuse_durations().other;
        // What panics again was at least asked for.
        let decline = |ids: &[&str], refuse: Duration, out: &mut dyn AnswerSink| {
            let _panicked = catch(|| out.call(Call::Decline { epoch, offers: ids, refuse }));
        };
        let Progress::Decided { answered, placed, accepts, declines } = self.progress.get() else {
            // The kernel itself panicked, which leaves its handler's scratch in any state.
            self.handler = self.recorded_kernel.kernel().handler();
            let ids: Vec<&str> = offers.iter().map(|offer| offer.id).collect();
            return decline(&ids, refuse, out);
        };
        for (accepted, number) in self.decisions.accepts().zip(0..).skip(accepts) {
            let own = accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize));
            let own: Vec<&Offer<'_>> = own.collect();
            let names = self.names(&accepted);
            if let (Some(first), true) = (own.first(), number >= placed) {
                out.placed(describe(&accepted, &names, first));
            }
            out.never_launched(names);
            let ids: Vec<&str> = own.iter().map(|offer| offer.id).collect();
            decline(&ids, refuse, out);
        }
        for (refuse, ids) in by_duration(offers, &self.decisions).into_iter().skip(declines) {
            decline(&ids, refuse, out);
        }
        self.recorded_kernel.answers_sent(&self.decisions, answered, now);
    }

    /// The decisions of the last batch.
    #[cfg(feature = "simulated")]
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    fn accept(
        &self,
        app: &str,
        epoch: u64,
        offers: &[Offer<'_>],
        accepted: &Accepted<'_>,
        out: &mut dyn AnswerSink,
    ) {
        let own: Vec<&Offer<'_>> =
            accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize)).collect();
        let Some(first) = own.first() else { return };
        let names = self.names(accepted);
        self.went_on(|placed, _, _| *placed += 1);
        out.placed(describe(accepted, &names, first));
        let pairs = accepted.executors.iter().zip(&names);
        let executors: Vec<Launch<'_>> = pairs
            .map(|(placed, executor)| {
                let facts = Facts {
                    executor,
                    app,
                    agent_id: first.agent_id,
                    hostname: first.hostname,
                    cores: placed.advertised_cores,
                    memory: placed.advertised_memory,
                    port: placed.port,
                };
                Launch {
                    executor,
                    shape: Shape::default(),
                    cores: placed.cores,
                    memory: placed.memory,
                    gpus: placed.gpus,
                    port: placed.port,
                    pieces: take(accepted, placed, offers),
                    command: self.launcher.command(&facts),
                }
            })
            .collect();
        let call = Call::Accept(Accept {
            epoch,
            agent_id: first.agent_id,
            offers: &own,
            executors: &executors,
            refuse: accepted.refuse,
        });
        self.went_on(|_, accepts, _| *accepts += 1);
        if !out.call(call) {
            out.never_launched(names);
        }
    }

    fn names(&self, accepted: &Accepted<'_>) -> Vec<String> {
        let name =
            |placed: &Placed| self.recorded_kernel.kernel().executor_name(placed.id).to_string();
        accepted.executors.iter().map(name).collect()
    }
}

/// Declined offers by how long they are refused for: a few calls for a batch.
fn by_duration<'a>(offers: &[Offer<'a>], decisions: &Decisions) -> Vec<(Duration, Vec<&'a str>)> {
    let mut groups: Vec<(Duration, Vec<&str>)> = Vec::new();
    for decline in decisions.declines() {
        let Some(offer) = offers.get(decline.offer as usize) else { continue };
        match groups.iter_mut().find(|(refuse, _)| *refuse == decline.refuse) {
            Some((_, ids)) => ids.push(offer.id),
            None => groups.push((decline.refuse, vec![offer.id])),
        }
    }
    groups
}

fn describe(accepted: &Accepted<'_>, names: &[String], offer: &Offer<'_>) -> Vec<PlacedExecutor> {
    let pairs = accepted.executors.iter().zip(names);
    let described = pairs.map(|(placed, executor)| PlacedExecutor {
        id: placed.id,
        executor: executor.clone(),
        agent_id: offer.agent_id.to_owned(),
        hostname: offer.hostname.to_owned(),
        cores: placed.cores,
        memory: placed.memory,
        gpus: placed.gpus,
        port: placed.port,
    });
    described.collect()
}

fn take<'a>(accepted: &Accepted<'_>, placed: &Placed, offers: &'a [Offer<'a>]) -> Vec<Taken<'a>> {
    let pieces = accepted.pieces(placed).iter();
    let taken = pieces.filter_map(|piece| {
        let resources = offers.get(piece.offer as usize)?.resources;
        let resource = resources.get(piece.resource as usize)?;
        Some(Taken { resource, amount: piece.amount })
    });
    taken.collect()
}
