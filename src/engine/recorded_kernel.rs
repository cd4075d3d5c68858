//! A kernel and, if there is one, the journal of what is done with it: all that changes the kernel goes through here.

use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::RecoveredExecutor;
use super::journal::recording::Recording;
use super::journal::{Operation, Outcome, Passed};
use super::launches::Launches;
use super::owned::borrow_former;
use super::sync::Deadline;
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::{self, Decisions, Handler, Kernel, LimitRule, Target};
use crate::offer::Offer;
use crate::status::StatusUpdate;
use crate::time::Timestamp;

/// Does what it is asked to, and records it if it has a journal. All that works on one kernel has clones of one recorded kernel.
/// Moments that it is given are what the clock says; with a journal the [grid](super::journal) has the last word about
/// them.
#[derive(Clone)]
pub(crate) struct RecordedKernel {
    kernel: Kernel,
    recording: Option<Arc<Recording>>,
    launches: Launches,
}

impl From<Kernel> for RecordedKernel {
    fn from(kernel: Kernel) -> RecordedKernel {
        RecordedKernel::with(kernel, None)
    }
}

/// How many revives were due when a batch was answered; nothing without a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered(Option<u64>);

impl RecordedKernel {
    pub(super) fn with(kernel: Kernel, recording: Option<Arc<Recording>>) -> RecordedKernel {
        RecordedKernel { kernel, recording, launches: Launches::default() }
    }

    /// The launches that the cluster manager has not been told of.
    pub(crate) fn launches(&self) -> &Launches {
        &self.launches
    }

    /// For looking only.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(crate) fn answer(
        &self,
        handler: &mut Handler,
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) -> Answered {
        let Some(recording) = &self.recording else {
            handler.resource_offers(offers, now, decisions);
            return Answered(None);
        };
        let operation = Operation::offers(offers);
        let mut turn = recording.turn(now);
        handler.resource_offers(offers, turn.at(), decisions);
        turn.record(&self.kernel, operation, Outcome::answers(&self.kernel, decisions));
        Answered(Some(turn.revives()))
    }

    /// The last batch's answers have left.
    pub(crate) fn answers_sent(&self, decisions: &Decisions, answered: Answered, now: Timestamp) {
        let Some(recording) = &self.recording else { return self.kernel.answers_sent(decisions) };
        let mut turn = recording.turn(now);
        if answered.0 != Some(turn.revives()) {
            self.kernel.answers_sent(decisions);
            turn.record(&self.kernel, Operation::AnswersLeftLate, Outcome::Done);
        }
    }

    pub(crate) fn status_update(
        &self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> kernel::Outcome {
        let Some(recording) = &self.recording else {
            return self.kernel.status_update_with(update, limit, now);
        };
        let StatusUpdate { executor, state, reason } = *update;
        let operation = Operation::Update { executor: executor.to_owned(), state, reason, limit };
        let mut turn = recording.turn(now);
        let outcome = self.kernel.status_update_with(update, limit, turn.at());
        turn.record(&self.kernel, operation, Outcome::from(&outcome));
        outcome
    }

    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        let Some(recording) = &self.recording else {
            return self.kernel.agent_lost(agent_id, now);
        };
        let mut turn = recording.turn(now);
        let doubtful = self.kernel.agent_lost(agent_id, turn.at());
        let operation = Operation::AgentLost { agent_id: agent_id.to_owned() };
        turn.record(&self.kernel, operation, Outcome::targets(&self.kernel, &doubtful));
        doubtful
    }

    pub(crate) fn executor_lost(&self, executor: &str, now: Timestamp) -> Option<Target> {
        let Some(recording) = &self.recording else { return self.kernel.executor_lost(executor) };
        let mut turn = recording.turn(now);
        let doubtful = self.kernel.executor_lost(executor);
        let operation = Operation::ExecutorLost { executor: executor.to_owned() };
        let targets: Vec<Target> = doubtful.iter().cloned().collect();
        turn.record(&self.kernel, operation, Outcome::targets(&self.kernel, &targets));
        doubtful
    }

    pub(crate) fn set_executor_limit(
        &self,
        limit: Option<u32>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(recording) = &self.recording else { return self.kernel.set_executor_limit(limit) };
        let mut turn = recording.turn(now);
        let set = self.kernel.set_executor_limit(limit);
        let outcome = if set.is_ok() { Outcome::Done } else { Outcome::Refused };
        turn.record(&self.kernel, Operation::Limit(limit), outcome);
        set
    }

    /// Lowers the executor limit by so many, as one step. On record it is the limit that comes of it.
    pub(super) fn lower_executor_limit(&self, by: u32, now: Timestamp) {
        let Some(recording) = &self.recording else { return self.kernel.lower_executor_limit(by) };
        let mut turn = recording.turn(now);
        self.kernel.lower_executor_limit(by);
        let operation = Operation::Limit(self.kernel.executor_limit());
        turn.record(&self.kernel, operation, Outcome::Done);
    }

    pub(super) fn request_executors(
        &self,
        limit: Option<u32>,
        hosts: &[&str],
        now: Timestamp,
    ) -> Result<(), Error> {
        let own = hosts.iter().copied();
        let Some(recording) = &self.recording else {
            return self.kernel.request_executors(limit, own, now);
        };
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut turn = recording.turn(now);
        let set = self.kernel.request_executors(limit, own, turn.at());
        let outcome = if set.is_ok() { Outcome::Done } else { Outcome::Refused };
        turn.record(&self.kernel, Operation::Request { limit, hosts }, outcome);
        set
    }

    pub(crate) fn kill_executors(&self, ids: Vec<ExecutorId>, now: Timestamp) -> Vec<Target> {
        let Some(recording) = &self.recording else { return self.kernel.kill_executors(ids) };
        let names = ids.iter().map(|id| self.kernel.executor_name(*id).to_string());
        let operation = Operation::Kill(names.collect());
        let mut turn = recording.turn(now);
        let targets = self.kernel.kill_executors(ids);
        turn.record(&self.kernel, operation, Outcome::targets(&self.kernel, &targets));
        targets
    }

    pub(crate) fn adopt(
        &self,
        former: &[RecoveredExecutor],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        let borrowed = borrow_former(former);
        let Some(recording) = &self.recording else { return self.kernel.adopt(&borrowed, now) };
        let mut turn = recording.turn(now);
        let ids = self.kernel.adopt(&borrowed, turn.at());
        let outcome = Outcome::adopted(ids.as_deref().unwrap_or_default());
        turn.record(&self.kernel, Operation::Recovered(former.to_vec()), outcome);
        ids
    }

    pub(crate) fn registered(&self, framework_id: &str, now: Timestamp) -> u64 {
        let Some(recording) = &self.recording else { return self.kernel.registered() };
        let mut turn = recording.turn(now);
        let epoch = self.kernel.registered();
        let operation = Operation::Registered { framework_id: framework_id.to_owned() };
        turn.record(&self.kernel, operation, Outcome::Done);
        epoch
    }

    pub(crate) fn disconnected(&self, now: Timestamp) {
        let Some(recording) = &self.recording else { return self.kernel.disconnected() };
        let mut turn = recording.turn(now);
        self.kernel.disconnected();
        turn.record(&self.kernel, Operation::Disconnected, Outcome::Done);
    }

    pub(crate) fn close(&self, now: Timestamp) -> Vec<Target> {
        let Some(recording) = &self.recording else { return self.kernel.close() };
        let mut turn = recording.turn(now);
        let is_news = !self.kernel.totals().closed;
        let left = self.kernel.close();
        // Closing again changes nothing.
        if is_news {
            turn.record(&self.kernel, Operation::Close, Outcome::targets(&self.kernel, &left));
        }
        left
    }

    /// Whether time passes in points of a grid.
    pub(crate) fn has_grid(&self) -> bool {
        self.recording.is_some()
    }

    /// Makes the next point of the grid, if it is time.
    pub(crate) fn pass(&self, now: Timestamp) -> Option<Passed> {
        self.recording.as_ref()?.pass(&self.kernel, now)
    }

    /// The engine ends: what needs a journal waits for room in it for less, and its end up to the deadline.
    pub(super) fn hurry(&self, patience: Duration, written_by: Deadline) {
        if let Some(recording) = &self.recording {
            recording.hurry(patience, written_by);
        }
    }

    /// Why the journal was given up, once.
    pub(super) fn journal_failure(&self) -> Option<String> {
        self.recording.as_ref()?.untold()
    }

    /// Ends the journal, and waits until it is written; returns why it isn't, unless that was told.
    pub(super) fn finish(&self, now: Timestamp) -> Option<String> {
        self.recording.as_ref()?.finish(&self.kernel, now)
    }
}
