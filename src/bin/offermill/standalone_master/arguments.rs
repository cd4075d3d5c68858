//! The arguments of `offermill master`.

use std::path::PathBuf;

use clap::Args;

use crate::control::command::MASTER_COMMANDS;
use crate::output::log::LogLevel;

const NOTES: &str = "\
Frameworks subscribe at offermill://HOST:PORT (the same as mesos://: the master speaks Mesos' v1
scheduler API). Workers register at http://HOST:PORT, or https:// with --certificate-file. GET
/state has workers and frameworks as JSON, GET /metrics figures for Prometheus, GET /health
answers \"ok\".

Beyond loopback the master listens only with TLS (--certificate-file, --key-file), principals
(--principals-file) and worker tokens (--worker-tokens-file) or certificates (--worker-ca-file),
unless --insecure is given: all who reach a master can run commands on its workers. On loopback,
without principals only frameworks of the master's user and of root are answered, and without
tokens only such workers (on Linux; elsewhere all).

A second master with the same folder is refused while the first lives, or stands by with --standby:
it sends workers and frameworks to the first, and takes over when that has ended. They are given
both: --master offermill://HOST:PORT,HOST:PORT. After a restart, workers and frameworks that the
journal names have --recovery-timeout to come back before others get offers.

Examples:
  offermill master --state-dir /var/lib/offermill
  offermill worker --master http://127.0.0.1:5050 --work-dir /var/lib/offermill-worker
  offermill run --master offermill://127.0.0.1:5050 --executor-cores 1 -- sh -c 'sleep 60'

Exit codes:
    0  a signal ended the master; executors go on
    2  a flag is invalid, a file or the folder can't be used, or the port is in use; nothing was
       started
    5  standard output can't be written (a closed pipe is fine)
    7  the journal can't be written any more, or internal error";

/// The arguments of `offermill master`.
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\nCommands of offermill ctl, with --control:\n{MASTER_COMMANDS}"))]
#[command(args_override_self = true)]
pub(crate) struct MasterArguments {
    /// Where to listen: IP:PORT, or a port of 127.0.0.1. Port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5050")]
    pub(super) listen: String,

    /// The folder of the journal, made if it isn't there
    #[arg(long, value_name = "FOLDER")]
    pub(super) state_dir: PathBuf,

    /// If another master uses the folder, wait for its end, and then take its place
    #[arg(long)]
    pub(super) standby: bool,

    /// Where workers and frameworks reach this master, as they are given it: a standby sends them
    /// there [default: the address of --listen, with the machine's name if it is all addresses]
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) advertise: Option<String>,

    /// The most cores of a framework, with offers [default: no limit]
    #[arg(long, value_name = "CORES")]
    pub(super) max_cores: Option<String>,

    /// The silence after which a worker is unreachable, 1s to 1h. A quarter of it is the interval
    /// of heartbeats
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(super) worker_timeout: String,

    /// How long workers and frameworks of the journal are waited for after a start, at most 1h
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub(super) recovery_timeout: String,

    /// Only these principals may register frameworks: lines with a principal, a blank and its
    /// secret [default: programs of this user and of root may]
    #[arg(long, value_name = "FILE")]
    pub(super) principals_file: Option<PathBuf>,

    /// Only workers with one of these tokens may register: lines with a token, or with a name, a
    /// blank and a token [default: programs of this user and of root may]
    #[arg(long, value_name = "FILE")]
    pub(super) worker_tokens_file: Option<PathBuf>,

    /// Accept commands of `offermill ctl SOCKET` at a socket with this path: status, drain,
    /// decommission; only this user can connect
    #[arg(long, value_name = "SOCKET")]
    pub(super) control: Option<PathBuf>,

    /// A PEM file with the master's certificate: it speaks TLS then, and nothing else
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub(super) certificate_file: Option<PathBuf>,

    /// A PEM file with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "certificate_file")]
    pub(super) key_file: Option<PathBuf>,

    /// Workers must show a certificate of an authority in this PEM file
    #[arg(long, value_name = "FILE", requires = "certificate_file")]
    pub(super) worker_ca_file: Option<PathBuf>,

    /// Names of the master besides addresses and localhost, separated by commas. Without TLS,
    /// requests for other names aren't answered
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) hosts: Vec<String>,

    /// How much is logged to standard error [default: RUST_LOG, or info]
    #[arg(long, value_name = "LEVEL")]
    pub(super) log_level: Option<LogLevel>,

    /// Listen beyond loopback without TLS or without credentials: others on the network may read
    /// and change what is sent, and run commands. On loopback, answer other users of this machine
    /// without credentials, who may then run commands
    #[arg(long)]
    pub(super) insecure: bool,
}
