//! `offermill master`: the master of a standalone cluster.

pub(crate) mod arguments;
mod commands;
mod events;
mod settings;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use offermill::cluster::standalone::server::{
    JournalError, MasterJournal, OperatorRequest, reached_at, serve_master, stand_by,
};
use offermill::http_server::raise_open_files;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::control::{self, ControlSockets};
use crate::exit::ExitStatus;
use crate::model::reply::ControlReply;
use crate::output::log::{Log, LogLevel};
use crate::output::{PrintOutcome, print_result, remark, serve_with_remarks_aside};
use crate::settings::secrets::hide_memory;
use crate::signals;
use crate::standalone_master::arguments::MasterArguments;
use crate::standalone_master::settings::{MasterPlan, listen, read};
use crate::text::styled::StyledText;

/// How long a sentence on standard output may take before the master goes on without it.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);

/// `offermill master`.
pub(crate) fn run_master(arguments: &MasterArguments) -> ExitStatus {
    serve_with_remarks_aside(|| lead_and_serve(arguments))
}

fn lead_and_serve(arguments: &MasterArguments) -> ExitStatus {
    let mut plan = match read(arguments) {
        Ok(plan) => plan,
        Err(problems) => return refuse(&problems),
    };
    // Each worker and each framework takes a file.
    raise_open_files();
    // It may have secrets from now on.
    hide_memory();
    let listener = match listen(plan.address) {
        Ok(listener) => listener,
        Err(problem) => return refuse(&[problem]),
    };
    let (stop, mut stopped) = oneshot::channel::<Infallible>();
    let mut stop = Some(stop);
    let log = Log::new(LogLevel::chosen(arguments.log_level));
    let listening = signals::listen(move |signal| {
        log.write(LogLevel::Info, &format!("{signal}: the master ends; executors go on"));
        drop(stop.take());
    });
    if let Err(error) = listening {
        remark(&format!("signals can't be handled: {error}"));
        return ExitStatus::Internal;
    }
    let address = listener.local_addr().unwrap_or(plan.address);
    say_remarks(&plan, address);
    let leads = Arc::new(OnceLock::new());
    let _sockets = match open_sockets(arguments, &leads) {
        Ok(sockets) => sockets,
        Err(problem) => return refuse(&[problem]),
    };
    let journal = match lead(arguments, &plan, &listener, log, &mut stopped) {
        Ok(journal) => journal,
        Err(exit) => return exit,
    };
    let (operator, requests) = unbounded_channel();
    let _first = leads.set(operator);
    let sentence = format!(
        "the master of cluster {}, term {}, listens at {}{address}",
        journal.cluster(),
        journal.term(),
        scheme(&plan)
    );
    if !announce(log, &sentence) {
        return ExitStatus::OutputClosed;
    }
    plan.options.observer = events::observer(log);
    let exit = match serve_master(listener, journal, plan.options, requests, stopped) {
        Ok(()) => ExitStatus::Done,
        Err(why) => {
            log.write(LogLevel::Error, &why);
            ExitStatus::Internal
        }
    };
    log.write(LogLevel::Info, "the master has ended");
    exit
}

/// Opens the socket of `--control`, if it is given. Before the master leads, its commands are refused.
fn open_sockets(
    arguments: &MasterArguments,
    leads: &Arc<OnceLock<UnboundedSender<OperatorRequest>>>,
) -> Result<Option<ControlSockets>, String> {
    let Some(path) = &arguments.control else { return Ok(None) };
    let leads = Arc::clone(leads);
    let answer = move |line| match leads.get() {
        Some(operator) => commands::execute(line, operator),
        None => {
            Some(ControlReply::Refused("this master is a standby: it does not lead".to_owned()))
        }
    };
    let opened = control::open_for(path, answer);
    opened
        .map(Some)
        .map_err(|why| format!("--control is {:?}, but {why}", path.display().to_string()))
}

/// Waits until this master leads, if it may, and says where it is reached.
///
/// # Errors
/// With the exit status, after it was said why it doesn't lead.
fn lead(
    arguments: &MasterArguments,
    plan: &MasterPlan,
    listener: &TcpListener,
    log: Log,
    stop: &mut oneshot::Receiver<Infallible>,
) -> Result<MasterJournal, ExitStatus> {
    let folder = &arguments.state_dir;
    let address = listener.local_addr().unwrap_or(plan.address);
    let own = plan.advertise.clone().unwrap_or_else(|| reached_at(address));
    let refused = |error: JournalError| refuse(&[error.to_string()]);
    let journal = match arguments.standby {
        false => Some(MasterJournal::open(folder).map_err(refused)?),
        true => MasterJournal::try_open(folder).map_err(refused)?,
    };
    let mut journal = match journal {
        Some(journal) => journal,
        None => {
            let at = format!("{}{address}", scheme(plan));
            let sentence = format!(
                "the master stands by at {at}: another uses the folder {}",
                folder.display()
            );
            if !announce(log, &sentence) {
                return Err(ExitStatus::OutputClosed);
            }
            let tls = plan.options.tls.clone();
            match stand_by(listener, folder, &own, tls, stop) {
                Ok(Some(journal)) => journal,
                Ok(None) => {
                    log.write(LogLevel::Info, "the standby has ended");
                    return Err(ExitStatus::Done);
                }
                Err(why) => return Err(refuse(&[why])),
            }
        }
    };
    journal.name_leader(&own).map_err(refused)?;
    Ok(journal)
}

/// Says a sentence on standard output and in the log. Returns whether it could be written, or may yet be: nobody need
/// read it.
fn announce(log: Log, sentence: &str) -> bool {
    log.write(LogLevel::Info, sentence);
    let line = StyledText::lines(&format!("{sentence}\n"));
    let (written, outcome) = mpsc::channel();
    let _printing = thread::spawn(move || {
        let _late = written.send(print_result(&line));
    });
    outcome.recv_timeout(ANNOUNCED_WITHIN) != Ok(PrintOutcome::Failed)
}

fn scheme(plan: &MasterPlan) -> &'static str {
    if plan.options.tls.is_some() { "https://" } else { "" }
}

/// Says what the operator should know before the master listens.
fn say_remarks(plan: &MasterPlan, address: SocketAddr) {
    if let Some(why) = &plan.remark {
        remark(&format!("TLS: {why}"));
    }
    if plan.options.is_insecure {
        remark(&format!(
            "--insecure: who reaches {address} may read what is sent, or run commands on workers"
        ));
    }
}

fn refuse(problems: &[String]) -> ExitStatus {
    problems.iter().for_each(|problem| remark(problem));
    ExitStatus::BadInput
}
