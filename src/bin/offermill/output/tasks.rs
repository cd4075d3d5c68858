//! Tasks in the output: their events, their progress, and what the summary says of them.

use console::Style;
use serde_json::{Value, json};

use crate::model::task::{TaskChange, TaskCounts, TaskEvent, TooLargeTasks};
use crate::text::format::{count, grouped};
use crate::text::styled::StyledText;

/// The most columns of a bar.
const BAR_COLUMNS_MAX: usize = 60;
/// The columns of what is beside the bar.
const BESIDE_BAR: usize = 12;

/// What the summary says of tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskSummary {
    pub(crate) counts: TaskCounts,
    /// The first tasks that failed or were skipped.
    pub(crate) failed: Vec<TaskEvent>,
    /// The results file.
    pub(crate) results: String,
}

/// As in `task etl-7 failed on agent-1 after 2 attempts and is started again: exit code 1; output in …/stdout`.
pub(crate) fn task_sentence(event: &TaskEvent) -> String {
    let TaskEvent { id, what, attempts, host, why, output } = event;
    let verb = match what {
        TaskChange::Retried => TaskChange::Failed.as_str(),
        TaskChange::Lost => "was lost",
        TaskChange::NotStarted => "was not started",
        TaskChange::Waiting => "waits",
        TaskChange::Stopped => "was stopped with the run",
        TaskChange::Skipped => "is skipped",
        TaskChange::Succeeded | TaskChange::Failed => what.as_str(),
    };
    let on = if host.is_empty() || *what == TaskChange::Waiting {
        String::new()
    } else {
        format!(" on {host}")
    };
    let after = match (what, attempts) {
        (TaskChange::Skipped | TaskChange::Waiting, _) | (_, 0 | 1) => String::new(),
        (_, attempts) => format!(" after {attempts} attempts"),
    };
    let again = match what {
        TaskChange::Retried | TaskChange::Lost => " and is started again",
        TaskChange::NotStarted => " and is tried again",
        _ => "",
    };
    let colon = if why.is_empty() { "" } else { ": " };
    let output = match (what, output) {
        (TaskChange::Failed | TaskChange::Retried, Some(file)) => format!("; output in {file}"),
        _ => String::new(),
    };
    format!("task {id} {verb}{on}{after}{again}{colon}{why}{output}")
}

/// The keys of a task's event.
pub(crate) fn task_object(event: &TaskEvent) -> Value {
    let TaskEvent { id, what, attempts, host, why, output } = event;
    json!({
        "id": id, "state": what.as_str(), "attempts": attempts, "host": host, "reason": why,
        "output": output,
    })
}

/// The keys of the numbers of tasks.
pub(crate) fn counts_object(counts: &TaskCounts) -> Value {
    json!({
        "all": counts.all, "succeeded_before": counts.before, "succeeded": counts.succeeded,
        "failed": counts.failed, "skipped": counts.skipped, "running": counts.running,
        "waiting": counts.waiting(), "retried": counts.retried,
    })
}

/// The keys of tasks that fit on no agent that has made an offer.
pub(crate) fn too_large_object(waiting: &TooLargeTasks) -> Value {
    let TooLargeTasks { id, tasks, why } = waiting;
    json!({ "id": id, "tasks": tasks, "reason": why })
}

/// As in `120 of 10 000 tasks ended: 118 succeeded, 2 failed; 8 running, 9 872 waiting`.
pub(crate) fn progress_sentence(counts: &TaskCounts) -> String {
    let (ended, all) = (grouped(counts.ended()), count(counts.all, "task"));
    let mut parts = vec![(counts.before, "succeeded before"), (counts.succeeded, "succeeded")];
    parts.extend([(counts.failed, "failed"), (counts.skipped, "skipped")]);
    let ends = join(&parts);
    let rest = join(&[(counts.running, "running"), (counts.waiting(), "waiting")]);
    let colon = if ends.is_empty() { "" } else { ": " };
    let semicolon = if rest.is_empty() { "" } else { "; " };
    format!("{ended} of {all} ended{colon}{ends}{semicolon}{rest}")
}

/// Those of the numbers that aren't 0, with their words.
fn join(parts: &[(u64, &str)]) -> String {
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let texts: Vec<String> =
        parts.map(|(number, word)| format!("{} {word}", grouped(*number))).collect();
    texts.join(", ")
}

/// As in `all 10 000 tasks have succeeded`, or `2 of 10 tasks have failed, 1 was skipped`.
pub(crate) fn end_of_tasks(counts: &TaskCounts) -> String {
    let all = count(counts.all, "task");
    if counts.have_all_succeeded() {
        return match counts.all {
            1 => "the task has succeeded".to_owned(),
            _ => format!("all {all} have succeeded"),
        };
    }
    let skipped = match counts.skipped {
        0 => String::new(),
        skipped => format!(", {} skipped", grouped(skipped)),
    };
    format!("of {all} {} failed{skipped}", grouped(counts.failed))
}

/// The bar and the numbers below it, for a terminal with this many columns.
pub(crate) fn bar(counts: &TaskCounts, columns: usize) -> [StyledText; 2] {
    let width = columns.saturating_sub(BESIDE_BAR).clamp(10, BAR_COLUMNS_MAX);
    let share = |number: u64| {
        let all = u128::from(counts.all.max(1));
        usize::try_from(u128::from(number) * width as u128 / all).unwrap_or(width)
    };
    let bad = share(counts.failed + counts.skipped);
    let done = share(counts.ended()).saturating_sub(bad);
    let percent = counts.ended() * 100 / counts.all.max(1);
    let line = StyledText::styled(&"━".repeat(done), &Style::new().cyan())
        .and_styled(&"━".repeat(bad), &Style::new().red())
        .and_styled(&"━".repeat(width - done - bad), &Style::new().dim())
        .and(&format!(" {percent:>3} %"));
    [line, StyledText::plain(&progress_sentence(counts))]
}

/// The notes of the summary: a heading, a sentence, and its style.
pub(crate) fn notes(summary: &TaskSummary) -> Vec<(String, String, Style)> {
    let TaskSummary { counts, failed, results } = summary;
    let style = match counts.have_all_succeeded() {
        true => Style::new().green(),
        false => Style::new().red(),
    };
    let retried = match counts.retried {
        0 => String::new(),
        1 => "; 1 attempt was repeated".to_owned(),
        retried => format!("; {} attempts were repeated", grouped(retried)),
    };
    let mut notes =
        vec![("tasks".to_owned(), format!("{}{retried}", progress_sentence(counts)), style)];
    for event in failed {
        notes.push((String::new(), task_sentence(event), Style::new().red()));
    }
    let more = (counts.failed + counts.skipped).saturating_sub(failed.len() as u64);
    if more > 0 {
        notes.push((String::new(), format!("and {} more", grouped(more)), Style::new().red()));
    }
    notes.push(("results".to_owned(), results.clone(), Style::new()));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: sentences name what there is, and nothing else. Method: counts and events of each kind.
    #[test]
    fn sentences_say_what_happened() {
        let none = TaskCounts { all: 3, ..TaskCounts::default() };
        assert_eq!(progress_sentence(&none), "0 of 3 tasks ended; 3 waiting");
        let mixed = TaskCounts { succeeded: 1, failed: 1, skipped: 1, ..none };
        let expected = "3 of 3 tasks ended: 1 succeeded, 1 failed, 1 skipped";
        assert_eq!(progress_sentence(&mixed), expected);
        assert_eq!(end_of_tasks(&mixed), "of 3 tasks 1 failed, 1 skipped");
        let all = TaskCounts { before: 1, succeeded: 2, ..none };
        assert_eq!(end_of_tasks(&all), "all 3 tasks have succeeded");
        let event = TaskEvent {
            id: "a".to_owned(),
            what: TaskChange::Failed,
            attempts: 2,
            host: "h".to_owned(),
            why: "exit code 1".to_owned(),
            output: Some("/s/stdout".to_owned()),
        };
        let expected = "task a failed on h after 2 attempts: exit code 1; output in /s/stdout";
        assert_eq!(task_sentence(&event), expected);
        let waits = TaskEvent { what: TaskChange::Waiting, why: "why".to_owned(), ..event };
        assert_eq!(task_sentence(&waits), "task a waits: why");
    }

    /// Goal: the bar has a part for what has succeeded, one for what has failed or was skipped and one for the rest,
    /// each in its colour and as long as its share, and the share of all ends. Method: terminals that are too narrow,
    /// narrow and wide, and counts of a hundred tasks, also none and all.
    #[test]
    fn the_bar_has_the_shares() {
        let styles = [Style::new().cyan(), Style::new().red(), Style::new().dim()];
        for (columns, width) in [(1, 10), (32, 20), (300, 60)] {
            for (succeeded, failed, skipped) in [(0, 0, 0), (35, 10, 5), (100, 0, 0), (0, 0, 100)] {
                let counts =
                    TaskCounts { all: 100, succeeded, failed, skipped, ..TaskCounts::default() };
                let bad = (failed + skipped) as usize * width / 100;
                let done = (succeeded + failed + skipped) as usize * width / 100 - bad;
                let mut expected = StyledText::new();
                for (part, style) in [done, bad, width - done - bad].iter().zip(&styles) {
                    expected = expected.and_styled(&"━".repeat(*part), style);
                }
                let percent = succeeded + failed + skipped;
                let [line, below] = bar(&counts, columns);
                assert_eq!(line.as_str(), expected.and(&format!(" {percent:>3} %")).as_str());
                assert_eq!(line.width(), width + 6);
                assert_eq!(below.as_str(), progress_sentence(&counts));
            }
        }
    }
}
