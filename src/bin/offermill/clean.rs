//! `offermill clean`: deletes what a run on Kubernetes has left that was killed.

use clap::Args;
use offermill::cluster::kubernetes::{CleanError, RunCleaner, RunLease, run_name};

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_result, remark};
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::master::ClusterMaster;
use crate::settings::{secrets, table};
use crate::target::kubernetes::connection;
use crate::text::format::count;
use crate::text::styled::StyledText;

/// The most pods that are named.
const NAMED_MAX: usize = 20;

const EXIT_CODES: &str = "\
Exit codes:
    0  what the run has left is deleted, or nothing is left; with --dry-run, it was said
    1  the run is alive; nothing was deleted
    2  a flag or setting is invalid; nothing was deleted
    4  the cluster is not available, or refused this user, or something could not be deleted
    5  standard output can't be written (a closed pipe is fine)
    7  internal error: please report it";

/// The arguments of `offermill clean`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_override_self = true)]
pub(crate) struct CleanArguments {
    /// The cluster: k8s://https://HOST:PORT, or k8s:// for that of kubectl
    #[arg(long, value_name = "MASTER")]
    master: Option<String>,

    /// The namespace of the run's pods [default: that of kubectl's context]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Delete at once, even if the run may be alive, which then ends
    #[arg(long)]
    force: bool,

    /// Say what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,

    /// Set an option by its key; may be repeated. run --help lists the keys
    #[arg(long, short = 'c', value_name = "KEY=VALUE")]
    conf: Vec<String>,

    /// A file of options like spark-defaults.conf
    #[arg(long, value_name = "FILE")]
    properties_file: Option<String>,

    /// The name of the run, as its first line and `kubectl get leases` have it
    #[arg(value_name = "NAME")]
    name: String,
}

/// `offermill clean`.
pub(crate) fn clean(arguments: &CleanArguments) -> ExitStatus {
    let mut draft = read(arguments);
    secrets::protect_memory(&draft);
    let cleaner = connect(&mut draft, &arguments.name);
    let (remarks, problems) = draft.messages();
    remarks.iter().chain(&problems).for_each(|text| remark(text));
    match cleaner {
        Ok(cleaner) => delete(cleaner, arguments),
        Err(exit) => exit,
    }
}

fn read(arguments: &CleanArguments) -> SettingsDraft {
    table::read_arguments(&RunArguments {
        master: arguments.master.clone(),
        namespace: arguments.namespace.clone(),
        conf: arguments.conf.clone(),
        properties_file: arguments.properties_file.clone(),
        ..RunArguments::default()
    })
}

/// Connects, and looks for what is left. Problems are added to the draft.
fn connect(draft: &mut SettingsDraft, given: &str) -> Result<RunCleaner, ExitStatus> {
    let (text, address) = match draft.master.clone() {
        Some((text, ClusterMaster::Kubernetes(address))) => (text, address),
        Some((text, _)) => {
            let allowed = "that of a Kubernetes cluster, such as k8s://https://HOST:PORT";
            draft.problems.push(format!("--master is {text:?}, but must be {allowed}"));
            return Err(ExitStatus::BadInput);
        }
        None => return Err(ExitStatus::BadInput),
    };
    let Some(name) = run_name(given) else {
        let allowed = "the name of a run: lower-case letters, digits and \"-\"";
        draft.problems.push(format!("NAME is {given:?}, but must be {allowed}"));
        return Err(ExitStatus::BadInput);
    };
    let made = connection(draft, &text, &address, &name).filter(|_| draft.problems.is_empty());
    let mut made = made.ok_or(ExitStatus::BadInput)?;
    if draft.given("offermill.kubernetes.connectTimeout").is_none() {
        made.connect_timeout = made.request_timeout;
    }
    let patience = made.connect_timeout;
    let mut waits =
        |why: &str| remark(&format!("waiting up to {patience:?} for the API server: {why}"));
    RunCleaner::connect_telling(&made, &mut waits).map_err(|error| {
        draft.report_error(&error);
        if error.is_setting() { ExitStatus::BadInput } else { ExitStatus::Cluster }
    })
}

fn delete(cleaner: RunCleaner, arguments: &CleanArguments) -> ExitStatus {
    let run = format!("{}/{}", cleaner.namespace(), cleaner.name());
    let what = describe(&cleaner);
    if cleaner.is_clean() {
        return say(&format!("nothing is left of {run}"));
    }
    if arguments.dry_run {
        let holder = cleaner.lease().map(|lease| lease.holder.clone()).unwrap_or_default();
        let held = match holder.as_str() {
            "" => String::new(),
            holder => format!("; {holder} holds the lease, or did when it was killed"),
        };
        return say(&format!("{run} has left {what}{held}"));
    }
    let is_held = cleaner.lease().is_some_and(|lease| !lease.holder.is_empty());
    if let (Some(RunLease { duration, .. }), true, false) =
        (cleaner.lease(), is_held, arguments.force)
    {
        let seconds = count(duration.as_secs(), "second");
        remark(&format!("waiting up to {seconds} for the lease of {run} to expire"));
    }
    match cleaner.delete(arguments.force) {
        Ok(()) => say(&format!("deleted {what} of {run}")),
        Err(CleanError::Alive { holder }) => {
            remark(&format!(
                "{run} is alive, {holder} holds its lease; nothing was deleted; --force would delete it all the same"
            ));
            ExitStatus::RunIsAlive
        }
        Err(error) => {
            let why = match error {
                CleanError::Failed { why } => why,
                _ => String::new(),
            };
            remark(&format!("not all of {run} could be deleted: {why}"));
            ExitStatus::Cluster
        }
    }
}

/// As in `2 pods (etl-1, etl-2) and the lease`.
fn describe(cleaner: &RunCleaner) -> String {
    let pods = cleaner.pods();
    let named = pods.get(..NAMED_MAX).unwrap_or(pods).join(", ");
    let more = pods.len().saturating_sub(NAMED_MAX);
    let named = if more == 0 { named } else { format!("{named} and {more} more") };
    let pods = match pods.len() {
        0 => "no pod".to_owned(),
        number => format!("{} ({named})", count(number as u64, "pod")),
    };
    if cleaner.lease().is_some() { format!("{pods} and the lease") } else { pods }
}

fn say(sentence: &str) -> ExitStatus {
    match print_result(&StyledText::lines(&format!("{sentence}\n"))) {
        PrintOutcome::Failed => ExitStatus::OutputClosed,
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
    }
}
