//! The face for terminals: a live table at the bottom, with what matters scrolling by above it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use console::{Style, Term, measure_text_width, style, truncate_str};
use offermill::Timestamp;

use crate::model::event::{Happening, Weight};
use crate::model::executor::{ExecutorInfo, State, short_name};
use crate::model::waiting;
use crate::output::lines;
use crate::output::summary::{self, Summary, colour};
use crate::output::totals;
use crate::output::{Renderer, View, left_out};
use crate::settings::Settings;
use crate::target::{Agents, Target};
use crate::text::columns::{Cell, Column, lay_out};
use crate::text::format::{age, count, grouped, printable};
use crate::text::stdout::{Rank, Writer};

/// The table is redrawn at most so often.
const REDRAWN_EVERY: Duration = Duration::from_millis(200);
/// Ends are of interest for so long.
const NEWS_FOR: Duration = Duration::from_secs(10);
/// As many bytes may wait to be put above the table, as while a terminal is stopped (Ctrl-S).
const NEWS_BYTES_MAX: usize = 256 * 1024;
/// A terminal gets its cursor back within this time, or not at all.
const CURSOR_WITHIN: Duration = Duration::from_millis(200);
/// Lines around the rows: a blank one, two of title, one blank, the heading, "and more", one blank,
/// what is waited for, the totals.
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

/// Draws the table.
pub(crate) struct Table {
    terminal: Term,
    writer: Arc<Writer>,
    /// Lines that wait to be put above the table.
    news: String,
    /// How many there were no room for.
    news_left_out: u64,
    /// The widths of the lines drawn last.
    drawn: Vec<usize>,
    drawn_at: Option<Instant>,
    is_hidden: bool,
}

impl Table {
    /// Nothing drawn yet.
    pub(crate) fn new(terminal: Term, writer: Arc<Writer>) -> Table {
        let (news, drawn) = (String::new(), Vec::new());
        let (news_left_out, drawn_at, is_hidden) = (0, None, false);
        Table { terminal, writer, news, news_left_out, drawn, drawn_at, is_hidden }
    }

    /// Each text counts on what the terminal showed before, so none may be left out.
    fn print(&self, text: &str) -> io::Result<()> {
        self.writer.offer(text, Rank::Result, left_out)
    }

    /// Rows and columns that can be written to without a line wrapping or the top scrolling away.
    fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.size();
        (usize::from(rows).max(2) - 1, usize::from(columns).max(2) - 1)
    }

    /// Puts `lines` in the place of what was drawn last, below the news.
    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let columns = self.size().1 + 1;
        let mut text = String::new();
        // A terminal that became narrower has wrapped what was drawn.
        let above: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        if above > 0 {
            let _infallible = write!(text, "\x1b[{above}A");
        }
        text.push('\r');
        for line in self.news.lines() {
            let _infallible = writeln!(text, "{line}{CLEAR_LINE_END}");
        }
        self.news.clear();
        let left_out = match std::mem::take(&mut self.news_left_out) {
            0 => None,
            lines => Some(format!("… {}", left_out(lines))),
        };
        for line in left_out.iter().chain(lines) {
            let _infallible = writeln!(text, "{line}{CLEAR_LINE_END}");
        }
        text.push_str(CLEAR_BELOW);
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        self.print(&text)
    }

    fn frame(&self, view: &View<'_>) -> Vec<String> {
        let (rows, columns) = self.size();
        let mut lines = vec![String::new(), title(view, columns), states(view)];
        let room = rows.saturating_sub(FRAME_LINES);
        let total = view.roster.records().count() as u64 + view.roster.forgotten;
        if total > 0 && room > 0 {
            let shown = choose(view, room);
            let cells: Vec<Vec<Cell>> =
                shown.iter().map(|record| row(record, view.now, columns)).collect();
            lines.push(String::new());
            lines.extend(lay_out(&COLUMNS, &cells, columns));
            if let Some(rest) = rest(view, &shown, total) {
                lines.push(rest);
            }
        }
        lines.push(String::new());
        if let Some(waits) = view.waiting {
            lines.push(style(waiting::sentence(waits)).yellow().to_string());
        }
        let (offers, rate) = (totals::offers(&view.counts), totals::rate(view.offers_per_second));
        lines.push(format!("{} {rate}, {offers}", style("offers").dim()));
        lines.truncate(rows);
        lines.iter().map(|line| truncate_str(line, columns, "…").into_owned()).collect()
    }
}

/// The name on the left, the time on the right.
fn title(view: &View<'_>, columns: usize) -> String {
    let Settings { name, site: Target { master, .. }, .. } = view.settings;
    let verb = if view.stopping { "stopping" } else { "running" };
    let right = format!("{verb} for {}", age(view.now.since(Timestamp::ORIGIN)));
    let left = format!("{name} on {master}");
    let gap = columns.saturating_sub(measure_text_width(&left) + right.len());
    let left = format!("{} on {master}", style(name).bold());
    format!("{left}{}{}", " ".repeat(gap.max(1)), style(right).dim())
}

/// How many executors are in each state, and what for.
fn states(view: &View<'_>) -> String {
    let goal = view.settings.until_finished;
    let mut parts = Vec::new();
    for state in State::ALL {
        let number = view.roster.count(state);
        let text = match goal {
            Some(goal) if state == State::Finished => {
                let number = view.roster.finished();
                format!("{} of {} finished", grouped(number), grouped(u64::from(goal)))
            }
            _ if number > 0 || state == State::Running => {
                format!("{} {}", grouped(number), state.as_str())
            }
            _ => continue,
        };
        parts.push(if number > 0 { colour(state).apply_to(text).to_string() } else { text });
    }
    let excluded = view.roster.excluded(view.now);
    if excluded > 0 {
        let text = match view.settings.site.agents {
            Some(Agents { all, .. }) => format!("{excluded} of {all} agents excluded"),
            None => format!("{} excluded", count(excluded as u64, "agent")),
        };
        parts.push(style(text).red().to_string());
    }
    if let (Some(limit), None) = (view.limit, goal) {
        parts.push(format!("limit {}", grouped(u64::from(limit))));
    }
    if !view.roster.is_connected && !view.stopping {
        parts.push(style("not connected").red().to_string());
    }
    parts.join(&style(" · ").dim().to_string())
}

/// The executors that people want to see most, in the order in which they were placed.
fn choose<'a>(view: &View<'a>, room: usize) -> Vec<&'a ExecutorInfo> {
    let interest = |record: &ExecutorInfo| {
        let is_news = view.now.since(record.changed_at) < NEWS_FOR;
        match record.state {
            State::Unreachable | State::GivenUp => 0,
            State::Failed | State::Lost if is_news => 1,
            State::Ending => 2,
            State::Starting => 3,
            State::Running => 4,
            State::Finished | State::Killed if is_news => 5,
            State::Failed | State::Lost => 6,
            State::Finished | State::Killed => 7,
        }
    };
    let mut order: Vec<(usize, usize, &ExecutorInfo)> = view
        .roster
        .records()
        .rev()
        .enumerate()
        .map(|(place, record)| (interest(record), place, record))
        .collect();
    order.sort_by_key(|(interest, place, _)| (*interest, *place));
    let chosen: BTreeSet<usize> = order.iter().take(room).map(|(_, place, _)| *place).collect();
    let placed = view.roster.records().rev().enumerate();
    let mut shown: Vec<&ExecutorInfo> =
        placed.filter(|(place, _)| chosen.contains(place)).map(|(_, record)| record).collect();
    shown.reverse();
    shown
}

fn row(record: &ExecutorInfo, now: Timestamp, columns: usize) -> Vec<Cell> {
    let style = colour(record.state);
    let quiet = if record.state.is_end() { Style::new().dim() } else { Style::new() };
    let quiet = |text: String| Cell { text, style: quiet.clone() };
    let message = record.message.split(", output in ").next().unwrap_or_default();
    vec![
        quiet(short_name(&record.name, columns)),
        quiet(record.host.clone()),
        Cell { text: record.state.as_str().to_owned(), style },
        quiet(record.cores.to_string()),
        quiet(record.memory.to_string()),
        quiet(age(record.age(now))),
        quiet(printable(message)),
    ]
}

/// The executors for which there is no row: `… and 37 more: 30 running, 7 finished`.
fn rest(view: &View<'_>, shown: &[&ExecutorInfo], total: u64) -> Option<String> {
    let more = total - shown.len() as u64;
    if more == 0 {
        return None;
    }
    let hidden = State::ALL.into_iter().map(|state| {
        let visible = shown.iter().filter(|record| record.state == state).count() as u64;
        (state, view.roster.count(state) - visible)
    });
    let hidden: Vec<String> = hidden
        .filter(|(_, number)| *number > 0)
        .map(|(state, number)| format!("{} {}", grouped(number), state.as_str()))
        .collect();
    let text = format!("… and {} more: {}", grouped(more), hidden.join(", "));
    Some(style(text).dim().to_string())
}

impl Renderer for Table {
    fn begin(&mut self, _settings: &Settings, _started: SystemTime) -> io::Result<()> {
        self.is_hidden = true;
        self.print(HIDE_CURSOR)
    }

    fn happened(&mut self, happening: &Happening) -> io::Result<()> {
        if happening.what.weight() != Weight::Routine {
            if self.news.len() < NEWS_BYTES_MAX {
                self.news.push_str(&lines::line(happening));
            } else {
                self.news_left_out += 1;
            }
        }
        Ok(())
    }

    fn pass(&mut self, view: &View<'_>) -> io::Result<()> {
        if self.drawn_at.is_some_and(|drawn| drawn.elapsed() < REDRAWN_EVERY) {
            return Ok(());
        }
        // While a terminal takes nothing, there is no use in more frames.
        if !self.writer.is_idle()? {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let frame = self.frame(view);
        self.draw(&frame)
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let columns = self.size().1;
        self.draw(&[])?;
        self.leave();
        self.print(&format!("\n{}", summary::render(summary, columns)))
    }

    fn leave(&mut self) {
        if self.is_hidden {
            self.is_hidden = false;
            // A terminal that is gone has no cursor.
            let _gone = self.print(SHOW_CURSOR);
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.is_hidden {
            self.leave();
            let _gone = self.writer.drain(CURSOR_WITHIN, || false);
        }
    }
}
