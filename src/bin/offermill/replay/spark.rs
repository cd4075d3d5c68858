//! Plays a scenario as Spark 3.5's backend for Mesos would.
//!
//! The kernel decides about placements, refusals and their durations. This file translates: Spark's task states into
//! the kernel's, and the kernel's answers into Spark's calls in their order. It adds the calls that Spark makes without
//! a decision (kills, revives), and the state that Spark's answers contain and the kernel doesn't track: the failures
//! and tasks of each agent, and whether the last batch was below the executor limit.

use std::time::Duration;

use bumpalo::Bump;
use offermill::engine::journal::AcceptedOffers;
use offermill::launch::spark::SparkExecutor;
use offermill::launch::{LaunchContext, Launcher};
use offermill::{
    Accepted, Change, Decisions, Decline, Fate, Handler, IdScheme, Kernel, LimitRule, Offer,
    ReasonKind, StatusUpdate, Timestamp, limits,
};

use super::spark_offers::as_spark_reads;
use super::spark_settings::SparkStart;
use super::spark_state::SparkState;
use super::task_index::TaskIndex;
use super::tasks::add_command;
use crate::scenario::event::StatusLine;
use crate::scenario::offer::to_offers;
use crate::scenario::{AcceptLine, CallKind, DeclineLine, EventKind, OfferLine, StateAfter};

/// Replays events as Spark's backend decides.
pub(super) struct SparkReplay {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    now: Timestamp,
    /// Without a launcher, no task can be launched.
    launcher: Option<SparkExecutor>,
    app_name: String,
    /// The framework's id, after registration.
    app_id: Option<String>,
    shuffle_port: Option<u16>,
    shutdown_timeout: Duration,
    shutdown: ShutdownStage,
    /// Whether dynamic allocation is enabled, so that preferred hosts matter.
    is_dynamic: bool,
    /// The executor limit as it was requested.
    limit: Option<u32>,
    /// Whether the last batch arrived below the executor limit.
    launching: bool,
    /// The cores of executors that have registered with the driver.
    registered_cores: i64,
    /// The registered cores that Spark waits for before it schedules tasks.
    sufficient_cores: f64,
    tasks: TaskIndex,
}

/// The progress of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShutdownStage {
    Running,
    Draining,
    Over,
}

impl SparkReplay {
    pub(super) fn new(start: SparkStart) -> SparkReplay {
        let SparkStart { draft, config, cap_given, launcher, init: _ } = start;
        let limit = config.executor_limit();
        let kernel = Kernel::new(config, IdScheme::plain());
        SparkReplay {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            now: Timestamp::ORIGIN,
            launcher: launcher.ok(),
            app_name: draft.name.clone().unwrap_or_else(|| "app".to_owned()),
            app_id: None,
            shuffle_port: draft.shuffle.enabled.then_some(draft.shuffle.port),
            shutdown_timeout: draft.shutdown_timeout,
            shutdown: ShutdownStage::Running,
            is_dynamic: draft.allocation.enabled,
            limit,
            launching: false,
            registered_cores: 0,
            sufficient_cores: cap_given * draft.registered_ratio.unwrap_or_default(),
            tasks: TaskIndex::default(),
        }
    }

    fn registered(&mut self, framework_id: Option<&str>, calls: &mut Vec<CallKind>) {
        let app_id = framework_id.unwrap_or_default().to_owned();
        if self.shuffle_port.is_some() {
            calls.push(CallKind::ShuffleInit { app_id: app_id.clone() });
        }
        self.app_id = Some(app_id);
    }

    /// Answers a batch: first declines the offers that don't meet the constraint, then answers the others in order.
    fn offers(&mut self, lines: &[OfferLine], calls: &mut Vec<CallKind>) {
        let arena = Bump::new();
        let offers = as_spark_reads(to_offers(lines, &arena), &arena);
        if self.shutdown == ShutdownStage::Running {
            let executors = self.kernel.totals().executors;
            self.launching = self.limit.is_none_or(|limit| executors < limit);
        }
        self.handler.resource_offers(offers, self.now, &mut self.decisions);
        let declines = self.decisions.declines();
        let (mut unmet, rest): (Vec<&Decline>, Vec<&Decline>) =
            declines.iter().partition(|decline| is_unmet(decline));
        unmet.sort_by_key(|decline| decline.offer);
        calls.extend(unmet.into_iter().filter_map(|decline| self.refusal(offers, decline)));
        let mut answers: Vec<(u32, CallKind)> = Vec::with_capacity(offers.len());
        let declined = |decline: &Decline| Some((decline.offer, self.refusal(offers, decline)?));
        answers.extend(rest.into_iter().filter_map(declined));
        for accepted in self.decisions.accepts() {
            let Some(offer) = accepted.offers.first() else { continue };
            let Some(accept) = self.accept(lines, offers, &accepted) else { continue };
            if let Some(offer) = offers.get(*offer as usize) {
                self.tasks.insert(&accept, offer);
            }
            answers.push((*offer, CallKind::Accept(accept)));
        }
        answers.sort_by_key(|(offer, _)| *offer);
        calls.extend(answers.into_iter().map(|(_, call)| call));
    }

    /// Returns the acceptance of an offer, with the newest task first.
    fn accept(
        &self,
        lines: &[OfferLine],
        batch: &[Offer<'_>],
        accepted: &Accepted<'_>,
    ) -> Option<AcceptLine> {
        let offer = batch.get(*accepted.offers.first()? as usize)?;
        let launcher = self.launcher.as_ref()?;
        let recorded = AcceptedOffers::of(&self.kernel, accepted);
        let mut accept = AcceptLine { refuse_seconds: None, ..AcceptLine::of(batch, &recorded) };
        accept.restore_reservation_roles(lines, &recorded);
        let placed = accepted.executors.iter();
        for (task, placed) in accept.tasks.iter_mut().zip(placed) {
            let (cores, memory) = (placed.advertised_cores, placed.advertised_memory);
            let context =
                LaunchContext::new(&task.id, offer.agent_id, offer.hostname, cores, memory)
                    // As Java prints the id that Spark doesn't have before the registration.
                    .with_app(self.app_id.as_deref().unwrap_or("null"))
                    .with_gpus(placed.resources.gpus)
                    .with_port(placed.resources.port);
            let command = launcher.command(&context);
            task.name = Some(format!("{} {}", self.app_name, task.id));
            add_command(task, &command);
        }
        accept.tasks.reverse();
        Some(accept)
    }

    /// Returns the decline of an offer. Spark sets a refusal time, in whole seconds, only if the constraint or the core
    /// cap is the reason.
    fn refusal(&self, batch: &[Offer<'_>], decline: &Decline) -> Option<CallKind> {
        // Without a launcher, the cap is not the user's.
        let at_cap = decline.reason.kind() == ReasonKind::CoreCap && self.launcher.is_some();
        let is_said = is_unmet(decline) || at_cap;
        Some(CallKind::Decline(DeclineLine {
            offer: batch.get(decline.offer as usize)?.id.to_owned(),
            refuse_seconds: is_said.then_some(decline.refuse.as_secs() as f64),
            reason: None,
        }))
    }

    fn status(&mut self, status: &StatusLine, calls: &mut Vec<CallKind>) {
        let state = SparkState::of(status.state.0);
        let update = StatusUpdate::new(&status.task, state.for_kernel());
        let rule = status.limit_rule();
        let outcome = self.kernel.status_update_with(&update, rule, self.now);
        if rule == LimitRule::CountDown && outcome.change == Change::Ended(Fate::Finished) {
            self.limit = self.limit.map(|limit| limit.saturating_sub(1));
        }
        if let (SparkState::Running, Some(port)) = (state, self.shuffle_port)
            && let Some(host) = self.tasks.claim_shuffle_host(&status.task)
        {
            calls.push(CallKind::ShuffleRegister { host, port });
        }
        if outcome.kill {
            calls.push(CallKind::Kill { task: status.task.clone() });
        }
        if let Change::Ended(_) = outcome.change {
            self.tasks.remove(&status.task, state.is_failure());
            if self.shutdown == ShutdownStage::Running {
                calls.push(CallKind::ExecutorRemoved {
                    executor: status.task.clone(),
                    reason: format!("Executor finished with state {}", state.as_str()),
                });
            }
            calls.push(CallKind::Revive);
            if self.shutdown == ShutdownStage::Draining && self.kernel.totals().executors == 0 {
                self.end(calls);
            }
        }
    }

    fn request_limit(&mut self, limit: Option<u32>) {
        self.limit = limit;
        let most = limit.map(|limit| limit.min(limits::EXECUTORS_MAX));
        // The limit is within bounds, so this can't fail.
        let _allowed = self.kernel.set_executor_limit(most);
    }

    fn request_total<'a>(&mut self, total: Option<u32>, local: impl Iterator<Item = &'a str>) {
        self.request_limit(total);
        if self.is_dynamic {
            // The limit is in force already, so this can't fail.
            let limit = self.kernel.executor_limit();
            let _allowed = self.kernel.request_executors(limit, local, self.now);
        }
    }

    /// Requests kills. Returns false before registration.
    fn kill(&self, tasks: &[String], calls: &mut Vec<CallKind>) -> bool {
        if self.app_id.is_none() {
            return false;
        }
        // The kernel isn't notified: Spark counts the failure of a task even if it was killed on request.
        calls.extend(tasks.iter().map(|task| CallKind::Kill { task: task.clone() }));
        true
    }

    /// Begins the shutdown. Returns false if it has already begun.
    fn stop(&mut self, calls: &mut Vec<CallKind>) -> bool {
        if self.shutdown != ShutdownStage::Running {
            return false;
        }
        self.shutdown = ShutdownStage::Draining;
        // Spark asks its executors to exit over its own connections, not through the cluster.
        let _executors = self.kernel.close();
        if self.kernel.totals().executors == 0 || self.shutdown_timeout.is_zero() {
            self.end(calls);
        }
        true
    }

    fn end(&mut self, calls: &mut Vec<CallKind>) {
        self.shutdown = ShutdownStage::Over;
        if self.shuffle_port.is_some() {
            calls.push(CallKind::ShuffleClose);
        }
        if self.app_id.is_some() {
            calls.push(CallKind::DriverStop { failover: false });
        }
    }

    fn advance_time(&mut self, ms: u64) {
        self.now = self.now.plus(Duration::from_millis(ms));
    }

    /// Applies an event and adds the calls that follow, in order. Returns the result, for events that have one.
    pub(super) fn play(
        &mut self,
        at_ms: Option<u64>,
        kind: &EventKind,
        calls: &mut Vec<CallKind>,
    ) -> Option<serde_json::Value> {
        if let Some(at) = at_ms {
            self.now = self.now.max(Timestamp::from_millis(at));
        }
        match kind {
            EventKind::Registered(registered) => {
                self.registered(registered.framework_id.as_deref(), calls)
            }
            EventKind::Offers(offers) => self.offers(offers, calls),
            EventKind::Status(status) => self.status(status, calls),
            EventKind::RequestTotal { total, local } => {
                self.request_total(*total, local.keys().map(String::as_str));
                return Some(true.into());
            }
            EventKind::Limit(limit) => self.request_limit(*limit),
            EventKind::Kill(tasks) => return Some(self.kill(tasks, calls).into()),
            EventKind::ExecutorRegistered(cores) => {
                self.registered_cores = self.registered_cores.saturating_add(cores.cores);
            }
            EventKind::Stop => return (!self.stop(calls)).then(|| "again".into()),
            EventKind::AwaitStop if self.shutdown == ShutdownStage::Draining => self.end(calls),
            EventKind::AdvanceMs(ms) => self.advance_time(*ms),
            EventKind::Error(_) => drop(self.kernel.close()),
            // The coarse-grained backend has no part in the placement of tasks.
            EventKind::Tasks(_) => {}
            // Spark ignores these.
            EventKind::AwaitStop
            | EventKind::Reregistered
            | EventKind::Disconnected
            | EventKind::Rescinded(_)
            | EventKind::Bound(_)
            | EventKind::SlaveLost(_)
            | EventKind::ExecutorLost(_)
            | EventKind::AgentReadmitted(_)
            | EventKind::Recovered(_)
            | EventKind::AnswersLate => {}
            // Spark throws, and nothing changes.
            EventKind::NegativeRequest(_) => {}
        }
        None
    }

    /// Returns the state after the last event.
    pub(super) fn after(&self) -> StateAfter {
        StateAfter {
            gpus: Some(self.tasks.gpus),
            tasks_with_cores: Some(self.tasks.live_count()),
            next_task_id: Some(self.tasks.launched),
            limit: self.limit.map(u64::from),
            launching: Some(self.launching),
            sufficient: Some(self.registered_cores as f64 >= self.sufficient_cores),
            stopped: self.shutdown != ShutdownStage::Running,
            agents: Some(self.tasks.lines()),
            ..StateAfter::of(&self.kernel.totals(), self.kernel.executor_limit())
        }
    }
}

fn is_unmet(decline: &Decline) -> bool {
    matches!(
        decline.reason.kind(),
        ReasonKind::ConstraintUnmet | ReasonKind::ConstraintIncomparable
    )
}
