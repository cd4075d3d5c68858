//! An executor's process group: the executor, its watchdog, and the processes that they start.
//!
//! The [watchdog](super::watchdog) leads the group, and the executor is a member of it. Signals are sent to the group.
//! When the executor ends, the group is killed, so that no process that the executor started stays behind in it. Only
//! then are the watchdog and the executor reaped: their numbers stay in use until the last signal was sent, so no
//! signal can reach an unrelated process that was given the same number.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
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
use super::watchdog::Watchdog;
use crate::launch::{Command, CommandForm, SECRET_VARIABLES};
use crate::private_files::PrivateFolder;

/// The stack of the thread that waits for an executor's end, in bytes. The thread does nothing else.
const WAITER_STACK_BYTES: usize = 128 * 1024;

/// How executors' processes are started.
#[derive(Clone, Debug)]
pub(crate) struct ProcessOptions {
    /// The variables that executors have beside their command's own.
    pub(crate) environment: EnvironmentBase,
    /// Variables of this program that executors don't inherit, besides [`SECRET_VARIABLES`].
    pub(crate) withheld: Vec<OsString>,
    /// The shell that runs watchdogs.
    pub(crate) shell: PathBuf,
    /// How long a watchdog may take to become ready.
    pub(crate) start_timeout: Duration,
}

/// The variables that an executor's environment starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EnvironmentBase {
    /// This program's variables, except those that are withheld.
    #[default]
    Inherited,
    /// Those of this program's [`BASIC_VARIABLES`] that are set.
    #[cfg(feature = "standalone")]
    Basic,
    /// No variables.
    Empty,
}

/// What programs need to find others and their files.
#[cfg(feature = "standalone")]
const BASIC_VARIABLES: [&str; 8] =
    ["HOME", "JAVA_HOME", "LANG", "LC_ALL", "PATH", "SPARK_HOME", "TZ", "USER"];

/// Why an executor was not started.
#[derive(Debug)]
pub(crate) struct StartError {
    /// One sentence for error messages.
    pub(crate) why: String,
    pub(crate) kind: StartErrorKind,
}

/// The kind of a [`StartError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartErrorKind {
    /// The failure is the executor's or the agent's.
    Failed,
    /// The command needs a feature that processes don't have, such as a container.
    Unsupported,
    /// The program or the machine has no more open files or processes available at the moment.
    LimitReached,
    /// The machine has no more memory or disk space available at the moment.
    Exhausted,
}

impl StartErrorKind {
    /// The kind of a start that has failed with this error.
    pub(crate) fn of(error: &io::Error) -> StartErrorKind {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN) => StartErrorKind::LimitReached,
            Some(Errno::NOMEM | Errno::NOSPC | Errno::DQUOT) => StartErrorKind::Exhausted,
            _ => StartErrorKind::Failed,
        }
    }

    /// Whether the agent has nothing left for what was to be started, which is no fault of that.
    pub(crate) fn is_agents(self) -> bool {
        matches!(self, StartErrorKind::LimitReached | StartErrorKind::Exhausted)
    }
}

impl StartError {
    fn failed(why: impl Into<String>) -> StartError {
        StartError { why: why.into(), kind: StartErrorKind::Failed }
    }

    fn unsupported(why: impl Into<String>) -> StartError {
        StartError { why: why.into(), kind: StartErrorKind::Unsupported }
    }

    /// A start that took too long.
    #[cfg(feature = "standalone")]
    pub(crate) fn given_up(why: &str) -> StartError {
        StartError::failed(why)
    }

    pub(crate) fn from_io(what: &str, error: &io::Error) -> StartError {
        StartError { why: format!("{what}: {error}"), kind: StartErrorKind::of(error) }
    }
}

/// A started executor and all other processes of its group. Dropping it kills the remaining processes.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Pid,
    executor: Pid,
    sandbox: PrivateFolder,
    /// Leads the group, dead or alive, until the group is reaped.
    first_watchdog: Option<Arc<Watchdog>>,
    /// The latest replacement of a watchdog that was killed.
    replacement: Option<Watchdog>,
    waiter: Option<JoinHandle<()>>,
    reaped: bool,
}

impl ProcessGroup {
    /// Starts `command` in `sandbox`, with `input` as standard input if there is one. `ended` is called on a separate
    /// thread as soon as the executor has ended.
    ///
    /// # Errors
    /// If the command is empty or needs more than a process, or if the watchdog, the program or the thread can't be
    /// started.
    pub(crate) fn start(
        options: &ProcessOptions,
        command: &Command,
        sandbox: Sandbox,
        input: Option<OwnedFd>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<ProcessGroup, StartError> {
        let argv = arguments(command)?;
        let Some((program, arguments)) = argv.split_first() else {
            return Err(StartError::failed("the command is empty"));
        };
        let folder = sandbox.folder;
        let mut watchdog = Watchdog::start(&options.shell, &folder, None, options.start_timeout)
            .map_err(|error| {
                StartError::from_io("the executor's watchdog can't be started", &error)
            })?;
        let mut process = Process::new(program);
        match options.environment {
            EnvironmentBase::Empty => drop(process.env_clear()),
            #[cfg(feature = "standalone")]
            EnvironmentBase::Basic => {
                process.env_clear();
                let set = |name| std::env::var_os(name).map(|value| (name, value));
                process.envs(BASIC_VARIABLES.into_iter().filter_map(set));
            }
            EnvironmentBase::Inherited => {
                let withheld = options.withheld.iter().map(OsString::as_os_str);
                for name in SECRET_VARIABLES.iter().map(OsStr::new).chain(withheld) {
                    process.env_remove(name);
                }
            }
        }
        let child = process
            .args(arguments)
            .envs(command.environment.iter().map(|(name, value)| (&**name, value)))
            .current_dir(folder.handle_path())
            .process_group(watchdog.pid().as_raw_pid())
            .stdin(input.map_or_else(Stdio::null, Stdio::from))
            .stdout(sandbox.stdout)
            .stderr(sandbox.stderr)
            .spawn()
            .map_err(|error| spawn_error(program, &error))?;
        let executor = Pid::from_child(&child);
        watchdog.watch(executor);
        let mut group = ProcessGroup {
            leader: watchdog.pid(),
            executor,
            sandbox: folder,
            first_watchdog: Some(Arc::new(watchdog)),
            replacement: None,
            waiter: None,
            reaped: false,
        };
        // Whatever is missing, the program may have begun: it isn't told as one that never was started.
        group
            .spawn_waiter(ended)
            .map_err(|error| StartError::failed(format!("no thread can be started: {error}")))?;
        Ok(group)
    }

    /// Starts the thread that waits for the executor's end. If it can't be started, the executor is killed.
    fn spawn_waiter(&mut self, ended: impl FnOnce() + Send + 'static) -> io::Result<()> {
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

    /// Returns the executor's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.executor.as_raw_pid()
    }

    /// Returns the executor's sandbox.
    pub(crate) fn sandbox(&self) -> &Path {
        self.sandbox.path()
    }

    /// Sends SIGTERM to the group.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL to the group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends `signal` to the group, and to the executor itself if it has left the group.
    fn signal(&self, signal: Signal) {
        if self.reaped {
            return;
        }
        let _ = kill_process_group(self.leader, signal);
        if self.executor_left() {
            let _ = kill_process(self.executor, signal);
        }
    }

    /// Whether the executor has moved to another process group. Returns `false` if other code of this program has
    /// reaped the executor, because its process id may belong to another process by now.
    fn executor_left(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(self.executor), how).is_ok()
            && getpgid(Some(self.executor)) != Ok(self.leader)
    }

    /// Whether the last watchdog has ended. The executor then needs a replacement.
    pub(crate) fn needs_watchdog(&self) -> bool {
        let last = self.replacement.as_ref().or(self.first_watchdog.as_deref());
        last.is_some_and(|watchdog| !watchdog.is_alive())
    }

    /// Returns a function that starts another watchdog, on any thread. The group keeps its number until that is done.
    pub(crate) fn replacement_watchdog(
        &self,
        options: &ProcessOptions,
    ) -> impl FnOnce() -> io::Result<Watchdog> + Send + 'static {
        let first_watchdog = self.first_watchdog.clone();
        let leader = self.leader;
        let sandbox = self.sandbox.clone();
        let ProcessOptions { shell, start_timeout, .. } = options.clone();
        move || {
            let replacement = Watchdog::start(&shell, &sandbox, Some(leader), start_timeout);
            drop(first_watchdog);
            replacement
        }
    }

    /// Makes `watchdog` the one that watches the executor from now on.
    pub(crate) fn replace_watchdog(&mut self, mut watchdog: Watchdog) {
        watchdog.watch(self.executor);
        self.replacement = Some(watchdog);
    }

    /// Kills the remaining processes of the group, reaps it, and returns how the executor ended. Blocks until the
    /// executor has ended.
    pub(crate) fn reap(&mut self) -> Exit {
        self.kill();
        self.reaped = true;
        let status = retry_on_intr(|| waitpid(Some(self.executor), WaitOptions::empty()));
        self.replacement = None;
        self.first_watchdog = None;
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
        match status {
            Ok(Some((_, status))) => Exit::from_status(status),
            _ => Exit::Unknown,
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills an executor whose start was given up earlier, and reaps it on a thread of its own.
pub(crate) fn discard(mut group: ProcessGroup) {
    group.kill();
    let reap = move || {
        let _how = group.reap();
    };
    // If no thread can be started, a zombie stays behind.
    let _no_thread = Builder::new().name("offermill-reap".into()).spawn(reap);
}

/// The argument list to execute. Fails if the command needs more than a process.
pub(crate) fn arguments(command: &Command) -> Result<Cow<'_, [String]>, StartError> {
    if let Some(what) = command.setup.as_ref().and_then(|setup| setup.unsupported_by_process()) {
        return Err(StartError::unsupported(format!(
            "the embedded cluster doesn't support {what}"
        )));
    }
    Ok(match command.form {
        CommandForm::Argv => Cow::Borrowed(&command.argv),
        CommandForm::EntryPoint => {
            let why = "the embedded cluster has no images with an entry point";
            return Err(StartError::unsupported(why.to_owned()));
        }
        CommandForm::Shell => {
            let line =
                command.shell_line().map_err(|why| StartError::unsupported(why.to_string()))?;
            Cow::Owned(vec!["/bin/sh".to_owned(), "-c".to_owned(), line])
        }
    })
}

fn spawn_error(program: &str, error: &io::Error) -> StartError {
    match error.kind() {
        io::ErrorKind::NotFound => {
            StartError::from_io(&format!("command {program:?} not found"), error)
        }
        _ => StartError::from_io(&format!("command {program:?} can't be started"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a temporary limit is distinguished from a failure of the agent. Method: system errors of both kinds.
    #[test]
    fn limits_are_told_from_failures() {
        for (errno, kind) in [
            (Errno::MFILE, StartErrorKind::LimitReached),
            (Errno::NFILE, StartErrorKind::LimitReached),
            (Errno::AGAIN, StartErrorKind::LimitReached),
            (Errno::NOMEM, StartErrorKind::Exhausted),
            (Errno::NOSPC, StartErrorKind::Exhausted),
            (Errno::DQUOT, StartErrorKind::Exhausted),
            (Errno::NOENT, StartErrorKind::Failed),
            (Errno::ACCESS, StartErrorKind::Failed),
        ] {
            let error = spawn_error("etl", &errno.into());
            assert_eq!(error.kind, kind, "{}", error.why);
            assert_eq!(kind.is_agents(), kind != StartErrorKind::Failed);
            assert!(error.why.starts_with("command \"etl\" "));
        }
    }
}
