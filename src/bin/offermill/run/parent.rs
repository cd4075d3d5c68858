//! A run that the program that started it steers (`--steered`): its session, and its end with that of its parent.
//!
//! The parent's end is that of its process, of standard input, or of the reader of standard output. A process that the
//! parent has forked may keep its ends of the pipes open. From then on the run has [`END_WITHIN`] to end in order; what
//! is left is ended at once, unless the cluster would keep the executors.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, getppid, setsid};

use super::Session;
use crate::model::end_reason::{EndReason, ParentEnd};
use crate::output::remark;
use crate::text::stdout::has_lost_reader;

/// How long executors may take to end after the parent's end.
pub(super) const EXECUTORS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the run may take to end after the parent's end.
const END_WITHIN: Duration = Duration::from_millis(1_800);

/// When the parent's end was noticed.
static ENDED_AT: OnceLock<Instant> = OnceLock::new();

/// The process that started this one; `None` if it is in another namespace.
static PARENT: OnceLock<Option<Pid>> = OnceLock::new();

/// Records the parent's process. If it has ended already, only its pipes can say so.
pub(super) fn remember() {
    let _known = PARENT.set(getppid());
}

/// Whether the parent's process has ended, so that this one was given another parent. Records its end then.
fn is_gone() -> bool {
    let is_gone = PARENT.get().is_some_and(|parent| *parent != getppid());
    if is_gone {
        record_end();
    }
    is_gone
}

/// Refuses a terminal as standard input: in a session of its own the run would go on after Ctrl-C, and take lines from
/// the shell.
///
/// # Errors
/// With a sentence if standard input is a terminal.
pub(super) fn check_input() -> Result<(), String> {
    match io::stdin().is_terminal() {
        true => Err("--steered: standard input is a terminal; expected a pipe, into which \
                     another program writes commands"
            .to_owned()),
        false => Ok(()),
    }
}

/// Moves this process to a session of its own, so that signals to its parent's terminal and process group don't reach
/// it. The leader of a process group can't be moved: only a shell with job control makes one of a program, and sends
/// Ctrl-C to it deliberately.
pub(super) fn leave_session() {
    if let Err(error) = setsid()
        && error != Errno::PERM
    {
        remark(&format!("--steered: this process stays in its parent's session: {error}"));
    }
}

/// Records that the parent has ended.
pub(super) fn record_end() {
    // Standard input and standard output may both end.
    let _known = ENDED_AT.set(Instant::now());
}

/// Records the end of standard input.
pub(super) fn record_input_end(end: io::Result<()>) -> ParentEnd {
    record_end();
    match end {
        Ok(()) => ParentEnd::InputClosed,
        Err(error) => ParentEnd::InputFailed(error.to_string()),
    }
}

/// Whether the parent is known to have ended.
pub(super) fn has_ended() -> bool {
    ENDED_AT.get().is_some()
}

/// Whether the time that a run has after its parent's end is over.
pub(super) fn is_overdue() -> bool {
    let _recorded = is_gone();
    has_ended_for(END_WITHIN)
}

fn has_ended_for(time: Duration) -> bool {
    ENDED_AT.get().is_some_and(|ended_at| ended_at.elapsed() >= time)
}

impl Session {
    /// Looks for what the parent's end changes if neither end of its pipes says it: its process, and the reader of the
    /// output, to which nothing may be written for a while.
    pub(super) fn find_parent_end(&self) -> Option<ParentEnd> {
        if !self.settings.is_steered {
            return None;
        }
        if is_gone() {
            return Some(ParentEnd::Gone);
        }
        let is_open = self.output.is_some();
        (is_open && has_lost_reader(&io::stdout())).then_some(ParentEnd::OutputClosed)
    }

    /// Whether the run must end at once, because its parent ended some time ago. A cluster that keeps executors isn't
    /// left without tearing the framework down.
    pub(super) fn must_end_at_once(&self) -> bool {
        let within = match &self.end_reason {
            None => return false,
            Some(EndReason::ParentEnded(_)) => END_WITHIN,
            // The engine waits for executors as long as it was told when the run was stopped.
            Some(_) => EXECUTORS_TIMEOUT,
        };
        has_ended_for(within) && !self.settings.target.on_exit.are_kept()
    }
}
