//! The end of a run: what ran where, how long, how it ended, and why offers were declined.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use console::{Style, style};
use offermill::{Declined, OfferCounts};

use crate::exit::Exit;
use crate::model::event::Exclusion;
use crate::model::executor::{AgentRecord, ExecutorInfo, State, short_name};
use crate::model::state::RunState;
use crate::model::waiting::{self, Waits};
use crate::output::totals;
use crate::target::Sandboxes;
use crate::text::clock::time_for_people;
use crate::text::columns::{Cell, Column, lay_out};
use crate::text::format::{age, count, grouped, passed, printable};

/// So many executors are listed one by one; of more, those that ended well are only counted.
const LISTED_MAX: usize = 50;
/// So many agents are listed one by one.
const AGENTS_LISTED_MAX: usize = 20;

/// What there is to say at the end.
pub(crate) struct Summary<'a> {
    pub(crate) name: &'a str,
    /// Why the run ended.
    pub(crate) ending: String,
    pub(crate) exit: Exit,
    pub(crate) ran: Duration,
    pub(crate) roster: &'a RunState,
    /// Executors that had not ended within the timeout.
    pub(crate) left: Vec<&'a str>,
    /// What became of them, in a word or two.
    pub(crate) left_state: &'static str,
    pub(crate) counts: OfferCounts,
    /// Why executors were waited for when the run was stopped, if they were.
    pub(crate) waiting: Option<&'a Waits>,
    /// Why offers were declined, with the nearest misses.
    pub(crate) declined: Vec<Declined>,
    pub(crate) sandboxes: &'a Sandboxes,
    /// How many shuffle services stand how.
    pub(crate) shuffle: serde_json::Value,
}

impl Summary<'_> {
    /// How an executor ended.
    pub(crate) fn state_of(&self, record: &ExecutorInfo) -> &'static str {
        if self.left.contains(&record.name.as_str()) || !record.state.is_end() {
            self.left_state
        } else {
            record.state.as_str()
        }
    }

    /// How long an executor ran.
    pub(crate) fn ran(&self, record: &ExecutorInfo) -> Duration {
        let end = offermill::Timestamp::ORIGIN.plus(self.ran);
        record.age(end)
    }

    /// The last exclusion of each agent that was excluded.
    fn exclusions(&self) -> impl Iterator<Item = &Exclusion> {
        self.roster.agents.values().filter_map(|agent| agent.exclusions.last())
    }
}

/// The summary as text of at most `width` columns.
pub(crate) fn render(summary: &Summary<'_>, width: usize) -> String {
    let Summary { name, ending, exit, ran, roster, .. } = summary;
    let verdict = match exit {
        Exit::Done => style(ending).green(),
        _ => style(ending).red(),
    };
    let mut text = format!(
        "{} ran for {} and ended: {verdict} (exit code {})\n",
        style(name).bold(),
        passed(*ran),
        exit.code()
    );
    let listed = listed(summary);
    if !listed.is_empty() {
        text.push('\n');
        let rows: Vec<Vec<Cell>> =
            listed.iter().map(|record| row(summary, record, width)).collect();
        for line in lay_out(&COLUMNS, &rows, width) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let all = roster.records().count();
        let more = (all - listed.len()) as u64 + roster.forgotten;
        if more > 0 {
            text.push_str(&format!("… and {} more\n", grouped(more)));
        }
    }
    text.push('\n');
    let mut note = |heading: &str, sentence: String| {
        let heading = style(format!("{heading:<10}")).dim();
        text.push_str(&format!("{heading} {sentence}\n"));
    };
    let hosts = by_host(summary);
    for (host, ends) in hosts.iter().take(AGENTS_LISTED_MAX) {
        note(host, ends.clone());
    }
    if hosts.len() > AGENTS_LISTED_MAX {
        note("…", format!("and {} more agents", grouped((hosts.len() - AGENTS_LISTED_MAX) as u64)));
    }
    if roster.finished_before > 0 {
        note("before", format!("{} finished in a former run", grouped(roster.finished_before)));
    }
    if roster.replaced > 0 {
        note("replaced", count(roster.replaced, "executor"));
    }
    for exclusion in summary.exclusions().take(AGENTS_LISTED_MAX) {
        note("excluded", style(exclusion_at_end(exclusion)).yellow().to_string());
    }
    if let Some(waits) = summary.waiting {
        note("at the end", style(waiting::sentence(waits)).yellow().to_string());
    }
    note("offers", totals::offers(&summary.counts));
    let end = offermill::Timestamp::ORIGIN.plus(summary.ran);
    for declined in summary.declined.iter().filter(|declined| waiting::relevant(declined).is_some())
    {
        note("declined", waiting::declined_sentence(declined, end));
    }
    for (heading, sentence) in summary.sandboxes.told(roster) {
        note(heading, sentence);
    }
    text
}

const COLUMNS: [Column; 7] = [
    Column::text("EXECUTOR"),
    Column::text("AGENT"),
    Column::text("ENDED"),
    Column::number("RAN"),
    Column::number("CORES"),
    Column::number("MEMORY"),
    Column::text("HOW"),
];

fn row(summary: &Summary<'_>, record: &ExecutorInfo, width: usize) -> Vec<Cell> {
    let state = summary.state_of(record);
    let mut how = if record.state.is_end() { printable(&record.message) } else { String::new() };
    if let Some(by) = &record.replaced_by {
        let (comma, by) = (if how.is_empty() { "" } else { ", " }, short_name(by, width));
        how.push_str(&format!("{comma}replaced by {by}"));
    }
    vec![
        short_name(&record.name, width).into(),
        record.host.clone().into(),
        Cell { text: state.to_owned(), style: colour(record.state) },
        passed(summary.ran(record)).into(),
        record.cores.to_string().into(),
        record.memory.to_string().into(),
        how.into(),
    ]
}

/// The colour of a state, in the table and at the end.
pub(crate) fn colour(state: State) -> Style {
    match state {
        State::Running => Style::new().green(),
        State::Starting => Style::new().cyan(),
        State::Ending | State::Killed => Style::new().yellow(),
        State::Unreachable | State::GivenUp => Style::new().magenta(),
        State::Finished => Style::new().blue(),
        State::Failed | State::Lost => Style::new().red(),
    }
}

fn listed<'a>(summary: &Summary<'a>) -> Vec<&'a ExecutorInfo> {
    let all: Vec<&ExecutorInfo> = summary.roster.records().collect();
    if all.len() <= LISTED_MAX {
        return all;
    }
    let is_well = |record: &&ExecutorInfo| matches!(record.state, State::Finished | State::Killed);
    let (well, badly): (Vec<&ExecutorInfo>, Vec<&ExecutorInfo>) =
        all.into_iter().partition(is_well);
    badly.into_iter().rev().chain(well).take(LISTED_MAX).collect()
}

/// For each host, how its executors ended: `2 finished, 1 failed`.
fn by_host(summary: &Summary<'_>) -> BTreeMap<String, String> {
    let mut hosts: BTreeMap<String, [u64; State::ALL.len()]> = BTreeMap::new();
    for AgentRecord { host, counts, .. } in summary.roster.agents.values() {
        let sums = hosts.entry(host.clone()).or_default();
        sums.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
    }
    let text = |counts: [u64; State::ALL.len()]| {
        let mut ends = Vec::new();
        let mut forced = 0;
        for state in State::ALL {
            let number = counts[state as usize];
            if !state.is_end() {
                forced += number;
            } else if number > 0 {
                ends.push(format!("{} {}", grouped(number), state.as_str()));
            }
        }
        if forced > 0 {
            ends.push(format!("{} {}", grouped(forced), summary.left_state));
        }
        ends.join(", ")
    };
    hosts.into_iter().map(|(host, counts)| (host, text(counts))).collect()
}

fn exclusion_at_end(exclusion: &Exclusion) -> String {
    let Exclusion { host, failures, why, .. } = exclusion;
    let left = exclusion.ends.map(|ends| (ends, ends.duration_since(SystemTime::now())));
    let until = match left {
        None => "for ever".to_owned(),
        Some((ends, Ok(left))) => {
            // Seconds don't matter of what lasts for minutes.
            let step = if left.as_secs() < 120 { 1 } else { 60 };
            let left = Duration::from_secs(left.as_secs() / step * step);
            format!("until {} (in {})", time_for_people(ends), age(left))
        }
        Some((ends, Err(_))) => format!("until {} (over)", time_for_people(ends)),
    };
    let after = count(u64::from(*failures), "failure");
    format!("{host} after {after} {until}; the last: {}", printable(why))
}
