//! The line renderer: one line per event, with the time since the start.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use console::Style;
use offermill::Timestamp;

use crate::model::event::{EventSeverity, RunEvent, TimedEvent};
use crate::model::executor::ExecutorState;
use crate::model::reply::{CommandAnswer, ControlReply};
use crate::model::state::RunState;
use crate::model::task::TaskChange;
use crate::output::messages::left_out;
use crate::output::renderer::Renderer;
use crate::output::sentence::event_sentence;
use crate::output::summary::{self, Summary};
use crate::output::tasks::progress_sentence;
use crate::output::totals;
use crate::output::view::RunView;
use crate::settings::RunSettings;
use crate::text::format::{count, passed};
use crate::text::stdout::{Rank, Writer};
use crate::text::styled::StyledText;

/// How often totals are printed. This also detects that standard output was closed.
const TOTALS_INTERVAL: Duration = Duration::from_secs(30);
/// The same with tasks.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// The summary's width, in columns.
const WIDTH: usize = 160;

/// Prints lines.
pub(crate) struct LineRenderer {
    writer: Arc<Writer>,
    totals_at: Timestamp,
}

impl LineRenderer {
    pub(crate) fn new(writer: Arc<Writer>) -> LineRenderer {
        LineRenderer { writer, totals_at: Timestamp::ORIGIN.plus(TOTALS_INTERVAL) }
    }

    fn print(&self, at: Timestamp, text: &StyledText, rank: Rank) -> io::Result<()> {
        let notice = |lines| format!("{}  … {}, not read in time\n", stamp(at), left_out(lines));
        self.writer.offer(text.as_str(), rank, notice)
    }
}

/// The line of an event, in the colour of its severity. The reply to a command may have several.
pub(crate) fn line(event: &TimedEvent) -> StyledText {
    let style = match event.event.severity() {
        EventSeverity::Routine => Style::new(),
        EventSeverity::Notable => Style::new().yellow(),
        EventSeverity::Bad => Style::new().red(),
    };
    let mut text = StyledText::new();
    let mut head = format!("{}  ", stamp(event.at));
    let add = |sentence: &str| {
        text.push_line(&StyledText::plain(&head).and_styled(sentence, &style));
        head = " ".repeat(head.len());
    };
    match &event.event {
        RunEvent::Answered(CommandAnswer { reply: ControlReply::Block(block), .. }) => {
            block.trim_end().split('\n').for_each(add)
        }
        event => [&*event_sentence(event)].into_iter().for_each(add),
    }
    text
}

/// The first line of a run: its name, its master, its executors and their command.
pub(crate) fn opening(settings: &RunSettings) -> String {
    let what = settings.executors.phrase();
    let what: String = what.chars().take(60).collect();
    let most = match settings.config.executor_limit() {
        Some(limit) if settings.allocation.is_some() => {
            format!("{} at first", count(u64::from(limit), "executor"))
        }
        Some(limit) => format!("up to {}", count(u64::from(limit), "executor")),
        None => "as many executors as fit".to_owned(),
    };
    if settings.executors.tasks().is_some() {
        return format!("{} on {}: {what}", settings.name, settings.target.master);
    }
    format!("{} on {}: {most} of `{what}`", settings.name, settings.target.master)
}

/// Where the page about a run is, if there is one.
pub(crate) fn page(settings: &RunSettings) -> Option<String> {
    settings.page_url.as_ref().map(|url| format!("the page about this run is at {url}"))
}

fn stamp(at: Timestamp) -> String {
    format!("{:>9}", passed(at.since(Timestamp::ORIGIN)))
}

impl Renderer for LineRenderer {
    fn show_start(&mut self, settings: &RunSettings) -> io::Result<()> {
        let at = Timestamp::ORIGIN;
        let mut text = StyledText::new();
        let lines = [Some(opening(settings)), page(settings)].into_iter().flatten();
        lines
            .for_each(|line| text.push_line(&StyledText::plain(&format!("{}  {line}", stamp(at)))));
        self.print(at, &text, Rank::Notable)
    }

    /// Tasks that succeed are only counted: there may be thousands.
    fn show_event(&mut self, event: &TimedEvent) -> io::Result<()> {
        if matches!(&event.event, RunEvent::Task(task) if task.what == TaskChange::Succeeded) {
            return Ok(());
        }
        self.print(event.at, &line(event), event.event.severity().rank())
    }

    fn refresh(&mut self, view: &RunView<'_>) -> io::Result<()> {
        if view.now < self.totals_at {
            return Ok(());
        }
        if let Some(counts) = &view.tasks {
            self.totals_at = view.now.plus(PROGRESS_INTERVAL);
            let line = format!("{}  {}\n", stamp(view.now), progress_sentence(counts));
            return self.print(view.now, &StyledText::lines(&line), Rank::Routine);
        }
        self.totals_at = view.now.plus(TOTALS_INTERVAL);
        let states = states(view.run_state);
        let offers = totals::offers(&view.counts);
        let rate = totals::rate(view.offers_per_second);
        let line = format!("{}  executors {states}; offers {offers}, {rate}\n", stamp(view.now));
        let text = StyledText::lines(&line);
        self.print(view.now, &text, Rank::Routine)
    }

    fn show_summary(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let end = Timestamp::ORIGIN.plus(summary.ran);
        let mut text = StyledText::lines("\n");
        text.append(&summary::render(summary, WIDTH));
        self.print(end, &text, Rank::Result)
    }

    fn restore_terminal(&mut self) {}
}

/// As in `6 running, 1 failed`.
pub(crate) fn states(run_state: &RunState) -> String {
    let count = |state: ExecutorState| (run_state.count(state), state);
    let counts = ExecutorState::ALL.into_iter().map(count).filter(|(number, _)| *number > 0);
    let texts: Vec<String> =
        counts.map(|(number, state)| format!("{number} {}", state.as_str())).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}
