//! Exit codes: a promise to scripts.

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All executors finished, or all ended in time after the run was asked to stop.
    Done,
    /// Too many executors failed, or no agent was left for them.
    ExecutorsFailed,
    /// `constraints check`: the agent doesn't meet the constraint.
    NoMatch,
    /// `ctl`: the run didn't do what it was told.
    CommandRefused,
    /// `replay --expect`: something else was decided than was expected.
    Differs,
    /// A flag or setting isn't allowed. Nothing was started.
    BadInput,
    /// Executors had not ended within the shutdown timeout and were killed, or the cluster may keep the framework.
    TimedOut,
    /// The cluster could not be had, or refused this framework.
    Cluster,
    /// Standard output was closed before the executors had finished that `--until-finished` waits for;
    /// or, with the simulator, it couldn't be written, as on a full disk.
    OutputClosed,
    /// The simulator found a violated invariant.
    Violation,
    /// A part of this program panicked, so that the run couldn't go on.
    Internal,
    /// A second Ctrl-C.
    AtOnce,
}

/// What `--help` says about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
    0  all executors finished; or the run was stopped (Ctrl-C, SIGTERM, closed output)
       and all executors ended within the shutdown timeout
    1  executors failed: as many as --max-executor-failures allows, or (with --until-finished)
       on every agent; constraints check: the agent doesn't meet the constraint; ctl: the
       run refused the command; replay: something else was decided than was expected
    2  a flag or setting isn't allowed; nothing was started
    3  the run was stopped, and executors that had not ended within the shutdown
       timeout were killed (on Mesos: or had to be left behind, with the master gone; or the
       framework could not be torn down, and the master keeps it for the failover timeout)
    4  the cluster could not be had, or refused this framework; ctl: no run answers
    5  with --until-finished: standard output was closed before all executors had
       finished; simulate: standard output can't be written (a closed pipe is fine)
    6  simulate: the simulator found a violation
    7  internal error: a part of this program panicked and the run could not go on;
       executors were killed; please report it
  130  a second Ctrl-C (or SIGTERM) ended the run at once; executors were killed, or on Mesos
       left to the master, which keeps them for the failover timeout";

impl Exit {
    /// The code that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::ExecutorsFailed | Exit::NoMatch | Exit::CommandRefused | Exit::Differs => 1,
            Exit::BadInput => 2,
            Exit::TimedOut => 3,
            Exit::Cluster => 4,
            Exit::OutputClosed => 5,
            Exit::Violation => 6,
            Exit::Internal => 7,
            Exit::AtOnce => 130,
        }
    }
}
