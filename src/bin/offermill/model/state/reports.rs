//! What updates say of an executor beside its state.

use std::time::SystemTime;

use offermill::engine::UnstartedEnd;
use offermill::{ProcessReport, TaskState, UpdateReason};

use super::RunState;
use crate::model::end_cause::EndCause;
use crate::model::executor::ExecutorState;

impl RunState {
    /// Records when an executor ran, by the cluster's clock.
    pub(super) fn record_time(&mut self, executor: &str, state: TaskState, at: Option<SystemTime>) {
        let number = self.by_name.get(executor);
        let record = number.and_then(|number| self.records.get_mut(number));
        let Some(record) = record else { return };
        match record.running_since {
            None if state == TaskState::Running => record.running_since = at,
            // The last one is that of its end.
            Some(since) => {
                record.ran_by_cluster = at.and_then(|at| at.duration_since(since).ok());
            }
            None => {}
        }
    }

    /// Records what the cluster says of an executor's process. Later updates may say less.
    pub(super) fn record_process(&mut self, executor: &str, report: Option<Box<ProcessReport>>) {
        let number = self.by_name.get(executor);
        let record = number.and_then(|number| self.records.get_mut(number));
        let (Some(record), Some(report)) = (record, report) else { return };
        let known = &mut record.process;
        known.pid = report.pid.or(known.pid);
        known.sandbox = report.sandbox.or(known.sandbox.take());
        known.exit = report.exit.or(known.exit);
        known.is_agent_exhausted |= report.is_agent_exhausted;
    }

    /// Records why an executor ended, before the change of its state.
    pub(super) fn record_cause(&mut self, executor: &str, state: TaskState, reason: UpdateReason) {
        let number = self.by_name.get(executor);
        let Some(record) = number.and_then(|number| self.records.get_mut(number)) else { return };
        let is_starting = record.state == ExecutorState::Starting;
        record.cause = Some(EndCause::new(state, reason, record.process.exit, !is_starting));
        let unstarted = UnstartedEnd::of(state, reason, Some(&record.process));
        // One that is being ended, or was given up, is to end whether it has run or not.
        let may_be_unstarted =
            is_starting || record.state == ExecutorState::Unreachable && !record.has_run;
        record.unstarted = unstarted.filter(|_| may_be_unstarted);
    }
}
