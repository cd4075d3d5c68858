//! The labels of hosts of tasks: that of the executor which a host is, and those of a task's status, by which a host
//! tells its framework of the task's process.

/// An executor with this label is a host of tasks, and takes the commands of its tasks as data.
pub(crate) const HOST_LABEL: &str = "offermill.host";
/// The number of the process.
pub(crate) const PID_LABEL: &str = "offermill.pid";
/// The folder with what the task prints, on its agent.
pub(crate) const FOLDER_LABEL: &str = "offermill.folder";
/// Workers of a standalone master say by it that their machine had nothing left for an executor, which was not started.
pub(crate) const EXHAUSTED_LABEL: &str = "offermill.exhausted";
