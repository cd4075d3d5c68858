//! Calls of the simulated framework: checked, recorded, and sent to the simulated master.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::simulated::wire::{
    AgentRef, Amounts, FrameworkCall, SCALARS, TaskLaunch, offer_number,
};
use crate::cluster::simulated::world::World;
use crate::engine::Notice;
use crate::engine::cluster_manager::{AvoidedAgent, Call, Launch, ReconcileTask};
use crate::engine::placed_batch::PlacedBatch;
use crate::engine::sinks::{AnswerSink, CallSink};
use crate::kernel::{Amount, Kernel};
use crate::time::Timestamp;

/// Receives the calls and notices of the controller and of offer handlers.
pub(super) struct SimulatedCalls<'a, 'w> {
    kernel: &'a Kernel,
    world: &'a mut World<'w>,
    connected: bool,
    now: Timestamp,
    /// The handler that makes the calls.
    handler: usize,
    pub(super) placed: u32,
    pub(super) never_launched: Vec<String>,
}

impl<'a, 'w> SimulatedCalls<'a, 'w> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stream: Option<u64>,
        now: Timestamp,
        world: &'a mut World<'w>,
    ) -> SimulatedCalls<'a, 'w> {
        SimulatedCalls {
            kernel,
            world,
            connected: stream.is_some(),
            now,
            handler: 0,
            placed: 0,
            never_launched: Vec::new(),
        }
    }

    pub(super) fn of_handler(self, handler: usize) -> SimulatedCalls<'a, 'w> {
        SimulatedCalls { handler, ..self }
    }

    /// Sends a call. Returns `false` if there is no subscription.
    fn send(&mut self, call: &Call<'_>) -> bool {
        // Cluster managers drop answers to offers of an earlier subscription.
        let stale = match call {
            Call::Accept(accept) => accept.epoch != self.kernel.epoch(),
            Call::Decline { epoch, .. } => *epoch != self.kernel.epoch(),
            _ => false,
        };
        let sent = self.connected && !stale;
        self.world.checker.called(call, (self.handler, stale), self.kernel, self.now);
        self.world.recorder.called(call, self.world.events.now);
        self.world.corners.called(call, stale);
        if sent && let Some(call) = to_framework_call(call) {
            self.world.cluster.network.send_call(self.world.events, call);
        }
        sent
    }
}

impl CallSink for SimulatedCalls<'_, '_> {
    fn call(&mut self, call: Call<'_>) {
        self.try_call(call);
    }

    fn try_call(&mut self, call: Call<'_>) -> bool {
        let is_sent = self.send(&call);
        if !is_sent {
            let why = "there is no subscription".to_owned();
            self.notice(Notice::CallFailed { why });
        }
        is_sent
    }

    fn notice(&mut self, notice: Notice) {
        self.world.checker.noticed(&notice, self.now);
        self.world.recorder.noticed(&notice, self.world.events.now);
        self.world.corners.noticed(&notice, self.world.events.now);
        let fates = self.world.tasks.map(|tasks| tasks.noticed(self.now, &notice));
        fates.into_iter().flatten().for_each(|fate| self.world.corners.work(fate));
    }
}

impl AnswerSink for SimulatedCalls<'_, '_> {
    fn call(&mut self, call: Call<'_>) -> bool {
        self.send(&call)
    }

    fn placed(&mut self, placed: Arc<PlacedBatch>) {
        self.placed += placed.len() as u32;
        for executor in placed.executors(0..placed.len()) {
            self.notice(Notice::Placed(executor));
        }
    }

    fn never_launched(&mut self, executors: Vec<String>) {
        self.never_launched.extend(executors);
    }
}

/// The call as the simulated master receives it. `None` if it is not sent.
fn to_framework_call(call: &Call<'_>) -> Option<FrameworkCall> {
    let ids = |offers: &[&str]| offers.iter().filter_map(|id| offer_number(id)).collect();
    Some(match call {
        Call::Accept(accept) => FrameworkCall::Accept {
            agent: AgentRef::parse(accept.agent_id),
            offers: accept.offers.iter().filter_map(|offer| offer_number(offer.id)).collect(),
            tasks: accept.executors.iter().map(to_task_launch).collect(),
            refuse: accept.refuse,
        },
        Call::Decline { offers, refuse, .. } => {
            FrameworkCall::Decline { offers: ids(offers), refuse: *refuse }
        }
        Call::Revive { .. } => FrameworkCall::Revive,
        Call::Suppress { .. } => FrameworkCall::Suppress,
        Call::Kill { executor, agent_id, grace } => FrameworkCall::Kill {
            executor: (*executor).to_owned(),
            agent: agent_id.and_then(AgentRef::parse),
            grace: *grace,
        },
        Call::Reconcile(tasks) => {
            let pair =
                |it: &ReconcileTask<'_>| (it.executor.to_owned(), AgentRef::parse(it.agent_id));
            FrameworkCall::Reconcile(tasks.iter().map(pair).collect())
        }
        Call::Acknowledge { update, uuid } => {
            let uuid = u64::from_le_bytes((*uuid).try_into().ok()?);
            FrameworkCall::Acknowledge { executor: update.executor.clone(), uuid }
        }
        Call::Avoid(agents) => {
            let remaining = |it: &AvoidedAgent<'_>| {
                Some((AgentRef::parse(it.agent_id)?, it.remaining.unwrap_or(Duration::MAX)))
            };
            FrameworkCall::Avoid(agents.iter().filter_map(remaining).collect())
        }
        Call::RequestExecutors(_) | Call::Forget { .. } => return None,
    })
}

fn to_task_launch(launch: &Launch<'_>) -> TaskLaunch {
    let mut amounts = Amounts::default();
    for piece in &launch.pieces {
        let kind = (piece.resource.name, piece.resource.role());
        match piece.amount {
            Amount::Scalar(amount) => {
                if let Some(at) = SCALARS.iter().position(|known| *known == kind) {
                    amounts.scalars[at] += amount.thousandths();
                }
            }
            Amount::Port(_) => amounts.port = true,
        }
    }
    let hosting = launch.command.hosting.clone();
    TaskLaunch { executor: launch.executor.to_owned(), amounts, hosting }
}
