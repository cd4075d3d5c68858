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
#[cfg(feature = "simulated")]
use super::notice::PlacedExecutor;
use super::placed_batch::PlacedBatch;
use super::recorded_kernel::{DueRevives, RecordedKernel};
use super::sinks::AnswerSink;
use super::sync::catch;
use super::task_chooser::TaskChooser;
use crate::kernel::{Accepted, Decisions, Handler, Picks, Placed, Reason, Unplaced};
use crate::launch::{LaunchContext, Launcher};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Answers offers with one of the kernel's handlers.
pub(crate) struct OfferHandler {
    recorded_kernel: RecordedKernel,
    launcher: Arc<dyn Launcher>,
    handler: Handler,
    planner: BatchPlanner,
    decisions: Decisions,
    progress: Cell<AnswerProgress>,
}

/// What plans a batch: which executors are placed on its offers.
enum BatchPlanner {
    /// Executors of the configured size, by the kernel.
    Executors,
    /// Tasks of the framework's choice.
    Tasks { chooser: Arc<dyn TaskChooser>, picks: Picks },
}

/// What an ACCEPT call is made of.
#[derive(Default)]
struct AcceptParts<'b> {
    offers: Vec<&'b Offer<'b>>,
    executors: Vec<Launch<'b>>,
}

/// How far the answer to a batch has got; what is left to do after a panic follows from it.
#[derive(Clone, Copy)]
enum AnswerProgress {
    /// The kernel has not decided.
    Undecided,
    Decided {
        answered: DueRevives,
        /// Whether the executors were reported.
        is_placed: bool,
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
        chooser: Option<Arc<dyn TaskChooser>>,
    ) -> OfferHandler {
        let planner = match chooser {
            Some(chooser) => BatchPlanner::Tasks { chooser, picks: Picks::new() },
            None => BatchPlanner::Executors,
        };
        OfferHandler {
            handler: recorded_kernel.kernel().handler(),
            planner,
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
        let placed = self.report_placed(self.decisions.accepts(), offers, out);
        let mut row = 0;
        let mut parts = AcceptParts::default();
        for (accepted, number) in self.decisions.accepts().zip(1..) {
            self.accept((app, epoch), offers, &accepted, (&placed, row), &mut parts, out);
            row += accepted.executors.len();
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
        let OfferHandler { recorded_kernel, handler, planner, decisions, .. } = self;
        let batch = recorded_kernel.launches().begin(recorded_kernel.kernel());
        let answered = match planner {
            BatchPlanner::Executors => recorded_kernel.answer(handler, offers, now, decisions),
            BatchPlanner::Tasks { chooser, picks } => {
                let chosen = (&**chooser, picks);
                recorded_kernel.answer_with_tasks(handler, chosen, offers, now, decisions)
            }
        };
        self.progress.set(AnswerProgress::Decided {
            answered,
            is_placed: false,
            accepts: 0,
            declines: 0,
        });
        batch.set_executors(&self.decisions);
        if let BatchPlanner::Tasks { chooser, .. } = &self.planner
            && !self.decisions.unplaced().is_empty()
        {
            chooser.unplaced(self.decisions.unplaced());
        }
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
            let this = self.decisions.accepts().skip(number).take(1);
            let placed = self.report_placed(this, offers, out);
            let mut parts = AcceptParts::default();
            return self.accept((app, epoch), offers, &accepted, (&placed, 0), &mut parts, out);
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
        let placed = self.placed_batch(self.decisions.accepts(), offers);
        placed.executors(0..placed.len()).collect()
    }

    /// Last step of an answer: all its calls have been made.
    pub(crate) fn calls_made(&self, answered: DueRevives, now: Timestamp) {
        self.recorded_kernel.answers_sent(&self.decisions, answered, now);
    }

    fn record_progress(&self, step: impl FnOnce(&mut bool, &mut usize, &mut usize)) {
        let mut progress = self.progress.get();
        if let AnswerProgress::Decided { is_placed, accepts, declines, .. } = &mut progress {
            step(is_placed, accepts, declines);
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
        let AnswerProgress::Decided { answered, is_placed, accepts, declines } =
            self.progress.get()
        else {
            // The chooser or the kernel itself panicked, and the handler's scratch memory may be inconsistent.
            self.handler = self.recorded_kernel.kernel().handler();
            self.return_picks();
            let ids: Vec<&str> = offers.iter().map(|offer| offer.id).collect();
            return decline(&ids, refuse, out);
        };
        let placed = match is_placed {
            true => Arc::new(self.placed_batch(self.decisions.accepts(), offers)),
            false => self.report_placed(self.decisions.accepts(), offers, out),
        };
        let mut row = 0;
        for (accepted, number) in self.decisions.accepts().zip(0..) {
            let rows = row..row + accepted.executors.len();
            row = rows.end;
            if number < accepts {
                continue;
            }
            out.never_launched(placed.names(rows).map(str::to_owned).collect());
            let own = accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize));
            let ids: Vec<&str> = own.map(|offer| offer.id).collect();
            decline(&ids, refuse, out);
        }
        for (refuse, ids) in by_duration(offers, &self.decisions).into_iter().skip(declines) {
            decline(&ids, refuse, out);
        }
        self.recorded_kernel.answers_sent(&self.decisions, answered, now);
    }

    /// Returns all picks of a batch that was not committed.
    fn return_picks(&mut self) {
        let BatchPlanner::Tasks { chooser, picks } = &mut self.planner else { return };
        let unplaced = picks.iter().zip(0..).map(|(pick, position)| Unplaced {
            pick: position,
            tag: pick.task.tag,
            reason: Reason::Contended,
        });
        let unplaced: Vec<Unplaced> = unplaced.collect();
        picks.clear();
        if !unplaced.is_empty() {
            // A chooser that panics again has lost them.
            let _panicked = catch(|| chooser.unplaced(&unplaced));
        }
    }

    /// The decisions of the last batch.
    #[cfg(feature = "simulated")]
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Makes the call that launches the executors of one acceptance. `placed` is a batch that contains them, and the
    /// row of the first. `parts` are those of the batch's calls before, whose memory is used again.
    fn accept<'b>(
        &self,
        (app, epoch): (&str, u64),
        offers: &'b [Offer<'b>],
        accepted: &Accepted<'_>,
        (placed, row): (&'b PlacedBatch, usize),
        parts: &mut AcceptParts<'b>,
        out: &mut dyn AnswerSink,
    ) {
        let AcceptParts { offers: own, executors } = parts;
        own.clear();
        own.extend(accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize)));
        let Some(first) = own.first() else { return };
        let rows = row..row + accepted.executors.len();
        let pairs = accepted.executors.iter().zip(placed.names(rows.clone())).zip(0..);
        executors.clear();
        executors.extend(pairs.map(|((placed, executor), position)| {
            let context = LaunchContext {
                executor,
                app,
                agent_id: first.agent_id,
                hostname: first.hostname,
                cores: placed.advertised_cores,
                memory: placed.advertised_memory,
                gpus: placed.resources.gpus,
                port: placed.resources.port,
                tag: accepted.tag(position),
            };
            Launch {
                executor,
                profile: ResourceProfileId::default(),
                resources: placed.resources,
                pieces: taken_pieces(accepted, placed, offers),
                command: self.launcher.command(&context),
                queue: self.recorded_kernel.kernel().queue_name(placed.id),
            }
        }));
        let call = Call::Accept(Accept {
            epoch,
            agent_id: first.agent_id,
            offers: own,
            executors,
            refuse: accepted.refuse,
        });
        self.record_progress(|_, accepts, _| *accepts += 1);
        if !out.call(call) {
            out.never_launched(placed.names(rows).map(str::to_owned).collect());
        }
    }

    /// Reports the executors of these acceptances, in one message.
    fn report_placed<'d>(
        &self,
        accepts: impl Iterator<Item = Accepted<'d>>,
        offers: &[Offer<'_>],
        out: &mut dyn AnswerSink,
    ) -> Arc<PlacedBatch> {
        let placed = Arc::new(self.placed_batch(accepts, offers));
        self.record_progress(|is_placed, _, _| *is_placed = true);
        if placed.len() > 0 {
            out.placed(Arc::clone(&placed));
        }
        placed
    }

    /// The executors of these acceptances, with their ids as the cluster knows them.
    fn placed_batch<'d>(
        &self,
        accepts: impl Iterator<Item = Accepted<'d>>,
        offers: &[Offer<'_>],
    ) -> PlacedBatch {
        let kernel = self.recorded_kernel.kernel();
        let mut batch = PlacedBatch::with_capacity(self.decisions.executors());
        for accepted in accepts {
            let first = accepted.offers.first().and_then(|offer| offers.get(*offer as usize));
            for (placed, position) in accepted.executors.iter().zip(0..) {
                let name = kernel.executor_name(placed.id);
                let tag = accepted.tag(position);
                batch.push(placed.id, name, first, placed.resources, tag);
            }
        }
        batch
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
