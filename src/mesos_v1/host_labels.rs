//! The labels of a task's status by which a host tells its framework of the task's process.

/// The number of the process.
pub(crate) const PID_LABEL: &str = "offermill.pid";
/// The folder with what the task prints, on its agent.
pub(crate) const FOLDER_LABEL: &str = "offermill.folder";
