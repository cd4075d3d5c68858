//! What happens during a run, as the faces are told, and each as a sentence.

use std::time::{Duration, SystemTime};

use offermill::config::text::format_duration;
use offermill::spark::shuffle::News;
use offermill::{DemandCall, Timestamp};

use crate::control::Answer;
use crate::model::executor::{ExecutorInfo, State};
use crate::model::waiting::{self, Waits};
use crate::run::shuffle;
use crate::target::OnExit;
use crate::text::clock::time_for_people;
use crate::text::format::{count, passed, printable};
use crate::text::stdout::Rank;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    /// When, on the engine's clock.
    pub(crate) at: Timestamp,
    /// RunEvent.
    pub(crate) what: RunEvent,
}

/// RunEvent happened.
#[derive(Clone, Debug)]
pub(crate) enum RunEvent {
    /// A subscription began.
    Registered { framework_id: String, again: bool },
    /// It ended; what becomes of executors meanwhile.
    Disconnected(OnExit),
    /// An executor was placed.
    Placed { record: ExecutorInfo, replaces: Option<String> },
    /// A former run is gone on with.
    Resumed { finished: u64 },
    /// An executor of a former run was taken over.
    Adopted(ExecutorInfo),
    /// It runs.
    Running(ExecutorInfo),
    /// It was asked to end.
    Ending(ExecutorInfo),
    /// It is out of sight.
    OutOfSight(ExecutorInfo),
    /// It is back.
    Returned(ExecutorInfo),
    /// It is back, and there is no room for it any more.
    RefusedReturn(ExecutorInfo),
    /// It was out of sight for so long that it is replaced.
    GivenUp(ExecutorInfo),
    /// It has ended.
    Ended(ExecutorInfo),
    /// An agent gets no more executors.
    Excluded(Exclusion),
    /// All agents that can get executors are excluded.
    AllExcluded { agents: usize },
    /// Executors are wanted, and none could be placed for a while.
    StallWatch(Waits),
    /// An agent is lost.
    AgentLost { agent_id: String, host: String },
    /// Offers are wanted no more, or again.
    Demand(DemandCall),
    /// Offers were declined for want of room in the queue.
    Overflow { offers: usize },
    /// The cluster didn't take so many calls; why it didn't take the last.
    CallFailed { why: String, calls: u64 },
    /// Something about an agent's shuffle service.
    Shuffle { news: News, port: u16 },
    /// What happens is not recorded any more.
    JournalEnded { why: String },
    /// The cluster can't be reached, or refuses this framework.
    Refused { why: String },
    /// A thread that answers offers panicked: its batch was declined, and it goes on.
    Panicked { why: String },
    /// The engine can't go on: its control thread panicked.
    Broken { why: String },
    /// The executor limit changed.
    LimitSet { from: Option<u32>, to: Option<u32>, why: String },
    /// Executors were asked to end.
    KillAsked { executors: Vec<String>, why: String },
    /// A command from standard input was answered.
    Answered(Answer),
    /// The run stops.
    Stopping { why: String, timeout: Duration, executors: usize, by_signal: bool },
}

/// An agent that is excluded.
#[derive(Clone, Debug)]
pub(crate) struct Exclusion {
    pub(crate) agent_id: String,
    pub(crate) host: String,
    /// After so many failures.
    pub(crate) failures: u8,
    /// The last failure's message.
    pub(crate) why: String,
    /// When it began.
    pub(crate) at: Timestamp,
    /// When it ends; [`Timestamp::MAX`] is never.
    pub(crate) until: Timestamp,
    /// The same in wall-clock time; `None` is never.
    pub(crate) ends: Option<SystemTime>,
}

impl Exclusion {
    /// How long it lasts in all, to a second; `None` is for ever.
    pub(crate) fn lasts(&self) -> Option<Duration> {
        let lasts = self.until.since(self.at) + Duration::from_millis(500);
        self.ends.map(|_| Duration::from_secs(lasts.as_secs()))
    }

    /// As in `agent-1 excluded after 2 failures until 13:05:12 UTC (1 h)`.
    pub(crate) fn sentence(&self) -> String {
        let Exclusion { host, failures, .. } = self;
        let after = count(u64::from(*failures), "failure");
        let until = match (self.ends, self.lasts()) {
            (Some(ends), Some(lasts)) => {
                format!("until {} ({})", time_for_people(ends), format_duration(lasts))
            }
            _ => "for ever".to_owned(),
        };
        format!("{host} excluded after {after} {until}; the last: {}", printable(&self.why))
    }
}

/// How much it matters to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// As it should be.
    Routine,
    /// Worth a look, even where a table shows the routine.
    Notable,
    /// Something failed.
    Bad,
}

impl Weight {
    /// How much its lines matter where not all can be written.
    pub(crate) fn rank(self) -> Rank {
        match self {
            Weight::Routine => Rank::Routine,
            Weight::Notable | Weight::Bad => Rank::Notable,
        }
    }
}

impl RunEvent {
    /// How much it matters.
    pub(crate) fn weight(&self) -> Weight {
        match self {
            RunEvent::Ended(ExecutorInfo { state: State::Failed | State::Lost, .. })
            | RunEvent::Disconnected(_)
            | RunEvent::Excluded(_)
            | RunEvent::AllExcluded { .. }
            | RunEvent::AgentLost { .. }
            | RunEvent::CallFailed { .. }
            | RunEvent::Refused { .. }
            | RunEvent::Panicked { .. }
            | RunEvent::Broken { .. }
            | RunEvent::Shuffle { news: News::Failing { .. }, .. }
            | RunEvent::JournalEnded { .. }
            | RunEvent::RefusedReturn(_)
            | RunEvent::Answered(Answer::Refused(_))
            | RunEvent::GivenUp(_) => Weight::Bad,
            RunEvent::Registered { again: true, .. }
            | RunEvent::Placed { replaces: Some(_), .. }
            | RunEvent::Resumed { .. }
            | RunEvent::Shuffle { news: News::Registered { again: true, .. }, .. }
            | RunEvent::Adopted(_)
            | RunEvent::OutOfSight(_)
            | RunEvent::Returned(_)
            | RunEvent::Overflow { .. }
            | RunEvent::LimitSet { .. }
            | RunEvent::KillAsked { .. }
            | RunEvent::Answered(_)
            | RunEvent::Stopping { .. } => Weight::Notable,
            _ => Weight::Routine,
        }
    }

    /// The sentence, without the time.
    pub(crate) fn sentence(&self) -> String {
        match self {
            RunEvent::Registered { framework_id, again: false } => {
                format!("registered as {}", printable(framework_id))
            }
            RunEvent::Registered { framework_id, again: true } => {
                format!("registered again as {}", printable(framework_id))
            }
            RunEvent::Disconnected(leavings) => {
                format!("disconnected from the cluster; {}", leavings.meanwhile())
            }
            RunEvent::Placed { record, replaces } => {
                taken(record, "placed on", replaces.as_deref())
            }
            RunEvent::Resumed { finished: 0 } => "this run goes on with a former one".to_owned(),
            RunEvent::Resumed { finished } => {
                let executors = count(*finished, "executor");
                format!("this run goes on with a former one, in which {executors} had finished")
            }
            RunEvent::Adopted(record) => taken(record, "taken over on", None),
            RunEvent::Running(record) => about(record, "running", &record.message),
            RunEvent::Ending(record) => about(record, "ending", &record.message),
            RunEvent::OutOfSight(record) => about(record, "out of sight", &record.message),
            RunEvent::Returned(record) => about(record, "back in sight", &record.message),
            RunEvent::RefusedReturn(record) => {
                about(record, "back too late, is ended", "its place was given to another")
            }
            RunEvent::GivenUp(record) => about(record, "given up", "out of sight for too long"),
            RunEvent::Ended(record) => ended(record),
            RunEvent::Excluded(exclusion) => exclusion.sentence(),
            RunEvent::AllExcluded { agents } => match agents {
                1 => "no agent is left: the only one of use is excluded".to_owned(),
                _ => format!("no agent is left: all {agents} of use are excluded"),
            },
            RunEvent::StallWatch(waits) => waiting::sentence(waits),
            RunEvent::AgentLost { host, .. } => format!("{host} is lost"),
            RunEvent::Demand(DemandCall::Suppress) => {
                "offers suppressed: nothing more can be placed".to_owned()
            }
            RunEvent::Demand(DemandCall::Revive) => {
                "offers revived: there is room again".to_owned()
            }
            RunEvent::Overflow { offers } => {
                format!("{} declined: the queue was full", count(*offers as u64, "offer"))
            }
            RunEvent::CallFailed { why, calls: 1 } => format!("a call failed: {}", printable(why)),
            RunEvent::CallFailed { why, calls } => {
                format!("{} failed; the last: {}", count(*calls, "call"), printable(why))
            }
            RunEvent::Shuffle { news, port } => shuffle::sentence(news, *port),
            RunEvent::JournalEnded { why } => {
                format!("the journal was given up: {}; the run goes on", printable(why))
            }
            RunEvent::Refused { why } => format!("the cluster can't be had: {}", printable(why)),
            RunEvent::Panicked { why } => format!(
                "internal error, a batch of offers was declined: {}; please report it",
                printable(why)
            ),
            RunEvent::Broken { why } => {
                format!("internal error, the run can't go on: {}; please report it", printable(why))
            }
            RunEvent::LimitSet { from, to, why } => format!("{}: {why}", limit_change(*from, *to)),
            RunEvent::KillAsked { executors, why } => {
                format!("asked to end: {}: {why}", printable(&list(executors)))
            }
            RunEvent::Answered(Answer::Done(text) | Answer::Refused(text)) => printable(text),
            // Further lines stand below the first.
            RunEvent::Answered(Answer::Block(text)) => {
                text.trim_end().replace('\n', "\n           ")
            }
            RunEvent::Answered(Answer::Object(object)) => object.to_string(),
            RunEvent::Stopping { why, timeout, executors, by_signal } => {
                stopping(why, *timeout, *executors, *by_signal)
            }
        }
    }
}

fn ended(record: &ExecutorInfo) -> String {
    let ExecutorInfo { name, host, state, .. } = record;
    let ran = passed(record.ran().unwrap_or_default());
    let message = printable(&record.message);
    let after = if state == &State::Lost { "lost on" } else { state.as_str() };
    let on = if state == &State::Lost { "" } else { "on " };
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{name} {after} {on}{host} after {ran}{colon}{message}")
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

/// As in `etl-1 placed on agent-1: 1 core, 512 MiB`.
fn taken(record: &ExecutorInfo, how: &str, replaces: Option<&str>) -> String {
    let ExecutorInfo { name, host, cores, memory, gpus, port, .. } = record;
    let mut text = format!("{name} {how} {host}");
    if let Some(replaced) = replaces {
        text.push_str(&format!(" in place of {replaced}"));
    }
    let plural = if cores.millis() == 1000 { "" } else { "s" };
    text.push_str(&format!(": {cores} core{plural}, {memory}"));
    if gpus.get() > 0 {
        text.push_str(&format!(", {}", count(u64::from(gpus.get()), "GPU")));
    }
    if let Some(port) = port {
        text.push_str(&format!(", port {port}"));
    }
    text
}

fn about(record: &ExecutorInfo, what: &str, message: &str) -> String {
    let ExecutorInfo { name, host, .. } = record;
    match message {
        "" => format!("{name} {what} on {host}"),
        message => format!("{name} {what} on {host}: {}", printable(message)),
    }
}

fn stopping(why: &str, timeout: Duration, executors: usize, by_signal: bool) -> String {
    if executors == 0 || timeout.is_zero() {
        return format!("stopping: {why}");
    }
    let (timeout, executors) = (format_duration(timeout), count(executors as u64, "executor"));
    if by_signal {
        return format!(
            "stopping: waiting up to {timeout} for {executors}, Ctrl-C again to end at once"
        );
    }
    format!("stopping: {why}; waiting up to {timeout} for {executors}, Ctrl-C to end at once")
}
