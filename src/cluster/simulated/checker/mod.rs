//! Whether what was done is right, by accounts of its own. Each rule bears the number that it has in the table of
//! invariants in the docs of the [crate's root](crate).
//!
//! The judge sees what went in (offers, updates), what came out (calls, notices) and the kernel's public face. It
//! never looks at how the kernel came to it.

mod answers;
mod demand;
mod kills;
mod ledger;
mod messages;
mod questions;
mod under_way;
mod waiting;

use std::time::Duration;

use super::framework::Settings;
use super::scenario::Scenario;
use super::wire::{AgentRef, SimOffer};
use crate::engine::cluster_manager::{Call, Update};
use crate::engine::{Notice, PlacedExecutor};
use crate::ids::ExecutorId;
use crate::kernel::{Change, Decisions, DrainReport, Kernel, Reason};
use crate::resources::MilliCpus;
use crate::time::Timestamp;
use answers::{Answers, Decided};
use demand::Demand;
use kills::Kills;
use ledger::Ledger;
use messages::Messages;
use questions::Questions;
use under_way::UnderWay;
use waiting::OpenOffers;

/// What was found to be wrong: the rule's number, and how.
pub(super) type Finding = (u8, String);

pub(super) struct Checker {
    on: bool,
    found: Option<Finding>,
    ledger: Ledger,
    waiting: OpenOffers,
    /// Of each handler.
    answers: Vec<Answers>,
    messages: Messages,
    demand: Demand,
    kills: Kills,
    questions: Questions,
    under_way: UnderWay,
    settings: Settings,
    /// How often they changed.
    changes: u64,
    closed: bool,
    /// What the books said after the last step, and the number of the last snapshot.
    before: (u32, MilliCpus),
    snapshot: u64,
}

impl Checker {
    pub(super) fn new(scenario: &Scenario, on: bool) -> Checker {
        Checker {
            on,
            found: None,
            ledger: Ledger::new(scenario),
            waiting: OpenOffers::default(),
            answers: (0..scenario.handlers).map(|_| Answers::new(scenario)).collect(),
            messages: Messages::default(),
            demand: Demand::default(),
            kills: Kills::default(),
            questions: Questions::default(),
            under_way: UnderWay::default(),
            settings: Settings::of(scenario),
            changes: 0,
            closed: false,
            before: (0, MilliCpus::ZERO),
            snapshot: 0,
        }
    }

    /// The first thing that was found to be wrong.
    pub(super) fn verdict(&mut self) -> Option<Finding> {
        self.found.take()
    }

    fn note(&mut self, result: Result<(), Finding>) {
        if let Err(finding) = result {
            self.found.get_or_insert(finding);
        }
    }

    pub(super) fn offers_arrive(&mut self, offers: &[SimOffer], virtual_now: u64) {
        if self.on {
            self.waiting.arrive(offers, virtual_now);
            self.ledger.agents_seen(offers, virtual_now);
        }
    }

    /// These found no room in the offer queue.
    pub(super) fn overflow(&mut self, offers: &[SimOffer]) {
        if self.on {
            self.waiting.overflow(offers);
        }
    }

    /// They were declined.
    pub(super) fn overflow_ends(&mut self) {
        if self.on {
            let ended = self.waiting.overflow_ends();
            self.note(ended);
        }
    }

    /// The cluster takes an offer back, wherever it is by now.
    pub(super) fn rescinded(&mut self, offer: u64) {
        if self.on {
            self.waiting.rescinded(offer);
        }
    }

    pub(super) fn batch_begins(
        &mut self,
        handler: usize,
        batch: &[SimOffer],
        now: Timestamp,
        settings: Settings,
        virtual_now: u64,
    ) {
        if self.on {
            let taken = self.waiting.taken(batch, virtual_now);
            self.note(taken);
            let decided = Decided { settings, now, changes: self.changes, closed: self.closed };
            self.answers[handler].begin(batch, decided, &self.ledger);
        }
    }

    /// A batch was committed, and its calls will be made later: nobody was told of these executors.
    pub(super) fn committed(&mut self, handler: usize, placed: &[PlacedExecutor], now: Timestamp) {
        for notice in placed.iter().cloned().map(Notice::Placed) {
            self.noticed(&notice, now);
        }
        // Also noted when nothing is judged: whether a kill waits depends on it.
        self.under_way.committed(handler, placed);
    }

    /// Whether all handlers are at their batches.
    pub(super) fn handlers_busy(&mut self, busy: bool, virtual_now: u64) {
        self.waiting.handlers_busy(busy, virtual_now);
    }

    /// A call, by a handler if it is an answer. One that is stale has no effect.
    pub(super) fn called(
        &mut self,
        call: &Call<'_>,
        (handler, stale): (usize, bool),
        kernel: &Kernel,
        now: Timestamp,
    ) {
        if let Call::Accept(accept) = call {
            self.under_way.sent(accept.executors);
        }
        if !self.on {
            return;
        }
        let closed = self.closed;
        let judged = match call {
            Call::Accept(accept) => {
                let present = self.waiting.answered_under(accept.epoch, stale);
                present.and_then(|()| self.answers[handler].accepted(accept))
            }
            Call::Decline { epoch, offers, .. } => {
                let Checker { waiting, answers, .. } = self;
                let present = waiting.answered_under(*epoch, stale);
                let rest = offers.iter().copied().filter(|id| !waiting.overflown(id));
                present.and_then(|()| answers[handler].declined(rest))
            }
            Call::Revive { .. } | Call::Suppress { .. } => {
                let room = self.room() > 0;
                self.demand.called(call, room, &kernel.config(), now)
            }
            Call::Acknowledge { update, uuid } => {
                self.messages.acknowledged(update, uuid, kernel, now)
            }
            Call::Kill { executor, .. } => {
                let known = self.ledger.holds(executor);
                let judged = kills::judged(self.kills.called(executor, known, now), closed);
                let one = std::iter::once(*executor);
                judged.and_then(|()| self.under_way.all_were_sent(one, "asked to end"))
            }
            Call::Reconcile(questioned) => {
                self.questions.asked(questioned, &mut self.ledger, now);
                let executors = questioned.iter().map(|it| it.executor);
                self.under_way.all_were_sent(executors, "asked about")
            }
            Call::Want(_) | Call::Forget { .. } => Ok(()),
        };
        self.note(judged);
    }

    /// Offers were refused: when a batch is committed, and when its calls have been made.
    pub(super) fn batch_answered(&mut self, handler: usize, decisions: &Decisions) {
        if !self.on {
            return;
        }
        let for_a_cap = |reason: &Reason| reason.is_cap() || *reason == Reason::Stopping;
        let declined = decisions.declines().iter().any(|it| for_a_cap(&it.reason));
        // What is left of accepted offers is refused too.
        let filled = decisions.executors() > 0 && self.room() == 0;
        let answers = &mut self.answers[handler];
        self.demand.answered(answers.refused(declined || filled), answers.now());
    }

    /// All calls of a batch were made.
    pub(super) fn batch_ends(&mut self, handler: usize, decisions: &Decisions, now: Timestamp) {
        let launched = self.under_way.ends(handler);
        self.questions.launched(&launched, now);
        self.kills.launched(&launched, now);
        if self.on {
            if self.answers[handler].changes() != self.changes {
                // What was refused was refused under settings that are replaced.
                self.demand.settings_changed();
            }
            let ended = self.answers[handler].end(decisions);
            self.note(ended);
        }
    }

    pub(super) fn update_arrives(&mut self, update: &Update) {
        if self.on {
            self.messages.arrives(update);
            self.ledger.update_arrives(update);
            if !self.ledger.holds(&update.executor) {
                self.kills.heard_of_stray(&update.executor, update.state.alive());
            }
        }
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: Timestamp) {
        if let Notice::Updated { executor, change: Change::Ended(_), .. }
        | Notice::Forgotten { executor } = notice
        {
            self.kills.ended(executor);
            self.questions.ended(executor);
        }
        let told = |it: &PlacedExecutor| self.under_way.is_unsent(&it.executor);
        if !self.on || matches!(notice, Notice::Placed(it) if told(it)) {
            return;
        }
        if let Notice::Registered { .. } = notice {
            self.demand.registered(now);
        }
        self.messages.noticed(notice);
        let entered = self.ledger.noticed(notice, now, self.closed);
        self.note(entered);
    }

    pub(super) fn stewards_turn_ends(&mut self) {
        if self.on {
            let ended = self.messages.end();
            self.note(ended);
        }
    }

    /// The framework's control thread was woken by time.
    pub(super) fn polled(&mut self, connected: bool, now: Timestamp) {
        if !self.on || !connected {
            return;
        }
        let room = self.room() > 0;
        let polled = self.demand.polled(room, now);
        self.note(polled);
        let polled = kills::judged(self.kills.polled(now), self.closed);
        self.note(polled);
        let polled = self.questions.polled(&self.ledger, &self.under_way, now);
        self.note(polled);
    }

    /// These executors will be asked to end. Also noted when nothing is judged: a run's length depends on it.
    pub(super) fn kills(&mut self, kernel: &Kernel, executors: &[ExecutorId], now: Timestamp) {
        for id in executors {
            let executor = kernel.executor_name(*id).to_string();
            if !self.on || self.ledger.asked_to_end(&executor) {
                self.kills.wanted(&executor, self.under_way.contains(&executor), now);
            }
        }
    }

    /// A subscription begins.
    pub(super) fn subscribed(&mut self, now: Timestamp) {
        if self.on {
            self.waiting.subscribed();
            self.questions.subscribed(self.ledger.names(), &self.under_way, now);
        }
    }

    pub(super) fn agent_lost(&mut self, agent: AgentRef, now: Timestamp) {
        if self.on {
            self.questions.in_question(self.ledger.names_on(agent), &self.under_way, now);
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.waiting.disconnected();
        self.demand.disconnected();
        self.questions.disconnected();
    }

    /// How many more executors there is room for.
    fn room(&self) -> u32 {
        if self.closed { 0 } else { self.ledger.room(self.settings) }
    }

    /// How many more executors there is room for, unless nothing is judged.
    pub(super) fn wanted(&self) -> Option<u32> {
        self.on.then(|| self.room())
    }

    /// An executor that was asked to end and has not ended.
    pub(super) fn still_to_end(&self) -> Option<&str> {
        self.kills.first_open()
    }

    pub(super) fn closed(&mut self) {
        self.closed = true;
    }

    /// The drain is over: its report must name who is left, and say the same again.
    pub(super) fn drained(&mut self, kernel: &Kernel, report: &DrainReport) {
        if !self.on {
            return;
        }
        let left = kernel.totals().executors;
        if report.drained != (left == 0) {
            self.note(Err((23, format!("drained: {}, with {left} executors", report.drained))));
        }
        let names = |report: &DrainReport| {
            let rows = report.executors.iter();
            let named =
                rows.map(|row| (kernel.executor_name(row.executor.id).to_string(), row.fate));
            named.collect::<Vec<_>>()
        };
        let (first, again) = (names(report), names(&kernel.drain(Duration::ZERO)));
        if first != again {
            self.note(Err((23, "two reports of one drain differ".to_owned())));
        }
        let fates = first.iter().map(|(name, fate)| (name.as_str(), *fate));
        let agreed = self.ledger.agrees_with_fates(fates);
        self.note(agreed);
    }

    /// The framework has not recovered in time.
    pub(super) fn missed(&mut self, missing: Finding) {
        self.note(Err(missing));
    }

    /// After each step: the sums.
    pub(super) fn step_ends(&mut self, kernel: &Kernel, settings: Settings) {
        if !self.on {
            return;
        }
        let totals = kernel.totals();
        let judged = self.ledger.agrees_with(totals).and_then(|()| {
            let (executors, cores) = self.before;
            let cap = settings.core_cap;
            if totals.executors > executors && totals.executors > settings.limit {
                return Err((
                    15,
                    format!("{} executors, limit {}", totals.executors, settings.limit),
                ));
            }
            if totals.cores > cores && cap > MilliCpus::ZERO && totals.cores > cap {
                return Err((2, format!("{} cores, cap {cap}", totals.cores)));
            }
            Ok(())
        });
        self.before = (totals.executors, totals.cores);
        if self.settings != settings {
            (self.settings, self.changes) = (settings, self.changes + 1);
            self.demand.settings_changed();
        }
        self.note(judged);
    }

    /// Everything that can be looked at: O(executors and agents).
    pub(super) fn look_closely(&mut self, kernel: &Kernel, now: Timestamp, virtual_now: u64) {
        if !self.on {
            return;
        }
        let checked = kernel.check().map_err(|violation| (1, violation.to_string()));
        self.note(checked);
        let snapshot = kernel.snapshot(now);
        if snapshot.number <= self.snapshot && self.snapshot > 0 {
            self.note(Err((21, format!("snapshot {} after {}", snapshot.number, self.snapshot))));
        }
        self.snapshot = snapshot.number;
        let pictured = self.ledger.agrees_with_snapshot(&snapshot, kernel, now);
        self.note(pictured);
        let waited = self.waiting.none_waits_long(virtual_now);
        self.note(waited);
        let known = kernel.agents_known();
        let remembered = self.ledger.agents_remembered(known, now, virtual_now);
        self.note(remembered);
    }
}
