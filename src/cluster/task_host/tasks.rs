//! The tasks of a host: each is a process that leads a group of its own, with its output in a folder of its own.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, wait, waitid, waitpid,
};

use super::message::HostReport;
use super::sweeper::{MARK_VARIABLE, Sweeper};
use crate::cluster::process::{Exit, StartErrorKind};
use crate::private_files::PrivateFolder;

/// The maximum grace period of a kill.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The variable with the secret by which an agent of Mesos knows a host. Its tasks don't get it.
const TOKEN_VARIABLE: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

/// A task with a process.
#[derive(Debug)]
struct RunningTask {
    name: String,
    force_at: Option<Instant>,
}

/// The tasks that have processes, and the sweeper, which knows the group of each.
#[derive(Debug)]
pub(crate) struct RunningTasks {
    folder: PrivateFolder,
    sweeper: Sweeper,
    /// By which the sweeper finds what a task leaves behind.
    mark: String,
    /// Files that each task finds in its folder: their names, and where they are.
    shared: Vec<(String, PathBuf)>,
    /// By process, which is the task's group as well.
    tasks: HashMap<Pid, RunningTask>,
    pids: HashMap<String, Pid>,
}

impl RunningTasks {
    /// Tasks whose folders are in `folder`, of the host with this mark.
    pub(crate) fn new(folder: PrivateFolder, sweeper: Sweeper, mark: String) -> RunningTasks {
        let (tasks, pids) = (HashMap::new(), HashMap::new());
        RunningTasks { folder, sweeper, mark, shared: Vec::new(), tasks, pids }
    }

    /// Has each task find these files in its folder, as links.
    #[cfg(feature = "mesos")]
    pub(crate) fn with_shared(self, shared: Vec<(String, PathBuf)>) -> RunningTasks {
        RunningTasks { shared, ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts a task. Returns what is to be reported of it.
    ///
    /// # Errors
    /// If the sweeper doesn't run any more.
    pub(super) fn start(
        &mut self,
        name: String,
        argv: &[String],
        environment: Vec<(String, String)>,
    ) -> io::Result<HostReport> {
        let (pid, folder) = match self.spawn(&name, argv, environment) {
            Ok(spawned) => spawned,
            Err((why, error)) => {
                let is_busy = StartErrorKind::of(&error).is_agents();
                let why = format!("{why}: {error}");
                return Ok(HostReport::NotStarted { task: name, why, is_busy });
            }
        };
        let report = HostReport::Started { task: name.clone(), pid: pid.as_raw_pid(), folder };
        self.pids.insert(name.clone(), pid);
        self.tasks.insert(pid, RunningTask { name, force_at: None });
        self.sweeper.add(pid)?;
        Ok(report)
    }

    fn spawn(
        &self,
        name: &str,
        argv: &[String],
        environment: Vec<(String, String)>,
    ) -> Result<(Pid, String), (String, io::Error)> {
        let in_sandbox = |error| ("the sandbox can't be created".to_owned(), error);
        let folder = self.folder.subfolder(name).map_err(in_sandbox)?;
        let stdout = folder.create_file("stdout").map_err(in_sandbox)?;
        let stderr = folder.create_file("stderr").map_err(in_sandbox)?;
        for (name, place) in &self.shared {
            symlink(place, folder.handle_path().join(name)).map_err(in_sandbox)?;
        }
        let Some((program, arguments)) = argv.split_first() else {
            return Err(("the task".to_owned(), io::Error::other("its command is empty")));
        };
        let child = Command::new(program)
            .args(arguments)
            .env_remove(TOKEN_VARIABLE)
            .envs(environment)
            .env(MARK_VARIABLE, &self.mark)
            .current_dir(folder.handle_path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn();
        let child = child.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => (format!("command {program:?} not found"), error),
            _ => (format!("command {program:?} can't be started"), error),
        })?;
        Ok((Pid::from_child(&child), folder.path().to_string_lossy().into_owned()))
    }

    /// Asks a task to end, and has it killed after `grace`. A repeated call can only shorten the grace.
    pub(super) fn kill(&mut self, name: &str, grace: Duration, now: Instant) {
        if let Some(pid) = self.pids.get(name)
            && let Some(task) = self.tasks.get_mut(pid)
        {
            let force_at = now + grace.min(GRACE_MAX);
            if task.force_at.is_none() {
                let _ = kill_process_group(*pid, Signal::TERM);
            }
            task.force_at = Some(task.force_at.map_or(force_at, |sooner| sooner.min(force_at)));
        }
    }

    /// Asks all tasks to end, and has them killed after `grace`.
    pub(super) fn kill_all(&mut self, grace: Duration, now: Instant) {
        let names: Vec<String> = self.pids.keys().cloned().collect();
        names.iter().for_each(|name| self.kill(name, grace, now));
    }

    /// Kills all tasks.
    pub(super) fn kill_now(&self) {
        for pid in self.tasks.keys() {
            let _ = kill_process_group(*pid, Signal::KILL);
        }
    }

    /// When the next task is to be killed by force.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.tasks.values().filter_map(|task| task.force_at).min()
    }

    /// Kills the tasks whose grace is over. Each ends soon; until then it is killed again.
    pub(super) fn kill_due(&mut self, now: Instant) {
        for (pid, task) in &mut self.tasks {
            if task.force_at.is_some_and(|force_at| force_at <= now) {
                let _ = kill_process_group(*pid, Signal::KILL);
                task.force_at = Some(now + Duration::from_secs(1));
            }
        }
    }

    /// Reaps the tasks that have ended, with what they left in their groups. Returns what is to be reported.
    ///
    /// A group is killed before its leader is reaped: until then its number belongs to it.
    ///
    /// # Errors
    /// If the sweeper doesn't run any more.
    pub(super) fn reap(&mut self) -> io::Result<Vec<HostReport>> {
        if self.sweeper.has_ended() {
            return Err(sweeper_has_ended());
        }
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let has_ended = |pid: &Pid| !matches!(waitid(WaitId::Pid(*pid), how), Ok(None));
        let ended: Vec<Pid> = self.tasks.keys().copied().filter(has_ended).collect();
        let mut reports = Vec::with_capacity(ended.len());
        for pid in ended {
            let _ = kill_process_group(pid, Signal::KILL);
            self.sweeper.remove(pid)?;
            let status = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
            let exit = match status {
                Ok(Some((_, status))) => Exit::from_status(status),
                _ => Exit::Unknown,
            };
            reports.extend(self.ended(pid, exit));
        }
        Ok(reports)
    }

    /// Reaps the other children that have ended: what tasks leave becomes the host's own if it is the first process of
    /// a container. Returns what is to be reported if a task ends in this very moment.
    ///
    /// The caller must be a process of its own: all its children are meant.
    ///
    /// # Errors
    /// If the sweeper doesn't run any more.
    pub(super) fn reap_others(&mut self) -> io::Result<Vec<HostReport>> {
        let mut reports = Vec::new();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if self.sweeper.is(pid) {
                return Err(sweeper_has_ended());
            }
            if self.tasks.contains_key(&pid) {
                // Its number can't be another's yet: numbers are given out in turn.
                let _ = kill_process_group(pid, Signal::KILL);
                let _ended = self.sweeper.remove(pid);
                reports.extend(self.ended(pid, Exit::from_status(status)));
            }
        }
        Ok(reports)
    }

    fn ended(&mut self, pid: Pid, exit: Exit) -> Option<HostReport> {
        let task = self.tasks.remove(&pid)?;
        self.pids.remove(&task.name);
        Some(HostReport::Ended { task: task.name, exit })
    }
}

fn sweeper_has_ended() -> io::Error {
    io::Error::other("its sweeper has ended")
}
