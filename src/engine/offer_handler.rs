//! The offer handler: has the kernel decide about a batch of offers, and turns the decisions into ACCEPT and DECLINE
//! calls.
//!
//! The launcher and the cluster manager are foreign code and may panic. A panic costs one batch: offers that no call
//! has answered are declined, and executors that are committed but whose launch was not begun are released. A call that
//! panicked counts as made: its outcome is unknown until the cluster reports it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{Accept, Call, Launch, ResourceProfileId, TakenResource};
use super::launches::LaunchBatch;
use super::notice::PlacedExecutor;
use super::recorded_kernel::{DueRevives, RecordedKernel};
use super::sinks::AnswerSink;
use super::sync::catch;
use crate::kernel::{Accepted, Decisions, Handler, Placed};
use crate::launch::{LaunchContext, Launcher};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Answers offers with one of the kernel's handlers.
pub(crate) struct OfferHandler {
    recorded_kernel: RecordedKernel,
    launcher: Arc<dyn Launcher>,
    handler: Handler,
    decisions: Decisions,
    progress: Cell<AnswerProgress>,
}

/// How far the answer to a batch has got; what is left to do after a panic follows from it.
#[derive(Clone, Copy)]
enum AnswerProgress {
    /// The kernel has not decided.
    Undecided,
    Decided {
        answered: DueRevives,
        /// The number of acceptances whose executors were reported.
        placed: usize,
        /// The number of ACCEPT calls that were begun.
        accepts: usize,
        /// The number of DECLINE calls that were begun.
        declines: usize,
    },
}

impl OfferHandler {
    /// `recorded_kernel` is a clone of the one that the [`Controller`](super::controller::Controller) has.
    pub(crate) fn new(
        recorded_kernel: RecordedKernel,
        launcher: Arc<dyn Launcher>,
    ) -> OfferHandler {
        OfferHandler {
            handler: recorded_kernel.kernel().handler(),
            decisions: Decisions::new(),
            progress: Cell::new(AnswerProgress::Undecided),
            recorded_kernel,
            launcher,
        }
    }

    /// Answers offers of one subscription.
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
            // Now their executors may be asked about by name, and killed.
            batch.set_returned(number);
        }
        drop(batch);
        for (refuse, declined) in by_duration(offers, &self.decisions) {
            self.record_progress(|_, _, declines| *declines += 1);
            out.call(Call::Decline { epoch, offers: &declined, refuse });
        }
        self.calls_made(answered, now);
    }

    /// First step of an answer: the kernel decides and commits the batch.
    pub(crate) fn decide(
        &mut self,
        offers: &[Offer<'_>],
        now: Timestamp,
    ) -> (DueRevives, LaunchBatch) {
        self.progress.set(AnswerProgress::Undecided);
        let recorded_kernel = &self.recorded_kernel;
        let batch = recorded_kernel.launches().begin(recorded_kernel.kernel());
        let answered = recorded_kernel.answer(&mut self.handler, offers, now, &mut self.decisions);
        self.progress.set(AnswerProgress::Decided { answered, placed: 0, accepts: 0, declines: 0 });
        batch.set_executors(&self.decisions);
        (answered, batch)
    }

    /// Middle step of an answer: makes the call with this number, ACCEPTs first. Does nothing if there are fewer calls.
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

    /// The number of calls that answer the last batch.
    #[cfg(feature = "simulated")]
    pub(crate) fn calls(&self, offers: &[Offer<'_>]) -> usize {
        self.decisions.accepts().len() + by_duration(offers, &self.decisions).len()
    }

    /// The executors that the last batch places.
    #[cfg(feature = "simulated")]
    pub(crate) fn placed(&self, offers: &[Offer<'_>]) -> Vec<PlacedExecutor> {
        let of_one = |accepted: Accepted<'_>| {
            let first = accepted.offers.first().and_then(|offer| offers.get(*offer as usize));
            first.map(|first| placed_executors(&accepted, &self.names(&accepted), first))
        };
        self.decisions.accepts().filter_map(of_one).flatten().collect()
    }

    /// Last step of an answer: all its calls have been made.
    pub(crate) fn calls_made(&self, answered: DueRevives, now: Timestamp) {
        self.recorded_kernel.answers_sent(&self.decisions, answered, now);
    }

    fn record_progress(&self, step: impl FnOnce(&mut usize, &mut usize, &mut usize)) {
        let mut progress = self.progress.get();
        if let AnswerProgress::Decided { placed, accepts, declines, .. } = &mut progress {
            step(placed, accepts, declines);
        }
        self.progress.set(progress);
    }

    /// Completes the answer to a batch in which the launcher or a call panicked, without calling the launcher again.
    pub(super) fn finish_after_panic(
        &mut self,
        epoch: u64,
        offers: &[Offer<'_>],
        now: Timestamp,
        out: &mut dyn AnswerSink,
    ) {
        let refuse = self.recorded_kernel.kernel().config().refuse_durations().other;
        // If a call panics again, the other offers are still declined.
        let decline = |ids: &[&str], refuse: Duration, out: &mut dyn AnswerSink| {
            let _panicked = catch(|| out.call(Call::Decline { epoch, offers: ids, refuse }));
        };
        let AnswerProgress::Decided { answered, placed, accepts, declines } = self.progress.get()
        else {
            // The kernel itself panicked, and its handler's scratch memory may be inconsistent.
            self.handler = self.recorded_kernel.kernel().handler();
            let ids: Vec<&str> = offers.iter().map(|offer| offer.id).collect();
            return decline(&ids, refuse, out);
        };
        for (accepted, number) in self.decisions.accepts().zip(0..).skip(accepts) {
            let own = accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize));
            let own: Vec<&Offer<'_>> = own.collect();
            let names = self.names(&accepted);
            if let (Some(first), true) = (own.first(), number >= placed) {
                out.placed(placed_executors(&accepted, &names, first));
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

    /// Reports the executors of one acceptance and makes the call that launches them.
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
        self.record_progress(|placed, _, _| *placed += 1);
        out.placed(placed_executors(accepted, &names, first));
        let pairs = accepted.executors.iter().zip(&names);
        let executors: Vec<Launch<'_>> = pairs
            .map(|(placed, executor)| {
                let context = LaunchContext {
                    executor,
                    app,
                    agent_id: first.agent_id,
                    hostname: first.hostname,
                    cores: placed.advertised_cores,
                    memory: placed.advertised_memory,
                    gpus: placed.resources.gpus,
                    port: placed.resources.port,
                };
                Launch {
                    executor,
                    profile: ResourceProfileId::default(),
                    resources: placed.resources,
                    pieces: taken_pieces(accepted, placed, offers),
                    command: self.launcher.command(&context),
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
        self.record_progress(|_, accepts, _| *accepts += 1);
        if !out.call(call) {
            out.never_launched(names);
        }
    }

    /// The ids of the executors of one acceptance, as the cluster knows them.
    fn names(&self, accepted: &Accepted<'_>) -> Vec<String> {
        let name =
            |placed: &Placed| self.recorded_kernel.kernel().executor_name(placed.id).to_string();
        accepted.executors.iter().map(name).collect()
    }
}

/// The declined offers, grouped by how long they are refused: a batch needs few calls.
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

/// The executors of one acceptance, as notices report them. `offer` is one of its offers.
fn placed_executors(
    accepted: &Accepted<'_>,
    names: &[String],
    offer: &Offer<'_>,
) -> Vec<PlacedExecutor> {
    let pairs = accepted.executors.iter().zip(names);
    let described = pairs.map(|(placed, executor)| PlacedExecutor {
        id: placed.id,
        executor: executor.clone(),
        agent_id: offer.agent_id.to_owned(),
        hostname: offer.hostname.to_owned(),
        resources: placed.resources,
    });
    described.collect()
}

/// The pieces of the offers' resources that an executor takes.
fn taken_pieces<'a>(
    accepted: &Accepted<'_>,
    placed: &Placed,
    offers: &'a [Offer<'a>],
) -> Vec<TakenResource<'a>> {
    let pieces = accepted.pieces(placed).iter();
    let taken = pieces.filter_map(|piece| {
        let resources = offers.get(piece.offer as usize)?.resources;
        let resource = resources.get(piece.resource as usize)?;
        Some(TakenResource { resource, amount: piece.amount })
    });
    taken.collect()
}
