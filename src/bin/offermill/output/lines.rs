//! The plain face: a line for each event, with the time since the start.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use console::style;
use offermill::Timestamp;

use crate::model::event::{Happening, Weight};
use crate::model::executor::State;
use crate::model::state::RunState;
use crate::output::summary::{self, Summary};
use crate::output::totals;
use crate::output::{Renderer, View, left_out};
use crate::settings::Settings;
use crate::text::format::{count, passed};
use crate::text::stdout::{Rank, Writer};

/// How often the totals are printed, which also finds out whether anybody still reads.
const TOTALS_EVERY: Duration = Duration::from_secs(30);
/// The summary's width where there is no terminal.
const WIDTH: usize = 160;

/// Prints lines.
pub(crate) struct Lines {
    writer: Arc<Writer>,
    totals_at: Timestamp,
}

impl Lines {
    /// Nothing printed yet.
    pub(crate) fn new(writer: Arc<Writer>) -> Lines {
        Lines { writer, totals_at: Timestamp::ORIGIN.plus(TOTALS_EVERY) }
    }

    fn print(&self, at: Timestamp, text: &str, rank: Rank) -> io::Result<()> {
        let told = |lines| format!("{}  … {}, not read in time\n", stamp(at), left_out(lines));
        self.writer.offer(text, rank, told)
    }
}

/// A line with its time, in the colour of its weight.
pub(crate) fn line(happening: &Happening) -> String {
    let time = stamp(happening.at);
    let sentence = happening.what.sentence();
    match happening.what.weight() {
        Weight::Routine => format!("{time}  {sentence}\n"),
        Weight::Notable => format!("{time}  {}\n", style(sentence).yellow()),
        Weight::Bad => format!("{time}  {}\n", style(sentence).red()),
    }
}

/// What the run is about to do, in a line.
pub(crate) fn opening(settings: &Settings) -> String {
    let what = settings.executors.phrase();
    let what: String = crate::text::format::printable(&what).chars().take(60).collect();
    let most = match settings.config.executor_limit() {
        Some(limit) if settings.allocation.is_some() => {
            format!("{} at first", count(u64::from(limit), "executor"))
        }
        Some(limit) => format!("up to {}", count(u64::from(limit), "executor")),
        None => "as many executors as fit".to_owned(),
    };
    format!("{} on {}: {most} of `{what}`", settings.name, settings.site.master)
}

fn stamp(at: Timestamp) -> String {
    format!("{:>9}", passed(at.since(Timestamp::ORIGIN)))
}

impl Renderer for Lines {
    fn begin(&mut self, settings: &Settings, _started: SystemTime) -> io::Result<()> {
        let at = Timestamp::ORIGIN;
        self.print(at, &format!("{}  {}\n", stamp(at), opening(settings)), Rank::Notable)
    }

    fn happened(&mut self, happening: &Happening) -> io::Result<()> {
        self.print(happening.at, &line(happening), happening.what.weight().rank())
    }

    fn pass(&mut self, view: &View<'_>) -> io::Result<()> {
        if view.now < self.totals_at {
            return Ok(());
        }
        self.totals_at = view.now.plus(TOTALS_EVERY);
        let states = states(view.roster);
        let (offers, rate) = (totals::offers(&view.counts), totals::rate(view.offers_per_second));
        let text = format!("{}  executors {states}; offers {offers}, {rate}\n", stamp(view.now));
        self.print(view.now, &text, Rank::Routine)
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let end = Timestamp::ORIGIN.plus(summary.ran);
        self.print(end, &format!("\n{}", summary::render(summary, WIDTH)), Rank::Result)
    }

    fn leave(&mut self) {}
}

/// As in `6 running, 1 failed`.
pub(crate) fn states(roster: &RunState) -> String {
    let count = |state: State| (roster.count(state), state);
    let counts = State::ALL.into_iter().map(count).filter(|(number, _)| *number > 0);
    let texts: Vec<String> =
        counts.map(|(number, state)| format!("{number} {}", state.as_str())).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}
