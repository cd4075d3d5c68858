//! Tests with Spark's own programs.
//!
//! | module | question |
//! |---|---|
//! | [`asking`] | does Spark's own backend make the decisions that `offermill replay` predicts? (ignored, too) |
//! | [`shuffle`] | does the application register with shuffle services, even if they misbehave? |
//! | [`plugin`] | do Spark's drivers get executors from the plug-in, and does it tell them why executors end? (ignored, too) |
//! | [`pods`] | are Spark's executors on Kubernetes the pods that Spark's own backend makes? (ignored, too) |
//! | [`placement`] | are executors placed where Spark's standalone master places them? (ignored, too) |
//! | [`real`] | do Spark's own executors run Spark's own jobs if Offermill places them? (ignored by a plain `cargo test`; `.ci/spark` runs them) |
//!
//! What the plug-in promises, and the tests that show it: scenes of [`plugin`], if no file is named.
//!
//! | promise | shown by |
//! |---|---|
//! | Spark 3.5, 4.0 and 4.3 on one jar: Python workers, a shuffle, SQL | `jobs`; on Mesos `jobs::an_application_of_spark_4_survives_a_kill_on_mesos`, on a master with workers `standalone` |
//! | by `spark-submit`, `pyspark`, `spark-shell`, plain Python, Spark Connect | `jobs`, `shells`, `jobs::a_plain_driver_…`; Connect, with a client in Python, by `.ci/campaign connect` |
//! | dynamic allocation: 1, 2, 4 executors with the load, none without it, and again | `jobs::executors_of_spark_…_follow_the_load`; the time by `tests/support/spark/figures` |
//! | executors that go aren't replaced if they needn't be | the same, which counts those that were placed |
//! | several are ended together, of which one has just died | `jobs::a_plain_driver_of_spark_3_…`; `tests/cli/steering.rs` |
//! | a killed executor costs no result, and Spark's reason names signal and agent | `jobs::…_survives_a_kill` |
//! | a lost agent, and Spark's reason | `jobs::…_survives_a_kill_on_mesos` |
//! | executors that are killed before they register, or never do | `ends::a_deadly_task_…`, `ends::an_executor_that_never_registers_…`, `ends::an_application_without_…`, of which one registers and fails then |
//! | a killed driver, with executors or none, leaves no process and no file | `ends::a_killed_driver_leaves_nothing`, which prints how long it took |
//! | a driver that ends by an exception or `sys.exit` without `stop` leaves nothing | `jobs::a_plain_driver_…` |
//! | Ctrl-C in `pyspark` and `spark-shell` at a terminal cancels the job alone | `shells` |
//! | a killed Offermill ends the application soon, with its last words; a silent one delays the end alone | `ends::a_killed_offermill_…`, `ends::a_silent_offermill_…` |
//! | executors start where data is | `places::executors_start_where_the_data_is` |
//! | links to logs in Spark's page open | `jobs::an_application_of_spark_4_survives_a_kill`, `places::links_lead_to_agents_of_mesos` |
//! | authentication, encryption, overhead, memory off the heap, options with quotes reach executors | `jobs::…_survives_a_kill`; `spark-plugin/test` (`RunSettingsTest`) |
//! | delegation tokens of Kerberos reach executors | `jobs::delegation_tokens_reach_executors` |
//! | no secret in an argument list, a file, an event or a log | `jobs::…_survives_a_kill` |
//! | mistakes are named once, soon, and leave nothing | `refusals` |
//! | without Rust: `pip install` of the package, and `spark-submit` | the end of `.ci/spark` |

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../kubernetes/fake/mod.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod api_server;
mod asking;
#[path = "../support/eventually.rs"]
mod eventually;
#[path = "../mesos/http.rs"]
#[allow(dead_code)]
mod http;
mod placement;
mod plugin;
mod pods;
mod real;
mod rng;
mod shuffle;
#[path = "../cli/support.rs"]
#[allow(dead_code)]
mod support;

use eventually::eventually;
