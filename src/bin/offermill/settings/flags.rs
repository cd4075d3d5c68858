//! The flags of `offermill run`. Their values stay texts, because flags and `spark.*` keys are read by the same code.

use clap::Args;

/// The flags of `offermill run`.
#[derive(Debug, Default, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct RunArguments {
    /// The cluster: local[*] (this machine as one agent), local[CORES],
    /// local-cluster[AGENTS,CORES,MEM_MB]; or a Mesos cluster by its masters,
    /// mesos://HOST[:PORT][,HOST[:PORT]...], with https:// in place of mesos:// over TLS; or a
    /// standalone cluster by its masters, offermill://HOST[:PORT][,...], over TLS with --ca-file; or
    /// a Kubernetes cluster by its API server, k8s://https://HOST:PORT, or k8s:// for that of kubectl
    /// [default: local[*]]
    #[arg(long, value_name = "MASTER", help_heading = "Cluster")]
    pub(crate) master: Option<String>,

    /// Attributes of the local agents, such as 'zone:east|zone:west;rack:r%d': | separates values
    /// that agents get in turn, %d is an agent's number
    #[arg(long, value_name = "LINE", help_heading = "Cluster")]
    pub(crate) agent_attributes: Option<String>,

    /// The folder in which "sandboxes" is created, with a sandbox per executor [default: .]
    #[arg(long, value_name = "FOLDER", help_heading = "Cluster")]
    pub(crate) work_dir: Option<String>,

    /// Give executors only the variables of --env and their own, not those of this program
    #[arg(long, value_name = "true|false", help_heading = "Cluster")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) clean_env: Option<String>,

    /// The role to which resources are offered; or several, separated by commas [default: *]
    #[arg(long, value_name = "ROLE", help_heading = "Mesos")]
    pub(crate) role: Option<String>,

    /// The framework's principal [default: $SPARK_MESOS_PRINCIPAL]
    #[arg(long, value_name = "NAME", help_heading = "Mesos")]
    pub(crate) principal: Option<String>,

    /// A file with the principal's secret [default: $SPARK_MESOS_SECRET_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Mesos")]
    pub(crate) secret_file: Option<String>,

    /// A PEM file of certificate authorities that are trusted beside the system's [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Mesos")]
    pub(crate) ca_file: Option<String>,

    /// Send the secret even if the master has no TLS, unencrypted
    #[arg(long, value_name = "true|false", help_heading = "Mesos")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) allow_plain_secret: Option<String>,

    /// How long the master keeps the executors after this program is gone [default: 0s]
    #[arg(long, value_name = "DURATION", help_heading = "Mesos")]
    pub(crate) failover_timeout: Option<String>,

    /// A file that stores the framework's id: the next run with this file continues the same
    /// framework, with the executors that this run leaves behind
    #[arg(long, value_name = "FILE", help_heading = "Mesos")]
    pub(crate) framework_id_file: Option<String>,

    /// The namespace of the run's pods [default: that of kubectl's context]
    #[arg(long, value_name = "NAME", help_heading = "Kubernetes")]
    pub(crate) namespace: Option<String>,

    /// Files of this machine that executors find in /opt/offermill/files of their containers, which
    /// $OFFERMILL_FILES names
    #[arg(long, value_name = "FILE[,...]", help_heading = "Kubernetes")]
    pub(crate) files: Option<String>,

    /// The image of executors' containers: of their pods, or of Docker on Mesos agents, or with
    /// --conf spark.mesos.containerizer=mesos of the agents themselves
    #[arg(long, value_name = "IMAGE", help_heading = "Executors")]
    pub(crate) container_image: Option<String>,

    /// Whether executors survive a restart of their agent [default: true]
    #[arg(long, value_name = "true|false", help_heading = "Mesos")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) checkpoint: Option<String>,

    /// The application's name, with which executors' ids begin [default: the command's]. On
    /// Kubernetes, a run takes over what a former one of the same name has left
    #[arg(long, value_name = "NAME", help_heading = "Executors")]
    pub(crate) name: Option<String>,

    /// The maximum number of executors; 0 only if a command (--control) or the load may raise it
    #[arg(long, value_name = "N", help_heading = "Executors")]
    pub(crate) num_executors: Option<String>,

    /// The maximum number of cores of all executors together
    #[arg(long, value_name = "CORES", help_heading = "Executors")]
    pub(crate) total_executor_cores: Option<String>,

    /// The cores of an executor [default: all that its agent offers]
    #[arg(long, value_name = "CORES", help_heading = "Executors")]
    pub(crate) executor_cores: Option<String>,

    /// The memory of an executor, without overhead [default: 1g]
    #[arg(long, value_name = "MEMORY", help_heading = "Executors")]
    pub(crate) executor_memory: Option<String>,

    /// Additional memory of an executor [default: a tenth of its memory, at least 384m]
    #[arg(long, value_name = "MEMORY", help_heading = "Executors")]
    pub(crate) memory_overhead: Option<String>,

    /// An environment variable of executors; may be repeated. Without a value it is taken from this
    /// program's environment, where other users can't read it: they can read command lines
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Executors")]
    pub(crate) env: Vec<String>,

    /// A file of environment variables of executors, as with --env, each on a line; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Executors")]
    pub(crate) env_file: Vec<String>,

    /// Start executors of Spark, which register with this driver, instead of a command. Spark is
    /// found by spark.mesos.executor.home, $SPARK_HOME or (on Mesos) spark.executor.uri; on
    /// Kubernetes it is in the image
    #[arg(long, value_name = "URL", help_heading = "Spark")]
    pub(crate) spark_driver: Option<String>,

    /// The application id of the driver [default: the framework's id]
    #[arg(long, value_name = "ID", help_heading = "Spark")]
    pub(crate) spark_app_id: Option<String>,

    /// The name or address at which executors listen [default: their agent's name; on local agents
    /// 127.0.0.1 or this machine's name]
    #[arg(long, value_name = "NAME", help_heading = "Spark")]
    pub(crate) spark_hostname: Option<String>,

    /// The condition that an agent's attributes must meet, such as 'zone:east,west;rack:' or 'expr:: zone = east
    /// and tier >= 3'; see constraints check --help
    #[arg(long, value_name = "CONSTRAINT", help_heading = "Placement")]
    pub(crate) constraints: Option<String>,

    /// round-robin spreads executors over agents, consolidate fills one agent before the next
    /// [default: round-robin]
    #[arg(long, value_name = "HOW", help_heading = "Placement")]
    pub(crate) placement: Option<String>,

    /// Exclude an agent after this number of failures on it; or "never" [default: 2]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    pub(crate) exclude_after: Option<String>,

    /// How long an agent stays excluded; or "forever" [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Failures")]
    pub(crate) exclude_for: Option<String>,

    /// The time within which failures must occur to count together [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Failures")]
    pub(crate) exclude_window: Option<String>,

    /// End the run after this number of failed executors [default: twice the executors that may run
    /// at a time, at least 3; 3 if their number has no limit; with --tasks no number]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    pub(crate) max_executor_failures: Option<String>,

    /// Run the tasks of this file, or of standard input (-), in place of a command: each line is a
    /// shell command, or a JSON object with "command" and perhaps "id", "cores", "memory", "gpus",
    /// "retries", "after", "queue", "env". The run ends when all have ended. See docs/tasks.md
    #[arg(long, value_name = "FILE", help_heading = "Tasks")]
    #[arg(conflicts_with_all = ["until_finished", "journal", "steered", "spark_driver", "command"])]
    pub(crate) tasks: Option<String>,

    /// The cores of a task that doesn't say them [default: 1]
    #[arg(long, value_name = "CORES", help_heading = "Tasks")]
    pub(crate) task_cores: Option<String>,

    /// The memory of a task that doesn't say it [default: 512m]
    #[arg(long, value_name = "MEMORY", help_heading = "Tasks")]
    pub(crate) task_memory: Option<String>,

    /// How many times a task that doesn't say it is started again after it has failed [default: 0]
    #[arg(long, value_name = "N", help_heading = "Tasks")]
    pub(crate) task_retries: Option<String>,

    /// The queues of tasks and their bounds, such as 'etl:max-cores=16,max-mem=32g,guaranteed-cores=4;
    /// adhoc:guaranteed-mem=8g'. A task says its queue as "queue"; guarantees are of
    /// --total-executor-cores and --total-task-memory. Without --tasks, all executors are in one
    /// queue, whose maxima can be changed by --control while they run
    #[arg(long, value_name = "QUEUES", help_heading = "Tasks")]
    pub(crate) queues: Option<String>,

    /// The queue of --queues that executors are in, without --tasks; needed if there are others than default
    #[arg(long, value_name = "NAME", help_heading = "Tasks")]
    pub(crate) executor_queue: Option<String>,

    /// The most memory that the tasks of all --queues take together
    #[arg(long, value_name = "SIZE", help_heading = "Tasks")]
    pub(crate) total_task_memory: Option<String>,

    /// Run tasks in hosts: one long-lived process on each agent, in which tasks start faster than as
    /// executors of their own. On local agents, Mesos and a standalone master
    #[arg(long, help_heading = "Tasks")]
    pub(crate) task_hosts: bool,

    /// The cores that a host takes, beside its tasks [default: 0.1]
    #[arg(long, value_name = "CORES", help_heading = "Tasks")]
    pub(crate) host_cores: Option<String>,

    /// The memory that a host takes, beside its tasks [default: 32m]
    #[arg(long, value_name = "MEMORY", help_heading = "Tasks")]
    pub(crate) host_memory: Option<String>,

    /// The queue of --queues that hosts are in [default: default]
    #[arg(long, value_name = "NAME", help_heading = "Tasks")]
    pub(crate) host_queue: Option<String>,

    /// How long a host without tasks is kept [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Tasks")]
    pub(crate) host_idle_timeout: Option<String>,

    /// On Mesos and a standalone master, the program of hosts: the path of offermill on the agents,
    /// or, on Mesos, a URI (file://, http://, ...) from which it is fetched [default: the path of
    /// this program]
    #[arg(long, value_name = "PATH", help_heading = "Tasks")]
    pub(crate) host_program: Option<String>,

    /// Fail a task that fits on no agent that has made an offer, once that has been so for this long;
    /// without it, it waits, since others may have what it lacks
    #[arg(long, value_name = "DURATION", help_heading = "Tasks")]
    pub(crate) placement_timeout: Option<String>,

    /// The file that says what becomes of each task, as JSON lines [default: the tasks' file with
    /// .results behind its name]
    #[arg(long, value_name = "FILE", help_heading = "Tasks")]
    pub(crate) results: Option<String>,

    /// Continue the run of the results file: tasks that have succeeded aren't run again
    #[arg(long, help_heading = "Tasks")]
    pub(crate) resume: bool,

    /// End the run after all executors have finished (with exit code 0); without this flag,
    /// finished executors are replaced
    #[arg(long, help_heading = "End")]
    pub(crate) until_finished: bool,

    /// How long executors may take to end after the run was stopped [default: 10s]. On Mesos a
    /// master that doesn't answer may delay the end by twice offermill.mesos.callTimeout more
    #[arg(long, value_name = "DURATION", help_heading = "End")]
    pub(crate) shutdown_timeout: Option<String>,

    /// Set an option by its key; may be repeated. --help lists the keys
    #[arg(long, short = 'c', value_name = "KEY=VALUE", help_heading = "Settings")]
    pub(crate) conf: Vec<String>,

    /// A file of options like spark-defaults.conf; with --steered also standard input (-), up to
    /// the line "# end of settings"
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    pub(crate) properties_file: Option<String>,

    /// Print each setting with its value and its source, and start nothing
    #[arg(long, help_heading = "Settings")]
    pub(crate) print_config: bool,

    /// With --print-config, show the values of environment variables, which are "set" otherwise
    #[arg(long, help_heading = "Settings", requires = "print_config")]
    pub(crate) show_values: bool,

    /// Accept commands during the run at a socket with this path, or (-) from standard input; may
    /// be repeated. See ctl --help for the commands
    #[arg(long, value_name = "SOCKET", help_heading = "Control")]
    pub(crate) control: Vec<String>,

    /// Serve a web page about the run, and /metrics, /state, /history and /health, at this address: IP:PORT,
    /// or a PORT of 127.0.0.1. Beyond loopback with --http-token-file only
    #[arg(long, value_name = "ADDRESS", help_heading = "Control")]
    pub(crate) http: Option<String>,

    /// A file with the token that clients of --http must have; nobody else may read it
    #[arg(long, value_name = "FILE", help_heading = "Control")]
    pub(crate) http_token_file: Option<String>,

    /// Be steered by the program that starts this one, with which the run ends: events as with
    /// --json, commands from standard input, a pipe; in a session of its own. See docs/steering.md
    #[arg(long, help_heading = "Control", conflicts_with = "plain")]
    pub(crate) steered: bool,

    /// Record the run's events in this new file, and its decisions in FILE.answers; offermill
    /// replay FILE --expect FILE.answers replays them
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) journal: Option<String>,

    /// Print one JSON object per line
    #[arg(long, help_heading = "Output", conflicts_with = "plain")]
    pub(crate) json: bool,

    /// Print one line per event instead of a live table, on a terminal too
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,

    /// The command of executors and its arguments, after "--"; none with --spark-driver
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl RunArguments {
    /// Whether commands can steer the run.
    pub(crate) fn takes_commands(&self) -> bool {
        self.steered || !self.control.is_empty()
    }

    /// The value of a flag that also has a key; `None` if it wasn't given.
    pub(crate) fn value_of(&self, flag: &str) -> Option<&str> {
        let value = match flag {
            "--master" => &self.master,
            "--agent-attributes" => &self.agent_attributes,
            "--work-dir" => &self.work_dir,
            "--clean-env" => &self.clean_env,
            "--role" => &self.role,
            "--principal" => &self.principal,
            "--secret-file" => &self.secret_file,
            "--ca-file" => &self.ca_file,
            "--allow-plain-secret" => &self.allow_plain_secret,
            "--failover-timeout" => &self.failover_timeout,
            "--framework-id-file" => &self.framework_id_file,
            "--namespace" => &self.namespace,
            "--files" => &self.files,
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
            "--queues" => &self.queues,
            "--executor-queue" => &self.executor_queue,
            "--exclude-after" => &self.exclude_after,
            "--exclude-for" => &self.exclude_for,
            "--exclude-window" => &self.exclude_window,
            "--max-executor-failures" => &self.max_executor_failures,
            "--shutdown-timeout" => &self.shutdown_timeout,
            "--http" => &self.http,
            "--http-token-file" => &self.http_token_file,
            _ => &None,
        };
        value.as_deref()
    }
}
