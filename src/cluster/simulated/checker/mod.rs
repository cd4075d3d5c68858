//! The checker: verifies the invariants of a simulation with state of its own. Each violation has the invariant's
//! number in the table of the [crate's documentation](crate).
//!
//! The checker sees the inputs (offers, updates), the outputs (calls, notices) and the kernel's public API. It doesn't
//! see how the kernel decides.

mod answers;
mod batches;
mod binding;
mod capacity;
mod demand;
mod expected_cluster;
mod fates;
mod forgotten_agents;
mod hosts;
mod kills;
mod open_offers;
mod queues;
mod reconciliation;
mod rule;
mod tasks;
mod updates;
mod work;

use std::time::Duration;

use super::scenario::Scenario;
use super::settings::FrameworkSettings;
use super::wire::{AgentRef, SimOffer};
use crate::engine::cluster_manager::{Call, Update};
use crate::engine::{Notice, PlacedExecutor};
use crate::ids::ExecutorId;
use crate::kernel::{Change, ClusterCapacity, Decisions, DrainReport, Kernel, Reason, Task};
use crate::resources::MilliCpus;
use crate::time::Timestamp;
use answers::{AnswerChecker, BatchConditions};
use batches::OpenBatches;
use capacity::CapacityChecker;
use demand::DemandChecker;
use expected_cluster::ExpectedCluster;
use hosts::HostChecker;
use kills::KillChecker;
use open_offers::OpenOffers;
use queues::QueueChecker;
use reconciliation::ReconcileChecker;
pub(super) use rule::RuleViolation;
use tasks::TaskChecker;
use updates::UpdateChecker;
use work::WorkChecker;

/// The least virtual time between two pictures of the capacity that are checked, in milliseconds, besides those of
/// samples: they cost much more than the other checks of a step.
const CAPACITY_CHECKED_EVERY_MS: u64 = 100;

/// Verifies the invariants of a simulation.
pub(super) struct Checker {
    is_enabled: bool,
    violation: Option<RuleViolation>,
    expected_cluster: ExpectedCluster,
    open_offers: OpenOffers,
    /// One for each handler.
    answers: Vec<AnswerChecker>,
    updates: UpdateChecker,
    demand: DemandChecker,
    kills: KillChecker,
    reconciliation: ReconcileChecker,
    batches: OpenBatches,
    tasks: TaskChecker,
    hosts: HostChecker,
    work: WorkChecker,
    queues: QueueChecker,
    capacity: CapacityChecker,
    capacity_checked_at: u64,
    settings: FrameworkSettings,
    /// How often the settings changed.
    changes: u64,
    closed: bool,
    /// The kernel's executors and cores after the last step.
    totals_before: (u32, MilliCpus),
    /// The number of the last snapshot.
    snapshot_number: u64,
}

impl Checker {
    pub(super) fn new(scenario: &Scenario, is_enabled: bool) -> Checker {
        Checker {
            is_enabled,
            violation: None,
            expected_cluster: ExpectedCluster::new(scenario),
            open_offers: OpenOffers::default(),
            answers: (0..scenario.handlers).map(|_| AnswerChecker::new(scenario)).collect(),
            updates: UpdateChecker::default(),
            demand: DemandChecker::default(),
            kills: KillChecker::default(),
            reconciliation: ReconcileChecker::default(),
            batches: OpenBatches::default(),
            tasks: TaskChecker::new(scenario),
            hosts: HostChecker::new(scenario),
            work: WorkChecker::new(scenario),
            queues: QueueChecker::new(scenario),
            capacity: CapacityChecker::new(scenario),
            capacity_checked_at: 0,
            settings: FrameworkSettings::of(scenario),
            changes: 0,
            closed: false,
            totals_before: (0, MilliCpus::ZERO),
            snapshot_number: 0,
        }
    }

    /// The first violation.
    pub(super) fn take_violation(&mut self) -> Option<RuleViolation> {
        self.violation.take()
    }

    fn record(&mut self, result: Result<(), RuleViolation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    pub(super) fn offers_arrive(&mut self, offers: &[SimOffer], virtual_now: u64) {
        if self.is_enabled {
            self.open_offers.arrive(offers, virtual_now);
            self.expected_cluster.agents_seen(offers, virtual_now);
        }
    }

    /// These offers found no room in the offer queue.
    pub(super) fn overflow(&mut self, offers: &[SimOffer]) {
        if self.is_enabled {
            self.open_offers.overflow(offers);
        }
    }

    /// The offers that found no room have been declined.
    pub(super) fn overflow_ends(&mut self) {
        if self.is_enabled {
            let ended = self.open_offers.overflow_ends();
            self.record(ended);
        }
    }

    /// The cluster rescinds an offer.
    pub(super) fn rescinded(&mut self, offer: u64) {
        if self.is_enabled {
            self.open_offers.rescinded(offer);
        }
    }

    pub(super) fn batch_begins(
        &mut self,
        handler: usize,
        batch: &[SimOffer],
        now: Timestamp,
        settings: FrameworkSettings,
        virtual_now: u64,
    ) {
        if self.is_enabled {
            self.hosts.batch_begins();
            let removed = self.open_offers.remove_batch(batch, virtual_now);
            self.record(removed);
            let context =
                BatchConditions { settings, now, changes: self.changes, closed: self.closed };
            self.answers[handler].begin(batch, context, &self.expected_cluster);
            self.capacity.begin(handler, batch, (settings, now), &self.expected_cluster);
        }
    }

    /// A handler has committed a batch whose calls will be made later. The cluster doesn't know these executors yet.
    pub(super) fn committed(&mut self, handler: usize, placed: &[PlacedExecutor], now: Timestamp) {
        for notice in placed.iter().cloned().map(Notice::Placed) {
            self.noticed(&notice, now);
        }
        // Recorded even if checks are off: whether a kill waits depends on it.
        self.batches.committed(handler, placed);
    }

    /// A batch was decided, for which the framework had picked these tasks; the members of a gang are together.
    pub(super) fn tasks_decided(&mut self, picked: &[Vec<Task>], decisions: &Decisions) {
        if self.is_enabled {
            let checked = self.tasks.decided(picked, decisions);
            self.record(checked);
        }
    }

    /// Whether all handlers are busy with batches.
    pub(super) fn handlers_busy(&mut self, busy: bool, virtual_now: u64) {
        self.open_offers.handlers_busy(busy, virtual_now);
    }

    /// A call is made, by a handler if it answers offers. A stale call has no effect.
    pub(super) fn called(
        &mut self,
        call: &Call<'_>,
        (handler, stale): (usize, bool),
        kernel: &Kernel,
        now: Timestamp,
    ) {
        if let Call::Accept(accept) = call {
            self.batches.sent(accept.executors);
        }
        if !self.is_enabled {
            return;
        }
        let closed = self.closed;
        let checked = match call {
            Call::Accept(accept) => {
                let current = self.open_offers.answered_under(accept.epoch, stale);
                let answered = current.and_then(|()| self.answers[handler].accepted(accept));
                answered.and_then(|()| self.launched(accept))
            }
            Call::Decline { epoch, offers, .. } => {
                let Checker { open_offers, answers, .. } = self;
                let current = open_offers.answered_under(*epoch, stale);
                let rest = offers.iter().copied().filter(|id| !open_offers.remove_overflown(id));
                current.and_then(|()| answers[handler].declined(rest))
            }
            Call::Revive { .. } | Call::Suppress { .. } => {
                let room = self.room() > 0;
                self.demand.called(call, room, &kernel.config(), now)
            }
            Call::Acknowledge { update, uuid } => {
                self.updates.acknowledged(update, uuid, kernel, now)
            }
            Call::Kill { executor, .. } => {
                let is_known = self.expected_cluster.holds(executor);
                let checked = kills::numbered(self.kills.called(executor, is_known, now), closed);
                let one = std::iter::once(*executor);
                checked.and_then(|()| self.batches.all_were_sent(one, "asked to end"))
            }
            Call::Reconcile(tasks) => {
                self.reconciliation.reconciled(tasks, &mut self.expected_cluster, now);
                let executors = tasks.iter().map(|it| it.executor);
                self.batches.all_were_sent(executors, "asked about")
            }
            Call::RequestExecutors(_) | Call::Avoid(_) | Call::Forget { .. } => Ok(()),
        };
        self.record(checked);
    }

    /// A batch was answered. Called when it is committed, and again when its calls have been made.
    pub(super) fn batch_answered(&mut self, handler: usize, decisions: &Decisions) {
        if !self.is_enabled {
            return;
        }
        self.capacity.decided(handler, decisions);
        let is_capped = |reason: &Reason| reason.is_cap() || *reason == Reason::Stopping;
        let declined = decisions.declines().iter().any(|it| is_capped(&it.reason));
        // The rest of accepted offers is refused too.
        let filled = decisions.executors() > 0 && self.room() == 0;
        let answers = &mut self.answers[handler];
        // What queues refuse may be revived: for claims that others give back.
        let by_queue = self.queues.are_there();
        self.demand.answered(answers.refused(declined || filled || by_queue), answers.now());
    }

    /// All calls of a batch have been made.
    pub(super) fn batch_ends(&mut self, handler: usize, decisions: &Decisions, now: Timestamp) {
        let launched = self.batches.finish(handler);
        self.reconciliation.launched(&launched, now);
        self.kills.launched(&launched, now);
        if self.is_enabled {
            if self.answers[handler].changes() != self.changes {
                // The offers were refused under settings that have been replaced.
                self.demand.settings_changed();
            }
            let ended = self.answers[handler].end(decisions);
            self.record(ended);
        }
    }

    pub(super) fn update_arrives(&mut self, update: &Update) {
        if self.is_enabled {
            self.updates.arrives(update);
            self.expected_cluster.update_arrives(update);
            if !self.expected_cluster.holds(&update.executor) {
                self.kills.unknown_reported(&update.executor, update.state.alive());
            }
        }
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: Timestamp) {
        if let Notice::Updated { executor, change: Change::Ended(_), .. }
        | Notice::Forgotten { executor } = notice
        {
            self.kills.ended(executor);
            self.reconciliation.ended(executor);
        }
        let is_unsent = |it: &PlacedExecutor| self.batches.is_unsent(&it.executor);
        if !self.is_enabled || matches!(notice, Notice::Placed(it) if is_unsent(it)) {
            return;
        }
        if let Notice::Registered { .. } = notice {
            self.demand.registered(self.queues.are_there(), now);
        }
        self.updates.noticed(notice);
        if let Notice::Unwelcome { executor, .. } = notice {
            // It is killed, unless it has just ended.
            self.kills.wanted(executor, self.batches.contains(executor), now);
        }
        let checked = self.expected_cluster.apply(notice, now, self.closed, self.settings);
        self.record(checked);
        let checked = self.hosts.noticed(notice).and_then(|()| self.work.noticed(notice, now));
        self.record(checked);
        self.queues.noticed(notice);
    }

    /// The controller has processed an event.
    pub(super) fn controller_returned(&mut self) {
        if self.is_enabled {
            let ended = self.updates.end();
            self.record(ended);
        }
    }

    /// The framework's control thread has polled.
    pub(super) fn polled(&mut self, connected: bool, now: Timestamp) {
        if !self.is_enabled || !connected {
            return;
        }
        let room = self.room() > 0;
        let polled = self.demand.polled(room, now);
        self.record(polled);
        let polled = kills::numbered(self.kills.polled(now), self.closed);
        self.record(polled);
        let polled = self.reconciliation.polled(&self.expected_cluster, &self.batches, now);
        self.record(polled);
    }

    /// The framework kills these executors. Recorded even if checks are off: the length of a run depends on it.
    pub(super) fn kills(&mut self, kernel: &Kernel, executors: &[ExecutorId], now: Timestamp) {
        for id in executors {
            let executor = kernel.executor_name(*id).to_string();
            self.hosts.ending(&executor);
            if !self.is_enabled || self.expected_cluster.record_kill(&executor) {
                self.kills.wanted(&executor, self.batches.contains(&executor), now);
            }
        }
    }

    /// A subscription begins.
    pub(super) fn subscribed(&mut self, now: Timestamp) {
        if self.is_enabled {
            self.open_offers.subscribed();
            self.reconciliation.subscribed(self.expected_cluster.names(), &self.batches, now);
        }
    }

    pub(super) fn agent_lost(&mut self, agent: AgentRef, now: Timestamp) {
        if self.is_enabled {
            self.reconciliation.expect(self.expected_cluster.names_on(agent), &self.batches, now);
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.open_offers.disconnected();
        self.demand.disconnected();
        self.reconciliation.disconnected();
    }

    /// How many more executors the caps allow.
    fn room(&self) -> u32 {
        if self.closed { 0 } else { self.expected_cluster.room(self.settings) }
    }

    /// How many more executors the caps allow. `None` if checks are off.
    pub(super) fn wanted(&self) -> Option<u32> {
        self.is_enabled.then(|| self.room())
    }

    /// An executor that was killed and has not ended.
    pub(super) fn still_to_end(&self) -> Option<&str> {
        self.kills.first_open()
    }

    pub(super) fn closed(&mut self) {
        self.closed = true;
    }

    /// The drain has ended. Its report must name the remaining executors, and a second report must be equal.
    pub(super) fn drained(&mut self, kernel: &Kernel, report: &DrainReport) {
        if !self.is_enabled {
            return;
        }
        let remaining = kernel.totals().executors;
        if report.drained != (remaining == 0) {
            self.record(Err((
                23,
                format!("drained: {}, with {remaining} executors", report.drained),
            )));
        }
        let names = |report: &DrainReport| {
            let rows = report.executors.iter();
            let named =
                rows.map(|row| (kernel.executor_name(row.executor.id).to_string(), row.fate));
            named.collect::<Vec<_>>()
        };
        let first = names(report);
        let again = names(&kernel.drain(Duration::ZERO));
        if first != again {
            self.record(Err((23, "two reports of one drain differ".to_owned())));
        }
        let fates = first.iter().map(|(name, fate)| (name.as_str(), *fate));
        let agreed = self.expected_cluster.agrees_with_fates(fates);
        self.record(agreed);
    }

    /// The framework has not recovered in time.
    pub(super) fn not_recovered(&mut self, missing: RuleViolation) {
        self.record(Err(missing));
    }

    /// Checks the kernel's totals after each step.
    pub(super) fn step_ends(&mut self, kernel: &Kernel, settings: FrameworkSettings) {
        if !self.is_enabled {
            return;
        }
        let totals = kernel.totals();
        let checked = self.expected_cluster.agrees_with(totals).and_then(|()| {
            let (executors, cores) = self.totals_before;
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
        self.totals_before = (totals.executors, totals.cores);
        let in_queues = self.queues.step_ends(&kernel.queues(), settings);
        if self.settings != settings {
            self.settings = settings;
            self.changes += 1;
            self.demand.settings_changed();
        }
        self.record(checked);
        self.record(in_queues);
    }

    /// Checks a picture of the capacity that was returned for `now`.
    pub(super) fn check_capacity(&mut self, capacity: &ClusterCapacity, now: Timestamp) {
        if self.is_enabled {
            let checked = self.capacity.check(capacity, &self.expected_cluster, now);
            self.record(checked);
        }
    }

    /// Checks everything: O(executors and agents).
    pub(super) fn check_all(&mut self, kernel: &Kernel, now: Timestamp, virtual_now: u64) {
        if !self.is_enabled {
            return;
        }
        let checked = kernel.check().map_err(|violation| (1, violation.to_string()));
        self.record(checked);
        let snapshot = kernel.snapshot(now);
        if snapshot.number <= self.snapshot_number && self.snapshot_number > 0 {
            self.record(Err((
                21,
                format!("snapshot {} after {}", snapshot.number, self.snapshot_number),
            )));
        }
        self.snapshot_number = snapshot.number;
        let agreed = self.expected_cluster.agrees_with_snapshot(&snapshot, kernel, now);
        self.record(agreed);
        if virtual_now >= self.capacity_checked_at + CAPACITY_CHECKED_EVERY_MS {
            self.capacity_checked_at = virtual_now;
            self.check_capacity(&kernel.capacity(now), now);
        }
        let answered = self.open_offers.check_waiting_times(virtual_now);
        self.record(answered);
        let known = kernel.agents_known();
        let forgotten = self.expected_cluster.check_agents_forgotten(known, now, virtual_now);
        self.record(forgotten);
    }
}
