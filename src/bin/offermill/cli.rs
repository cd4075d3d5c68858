//! The command line as clap reads it: the subcommands, and the help text of `run`.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::clean::CleanArguments;
use crate::constraints::CheckArguments;
use crate::control::ctl::CtlArguments;
use crate::exit;
use crate::logs::LogsArguments;
use crate::replay::arguments::ReplayArguments;
use crate::settings::flags::RunArguments;
use crate::settings::table;
use crate::simulate::arguments::SimulateArguments;
use crate::standalone_master::arguments::MasterArguments;
use crate::worker::arguments::WorkerArguments;

const EXAMPLES: &str = "\
Examples:
  Six executors over three agents of this machine, until all have finished:
    offermill run --master 'local-cluster[3,2,2048]' --num-executors 6 \\
        --executor-cores 1 --executor-memory 512m --until-finished \\
        -- sh -c 'echo \"$OFFERMILL_EXECUTOR_ID on $OFFERMILL_HOSTNAME\"; sleep 5'

  Two workers in the eastern zone, until Ctrl-C:
    offermill run --master 'local-cluster[4,2,2048]' \\
        --agent-attributes 'zone:east|zone:west' --constraints zone:east \\
        --total-executor-cores 2 --executor-cores 1 --executor-memory 512m \\
        -- ./worker --id {{EXECUTOR_ID}}

  The tasks of a file, each once, as many at a time as fit; and what one of them printed:
    offermill run --master 'local-cluster[2,2,2048]' --tasks build.tasks
    offermill logs lint

  With the settings of a Spark installation, events as JSON:
    offermill run --properties-file conf/spark-defaults.conf --json -- ./worker

  On a Mesos cluster, as a principal of its own; a run that is killed and started again
  within an hour keeps the same executors:
    offermill run --master https://m1:5050,m2:5050 --role etl --principal etl \\
        --secret-file etl.secret --failover-timeout 1h --framework-id-file etl.framework \\
        --num-executors 20 --executor-cores 2 --executor-memory 4g -- /opt/etl/worker

  As pods of a Kubernetes cluster, with kubectl's credentials:
    offermill run --master k8s:// --namespace jobs --container-image registry/etl:3 \\
        --name etl --num-executors 20 --executor-cores 2 --executor-memory 4g -- /opt/etl/worker

  Executors for a Spark driver, until it ends (SPARK_HOME says where Spark is):
    offermill run --master 'local-cluster[2,2,2048]' --num-executors 2 --until-finished \\
        --executor-cores 1 --executor-memory 512m --spark-app-id app-7 \\
        --spark-driver spark://CoarseGrainedScheduler@127.0.0.1:7078

  The value of each setting, and its source:
    offermill run --properties-file conf/spark-defaults.conf --print-config

  A number of executors that follows the reported load, from none to twenty:
    offermill run --control etl.sock -c spark.dynamicAllocation.enabled=true \\
        -c spark.dynamicAllocation.maxExecutors=20 --executor-cores 2 -- ./worker
    offermill ctl etl.sock load pending=30 running=4

  Steered by another program, which writes commands such as \"limit 2\" to standard input:
    offermill run --steered --num-executors 0 --executor-cores 1 -- ./worker

  A web page about the run, and what an executor prints:
    offermill run --http 127.0.0.1:4040 --name etl -- ./worker
    offermill logs --follow 3

  Completions for this shell:
    source <(offermill completions bash)
";

const RUN_NOTES: &str = "\
On a Mesos cluster the command must exist on the agents, not on this machine. Nothing
else but --master differs. On Kubernetes the command must exist in the image.

In the command, {{EXECUTOR_ID}}, {{APP_ID}}, {{AGENT_ID}}, {{HOSTNAME}}, {{CORES}},
{{MEMORY_MB}} and (with a fixed port) {{PORT}} are replaced by an executor's own
values, which are also in its environment as OFFERMILL_EXECUTOR_ID and so on. Prefer the
variables, as in \"$OFFERMILL_HOSTNAME\": in host names, agent ids and application ids that
replace placeholders, what isn't a letter, a digit or one of %+,-.:@_ becomes _, so that
no shell can execute it. Its output goes to the files stdout and stderr in its sandbox.

Executors of Spark end (with exit code 0) when their driver does. With --until-finished
the run ends then; without, they are replaced, and the run ends when as many of the new
ones have failed to find the driver as --max-executor-failures allows.

A flag takes precedence over --conf, --conf over the properties file, and that over the
environment. Durations are whole numbers with us, ms, s, m, min, h or d, in seconds
without a unit; memory is a whole number with b, k, m, g, t or p, in MiB without a unit.";

const JSON_NOTES: &str = "\
--json prints one object per line. All have \"event\", \"at_ms\" (since the start) and
\"time\" (UTC). The events:
  started, registered, disconnected, resumed (a former run), adopted (an executor of
  it), placed, bound (to a node, on Kubernetes), unwelcome (there), running, ending,
  out_of_sight, returned, given_up, refused_return, ended, excluded, all_excluded,
  waiting, agent_lost, task (an attempt of it ended), demand, overflow, unreadable,
  call_failed, shuffle_registered, shuffle_failing, journal_ended, refused, limit,
  queues, kill, answer, totals (each 10 s), stopping, summary (the last, except after
  a second Ctrl-C),
  left_out (the number of \"lines\" that were left out because they weren't read in time).
Events of executors have \"executor\", \"agent_id\", \"host\", \"state\", \"cores\",
\"memory_mib\", \"gpus\", \"port\" and \"message\"; \"placed\" has \"replaces\" too,
\"running\" has \"pid\", \"sandbox\" and \"address\" (null: not known), \"ended\" has
\"ran_ms\", \"exit_code\", \"signal\" (null: none, or not known) and \"cause\" (exited,
signaled, requested, not_started, dropped, agent_lost, preempted or unknown).
\"started\" has \"protocol\", \"version\" and \"pid\", among others. \"excluded\" has
\"failures\", \"why\", \"until\" and \"for_ms\" (null: for ever). \"limit\" has \"from\"
and \"to\" (null: none) and \"why\"; \"queues\" has \"changes\", each with
\"queue\", \"bound\", \"from\" and \"to\", and \"why\"; \"kill\" has \"executors\" and \"why\"; \"answer\",
to a command from standard input, has \"command\" (its number), \"id\", \"ok\", \"answer\"
and \"detail\". \"waiting\" comes when executors are wanted and none was placed for 5 s,
and again if the reasons change; it has \"sentence\", \"wanted\" (null: as many as fit), \"offers\",
\"last_offers_ms\", \"suppressed\", \"agents_excluded\", \"first_exclusion_ends_ms\" (null:
never) and \"nearest_misses\", each with \"reason\", \"offers\" (all that were declined
for it), \"agent_id\", \"host\", \"why\", \"asked\", \"offered\" and \"declined_ms\";
\"cluster_lacks\", what no agent has, each with \"what\", \"why\", \"asked\", \"largest\",
\"agent_id\" and \"host\"; \"capacity_ms\", when that was so (null: nothing calls for it);
\"unstarted\", what placed executors wait for, each with \"executors\" and \"why\"; and \"denied\",
why the cluster took the last executor not at all (null: it did; both on Kubernetes).
\"shuffle_registered\" and \"shuffle_failing\", each printed once until the other comes, have
\"host\" and \"port\" of the service; the first also \"again\", the second \"refused\" and \"why\".
\"summary\" has \"ending\", \"exit_code\", \"ran_ms\", \"executors\" (each with the keys of
\"ended\"), \"agents\", \"offers\" (with \"declined\" by reason), \"nearest_misses\",
\"cluster\" (the most \"agents\" that offered something, \"offered_max\" by them at a time
and \"used_max\" by executors, each with \"cores\", \"memory_mib\" and \"gpus\"),
\"shuffle_services\" (the number in each state; null: there are none), and \"waiting\" as it
was when the run was stopped, or null.";

/// Runs a command as executors on a cluster: accepts resource offers, places executors within
/// limits and constraints, replaces executors that fail, excludes agents on which they keep failing,
/// and ends cleanly.
#[derive(Debug, Parser)]
#[command(name = "offermill", version, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n{}", exit::HELP))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Run a command as executors, or the tasks of a file
    #[command(after_help = format!("{RUN_NOTES}\n\n{EXAMPLES}\n{}", exit::HELP))]
    #[command(after_long_help = run_long_help())]
    Run(Box<RunArguments>),
    /// Send a command to a running `offermill run` or `offermill master`
    Ctl(CtlArguments),
    /// Delete what a killed run has left behind on Kubernetes
    Clean(CleanArguments),
    /// Print what an executor or a task on a local agent has printed
    Logs(LogsArguments),
    /// Run the master of a standalone cluster
    Master(MasterArguments),
    /// Run executors of a standalone master on this machine
    Worker(Box<WorkerArguments>),
    /// Test the kernel on a simulated cluster, with faults and in virtual time
    Simulate(Box<SimulateArguments>),
    /// Replay the events of a recorded run or scenario and print the decisions
    Replay(ReplayArguments),
    /// Check constraints without a cluster
    Constraints {
        #[command(subcommand)]
        action: ConstraintsAction,
    },
    /// Run tasks on a local agent, on Mesos or on a standalone worker, for `offermill run
    /// --task-hosts`, which has it started
    #[command(hide = true)]
    TaskHost,
    /// Print a shell's completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The subcommands of `offermill constraints`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConstraintsAction {
    /// Check the syntax of a constraint, and whether an agent meets each of its conditions
    Check(CheckArguments),
}

fn run_long_help() -> String {
    let options = table::specs().help();
    format!("{RUN_NOTES}\n\n{options}\n{JSON_NOTES}\n\n{EXAMPLES}\n{}", exit::HELP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Goal: no flag contradicts another. Method: clap's own check.
    #[test]
    fn flags_are_consistent() {
        Arguments::command().debug_assert();
    }
}
