//! What a run looks like: each face shows the same happenings and the same end in its own way.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::SystemTime;

use console::Term;
use offermill::{OfferCounts, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::happening::Happening;
use crate::json::Json;
use crate::lines::Lines;
use crate::roster::Roster;
use crate::settings::{Output, Settings};
use crate::summary::Summary;
use crate::table::Table;
use crate::waiting::Waits;

/// Shows a run. An error means that standard output is gone.
pub(crate) trait Face {
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
    pub(crate) roster: &'a Roster,
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

/// The face that was asked for and that standard output can show.
pub(crate) fn choose(output: Output) -> Box<dyn Face> {
    let terminal = Term::stdout();
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match output {
        Output::Json => Box::new(Json::new()),
        Output::Fitting if terminal.is_term() && !is_dumb => Box::new(Table::new(terminal)),
        Output::Fitting | Output::Lines => Box::new(Lines::new()),
    }
}

/// Shows nothing: standard output is gone.
pub(crate) struct Faceless;

impl Face for Faceless {
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

/// Set once standard output was given up.
static GIVEN_UP: OnceLock<()> = OnceLock::new();
/// As much fits into a pipe that can be written to at all.
const PIECE_BYTES: usize = 4096;
/// How often is looked whether standard output was given up, while nobody reads it.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Has nobody wait any longer for standard output to be read: writing to it fails where it would have to wait.
pub(crate) fn give_up_output() {
    let _before = GIVEN_UP.set(());
}

/// Writes whole lines to standard output. Waits for whoever reads it, until that is given up.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        loop {
            match poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(&LOOK_EVERY)) {
                Ok(0) if GIVEN_UP.get().is_some() => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it"));
                }
                Ok(0) | Err(Errno::INTR) => {}
                // If it can't be looked at, writing tells why.
                Ok(_) | Err(_) => break,
            }
        }
        stdout.write_all(piece)?;
        stdout.flush()?;
    }
    Ok(())
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

/// Writes a remark to standard error, which may be gone.
pub(crate) fn remark(text: &str) {
    let _gone = writeln!(io::stderr(), "offermill: {text}");
}
