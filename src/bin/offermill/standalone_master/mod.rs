//! `offermill master`: the master of a standalone cluster.

pub(crate) mod arguments;
mod commands;
mod events;
mod settings;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use offermill::cluster::standalone::server::{MasterJournal, serve_master};
use offermill::http_server::raise_open_files;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use crate::control;
use crate::exit::ExitStatus;
use crate::output::log::{Log, LogLevel};
use crate::output::{PrintOutcome, drain_remarks, print_result, remark, write_remarks_aside};
use crate::settings::secrets::hide_memory;
use crate::signals;
use crate::standalone_master::arguments::MasterArguments;
use crate::standalone_master::settings::{MasterPlan, listen, read};
use crate::text::styled::StyledText;

/// How long the last lines of the log may take to be written.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// `offermill master`.
pub(crate) fn run_master(arguments: &MasterArguments) -> ExitStatus {
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
    let journal = match MasterJournal::open(&arguments.state_dir) {
        Ok(journal) => journal,
        Err(error) => return refuse(&[error.to_string()]),
    };
    let (operator, requests) = unbounded_channel();
    let sockets = arguments.control.as_ref().map(|path| {
        let answer = move |line| commands::execute(line, &operator);
        control::open_for(path, answer)
            .map_err(|why| format!("--control is {:?}, but {why}", path.display().to_string()))
    });
    let _sockets = match sockets.transpose() {
        Ok(sockets) => sockets,
        Err(problem) => return refuse(&[problem]),
    };
    let (stop, stopped) = oneshot::channel::<Infallible>();
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
    let scheme = if plan.options.tls.is_some() { "https://" } else { "" };
    let sentence = format!(
        "the master of cluster {}, term {}, listens at {scheme}{address}\n",
        journal.cluster(),
        journal.term()
    );
    // The master must not wait for those who read its log.
    if let Err(error) = write_remarks_aside() {
        remark(&format!("no thread can be started: {error}"));
        return ExitStatus::Internal;
    }
    log.write(LogLevel::Info, sentence.trim_end());
    if print_result(&StyledText::lines(&sentence)) == PrintOutcome::Failed {
        return ExitStatus::OutputClosed;
    }
    plan.options.observer = events::observer(log);
    let exit = match serve_master(listener, journal, plan.options, requests, stopped) {
        Ok(()) => ExitStatus::Done,
        Err(why) => {
            remark(&why);
            ExitStatus::Internal
        }
    };
    log.write(LogLevel::Info, "the master has ended");
    drain_remarks(LAST_LINES_WITHIN, || false);
    exit
}

/// Says what the operator should know before the master listens.
fn say_remarks(plan: &MasterPlan, address: SocketAddr) {
    if let Some(why) = &plan.remark {
        remark(&format!("TLS: {why}"));
    }
    if plan.options.is_insecure && !address.ip().is_loopback() {
        remark(&format!(
            "--insecure: who reaches {address} may read what is sent, or run commands on workers"
        ));
    }
}

fn refuse(problems: &[String]) -> ExitStatus {
    problems.iter().for_each(|problem| remark(problem));
    ExitStatus::BadInput
}
