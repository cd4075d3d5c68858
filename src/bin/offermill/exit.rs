//! The exit codes, on which scripts may rely.

/// How the program ended. Each variant has an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// All executors finished, or ended within the shutdown timeout after the run was stopped.
    Done,
    /// Too many executors failed, or all agents were excluded.
    ExecutorsFailed,
    /// `constraints check`: the agent doesn't meet the constraint.
    NoMatch,
    /// `ctl`: the run refused the command.
    CommandRefused,
    /// `clean`: the run is alive.
    RunIsAlive,
    /// `replay --expect`: a decision differs from the expected one.
    Differs,
    /// A flag or setting is invalid. Nothing was started.
    BadInput,
    /// Executors had not ended within the shutdown timeout and were killed, or the cluster may keep the framework.
    TimedOut,
    /// The cluster is not available, or refused this framework.
    Cluster,
    /// `run --until-finished`: standard output was closed before all executors had finished. Other commands: standard
    /// output could not be written, for example because the disk was full.
    OutputClosed,
    /// The simulator found a violation of an invariant.
    Violation,
    /// A part of this program panicked, and the run could not continue.
    Internal,
    /// A second signal ended the run.
    AtOnce,
}

/// The help text about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
    0  all executors finished, or (with --tasks) all tasks succeeded; or the run was stopped
       (Ctrl-C, SIGTERM, SIGHUP, closed output, the end of its parent) and all executors
       ended within the shutdown timeout
    1  executors failed: as many as --max-executor-failures allows, or (with --until-finished)
       on every agent; with --tasks: not all tasks have succeeded; constraints check: the
       agent doesn't meet the constraint; ctl: the run refused the command; clean: the run is
       alive; replay: a decision differs from the expected one
    2  a flag or setting is invalid; nothing was started
    3  the run was stopped, and executors that had not ended within the shutdown timeout were
       killed (on Mesos: the master ends them with the framework, those on unreachable agents
       when the agents return); or, on Mesos, the framework could not be torn down, and the
       master keeps it and executors for the failover timeout; or, on Kubernetes, not all
       pods and the lease could be deleted
    4  the cluster is not available, or refused this framework; ctl: no run answers; clean:
       something could not be deleted
    5  with --until-finished: standard output was closed before all executors had
       finished; with --tasks: the results file can't be written; other commands: standard
       output can't be written (a closed pipe is fine)
    6  simulate: the simulator found a violation
    7  internal error: a part of this program panicked and the run could not continue;
       executors were killed; please report it
  130  a second Ctrl-C (or SIGTERM, SIGHUP) ended the run at once; local executors were killed;
       those on Mesos that the first had not ended are left to the master for the failover timeout;
       those on Kubernetes stay until the next run of the name or clean";

impl ExitStatus {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            ExitStatus::Done => 0,
            ExitStatus::ExecutorsFailed
            | ExitStatus::NoMatch
            | ExitStatus::CommandRefused
            | ExitStatus::RunIsAlive
            | ExitStatus::Differs => 1,
            ExitStatus::BadInput => 2,
            ExitStatus::TimedOut => 3,
            ExitStatus::Cluster => 4,
            ExitStatus::OutputClosed => 5,
            ExitStatus::Violation => 6,
            ExitStatus::Internal => 7,
            ExitStatus::AtOnce => 130,
        }
    }
}
