//! Plays a scenario as Spark 3.5's fine-grained backend for Mesos would, with `spark.mesos.coarse` false.
//!
//! ```text
//! offers ─► constraint ─► room for a task, ─► whole cores are ─► task_scheduler ─► accepts: executor and tasks take
//!               │         or executor, too        shown                │             pieces (resources)
//!               ▼               ▼                                      ▼
//!        declined, unmet   declined                        declined: no task for it
//! ```
//!
//! Spark keeps one long-lived executor an agent, which runs tasks; each of these is a task of Mesos with cores alone.
//! The first takes those of the executor, too. Spark's answers are played with what was wrong with them:
//!
//! * A task that fails or is lost lets Spark forget the executor, which still runs; the next task there carries another
//!   one, with its cores and memory once more.
//! * A task that is lost fails all others there in Spark's view; they are placed again, though they may still run.
//! * An executor is never ended, however long it is idle, and takes no part in a reconciliation.
//! * Of two offers of one agent in a batch, only the last is accepted or declined if tasks were placed there, and tasks
//!   for both take its resources, and less than they need if these are used up.
//! * The core cap, GPUs, exclusion, rescinded offers and a limit of executors mean nothing.

mod executor;
mod hash_order;
mod resources;
mod settings;
mod task_scheduler;
mod task_set;

use std::collections::{BTreeMap, BTreeSet};

use bumpalo::Bump;

use self::executor::with_ids;
use self::hash_order::{HashOrder, hash_of_text};
use self::resources::{sum, sum_of_pieces, take};
pub(super) use self::settings::{FineGrainedStart, fine_grained, is_fine_grained};
use self::task_scheduler::{PlacedTask, TaskScheduler, WorkerOffer};
use super::spark_offers::as_spark_reads;
use super::spark_state::SparkState;
use crate::scenario::answer::AgentLine;
use crate::scenario::event::StatusLine;
use crate::scenario::offer::{ResourceLine, to_offers};
use crate::scenario::{
    AcceptLine, CallKind, DeclineLine, EventKind, OfferLine, StateAfter, TaskLine,
};

/// How long the rest of an accepted offer is refused, in seconds.
const ACCEPT_FILTER: f64 = 1.0;

/// Replays events as Spark's fine-grained backend decides.
pub(super) struct FineGrainedReplay {
    settings: FineGrainedStart,
    scheduler: TaskScheduler,
    /// The executors that Spark knows, by agent.
    executors: BTreeMap<String, TaskLine>,
    /// The agents of tasks that haven't ended.
    agents: BTreeMap<i64, String>,
    is_registered: bool,
    /// The framework's id; empty before the registration.
    app_id: String,
    has_stopped: bool,
}

impl FineGrainedReplay {
    pub(super) fn new(settings: FineGrainedStart) -> FineGrainedReplay {
        FineGrainedReplay {
            scheduler: TaskScheduler::new(settings.task_cores, settings.task_failures),
            settings,
            executors: BTreeMap::new(),
            agents: BTreeMap::new(),
            is_registered: false,
            app_id: String::new(),
            has_stopped: false,
        }
    }

    /// Answers a batch: first declines what doesn't meet the constraint, then what is too small, and at last what was
    /// not used.
    fn offers(&mut self, lines: &[OfferLine], calls: &mut Vec<CallKind>) {
        let arena = Bump::new();
        let read = as_spark_reads(to_offers(lines, &arena), &arena);
        let is_met = |at: &usize| {
            read.get(*at).is_some_and(|offer| self.settings.constraint.check(offer).is_ok())
        };
        let (met, unmet): (Vec<usize>, Vec<usize>) = (0..lines.len()).partition(is_met);
        let at = |at: usize| lines.get(at);
        let unmet_seconds = Some(self.settings.unmet_seconds);
        calls.extend(unmet.into_iter().filter_map(at).map(|offer| decline(offer, unmet_seconds)));
        let (usable, unusable): (Vec<&OfferLine>, Vec<&OfferLine>) =
            met.into_iter().filter_map(at).partition(|offer| self.has_room(offer));
        calls.extend(unusable.into_iter().map(|offer| decline(offer, None)));
        let shown = self.shown(&usable);
        let agents = shown.iter().map(|offer| (offer.agent.clone(), offer.cores)).collect();
        calls.push(CallKind::Shown { agents });
        if let Ok(executor) = self.settings.executor.clone() {
            self.place(&usable, &shown, &executor, calls);
        } else {
            // Spark throws when it places the first task.
            self.scheduler.see(&shown);
            calls.extend(usable.into_iter().map(|offer| decline(offer, None)));
        }
    }

    /// Whether an offer has room for a task, and for an executor if none is known there.
    fn has_room(&self, offer: &OfferLine) -> bool {
        let FineGrainedStart { executor_cores, executor_memory, task_cores, .. } = &self.settings;
        let cores = sum(&offer.resources, "cpus");
        let task_cores = f64::from(*task_cores);
        let for_both = sum(&offer.resources, "mem") >= *executor_memory
            && cores >= executor_cores + task_cores;
        for_both || (self.executors.contains_key(&offer.agent) && cores >= task_cores)
    }

    /// The whole cores of offers, without those that executors need which aren't there yet.
    fn shown(&self, offers: &[&OfferLine]) -> Vec<WorkerOffer> {
        let show = |offer: &&OfferLine| {
            let taken = match self.executors.contains_key(&offer.agent) {
                true => 0.0,
                false => self.settings.executor_cores,
            };
            // The cast saturates, as in Java.
            let cores = (sum(&offer.resources, "cpus") - taken) as i32;
            WorkerOffer { agent: offer.agent.clone(), cores }
        };
        offers.iter().map(show).collect()
    }

    /// Launches what the scheduler of tasks places on offers that are shown to it.
    fn place(
        &mut self,
        offers: &[&OfferLine],
        shown: &[WorkerOffer],
        executor: &TaskLine,
        calls: &mut Vec<CallKind>,
    ) {
        let placed = self.scheduler.offers(shown);
        // Of several offers of an agent, the last counts.
        let last: BTreeMap<&str, &OfferLine> =
            offers.iter().map(|offer| (&*offer.agent, *offer)).collect();
        let mut left: BTreeMap<&str, Vec<ResourceLine>> =
            last.iter().map(|(agent, offer)| (*agent, offer.resources.clone())).collect();
        let mut launched: BTreeMap<&str, Vec<TaskLine>> = BTreeMap::new();
        let mut order = HashOrder::new();
        for (offer, placed) in offers.iter().zip(placed) {
            let agent = &*offer.agent;
            for task in placed {
                let left = left.entry(agent).or_default();
                let task = self.launch(task, agent, executor, left);
                launched.entry(agent).or_default().push(task);
                order.insert(hash_of_text(agent), agent);
            }
        }
        let used: BTreeSet<&str> = launched.keys().copied().collect();
        for agent in order.keys() {
            let (Some(offer), Some(tasks)) = (last.get(agent), launched.remove(agent)) else {
                continue;
            };
            let refuse_seconds = Some(ACCEPT_FILTER);
            let accept = AcceptLine { offers: vec![offer.id.clone()], refuse_seconds, tasks };
            calls.push(CallKind::Accept(accept));
        }
        let unused = offers.iter().filter(|offer| !used.contains(&*offer.agent));
        calls.extend(unused.map(|offer| decline(offer, None)));
    }

    /// Returns a task of Mesos that takes its cores from what is left of an offer. With the first on an agent, so does
    /// the executor.
    fn launch(
        &mut self,
        task: PlacedTask,
        agent: &str,
        template: &TaskLine,
        left: &mut Vec<ResourceLine>,
    ) -> TaskLine {
        let FineGrainedStart { executor_cores, executor_memory, task_cores, .. } = &self.settings;
        let executor = self.executors.entry(agent.to_owned()).or_insert_with(|| {
            let mut pieces = take(left, "cpus", *executor_cores);
            pieces.extend(take(left, "mem", *executor_memory));
            let mut executor = TaskLine {
                id: agent.to_owned(),
                agent: agent.to_owned(),
                cpus: sum_of_pieces(&pieces, "cpus"),
                mem: sum_of_pieces(&pieces, "mem"),
                resources: pieces,
                ..template.clone()
            };
            with_ids(&mut executor, &self.settings.java_options, &self.app_id, agent);
            executor
        });
        let pieces = take(left, "cpus", f64::from(*task_cores));
        self.agents.insert(task.id, agent.to_owned());
        TaskLine {
            id: task.id.to_string(),
            name: Some(task.name),
            agent: agent.to_owned(),
            cpus: sum_of_pieces(&pieces, "cpus"),
            resources: pieces,
            executor: Some(Box::new(executor.clone())),
            ..TaskLine::default()
        }
    }

    fn status(&mut self, status: &StatusLine, calls: &mut Vec<CallKind>) {
        // Spark throws if it is no number.
        let Ok(id) = status.task.parse::<i64>() else { return };
        let state = SparkState::of(status.state.0);
        if let (true, Some(agent)) = (state.is_failure(), self.agents.get(&id)) {
            self.executors.remove(agent);
        }
        if state.is_end() {
            self.agents.remove(&id);
        }
        let asked = self.scheduler.update(id, state);
        self.revive(asked, calls);
    }

    fn agent_lost(&mut self, agent: &str, calls: &mut Vec<CallKind>) {
        self.executors.remove(agent);
        let asked = self.scheduler.executor_lost(agent);
        self.revive(asked, calls);
    }

    /// Asks for offers. Before the registration Spark throws instead.
    fn revive(&self, times: usize, calls: &mut Vec<CallKind>) {
        let times = if self.is_registered { times } else { 0 };
        calls.extend(std::iter::repeat_n(CallKind::Revive, times));
    }

    /// Applies an event and adds the calls that follow, in order. Returns the result, for events that have one.
    pub(super) fn play(
        &mut self,
        kind: &EventKind,
        calls: &mut Vec<CallKind>,
    ) -> Option<serde_json::Value> {
        match kind {
            EventKind::Registered(registered) => {
                self.is_registered = true;
                self.app_id = registered.framework_id.clone().unwrap_or_default();
            }
            EventKind::Offers(offers) => self.offers(offers, calls),
            EventKind::Status(status) => self.status(status, calls),
            EventKind::Tasks(count) => {
                self.scheduler.submit(*count);
                self.revive(1, calls);
            }
            EventKind::SlaveLost(agent) => self.agent_lost(agent, calls),
            EventKind::ExecutorLost(lost) => {
                self.agent_lost(lost.agent.as_deref().unwrap_or_default(), calls);
            }
            EventKind::Kill(tasks) => {
                if self.is_registered {
                    calls.extend(tasks.iter().map(|task| CallKind::Kill { task: task.clone() }));
                }
                return Some(self.is_registered.into());
            }
            EventKind::Error(_) => self.scheduler.give_up(),
            EventKind::RequestTotal { .. } | EventKind::NegativeRequest(_) => {
                return Some(false.into());
            }
            EventKind::Stop => {
                if self.is_registered {
                    calls.push(CallKind::DriverStop { failover: false });
                }
                return std::mem::replace(&mut self.has_stopped, true).then(|| "again".into());
            }
            // Spark ignores these.
            EventKind::AwaitStop
            | EventKind::AdvanceMs(_)
            | EventKind::Reregistered
            | EventKind::Disconnected
            | EventKind::Rescinded(_)
            | EventKind::Bound(_)
            | EventKind::AgentReadmitted(_)
            | EventKind::Limit(_)
            | EventKind::ExecutorRegistered(_)
            | EventKind::Recovered(_)
            | EventKind::AnswersLate => {}
        }
        None
    }

    /// Returns the state after the last event.
    pub(super) fn after(&self) -> StateAfter {
        let mut agents: BTreeMap<String, AgentLine> = BTreeMap::new();
        for agent in self.executors.keys() {
            agents.entry(agent.clone()).or_default().executor = Some(true);
        }
        for (task, agent) in &self.agents {
            agents.entry(agent.clone()).or_default().tasks.push(task.to_string());
        }
        StateAfter {
            executors: self.executors.len() as u64,
            waiting: Some(self.scheduler.waiting()),
            stopped: self.has_stopped,
            agents: Some(agents),
            ..StateAfter::default()
        }
    }
}

fn decline(offer: &OfferLine, refuse_seconds: Option<f64>) -> CallKind {
    CallKind::Decline(DeclineLine { offer: offer.id.clone(), refuse_seconds, reason: None })
}
