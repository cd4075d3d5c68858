//! Results on standard output and remarks on standard error.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use crate::exit::ExitStatus;
use crate::text::format::{count, printable_json};
use crate::text::stdout::{Bounds, Rank, Writer};
use crate::text::styled::StyledText;

/// Writes whole lines to standard output, however long that takes. A run uses a [`Writer`] instead.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The outcome of writing a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrintOutcome {
    /// It was written.
    Written,
    /// The reader closed the pipe, which is fine.
    Closed,
    /// It can't be written, for example because the disk is full.
    Failed,
}

/// Writes a result for people to standard output. If that fails, says so on standard error.
pub(crate) fn print_result(text: &StyledText) -> PrintOutcome {
    print_raw(text.as_str())
}

/// Writes lines of JSON to standard output. If that fails, says so on standard error.
pub(crate) fn print_json(lines: &str) -> PrintOutcome {
    print_raw(&printable_json(lines))
}

/// Writes a result for programs, such as a script, to standard output as it is. If that fails, says so on standard
/// error.
pub(crate) fn print_raw(text: &str) -> PrintOutcome {
    let Err(error) = print(text) else { return PrintOutcome::Written };
    if error.kind() == io::ErrorKind::BrokenPipe {
        return PrintOutcome::Closed;
    }
    remark(&format!("standard output can't be written: {error}"));
    PrintOutcome::Failed
}

/// The writer of remarks during a run.
static REMARKS: OnceLock<Writer> = OnceLock::new();
/// The most bytes of remarks that may wait to be read.
const REMARKS_BYTES_MAX: usize = 256 * 1024;

/// Starts a thread for remarks: from now on, no remark waits until standard error is read.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn write_remarks_aside() -> io::Result<()> {
    let bounds = Bounds { routine: REMARKS_BYTES_MAX, notable: REMARKS_BYTES_MAX };
    let _before = REMARKS.set(Writer::start("remarks", io::stderr(), bounds)?);
    Ok(())
}

/// How long the last remarks of a server may take to be written.
const LAST_REMARKS_WITHIN: Duration = Duration::from_secs(1);

/// Runs a server, which never waits until its remarks are read, and writes the last of them.
pub(crate) fn serve_with_remarks_aside(serve: impl FnOnce() -> ExitStatus) -> ExitStatus {
    if let Err(error) = write_remarks_aside() {
        remark(&format!("no thread can be started: {error}"));
        return ExitStatus::Internal;
    }
    let exit = serve();
    drain_remarks(LAST_REMARKS_WITHIN, || false);
    exit
}

/// Waits until all remarks are written, unless none is read for as long as `timeout`, or `is_enough` returns true.
pub(crate) fn drain_remarks(timeout: Duration, is_enough: impl FnMut() -> bool) {
    // A failure can't be reported anywhere.
    let _unread = REMARKS.get().map(|writer| writer.drain(timeout, is_enough));
}

/// Writes a remark to standard error, which may be closed. Its text is made printable.
pub(crate) fn remark(text: &str) {
    write_remark(&format!("offermill: {}\n", StyledText::lines(text)));
}

/// Writes a line to standard error, as it is.
pub(super) fn write_remark(line: &str) {
    let notice = |lines| format!("offermill: {}, which were not read in time\n", left_out(lines));
    let _gone = match REMARKS.get() {
        Some(writer) => writer.offer(line, Rank::Notable, notice),
        None => io::stderr().write_all(line.as_bytes()),
    };
}

/// As in `2 lines are left out here`.
pub(crate) fn left_out(lines: u64) -> String {
    let verb = if lines == 1 { "is" } else { "are" };
    format!("{} {verb} left out here", count(lines, "line"))
}
