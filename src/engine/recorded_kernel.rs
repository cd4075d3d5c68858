//! The recorded kernel: a kernel and, if there is one, the journal of the operations on it. All operations that a
//! journal records go through it; polls, ticks and the drain, which none records, go to the kernel itself.

use std::sync::Arc;
use std::time::Duration;

use super::agent_facts::{AgentFacts, bind_to};
use super::cluster_manager::RecoveredExecutor;
use super::journal::recording::Recording;
use super::journal::{GridPoint, Operation, OperationOutcome};
use super::launches::Launches;
use super::recovered::borrow_former;
use super::sync::Deadline;
use super::task_chooser::TaskChooser;
use crate::config::Config;
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::{self, Bound, Decisions, Handler, Kernel, LimitRule, Picks, Target, Updater};
use crate::offer::Offer;
use crate::status::StatusUpdate;
use crate::time::Timestamp;

/// Runs operations on a kernel, and records them if it has a journal. All users of one kernel have clones of one
/// recorded kernel.
///
/// The timestamps that it is given are the clock's; with a journal the [grid](super::journal) decides about them.
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

/// The number of revives that were due when a batch was answered; `None` without a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueRevives(Option<u64>);

impl RecordedKernel {
    pub(super) fn with(kernel: Kernel, recording: Option<Arc<Recording>>) -> RecordedKernel {
        RecordedKernel { kernel, recording, launches: Launches::default() }
    }

    /// The launches whose call to the cluster manager has not returned.
    pub(crate) fn launches(&self) -> &Launches {
        &self.launches
    }

    /// The kernel, for reading and for the calls that no journal records: polls, ticks and the drain.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs one operation. With a journal, `run` is given the time at which the operation takes effect, and `entry`
    /// describes the operation and its outcome for the record.
    #[inline]
    fn record<R>(
        &self,
        now: Timestamp,
        run: impl FnOnce(Timestamp) -> R,
        entry: impl FnOnce(&R) -> (Operation, OperationOutcome),
    ) -> R {
        let Some(recording) = &self.recording else { return run(now) };
        let mut guard = recording.lock_at(&self.kernel, now);
        let result = run(guard.at());
        let (operation, outcome) = entry(&result);
        guard.record(&self.kernel, operation, outcome);
        result
    }

    /// [`Handler::resource_offers`].
    pub(crate) fn answer(
        &self,
        handler: &mut Handler,
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) -> DueRevives {
        let Some(recording) = &self.recording else {
            handler.resource_offers(offers, now, decisions);
            return DueRevives(None);
        };
        // The batch is copied before the lock is taken, so that other operations don't wait for that.
        let operation = Operation::offers(offers);
        let mut guard = recording.lock_at(&self.kernel, now);
        handler.resource_offers(offers, guard.at(), decisions);
        guard.record(&self.kernel, operation, OperationOutcome::answers(&self.kernel, decisions));
        DueRevives(Some(guard.revives()))
    }

    /// [`Handler::propose`] and [`Rooms::commit`](crate::Rooms::commit) of what `chooser` picks. There is no journal:
    /// a player couldn't repeat the choice.
    pub(super) fn answer_with_tasks(
        &self,
        handler: &mut Handler,
        (chooser, picks): (&dyn TaskChooser, &mut Picks),
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) -> DueRevives {
        picks.clear();
        let rooms = handler.propose(offers, now);
        if !rooms.list().is_empty() {
            chooser.choose(&rooms, now, picks);
        } else if !offers.is_empty() && !rooms.are_closed() {
            chooser.without_rooms(&rooms, now);
        }
        rooms.commit(picks, now, decisions);
        DueRevives(None)
    }

    /// [`Kernel::answers_sent`], after the last batch's answers were sent. Recorded only if a revive was due meanwhile;
    /// otherwise it changes nothing.
    pub(crate) fn answers_sent(&self, decisions: &Decisions, answered: DueRevives, now: Timestamp) {
        let Some(recording) = &self.recording else { return self.kernel.answers_sent(decisions) };
        let mut guard = recording.lock_at(&self.kernel, now);
        if answered.0 != Some(guard.revives()) {
            self.kernel.answers_sent(decisions);
            guard.record(&self.kernel, Operation::AnswersLeftLate, OperationOutcome::Done);
        }
    }

    /// [`Updater::status_update_with`]. With a journal, [`Kernel::status_update_with`]: when an updater frees cells
    /// would be part of the record, because ids tell their cells.
    pub(crate) fn status_update(
        &self,
        updater: &mut Updater,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> kernel::Outcome {
        if self.recording.is_none() {
            return updater.status_update_with(update, limit, now);
        }
        let run = |at| self.kernel.status_update_with(update, limit, at);
        self.record(now, run, |outcome| {
            let StatusUpdate { executor, state, reason } = *update;
            let executor = executor.to_owned();
            (Operation::Update { executor, state, reason, limit }, OperationOutcome::from(outcome))
        })
    }

    /// [`Kernel::bind`].
    pub(crate) fn bind(
        &self,
        executor: &str,
        agent_id: &str,
        facts: Option<&AgentFacts>,
        now: Timestamp,
    ) -> Bound {
        let run = |at| bind_to(agent_id, facts, |agent| self.kernel.bind(executor, agent, at));
        self.record(now, run, |bound| {
            let facts = facts.cloned().unwrap_or_default();
            let (executor, agent_id) = (executor.to_owned(), agent_id.to_owned());
            (Operation::Bind { executor, agent_id, facts }, OperationOutcome::Bound(bound.clone()))
        })
    }

    /// [`Kernel::agent_lost`].
    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        let run = |at| self.kernel.agent_lost(agent_id, at);
        self.record(now, run, |doubtful| {
            let operation = Operation::AgentLost { agent_id: agent_id.to_owned() };
            (operation, OperationOutcome::targets(&self.kernel, doubtful))
        })
    }

    /// [`Kernel::executor_lost`].
    pub(crate) fn executor_lost(&self, executor: &str, now: Timestamp) -> Option<Target> {
        let run = |_| self.kernel.executor_lost(executor);
        self.record(now, run, |doubtful| {
            let operation = Operation::ExecutorLost { executor: executor.to_owned() };
            (operation, OperationOutcome::targets(&self.kernel, doubtful.as_slice()))
        })
    }

    /// [`Kernel::readmit_agent`].
    pub(super) fn readmit_agent(&self, agent_id: &str, now: Timestamp) -> bool {
        let run = |at| self.kernel.readmit_agent(agent_id, at);
        self.record(now, run, |&was_refused| {
            let operation = Operation::AgentReadmitted { agent_id: agent_id.to_owned() };
            (operation, OperationOutcome::Readmitted { was_refused })
        })
    }

    /// [`Kernel::set_executor_limit`].
    pub(crate) fn set_executor_limit(
        &self,
        limit: Option<u32>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let run = |_| self.kernel.set_executor_limit(limit);
        self.record(now, run, |set| (Operation::Limit(limit), OperationOutcome::set(set)))
    }

    /// [`Kernel::lower_executor_limit`]. The journal records the limit that results.
    pub(super) fn lower_executor_limit(&self, by: u32, now: Timestamp) {
        let run = |_| self.kernel.lower_executor_limit(by);
        self.record(now, run, |()| {
            (Operation::Limit(self.kernel.executor_limit()), OperationOutcome::Done)
        });
    }

    /// [`Kernel::request_executors`].
    pub(super) fn request_executors(
        &self,
        limit: Option<u32>,
        hosts: &[&str],
        now: Timestamp,
    ) -> Result<(), Error> {
        let run = |at| self.kernel.request_executors(limit, hosts.iter().copied(), at);
        self.record(now, run, |set| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            (Operation::Request { limit, hosts }, OperationOutcome::set(set))
        })
    }

    /// [`Kernel::set_locality`].
    pub(super) fn set_locality(&self, hosts: &[&str], now: Timestamp) {
        let run = |_| self.kernel.set_locality(hosts.iter().copied());
        self.record(now, run, |()| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            (Operation::Locality(hosts), OperationOutcome::Done)
        });
    }

    /// [`Kernel::reconfigure`].
    pub(super) fn reconfigure(&self, config: Config, now: Timestamp) {
        let entry = self.recording.as_ref().map(|_| Box::new(config.clone()));
        let run = |_| self.kernel.reconfigure(config);
        self.record(now, run, |()| {
            let operation = entry.map_or(Operation::Wait, Operation::Reconfigured);
            (operation, OperationOutcome::Done)
        });
    }

    /// [`Kernel::kill_executors`].
    pub(crate) fn kill_executors(&self, ids: &[ExecutorId], now: Timestamp) -> Vec<Target> {
        let run = |_| self.kernel.kill_executors(ids.iter().copied());
        self.record(now, run, |targets| {
            let names = ids.iter().map(|id| self.kernel.executor_name(*id).to_string());
            (Operation::Kill(names.collect()), OperationOutcome::targets(&self.kernel, targets))
        })
    }

    /// [`Kernel::adopt`].
    pub(crate) fn adopt(
        &self,
        former: &[RecoveredExecutor],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        let borrowed = borrow_former(former);
        let run = |at| self.kernel.adopt(&borrowed, at);
        self.record(now, run, |ids| {
            let outcome = OperationOutcome::adopted(ids.as_deref().unwrap_or_default());
            (Operation::Recovered(former.to_vec()), outcome)
        })
    }

    /// [`Kernel::registered`].
    pub(crate) fn registered(&self, framework_id: &str, now: Timestamp) -> u64 {
        let run = |_| self.kernel.registered();
        self.record(now, run, |_| {
            (
                Operation::Registered { framework_id: framework_id.to_owned() },
                OperationOutcome::Done,
            )
        })
    }

    /// [`Kernel::disconnected`].
    pub(crate) fn disconnected(&self, now: Timestamp) {
        let run = |_| self.kernel.disconnected();
        self.record(now, run, |()| (Operation::Disconnected, OperationOutcome::Done));
    }

    /// [`Kernel::close`]. Recorded only the first time; closing again changes nothing.
    pub(crate) fn close(&self, now: Timestamp) -> Vec<Target> {
        let Some(recording) = &self.recording else { return self.kernel.close() };
        let mut guard = recording.lock_at(&self.kernel, now);
        let left = self.kernel.close();
        guard.record_close(&self.kernel, &left);
        left
    }

    /// Whether there is a journal, so that polls and ticks are made at the points of its grid.
    pub(crate) fn has_grid(&self) -> bool {
        self.recording.is_some()
    }

    /// Runs the next point of the grid, if it is due.
    pub(crate) fn run_next_point(&self, now: Timestamp) -> Option<GridPoint> {
        self.recording.as_ref()?.run_next_point(&self.kernel, now)
    }

    /// Begins the shutdown: operations wait for room in the journal for at most `patience`, and the journal's end for
    /// at most up to the deadline.
    pub(super) fn limit_waiting(&self, patience: Duration, written_by: Deadline) {
        if let Some(recording) = &self.recording {
            recording.limit_waiting(patience, written_by);
        }
    }

    /// Returns once why the journal was given up.
    pub(super) fn journal_failure(&self) -> Option<String> {
        self.recording.as_ref()?.unreported_failure()
    }

    /// Ends the journal and waits until it is written. Returns why it was given up, unless that was returned before.
    pub(super) fn finish(&self, now: Timestamp) -> Option<String> {
        self.recording.as_ref()?.finish(&self.kernel, now)
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use crate::engine::sync::{Mutex, lock};
    use crate::ids::IdScheme;
    use crate::kernel::{Rooms, Unplaced};
    use crate::offer::Resource;

    /// Counts the batches without rooms.
    #[derive(Default)]
    struct RoomlessBatches(Mutex<usize>);

    impl TaskChooser for RoomlessBatches {
        fn choose(&self, _: &Rooms<'_>, _: Timestamp, _: &mut Picks) {}

        fn without_rooms(&self, rooms: &Rooms<'_>, _: Timestamp) {
            assert!(!rooms.declines().is_empty());
            *lock(&self.0) += 1;
        }

        fn unplaced(&self, _: &[Unplaced]) {}
    }

    /// Goal: a chooser sees a batch without rooms if the offers are declined for what they or their agents are, and not
    /// if a cap has them declined, also with a constraint that is looked at first. Method: an offer that is too small,
    /// one whose agent doesn't meet a constraint, one with room, and none, with and without a limit that is reached.
    #[test]
    fn batches_without_rooms_are_seen_unless_a_cap_is_reached() {
        let offered = |cores: f64, constraint: &str, limit: Option<u32>| {
            let config = Config::builder().constraint(constraint.parse().unwrap());
            let config = config.executor_limit(limit).build().unwrap();
            let kernel = RecordedKernel::from(Kernel::new(config, IdScheme::plain()));
            let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", 4096.0)];
            let offers = [Offer::new("O", "S1", "h", &resources, &[])];
            let offers = if cores > 0.0 { &offers[..] } else { &[] };
            let (mut handler, mut decisions) = (kernel.kernel().handler(), Decisions::new());
            let (chooser, mut picks) = (RoomlessBatches::default(), Picks::new());
            let choice = (&chooser as &dyn TaskChooser, &mut picks);
            let now = Timestamp::ORIGIN;
            kernel.answer_with_tasks(&mut handler, choice, offers, now, &mut decisions);
            assert_eq!(decisions.declines().len(), offers.len());
            *lock(&chooser.0)
        };
        for (cores, constraint, limit, seen) in [
            (0.1, "", None, 1),
            (4.0, "zone:east", None, 1),
            (4.0, "", None, 0),
            (0.0, "", None, 0),
            (0.1, "", Some(0), 0),
            (0.1, "hostname:h", Some(0), 0),
            (4.0, "zone:east", Some(0), 0),
        ] {
            assert_eq!(offered(cores, constraint, limit), seen, "{cores} {constraint} {limit:?}");
        }
    }
}
