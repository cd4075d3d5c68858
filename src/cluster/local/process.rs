//! An executor's processes: itself, its warden, and whatever they are in one group with.
//!
//! The group is led by the [warden](super::warden), and the executor is a member of it. Signals go
//! to the group; it is killed when the executor ends, so that nothing of what the executor started
//! stays behind in it. Only then are the warden and the executor reaped: no signal is ever sent to
//! a number that could be a stranger's by now.

use std::borrow::Cow;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, kill_process, kill_process_group,
    waitid, waitpid,
};

use super::exit::Exit;
use super::sandbox::Sandbox;
use super::starts::Starter;
use super::warden::Warden;
use crate::launch::{Command, Form};

/// Enough for a thread that does nothing but wait.
const WAITER_STACK_BYTES: usize = 128 * 1024;

/// What executors' environments start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Environment {
    /// The program's own.
    #[default]
    Inherited,
    /// Nothing.
    Empty,
}

/// Why an executor was not started.
#[derive(Debug)]
pub(super) struct Unstarted {
    /// A sentence.
    pub(super) why: String,
    pub(super) blame: Blame,
}

/// What an executor's start failed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The executor itself, or the place where it was to run.
    Executor,
    /// What it asks for, which no cluster of this kind has.
    Description,
    /// A limit of the program's or the machine's that is reached for now: open files, processes.
    Shortage,
}

impl Unstarted {
    fn for_good(why: impl Into<String>) -> Unstarted {
        Unstarted { why: why.into(), blame: Blame::Executor }
    }

    pub(super) fn by(what: &str, error: &io::Error) -> Unstarted {
        let blame = match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN) => Blame::Shortage,
            _ => Blame::Executor,
        };
        Unstarted { why: format!("{what}: {error}"), blame }
    }
}

/// A started executor and everything in its group. Dropping it kills what is left.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    executor: Pid,
    /// Leads the group, dead or alive, until the group is reaped.
    first: Option<Arc<Warden>>,
    /// The one in its place, once it was killed.
    relief: Option<Warden>,
    waiter: Option<JoinHandle<()>>,
    reaped: bool,
}

impl Group {
    /// Starts `command`; `ended` is called, on a thread of its own, as soon as the executor has
    /// ended.
    ///
    /// # Errors
    /// Why nothing was started.
    pub(super) fn start(
        starter: &Starter,
        command: &Command,
        sandbox: Sandbox,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Group, Unstarted> {
        let argv = arguments(command)?;
        let Some((program, arguments)) = argv.split_first() else {
            return Err(Unstarted::for_good("the command is empty"));
        };
        let path = sandbox.path;
        let mut warden = Warden::start(&starter.shell, &path, None, starter.within)
            .map_err(|error| Unstarted::by("the executor's warden can't be started", &error))?;
        let mut process = Process::new(program);
        if starter.environment == Environment::Empty {
            process.env_clear();
        }
        let child = process
            .args(arguments)
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&path)
            .process_group(warden.pid().as_raw_pid())
            .stdin(Stdio::null())
            .stdout(sandbox.stdout)
            .stderr(sandbox.stderr)
            .spawn()
            .map_err(|error| refusal(program, &error))?;
        let (leader, executor) = (warden.pid(), Pid::from_child(&child));
        warden.watch(executor);
        let first = Some(Arc::new(warden));
        let mut group =
            Group { leader, executor, first, relief: None, waiter: None, reaped: false };
        group
            .wait_with(ended)
            .map_err(|error| Unstarted::by("no thread can be started", &error))?;
        Ok(group)
    }

    /// Starts the thread that waits for the executor's end. If there can't be one, the executor is
    /// ended.
    fn wait_with(&mut self, ended: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let executor = self.executor;
        let wait = move || {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = retry_on_intr(|| waitid(WaitId::Pid(executor), how));
            ended();
        };
        let thread = Builder::new().name("offermill-wait".into()).stack_size(WAITER_STACK_BYTES);
        match thread.spawn(wait) {
            Ok(waiter) => {
                self.waiter = Some(waiter);
                Ok(())
            }
            Err(error) => {
                self.reap();
                Err(error)
            }
        }
    }

    /// The executor's process number.
    pub(super) fn pid(&self) -> i32 {
        self.executor.as_raw_pid()
    }

    /// Asks the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group by force.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// To the group, and to the executor by itself if it left the group.
    fn signal(&self, signal: Signal) {
        if self.reaped {
            return;
        }
        let _ = kill_process_group(self.leader, signal);
        if self.executor_left() {
            let _ = kill_process(self.executor, signal);
        }
    }

    /// Whether the executor made a group of its own. No, if somebody else reaped it: then its
    /// number may be a stranger's.
    fn executor_left(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(self.executor), how).is_ok()
            && getpgid(Some(self.executor)) != Ok(self.leader)
    }

    /// Whether there is no warden any more: whoever killed the last one didn't free the executor of it.
    pub(super) fn needs_warden(&self) -> bool {
        let last = self.relief.as_ref().or(self.first.as_deref());
        last.is_some_and(|warden| !warden.is_alive())
    }

    /// What starts another warden, on whatever thread. The group keeps its number until that is done.
    pub(super) fn relief(
        &self,
        shell: PathBuf,
        cwd: &Path,
        within: Duration,
    ) -> impl FnOnce() -> io::Result<Warden> + Send + 'static {
        let (first, leader, cwd) = (self.first.clone(), self.leader, cwd.to_owned());
        move || {
            let relief = Warden::start(&shell, &cwd, Some(leader), within);
            drop(first);
            relief
        }
    }

    /// Takes another warden into service.
    pub(super) fn relieve(&mut self, mut warden: Warden) {
        warden.watch(self.executor);
        self.relief = Some(warden);
    }

    /// Kills what is left of the group, reaps it, and tells how the executor ended. Waits for the
    /// executor's end.
    pub(super) fn reap(&mut self) -> Exit {
        self.kill();
        self.reaped = true;
        let status = retry_on_intr(|| waitpid(Some(self.executor), WaitOptions::empty()));
        self.relief = None;
        self.first = None;
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
        match status {
            Ok(Some((_, status))) => Exit::of(status),
            _ => Exit::Untold,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What is started of a command, if all that it asks for can be had: there are only processes here.
fn arguments(command: &Command) -> Result<Cow<'_, [String]>, Unstarted> {
    if let Some(what) = command.setup.as_ref().and_then(|setup| setup.beyond_a_process()) {
        let why = format!("the embedded cluster doesn't have {what}");
        return Err(Unstarted { why, blame: Blame::Description });
    }
    Ok(match command.form {
        Form::Argv => Cow::Borrowed(&command.argv),
        Form::Shell => {
            let line = command
                .shell_line()
                .map_err(|why| Unstarted { why: why.to_string(), blame: Blame::Description })?;
            Cow::Owned(vec!["/bin/sh".to_owned(), "-c".to_owned(), line])
        }
    })
}

fn refusal(program: &str, error: &io::Error) -> Unstarted {
    match error.kind() {
        io::ErrorKind::NotFound => Unstarted::by(&format!("command {program:?} not found"), error),
        _ => Unstarted::by(&format!("command {program:?} can't be started"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is short for now is not held against the agent, anything else is. Method: errors
    /// of both kinds, by their numbers.
    #[test]
    fn shortages_are_told_from_failures() {
        for (errno, blame) in [
            (Errno::MFILE, Blame::Shortage),
            (Errno::NFILE, Blame::Shortage),
            (Errno::AGAIN, Blame::Shortage),
            (Errno::NOENT, Blame::Executor),
            (Errno::ACCESS, Blame::Executor),
        ] {
            let refused = refusal("etl", &errno.into());
            assert_eq!(refused.blame, blame, "{}", refused.why);
            assert!(refused.why.starts_with("command \"etl\" "));
        }
    }
}
