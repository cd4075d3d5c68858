//! The controller: applies status updates, polls demand, runs the kernel's ticks, reconciles executors, and kills them
//! until their ends are confirmed.
//!
//! It has no thread, no clock and no I/O: timestamps are arguments, calls and notices go to a [`CallSink`]. The control
//! thread runs one in real time, the simulated cluster another in virtual time.

use std::time::Duration;

use super::EngineOptions;
use super::avoided_agents::AvoidedAgents;
use super::cluster_manager::{Call, ExecutorRequest, ResourceProfileId, Update};
use super::kill_retry::{KillRetries, KillTerms};
use super::late_binding::{self, AfterUpdate};
use super::misattributed::MisattributedUpdates;
use super::notice::Notice;
use super::reconciliation::Reconciliation;
use super::recorded_kernel::RecordedKernel;
use super::sinks::CallSink;
use super::unknown_executors::UnknownExecutors;
use super::unreadable_offers::{RefusedOffer, UnreadableReports};
use crate::config::ExecutorCores;
use crate::ids::ExecutorId;
use crate::kernel::{Change, DemandCall, LimitRule, Ticked, Updater};
use crate::status::{StatusUpdate, TaskState, UpdateReason};
use crate::time::Timestamp;

/// The interval at which demand is polled.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(50);
/// The interval of the kernel's ticks.
const TICK_EVERY: Duration = Duration::from_secs(1);

/// The events that the controller receives. The others go to the offer queue and the kernel alone.
pub(crate) enum ControllerEvent {
    Registered { framework_id: String, again: bool },
    Disconnected,
    Update(Update),
    AgentLost { agent_id: String },
    ExecutorLost { executor: String },
    Message { executor: String, agent_id: String, data: Vec<u8> },
    Waiting { executor: String, why: String },
    CallFailed { why: String },
    Refused { why: String },
}

/// Everything that a framework does besides answering offers.
pub(crate) struct Controller {
    recorded_kernel: RecordedKernel,
    updater: Updater,
    options: EngineOptions,
    kills: KillRetries,
    /// The last [`Call::RequestExecutors`].
    request: Option<ExecutorRequest>,
    /// Whether [`Call::RequestExecutors`] is to be made again, because a subscription began.
    repeats_request: bool,
    /// When demand was polled last.
    polled: Timestamp,
    /// When the last tick was.
    ticked: Timestamp,
    reconciliation: Reconciliation,
    unreadable_reports: UnreadableReports,
    misattributed_updates: MisattributedUpdates,
    unknown_executors: UnknownExecutors,
    avoided_agents: AvoidedAgents,
}

impl Controller {
    /// `recorded_kernel` is a clone of the one that the [`OfferHandler`](super::offer_handler::OfferHandler)s have.
    pub(crate) fn new(recorded_kernel: RecordedKernel, options: EngineOptions) -> Controller {
        Controller {
            kills: KillRetries::new(recorded_kernel.launches().clone()),
            updater: recorded_kernel.kernel().updater(),
            recorded_kernel,
            options,
            request: None,
            repeats_request: false,
            polled: Timestamp::ORIGIN,
            ticked: Timestamp::ORIGIN,
            reconciliation: Reconciliation::default(),
            unreadable_reports: UnreadableReports::default(),
            misattributed_updates: MisattributedUpdates::default(),
            unknown_executors: UnknownExecutors::default(),
            avoided_agents: AvoidedAgents::default(),
        }
    }

    /// Sets whether the manager [binds late](super::cluster_manager::ClusterManager::binds_late).
    pub(crate) fn with_late_binding(self, binds_late: bool) -> Controller {
        Controller { avoided_agents: AvoidedAgents::new(binds_late), ..self }
    }

    /// Runs what is due: demand polls, ticks, reconciliation, kill retries. Must be called after each event, and at
    /// least once per [`POLL_EVERY`].
    pub(crate) fn run_timers(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        if self.recorded_kernel.has_grid() {
            self.run_due_points(now, out);
        } else {
            self.run_due_polls(now, out);
        }
        self.avoided_agents.tell(&self.recorded_kernel, now, out);
    }

    /// Polls demand and ticks, without a journal.
    fn run_due_polls(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        if now.since(self.polled) >= POLL_EVERY {
            self.polled = now;
            // If a subscription begins before the call is made, the manager drops the call, and the kernel forgets it.
            let kernel = self.recorded_kernel.kernel();
            let epoch = kernel.epoch();
            let demand = kernel.poll_demand_in(epoch, now);
            self.apply_demand(demand.map(|call| (call, epoch)), out);
        }
        if now.since(self.ticked) >= TICK_EVERY {
            self.ticked = now;
            let ticked = self.recorded_kernel.kernel().tick(now);
            self.apply_tick(ticked, now, out);
        }
    }

    /// Runs all due points of the journal's grid in the kernel. After a long stop they may be many; their results are
    /// reported together, and calls are made once.
    fn run_due_points(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        let mut demand = None;
        let mut all = Ticked::default();
        let mut has_run = false;
        let mut last_tick = None;
        while let Some(point) = self.recorded_kernel.run_next_point(now) {
            has_run = true;
            // A later call replaces an earlier one.
            demand = point.demand.map(|call| (call, point.epoch)).or(demand);
            if let Some(ticked) = point.ticked {
                last_tick = Some(point.at);
                all.given_up.extend(ticked.given_up);
                all.forgotten.extend(ticked.forgotten);
            }
        }
        if has_run {
            self.apply_demand(demand, out);
        }
        if let Some(at) = last_tick {
            self.apply_tick(all, at, out);
        }
    }

    /// Handles an event of the cluster.
    pub(crate) fn handle(
        &mut self,
        event: ControllerEvent,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        match event {
            ControllerEvent::Registered { framework_id, again } => {
                if again {
                    self.reconciliation.reconcile_all_executors(&self.recorded_kernel, now, out);
                }
                self.repeats_request = true;
                self.kills.registered(now, out);
                self.avoided_agents.registered();
                out.notice(Notice::Registered { framework_id, again });
            }
            ControllerEvent::Disconnected => {
                self.kills.disconnected();
                self.avoided_agents.disconnected();
                out.notice(Notice::Disconnected);
            }
            ControllerEvent::Update(update) => self.update(update, now, out),
            ControllerEvent::AgentLost { agent_id } => {
                let doubtful = self.recorded_kernel.agent_lost(&agent_id, now);
                self.reconciliation.reconcile(&self.recorded_kernel, doubtful, out);
                out.notice(Notice::AgentLost { agent_id });
            }
            ControllerEvent::ExecutorLost { executor } => {
                self.executor_lost(&executor, now, out);
                out.notice(Notice::ExecutorLost { executor });
            }
            ControllerEvent::Message { executor, agent_id, data } => {
                out.notice(Notice::Message { executor, agent_id, data });
            }
            ControllerEvent::Waiting { executor, why } => {
                out.notice(Notice::Waiting { executor, why });
            }
            ControllerEvent::CallFailed { why } => out.notice(Notice::CallFailed { why }),
            ControllerEvent::Refused { why } => out.notice(Notice::Refused { why }),
        }
    }

    /// Prefetches what the next updates will look at, if these events are about to be handled.
    pub(crate) fn expect<'e>(&self, events: impl Iterator<Item = &'e ControllerEvent> + Clone) {
        self.updater.expect(events.filter_map(|event| match event {
            ControllerEvent::Update(update) => {
                Some((&*update.executor, update.named_agent().unwrap_or_default()))
            }
            _ => None,
        }));
    }

    /// Applies a status update and acknowledges it. Before, it binds the executor if that has no agent yet. Afterwards,
    /// if the executor lives, it is killed if its agent doesn't take it, and in doubt if its agent was reported lost.
    /// An update of an agent that doesn't have the executor is only acknowledged, so that the cluster doesn't send it
    /// again.
    fn update(&mut self, update: Update, now: Timestamp, out: &mut dyn CallSink) {
        let Controller { recorded_kernel, avoided_agents, .. } = self;
        let after = late_binding::bind(recorded_kernel, avoided_agents, &update, now, out);
        if self.is_misattributed(&update, out) {
            if let Some(uuid) = &update.uuid {
                out.call(Call::Acknowledge { update: &update, uuid });
            }
            return;
        }
        let report = StatusUpdate::new(&update.executor, update.state).because(update.reason);
        let counts_down = self.options.finished_count_down && update.state == TaskState::Finished;
        let limit = if counts_down { LimitRule::CountDown } else { LimitRule::Keep };
        let Controller { recorded_kernel, updater, .. } = self;
        let outcome = recorded_kernel.status_update(updater, &report, limit, now);
        let ended = matches!(outcome.change, Change::Ended(_));
        self.reconciliation.confirm(&update.executor);
        if let Some(uuid) = &update.uuid {
            out.call(Call::Acknowledge { update: &update, uuid });
        }
        if ended {
            self.kills.ended(&update.executor);
        } else if outcome.kill {
            let agent_id = update.named_agent();
            let grace = self.options.kill_grace;
            let is_new = !self.kills.has(&update.executor);
            let excess = self.kills.kill_unknown(&update.executor, agent_id, grace, now, out);
            let unknown = match outcome.change {
                Change::UnknownExecutor if is_new => {
                    self.unknown_executors.count(&update.executor, agent_id)
                }
                _ => None,
            };
            for why in unknown.into_iter().chain(excess) {
                out.notice(Notice::CallFailed { why });
            }
        } else if !update.state.alive() {
            self.kills.not_seen_alive(&update.executor);
        } else if matches!(outcome.change, Change::Returned | Change::Readmitted) {
            self.kills.returned(&update.executor, now, out);
        } else if update.state != TaskState::Killing {
            self.kills.seen_alive(&update.executor);
        }
        let doubtful = (after == AfterUpdate::Doubt).then(|| update.executor.clone());
        out.notice(Notice::Updated {
            executor: update.executor,
            tag: outcome.tag,
            state: update.state,
            change: outcome.change,
            message: update.message,
            reported_at: update.reported_at,
            reason: update.reason,
            process: update.process,
        });
        if let Some(excluded) = outcome.excluded {
            let agent_id = excluded.agent_id.to_string();
            out.notice(Notice::AgentExcluded { agent_id, until: excluded.until });
            self.avoided_agents.excluded();
        }
        match after {
            AfterUpdate::Nothing | AfterUpdate::Doubt => {}
            // Nothing if it has just ended.
            AfterUpdate::Kill(id) => self.kill(vec![id], KillTerms::of(&self.options), now, out),
        }
        // Not before the update was applied, which ends the doubt. Nothing if the executor has just ended.
        if let Some(executor) = doubtful {
            self.executor_lost(&executor, now, out);
        }
    }

    /// Puts an executor in doubt, and reconciles it.
    fn executor_lost(&mut self, executor: &str, now: Timestamp, out: &mut dyn CallSink) {
        let doubtful = self.recorded_kernel.executor_lost(executor, now);
        let doubtful = doubtful.into_iter().collect();
        self.reconciliation.reconcile(&self.recorded_kernel, doubtful, out);
    }

    /// Whether an agent reports an executor that is on another one. Counts and reports such updates. Updates of the
    /// cluster itself may name no agent.
    fn is_misattributed(&mut self, update: &Update, out: &mut dyn CallSink) -> bool {
        let Some(agent_id) = update.named_agent() else { return false };
        let actual = self.updater.other_agent(&update.executor, agent_id);
        let Some(actual) = actual else { return false };
        let report = self.misattributed_updates.count(&update.executor, agent_id, &actual);
        if let Some(why) = report {
            out.notice(Notice::CallFailed { why });
        }
        true
    }

    /// Releases executors whose launch surely had no effect.
    pub(crate) fn never_launched(
        &mut self,
        executors: Vec<String>,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        for executor in executors {
            let update = Update {
                executor,
                agent_id: None,
                state: TaskState::Dropped,
                reason: UpdateReason::InvalidOffers,
                message: "the launch failed".to_owned(),
                uuid: None,
                reported_at: None,
                process: None,
                facts: None,
            };
            self.update(update, now, out);
        }
    }

    /// Declines offers that found no room in the offer queue.
    pub(crate) fn overflow(&mut self, epoch: u64, offers: &[String], out: &mut dyn CallSink) {
        let refuse = if self.recorded_kernel.kernel().totals().closed {
            self.recorded_kernel.kernel().config().refuse_durations().stopping
        } else {
            self.options.overflow_refuse
        };
        decline(epoch, offers.iter().map(String::as_str), refuse, out);
        out.notice(Notice::Overflow { offers: offers.len(), refuse });
    }

    /// Declines offers that can't be read. Those whose ids can't be read either are only reported.
    pub(crate) fn unreadable(
        &mut self,
        epoch: u64,
        offers: Vec<RefusedOffer>,
        out: &mut dyn CallSink,
    ) {
        let refuse = self.recorded_kernel.kernel().config().refuse_durations().other;
        decline(epoch, offers.iter().map(|offer| &*offer.id), refuse, out);
        let notices = self.unreadable_reports.report(offers, refuse);
        notices.into_iter().for_each(|notice| out.notice(notice));
    }

    /// Kills executors of a former run that the kernel has no room for. Their agents may be unreachable, and then no
    /// report about them comes, so the kills are repeated like those of any unknown executor.
    pub(crate) fn end_surplus(
        &mut self,
        surplus: &[(String, String)],
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let grace = self.options.kill_grace;
        for (executor, agent_id) in surplus {
            // Empty if the executor wasn't bound.
            let agent_id = Some(agent_id.as_str()).filter(|id| !id.is_empty());
            self.kills.kill_surplus(executor, agent_id, grace, now, out);
        }
    }

    /// Kills executors, until their ends are reported.
    pub(crate) fn kill(
        &mut self,
        executors: Vec<ExecutorId>,
        terms: KillTerms,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        for target in self.recorded_kernel.kill_executors(&executors, now) {
            let executor = self.recorded_kernel.kernel().executor_name(target.id).to_string();
            self.kills.kill(executor, &target, terms, now, out);
        }
    }

    /// Makes the demand call that is due in a subscription, if any, and reports what is wanted, if that has changed or
    /// the subscription is new.
    fn apply_demand(&mut self, demand: Option<(DemandCall, u64)>, out: &mut dyn CallSink) {
        if let Some((call, epoch)) = demand {
            out.call(match call {
                DemandCall::Revive => Call::Revive { epoch },
                DemandCall::Suppress => Call::Suppress { epoch },
            });
            out.notice(Notice::Demand(call));
        }
        let executors = self.recorded_kernel.kernel().wanted();
        let config = self.recorded_kernel.kernel().config();
        let cores = match config.executor_cores() {
            ExecutorCores::Fixed(cores) => Some(cores),
            ExecutorCores::WholeOffer => None,
        };
        let memory = config.memory_taken();
        let request =
            ExecutorRequest { profile: ResourceProfileId::default(), executors, cores, memory };
        let is_new = self.request.map_or(executors > 0, |last| last != request);
        if std::mem::take(&mut self.repeats_request) || is_new {
            self.request = Some(request);
            out.call(Call::RequestExecutors(&[request]));
        }
    }

    /// Applies a tick's results, then reconciles and repeats kills.
    fn apply_tick(&mut self, ticked: Ticked, now: Timestamp, out: &mut dyn CallSink) {
        for given_up in ticked.given_up {
            let id = given_up.target.id;
            let executor = self.recorded_kernel.kernel().executor_name(id).to_string();
            out.notice(Notice::GivenUp { executor });
        }
        for target in ticked.forgotten {
            let executor = self.recorded_kernel.kernel().executor_name(target.id).to_string();
            self.kills.ended(&executor);
            self.reconciliation.confirm(&executor);
            out.call(Call::Forget { executor: &executor });
            out.notice(Notice::Forgotten { executor });
        }
        self.avoided_agents.ticked();
        self.reconciliation.run_timers(&self.recorded_kernel, now, out);
        self.kills.repeat_due(now, out);
    }
}

/// Declines the offers that have an id.
fn decline<'a>(
    epoch: u64,
    offers: impl Iterator<Item = &'a str>,
    refuse: Duration,
    out: &mut dyn CallSink,
) {
    let ids: Vec<&str> = offers.filter(|id| !id.is_empty()).collect();
    if !ids.is_empty() {
        out.call(Call::Decline { epoch, offers: &ids, refuse });
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{Config, ExclusionRule};
    use crate::engine::journal::recording::Recording;
    use crate::engine::kill_retry::{UNKNOWN_MAX, UNKNOWN_TRIES};
    use crate::ids::IdScheme;
    use crate::kernel::{Decisions, Kernel};
    use crate::offer::{Offer, Resource};

    /// A sink that logs kills, reconciliations, acknowledgements and reports as text.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl CallSink for Log {
        fn call(&mut self, call: Call<'_>) {
            self.0.push(match call {
                Call::Kill { executor, .. } => format!("kill {executor}"),
                Call::Acknowledge { update, .. } => format!("acknowledge {}", update.executor),
                Call::Reconcile(tasks) => {
                    let names: Vec<&str> = tasks.iter().map(|it| it.executor).collect();
                    if names.is_empty() {
                        "ask all".into()
                    } else {
                        format!("ask {}", names.join(" "))
                    }
                }
                _ => return,
            });
        }

        fn notice(&mut self, notice: Notice) {
            if let Notice::CallFailed { why } = notice {
                self.0.push(format!("report: {why}"));
            }
        }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// A controller whose kernel has placed this number of executors, named by their numbers.
    fn controller(executors: u32) -> Controller {
        let config = Config::builder().executor_limit(Some(executors)).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        for number in 0..executors {
            let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9999.0)];
            let agent = format!("S{number}");
            let offers = [Offer::new("o", &agent, "host", &resources, &[])];
            kernel.handler().resource_offers(&offers, at(0), &mut Decisions::new());
        }
        Controller::new(RecordedKernel::from(kernel), EngineOptions::default())
    }

    fn send_update(
        controller: &mut Controller,
        executor: &str,
        state: TaskState,
        now: Timestamp,
        log: &mut Log,
    ) {
        let update = Update::new(executor, state).with_agent(format!("S{executor}"));
        controller.handle(ControllerEvent::Update(update), now, log);
    }

    /// Runs the timers once per second; returns the calls, each with its second.
    fn run_seconds(controller: &mut Controller, from: u64, to: u64) -> Vec<String> {
        let mut calls = Vec::new();
        for second in from..to {
            let mut log = Log::default();
            controller.run_timers(at(second), &mut log);
            calls.extend(log.0.into_iter().map(|call| format!("{second}: {call}")));
        }
        calls
    }

    /// Goal: executors of a former run that find no room are killed before any report about them, and again while their
    /// agent is unreachable. Method: two of them, of which one is reported gone.
    #[test]
    fn surplus_executors_are_killed_unheard_of() {
        let mut controller = controller(0);
        let mut log = Log::default();
        let surplus = ["7", "8"].map(|executor| (executor.to_owned(), "S0".to_owned()));
        controller.end_surplus(&surplus, at(1), &mut log);
        assert_eq!(log.0, ["kill 7", "kill 8"]);
        send_update(&mut controller, "8", TaskState::Gone, at(2), &mut log);
        let calls = run_seconds(&mut controller, 2, 40);
        let kills: Vec<&String> = calls.iter().filter(|call| call.contains("kill")).collect();
        assert_eq!(kills, ["16: kill 7"]);
    }

    /// Goal: the kill of an unknown executor is repeated until the cluster reports it gone. Method: an unknown
    /// executor that runs.
    #[test]
    fn unknown_executors_are_killed_until_they_are_gone() {
        let mut controller = controller(0);
        let mut log = Log::default();
        send_update(&mut controller, "77", TaskState::Running, at(1), &mut log);
        let report = "report: executor 77 on agent S77, which this framework doesn't have, is reported to run, and is \
                      killed";
        assert_eq!(log.0, ["kill 77", report]);
        log.0.clear();
        send_update(&mut controller, "77", TaskState::Running, at(1), &mut log);
        assert_eq!(log.0, ["kill 77"], "it is reported once");
        assert_eq!(kills(run_seconds(&mut controller, 1, 100)), ["16: kill 77", "46: kill 77"]);
        send_update(&mut controller, "77", TaskState::Gone, at(100), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 100, 1_000)), [""; 0]);
        send_update(&mut controller, "78", TaskState::Running, at(1_000), &mut log);
        assert_eq!(
            kills(run_seconds(&mut controller, 1_000, 20_000)).len(),
            UNKNOWN_TRIES as usize,
            "not for ever"
        );
    }

    /// Goal: unknown executors without end take bounded memory: each is killed once, a bounded number again, and that
    /// others aren't is reported once. Those that are gone make room. Method: more unknown executors than are kept.
    #[test]
    fn kills_of_unknown_executors_are_bounded() {
        let mut controller = controller(0);
        let mut log = Log::default();
        let more = 10;
        for number in 0..UNKNOWN_MAX + more {
            send_update(
                &mut controller,
                &format!("u{number}"),
                TaskState::Running,
                at(1),
                &mut log,
            );
        }
        let is_report = |line: &&String| line.starts_with("report: ");
        assert_eq!(log.0.iter().filter(is_report).count(), 1 + 5, "at powers of ten, and once");
        let is_kill = |line: &&String| line.starts_with("kill ");
        assert_eq!(log.0.iter().filter(is_kill).count(), UNKNOWN_MAX + more);
        assert_eq!(kills(run_seconds(&mut controller, 16, 17)).len(), UNKNOWN_MAX);
        let mut log = Log::default();
        send_update(&mut controller, "u0", TaskState::Gone, at(17), &mut log);
        send_update(&mut controller, "v0", TaskState::Running, at(17), &mut log);
        send_update(&mut controller, "v1", TaskState::Running, at(17), &mut log);
        assert_eq!(log.0, ["kill v0", "kill v1"]);
        assert_eq!(kills(run_seconds(&mut controller, 32, 33)), ["32: kill v0"]);
    }

    /// Goal: failures that another agent reports don't exclude an executor's agent. Method: an agent with an exclusion
    /// after two failures; another agent reports both of its executors failed.
    #[test]
    fn other_agents_exclude_no_agent() {
        let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
        let config = Config::builder().executor_limit(Some(2)).exclusion(Some(rule));
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9999.0)];
        for offer in ["o1", "o2"] {
            let offers = [Offer::new(offer, "S7", "host", &resources, &[])];
            kernel.handler().resource_offers(&offers, at(0), &mut Decisions::new());
        }
        let recorded_kernel = RecordedKernel::from(kernel);
        let mut controller = Controller::new(recorded_kernel, EngineOptions::default());
        let mut log = Log::default();
        // Reported by S0 and S1.
        send_update(&mut controller, "0", TaskState::Failed, at(1), &mut log);
        send_update(&mut controller, "1", TaskState::Failed, at(1), &mut log);
        let kernel = controller.recorded_kernel.kernel();
        assert_eq!(kernel.totals().executors, 2);
        let agents = kernel.snapshot(at(1)).agents;
        assert!(agents.iter().all(|agent| agent.excluded_until.is_none()), "{agents:#?}");
        assert_eq!(log.0.len(), 2, "one report for each agent: {:?}", log.0);
    }

    /// Goal: after a subscription executors are reconciled until the cluster has reported each. Method: two executors,
    /// of which one is reported at once and the other late.
    #[test]
    fn unanswered_questions_are_asked_again() {
        let mut controller = controller(2);
        let mut log = Log::default();
        register(&mut controller, at(1), &mut log);
        assert_eq!(log.0, ["ask 0 1", "ask all"]);
        send_update(&mut controller, "1", TaskState::Running, at(2), &mut log);
        assert_eq!(run_seconds(&mut controller, 2, 60), ["6: ask 0", "16: ask 0", "36: ask 0"]);
        send_update(&mut controller, "0", TaskState::Running, at(60), &mut log);
        assert_eq!(run_seconds(&mut controller, 60, 901), [""; 0]);
        assert_eq!(
            run_seconds(&mut controller, 901, 902),
            ["901: ask 0 1", "901: ask all"],
            "all, each 15 min"
        );
    }

    fn register(controller: &mut Controller, now: Timestamp, log: &mut Log) {
        controller.handle(
            ControllerEvent::Registered { framework_id: "f".to_owned(), again: true },
            now,
            log,
        );
    }

    /// Kills the executor with this plain id.
    fn kill(
        controller: &mut Controller,
        executor: &str,
        grace: u64,
        now: Timestamp,
        log: &mut Log,
    ) {
        let id = controller.recorded_kernel.kernel().executor_id(executor).unwrap();
        let kill_grace = Duration::from_secs(grace);
        let options = EngineOptions { kill_grace, ..EngineOptions::default() };
        controller.kill(vec![id], KillTerms::of(&options), now, log);
    }

    fn kills(calls: Vec<String>) -> Vec<String> {
        calls.into_iter().filter(|call| call.contains("kill")).collect()
    }

    /// Goal: kills that were lost with a subscription are made again in the next, with fresh intervals; the grace
    /// period doesn't delay that. Method: one is made before the disconnection, one after it.
    #[test]
    fn kills_are_made_again_with_each_subscription() {
        let mut controller = controller(2);
        let mut log = Log::default();
        kill(&mut controller, "0", 600, at(1), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 1, 50)), ["16: kill 0", "46: kill 0"]);
        controller.handle(ControllerEvent::Disconnected, at(50), &mut log);
        kill(&mut controller, "1", 600, at(60), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 60, 500)), [""; 0], "nobody would hear it");
        log.0.clear();
        register(&mut controller, at(500), &mut log);
        assert_eq!(kills(log.0), ["kill 0", "kill 1"]);
        let expected = ["515: kill 0", "515: kill 1", "545: kill 0", "545: kill 1"];
        assert_eq!(kills(run_seconds(&mut controller, 500, 600)), expected);
    }

    /// Goal: the kill of an executor that is reported alive is repeated soon, but not at each report. Method: reports
    /// late in the back-off, several at once; one that is ending is not killed again.
    #[test]
    fn the_living_are_killed_again_soon() {
        let mut controller = controller(1);
        let mut log = Log::default();
        kill(&mut controller, "0", 5, at(0), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 0, 200)).len(), 3);
        send_update(&mut controller, "0", TaskState::Killing, at(200), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 200, 210)), [""; 0]);
        for _ in 0..3 {
            send_update(&mut controller, "0", TaskState::Running, at(210), &mut log);
        }
        assert_eq!(kills(run_seconds(&mut controller, 210, 213)), ["210: kill 0"]);
        send_update(&mut controller, "0", TaskState::Staging, at(213), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 213, 220)), ["215: kill 0"]);
    }

    /// Goal: the kill of an executor that was unreachable is made again as soon as it is back, with fresh intervals.
    /// Method: one becomes unreachable before the kill and returns a second after it was repeated; a second report that
    /// it runs is no return.
    #[test]
    fn those_that_return_are_killed_again_at_once() {
        let mut controller = controller(1);
        let mut log = Log::default();
        send_update(&mut controller, "0", TaskState::Running, at(0), &mut log);
        send_update(&mut controller, "0", TaskState::Unreachable, at(1), &mut log);
        kill(&mut controller, "0", 5, at(2), &mut log);
        assert_eq!(kills(run_seconds(&mut controller, 2, 18)), ["17: kill 0"]);
        log.0.clear();
        send_update(&mut controller, "0", TaskState::Running, at(18), &mut log);
        assert_eq!(log.0, ["kill 0"]);
        send_update(&mut controller, "0", TaskState::Running, at(18), &mut log);
        assert_eq!(log.0, ["kill 0"]);
        let expected = ["23: kill 0", "53: kill 0"];
        assert_eq!(kills(run_seconds(&mut controller, 18, 60)), expected);
    }

    /// Goal: a shutdown repeats its kills well within its timeout, as the cluster may lose them without a word. Method:
    /// timeouts from short to long; each has at least five repetitions, unless ticks are too rare for that, and a long
    /// one has not many more.
    #[test]
    fn a_shutdown_repeats_its_kills_within_its_timeout() {
        for (timeout, expected) in [(3, 2..=3), (10, 4..=9), (70, 5..=6), (600, 5..=10)] {
            let mut controller = controller(1);
            let mut log = Log::default();
            let options = EngineOptions::default();
            let terms = KillTerms::of_shutdown(&options, Duration::from_secs(timeout));
            let id = controller.recorded_kernel.kernel().executor_id("0").unwrap();
            controller.kill(vec![id], terms, at(0), &mut log);
            assert_eq!(log.0, ["kill 0"]);
            let repeated = kills(run_seconds(&mut controller, 1, timeout)).len();
            assert!(expected.contains(&repeated), "{repeated} within {timeout} s");
        }
    }

    /// Goal: after a long stop of the process all points of a journal's grid are run, but the cluster is asked once and
    /// kills are made once. Method: an hour passes at once.
    #[test]
    fn a_long_stop_is_made_up_for_at_once() {
        let controller = controller(2);
        let kernel = controller.recorded_kernel.kernel().clone();
        let recording = Arc::new(Recording::new());
        let recorded_kernel = RecordedKernel::with(kernel, Some(recording));
        let mut controller = Controller::new(recorded_kernel.clone(), EngineOptions::default());
        let mut log = Log::default();
        kill(&mut controller, "0", 5, at(0), &mut log);
        log.0.clear();
        controller.run_timers(at(3_600), &mut log);
        assert_eq!(log.0, ["ask 0 1", "ask all", "kill 0"]);
        assert!(recorded_kernel.run_next_point(at(3_600)).is_none(), "no point is left out");
        let expected = ["3601: ask 0 1", "3605: ask 0 1", "3615: ask 0 1"];
        assert_eq!(
            run_seconds(&mut controller, 3_600, 3_616),
            expected,
            "the doubtful, and the unanswered of"
        );
    }

    /// Goal: executors whose launch is under way are reconciled and killed after it, each once. Method: a batch that is
    /// not over, and one that is.
    #[test]
    fn launches_come_before_questions_and_kills() {
        let mut controller = controller(1);
        let mut log = Log::default();
        controller.recorded_kernel.kernel().set_executor_limit(Some(2)).unwrap();
        let batch =
            controller.recorded_kernel.launches().begin(controller.recorded_kernel.kernel());
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9999.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let mut decisions = Decisions::new();
        controller.recorded_kernel.kernel().handler().resource_offers(
            &offers,
            at(0),
            &mut decisions,
        );
        for _ in 0..2 {
            register(&mut controller, at(1), &mut log);
            controller.handle(
                ControllerEvent::AgentLost { agent_id: "S1".to_owned() },
                at(1),
                &mut log,
            );
            controller.handle(
                ControllerEvent::ExecutorLost { executor: "1".to_owned() },
                at(1),
                &mut log,
            );
            kill(&mut controller, "1", 5, at(1), &mut log);
            assert_eq!(log.0, ["ask 0", "ask all"]);
            log.0.clear();
            batch.set_executors(&decisions);
        }
        send_update(&mut controller, "0", TaskState::Running, at(1), &mut log);
        assert_eq!(run_seconds(&mut controller, 1, 30), [""; 0]);
        drop(batch);
        assert_eq!(run_seconds(&mut controller, 30, 31), ["30: ask 1", "30: kill 1"]);
        assert_eq!(kills(run_seconds(&mut controller, 31, 80)).len(), 1);
        send_update(&mut controller, "1", TaskState::Killed, at(80), &mut log);
        assert_eq!(run_seconds(&mut controller, 80, 900), [""; 0]);
    }

    /// Goal: each demand call names the subscription that it was due in, with and without a journal; a subscription
    /// that begins while the call is made gets its own call. Method: a kernel without room; the first call registers it
    /// again.
    #[test]
    fn demand_is_told_in_its_subscription() {
        struct Registers(RecordedKernel, Vec<u64>);

        impl CallSink for Registers {
            fn call(&mut self, call: Call<'_>) {
                if let Call::Suppress { epoch } = call {
                    if self.1.is_empty() {
                        self.0.registered("f", at(1));
                    }
                    self.1.push(epoch);
                }
            }

            fn notice(&mut self, _notice: Notice) {}
        }

        for is_recorded in [false, true] {
            let kernel = controller(0).recorded_kernel.kernel().clone();
            let recording = is_recorded.then(|| Arc::new(Recording::new()));
            let recorded_kernel = RecordedKernel::with(kernel, recording);
            let mut controller = Controller::new(recorded_kernel.clone(), EngineOptions::default());
            let first = recorded_kernel.registered("f", at(0));
            let mut out = Registers(recorded_kernel, Vec::new());
            for second in 1..4 {
                controller.run_timers(at(second), &mut out);
            }
            assert_eq!(out.1, [first, first + 1]);
        }
    }
}
