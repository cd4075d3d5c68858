//! The control thread: status updates, timers, and every call that isn't the answer to an offer.
//!
//! One thread makes all calls that must keep their order (revive and suppress; acknowledgements after their update was
//! applied), so that nothing overtakes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::notice::{Notice, Observer, PlacedExecutor};
use super::seam::{Call, Event, Questioned, Shape, Update, Want};
use super::shared::Shared;
use crate::config::ExecutorCores;
use crate::ids::ExecutorId;
use crate::kernel::{Change, DemandCall, Scope, Target};
use crate::status::{Fate, StatusUpdate, TaskState, UpdateReason};
use crate::time::Timestamp;

/// How often demand is looked at.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// How often the kernel's time passes.
const TICK_EVERY: Duration = Duration::from_secs(1);
/// How often the cluster is asked about executors in doubt, and about all.
const RECONCILE_DOUBTFUL_EVERY: Duration = Duration::from_secs(15);
const RECONCILE_ALL_EVERY: Duration = Duration::from_secs(900);
/// A kill without effect is tried again after so long, then after twice as long, up to the most.
const KILL_AGAIN_AFTER: Duration = Duration::from_secs(15);
const KILL_AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);

/// What the control thread is told.
pub(super) enum Control {
    Event(Event),
    Placed(Vec<PlacedExecutor>),
    /// The call that was to launch them surely had no effect.
    NeverLaunched(Vec<String>),
    Overflow {
        epoch: u64,
        offers: Vec<String>,
    },
    CallFailed(String),
    Kill {
        executors: Vec<ExecutorId>,
        grace: Duration,
    },
    End,
}

/// A kill that has not been confirmed.
struct Kill {
    agent_id: Arc<str>,
    grace: Duration,
    again_at: Timestamp,
    again_after: Duration,
}

pub(super) struct ControlThread {
    shared: Arc<Shared>,
    inbox: Receiver<Control>,
    observer: Box<dyn Observer>,
    kills: HashMap<String, Kill>,
    wanted: u32,
    polled: Timestamp,
    ticked: Timestamp,
    reconciled_doubtful: Timestamp,
    reconciled_all: Timestamp,
}

impl ControlThread {
    pub(super) fn new(
        shared: Arc<Shared>,
        inbox: Receiver<Control>,
        observer: Box<dyn Observer>,
    ) -> ControlThread {
        ControlThread {
            shared,
            inbox,
            observer,
            kills: HashMap::new(),
            wanted: 0,
            polled: Timestamp::ORIGIN,
            ticked: Timestamp::ORIGIN,
            reconciled_doubtful: Timestamp::ORIGIN,
            reconciled_all: Timestamp::ORIGIN,
        }
    }

    /// Works until told to end.
    pub(super) fn run(mut self) {
        loop {
            match self.inbox.recv_timeout(POLL_EVERY) {
                Ok(Control::End) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.follow_demand();
            self.let_time_pass();
        }
    }

    fn handle(&mut self, message: Control) {
        match message {
            Control::Event(event) => self.event(event),
            Control::Placed(placed) => {
                placed.into_iter().for_each(|placed| self.notice(Notice::Placed(placed)));
            }
            Control::NeverLaunched(executors) => {
                for executor in executors {
                    let message = "the launch failed".to_owned();
                    self.never_launched(executor, message);
                }
            }
            Control::Overflow { epoch, offers } => self.decline_overflow(epoch, &offers),
            Control::CallFailed(why) => self.notice(Notice::CallFailed { why }),
            Control::Kill { executors, grace } => self.kill(executors, grace),
            Control::End => {}
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Registered { framework_id, again } => {
                if again {
                    let all = self.shared.kernel.reconcile(Scope::All, self.now());
                    self.reconcile(&all);
                }
                self.notice(Notice::Registered { framework_id, again });
            }
            Event::Disconnected => self.notice(Notice::Disconnected),
            Event::Update(update) => self.update(&update),
            Event::AgentLost { agent_id } => {
                let doubtful = self.shared.kernel.agent_lost(&agent_id, self.now());
                self.reconcile(&doubtful);
                self.notice(Notice::AgentLost { agent_id });
            }
            Event::ExecutorLost { executor } => {
                let doubtful = self.shared.kernel.executor_lost(&executor);
                self.reconcile(doubtful.as_slice());
            }
            Event::Refused { why } => self.notice(Notice::Refused { why }),
            // These never come this far.
            Event::Offers(_) | Event::Rescinded { .. } => {}
        }
    }

    fn update(&mut self, update: &Update) {
        let now = self.now();
        let shared = Arc::clone(&self.shared);
        let report = StatusUpdate::new(&update.executor, update.state).because(update.reason);
        let counting = update.state == TaskState::Finished && shared.options.finished_count_down;
        // Lowered before the executor's place is free, or another could take it.
        let lowered = counting && lower_limit(&shared);
        let outcome = shared.kernel.status_update(&report, now);
        let ended = matches!(outcome.change, Change::Ended(_));
        if lowered && outcome.change != Change::Ended(Fate::Finished) {
            raise_limit(&shared);
        }
        if let Some(uuid) = &update.uuid {
            self.call(Call::Acknowledge { update, uuid });
        }
        if ended {
            self.kills.remove(&update.executor);
        }
        if outcome.kill {
            let (executor, agent_id) = (update.executor.as_str(), update.agent_id.as_deref());
            self.call(Call::Kill { executor, agent_id, grace: shared.options.kill_grace });
        }
        self.notice(Notice::Updated {
            executor: update.executor.clone(),
            state: update.state,
            change: outcome.change,
            message: update.message.clone(),
        });
        if let Some(excluded) = outcome.excluded {
            let agent_id = excluded.agent_id.to_string();
            self.notice(Notice::AgentExcluded { agent_id, until: excluded.until });
        }
    }

    fn never_launched(&mut self, executor: String, message: String) {
        let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
        let update = Update { executor, agent_id: None, state, reason, message, uuid: None };
        self.update(&update);
    }

    fn decline_overflow(&mut self, epoch: u64, offers: &[String]) {
        let refuse = if self.shared.kernel.totals().closed {
            self.shared.kernel.config().refuse_durations().stopping
        } else {
            self.shared.options.overflow_refuse
        };
        let ids: Vec<&str> = offers.iter().map(String::as_str).collect();
        self.call(Call::Decline { epoch, offers: &ids, refuse });
        self.notice(Notice::Overflow { offers: offers.len(), refuse });
    }

    fn kill(&mut self, executors: Vec<ExecutorId>, grace: Duration) {
        let now = self.now();
        for Target { id, agent_id } in self.shared.kernel.kill_executors(executors) {
            let executor = self.shared.kernel.executor_name(id).to_string();
            let again_after = KILL_AGAIN_AFTER.max(grace);
            let again_at = now.plus(again_after);
            let call = Call::Kill { executor: &executor, agent_id: Some(&agent_id), grace };
            self.call(call);
            self.kills.insert(executor, Kill { agent_id, grace, again_at, again_after });
        }
    }

    fn follow_demand(&mut self) {
        let now = self.now();
        if now.since(self.polled) < POLL_EVERY {
            return;
        }
        self.polled = now;
        if let Some(call) = self.shared.kernel.poll_demand(now) {
            self.call(match call {
                DemandCall::Revive => Call::Revive,
                DemandCall::Suppress => Call::Suppress,
            });
            self.notice(Notice::Demand(call));
        }
        let wanted = self.shared.kernel.wanted();
        if wanted != self.wanted {
            self.wanted = wanted;
            let config = self.shared.kernel.config();
            let cores = match config.executor_cores() {
                ExecutorCores::Fixed(cores) => Some(cores),
                ExecutorCores::WholeOffer => None,
            };
            let memory = config.memory_taken();
            let want = Want { shape: Shape::default(), executors: wanted, cores, memory };
            self.call(Call::Want(&[want]));
        }
    }

    fn let_time_pass(&mut self) {
        let now = self.now();
        if now.since(self.ticked) < TICK_EVERY {
            return;
        }
        self.ticked = now;
        let ticked = self.shared.kernel.tick(now);
        for target in ticked.given_up {
            let executor = self.shared.kernel.executor_name(target.id).to_string();
            self.notice(Notice::GivenUp { executor });
        }
        for target in ticked.forgotten {
            let executor = self.shared.kernel.executor_name(target.id).to_string();
            self.kills.remove(&executor);
            self.notice(Notice::Forgotten { executor });
        }
        if now.since(self.reconciled_all) >= RECONCILE_ALL_EVERY {
            self.reconciled_all = now;
            let all = self.shared.kernel.reconcile(Scope::All, now);
            self.reconcile(&all);
        } else if now.since(self.reconciled_doubtful) >= RECONCILE_DOUBTFUL_EVERY {
            self.reconciled_doubtful = now;
            let doubtful = self.shared.kernel.reconcile(Scope::Doubtful, now);
            self.reconcile(&doubtful);
        }
        self.kill_again(now);
    }

    /// Tries those kills again that are due.
    fn kill_again(&mut self, now: Timestamp) {
        let mut kills = std::mem::take(&mut self.kills);
        for (executor, kill) in kills.iter_mut().filter(|(_, kill)| now >= kill.again_at) {
            kill.again_after = (kill.again_after * 2).min(KILL_AGAIN_AFTER_MAX);
            kill.again_at = now.plus(kill.again_after);
            let agent_id = Some(&*kill.agent_id);
            self.call(Call::Kill { executor, agent_id, grace: kill.grace });
        }
        self.kills = kills;
    }

    /// Makes a call. A failure is noticed here and now: this thread must not wait for its own inbox.
    fn call(&mut self, call: Call<'_>) {
        if let Err(error) = self.shared.manager.call(call) {
            self.notice(Notice::CallFailed { why: error.to_string() });
        }
    }

    fn reconcile(&mut self, targets: &[Target]) {
        if targets.is_empty() {
            return;
        }
        let name = |target: &Target| self.shared.kernel.executor_name(target.id).to_string();
        let names: Vec<String> = targets.iter().map(name).collect();
        let questioned: Vec<Questioned<'_>> = names
            .iter()
            .zip(targets)
            .map(|(executor, target)| Questioned { executor, agent_id: &target.agent_id })
            .collect();
        self.call(Call::Reconcile(&questioned));
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    fn notice(&mut self, notice: Notice) {
        let now = self.now();
        self.observer.notice(now, notice);
    }
}

/// Lowers the executor limit by one, if there is one. Only the control thread does this, so that no count is lost.
fn lower_limit(shared: &Shared) -> bool {
    let lower = shared.kernel.executor_limit().and_then(|limit| limit.checked_sub(1));
    lower.is_some_and(|limit| shared.kernel.set_executor_limit(Some(limit)).is_ok())
}

fn raise_limit(shared: &Shared) {
    if let Some(limit) = shared.kernel.executor_limit() {
        // One more than a limit that was allowed a moment ago is what it was then.
        let _allowed = shared.kernel.set_executor_limit(Some(limit + 1));
    }
}
