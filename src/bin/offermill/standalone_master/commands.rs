//! The commands of `offermill ctl` to a master.

use std::time::Duration;

use offermill::cluster::standalone::master::{FrameworkReport, MasterReport, WorkerReport};
use offermill::cluster::standalone::server::OperatorRequest;
use offermill::config::text::{TimeUnit, parse_duration};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::control::command::MASTER_COMMANDS;
use crate::model::reply::ControlReply;
use crate::text::format::{count, printable};

/// The grace period of a drain.
const GRACE_DEFAULT: Duration = Duration::from_secs(10);
/// The longest that the worker protocol allows.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Executes a line, and waits for the reply. `None` if it is blank.
pub(super) fn execute(
    line: Result<String, String>,
    master: &UnboundedSender<OperatorRequest>,
) -> Option<ControlReply> {
    let line = match line {
        Ok(line) => line,
        Err(why) => return Some(ControlReply::Refused(why)),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let reply = match words[..] {
        [] => return None,
        ["help"] => ControlReply::Block(MASTER_COMMANDS.to_owned()),
        ["status"] => report(master).map_or_else(ended, |it| ControlReply::Block(describe(&it))),
        ["status", "json"] => report(master).map_or_else(ended, |it| match json!(it) {
            object if object.is_object() => ControlReply::Object(object),
            _ => ended(),
        }),
        ["decommission", id] => decommission(master, id),
        ["drain", id] => drain(master, id, GRACE_DEFAULT),
        ["drain", id, grace] => {
            match parse_duration("the grace period", grace, TimeUnit::Seconds) {
                Ok(grace) if grace <= GRACE_MAX => drain(master, id, grace),
                Ok(_) => {
                    ControlReply::Refused("the grace period must be at most a year".to_owned())
                }
                Err(why) => ControlReply::Refused(why.to_string()),
            }
        }
        _ => ControlReply::Refused(format!(
            "there is no command {line:?}; the commands are status [json], drain ID [GRACE], \
             decommission ID and help"
        )),
    };
    Some(reply)
}

fn ended() -> ControlReply {
    ControlReply::Refused("the master has ended".to_owned())
}

fn report(master: &UnboundedSender<OperatorRequest>) -> Option<Box<MasterReport>> {
    let (reply, report) = oneshot::channel();
    master.send(OperatorRequest::Report(reply)).ok()?;
    report.blocking_recv().ok()
}

fn drain(master: &UnboundedSender<OperatorRequest>, id: &str, grace: Duration) -> ControlReply {
    let request = |worker, known| OperatorRequest::Drain { worker, grace, known };
    ask(master, id, request, "drains")
}

fn decommission(master: &UnboundedSender<OperatorRequest>, id: &str) -> ControlReply {
    let request = |worker, known| OperatorRequest::Decommission { worker, known };
    ask(
        master,
        id,
        request,
        "gets no executors any more, and leaves once those that it has have ended",
    )
}

/// Asks for something about a worker, which the sentence says once it is done.
fn ask(
    master: &UnboundedSender<OperatorRequest>,
    id: &str,
    request: impl FnOnce(String, oneshot::Sender<bool>) -> OperatorRequest,
    done: &str,
) -> ControlReply {
    let (known, reply) = oneshot::channel();
    if master.send(request(id.to_owned(), known)).is_err() {
        return ended();
    }
    match reply.blocking_recv() {
        Ok(true) => ControlReply::Done(format!("the worker {id} {done}")),
        Ok(false) => ControlReply::Refused(format!(
            "there is no worker {id:?} that is connected; \"status\" lists the workers"
        )),
        Err(_) => ended(),
    }
}

fn describe(report: &MasterReport) -> String {
    let MasterReport { cluster, term, counts, workers, frameworks, .. } = report;
    let recovering = if report.recovering { ", recovering" } else { "" };
    let connected = match workers.len() - counts.workers.min(workers.len()) {
        0 => String::new(),
        _ => format!(" ({} connected)", counts.workers),
    };
    let counted = [
        format!("{}{connected}", count(workers.len() as u64, "worker")),
        count(counts.frameworks as u64, "framework"),
        count(counts.executors as u64, "executor"),
        count(counts.offers as u64, "open offer"),
    ];
    let mut lines =
        vec![format!("cluster {cluster}, term {term}{recovering}: {}", counted.join(", "))];
    lines.extend(workers.iter().map(describe_worker));
    lines.extend(frameworks.iter().map(describe_framework));
    lines.join("\n")
}

fn describe_worker(worker: &WorkerReport) -> String {
    let WorkerReport { id, hostname, total, used, offered, .. } = worker;
    let executors = count(worker.executors as u64, "executor");
    let state = worker.state.as_str();
    // One that the journal names has no host name before it is back.
    let place = match hostname.as_str() {
        "" => "on an unknown host".to_owned(),
        hostname => format!("on {}", printable(hostname)),
    };
    let noun = noun_of_cores(total.cpus);
    format!(
        "worker {id} {place}: {state}, {executors}; used {} of {} {noun} and {} of {} MiB, offered {} and {}",
        used.cpus, total.cpus, used.mem, total.mem, offered.cpus, offered.mem
    )
}

fn describe_framework(framework: &FrameworkReport) -> String {
    let FrameworkReport { id, name, executors, cores, .. } = framework;
    let state = match (framework.connected, framework.suppressed) {
        (false, _) => "away",
        (true, true) => "connected, wants no offers",
        (true, false) => "connected",
    };
    let executors = count(*executors as u64, "executor");
    let noun = noun_of_cores(*cores);
    // Clients choose names and host names, so these could have lines of their own.
    let name = printable(name);
    format!("framework {id} ({name}): {state}, {executors} with {cores} {noun}")
}

/// What follows a number of cores.
fn noun_of_cores(cores: impl ToString) -> &'static str {
    if cores.to_string() == "1" { "core" } else { "cores" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no name of a framework looks like a line about something else. Method: a name with a line feed.
    #[test]
    fn names_have_no_lines_of_their_own() {
        let framework = FrameworkReport {
            id: "c-1-F1".to_owned(),
            name: "x\nworker c-1-W7 on trusted-host: active".to_owned(),
            user: String::new(),
            principal: None,
            connected: true,
            suppressed: false,
            executors: 0,
            cores: 0.0,
            offers: 0,
        };
        let line = describe_framework(&framework);
        assert!(line.lines().count() == 1 && line.contains("x\\nworker"), "{line}");
    }
}
