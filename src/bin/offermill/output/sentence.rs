//! Sentences about events, end reasons and errors of a run. They contain the cluster's text as it is; what shows them
//! makes them printable ([`StyledText`](crate::text::styled::StyledText)).

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use offermill::DemandCall;
use offermill::config::text::format_duration;
use offermill::launch::Command;
use offermill::resources::ExecutorResources;
use offermill::spark::shuffle::ShuffleEvent;

use crate::model::end_reason::{EndReason, ParentEnd};
use crate::model::event::RunEvent;
use crate::model::executor::{AgentExclusion, ExecutorRecord};
use crate::model::executor_kind::{ExecutorKind, KindCounts};
use crate::model::reply::ControlReply;
use crate::model::state::FindError;
use crate::model::target::{OnExit, RunTarget};
use crate::model::unended::{UnendedFate, is_unreachable};
use crate::output::kinds::{counted_kinds, kinds};
use crate::output::queues::changes_sentence;
use crate::output::stall::stall_sentence;
use crate::output::tasks::{end_of_tasks, task_sentence};
use crate::text::clock::short_time;
use crate::text::format::{count, passed};

/// The sentence of an event, without its time.
pub(crate) fn event_sentence(event: &RunEvent) -> String {
    match event {
        RunEvent::Registered { framework_id, again } => {
            let again = if *again { " again" } else { "" };
            format!("registered{again} as {framework_id}")
        }
        RunEvent::Disconnected(on_exit) => {
            format!("disconnected from the cluster; {}", meanwhile(*on_exit))
        }
        RunEvent::Placed { record, replaces } => placement(record, "placed", replaces.as_deref()),
        RunEvent::Resumed { finished: 0 } => "this run continues a former one".to_owned(),
        RunEvent::Resumed { finished } => {
            let executors = count(*finished, "executor");
            format!("this run continues a former one, in which {executors} had finished")
        }
        RunEvent::Adopted(record) => placement(record, "taken over", None),
        RunEvent::Bound(record) => about(record, "has its place", ""),
        RunEvent::Running(record) => about(record, "running", &record.message),
        RunEvent::Ending(record) => about(record, "ending", &record.message),
        RunEvent::Unreachable { record, given_up_at } => unreachable(record, *given_up_at),
        RunEvent::Returned(record) => about(record, "reachable again", &record.message),
        RunEvent::RefusedReturn(record) => {
            about(record, "reachable again too late, is ended", "another executor has replaced it")
        }
        RunEvent::GivenUp(record) => about(record, "given up", "unreachable for too long"),
        RunEvent::Ended(record) => ended(record),
        RunEvent::Excluded(exclusion) => exclusion_sentence(exclusion),
        RunEvent::AllExcluded { agents } => all_excluded(*agents),
        RunEvent::Stalled(stall) => stall_sentence(stall),
        RunEvent::AgentLost { host, .. } => format!("{host} is lost"),
        RunEvent::Unwelcome { executor, host, why } => unwelcome(executor, host, why),
        RunEvent::Demand(DemandCall::Suppress) => {
            "offers suppressed: nothing more can be placed".to_owned()
        }
        RunEvent::Demand(DemandCall::Revive) => "offers revived: there is room again".to_owned(),
        RunEvent::Overflow { offers } => {
            format!("{} declined: the queue was full", count(*offers as u64, "offer"))
        }
        RunEvent::Unreadable { offers, unanswered, agent_id, why } => {
            unreadable(*offers, *unanswered, agent_id.as_deref(), why)
        }
        RunEvent::CallFailed { why, calls: 1 } => format!("a call failed: {why}"),
        RunEvent::CallFailed { why, calls } => {
            format!("{} failed; the last: {why}", count(*calls, "call"))
        }
        RunEvent::Shuffle { event, port } => shuffle_sentence(event, *port),
        RunEvent::JournalEnded { why } => {
            format!("the journal was given up: {why}; the run continues")
        }
        RunEvent::Refused { why } => format!("the cluster is not available: {why}"),
        RunEvent::Panicked { why } => {
            format!("internal error, a batch of offers was declined: {why}; please report it")
        }
        RunEvent::Broken { why } => {
            format!("internal error, the run can't continue: {why}; please report it")
        }
        RunEvent::LimitSet { from, to, why } => format!("{}: {why}", limit_change(*from, *to)),
        RunEvent::QueuesChanged { changes, why } => format!("{}: {why}", changes_sentence(changes)),
        RunEvent::KillAsked { executors, why } => {
            format!("asked to end: {}: {why}", list(executors))
        }
        RunEvent::Task(event) => task_sentence(event),
        RunEvent::Answered(answer) => reply_sentence(&answer.reply),
        RunEvent::Stopping { why, timeout, living, by_signal } => {
            stopping(why, *timeout, *living, *by_signal)
        }
    }
}

/// As in `no agent is left: all 3 usable ones are excluded`.
fn all_excluded(agents: usize) -> String {
    match agents {
        1 => "no agent is left: the only usable one is excluded".to_owned(),
        _ => format!("no agent is left: all {agents} usable ones are excluded"),
    }
}

/// As in `etl-1 is ended on node-1, which doesn't take it: it is excluded`.
fn unwelcome(executor: &str, host: &str, why: &str) -> String {
    format!("{executor} is ended on {host}, which doesn't take it: {why}")
}

/// As in `1 offer of agent S1 can't be read: a text is not UTF-8; declined`.
fn unreadable(offers: usize, unanswered: usize, agent_id: Option<&str>, why: &str) -> String {
    let agent = agent_id.map_or("an unknown agent".to_owned(), |id| format!("agent {id}"));
    let declined = match unanswered {
        0 => "declined".to_owned(),
        _ if unanswered == offers => "not declined, because no id can be read either".to_owned(),
        _ => format!("declined, except {unanswered} whose ids can't be read either"),
    };
    let offers = count(offers as u64, "offer");
    format!("{offers} of {agent} can't be read: {why}; {declined}")
}

fn reply_sentence(reply: &ControlReply) -> String {
    match reply {
        ControlReply::Done(text) | ControlReply::Refused(text) | ControlReply::Block(text) => {
            text.trim_end().to_owned()
        }
        ControlReply::Object(object) => object.to_string(),
    }
}

fn ended(record: &ExecutorRecord) -> String {
    let ExecutorRecord { name, host, state, .. } = record;
    let ran = passed(record.ran().unwrap_or_default());
    let message = &record.message;
    let (after, on) = (state.as_str(), on_host(host));
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{name} {after}{on} after {ran}{colon}{message}")
}

/// As in ` on agent-1`; empty if the executor has no agent yet.
fn on_host(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}

/// As in `limit 3 -> 6`.
pub(crate) fn limit_change(from: Option<u32>, to: Option<u32>) -> String {
    let [from, to] = [from, to].map(limit_text);
    format!("limit {from} -> {to}")
}

/// A limit, or `none`.
pub(crate) fn limit_text(limit: Option<u32>) -> String {
    limit.map_or("none".to_owned(), |limit| limit.to_string())
}

/// As in `etl-1, etl-2`; of many, how many more there are.
pub(crate) fn list(names: &[String]) -> String {
    const NAMED_MAX: usize = 10;
    let more = names.len().saturating_sub(NAMED_MAX);
    let named = names.get(..NAMED_MAX).unwrap_or(names).join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// As in `etl-1 placed on agent-1: 1 core, 512 MiB`, or `etl-1 requested: …` if the cluster chooses the agent later.
fn placement(record: &ExecutorRecord, how: &str, replaces: Option<&str>) -> String {
    let ExecutorRecord { name, host, resources, .. } = record;
    let ExecutorResources { memory, gpus, port, .. } = resources;
    let mut text = match (host.is_empty(), how) {
        (false, _) => format!("{name} {how} on {host}"),
        (true, "placed") => format!("{name} requested"),
        (true, _) => format!("{name} {how}"),
    };
    if let Some(replaced) = replaces {
        text.push_str(&format!(" in place of {replaced}"));
    }
    text.push_str(&format!(": {:#}, {memory}", resources.cores));
    if gpus.get() > 0 {
        text.push_str(&format!(", {gpus:#}"));
    }
    if let Some(port) = port {
        text.push_str(&format!(", port {port}"));
    }
    text
}

fn about(record: &ExecutorRecord, what: &str, message: &str) -> String {
    let ExecutorRecord { name, host, .. } = record;
    let on = on_host(host);
    match message {
        "" => format!("{name} {what}{on}"),
        message => format!("{name} {what}{on}: {message}"),
    }
}

/// As in `etl-1 unreachable on agent-1, replaced at 13:10:12 UTC unless it returns: the agent was disconnected`.
fn unreachable(record: &ExecutorRecord, given_up_at: Option<SystemTime>) -> String {
    let ExecutorRecord { name, host, message, .. } = record;
    let until = match given_up_at {
        Some(at) => format!("replaced at {} unless it returns", short_time(at)),
        None => "replaced when its end is known".to_owned(),
    };
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{name} unreachable on {host}, {until}{colon}{message}")
}

fn stopping(why: &str, timeout: Duration, living: KindCounts, by_signal: bool) -> String {
    if living.all() == 0 || timeout.is_zero() {
        return format!("stopping: {why}");
    }
    let timeout = format_duration(timeout);
    let living = counted_kinds(living);
    if by_signal {
        return format!(
            "stopping: waiting up to {timeout} for {living}, Ctrl-C again to end at once"
        );
    }
    format!("stopping: {why}; waiting up to {timeout} for {living}, Ctrl-C to end at once")
}

/// As in `agent-1 excluded after 2 failures until 13:05:12 UTC (1 h)`.
fn exclusion_sentence(exclusion: &AgentExclusion) -> String {
    let AgentExclusion { host, failures, why, .. } = exclusion;
    let after = count(u64::from(*failures), "failure");
    let until = match (exclusion.ends, exclusion.duration()) {
        (Some(ends), Some(duration)) => {
            format!("until {} ({})", short_time(ends), format_duration(duration))
        }
        _ => "for ever".to_owned(),
    };
    format!("{host} excluded after {after} {until}; the last: {why}")
}

/// As in `registered with the shuffle service on agent-1:7337`.
fn shuffle_sentence(event: &ShuffleEvent, port: u16) -> String {
    match event {
        ShuffleEvent::Registered { host, again } => {
            let again = if *again { " again" } else { "" };
            format!("registered{again} with the shuffle service on {host}:{port}")
        }
        ShuffleEvent::Failing { host, why, is_refusal } => {
            let what = if *is_refusal { "refuses this application" } else { "is not available" };
            format!(
                "the shuffle service on {host}:{port} {what}: {why}; it is retried until it succeeds"
            )
        }
        _ => String::new(),
    }
}

/// The sentence of an end reason.
pub(crate) fn end_sentence(reason: &EndReason) -> String {
    match reason {
        EndReason::AllFinished(1) => "the executor has finished".to_owned(),
        EndReason::AllFinished(goal) => format!("all {goal} executors have finished"),
        EndReason::TooManyFailures(failures) => {
            format!("{} failed, no more are tolerated", count(*failures, "executor"))
        }
        EndReason::NoAgentLeft => "no agent is left, executors failed on all".to_owned(),
        EndReason::TasksEnded(counts) => end_of_tasks(counts),
        EndReason::ResultsFailed(why) => format!("the results file can't be written: {why}"),
        EndReason::Command => "stopped by a command".to_owned(),
        EndReason::ParentEnded(end) => match end {
            ParentEnd::InputClosed => {
                "the parent program has ended, or closed standard input".to_owned()
            }
            ParentEnd::OutputClosed => {
                "the parent program has ended, or closed standard output".to_owned()
            }
            ParentEnd::Gone => "the parent program has ended".to_owned(),
            ParentEnd::InputFailed(why) => format!("standard input can't be read: {why}"),
        },
        EndReason::Signal(name) => format!("stopped by {name}"),
        EndReason::OutputClosed { .. } => "standard output was closed".to_owned(),
        EndReason::Refused(why) => format!("the cluster is not available: {why}"),
        EndReason::Broken(why) => format!("internal error: {why}"),
    }
}

/// The sentence of a text that names no single executor.
pub(crate) fn find_error_sentence(error: &FindError) -> String {
    match error {
        FindError::Ambiguous { text, candidates: [first, second] } => {
            format!("{text:?} may be {first} or {second}; expected one executor")
        }
        FindError::NotFound { text } => {
            format!(
                "no executor {text:?} is alive; expected an id, its part after the last \"-\", or \
                 its number"
            )
        }
    }
}

/// The sentence of a text that names neither a task nor an executor of a run of tasks.
pub(crate) fn no_task_sentence(text: &str) -> String {
    format!("no task has the id {text:?}, and no living executor that name")
}

/// The message if a second signal ends the run at once.
pub(crate) fn at_once_sentence(
    target: &RunTarget,
    framework_id: &str,
    living: KindCounts,
) -> String {
    let who = kinds(living);
    match target.on_exit {
        OnExit::Kept(_) | OnExit::Left if framework_id.is_empty() => "ended at once".to_owned(),
        OnExit::Left => format!(
            "ended at once; the pods of {framework_id} stay until the next run of this name takes them over{}",
            how_to_end(target, framework_id)
        ),
        OnExit::Killed => format!("ended at once, {who} are killed"),
        OnExit::Kept(Duration::ZERO) => format!(
            "ended at once; the master ends the {who} when it misses this framework, now (see --failover-timeout)"
        ),
        OnExit::Kept(timeout) => format!(
            "ended at once; {who} run on until the master has missed the framework {} for \
             {}{}",
            framework_id,
            format_duration(timeout),
            how_to_end(target, framework_id)
        ),
    }
}

/// What becomes of executors while the framework is disconnected.
fn meanwhile(on_exit: OnExit) -> String {
    match on_exit {
        OnExit::Killed | OnExit::Left => "executors run on".to_owned(),
        OnExit::Kept(Duration::ZERO) => {
            "a master that still runs ends the executors without --failover-timeout".to_owned()
        }
        OnExit::Kept(timeout) => format!("executors run on for up to {}", format_duration(timeout)),
    }
}

/// What becomes of a framework that could not be torn down.
pub(crate) fn not_torn_down_sentence(target: &RunTarget, framework_id: &str, why: &str) -> String {
    let framework = framework_id;
    match target.on_exit {
        OnExit::Kept(timeout) if !timeout.is_zero() => format!(
            "the framework {framework} could not be torn down, and the master may keep it for \
             {} ({why}){}",
            format_duration(timeout),
            how_to_end(target, framework_id)
        ),
        OnExit::Left => format!(
            "not all of {framework} could be deleted ({why}){}",
            how_to_end(target, framework_id)
        ),
        OnExit::Killed | OnExit::Kept(_) => format!(
            "the framework {framework} could not be torn down, and ends when the master misses it \
             ({why}){}",
            how_to_end(target, framework_id)
        ),
    }
}

/// As in `; this ends it: curl -fL -d frameworkId=…-0001 http://10.0.0.1:5050/master/teardown`.
fn how_to_end(target: &RunTarget, framework_id: &str) -> String {
    if target.on_exit == OnExit::Left {
        // The id of a run on Kubernetes is its namespace and its name.
        let Some((namespace, name)) = framework_id.split_once('/') else { return String::new() };
        let words =
            ["offermill", "clean", "--master", &target.master, "--namespace", namespace, name];
        let command = Command::new(words.map(str::to_owned).to_vec());
        let line = command.shown_line();
        return line.map_or(String::new(), |line| format!("; this deletes them: {line}"));
    }
    let Some(url) = target.teardown_url.clone() else { return String::new() };
    let id = format!("frameworkId={framework_id}");
    let curl = ["curl", "-fL", "-d"].map(str::to_owned);
    let command = Command::new([&curl[..], &[id, url]].concat());
    command.shown_line().map_or(String::new(), |line| format!("; this ends it: {line}"))
}

/// What became of executors that had not ended within the shutdown timeout.
pub(crate) fn unended_sentence(
    fate: UnendedFate,
    executors: &[(&ExecutorRecord, ExecutorKind)],
) -> String {
    let all = counted_kinds(KindCounts::of(executors.iter().map(|(_, kind)| *kind)));
    match fate {
        UnendedFate::Killed => format!("{all} had not ended in time and had to be killed"),
        UnendedFate::Left => format!("{all} had not ended in time and may run on, left behind"),
        UnendedFate::TornDown => by_reach(
            executors,
            EndClause {
                one: "the master ends it with the framework",
                more: "the master ends them with the framework",
            },
            EndClause {
                one: "the master ends it if its agent returns",
                more: "the master ends them if their agents return",
            },
        ),
        UnendedFate::Deleted => by_reach(
            executors,
            EndClause {
                one: "Kubernetes ends it with its pod",
                more: "Kubernetes ends them with their pods",
            },
            EndClause {
                one: "it ends if its node returns",
                more: "they end if their nodes return",
            },
        ),
    }
}

/// What becomes of one executor, and of more.
#[derive(Clone, Copy)]
struct EndClause {
    one: &'static str,
    more: &'static str,
}

impl EndClause {
    fn of(self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.more }
    }
}

/// What becomes of executors whose agents are in reach, and of the others.
fn by_reach(
    executors: &[(&ExecutorRecord, ExecutorKind)],
    reached_end: EndClause,
    away_end: EndClause,
) -> String {
    let of = |is_away: bool| {
        let all = executors.iter();
        all.filter(move |(record, _)| is_unreachable(record.state) == is_away)
    };
    let kinds_of = |is_away: bool| KindCounts::of(of(is_away).map(|(_, kind)| *kind));
    let hosts: BTreeSet<&str> = of(true).map(|(record, _)| &*record.host).collect();
    let (reached, away) = (kinds_of(false), kinds_of(true));
    let mut sentences = Vec::new();
    if reached.all() > 0 {
        let reached_end = reached_end.of(reached.all());
        let reached = counted_kinds(reached);
        sentences.push(format!("{reached} had not ended in time, and {reached_end}"));
    }
    if away.all() > 0 {
        let away_end = away_end.of(away.all());
        let away = counted_kinds(away);
        let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
        let hosts = list(&hosts);
        sentences.push(format!("{away} unreachable on {hosts}, and {away_end}"));
    }
    sentences.join("; ")
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use offermill::Timestamp;

    use super::*;
    use crate::model::executor::ExecutorState;

    fn record(message: &str) -> ExecutorRecord {
        let [name, agent, host] = ["etl-1", "S1", "agent-1"].map(str::to_owned);
        ExecutorRecord {
            state: ExecutorState::Unreachable,
            message: message.to_owned(),
            ..ExecutorRecord::starting(name, agent, host, Timestamp::ORIGIN)
        }
    }

    /// Goal: the sentence about an unreachable executor says until when it is waited for. Method: with an end and a
    /// message, and without.
    #[test]
    fn an_unreachable_executor_has_a_time() {
        let at = Some(UNIX_EPOCH + Duration::from_secs(951_782_400));
        assert_eq!(
            unreachable(&record("lost"), at),
            "etl-1 unreachable on agent-1, replaced at 2000-02-29 00:00:00 UTC unless it returns: lost"
        );
        assert_eq!(
            unreachable(&record(""), None),
            "etl-1 unreachable on agent-1, replaced when its end is known"
        );
    }

    /// Goal: what had not ended in time is called what it is, in reach or not, and one of it as one. Method: tasks and
    /// a host, of which one task is unreachable; an executor; one task and two of each fate.
    #[test]
    fn what_had_not_ended_is_named() {
        let reached = ExecutorRecord { state: ExecutorState::Running, ..record("") };
        let away = record("");
        let of_tasks = [
            (&reached, ExecutorKind::Task),
            (&reached, ExecutorKind::Host),
            (&away, ExecutorKind::Task),
        ];
        assert_eq!(
            unended_sentence(UnendedFate::Killed, &of_tasks),
            "2 tasks and 1 host had not ended in time and had to be killed"
        );
        assert_eq!(
            unended_sentence(UnendedFate::TornDown, &of_tasks),
            "1 task and 1 host had not ended in time, and the master ends them with the framework; \
             1 task unreachable on agent-1, and the master ends it if its agent returns"
        );
        let sentence = |fate, record: &ExecutorRecord, count| {
            unended_sentence(fate, &vec![(record, ExecutorKind::Task); count])
        };
        let (torn_down, deleted) = (UnendedFate::TornDown, UnendedFate::Deleted);
        for (fate, record, count, expected) in [
            (torn_down, &reached, 1, "1 task had not ended in time, and the master ends it with"),
            (
                torn_down,
                &reached,
                2,
                "2 tasks had not ended in time, and the master ends them with",
            ),
            (torn_down, &away, 2, "on agent-1, and the master ends them if their agents return"),
            (deleted, &reached, 1, "in time, and Kubernetes ends it with its pod"),
            (deleted, &reached, 2, "in time, and Kubernetes ends them with their pods"),
            (deleted, &away, 1, "1 task unreachable on agent-1, and it ends if its node returns"),
            (deleted, &away, 2, "on agent-1, and they end if their nodes return"),
        ] {
            let told = sentence(fate, record, count);
            assert!(told.contains(expected), "{told}");
        }
        assert_eq!(
            unended_sentence(UnendedFate::Killed, &[(&reached, ExecutorKind::Executor)]),
            "1 executor had not ended in time and had to be killed"
        );
    }
}
