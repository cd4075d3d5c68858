//! Hosts of tasks: long-lived processes in which tasks start at less cost than executors of their own.
//!
//! The cluster that starts a host gives it one end of a pair of sockets as standard input (`on_pipe`). What they say to
//! each other is in `message`, in bounded `frame`s; what a host may say after what is in `report_order`. What a cluster
//! knows of its hosts and their tasks, and what follows from what it is told, is in `registry`. On Mesos a host speaks
//! with its agent instead (`task_host_on_mesos`). The host (`program`) runs each task as a process that leads a group
//! of its own, with its output in a folder of its own (`tasks`), and reports how it ended. It has no watchdog a task:
//! when the host ends, whatever the way, its *sweeper* kills its tasks (`sweeper`), and then the connection ends, by
//! which the cluster knows that they are gone.
//!
//! | what happens | tasks | host |
//! |---|---|---|
//! | a task fails | it alone | goes on |
//! | the cluster asks it to finish | asked to end, killed after the grace | ends with the last one |
//! | the host is killed | killed by the sweeper | its end is reported |
//! | the sweeper is killed | killed by the host, and by the cluster (`remains`) | ends |
//! | both are killed in one moment | killed by the cluster; on Mesos by the agent | its end is reported |
//! | the host, the sweeper or both are stopped, or hang | killed by the cluster; on Mesos they go on | killed after a minute |
//! | the program with the cluster ends | killed by the sweeper | killed by its watchdog |
//! | either side sends what makes no sense | killed | ends; the sentence says what it was |

mod connection;
mod frame;
mod message;
mod on_pipe;
mod program;
mod registered_host;
mod registry;
mod remains;
mod report_order;
mod sweeper;
mod tasks;

pub(crate) use connection::HostEvent;
#[cfg(feature = "mesos")]
pub(crate) use message::{HostReport, HostRequest};
pub(crate) use on_pipe::{mark_of_pipe, run_on_pipe};
#[cfg(feature = "mesos")]
pub(crate) use program::{HostMessage, ReportOutput, TaskLoop};
pub(crate) use registered_host::HostPatience;
pub(crate) use registry::{
    HostEnd, HostOutcome, HostRegistry, HostedEnd, HostedKill, NewHostedTask,
};
pub(crate) use sweeper::MARK_VARIABLE;
#[cfg(feature = "mesos")]
pub(crate) use sweeper::Sweeper;
#[cfg(feature = "mesos")]
pub(crate) use tasks::RunningTasks;
