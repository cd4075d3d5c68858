//! The summary of a run, as text.

use console::{measure_text_width, style};

use super::facts::{Verdict, facts, real_time, verdict};
use super::order::Order;
use super::world::Outcome;

/// The width of headings.
const HEADING: usize = 12;
/// Text is never narrower.
const TEXT_MIN: usize = 24;

/// The summary as text of at most `width` columns, except where a word is longer.
pub(super) fn render(outcome: &Outcome<'_>, order: &Order, width: usize) -> String {
    let (sentence, verdict) = verdict(outcome);
    let sentence = match verdict {
        Verdict::Good => style(sentence).green(),
        Verdict::Bad => style(sentence).red(),
        Verdict::Unknown => style(sentence).yellow(),
    };
    let mut text = format!("{}: {sentence}\n\n", style(&outcome.task.title).bold());
    let mut note = |heading: &str, lines: &[String]| {
        let mut heading = heading;
        for line in lines.iter().flat_map(|line| wrap(line, width.saturating_sub(HEADING + 1))) {
            text.push_str(&format!("{} {line}\n", style(format!("{heading:<HEADING$}")).dim()));
            heading = "";
        }
    };
    for fact in facts(outcome) {
        note(fact.heading, &fact.lines);
    }
    let real = real_time(outcome);
    note(real.heading, &real.lines);
    // What is to be copied is not broken up.
    let mut whole = |heading: &str, line: &str| {
        text.push_str(&format!("{} {line}\n", style(format!("{heading:<HEADING$}")).dim()));
    };
    if outcome.broken.is_none() {
        whole("again", &outcome.task.again);
    }
    if let Some(target) = &order.report {
        whole("report", &target.path().display().to_string());
    }
    text
}

/// Breaks a line between words.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(TEXT_MIN);
    if measure_text_width(line) <= width {
        return vec![line.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let Some(last) = lines.last_mut() else { break };
        if !last.is_empty() && measure_text_width(last) + 1 + measure_text_width(word) > width {
            lines.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lines fit and no word is lost. Method: a sentence at many widths.
    #[test]
    fn lines_fit() {
        let line = "12 345 answered: 67 accepted, 12 278 declined, and a word or two more";
        for width in 20..90 {
            let lines = wrap(line, width);
            assert!(
                lines.iter().all(|line| line.chars().count() <= width.max(TEXT_MIN)),
                "{lines:?}"
            );
            assert_eq!(lines.join(" "), line);
        }
    }
}
