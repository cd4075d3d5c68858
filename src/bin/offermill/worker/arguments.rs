//! The arguments of `offermill worker`.

use std::path::PathBuf;

use clap::Args;

use crate::output::log::LogLevel;

const NOTES: &str = "\
The worker registers with the master that leads, and starts the executors that the master
launches, as this user. It listens nowhere. If the connection breaks, executors go on, and
the worker registers again; if the worker is killed, they end with it. Executors work in
WORK_DIR/sandboxes, where their output stays; `offermill logs` prints it. The worker's id is
in WORK_DIR/worker.json: each worker needs a folder of its own.

Without --cores, SPARK_WORKER_CORES counts, and without that the number of processors.
Without --memory, SPARK_WORKER_MEMORY counts, and without that the machine's memory less
1 GiB, at least 512 MiB.

Ctrl-C (SIGTERM, SIGHUP) asks all executors to end, waits for them, tells the master, and
ends the worker. So does the master when it drains the worker.

Example:
    offermill worker --master https://m1:5050,m2:5050 --token-file worker.token \\
        --ca-file masters.pem --work-dir /var/lib/offermill-worker --attributes 'zone:east;rack:7'

Exit codes:
    0  the worker was stopped or drained, and all executors ended within their grace period
    2  a flag or variable is invalid, or another worker uses the folder; nothing was started
    3  the worker was stopped or drained, and executors had to be killed after their grace
       period
    4  the master refused the token, or wants a certificate that the worker lacks
    7  internal error: please report it
  130  a second Ctrl-C ended the worker at once; executors were killed";

/// The arguments of `offermill worker`.
#[derive(Debug, Args)]
#[command(after_help = NOTES, args_override_self = true)]
pub(crate) struct WorkerArguments {
    /// The masters: https://HOST[:PORT], http://HOST[:PORT], or offermill://HOST[:PORT], which is
    /// https:// with --ca-file or --client-certificate-file; several with commas between
    #[arg(long, value_name = "URL")]
    pub(crate) master: String,

    /// A file with the token that the masters know this worker by [default: no token]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,

    /// Send the token unencrypted, to masters at http:// on other machines
    #[arg(long)]
    pub(crate) insecure: bool,

    /// A PEM file of certificate authorities that are trusted beside the system's [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Trust only the authorities of --ca-file
    #[arg(long)]
    pub(crate) ca_file_only: bool,

    /// A PEM file with the certificate for masters that ask for one [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_certificate_file: Option<PathBuf>,

    /// A PEM file with the key of the certificate [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key_file: Option<PathBuf>,

    /// The folder of sandboxes and of the worker's id
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) work_dir: PathBuf,

    /// The cores of all executors together [default: $SPARK_WORKER_CORES, else the processors]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cores: Option<String>,

    /// The memory of all executors together, such as 16g [default: $SPARK_WORKER_MEMORY, else the
    /// machine's less 1 GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Attributes in offers, such as 'zone:east;rack:7' [default: none]
    #[arg(long, value_name = "NAME:VALUE[;...]")]
    pub(crate) attributes: Option<String>,

    /// The host name in offers [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,

    /// What must not be registered twice at a time [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub(crate) address: Option<String>,

    /// Run executors of frameworks that ask for another user as the worker's user, too. Without
    /// this flag they fail
    #[arg(long)]
    pub(crate) any_user: bool,

    /// How long executors may take to end when the worker is stopped
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) grace: String,

    /// How much is logged to standard error [default: RUST_LOG, or info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
}
