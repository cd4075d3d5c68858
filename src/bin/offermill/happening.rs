//! What happens during a run, as the faces are told, and each as a sentence.

use std::time::{Duration, SystemTime};

use offermill::config::text::format_duration;
use offermill::spark::shuffle::News;
use offermill::{DemandCall, Timestamp};

use crate::control::Answer;
use crate::record::{Record, State};
use crate::shuffle;
use crate::site::Leavings;
use crate::waiting::{self, Waits};
use crate::wall::time_for_people;
use crate::words::{count, passed, printable};
use crate::writer::Rank;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    /// When, on the engine's clock.
    pub(crate) at: Timestamp,
    /// What.
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A subscription began.
    Registered { framework_id: String, again: bool },
    /// It ended; what becomes of executors meanwhile.
    Disconnected(Leavings),
    /// An executor was placed.
    Placed { record: Record, replaces: Option<String> },
    /// A former run is gone on with.
    Resumed { finished: u64 },
    /// An executor of a former run was taken over.
    Adopted(Record),
    /// It runs.
    Running(Record),
    /// It was asked to end.
    Ending(Record),
    /// It is out of sight.
    OutOfSight(Record),
    /// It is back.
    Returned(Record),
    /// It is back, and there is no room for it any more.
    RefusedReturn(Record),
    /// It was out of sight for so long that it is replaced.
    GivenUp(Record),
    /// It has ended.
    Ended(Record),
    /// An agent gets no more executors.
    Excluded(Exclusion),
    /// All agents that can get executors are excluded.
    AllExcluded { agents: usize },
    /// Executors are wanted, and none could be placed for a while.
    Waiting(Waits),
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

impl What {
    /// How much it matters.
    pub(crate) fn weight(&self) -> Weight {
        match self {
            What::Ended(Record { state: State::Failed | State::Lost, .. })
            | What::Disconnected(_)
            | What::Excluded(_)
            | What::AllExcluded { .. }
            | What::AgentLost { .. }
            | What::CallFailed { .. }
            | What::Refused { .. }
            | What::Panicked { .. }
            | What::Broken { .. }
            | What::Shuffle { news: News::Failing { .. }, .. }
            | What::JournalEnded { .. }
            | What::RefusedReturn(_)
            | What::Answered(Answer::Refused(_))
            | What::GivenUp(_) => Weight::Bad,
            What::Registered { again: true, .. }
            | What::Placed { replaces: Some(_), .. }
            | What::Resumed { .. }
            | What::Shuffle { news: News::Registered { again: true, .. }, .. }
            | What::Adopted(_)
            | What::OutOfSight(_)
            | What::Returned(_)
            | What::Overflow { .. }
            | What::LimitSet { .. }
            | What::KillAsked { .. }
            | What::Answered(_)
            | What::Stopping { .. } => Weight::Notable,
            _ => Weight::Routine,
        }
    }

    /// The sentence, without the time.
    pub(crate) fn sentence(&self) -> String {
        match self {
            What::Registered { framework_id, again: false } => {
                format!("registered as {}", printable(framework_id))
            }
            What::Registered { framework_id, again: true } => {
                format!("registered again as {}", printable(framework_id))
            }
            What::Disconnected(leavings) => {
                format!("disconnected from the cluster; {}", leavings.meanwhile())
            }
            What::Placed { record, replaces } => taken(record, "placed on", replaces.as_deref()),
            What::Resumed { finished: 0 } => "this run goes on with a former one".to_owned(),
            What::Resumed { finished } => {
                let executors = count(*finished, "executor");
                format!("this run goes on with a former one, in which {executors} had finished")
            }
            What::Adopted(record) => taken(record, "taken over on", None),
            What::Running(record) => about(record, "running", &record.message),
            What::Ending(record) => about(record, "ending", &record.message),
            What::OutOfSight(record) => about(record, "out of sight", &record.message),
            What::Returned(record) => about(record, "back in sight", &record.message),
            What::RefusedReturn(record) => {
                about(record, "back too late, is ended", "its place was given to another")
            }
            What::GivenUp(record) => about(record, "given up", "out of sight for too long"),
            What::Ended(record) => ended(record),
            What::Excluded(exclusion) => exclusion.sentence(),
            What::AllExcluded { agents } => match agents {
                1 => "no agent is left: the only one of use is excluded".to_owned(),
                _ => format!("no agent is left: all {agents} of use are excluded"),
            },
            What::Waiting(waits) => waiting::sentence(waits),
            What::AgentLost { host, .. } => format!("{host} is lost"),
            What::Demand(DemandCall::Suppress) => {
                "offers suppressed: nothing more can be placed".to_owned()
            }
            What::Demand(DemandCall::Revive) => "offers revived: there is room again".to_owned(),
            What::Overflow { offers } => {
                format!("{} declined: the queue was full", count(*offers as u64, "offer"))
            }
            What::CallFailed { why, calls: 1 } => format!("a call failed: {}", printable(why)),
            What::CallFailed { why, calls } => {
                format!("{} failed; the last: {}", count(*calls, "call"), printable(why))
            }
            What::Shuffle { news, port } => shuffle::sentence(news, *port),
            What::JournalEnded { why } => {
                format!("the journal was given up: {}; the run goes on", printable(why))
            }
            What::Refused { why } => format!("the cluster can't be had: {}", printable(why)),
            What::Panicked { why } => format!(
                "internal error, a batch of offers was declined: {}; please report it",
                printable(why)
            ),
            What::Broken { why } => {
                format!("internal error, the run can't go on: {}; please report it", printable(why))
            }
            What::LimitSet { from, to, why } => format!("{}: {why}", limit_change(*from, *to)),
            What::KillAsked { executors, why } => {
                format!("asked to end: {}: {why}", printable(&list(executors)))
            }
            What::Answered(Answer::Done(text) | Answer::Refused(text)) => printable(text),
            // Further lines stand below the first.
            What::Answered(Answer::Block(text)) => text.trim_end().replace('\n', "\n           "),
            What::Answered(Answer::Object(object)) => object.to_string(),
            What::Stopping { why, timeout, executors, by_signal } => {
                stopping(why, *timeout, *executors, *by_signal)
            }
        }
    }
}

fn ended(record: &Record) -> String {
    let Record { name, host, state, .. } = record;
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
fn taken(record: &Record, how: &str, replaces: Option<&str>) -> String {
    let Record { name, host, cores, memory, gpus, port, .. } = record;
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

fn about(record: &Record, what: &str, message: &str) -> String {
    let Record { name, host, .. } = record;
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
