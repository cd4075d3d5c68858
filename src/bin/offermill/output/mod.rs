//! What a run looks like: each face shows the same happenings and the same end in its own way.

pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod totals;

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use console::Term;
use offermill::{OfferCounts, Timestamp};

use crate::model::event::Happening;
use crate::model::state::RunState;
use crate::model::waiting::Waits;
use crate::output::json::Json;
use crate::output::lines::Lines;
use crate::output::summary::Summary;
use crate::output::table::Table;
use crate::settings::{Output, Settings};
use crate::text::format::grouped;
use crate::text::stdout::{Bounds, Rank, Writer};

/// Shows a run, and waits for nobody. An error means that standard output is gone.
pub(crate) trait Renderer {
    /// Before anything happens.
    fn begin(&mut self, settings: &Settings, started: SystemTime) -> io::Result<()>;
    /// Something happened.
    fn happened(&mut self, happening: &Happening) -> io::Result<()>;
    /// Some time passed: called a few times a second.
    fn pass(&mut self, view: &View<'_>) -> io::Result<()>;
    /// The end.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()>;
    /// Leaves the terminal as it was, without an end.
    fn leave(&mut self);
}

/// How things stand.
pub(crate) struct View<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) roster: &'a RunState,
    pub(crate) counts: OfferCounts,
    pub(crate) offers_per_second: f64,
    pub(crate) now: Timestamp,
    /// The executor limit in force.
    pub(crate) limit: Option<u32>,
    /// Why executors are waited for, if they have been for a while.
    pub(crate) waiting: Option<&'a Waits>,
    /// Whether the run is stopping.
    pub(crate) stopping: bool,
}

/// As many bytes of a run's output may wait to be read: some 50 000 lines, or 15 000 objects.
const OUTPUT_BOUNDS: Bounds = Bounds { routine: 4 << 20, notable: 6 << 20 };

/// A thread that writes a run's output.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn output() -> io::Result<Arc<Writer>> {
    Writer::start("output", io::stdout(), OUTPUT_BOUNDS).map(Arc::new)
}

/// The face that was asked for and that standard output can show.
pub(crate) fn choose(output: Output, writer: Arc<Writer>) -> Box<dyn Renderer> {
    let terminal = Term::stdout();
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match output {
        Output::Json => Box::new(Json::new(writer)),
        Output::Fitting if terminal.is_term() && !is_dumb => Box::new(Table::new(terminal, writer)),
        Output::Fitting | Output::Lines => Box::new(Lines::new(writer)),
    }
}

/// Shows nothing: standard output is gone.
pub(crate) struct Faceless;

impl Renderer for Faceless {
    fn begin(&mut self, _: &Settings, _: SystemTime) -> io::Result<()> {
        Ok(())
    }

    fn happened(&mut self, _: &Happening) -> io::Result<()> {
        Ok(())
    }

    fn pass(&mut self, _: &View<'_>) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Summary<'_>) -> io::Result<()> {
        Ok(())
    }

    fn leave(&mut self) {}
}

/// Writes whole lines to standard output, however long that takes. A run has a [`Writer`] instead.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// What became of a result that was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Heard,
    /// Whoever closed the pipe has seen enough.
    Unheard,
    /// It can't be written, as on a full disk.
    Lost,
}

/// Prints a result. If it is lost, that is told.
pub(crate) fn say(text: &str) -> Said {
    let Err(error) = print(text) else { return Said::Heard };
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Said::Unheard;
    }
    remark(&format!("standard output can't be written: {error}"));
    Said::Lost
}

/// Writes remarks while there is a run.
static REMARKS: OnceLock<Writer> = OnceLock::new();
/// As many bytes of remarks may wait.
const REMARKS_BYTES_MAX: usize = 256 * 1024;

/// From now on no remark waits until standard error is read.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn write_remarks_aside() -> io::Result<()> {
    let bounds = Bounds { routine: REMARKS_BYTES_MAX, notable: REMARKS_BYTES_MAX };
    let _before = REMARKS.set(Writer::start("remarks", io::stderr(), bounds)?);
    Ok(())
}

/// Waits until all remarks are written, unless nobody takes any for as long as `patience`.
pub(crate) fn drain_remarks(patience: Duration) {
    // There is no other place where it could be told.
    let _unread = REMARKS.get().map(|writer| writer.drain(patience, || false));
}

/// Writes a remark to standard error, which may be gone.
pub(crate) fn remark(text: &str) {
    let line = format!("offermill: {text}\n");
    let told = |lines| format!("offermill: {}, which were not read in time\n", left_out(lines));
    let _gone = match REMARKS.get() {
        Some(writer) => writer.offer(&line, Rank::Notable, told),
        None => io::stderr().write_all(line.as_bytes()),
    };
}

/// As in `2 lines are left out here`.
pub(crate) fn left_out(lines: u64) -> String {
    match lines {
        1 => "1 line is left out here".to_owned(),
        _ => format!("{} lines are left out here", grouped(lines)),
    }
}
