//! The table renderer for terminals: a live table at the bottom, and notable events that scroll by above it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::{Style, Term, measure_text_width};
use offermill::Timestamp;

use crate::model::event::{EventSeverity, TimedEvent};
use crate::model::executor::{ExecutorRecord, ExecutorState, short_name};
use crate::model::target::{AgentCounts, RunTarget};
use crate::output::lines;
use crate::output::messages::left_out;
use crate::output::renderer::Renderer;
use crate::output::stall::stall_sentence;
use crate::output::summary::{self, Summary, colour};
use crate::output::tasks::bar;
use crate::output::totals;
use crate::output::view::RunView;
use crate::settings::RunSettings;
use crate::text::columns::{Column, TableCell, lay_out};
use crate::text::format::{age, count, grouped};
use crate::text::stdout::{Rank, Writer};
use crate::text::styled::StyledText;

/// The least time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// How long ended executors keep a prominent row.
const RECENT_END: Duration = Duration::from_secs(10);
/// The most bytes of lines that wait to be put above the table, for example while a terminal is stopped (Ctrl-S).
const PENDING_BYTES_MAX: usize = 256 * 1024;
/// The longest wait until the cursor is shown again.
const CURSOR_TIMEOUT: Duration = Duration::from_millis(200);
/// The number of lines around the rows: a blank one, two of title, a blank one, the heading, "and more", a blank one,
/// the stall, the totals.
const FRAME_LINES: usize = 9;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_LINE_END: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

const COLUMNS: [Column; 7] = [
    Column::text("EXECUTOR"),
    Column::text("AGENT"),
    Column::text("STATE"),
    Column::number("CORES"),
    Column::number("MEMORY"),
    Column::number("AGE"),
    Column::text("MESSAGE"),
];

/// Draws the live table.
pub(crate) struct TableRenderer {
    terminal: Term,
    writer: Arc<Writer>,
    /// Lines that wait to be put above the table.
    pending: StyledText,
    /// How many lines were left out because too many waited.
    pending_left_out: u64,
    /// The widths of the lines of the last frame.
    drawn: Vec<usize>,
    drawn_at: Option<Instant>,
    is_hidden: bool,
}

impl TableRenderer {
    pub(crate) fn new(terminal: Term, writer: Arc<Writer>) -> TableRenderer {
        TableRenderer {
            terminal,
            writer,
            pending: StyledText::new(),
            pending_left_out: 0,
            drawn: Vec::new(),
            drawn_at: None,
            is_hidden: false,
        }
    }

    /// Each text depends on what the terminal shows, so none may be left out.
    fn print(&self, text: &str) -> io::Result<()> {
        self.writer.offer(text, Rank::Result, left_out)
    }

    /// The rows and columns that can be used without wrapping a line or scrolling the top away.
    fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.size();
        (usize::from(rows).max(2) - 1, usize::from(columns).max(2) - 1)
    }

    /// Replaces the last frame with the pending lines and `lines`.
    fn draw(&mut self, lines: &[StyledText]) -> io::Result<()> {
        let columns = self.size().1 + 1;
        let mut text = String::new();
        // A terminal that became narrower has wrapped the last frame.
        let above: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        if above > 0 {
            let _infallible = write!(text, "\x1b[{above}A");
        }
        text.push('\r');
        for line in std::mem::take(&mut self.pending).as_str().lines() {
            let _infallible = writeln!(text, "{line}{}", clear_after(line, columns));
        }
        let left_out = match std::mem::take(&mut self.pending_left_out) {
            0 => None,
            lines => Some(StyledText::plain(&format!("… {}", left_out(lines)))),
        };
        for line in left_out.iter().chain(lines) {
            let _infallible = writeln!(text, "{line}{}", clear_after(line.as_str(), columns));
        }
        text.push_str(CLEAR_BELOW);
        self.drawn = lines.iter().map(StyledText::width).collect();
        self.print(&text)
    }

    fn frame(&self, view: &RunView<'_>) -> Vec<StyledText> {
        let (rows, columns) = self.size();
        let mut lines = vec![StyledText::new(), title(view, columns)];
        match &view.tasks {
            Some(counts) => lines.extend(bar(counts, columns)),
            None => lines.push(states(view)),
        }
        let room = rows.saturating_sub(FRAME_LINES);
        let total = view.run_state.records().count() as u64 + view.run_state.forgotten;
        if total > 0 && room > 0 && view.tasks.is_none() {
            let shown = choose(view, room);
            let cells: Vec<Vec<TableCell>> =
                shown.iter().map(|record| row(record, view.now, columns)).collect();
            lines.push(StyledText::new());
            lines.extend(lay_out(&COLUMNS, &cells, columns));
            if let Some(rest) = rest(view, &shown, total) {
                lines.push(rest);
            }
        }
        lines.push(StyledText::new());
        if let Some(stall) = view.stall {
            lines.push(StyledText::styled(&stall_sentence(stall), &Style::new().yellow()));
        }
        let offers = totals::offers(&view.counts);
        let rate = totals::rate(view.offers_per_second);
        let heading = StyledText::styled("offers", &Style::new().dim());
        lines.push(heading.and(&format!(" {rate}, {offers}")));
        lines.truncate(rows);
        lines.iter().map(|line| line.truncated(columns)).collect()
    }
}

/// Clears what is behind a line. Nothing is if it fills its last row: the cursor is at its last character then, which
/// would be cleared.
fn clear_after(line: &str, columns: usize) -> &'static str {
    match measure_text_width(line) {
        width if width > 0 && width.is_multiple_of(columns) => "",
        _ => CLEAR_LINE_END,
    }
}

/// The title: the name on the left, the time on the right.
fn title(view: &RunView<'_>, columns: usize) -> StyledText {
    let RunSettings { name, target: RunTarget { master, .. }, .. } = view.settings;
    let verb = if view.is_stopping { "stopping" } else { "running" };
    let right = format!("{verb} for {}", age(view.now.since(Timestamp::ORIGIN)));
    let left = StyledText::styled(name, &Style::new().bold()).and(&format!(" on {master}"));
    let gap = columns.saturating_sub(left.width() + right.len());
    left.and(&" ".repeat(gap.max(1))).and_styled(&right, &Style::new().dim())
}

/// The line of the number of executors in each state, with the goal or the limit.
fn states(view: &RunView<'_>) -> StyledText {
    let goal = view.settings.until_finished;
    let mut parts: Vec<(String, Style)> = Vec::new();
    for state in ExecutorState::ALL {
        let number = view.run_state.count(state);
        let text = match goal {
            Some(goal) if state == ExecutorState::Finished => {
                let number = view.run_state.finished();
                format!("{} of {} finished", grouped(number), grouped(u64::from(goal)))
            }
            _ if number > 0 || state == ExecutorState::Running => {
                format!("{} {}", grouped(number), state.as_str())
            }
            _ => continue,
        };
        parts.push((text, if number > 0 { colour(state) } else { Style::new() }));
    }
    let excluded = view.run_state.excluded(view.now);
    if excluded > 0 {
        let text = match view.settings.target.agents {
            Some(AgentCounts { all, .. }) => {
                format!("{excluded} of {} excluded", count(all as u64, "agent"))
            }
            None => format!("{} excluded", count(excluded as u64, "agent")),
        };
        parts.push((text, Style::new().red()));
    }
    if let (Some(limit), None) = (view.limit, goal) {
        parts.push((format!("limit {}", grouped(u64::from(limit))), Style::new()));
    }
    if !view.run_state.is_connected && !view.is_stopping {
        parts.push(("not connected".to_owned(), Style::new().red()));
    }
    let dim = Style::new().dim();
    parts.iter().enumerate().fold(StyledText::new(), |line, (place, (text, style))| {
        let line = if place > 0 { line.and_styled(" · ", &dim) } else { line };
        line.and_styled(text, style)
    })
}

/// The most interesting executors, in the order in which they were placed.
fn choose<'a>(view: &RunView<'a>, room: usize) -> Vec<&'a ExecutorRecord> {
    let interest = |record: &ExecutorRecord| {
        let is_recent = view.now.since(record.changed_at) < RECENT_END;
        match record.state {
            ExecutorState::Unreachable | ExecutorState::GivenUp => 0,
            ExecutorState::Failed | ExecutorState::Lost if is_recent => 1,
            ExecutorState::Ending => 2,
            ExecutorState::Starting => 3,
            ExecutorState::Running => 4,
            ExecutorState::Finished | ExecutorState::Killed if is_recent => 5,
            ExecutorState::Failed | ExecutorState::Lost => 6,
            ExecutorState::Finished | ExecutorState::Killed => 7,
        }
    };
    let mut order: Vec<(usize, usize, &ExecutorRecord)> = view
        .run_state
        .records()
        .rev()
        .enumerate()
        .map(|(place, record)| (interest(record), place, record))
        .collect();
    order.sort_by_key(|(interest, place, _)| (*interest, *place));
    let chosen: BTreeSet<usize> = order.iter().take(room).map(|(_, place, _)| *place).collect();
    let placed = view.run_state.records().rev().enumerate();
    let mut shown: Vec<&ExecutorRecord> =
        placed.filter(|(place, _)| chosen.contains(place)).map(|(_, record)| record).collect();
    shown.reverse();
    shown
}

fn row(record: &ExecutorRecord, now: Timestamp, columns: usize) -> Vec<TableCell> {
    let style = colour(record.state);
    let quiet = if record.state.is_end() { Style::new().dim() } else { Style::new() };
    let quiet = |text: &str| TableCell::new(text, quiet.clone());
    let message = record.message.split(", output in ").next().unwrap_or_default();
    vec![
        quiet(&short_name(&record.name, columns)),
        quiet(&record.host),
        TableCell::new(record.state.as_str(), style),
        quiet(&record.resources.cores.to_string()),
        quiet(&record.resources.memory.to_string()),
        quiet(&age(record.age(now))),
        quiet(message),
    ]
}

/// The executors without a row, as in `… and 37 more: 30 running, 7 finished`.
fn rest(view: &RunView<'_>, shown: &[&ExecutorRecord], total: u64) -> Option<StyledText> {
    let more = total - shown.len() as u64;
    if more == 0 {
        return None;
    }
    let hidden = ExecutorState::ALL.into_iter().map(|state| {
        let visible = shown.iter().filter(|record| record.state == state).count() as u64;
        (state, view.run_state.count(state) - visible)
    });
    let hidden: Vec<String> = hidden
        .filter(|(_, number)| *number > 0)
        .map(|(state, number)| format!("{} {}", grouped(number), state.as_str()))
        .collect();
    let text = format!("… and {} more: {}", grouped(more), hidden.join(", "));
    Some(StyledText::styled(&text, &Style::new().dim()))
}

impl Renderer for TableRenderer {
    fn show_start(&mut self, settings: &RunSettings) -> io::Result<()> {
        if let Some(page) = lines::page(settings) {
            self.pending.push_line(&StyledText::plain(&page));
        }
        self.is_hidden = true;
        self.print(HIDE_CURSOR)
    }

    fn show_event(&mut self, event: &TimedEvent) -> io::Result<()> {
        if event.event.severity() != EventSeverity::Routine {
            if self.pending.as_str().len() < PENDING_BYTES_MAX {
                self.pending.append(&lines::line(event));
            } else {
                self.pending_left_out += 1;
            }
        }
        Ok(())
    }

    fn refresh(&mut self, view: &RunView<'_>) -> io::Result<()> {
        if self.drawn_at.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL) {
            return Ok(());
        }
        // While the terminal accepts nothing, more frames are useless.
        if !self.writer.is_idle()? {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let frame = self.frame(view);
        self.draw(&frame)
    }

    fn show_summary(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let columns = self.size().1;
        self.draw(&[])?;
        self.restore_terminal();
        self.print(&format!("\n{}", summary::render(summary, columns)))
    }

    fn restore_terminal(&mut self) {
        if self.is_hidden {
            self.is_hidden = false;
            // A closed terminal has no cursor.
            let _gone = self.print(SHOW_CURSOR);
        }
    }
}

impl Drop for TableRenderer {
    fn drop(&mut self) {
        if self.is_hidden {
            self.restore_terminal();
            let _gone = self.writer.drain(CURSOR_TIMEOUT, || false);
        }
    }
}
