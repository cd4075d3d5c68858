//! `offermill master`: the master of a standalone cluster.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::Args;
use offermill::cluster::standalone::server::{
    MasterCredentials, MasterJournal, address_problem, serve_master,
};
use offermill::resources::Scalar;
use tokio::sync::oneshot;

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_result, remark};
use crate::settings::values::http::parse_address;
use crate::signals;
use crate::text::styled::StyledText;

/// The help of `offermill master` about what isn't said elsewhere.
pub(crate) const NOTES: &str = "\
Frameworks subscribe at offermill://IP:PORT (the same as mesos://: the master speaks Mesos' v1
scheduler API). Workers register at http://IP:PORT. GET /state has counts as JSON.

The master listens on loopback only: this version has no TLS. A second master with the same
folder is refused while the first lives. After a restart, workers and frameworks that the
journal names have 15 s to come back before others get offers.

Examples:
  offermill master --state-dir /var/lib/offermill
  offermill worker --master http://127.0.0.1:5050 --work-dir /var/lib/offermill-worker
  offermill run --master offermill://127.0.0.1:5050 --executor-cores 1 -- sh -c 'sleep 60'";

/// The arguments of `offermill master`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct MasterArguments {
    /// Where to listen: IP:PORT, or a port of 127.0.0.1. Port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5050")]
    listen: String,

    /// The folder of the journal, made if it isn't there
    #[arg(long, value_name = "FOLDER")]
    state_dir: PathBuf,

    /// The most cores of a framework, with offers [default: no limit]
    #[arg(long, value_name = "CORES")]
    max_cores: Option<String>,

    /// Only these principals may register frameworks: lines with a principal, a blank and its
    /// secret [default: all programs of this machine may]
    #[arg(long, value_name = "FILE")]
    principals_file: Option<PathBuf>,

    /// Only workers with one of these tokens may register: a token a line [default: all programs
    /// of this machine may]
    #[arg(long, value_name = "FILE")]
    worker_tokens_file: Option<PathBuf>,
}

/// What the arguments say.
struct MasterPlan {
    address: SocketAddr,
    max_cores: Option<Scalar>,
    credentials: MasterCredentials,
}

/// `offermill master`.
pub(crate) fn run_master(arguments: &MasterArguments) -> ExitStatus {
    let plan = match read(arguments) {
        Ok(plan) => plan,
        Err(problems) => return refuse(&problems),
    };
    let listener = match listen(plan.address) {
        Ok(listener) => listener,
        Err(problem) => return refuse(&[problem]),
    };
    let journal = match MasterJournal::open(&arguments.state_dir) {
        Ok(journal) => journal,
        Err(error) => return refuse(&[error.to_string()]),
    };
    let (stop, stopped) = oneshot::channel::<Infallible>();
    let mut stop = Some(stop);
    let listening = signals::listen(move |_| drop(stop.take()));
    if let Err(error) = listening {
        remark(&format!("signals can't be handled: {error}"));
        return ExitStatus::Internal;
    }
    let address = listener.local_addr().unwrap_or(plan.address);
    let sentence = format!(
        "the master of cluster {}, term {}, listens at {address}\n",
        journal.cluster(),
        journal.term()
    );
    if print_result(&StyledText::lines(&sentence)) == PrintOutcome::Failed {
        return ExitStatus::OutputClosed;
    }
    match serve_master(listener, journal, plan.max_cores, plan.credentials, stopped) {
        Ok(()) => ExitStatus::Done,
        Err(why) => {
            remark(&why);
            ExitStatus::Internal
        }
    }
}

fn refuse(problems: &[String]) -> ExitStatus {
    problems.iter().for_each(|problem| remark(problem));
    ExitStatus::BadInput
}

/// Reads the arguments.
///
/// # Errors
/// With a sentence for each that is wrong.
fn read(arguments: &MasterArguments) -> Result<MasterPlan, Vec<String>> {
    let mut problems = Vec::new();
    let listen = &arguments.listen;
    let address = parse_address(listen.trim());
    match address {
        None => {
            let allowed = "IP:PORT, or a port, such as 127.0.0.1:5050";
            problems.push(format!("--listen is {listen:?}, but must be {allowed}"));
        }
        Some(address) => problems.extend(
            address_problem(address).map(|why| format!("--listen is {listen:?}, but {why}")),
        ),
    }
    let cores = |text: &String| {
        let cores = text.trim().parse::<f64>().ok().and_then(|it| Scalar::from_f64(it).ok());
        if cores.is_none_or(|cores| cores == Scalar::ZERO) {
            let allowed = "a number above 0";
            problems.push(format!("--max-cores is {text:?}, but must be {allowed}"));
        }
        cores
    };
    let max_cores = arguments.max_cores.as_ref().and_then(cores);
    let mut credentials = MasterCredentials::default();
    if let Some(path) = &arguments.principals_file {
        match credentials.clone().with_principals(path) {
            Ok(read) => credentials = read,
            Err(why) => problems.push(format!("--principals-file {}: {why}", path.display())),
        }
    }
    if let Some(path) = &arguments.worker_tokens_file {
        match credentials.clone().with_worker_tokens(path) {
            Ok(read) => credentials = read,
            Err(why) => problems.push(format!("--worker-tokens-file {}: {why}", path.display())),
        }
    }
    match address {
        Some(address) if problems.is_empty() => Ok(MasterPlan { address, max_cores, credentials }),
        _ => Err(problems),
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there".to_owned(),
            _ => format!("this program can't listen there: {error}"),
        };
        format!("--listen is {address}, but {why}")
    })
}
