//! Plays a scenario as Spark 3.5's backend for Mesos would.
//!
//! Who gets what, what is refused and for what, all that the kernel decides. This file translates: Spark's states of
//! tasks into those that mean the same here, the kernel's answers into Spark's calls in their order, and the calls that
//! Spark makes whatever the kernel thinks (kills, revives). Books of its own it keeps where answers show what the
//! kernel has no need for: the failures of each agent, tasks by agent, and whether the last batch found room.

use std::collections::HashSet;
use std::time::Duration;

use bumpalo::Bump;
use offermill::launch::spark::SparkExecutor;
use offermill::launch::{Facts, Launcher};
use offermill::{
    Accepted, Attribute, AttributeValue, Change, Decisions, Decline, Fate, Handler, IdScheme,
    Kernel, LimitRule, Offer, ReasonKind, StatusUpdate, TaskState, Timestamp, limits,
};

use super::books::Books;
use super::start::Start;
use super::tasks::describe;
use crate::scenario::event::Status;
use crate::scenario::offer::lend;
use crate::scenario::{Accept, After, Call, OfferLine, What, answer};

/// A player.
pub(super) struct Spark {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    now: Timestamp,
    /// Without one nothing can be started.
    launcher: Option<SparkExecutor>,
    app_name: String,
    /// The framework's id, once there is one.
    app_id: Option<String>,
    shuffle_port: Option<u16>,
    shutdown_timeout: Duration,
    stop: Stop,
    /// Whether hosts matter.
    is_dynamic: bool,
    /// As it was asked for.
    limit: Option<u32>,
    launching: bool,
    /// The cores of executors that have told the driver of themselves.
    registered_cores: i64,
    /// So many make a start.
    sufficient_cores: f64,
    books: Books,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    StallWatch,
    Over,
}

impl Spark {
    pub(super) fn new(start: Start) -> Spark {
        let Start { draft, config, cap_given, launcher, init: _ } = start;
        let limit = config.executor_limit();
        let kernel = Kernel::new(config, IdScheme::plain());
        Spark {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            now: Timestamp::ORIGIN,
            launcher,
            app_name: draft.name.clone().unwrap_or_else(|| "app".to_owned()),
            app_id: None,
            shuffle_port: draft.shuffle.enabled.then_some(draft.shuffle.port),
            shutdown_timeout: draft.shutdown_timeout,
            stop: Stop::No,
            is_dynamic: draft.allocation.enabled,
            limit,
            launching: false,
            registered_cores: 0,
            sufficient_cores: cap_given * draft.registered_ratio,
            books: Books::default(),
        }
    }

    fn registered(&mut self, framework_id: Option<&str>, calls: &mut Vec<Call>) {
        let app_id = framework_id.unwrap_or_default().to_owned();
        if self.shuffle_port.is_some() {
            calls.push(Call::ShuffleInit { app_id: app_id.clone() });
        }
        self.app_id = Some(app_id);
    }

    /// A batch: first what doesn't meet the constraint is declined, then the others are answered in their order.
    fn offers(&mut self, offers: &[OfferLine], calls: &mut Vec<Call>) {
        let arena = Bump::new();
        let offers = as_spark_sees(lend(offers, &arena), &arena);
        if self.stop == Stop::No {
            let executors = self.kernel.totals().executors;
            self.launching = self.limit.is_none_or(|limit| executors < limit);
        }
        self.handler.resource_offers(offers, self.now, &mut self.decisions);
        let declines = self.decisions.declines();
        let (mut unmet, rest): (Vec<&Decline>, Vec<&Decline>) =
            declines.iter().partition(|decline| is_unmet(decline));
        unmet.sort_by_key(|decline| decline.offer);
        calls.extend(unmet.into_iter().filter_map(|decline| self.refusal(offers, decline)));
        let mut answers: Vec<(u32, Call)> = Vec::with_capacity(offers.len());
        let declined = |decline: &Decline| Some((decline.offer, self.refusal(offers, decline)?));
        answers.extend(rest.into_iter().filter_map(declined));
        for accepted in self.decisions.accepts() {
            let Some(offer) = accepted.offers.first() else { continue };
            let Some(accept) = self.accept(offers, &accepted) else { continue };
            if let Some(offer) = offers.get(*offer as usize) {
                self.books.place(&accept, offer);
            }
            answers.push((*offer, Call::Accept(accept)));
        }
        answers.sort_by_key(|(offer, _)| *offer);
        calls.extend(answers.into_iter().map(|(_, call)| call));
    }

    /// The tasks of an offer, newest first.
    fn accept(&self, batch: &[Offer<'_>], accepted: &Accepted<'_>) -> Option<Accept> {
        let offer = batch.get(*accepted.offers.first()? as usize)?;
        let launcher = self.launcher.as_ref()?;
        let mut accept = Accept::of(&self.kernel, batch, accepted);
        let placed = accepted.executors.iter();
        for (task, placed) in accept.tasks.iter_mut().zip(placed) {
            let facts = Facts {
                executor: &task.id,
                app: self.app_id.as_deref().unwrap_or_default(),
                agent_id: offer.agent_id,
                hostname: offer.hostname,
                cores: placed.advertised_cores,
                memory: placed.advertised_memory,
                port: placed.port,
            };
            let command = launcher.command(&facts);
            task.name = Some(format!("{} {}", self.app_name, task.id));
            describe(task, &command);
        }
        accept.tasks.reverse();
        Some(accept)
    }

    /// Spark says for how long it refuses only if it is the constraint's or the core cap's fault; in whole seconds.
    fn refusal(&self, batch: &[Offer<'_>], decline: &Decline) -> Option<Call> {
        // Without a launcher the cap is none that was asked for.
        let at_cap = decline.reason.kind() == ReasonKind::CoreCap && self.launcher.is_some();
        let is_said = is_unmet(decline) || at_cap;
        Some(Call::Decline(answer::Decline {
            offer: batch.get(decline.offer as usize)?.id.to_owned(),
            refuse_seconds: is_said.then_some(decline.refuse.as_secs() as f64),
            reason: None,
        }))
    }

    fn status(&mut self, status: &Status, calls: &mut Vec<Call>) {
        let state = SparkState::of(status.state.0);
        let update = StatusUpdate::new(&status.task, state.for_kernel());
        let rule = status.limit_rule();
        let outcome = self.kernel.status_update_with(&update, rule, self.now);
        if rule == LimitRule::CountDown && outcome.change == Change::Ended(Fate::Finished) {
            self.limit = self.limit.map(|limit| limit.saturating_sub(1));
        }
        if let (SparkState::Running, Some(port)) = (state, self.shuffle_port)
            && let Some(host) = self.books.new_shuffle_host(&status.task)
        {
            calls.push(Call::ShuffleRegister { host, port });
        }
        if outcome.kill {
            calls.push(Call::Kill { task: status.task.clone() });
        }
        if let Change::Ended(_) = outcome.change {
            self.books.end(&status.task, state.is_failure());
            if self.stop == Stop::No {
                calls.push(Call::ExecutorRemoved {
                    executor: status.task.clone(),
                    reason: format!("Executor finished with state {}", state.as_str()),
                });
            }
            calls.push(Call::Revive);
            if self.stop == Stop::StallWatch && self.kernel.totals().executors == 0 {
                self.end(calls);
            }
        }
    }

    fn request_limit(&mut self, limit: Option<u32>) {
        self.limit = limit;
        let most = limit.map(|limit| limit.min(limits::EXECUTORS_MAX));
        // There is no higher limit.
        let _allowed = self.kernel.set_executor_limit(most);
    }

    fn request_total<'a>(&mut self, total: Option<u32>, local: impl Iterator<Item = &'a str>) {
        self.request_limit(total);
        if self.is_dynamic {
            // The limit is in force already, and none that can't be.
            let limit = self.kernel.executor_limit();
            let _allowed = self.kernel.request_executors(limit, local, self.now);
        }
    }

    /// Whether there is a driver to be told.
    fn kill(&self, tasks: &[String], calls: &mut Vec<Call>) -> bool {
        if self.app_id.is_none() {
            return false;
        }
        // That it was asked for doesn't excuse a failure, for Spark: the kernel isn't told.
        calls.extend(tasks.iter().map(|task| Call::Kill { task: task.clone() }));
        true
    }

    /// Whether this is the first time.
    fn stop(&mut self, calls: &mut Vec<Call>) -> bool {
        if self.stop != Stop::No {
            return false;
        }
        self.stop = Stop::StallWatch;
        // Spark asks its executors itself to end, by other ways than the cluster's.
        let _executors = self.kernel.close();
        if self.kernel.totals().executors == 0 || self.shutdown_timeout.is_zero() {
            self.end(calls);
        }
        true
    }

    fn end(&mut self, calls: &mut Vec<Call>) {
        self.stop = Stop::Over;
        if self.shuffle_port.is_some() {
            calls.push(Call::ShuffleClose);
        }
        if self.app_id.is_some() {
            calls.push(Call::DriverStop { failover: false });
        }
    }

    fn let_time_pass(&mut self, ms: u64) {
        self.now = self.now.plus(Duration::from_millis(ms));
    }

    /// Takes in an event; adds the calls that follow, in their order. Some events have a result.
    pub(super) fn play(
        &mut self,
        at_ms: Option<u64>,
        what: &What,
        calls: &mut Vec<Call>,
    ) -> Option<serde_json::Value> {
        if let Some(at) = at_ms {
            self.now = self.now.max(Timestamp::from_millis(at));
        }
        match what {
            What::Registered(registered) => {
                self.registered(registered.framework_id.as_deref(), calls)
            }
            What::Offers(offers) => self.offers(offers, calls),
            What::Status(status) => self.status(status, calls),
            What::RequestTotal { total, local } => {
                self.request_total(*total, local.keys().map(String::as_str));
                return Some(true.into());
            }
            What::Limit(limit) => self.request_limit(*limit),
            What::Kill(tasks) => return Some(self.kill(tasks, calls).into()),
            What::ExecutorRegistered(cores) => {
                self.registered_cores = self.registered_cores.saturating_add(cores.cores);
            }
            What::Stop => return (!self.stop(calls)).then(|| "again".into()),
            What::AwaitStop if self.stop == Stop::StallWatch => self.end(calls),
            What::AdvanceMs(ms) => self.let_time_pass(*ms),
            What::Error(_) => drop(self.kernel.close()),
            // Spark does nothing about these.
            What::AwaitStop
            | What::Reregistered
            | What::Disconnected
            | What::Rescinded(_)
            | What::SlaveLost(_)
            | What::ExecutorLost(_)
            | What::Recovered(_)
            | What::AnswersLate => {}
        }
        None
    }

    /// How things stand now.
    pub(super) fn after(&self) -> After {
        After {
            gpus: Some(self.books.gpus),
            tasks_with_cores: Some(self.books.live()),
            next_task_id: Some(self.books.placed),
            limit: self.limit.map(u64::from),
            launching: Some(self.launching),
            sufficient: Some(self.registered_cores as f64 >= self.sufficient_cores),
            stopped: self.stop != Stop::No,
            agents: Some(self.books.lines()),
            ..After::of(&self.kernel)
        }
    }
}

/// Offers as far as Spark can read them: of attributes with one name it knows the last, and in intervals it finds
/// nothing.
fn as_spark_sees<'a>(offers: &'a [Offer<'a>], arena: &'a Bump) -> &'a [Offer<'a>] {
    let attributes = |offer: &Offer<'a>| {
        let mut names = HashSet::new();
        let mut last: Vec<Attribute<'a>> =
            offer.attributes.iter().rev().filter(|it| names.insert(it.name)).copied().collect();
        last.reverse();
        for attribute in &mut last {
            if let AttributeValue::Ranges(_) = attribute.value {
                attribute.value = AttributeValue::Ranges(&[]);
            }
        }
        &*arena.alloc_slice_copy(&last)
    };
    let seen = offers.iter().map(|offer| {
        let mut seen = *offer;
        seen.attributes = attributes(offer);
        seen
    });
    arena.alloc_slice_fill_iter(seen)
}

fn is_unmet(decline: &Decline) -> bool {
    matches!(
        decline.reason.kind(),
        ReasonKind::ConstraintUnmet | ReasonKind::ConstraintIncomparable
    )
}

/// What Spark makes of Mesos' states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SparkState {
    Launching,
    Running,
    Finished,
    Failed,
    Killed,
    Lost,
}

impl SparkState {
    fn of(state: TaskState) -> SparkState {
        match state {
            TaskState::Staging | TaskState::Starting => SparkState::Launching,
            TaskState::Running | TaskState::Killing => SparkState::Running,
            TaskState::Finished => SparkState::Finished,
            TaskState::Failed | TaskState::Gone | TaskState::GoneByOperator => SparkState::Failed,
            TaskState::Killed => SparkState::Killed,
            _ => SparkState::Lost,
        }
    }

    /// A state that means the same to the kernel: what is lost to Spark has ended, and badly.
    fn for_kernel(self) -> TaskState {
        match self {
            SparkState::Launching => TaskState::Staging,
            SparkState::Running => TaskState::Running,
            SparkState::Finished => TaskState::Finished,
            SparkState::Failed | SparkState::Lost => TaskState::Failed,
            SparkState::Killed => TaskState::Killed,
        }
    }

    fn is_failure(self) -> bool {
        matches!(self, SparkState::Failed | SparkState::Lost)
    }

    fn as_str(self) -> &'static str {
        match self {
            SparkState::Launching => "LAUNCHING",
            SparkState::Running => "RUNNING",
            SparkState::Finished => "FINISHED",
            SparkState::Failed => "FAILED",
            SparkState::Killed => "KILLED",
            SparkState::Lost => "LOST",
        }
    }
}
