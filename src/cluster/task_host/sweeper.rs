//! The sweeper: a helper process of a host that kills the host's tasks when the host ends, even by SIGKILL.
//!
//! Each task leads a process group of its own, so the signals that end the host's own group don't reach it. The sweeper
//! is a small `/bin/sh` in a group of its own, at the end of a pipe whose other end only the host holds. The host tells
//! it which groups there are. When the pipe ends, it kills them, and then all processes that have the host's mark in
//! their environment (on Linux): also a task that was started in the moment in which the host was killed, of which it
//! wasn't told, and processes that have left their task's group. *Out of reach* are processes that left the group and
//! removed the mark, or whose environment can't be read or was overwritten: `/proc` hides that of programs that change
//! their user or forbid to be looked at. So are processes that leave a child and end faster than they are looked for.
//! On systems without `/proc`, `grep -z` or `xargs`, all are that left the group. Who sets the mark in the environment
//! of a process of its own has that killed with the host.
//!
//! Its standard output is the connection to the cluster. So the cluster sees the end of the connection only after the
//! sweeper has done its work: a task that is lost with its host is not started again before. As its last word the
//! sweeper writes there that it has swept, if it found nothing any more and the system has what it looks with. A
//! cluster that sees the end without that word, because the sweeper was killed, sweeps itself (`remains`). On Mesos
//! there is no such connection: if host and sweeper are killed in one moment, the agent alone ends what is left.
//!
//! A host whose sweeper was killed ends itself.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The variable with which a host, and each of its tasks, is marked.
pub(crate) const MARK_VARIABLE: &str = "OFFERMILL_TASK_HOST";

/// Reads the mark, and groups that begin and end. At the end of the pipe it kills those that are left, and looks for
/// the mark until three looks in a row have found nothing that has it: a process that has just been forked may be
/// missed by one. `xargs` splits lists of processes that are too long for one command. The host, its parent, has the
/// mark, too; it has ended or is about to.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 PIPE ALRM
groups=' '
read -r mark
while read -r sign group; do
    case $sign in
    +) groups=\"$groups$group \" ;;
    -) case $groups in *\" $group \"*) groups=\"${groups%% $group *} ${groups#* $group }\" ;; esac ;;
    esac
done
for group in $groups; do kill -KILL \"-$group\"; done
rounds=0 clean=0
while [ $rounds -lt 200 ] && [ $clean -lt 3 ]; do
    found=$(printf '%s\\n' /proc/[0-9]*/environ | grep -vxF \"/proc/$PPID/environ\" |
        xargs grep -lsxzF -e \"$mark\" /dev/null)
    if [ \"$found\" ]; then clean=0; else clean=$((clean + 1)); fi
    for path in $found; do pid=${path#/proc/}; kill -KILL \"${pid%/environ}\"; done
    rounds=$((rounds + 1))
done
[ $clean -ge 3 ] && command -v xargs >/dev/null && printf 'b\\0a\\0' | grep -qxzF a && printf \"$1\"";

/// The sweeper's name in lists of processes. Its command line names neither the program nor the host, so `pkill -f`
/// spares it.
const NAME: &str = "task-sweeper";

/// A host's sweeper. It does its work when this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct Sweeper {
    child: Child,
    groups: ChildStdin,
}

impl Sweeper {
    /// Starts the sweeper of the host with this mark, which holds the connection as long as it runs, and at its end
    /// writes its last word there.
    ///
    /// # Errors
    /// If it can't be started.
    pub(crate) fn start(mark: &str, connection: OwnedFd, last_word: &[u8]) -> io::Result<Sweeper> {
        // As a format of `printf`.
        let last_word: String = last_word.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, NAME, &last_word])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(connection)
            .stderr(Stdio::null())
            .spawn()?;
        let mut groups = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        groups.write_all(format!("{MARK_VARIABLE}={mark}\n").as_bytes())?;
        Ok(Sweeper { child, groups })
    }

    /// A group exists from now on.
    ///
    /// # Errors
    /// If the sweeper doesn't run any more.
    pub(super) fn add(&mut self, group: Pid) -> io::Result<()> {
        self.groups.write_all(format!("+ {}\n", group.as_raw_pid()).as_bytes())
    }

    /// A group is about to end: its number may be given to another one.
    ///
    /// # Errors
    /// If the sweeper doesn't run any more.
    pub(super) fn remove(&mut self, group: Pid) -> io::Result<()> {
        self.groups.write_all(format!("- {}\n", group.as_raw_pid()).as_bytes())
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_pid()
    }

    /// Whether this is its process.
    pub(super) fn is(&self, pid: Pid) -> bool {
        Pid::from_child(&self.child) == pid
    }

    /// Whether it has ended, which it shouldn't.
    pub(super) fn has_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), how), Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Goal: what has the mark is killed as well, whatever its group, and nothing else. Method: a process that the
    /// sweeper isn't told of, and one with a longer mark.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_mark_is_looked_for() {
        let sleep = |mark: &str| {
            let mut sleep = Command::new("sleep");
            sleep.arg("600").env(MARK_VARIABLE, mark).process_group(0).spawn().unwrap()
        };
        let mark = format!("a/mark of {}", std::process::id());
        let (mut marked, mut other) = (sleep(&mark), sleep(&format!("{mark}0")));
        let (mut own, held) = UnixStream::pair().unwrap();
        let Sweeper { mut child, groups } =
            Sweeper::start(&mark, held.into(), b"\0me%\x07").unwrap();
        drop(groups);
        let mut said = Vec::new();
        own.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"\0me%\x07");
        assert!(child.wait().unwrap().success());
        marked.wait().unwrap();
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// Goal: the sweeper kills the groups that were named to it and have not ended, also of processes without a
    /// mark, and the connection ends only then. Method: three groups, of which one is said to have ended.
    #[test]
    fn groups_are_killed_at_the_end() {
        let sleep = || {
            let mut sleep = Command::new("sleep");
            sleep.arg("600").env_clear().process_group(0).spawn().unwrap()
        };
        let mut processes = [sleep(), sleep(), sleep()];
        let (mut own, other) = UnixStream::pair().unwrap();
        let mut sweeper = Sweeper::start("a/mark of nobody", other.into(), &[]).unwrap();
        for process in &processes {
            sweeper.add(Pid::from_child(process)).unwrap();
        }
        sweeper.remove(Pid::from_child(&processes[1])).unwrap();
        assert!(!sweeper.has_ended());
        let Sweeper { mut child, groups } = sweeper;
        drop(groups);
        assert_eq!(own.read(&mut [0]).unwrap(), 0);
        assert!(child.wait().unwrap().success());
        processes[0].wait().unwrap();
        processes[2].wait().unwrap();
        assert!(processes[1].try_wait().unwrap().is_none());
        processes[1].kill().unwrap();
        processes[1].wait().unwrap();
    }
}
