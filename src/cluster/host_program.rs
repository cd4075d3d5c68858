//! The program of hosts of tasks, whatever cluster has started it.

use super::task_host::{mark_of_pipe, run_on_pipe};

/// Runs tasks for the cluster that has started this process as a [host](crate::launch::Hosting), until it says that
/// they are to end, or is gone. The connection to the embedded cluster, or to a worker of a standalone master, is
/// standard input; an agent of Mesos says in environment variables where it is (with the feature `mesos`). The process
/// should do nothing else, before or after.
///
/// # Errors
/// With a sentence: if this process was not started by a cluster, or the connection breaks. Tasks are ended then.
pub fn run_task_host() -> Result<(), String> {
    if let Some(mark) = mark_of_pipe() {
        return run_on_pipe(mark);
    }
    #[cfg(feature = "mesos")]
    if super::task_host_on_mesos::is_executor() {
        return super::task_host_on_mesos::run_on_mesos();
    }
    Err("a host of tasks is started by a cluster, not by hand".to_owned())
}
