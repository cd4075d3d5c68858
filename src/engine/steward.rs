//! What a framework does beside answering offers: it applies updates, follows demand, reconciles, and kills until the
//! end is confirmed.
//!
//! No thread, no clock, no I/O: moments come in, calls and notices go out through an [`Outlet`]. The control thread
//! runs one in real time, the simulated cluster another in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::EngineOptions;
use super::notice::Notice;
use super::seam::{Call, Event, Questioned, Shape, Update, Want};
use crate::config::ExecutorCores;
use crate::ids::ExecutorId;
use crate::kernel::{Change, DemandCall, Kernel, Scope, Target};
use crate::status::{Fate, StatusUpdate, TaskState, UpdateReason};
use crate::time::Timestamp;

/// How often demand is looked at.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(50);
/// How often the kernel's time passes.
const TICK_EVERY: Duration = Duration::from_secs(1);
/// How often the cluster is asked about executors in doubt, and about all.
const RECONCILE_DOUBTFUL_EVERY: Duration = Duration::from_secs(15);
const RECONCILE_ALL_EVERY: Duration = Duration::from_secs(900);
/// A kill without effect is tried again after so long, then after twice as long, up to the most.
const KILL_AGAIN_AFTER: Duration = Duration::from_secs(15);
const KILL_AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);

/// A kill that has not been confirmed.
struct Kill {
    agent_id: Arc<str>,
    grace: Duration,
    again_at: Timestamp,
    again_after: Duration,
}

/// Where calls and notices go.
pub(crate) trait Outlet {
    /// Makes a call. One that fails is noticed as [`Notice::CallFailed`].
    fn call(&mut self, call: Call<'_>);
    /// Tells whoever watches.
    fn notice(&mut self, notice: Notice);
}

pub(crate) struct Steward {
    kernel: Kernel,
    options: EngineOptions,
    /// In the order of their ids, so that equal histories make equal calls.
    kills: BTreeMap<String, Kill>,
    wanted: u32,
    polled: Timestamp,
    ticked: Timestamp,
    reconciled_doubtful: Timestamp,
    reconciled_all: Timestamp,
}

impl Steward {
    pub(crate) fn new(kernel: Kernel, options: EngineOptions) -> Steward {
        Steward {
            kernel,
            options,
            kills: BTreeMap::new(),
            wanted: 0,
            polled: Timestamp::ORIGIN,
            ticked: Timestamp::ORIGIN,
            reconciled_doubtful: Timestamp::ORIGIN,
            reconciled_all: Timestamp::ORIGIN,
        }
    }

    /// Does what time alone asks for: demand, ticks, reconciliation, kills that are due again. Called at least each
    /// [`POLL_EVERY`], and after each event.
    pub(crate) fn let_time_pass(&mut self, now: Timestamp, out: &mut dyn Outlet) {
        self.follow_demand(now, out);
        self.tick(now, out);
    }

    /// Takes in what the cluster tells, offers and rescissions excepted.
    pub(crate) fn event(&mut self, event: Event, now: Timestamp, out: &mut dyn Outlet) {
        match event {
            Event::Registered { framework_id, again } => {
                if again {
                    let all = self.kernel.reconcile(Scope::All, now);
                    self.reconcile(out, &all);
                }
                out.notice(Notice::Registered { framework_id, again });
            }
            Event::Disconnected => out.notice(Notice::Disconnected),
            Event::Update(update) => self.update(&update, now, out),
            Event::AgentLost { agent_id } => {
                let doubtful = self.kernel.agent_lost(&agent_id, now);
                self.reconcile(out, &doubtful);
                out.notice(Notice::AgentLost { agent_id });
            }
            Event::ExecutorLost { executor } => {
                let doubtful = self.kernel.executor_lost(&executor);
                self.reconcile(out, doubtful.as_slice());
            }
            Event::Refused { why } => out.notice(Notice::Refused { why }),
            // These never come this far.
            Event::Offers(_) | Event::Rescinded { .. } => {}
        }
    }

    fn update(&mut self, update: &Update, now: Timestamp, out: &mut dyn Outlet) {
        let report = StatusUpdate::new(&update.executor, update.state).because(update.reason);
        let counting = update.state == TaskState::Finished && self.options.finished_count_down;
        // Lowered before the executor's place is free, or another could take it.
        let lowered = counting && self.lower_limit();
        let outcome = self.kernel.status_update(&report, now);
        let ended = matches!(outcome.change, Change::Ended(_));
        if lowered && outcome.change != Change::Ended(Fate::Finished) {
            self.raise_limit();
        }
        if let Some(uuid) = &update.uuid {
            out.call(Call::Acknowledge { update, uuid });
        }
        if ended {
            self.kills.remove(&update.executor);
        }
        if outcome.kill {
            let (executor, agent_id) = (update.executor.as_str(), update.agent_id.as_deref());
            out.call(Call::Kill { executor, agent_id, grace: self.options.kill_grace });
        }
        out.notice(Notice::Updated {
            executor: update.executor.clone(),
            state: update.state,
            change: outcome.change,
            message: update.message.clone(),
        });
        if let Some(excluded) = outcome.excluded {
            let agent_id = excluded.agent_id.to_string();
            out.notice(Notice::AgentExcluded { agent_id, until: excluded.until });
        }
    }

    /// Takes back executors whose launch surely had no effect.
    pub(crate) fn never_launched(
        &mut self,
        executors: Vec<String>,
        now: Timestamp,
        out: &mut dyn Outlet,
    ) {
        let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
        for executor in executors {
            let message = "the launch failed".to_owned();
            let update = Update { executor, agent_id: None, state, reason, message, uuid: None };
            self.update(&update, now, out);
        }
    }

    /// Declines offers that the intake had no room for.
    pub(crate) fn overflow(&mut self, epoch: u64, offers: &[String], out: &mut dyn Outlet) {
        let refuse = if self.kernel.totals().closed {
            self.kernel.config().refuse_durations().stopping
        } else {
            self.options.overflow_refuse
        };
        let ids: Vec<&str> = offers.iter().map(String::as_str).collect();
        out.call(Call::Decline { epoch, offers: &ids, refuse });
        out.notice(Notice::Overflow { offers: offers.len(), refuse });
    }

    /// Asks executors to end, until their end is reported.
    pub(crate) fn kill(
        &mut self,
        executors: Vec<ExecutorId>,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn Outlet,
    ) {
        for Target { id, agent_id } in self.kernel.kill_executors(executors) {
            let executor = self.kernel.executor_name(id).to_string();
            let again_after = KILL_AGAIN_AFTER.max(grace);
            let again_at = now.plus(again_after);
            let call = Call::Kill { executor: &executor, agent_id: Some(&agent_id), grace };
            out.call(call);
            self.kills.insert(executor, Kill { agent_id, grace, again_at, again_after });
        }
    }

    fn follow_demand(&mut self, now: Timestamp, out: &mut dyn Outlet) {
        if now.since(self.polled) < POLL_EVERY {
            return;
        }
        self.polled = now;
        if let Some(call) = self.kernel.poll_demand(now) {
            out.call(match call {
                DemandCall::Revive => Call::Revive,
                DemandCall::Suppress => Call::Suppress,
            });
            out.notice(Notice::Demand(call));
        }
        let wanted = self.kernel.wanted();
        if wanted != self.wanted {
            self.wanted = wanted;
            let config = self.kernel.config();
            let cores = match config.executor_cores() {
                ExecutorCores::Fixed(cores) => Some(cores),
                ExecutorCores::WholeOffer => None,
            };
            let memory = config.memory_taken();
            let want = Want { shape: Shape::default(), executors: wanted, cores, memory };
            out.call(Call::Want(&[want]));
        }
    }

    fn tick(&mut self, now: Timestamp, out: &mut dyn Outlet) {
        if now.since(self.ticked) < TICK_EVERY {
            return;
        }
        self.ticked = now;
        let ticked = self.kernel.tick(now);
        for target in ticked.given_up {
            let executor = self.kernel.executor_name(target.id).to_string();
            out.notice(Notice::GivenUp { executor });
        }
        for target in ticked.forgotten {
            let executor = self.kernel.executor_name(target.id).to_string();
            self.kills.remove(&executor);
            out.notice(Notice::Forgotten { executor });
        }
        if now.since(self.reconciled_all) >= RECONCILE_ALL_EVERY {
            self.reconciled_all = now;
            let all = self.kernel.reconcile(Scope::All, now);
            self.reconcile(out, &all);
        } else if now.since(self.reconciled_doubtful) >= RECONCILE_DOUBTFUL_EVERY {
            self.reconciled_doubtful = now;
            let doubtful = self.kernel.reconcile(Scope::Doubtful, now);
            self.reconcile(out, &doubtful);
        }
        self.kill_again(now, out);
    }

    /// Tries those kills again that are due.
    fn kill_again(&mut self, now: Timestamp, out: &mut dyn Outlet) {
        let mut kills = std::mem::take(&mut self.kills);
        for (executor, kill) in kills.iter_mut().filter(|(_, kill)| now >= kill.again_at) {
            kill.again_after = (kill.again_after * 2).min(KILL_AGAIN_AFTER_MAX);
            kill.again_at = now.plus(kill.again_after);
            let agent_id = Some(&*kill.agent_id);
            out.call(Call::Kill { executor, agent_id, grace: kill.grace });
        }
        self.kills = kills;
    }

    fn reconcile(&self, out: &mut dyn Outlet, targets: &[Target]) {
        if targets.is_empty() {
            return;
        }
        let name = |target: &Target| self.kernel.executor_name(target.id).to_string();
        let names: Vec<String> = targets.iter().map(name).collect();
        let questioned: Vec<Questioned<'_>> = names
            .iter()
            .zip(targets)
            .map(|(executor, target)| Questioned { executor, agent_id: &target.agent_id })
            .collect();
        out.call(Call::Reconcile(&questioned));
    }

    /// Lowers the executor limit by one, if there is one. Only the steward does this, so that no count is lost.
    fn lower_limit(&self) -> bool {
        let lower = self.kernel.executor_limit().and_then(|limit| limit.checked_sub(1));
        lower.is_some_and(|limit| self.kernel.set_executor_limit(Some(limit)).is_ok())
    }

    fn raise_limit(&self) {
        if let Some(limit) = self.kernel.executor_limit() {
            // One more than a limit that was allowed a moment ago is what it was then.
            let _allowed = self.kernel.set_executor_limit(Some(limit + 1));
        }
    }
}
