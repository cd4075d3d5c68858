//! Renders the summary of a simulation as text for a terminal.

use console::{Style, measure_text_width};

use super::options::SimulateOptions;
use super::result::RunResult;
use super::rows::{CheckResult, check_result, real_time, rows};
use crate::text::styled::{StyledText, padded};

/// The width of headings, in columns.
const HEADING: usize = 12;
/// The minimum width of the text beside headings, in columns.
const TEXT_MIN: usize = 24;

/// Returns the summary as text of at most `width` columns, except where a word is longer.
pub(super) fn render(
    result: &RunResult<'_>,
    options: &SimulateOptions,
    width: usize,
) -> StyledText {
    let (sentence, checked) = check_result(result);
    let style = match checked {
        CheckResult::NoViolation => Style::new().green(),
        CheckResult::Violation => Style::new().red(),
        CheckResult::NotChecked => Style::new().yellow(),
    };
    let title = StyledText::styled(&result.options.title, &Style::new().bold());
    let mut text = title.and(": ").and_styled(&sentence, &style);
    text.append(&StyledText::lines("\n\n"));
    let text_width = width.saturating_sub(HEADING + 1);
    for row in rows(result).into_iter().chain([real_time(result)]) {
        let mut heading = row.heading;
        for line in row.lines.iter().flat_map(|line| wrap(line, text_width)) {
            push_line(&mut text, heading, &line);
            heading = "";
        }
    }
    // Commands and paths are not wrapped, so that they can be copied.
    if result.broken.is_none() {
        push_line(&mut text, "again", &result.options.again);
    }
    if let Some(file) = &options.report {
        push_line(&mut text, "report", &file.path().display().to_string());
    }
    text
}

fn push_line(text: &mut StyledText, heading: &str, line: &str) {
    let heading = StyledText::styled(&padded(heading, HEADING), &Style::new().dim());
    text.push_line(&heading.and(" ").and(line));
}

/// Wraps a line between words.
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

    /// Goal: wrapped lines fit the width and no word is lost. Method: wrap one sentence at many widths.
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
