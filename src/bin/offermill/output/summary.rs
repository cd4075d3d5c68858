//! The summary at the end of a run: its executors and agents, its end reason, and why offers were declined.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use console::Style;
use offermill::{Declined, OfferCounts};

use crate::exit::ExitStatus;
use crate::model::cluster_use::ClusterUse;
use crate::model::executor::{
    AgentExclusion, AgentRecord, ExecutorRecord, ExecutorState, StateCounts, short_name,
};
use crate::model::state::RunState;
use crate::model::target::SandboxPlace;
use crate::model::unended::UnendedFate;
use crate::model::waiting::{Stall, relevant_miss};
use crate::output::capacity::use_sentence;
use crate::output::stall::{declined_sentence, stall_sentence};
use crate::output::tasks::{self, TaskSummary};
use crate::output::totals;
use crate::text::clock::short_time;
use crate::text::columns::{Column, TableCell, lay_out};
use crate::text::format::{age, count, grouped, passed};
use crate::text::styled::{StyledText, padded};

/// The most executors that are listed. If there are more, those that failed or were lost come first.
const LISTED_MAX: usize = 50;
/// The most agents that are listed.
const AGENTS_LISTED_MAX: usize = 20;
/// The least width of the headings below the executors, in columns.
const HEADING_COLUMNS: usize = 10;

/// The content of a summary.
pub(crate) struct Summary<'a> {
    pub(crate) name: &'a str,
    /// Why the run ended, as a sentence.
    pub(crate) ending: String,
    pub(crate) exit: ExitStatus,
    pub(crate) ran: Duration,
    pub(crate) run_state: &'a RunState,
    /// The names of executors that had not ended within the shutdown timeout.
    pub(crate) unended: HashSet<String>,
    /// What became of them.
    pub(crate) unended_fate: UnendedFate,
    pub(crate) counts: OfferCounts,
    /// Why no executor could be placed when the run was stopped, if that was so.
    pub(crate) stall: Option<&'a Stall>,
    /// Why offers were declined, with the nearest misses.
    pub(crate) declined: Vec<Declined>,
    /// What the cluster offered during the run.
    pub(crate) cluster_use: ClusterUse,
    pub(crate) sandboxes: &'a SandboxPlace,
    /// What became of tasks, if tasks were run.
    pub(crate) tasks: Option<TaskSummary>,
    /// The number of shuffle services in each state; null if there are none.
    pub(crate) shuffle: serde_json::Value,
}

impl Summary<'_> {
    /// How an executor ended.
    pub(crate) fn state_of(&self, record: &ExecutorRecord) -> &'static str {
        if self.unended.contains(&record.name) || !record.state.is_end() {
            self.unended_fate.of(record.state)
        } else {
            record.state.as_str()
        }
    }

    /// How long an executor ran.
    pub(crate) fn ran(&self, record: &ExecutorRecord) -> Duration {
        let end = offermill::Timestamp::ORIGIN.plus(self.ran);
        record.age(end)
    }

    /// The last exclusion of each agent that was excluded.
    fn exclusions(&self) -> impl Iterator<Item = &AgentExclusion> {
        self.run_state.agents.values().filter_map(|agent| agent.exclusions.last())
    }
}

/// The summary as text of at most `width` columns.
pub(crate) fn render(summary: &Summary<'_>, width: usize) -> StyledText {
    let mut text = StyledText::new();
    text.push_line(&first_line(summary));
    let listed = if summary.tasks.is_some() { Vec::new() } else { listed(summary) };
    if !listed.is_empty() {
        text.push_line(&StyledText::new());
        let rows: Vec<Vec<TableCell>> =
            listed.iter().map(|record| row(summary, record, width)).collect();
        for line in lay_out(&COLUMNS, &rows, width) {
            text.push_line(&line.trimmed());
        }
        let all = summary.run_state.records().count();
        let more = (all - listed.len()) as u64 + summary.run_state.forgotten;
        if more > 0 {
            text.push_line(&StyledText::plain(&format!("… and {} more", grouped(more))));
        }
    }
    text.push_line(&StyledText::new());
    let of_tasks = summary.tasks.as_ref().map(tasks::notes).unwrap_or_default();
    for (heading, sentence, style) in of_tasks.into_iter().chain(notes(summary)) {
        let heading = StyledText::styled(&padded(&heading, HEADING_COLUMNS), &Style::new().dim());
        text.push_line(&heading.and(" ").and_styled(&sentence, &style));
    }
    text
}

/// As in `etl ran for 12.3 s and ended: all 4 executors have finished (exit code 0)`.
fn first_line(summary: &Summary<'_>) -> StyledText {
    let Summary { name, ending, exit, ran, .. } = summary;
    let verdict = match exit {
        ExitStatus::Done => Style::new().green(),
        _ => Style::new().red(),
    };
    StyledText::styled(name, &Style::new().bold())
        .and(&format!(" ran for {} and ended: ", passed(*ran)))
        .and_styled(ending, &verdict)
        .and(&format!(" (exit code {})", exit.code()))
}

/// The lines below the executors: a heading, a sentence and its style.
fn notes(summary: &Summary<'_>) -> Vec<(String, String, Style)> {
    let run_state = summary.run_state;
    let mut notes = Vec::new();
    let mut add = |heading: &str, sentence: String, style: Style| {
        notes.push((heading.to_owned(), sentence, style));
    };
    let plain = Style::new;
    let hosts = by_host(summary);
    for (host, ends) in hosts.iter().take(AGENTS_LISTED_MAX) {
        add(host, ends.clone(), plain());
    }
    if hosts.len() > AGENTS_LISTED_MAX {
        let more = count((hosts.len() - AGENTS_LISTED_MAX) as u64, "more agent");
        add("…", format!("and {more}"), plain());
    }
    if run_state.finished_before > 0 {
        let finished = grouped(run_state.finished_before);
        add("before", format!("{finished} finished in a former run"), plain());
    }
    // Tasks say themselves what was started again.
    if run_state.replaced > 0 && summary.tasks.is_none() {
        add("replaced", count(run_state.replaced, "executor"), plain());
    }
    if run_state.denials > 0 {
        add("denied", format!("{} by the cluster", count(run_state.denials, "executor")), plain());
    }
    for exclusion in summary.exclusions().take(AGENTS_LISTED_MAX) {
        add("excluded", exclusion_at_end(exclusion), plain().yellow());
    }
    if let Some(stall) = summary.stall {
        add("at the end", stall_sentence(stall), plain().yellow());
    }
    add("offers", totals::offers(&summary.counts), plain());
    let end = offermill::Timestamp::ORIGIN.plus(summary.ran);
    let relevant = |declined: &&Declined| relevant_miss(declined).is_some();
    for declined in summary.declined.iter().filter(relevant) {
        add("declined", declined_sentence(declined, end), plain());
    }
    if let Some(sentence) = use_sentence(&summary.cluster_use, run_state.used_most) {
        add("cluster", sentence, plain());
    }
    for (heading, sentence) in sandbox_notes(summary.sandboxes, run_state) {
        add(heading, sentence, plain());
    }
    notes
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

fn row(summary: &Summary<'_>, record: &ExecutorRecord, width: usize) -> Vec<TableCell> {
    let state = summary.state_of(record);
    let mut how = if record.state.is_end() { record.message.clone() } else { String::new() };
    if let Some(by) = &record.replaced_by {
        let comma = if how.is_empty() { "" } else { ", " };
        let by = short_name(by, width);
        how.push_str(&format!("{comma}replaced by {by}"));
    }
    vec![
        short_name(&record.name, width).into(),
        record.host.as_str().into(),
        TableCell::new(state, colour(record.state)),
        passed(summary.ran(record)).into(),
        record.resources.cores.to_string().into(),
        record.resources.memory.to_string().into(),
        how.into(),
    ]
}

/// The colour of a state, in the live table and in the summary.
pub(crate) fn colour(state: ExecutorState) -> Style {
    match state {
        ExecutorState::Running => Style::new().green(),
        ExecutorState::Starting => Style::new().cyan(),
        ExecutorState::Ending | ExecutorState::Killed => Style::new().yellow(),
        ExecutorState::Unreachable | ExecutorState::GivenUp => Style::new().magenta(),
        ExecutorState::Finished => Style::new().blue(),
        ExecutorState::Failed | ExecutorState::Lost => Style::new().red(),
    }
}

fn listed<'a>(summary: &Summary<'a>) -> Vec<&'a ExecutorRecord> {
    let all: Vec<&ExecutorRecord> = summary.run_state.records().collect();
    if all.len() <= LISTED_MAX {
        return all;
    }
    let has_succeeded = |record: &&ExecutorRecord| {
        matches!(record.state, ExecutorState::Finished | ExecutorState::Killed)
    };
    let (succeeded, failed): (Vec<&ExecutorRecord>, Vec<&ExecutorRecord>) =
        all.into_iter().partition(has_succeeded);
    failed.into_iter().rev().chain(succeeded).take(LISTED_MAX).collect()
}

/// For each host name, how its executors ended: `2 finished, 1 failed`. Of tasks the hosts come last: `9 finished; 1
/// host`.
fn by_host(summary: &Summary<'_>) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, [StateCounts; 2]> = BTreeMap::new();
    for AgentRecord { host, counts, hosts, .. } in summary.run_state.agents.values() {
        let sums = names.entry(host.clone()).or_default();
        for state in ExecutorState::ALL.map(|state| state as usize) {
            sums[0][state] += counts[state] - hosts[state];
            sums[1][state] += hosts[state];
        }
    }
    let text = |[counts, hosts]: [StateCounts; 2]| {
        let mut text = ends(summary, counts);
        let hosts = ends_of_hosts(summary, hosts);
        if !text.is_empty() && !hosts.is_empty() {
            text.push_str("; ");
        }
        text + &hosts
    };
    names.into_iter().map(|(host, counts)| (host, text(counts))).collect()
}

/// As in `2 finished, 1 failed`.
fn ends(summary: &Summary<'_>, counts: StateCounts) -> String {
    let mut ends = Vec::new();
    let mut unended: BTreeMap<&str, u64> = BTreeMap::new();
    for state in ExecutorState::ALL {
        let number = counts[state as usize];
        if number > 0 && !state.is_end() {
            *unended.entry(summary.unended_fate.of(state)).or_default() += number;
        } else if number > 0 {
            ends.push(format!("{} {}", grouped(number), state.as_str()));
        }
    }
    let unended = unended.into_iter();
    ends.extend(unended.map(|(fate, number)| format!("{} {fate}", grouped(number))));
    ends.join(", ")
}

/// As in `2 hosts`, or `2 hosts, 1 failed`. That one has finished or was ended is as it should be.
fn ends_of_hosts(summary: &Summary<'_>, mut counts: StateCounts) -> String {
    let hosts: u64 = counts.iter().sum();
    if hosts == 0 {
        return String::new();
    }
    for state in [ExecutorState::Finished, ExecutorState::Killed] {
        counts[state as usize] = 0;
    }
    let others = ends(summary, counts);
    let comma = if others.is_empty() { "" } else { ", " };
    format!("{}{comma}{others}", count(hosts, "host"))
}

/// Where executors' output is: a heading and a text per line.
fn sandbox_notes(sandboxes: &SandboxPlace, run_state: &RunState) -> Vec<(&'static str, String)> {
    let framework_id = &run_state.framework_id;
    if framework_id.is_empty() {
        return Vec::new();
    }
    let on_hosts = |first: &str, folder: &dyn Fn(&str) -> String| {
        let agents = run_state.agents.iter().map(|(id, agent)| (&*agent.host, &**id));
        let mut agents: Vec<(&str, &str)> = agents.collect();
        agents.sort_unstable();
        let listed = agents.iter().take(AGENTS_LISTED_MAX);
        let folders = listed.map(|(host, id)| ("", format!("{host}: {}", folder(id))));
        let first = (!agents.is_empty()).then(|| ("output in", first.to_owned()));
        first.into_iter().chain(folders).collect()
    };
    match sandboxes {
        SandboxPlace::InPods => Vec::new(),
        SandboxPlace::Here(_) => vec![("output in", sandboxes.path(framework_id))],
        SandboxPlace::OnAgents => {
            on_hosts("agents' work folders, in executors/EXECUTOR/runs/latest of", &|id| {
                format!("slaves/{id}/frameworks/{framework_id}")
            })
        }
        SandboxPlace::OnWorkers => on_hosts("workers' work folders, in EXECUTOR of", &|id| {
            format!("sandboxes/{framework_id}/{id}")
        }),
    }
}

fn exclusion_at_end(exclusion: &AgentExclusion) -> String {
    let AgentExclusion { host, failures, why, .. } = exclusion;
    let left = exclusion.ends.map(|ends| (ends, ends.duration_since(SystemTime::now())));
    let until = match left {
        None => "for ever".to_owned(),
        Some((ends, Ok(left))) => {
            // From two minutes on, seconds are left out.
            let step = if left.as_secs() < 120 { 1 } else { 60 };
            let left = Duration::from_secs(left.as_secs() / step * step);
            format!("until {} (in {})", short_time(ends), age(left))
        }
        Some((ends, Err(_))) => format!("until {} (over)", short_time(ends)),
    };
    let after = count(u64::from(*failures), "failure");
    format!("{host} after {after} {until}; the last: {why}")
}
