//! Tests of the command line from outside: the real binary, real processes, and what users see of them.
//!
//! | module | subject |
//! |---|---|
//! | [`running`] | executors run, fail and are replaced |
//! | [`ending`] | runs end in time, with the right exit code, and leave nothing behind |
//! | [`journaling`] | journals replay without differences and contain no secrets |
//! | [`output`] | JSON, closed pipes, help and completions |
//! | [`unread`] | runs go on and end as usual while nobody reads their output |
//! | [`settings`] | the precedence of settings, and the rejection of invalid ones |
//! | [`controlling`] | commands to a live run |
//! | [`http`] | the web page about a run, its metrics and its state |
//! | [`logs`] | `offermill logs` |
//! | [`spark_startup`] | what Spark's executors get before they can ask their driver |
//! | [`steering`] | runs that another program steers |
//! | [`steering_commands`] | commands to such runs: their bounds, and what is repeated |
//! | [`steering_ends`] | ends of such runs, their parents and their pipes |
//! | [`status`] | the status of a run agrees with itself |
//! | [`spark`] | Spark's settings and `--print-config` |
//! | [`spark_executors`] | Spark's executors are launched as by Spark |
//! | [`spark_pods`] | Spark's executors as pods of a fake API server |
//! | [`standalone`] | `offermill master`, with runs as frameworks |
//! | [`standalone_crowds`] | what clients of a master can't take from others, and what its operator reads |
//! | [`standalone_drills`] | a worker's place taken twice, a master without room on its disk |
//! | [`standalone_revoked`] | credentials that have expired, are taken away, or are another's, on each call |
//! | [`standalone_tls_cuts`] | connections that are cut within a record of TLS |
//! | [`standalone_tls`] | a master, workers and runs over TLS |
//! | [`kubernetes`] | the settings of runs on Kubernetes, and their secrets |
//! | [`pods`] | runs on a fake API server, and `offermill clean` |
//! | [`pod_files`] | files for executors on Kubernetes, what owns all, and servers that do not answer |
//! | [`mesos`] | the settings of runs on Mesos, and their secrets |
//! | [`changed_queues`] | queues are changed by command while their tasks run |
//! | [`executor_queue`] | executors of a run without tasks are in a queue, whose maxima change while it runs |
//! | [`task_bar`] | the bar of `offermill run --tasks` on a terminal |
//! | [`task_ids`] | tasks are named by their ids, and called tasks; the settings that count for them |
//! | [`task_queues`] | the queues of `offermill run --tasks` keep to their bounds |
//! | [`checking`] | `offermill constraints check` |
//! | [`replaying`] | `offermill replay` decides as recorded, and as Spark |
//! | [`comparing`] | expected answers are compared with Spark's, and tasks are what Spark's are |
//! | [`deviations`] | the defects of Spark that aren't reproduced |
//! | [`simulating`] | `offermill simulate` |
//! | [`as_root_standalone`] | a standalone master and other users of its machine (needs root) |
//! | [`as_root`] | what other users of the machine prepare, and who executors run as (needs root) |

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../kubernetes/fake/mod.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod api_server;
mod as_root;
mod as_root_standalone;
mod changed_queues;
mod checking;
mod comparing;
mod controlling;
mod ctl;
mod deviations;
mod ending;
#[path = "../support/eventually.rs"]
mod eventually;
mod executor_queue;
mod fine_grained;
mod http;
mod impostors;
mod journaling;
mod kubernetes;
mod logs;
mod mesos;
mod output;
mod pod_files;
mod pods;
mod replaying;
mod running;
mod secrecy;
mod settings;
mod simulating;
mod spark;
mod spark_executors;
mod spark_pods;
mod spark_startup;
mod standalone;
mod standalone_crowds;
mod standalone_drills;
mod standalone_logs;
mod standalone_page;
mod standalone_revoked;
mod standalone_standby;
mod standalone_tls;
mod standalone_tls_cuts;
mod status;
mod steering;
mod steering_commands;
mod steering_ends;
mod support;
mod task_bar;
mod task_hosts;
mod task_ids;
mod task_queues;
mod tasks;
mod terminal;
mod unread;
