//! The watchdog: a helper process that kills an executor's process group when this program ends, even by SIGKILL.
//!
//! A program that is killed with SIGKILL can't clean up. So each executor has a watchdog: a small `/bin/sh` that waits
//! for the end of a pipe whose other end only this program holds. When the program ends for any reason, the kernel
//! closes that end, and the watchdog kills the process group that it is in, itself included.
//!
//! The order of steps leaves no gap for processes that stay in the group:
//! 1. The watchdog is started first. It leads a process group of its own, and prints `ready` once it ignores the
//!    signals that are sent to that group. If the program ends now, the watchdog ends itself.
//! 2. The executor is then started *into* that group. Between its `fork` and its `exec` the child still holds a copy of
//!    the program's end of the pipe (which is closed on `exec`), and it joins the group before its `exec`. So the
//!    watchdog can't see the end of the pipe before the executor is in the group.
//! 3. The watchdog is then given the executor's own process number, so that an executor that leaves the group
//!    (`setsid`) ends as well. *Out of reach* are processes that such an executor starts outside of the group, and an
//!    executor that has left the group already when the program ends during step 3. Holding the executor back until the
//!    watchdog knows its number would take a shell in front of it, which changes its environment and hides the reason
//!    when it can't be started. With the number the watchdog is given the time at which the process began, and kills
//!    only a process that began then: once this program has ended, an executor that has ended is reaped, and its number
//!    may be given to another process before a watchdog that was stopped goes on. (On Linux; elsewhere only the
//!    number.)
//!
//! The watchdog, as the leader, also keeps the group's number from being used again: the number is in use until the
//! leader is reaped, and that happens only after the last signal was sent to the group. A watchdog that was killed
//! stays unreaped for this reason, and a replacement is started into the same group.
//!
//! A watchdog that doesn't report that it is ready in time is killed.
//!
//! Its command line doesn't name the program: `pkill -9 -f` with the program's name spares the watchdogs, which then do
//! their work. *Out of reach*: if a watchdog is killed with SIGKILL at the same time as the program, before its
//! replacement has started, the executor lives on, and the next run doesn't look for it. Its working folder is its
//! sandbox, by which it can be found in `/proc/*/cwd`.
//!
//! If a host program forks without `exec` while executors run, the child inherits the program's end of the pipe, and
//! the executors live until that child ends too.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::start_time::start_time;
use crate::private_files::PrivateFolder;

/// Reads the executor's number and, if known, when it began, then waits for the end of the pipe. `kill ... 0` signals
/// the watchdog's own group.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 PIPE ALRM
echo ready
exec >/dev/null 2>&1
read -r executor began
read -r end
if [ \"$began\" ]; then
    now=
    read -r stat </proc/$executor/stat && set -- ${stat##*\\) } && now=${20}
    [ \"$now\" = \"$began\" ] || executor=
fi
kill -KILL $executor 0";

/// The watchdog's name in lists of processes. It differs from the program's name, see above.
pub(crate) const NAME: &str = "executor-watchdog";

/// A running watchdog. Dropping it kills and reaps it; when the group's first one is dropped, the group's number is
/// free.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog in `shell` and waits until it is ready, for up to `timeout`. It runs in `sandbox` and in
    /// `group`, or leads a new group.
    pub(super) fn start(
        shell: &Path,
        sandbox: &PrivateFolder,
        group: Option<Pid>,
        timeout: Duration,
    ) -> io::Result<Watchdog> {
        let child = Command::new(shell)
            .args(["-c", SCRIPT, NAME])
            .env_clear()
            .current_dir(sandbox.handle_path())
            .process_group(group.map_or(0, |leader| leader.as_raw_pid()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut watchdog = Watchdog { child };
        watchdog.await_ready(Instant::now() + timeout)?;
        Ok(watchdog)
    }

    fn await_ready(&mut self, until: Instant) -> io::Result<()> {
        const READY: &[u8] = b"ready\n";
        let Some(mut stdout) = self.child.stdout.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut line = [0; READY.len()];
        let mut bytes = 0;
        while let Some(rest) = line.get_mut(bytes..).filter(|rest| !rest.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            let mut readable = [PollFd::new(&stdout, PollFlags::IN)];
            match poll(&mut readable, Some(&left)) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it doesn't answer")),
                polled => polled?,
            };
            match stdout.read(rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => bytes += more,
            }
        }
        if line == *READY { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Returns the watchdog's process id.
    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends the executor's process number to the watchdog. A watchdog that has ended is replaced later, see
    /// [`Watchdog::is_alive`].
    pub(super) fn watch(&mut self, executor: Pid) {
        self.watch_since(executor, &start_time(executor).unwrap_or_default());
    }

    fn watch_since(&mut self, executor: Pid, began: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(format!("{} {began}\n", executor.as_raw_pid()).as_bytes());
        }
    }

    /// Whether the watchdog runs. If it has ended, it stays unreaped.
    pub(super) fn is_alive(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(self.pid()), how), Ok(None))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Goal: a watchdog kills the process that it was given, in whatever group that is, but no other that has its
    /// number by now. Method: a process outside of the watchdog's group, given with the time at which it began, with
    /// another time, and with its time unknown; its name has parentheses and blanks. The end of the pipe, and the end
    /// of the watchdog.
    #[test]
    fn a_number_that_was_given_to_another_process_is_spared() {
        let folder = tempfile::tempdir().unwrap();
        let sleep = folder.path().join("a) b (c");
        std::os::unix::fs::symlink("/bin/sleep", &sleep).unwrap();
        let sandbox = PrivateFolder::open(folder.path()).unwrap();
        let time = |process: &Child| start_time(Pid::from_child(process)).unwrap();
        for (is_other, is_known) in [(false, true), (true, true), (false, false)] {
            let mut process = Command::new(&sleep).arg("600").process_group(0).spawn().unwrap();
            let timeout = Duration::from_secs(60);
            let mut watchdog =
                Watchdog::start(Path::new("/bin/sh"), &sandbox, None, timeout).unwrap();
            let executor = Pid::from_child(&process);
            match (is_other, is_known) {
                (false, true) => watchdog.watch(executor),
                (true, _) => watchdog.watch_since(executor, &format!("{}0", time(&process))),
                (false, false) => watchdog.watch_since(executor, ""),
            }
            drop(watchdog.child.stdin.take());
            assert_eq!(watchdog.child.wait().unwrap().signal(), Some(9));
            if is_other {
                assert!(process.try_wait().unwrap().is_none());
                process.kill().unwrap();
            }
            assert_eq!(process.wait().unwrap().signal(), Some(9));
        }
    }
}
