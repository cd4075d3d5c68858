//! The end of a run: its summary, its exit code, and what has become of executors that had not ended.

use std::collections::HashSet;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use offermill::{DrainReport, Fate, Timestamp};

use super::inbox::Receiver;
use super::tasks::TaskRun;
use super::{AT_ONCE_TIMEOUT, EngineEnd, OUTPUT_TIMEOUT, Session, SessionMessage};
use super::{is_abandoned, parent};
use crate::exit::ExitStatus;
use crate::model::end_reason::EndReason;
use crate::model::executor::ExecutorRecord;
use crate::model::executor_kind::ExecutorKind;
use crate::model::target::OnExit;
use crate::model::unended::UnendedFate;
use crate::output::sentence::{
    at_once_sentence, end_sentence, not_torn_down_sentence, unended_sentence,
};
use crate::output::summary::Summary;
use crate::output::{drain_remarks, remark};

/// The longest time that the end spends on commands that have arrived.
const COMMANDS_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest time that the end waits for clients to take the replies to their commands.
const REPLIES_TIMEOUT: Duration = Duration::from_secs(2);

impl Session {
    /// Shows the summary and returns the exit code.
    pub(super) fn finish(
        mut self,
        end: &EngineEnd,
        inbox: &Receiver<SessionMessage>,
    ) -> ExitStatus {
        let has_signal = self.answer_waiting(inbox);
        if let Some(event) = self.call_failures.flush() {
            self.publish(self.clock.now(), event);
        }
        self.tasks.iter_mut().for_each(TaskRun::finish_index);
        let unended = self.unended(end);
        let reason = self.end_reason.take().unwrap_or(EndReason::Signal("no signal"));
        let target = &self.settings.target;
        let is_torn_down = target.remains.is_torn_down();
        let late_refusal = self.late_refusal.as_deref();
        let why_left = match target.remains.why() {
            None if target.on_exit == OnExit::Killed || is_torn_down => None,
            None if !end.is_stopped && target.on_exit == OnExit::Left => {
                Some("the API server didn't answer in time")
            }
            None if !end.is_stopped => Some("the master didn't answer in time"),
            // Refused while executors were waited for: no TEARDOWN was possible.
            None => late_refusal,
            why => why,
        };
        let is_kept = why_left.is_some() && target.on_exit.are_kept();
        let exit = self.exit_status(&reason, unended.is_empty() && !is_kept);
        let fate = match target.on_exit {
            OnExit::Killed => UnendedFate::Killed,
            OnExit::Kept(_) if is_torn_down => UnendedFate::TornDown,
            _ if why_left.is_some() => UnendedFate::Left,
            // The cluster accepts no calls of this framework.
            _ if matches!(reason, EndReason::Refused(_)) => UnendedFate::Left,
            OnExit::Left => UnendedFate::Deleted,
            OnExit::Kept(_) => UnendedFate::TornDown,
        };
        let mut sentence = end_sentence(&reason);
        let records = self.records_of(&unended);
        if !records.is_empty() {
            sentence.push_str(&format!("; {}", unended_sentence(fate, &records)));
        }
        if let Some(why) = why_left {
            let id = &self.run_state.framework_id;
            sentence.push_str(&format!("; {}", not_torn_down_sentence(target, id, why)));
        }
        let now = self.clock.now();
        let used = (self.run_state.agents_there(), self.run_state.used_most);
        let shuffle = self.shuffle.json();
        self.shuffle.stop();
        let summary = Summary {
            name: &self.settings.name,
            ending: sentence,
            exit,
            ran: now.since(Timestamp::ORIGIN),
            run_state: &self.run_state,
            unended,
            unended_fate: fate,
            counts: self.kernel.offer_counts(),
            stall: self.stall_watch.stall.as_ref(),
            declined: self.kernel.explain(now).declined,
            cluster_use: self.cluster_use.at_end(&self.kernel, now, used),
            sandboxes: &self.settings.target.sandboxes,
            tasks: self.tasks.as_ref().map(TaskRun::summary),
            shuffle,
        };
        let shown = self.renderer.show_summary(&summary);
        self.drain_output(shown, has_signal, inbox);
        self.finish_replies(inbox);
        exit
    }

    /// The records of the executors with these names, each with what it is.
    fn records_of(&self, names: &HashSet<String>) -> Vec<(&ExecutorRecord, ExecutorKind)> {
        let records = self.run_state.records().filter(|record| names.contains(&record.name));
        records.map(|record| (record, self.run_state.kind_of(record))).collect()
    }

    fn exit_status(&self, reason: &EndReason, drained: bool) -> ExitStatus {
        let exit = reason.exit(drained);
        self.tasks.as_ref().map_or(exit, |tasks| tasks.exit(exit))
    }

    /// Waits for the reader of standard output.
    fn drain_output(
        &self,
        shown: io::Result<()>,
        has_signal: bool,
        inbox: &Receiver<SessionMessage>,
    ) {
        // A failure of standard output before this was reported then.
        let Some(output) = &self.output else { return };
        let timeout = if parent::has_ended() { AT_ONCE_TIMEOUT } else { OUTPUT_TIMEOUT };
        // If the parent's time is over already, its reader has the shorter timeout all the same.
        let was_overdue = parent::is_overdue();
        let is_enough = || has_signal || (!was_overdue && is_abandoned(inbox));
        report_unread(shown.and_then(|()| output.drain(timeout, is_enough)));
    }

    /// Shows the summary although the engine's shutdown hasn't ended. Executors that are left end with this process.
    pub(super) fn finish_without_engine(self, inbox: &Receiver<SessionMessage>) -> ExitStatus {
        let DrainReport { executors, .. } = self.kernel.drain(Duration::ZERO);
        self.finish(&EngineEnd { executors, is_stopped: false }, inbox)
    }

    /// Answers the commands that have arrived before the summary, after which no event follows. Returns whether a
    /// signal was among them.
    fn answer_waiting(&mut self, inbox: &Receiver<SessionMessage>) -> bool {
        let give_up = Instant::now() + COMMANDS_TIMEOUT;
        let mut has_signal = false;
        while let Some(message) = inbox.try_recv() {
            match message {
                SessionMessage::Request(request) => self.handle_request(request),
                SessionMessage::Signal(_) => has_signal = true,
                _ => {}
            }
            // A client may give commands without end.
            if Instant::now() >= give_up {
                break;
            }
        }
        has_signal
    }

    /// Waits until clients have the replies to their commands, of which one may have ended the run: their threads write
    /// them, and end with the program. Commands that come too late are dropped, which their clients are told.
    fn finish_replies(&self, inbox: &Receiver<SessionMessage>) {
        let Some(sockets) = &self.sockets else { return };
        let give_up = Instant::now() + REPLIES_TIMEOUT;
        while Instant::now() < give_up && !parent::has_ended() {
            while inbox.try_recv().is_some() {}
            if sockets.are_answered() {
                return;
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// The names of executors that had not ended.
    fn unended(&self, end: &EngineEnd) -> HashSet<String> {
        let is_unended = |fate: Fate| matches!(fate, Fate::Alive | Fate::Unreachable);
        let unended = end.executors.iter().filter(|drained| is_unended(drained.fate));
        unended.map(|drained| self.kernel.executor_name(drained.executor.id).to_string()).collect()
    }

    /// Exits with this code without waiting for executors. On local agents the watchdogs end those that still run;
    /// Mesos keeps them for the failover timeout, and Kubernetes until they are deleted.
    pub(super) fn end_at_once(mut self, exit: ExitStatus) -> ExitStatus {
        self.renderer.restore_terminal();
        // `exit` runs no destructors, so the socket files are removed here.
        drop(self.sockets.take());
        let living = self.run_state.living();
        remark(&at_once_sentence(&self.settings.target, &self.run_state.framework_id, living));
        let _unread = self.output.map(|output| output.drain(AT_ONCE_TIMEOUT, || false));
        drain_remarks(AT_ONCE_TIMEOUT, || false);
        std::process::exit(i32::from(exit.code()))
    }
}

/// Reports that the end of the output was not read or can't be written. A closed pipe is fine.
fn report_unread(drained: io::Result<()>) {
    match drained.map_err(|error| (error.kind(), error)) {
        Ok(()) | Err((io::ErrorKind::BrokenPipe, _)) => {}
        Err((io::ErrorKind::TimedOut, _)) => {
            remark("the rest of standard output was not read and is dropped");
        }
        Err((_, error)) => remark(&format!("standard output can't be written: {error}")),
    }
}
