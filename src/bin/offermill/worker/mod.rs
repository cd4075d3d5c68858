//! `offermill worker`: a worker of a standalone cluster, until it is stopped.

pub(crate) mod arguments;
mod settings;

use std::sync::mpsc::channel;

use offermill::cluster::standalone::protocol::{ExecutorUpdate, ReportedState};
use offermill::cluster::standalone::worker::{
    StandaloneWorker, WorkerConfig, WorkerEnd, WorkerNotice,
};

use crate::exit::ExitStatus;
use crate::output::log::{Log, LogLevel};
use crate::output::{remark, serve_with_remarks_aside};
use crate::settings::secrets::hide_memory;
use crate::signals;
use crate::text::format::count;
use crate::worker::arguments::WorkerArguments;
use crate::worker::settings::{describe, read_settings};

/// Runs a worker.
pub(crate) fn run_worker(arguments: &WorkerArguments) -> ExitStatus {
    serve_with_remarks_aside(|| start(arguments))
}

fn start(arguments: &WorkerArguments) -> ExitStatus {
    let config = match read_settings(arguments) {
        Ok(config) => config,
        Err(problems) => {
            problems.iter().for_each(|problem| remark(problem));
            return ExitStatus::BadInput;
        }
    };
    let introduction = introduction(&config);
    let worker = match StandaloneWorker::new(config) {
        Ok(worker) => worker,
        Err(error) => {
            remark(&describe(&error));
            return if error.is_setting() { ExitStatus::BadInput } else { ExitStatus::Cluster };
        }
    };
    if arguments.token_file.is_some() {
        hide_memory();
    }
    if WorkerConfig::memory_is_unknown() && arguments.memory.is_none() {
        remark(
            "this machine doesn't say how much memory it has; 2 GiB are taken for it (--memory)",
        );
    }
    let log = Log::new(LogLevel::chosen(arguments.log_level));
    log.write(LogLevel::Info, &introduction);
    run(worker, log)
}

fn run(worker: StandaloneWorker, log: Log) -> ExitStatus {
    // From its start on the worker may be registered, and a signal must not end it without a goodbye.
    let (started, stoppers) = channel::<Box<dyn Fn() + Send>>();
    let mut stop = None;
    let on_signal = move |signal: &'static str| {
        log.write(LogLevel::Info, &format!("{signal}: executors are asked to end"));
        stop = stop.take().or_else(|| stoppers.recv().ok());
        if let Some(stop) = &stop {
            stop();
        }
    };
    if let Err(error) = signals::listen(on_signal) {
        remark(&format!("signals can't be received: {error}"));
        return ExitStatus::Internal;
    }
    let (drains, drained) = channel();
    let observer = move |notice: WorkerNotice| {
        if matches!(notice, WorkerNotice::Drains { .. }) {
            let _ended = drains.send(());
        }
        let (level, sentence) = line(&notice);
        log.write(level, &sentence);
    };
    let handle = match worker.start(observer) {
        Ok(handle) => handle,
        Err(error) => {
            remark(&error.to_string());
            return ExitStatus::Internal;
        }
    };
    // Signals are listened to for as long as the program runs.
    let _listening = started.send(Box::new(handle.stopper()));
    match handle.wait() {
        Some(WorkerEnd::Left { told, forced }) => {
            let told = if told { "the master was told" } else { "no master could be told" };
            let how = if forced { "executors were killed, and " } else { "" };
            let drained = if drained.try_recv().is_ok() { "is drained and " } else { "" };
            log.write(LogLevel::Info, &format!("the worker {drained}has ended; {how}{told}"));
            if forced { ExitStatus::TimedOut } else { ExitStatus::Done }
        }
        Some(WorkerEnd::Refused { why }) => {
            log.write(LogLevel::Error, &format!("the worker is refused: {why}"));
            ExitStatus::Cluster
        }
        _ => ExitStatus::Internal,
    }
}

fn introduction(config: &WorkerConfig) -> String {
    let WorkerConfig { cores, memory, masters, work_dir, .. } = config;
    let addresses: Vec<String> = masters.all().iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    format!("a worker with {cores:#} and {memory} in {}, for {addresses}", work_dir.display())
}

/// The line about something that happened to a worker.
fn line(notice: &WorkerNotice) -> (LogLevel, String) {
    match notice {
        WorkerNotice::Registered { master, id, term } => {
            (LogLevel::Info, format!("registered at {master} as {id} (term {term})"))
        }
        WorkerNotice::Lost { master, why } => (
            LogLevel::Warn,
            format!("{master} is lost: {why}; executors go on, and the worker tries again"),
        ),
        WorkerNotice::Unreachable { master, why } => {
            (LogLevel::Warn, format!("not registered at {master}: {why}; the worker tries again"))
        }
        WorkerNotice::Drains { executors, grace } => {
            let executors = count(*executors as u64, "executor");
            let grace = grace.as_secs_f64();
            let sentence = format!(
                "the master drains this worker: {executors} must end within {grace} s, then the worker ends"
            );
            (LogLevel::Info, sentence)
        }
        WorkerNotice::Executor(update) => {
            let level = match update.state {
                ReportedState::Failed | ReportedState::Dropped => LogLevel::Warn,
                _ => LogLevel::Debug,
            };
            (level, about_executor(update))
        }
        WorkerNotice::Trouble { why } => (LogLevel::Warn, why.clone()),
        _ => (LogLevel::Debug, String::new()),
    }
}

fn about_executor(update: &ExecutorUpdate) -> String {
    let state = match update.state {
        ReportedState::Starting => "is being started",
        ReportedState::Running => "runs",
        ReportedState::Killing => "is ending",
        ReportedState::Finished => "has finished",
        ReportedState::Failed => "has failed",
        ReportedState::Killed => "was ended",
        ReportedState::Dropped => "was not taken",
    };
    let key = &update.key;
    match &update.message {
        Some(message) => format!("{} of {} {state}: {message}", key.executor, key.framework),
        None => format!("{} of {} {state}", key.executor, key.framework),
    }
}
