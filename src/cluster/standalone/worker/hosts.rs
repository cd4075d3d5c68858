//! Hosts of tasks on a worker, and the tasks in them: what becomes of their processes, as executors of the worker. See
//! [`task_host`](crate::cluster::task_host).

use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::processes::{WorkerProcesses, ended, id_of};
use super::step::WorkerInput;
use crate::cluster::process::Exit;
use crate::cluster::standalone::protocol::{ExecutorKey, ExecutorLaunch, ReportedState};
use crate::cluster::task_host::{
    HostEnd, HostEvent, HostOutcome, HostedEnd, HostedKill, MARK_VARIABLE, NewHostedTask,
};

impl WorkerProcesses {
    /// Opens the connection of an executor that is about to be started, if it is a host, and returns the host's end of
    /// it. Gives its command the variable by which its tasks are found.
    pub(super) fn open_host(&mut self, launch: &mut ExecutorLaunch) -> Option<OwnedFd> {
        let id = id_of(&launch.key);
        let (sink, host) = (self.host_events.clone(), id.clone());
        let random = RandomState::new().hash_one(&id);
        let mark = format!("{id}/{random:016x}");
        let input = self.hosts.open(&id, &mark, move |event| sink.deliver(&host, event))?;
        launch.command.environment.push((MARK_VARIABLE.to_owned(), mark));
        Some(input)
    }

    /// Starts a task in its host.
    pub(super) fn start_in_host(
        &mut self,
        launch: ExecutorLaunch,
        host: String,
    ) -> Vec<WorkerInput> {
        let ExecutorLaunch { key, command, .. } = launch;
        let new = NewHostedTask {
            id: id_of(&key),
            host: id_of(&ExecutorKey::new(key.framework.clone(), host.clone())),
            name: key.executor.clone(),
            argv: command.argv,
            environment: command.environment,
            record: key,
        };
        match self.hosts.start(new) {
            Ok(()) => Vec::new(),
            Err(key) => {
                let message = format!("not started: its host {host} has ended, or is about to");
                vec![ended(key, ReportedState::Dropped, message)]
            }
        }
    }

    /// Handles what has come from a host's connection.
    pub(super) fn on_host_event(
        &mut self,
        host: &str,
        event: HostEvent,
        now: Instant,
    ) -> Vec<WorkerInput> {
        // The host's tasks are of its framework.
        let framework = host.split_once('/').map_or("", |(framework, _)| framework).to_owned();
        let id_of = |name: &str| format!("{framework}/{name}");
        let outcomes = self.hosts.on_event(host, event, id_of);
        self.follow(outcomes, now)
    }

    /// Asks a task in a host to end. `None` if there is no such task.
    pub(super) fn end_in_host(
        &mut self,
        id: &str,
        grace: Duration,
        now: Instant,
    ) -> Option<Vec<WorkerInput>> {
        Some(match self.hosts.kill(id, grace)? {
            HostedKill::Ended(outcome) => self.follow(vec![outcome], now),
            HostedKill::Asked { .. } => Vec::new(),
        })
    }

    /// What the outcomes mean for the worker's executors. A host's end is told before those of its tasks: a framework
    /// that hears of a lost task first would start it in the same host again.
    pub(super) fn follow(
        &mut self,
        outcomes: Vec<HostOutcome<ExecutorKey>>,
        now: Instant,
    ) -> Vec<WorkerInput> {
        let is_host_end =
            |outcome: &HostOutcome<ExecutorKey>| matches!(outcome, HostOutcome::HostEnded { .. });
        let (hosts, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_host_end);
        let all = hosts.into_iter().chain(others);
        all.filter_map(|outcome| self.follow_outcome(outcome, now)).collect()
    }

    fn follow_outcome(
        &mut self,
        outcome: HostOutcome<ExecutorKey>,
        now: Instant,
    ) -> Option<WorkerInput> {
        match outcome {
            HostOutcome::HostReady(host) => {
                let executor = self.running.get(&host)?;
                let output = executor.sandbox().display();
                let message = format!("process {}, output in {output}", executor.pid());
                let pid = u32::try_from(executor.pid()).ok();
                let (key, folder) = (executor.record.clone(), None);
                Some(WorkerInput::Running { key, pid, message, folder })
            }
            HostOutcome::EndHost(host) => {
                self.running.terminate(&host, Duration::ZERO, now);
                None
            }
            HostOutcome::HostEnded { executor, exit, end } => {
                let (state, message) = match end {
                    HostEnd::Faulty(fault) => (ReportedState::Failed, fault),
                    HostEnd::Unasked => (ReportedState::Failed, exit.as_mesos_says()),
                    HostEnd::Asked => {
                        self.has_forced |= is_forced(exit);
                        (ReportedState::Killed, exit.as_mesos_says())
                    }
                };
                Some(ended(executor.record, state, message))
            }
            HostOutcome::TaskRuns { id, process } => {
                let key = self.hosts.record(&id)?.clone();
                let (pid, folder) = (process.pid, process.sandbox);
                let shown = (pid.unwrap_or_default(), folder.as_deref().unwrap_or_default());
                let message = format!("process {}, output in {}", shown.0, shown.1);
                Some(WorkerInput::Running { key, pid, message, folder })
            }
            HostOutcome::TaskEnded { host, record, end, .. } => {
                if let HostedEnd::Exited { exit, is_asked: true, .. } = &end {
                    self.has_forced |= is_forced(*exit);
                }
                Some(hosted_end(record, host_name(&host), end))
            }
        }
    }
}

/// Whether an executor that was asked to end had to be killed.
fn is_forced(exit: Exit) -> bool {
    exit == Exit::Signal(rustix::process::Signal::KILL.as_raw())
}

/// A host's id as its framework knows it.
fn host_name(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, executor)| executor)
}

/// The report of the end of a task in a host.
fn hosted_end(key: ExecutorKey, host: &str, end: HostedEnd) -> WorkerInput {
    let (state, message) = match end {
        HostedEnd::NotStarted { why, is_busy: true } => {
            (ReportedState::Dropped, format!("not started: {why}"))
        }
        HostedEnd::NotStarted { why, is_busy: false } => {
            (ReportedState::Failed, format!("not started: {why}"))
        }
        HostedEnd::Withdrawn => {
            (ReportedState::Killed, "on request, before it was started".to_owned())
        }
        HostedEnd::Exited { exit, is_asked: true, .. } => {
            (ReportedState::Killed, exit.as_mesos_says())
        }
        // However it ends then, it may not have done its work.
        HostedEnd::Exited { exit, is_host_asked: true, .. } => {
            return lost(key, format!("its host {host} was asked to end: {exit}"));
        }
        HostedEnd::Exited { exit: exit @ Exit::Code(0), .. } => {
            (ReportedState::Finished, exit.as_mesos_says())
        }
        HostedEnd::Exited { exit, .. } => (ReportedState::Failed, exit.as_mesos_says()),
        HostedEnd::HostGone { why, is_asked: true, .. } => {
            (ReportedState::Killed, format!("its host {host} is gone: {why}"))
        }
        HostedEnd::HostGone { why, is_asked: false, is_sent: false } => {
            (ReportedState::Dropped, format!("not started: its host {host} is gone: {why}"))
        }
        HostedEnd::HostGone { why, is_asked: false, is_sent: true } => {
            return lost(key, format!("its host {host} is gone: {why}"));
        }
    };
    ended(key, state, message)
}

fn lost(key: ExecutorKey, message: String) -> WorkerInput {
    WorkerInput::Ended { key, state: ReportedState::Failed, message, is_lost: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what ends because its host was asked to end is lost, however it ends, and killed if it was asked itself.
    /// Method: ends with exit codes 0 and 3, with each combination of requests.
    #[test]
    fn what_ends_with_its_host_is_lost() {
        use ReportedState::{Failed, Finished, Killed};
        for (is_asked, is_host_asked, expected, is_loss) in [
            (false, false, [Finished, Failed], false),
            (false, true, [Failed, Failed], true),
            (true, false, [Killed, Killed], false),
            (true, true, [Killed, Killed], false),
        ] {
            for (code, expected) in [0, 3].into_iter().zip(expected) {
                let end = HostedEnd::Exited { exit: Exit::Code(code), is_asked, is_host_asked };
                let ended = hosted_end(ExecutorKey::new("F", "a"), "h", end);
                let WorkerInput::Ended { state, is_lost, .. } = ended else { panic!("no end") };
                assert_eq!(
                    (state, is_lost),
                    (expected, is_loss),
                    "{is_asked} {is_host_asked} {code}"
                );
            }
        }
    }
}
