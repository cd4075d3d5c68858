//! The command line as clap reads it. Values stay texts here: flags and `spark.*` keys are read by
//! the same code.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::control::HELP;
use crate::exit;
use crate::replay::arguments::ReplayArguments;
use crate::settings::option;
use crate::simulate::arguments::SimulateArguments;

const EXAMPLES: &str = "\
Examples:
  Six executors over three agents of this machine, until all have finished:
    offermill run --master 'local-cluster[3,2,2048]' --num-executors 6 \\
        --executor-cores 1 --executor-memory 512m --until-finished \\
        -- sh -c 'echo {{EXECUTOR_ID}} on {{HOSTNAME}}; sleep 5'

  Two workers in the eastern zone, for as long as it takes (Ctrl-C ends them):
    offermill run --master 'local-cluster[4,2,2048]' \\
        --agent-attributes 'zone:east|zone:west' --constraints zone:east \\
        --total-executor-cores 2 --executor-cores 1 --executor-memory 512m \\
        -- ./worker --id {{EXECUTOR_ID}}

  With the settings of a Spark installation, events as JSON:
    offermill run --properties-file conf/spark-defaults.conf --json -- ./worker

  On a Mesos cluster, as a principal of its own; a run that is killed and started again
  within an hour goes on with the same executors:
    offermill run --master https://m1:5050,m2:5050 --role etl --principal etl \\
        --secret-file etl.secret --failover-timeout 1h --framework-id-file etl.framework \\
        --num-executors 20 --executor-cores 2 --executor-memory 4g -- /opt/etl/worker

  Executors for a Spark driver, until it ends (SPARK_HOME says where Spark is):
    offermill run --master 'local-cluster[2,2,2048]' --num-executors 2 --until-finished \\
        --executor-cores 1 --executor-memory 512m --spark-app-id app-7 \\
        --spark-driver spark://CoarseGrainedScheduler@127.0.0.1:7078

  What all settings come to, and where each is given:
    offermill run --properties-file conf/spark-defaults.conf --print-config

  Executors that follow the load that the run is told of, from none to twenty:
    offermill run --control etl.sock -c spark.dynamicAllocation.enabled=true \\
        -c spark.dynamicAllocation.maxExecutors=20 --executor-cores 2 -- ./worker
    offermill ctl etl.sock load pending=30 running=4

  Completions for this shell:
    source <(offermill completions bash)
";

const RUN_NOTES: &str = "\
On a Mesos cluster the command is looked for on its agents, not here. All else is
alike: --master is the only difference.

In the command, {{EXECUTOR_ID}}, {{APP_ID}}, {{AGENT_ID}}, {{HOSTNAME}}, {{CORES}},
{{MEMORY_MB}} and (with a fixed port) {{PORT}} stand for an executor's own; it
finds the same in its environment as OFFERMILL_EXECUTOR_ID and so on. Its output
goes to the files stdout and stderr in its sandbox.

Executors of Spark end (with exit code 0) when their driver does. With --until-finished
the run ends then; without, they are replaced, and the run ends when as many of the new
ones have failed to find the driver as --max-executor-failures allows.

A flag counts more than --conf, --conf more than the properties file, and that more
than the environment. Durations are whole numbers with us, ms, s, m, min, h or d,
and in seconds without; memory is a whole number with b, k, m, g, t or p, and in
MiB without.";

const JSON_NOTES: &str = "\
--json prints one object a line. All have \"event\", \"at_ms\" (since the start) and
\"time\" (UTC). The events:
  started, registered, disconnected, resumed (a former run), adopted (an executor of
  it), placed, running, ending, out_of_sight, returned, given_up, refused_return,
  ended, excluded, all_excluded, waiting, agent_lost, demand, overflow, call_failed,
  shuffle_registered, shuffle_failing, journal_ended, refused, limit, kill, answer,
  totals (each 10 s), stopping, summary (the last, except after a second Ctrl-C),
  left_out (so many \"lines\" were, as they weren't read in time).
Those about executors have \"executor\", \"agent_id\", \"host\", \"state\", \"cores\",
\"memory_mib\", \"gpus\", \"port\" and \"message\"; \"placed\" has \"replaces\" too, and
\"ended\" has \"ran_ms\". \"excluded\" has \"failures\", \"why\", \"until\" and \"for_ms\" (null:
for ever). \"limit\" has \"from\" and \"to\" (null: none) and \"why\"; \"kill\" has
\"executors\" and \"why\"; \"answer\", to a command from standard input, has \"ok\" and
\"answer\". \"waiting\" comes when executors are wanted and none was placed for 5 s,
and again when that has changed; it has \"wanted\" (null: as many as fit), \"offers\",
\"last_offers_ms\", \"suppressed\", \"agents_excluded\", \"first_exclusion_ends_ms\" (null:
never) and \"nearest_misses\", each with \"reason\", \"offers\" (all that were declined
for it), \"agent_id\", \"host\", \"why\", \"asked\", \"offered\" and \"declined_ms\".
\"shuffle_registered\" and \"shuffle_failing\", each told once until the other comes, have
\"host\" and \"port\" of the service; the one \"again\", the other \"refused\" and \"why\".
\"summary\" has \"ending\", \"exit_code\", \"ran_ms\", \"executors\", \"agents\", \"offers\"
(with \"declined\" by reason), \"nearest_misses\", \"shuffle_services\" (how many stand how;
null: there are none), and \"waiting\" as it was when the run was stopped,
or null.";

/// Runs a command as executors on a cluster: accepts resource offers, places executors within
/// limits and constraints, replaces those that fail, leaves out agents on which they keep failing,
/// and ends cleanly.
#[derive(Debug, Parser)]
#[command(name = "offermill", version, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n{}", exit::HELP))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Run a command as executors
    Run(Box<RunArguments>),
    /// Say a command to a run that has --control
    Ctl(CtlArguments),
    /// Try the kernel on a simulated cluster, with faults and in virtual time
    Simulate(Box<SimulateArguments>),
    /// Play what a scheduler was told, and see what would be decided
    Replay(ReplayArguments),
    /// Read constraints without a cluster
    Constraints {
        #[command(subcommand)]
        action: ConstraintsAction,
    },
    /// Print a shell's completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What to do with a constraint.
#[derive(Debug, Subcommand)]
pub(crate) enum ConstraintsAction {
    /// Say whether a constraint can be read, and whether an agent would meet it, condition by
    /// condition
    Check(CheckArguments),
}

const CTL_EXAMPLES: &str = "\
Examples:
    offermill ctl /run/etl.sock status
    offermill ctl /run/etl.sock limit 20
    offermill ctl /run/etl.sock kill 17 18

Exit codes:
    0  the command was done, its answer is on standard output
    1  it was refused, for what reason is on standard error
    2  it is no line
    4  no run answers at the socket
    5  standard output can't be written (a closed pipe is fine)";

const CHECK_EXAMPLES: &str = "\
Spark's syntax: NAME:VALUE[,VALUE...][;...], each of which must hold; see
spark.mesos.constraints. Expressions begin with expr::, such as
    expr:: zone in {east, west} and (tier >= 3 or not rack like r1*)
with =, !=, <, <=, >, >=, in {a, b}, in [1-9], like (* and ?), matches (a regular
expression), and, or, not, parentheses, and @hostname, @region, @zone.

Examples:
    offermill constraints check 'zone:east,west;rack:'
    offermill constraints check 'zone:east;tier:2' --attributes 'zone:east;rack:r1;tier:3'
    offermill constraints check 'expr:: @hostname like db-* or ports in [8000-8080]' \\
        --hostname web-3 --attributes 'ports:[8000-9000]'

Exit codes:
    0  the constraint can be read; with an agent, the agent meets it
    1  the agent doesn't meet it
    2  the constraint or the attributes can't be read
    5  standard output can't be written (a closed pipe is fine)";

/// The flags of `offermill constraints check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    /// The constraint
    #[arg(value_name = "CONSTRAINT", allow_hyphen_values = true)]
    pub(crate) constraint: String,

    /// The agent's attributes, such as 'zone:east;rack:r1;tier:3;ports:[1-9];disk:{ssd,nvme}';
    /// names may repeat
    #[arg(long, value_name = "LINE")]
    pub(crate) attributes: Option<String>,

    /// The agent's host name
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,

    /// The region of the agent's fault domain
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    /// The zone of the agent's fault domain
    #[arg(long, value_name = "NAME")]
    pub(crate) zone: Option<String>,
}

/// The arguments of `offermill ctl`.
#[derive(Debug, Args)]
#[command(after_help = format!("Commands:\n{HELP}\n\n{CTL_EXAMPLES}"))]
pub(crate) struct CtlArguments {
    /// The socket that the run was given with --control
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,

    /// The command and what belongs to it
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

/// The flags of `offermill run`.
#[derive(Debug, Default, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
#[command(after_help = format!("{RUN_NOTES}\n\n{EXAMPLES}\n{}", exit::HELP))]
#[command(after_long_help = format!(
    "{RUN_NOTES}\n\n{}\n{JSON_NOTES}\n\n{EXAMPLES}\n{}", option::help(), exit::HELP
))]
pub(crate) struct RunArguments {
    /// The cluster: local[*] (this machine as one agent), local[CORES],
    /// local-cluster[AGENTS,CORES,MEM_MB]; or a Mesos cluster by its masters,
    /// mesos://HOST[:PORT][,HOST[:PORT]...], with https:// in place of mesos:// over TLS
    /// [default: local[*]]
    #[arg(long, value_name = "MASTER", help_heading = "Cluster")]
    pub(crate) master: Option<String>,

    /// Attributes of the local agents, such as 'zone:east|zone:west;rack:r%d': | between values
    /// that agents take in turns, %d for an agent's number
    #[arg(long, value_name = "LINE", help_heading = "Cluster")]
    pub(crate) agent_attributes: Option<String>,

    /// Where the folder "sandboxes" is made, with one for each executor [default: .]
    #[arg(long, value_name = "FOLDER", help_heading = "Cluster")]
    pub(crate) work_dir: Option<String>,

    /// The role that resources are offered to; or several with commas between [default: *]
    #[arg(long, value_name = "ROLE", help_heading = "Mesos")]
    pub(crate) role: Option<String>,

    /// Who this framework is [default: $SPARK_MESOS_PRINCIPAL]
    #[arg(long, value_name = "NAME", help_heading = "Mesos")]
    pub(crate) principal: Option<String>,

    /// A file with the principal's secret [default: $SPARK_MESOS_SECRET_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Mesos")]
    pub(crate) secret_file: Option<String>,

    /// Send the secret unencrypted too, where the master has no TLS
    #[arg(long, value_name = "true|false", help_heading = "Mesos")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) allow_plain_secret: Option<String>,

    /// How long the master keeps the executors when this program is gone [default: 0s]
    #[arg(long, value_name = "DURATION", help_heading = "Mesos")]
    pub(crate) failover_timeout: Option<String>,

    /// A file in which the framework's id is kept: the next run with it is the same framework, and
    /// goes on with the executors that the last one left behind
    #[arg(long, value_name = "FILE", help_heading = "Mesos")]
    pub(crate) framework_id_file: Option<String>,

    /// The Docker image that executors run in, by Docker on their agents; with
    /// --conf spark.mesos.containerizer=mesos, by the agents themselves
    #[arg(long, value_name = "IMAGE", help_heading = "Mesos")]
    pub(crate) container_image: Option<String>,

    /// Whether executors outlive a restart of their agent [default: true]
    #[arg(long, value_name = "true|false", help_heading = "Mesos")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) checkpoint: Option<String>,

    /// The application's name, with which executor ids begin [default: the command's]
    #[arg(long, value_name = "NAME", help_heading = "Executors")]
    pub(crate) name: Option<String>,

    /// How many executors there are at most
    #[arg(long, value_name = "N", help_heading = "Executors")]
    pub(crate) num_executors: Option<String>,

    /// How many cores all executors have at most
    #[arg(long, value_name = "CORES", help_heading = "Executors")]
    pub(crate) total_executor_cores: Option<String>,

    /// The cores of an executor [default: all that its agent offers]
    #[arg(long, value_name = "CORES", help_heading = "Executors")]
    pub(crate) executor_cores: Option<String>,

    /// The memory of an executor, without overhead [default: 1g]
    #[arg(long, value_name = "MEMORY", help_heading = "Executors")]
    pub(crate) executor_memory: Option<String>,

    /// The memory that an executor takes in addition [default: a tenth of its memory, at least
    /// 384m]
    #[arg(long, value_name = "MEMORY", help_heading = "Executors")]
    pub(crate) memory_overhead: Option<String>,

    /// A variable for executors' environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Executors")]
    pub(crate) env: Vec<String>,

    /// Start executors of Spark that register with this driver, in place of a command. Spark is
    /// found by spark.mesos.executor.home, $SPARK_HOME or (on Mesos) spark.executor.uri
    #[arg(long, value_name = "URL", help_heading = "Spark")]
    pub(crate) spark_driver: Option<String>,

    /// The driver's id of its application [default: the framework's id]
    #[arg(long, value_name = "ID", help_heading = "Spark")]
    pub(crate) spark_app_id: Option<String>,

    /// The name or address that executors listen at [default: their agent's name; 127.0.0.1 or this
    /// machine's name on local agents]
    #[arg(long, value_name = "NAME", help_heading = "Spark")]
    pub(crate) spark_hostname: Option<String>,

    /// What an agent's attributes must say, such as 'zone:east,west;rack:' or 'expr:: zone = east
    /// and tier >= 3'; see constraints check --help
    #[arg(long, value_name = "CONSTRAINT", help_heading = "Placement")]
    pub(crate) constraints: Option<String>,

    /// round-robin spreads executors over agents, consolidate fills one agent before the next
    /// [default: round-robin]
    #[arg(long, value_name = "HOW", help_heading = "Placement")]
    pub(crate) placement: Option<String>,

    /// Leave an agent out after so many failures on it; or "never" [default: 2]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    pub(crate) exclude_after: Option<String>,

    /// For so long; or "forever" [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Failures")]
    pub(crate) exclude_for: Option<String>,

    /// Failures count if they are within so long of each other [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Failures")]
    pub(crate) exclude_window: Option<String>,

    /// End the run when so many executors have failed [default: twice the executors, at least 3]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    pub(crate) max_executor_failures: Option<String>,

    /// End when as many executors have finished (with exit code 0) as there are to be; without it,
    /// those that finish are replaced
    #[arg(long, help_heading = "The end")]
    pub(crate) until_finished: bool,

    /// How long executors may take to end when the run is stopped [default: 10s]
    #[arg(long, value_name = "DURATION", help_heading = "The end")]
    pub(crate) shutdown_timeout: Option<String>,

    /// A setting by its key; may be repeated. See --help for the keys
    #[arg(long, short = 'c', value_name = "KEY=VALUE", help_heading = "Settings")]
    pub(crate) conf: Vec<String>,

    /// A file of settings like spark-defaults.conf
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    pub(crate) properties_file: Option<String>,

    /// Print each setting with its value and where that comes from, and start nothing
    #[arg(long, help_heading = "Settings")]
    pub(crate) print_config: bool,
    /// Take commands while the run goes on, at a socket that is made there, or (-) from standard
    /// input; may be repeated. See ctl --help for the commands
    #[arg(long, value_name = "SOCKET", help_heading = "Control")]
    pub(crate) control: Vec<String>,
    /// Record in this new file what the run is told, and in FILE.answers what it decides; offermill
    /// replay FILE --expect FILE.answers does it again
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) journal: Option<String>,

    /// Print one JSON object a line
    #[arg(long, help_heading = "Output", conflicts_with = "plain")]
    pub(crate) json: bool,

    /// Print one line an event on a terminal too, instead of a live table
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,

    /// The command of the executors and its arguments, after "--"; none with --spark-driver
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl RunArguments {
    /// The value of a flag that sets what a key sets too; `None` if it wasn't given.
    pub(crate) fn value_of(&self, flag: &str) -> Option<&str> {
        let value = match flag {
            "--master" => &self.master,
            "--agent-attributes" => &self.agent_attributes,
            "--work-dir" => &self.work_dir,
            "--role" => &self.role,
            "--principal" => &self.principal,
            "--secret-file" => &self.secret_file,
            "--allow-plain-secret" => &self.allow_plain_secret,
            "--failover-timeout" => &self.failover_timeout,
            "--framework-id-file" => &self.framework_id_file,
            "--container-image" => &self.container_image,
            "--checkpoint" => &self.checkpoint,
            "--name" => &self.name,
            "--num-executors" => &self.num_executors,
            "--total-executor-cores" => &self.total_executor_cores,
            "--executor-cores" => &self.executor_cores,
            "--executor-memory" => &self.executor_memory,
            "--memory-overhead" => &self.memory_overhead,
            "--spark-driver" => &self.spark_driver,
            "--spark-app-id" => &self.spark_app_id,
            "--spark-hostname" => &self.spark_hostname,
            "--constraints" => &self.constraints,
            "--placement" => &self.placement,
            "--exclude-after" => &self.exclude_after,
            "--exclude-for" => &self.exclude_for,
            "--exclude-window" => &self.exclude_window,
            "--max-executor-failures" => &self.max_executor_failures,
            "--shutdown-timeout" => &self.shutdown_timeout,
            _ => &None,
        };
        value.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Goal: no flag contradicts another, and each key's flag exists. Method: clap's own check,
    /// then the table.
    #[test]
    fn flags_are_consistent() {
        let mut command = Arguments::command();
        command.build();
        command.clone().debug_assert();
        let run = command.find_subcommand("run").unwrap();
        for flag in option::all().filter_map(|key| key.flag) {
            let long = flag.strip_prefix("--").unwrap();
            assert!(run.get_arguments().any(|known| known.get_long() == Some(long)), "{flag}");
        }
    }
}
