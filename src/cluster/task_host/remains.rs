//! What is left of a host whose sweeper hasn't said that it has swept: the cluster finds it, and kills it itself.
//!
//! Known are the groups of the tasks that the host has told of, and the mark that its processes have in their
//! environment. So what is out of reach is what is so for the [sweeper](super::sweeper), too. Systems without `/proc`
//! have the groups alone.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use super::message::HostReport;
use super::sweeper::MARK_VARIABLE;
use crate::cluster::process::start_time;

/// How many looks in a row must find nothing: a process that has just been forked may be missed by one.
const CLEAN_LOOKS: u32 = 3;
/// The time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long it is looked for what doesn't end, such as a process that a file system holds.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// The most bytes of an environment that are read: more than a system allows it to have.
#[cfg(target_os = "linux")]
const ENVIRONMENT_BYTES_MAX: u64 = 16 << 20;

/// What a host leaves if nothing else ends it.
#[derive(Debug)]
pub(super) struct Remains {
    /// The mark as it stands in an environment.
    mark: Vec<u8>,
    sweeper: Option<GroupLeader>,
    /// The leaders of the tasks' groups, by what the host calls the tasks.
    tasks: HashMap<String, GroupLeader>,
}

/// The first process of a group, whose number is the group's.
#[derive(Debug)]
struct GroupLeader {
    pid: Pid,
    began: Option<String>,
}

impl Remains {
    /// Those of the host with this mark, which has no tasks yet.
    pub(super) fn new(mark: &str) -> Remains {
        let mark = format!("{MARK_VARIABLE}={mark}").into_bytes();
        Remains { mark, sweeper: None, tasks: HashMap::new() }
    }

    /// Follows what the host tells.
    pub(super) fn follow(&mut self, report: &HostReport) {
        match report {
            HostReport::Ready { sweeper } => self.sweeper = GroupLeader::of(*sweeper),
            HostReport::Started { task, pid, .. } => {
                let leader = GroupLeader::of(*pid).map(|leader| (task.clone(), leader));
                self.tasks.extend(leader);
            }
            HostReport::Ended { task, .. } => drop(self.tasks.remove(task)),
            HostReport::NotStarted { .. } | HostReport::Pong | HostReport::Swept => {}
        }
    }

    /// Kills them. Returns whether they are gone, after 10 s at most.
    pub(super) fn kill(&self) -> bool {
        // A sweeper that is stopped would signal these groups later, when they may be others'.
        let leaders = self.sweeper.iter().chain(self.tasks.values());
        let groups: HashSet<i32> = leaders.filter_map(GroupLeader::own_group).collect();
        let give_up = Instant::now() + KILL_WAIT;
        let mut clean = 0;
        while clean < CLEAN_LOOKS {
            if give_up <= Instant::now() {
                return false;
            }
            for group in groups.iter().filter_map(|group| Pid::from_raw(*group)) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let found = self.find(&groups);
            clean = if found.is_empty() { clean + 1 } else { 0 };
            for (pid, group) in found {
                // The group of a task of which the host had no time to tell.
                if pid == group {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(LOOK_INTERVAL);
        }
        true
    }

    /// The processes that are in these groups or have the mark, and haven't ended; each with its group.
    #[cfg(target_os = "linux")]
    fn find(&self, groups: &HashSet<i32>) -> Vec<(Pid, Pid)> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let pids = processes.filter_map(number).filter_map(Pid::from_raw);
        let is_own = |(pid, group): &(Pid, Pid)| {
            groups.contains(&group.as_raw_pid()) || self.has_mark(*pid).unwrap_or(false)
        };
        pids.filter_map(|pid| Some((pid, group_of(pid)?))).filter(is_own).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn find(&self, _: &HashSet<i32>) -> Vec<(Pid, Pid)> {
        let Remains { mark: _unused, .. } = self;
        Vec::new()
    }

    #[cfg(target_os = "linux")]
    fn has_mark(&self, pid: Pid) -> std::io::Result<bool> {
        use std::io::Read;
        let file = std::fs::File::open(format!("/proc/{}/environ", pid.as_raw_pid()))?;
        let mut environment = Vec::new();
        file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment)?;
        Ok(environment.split(|byte| *byte == 0).any(|variable| variable == self.mark))
    }
}

impl GroupLeader {
    /// The process with this number. `None` if that can't be a task's.
    fn of(pid: i32) -> Option<GroupLeader> {
        let pid = Pid::from_raw(pid).filter(|pid| *pid != Pid::INIT && *pid != getpgrp())?;
        Some(GroupLeader { pid, began: start_time(pid) })
    }

    /// The number of its group, unless another process has that by now. (As long as a group has members, no process
    /// is given its number.)
    fn own_group(&self) -> Option<i32> {
        let now = start_time(self.pid);
        (now.is_none() || now == self.began).then(|| self.pid.as_raw_pid())
    }
}

/// The group of a process. `None` if it has ended.
#[cfg(target_os = "linux")]
fn group_of(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The state, the parent and the group follow the name, which ends with the last `)`.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let has_ended = ["Z", "X"].contains(&fields.next()?);
    let group = fields.nth(1)?.parse().ok()?;
    if has_ended { None } else { Pid::from_raw(group) }
}
