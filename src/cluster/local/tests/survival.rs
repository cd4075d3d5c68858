//! Tests that no executor survives the program. The test binary runs itself as the program that is killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

use super::bench::{Bench, Folder, launch, processes_in, until};
use crate::cluster::process::WATCHDOG_NAME;
use crate::status::TaskState;

const FOLDER: &str = "OFFERMILL_TEST_VICTIM_FOLDER";
const LEAVERS: &str = "OFFERMILL_TEST_VICTIM_LEAVERS";
/// The name of the file that the victim writes when all its executors run.
const READY: &str = "ready";
const EXECUTORS: usize = 64;

/// Lines of shell that the victim's executors run in turn: one that ends on signals, one that ignores all signals that
/// can be ignored, and one with child processes.
const LINES: [&str; 3] = [
    "exec sleep 1000",
    "trap '' TERM HUP INT; while :; do sleep 0.1; done",
    "sleep 1000 & (sleep 1000 & sleep 1000) & wait",
];
/// A line that leaves its process group. Its watchdog can't reach it before it gets the new group's number.
const LEAVER: &str = "exec setsid sleep 1000";

/// Not a test by itself: the program that the tests below run and kill. It starts executors until it is killed.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut lines = LINES.to_vec();
    lines.extend(std::env::var_os(LEAVERS).map(|_| LEAVER));
    let master = format!("local-cluster[1,{EXECUTORS},65536]");
    let bench = Bench::with("victim", &master, |config| config.work_dir(&folder));
    let ids: Vec<String> = (0..EXECUTORS).map(|number| format!("executor-{number}")).collect();
    let lines = lines.iter().cycle();
    let launches = ids.iter().zip(lines).map(|(id, line)| launch(id, &["sh", "-c", line]));
    bench.accept(&bench.offer(), &launches.collect::<Vec<_>>(), Duration::ZERO);
    for id in &ids {
        bench.update(id, TaskState::Running);
    }
    std::fs::write(Path::new(&folder).join(READY), "").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

/// The program that is killed. It is also killed if the test fails earlier.
struct Victim(Child);

impl Victim {
    fn start(folder: &Path) -> Victim {
        Victim(victim_of(folder).spawn().unwrap())
    }

    /// Starts a victim, and waits until its executors run.
    fn start_ready(folder: &Path) -> Victim {
        Victim::start(folder).until_ready(folder)
    }

    /// Starts a victim of which some executors leave their process group, and waits until its executors run.
    fn start_ready_with_leavers(folder: &Path) -> Victim {
        Victim(victim_of(folder).env(LEAVERS, "yes").spawn().unwrap()).until_ready(folder)
    }

    fn until_ready(self, folder: &Path) -> Victim {
        until("ready", || folder.join(READY).exists());
        self
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn victim_of(folder: &Path) -> Command {
    let module = module_path!().split_once("::").unwrap().1;
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args([&format!("{module}::victim"), "--exact", "--nocapture"]);
    victim.env(FOLDER, folder).env("TMPDIR", folder).stdout(Stdio::null());
    victim
}

fn expect_nobody(folder: &Path, when: &str) {
    until(&format!("nobody left {when}"), || processes_in(folder).is_empty());
}

/// Goal: SIGKILL of the program ends every executor, at any stage of its start. Method: kill the program again and
/// again, each time a little later.
#[test]
fn executors_end_with_a_program_that_is_killed() {
    for round in 0..12 {
        let folder = Folder::new(&format!("killed-{round}"));
        let victim = Victim::start(&folder.0);
        until("started", || !processes_in(&folder.0).is_empty());
        std::thread::sleep(Duration::from_micros(700 * round * round));
        victim.end(Signal::KILL);
        expect_nobody(&folder.0, &format!("in round {round}"));
    }
}

/// Goal: the program's executors also end if it ends in another way. Method: SIGTERM, which the program doesn't handle.
#[test]
fn executors_end_with_a_program_that_is_terminated() {
    let folder = Folder::new("terminated");
    let victim = Victim::start_ready_with_leavers(&folder.0);
    victim.end(Signal::TERM);
    expect_nobody(&folder.0, "after SIGTERM");
}

/// Goal: an executor that was asked to end is still watched until it has ended. Method: the watchdog of an executor
/// that ends slowly, some time after the signal to the process group of both.
#[test]
fn watchdogs_outlast_a_polite_kill() {
    let bench = Bench::new("polite-watchdog", "local-cluster[1,1,512]");
    let watchdogs =
        || processes_in(&bench.sandboxes()).into_iter().filter(is_watchdog).collect::<Vec<_>>();
    bench.run_until_ready("deaf", "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    let before = watchdogs();
    assert_eq!(before.len(), 1);
    bench.kill("deaf", Duration::from_secs(600));
    bench.update("deaf", TaskState::Killing);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(watchdogs(), before);
    bench.kill("deaf", Duration::ZERO);
    bench.update("deaf", TaskState::Killed);
}

fn is_watchdog(pid: &i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(WATCHDOG_NAME))
}

/// Goal: watchdogs that are killed are replaced. Method: kill all of them, wait for their replacements, stop one
/// process group, then kill the program. The operating system wakes stopped processes that no living process could
/// wake.
#[test]
fn watchdogs_that_are_killed_are_replaced() {
    let folder = Folder::new("watchdogs");
    let victim = Victim::start_ready(&folder.0);
    let watchdogs = || processes_in(&folder.0).into_iter().filter(is_watchdog).collect::<Vec<_>>();
    let killed = watchdogs();
    assert_eq!(killed.len(), EXECUTORS);
    for pid in &killed {
        kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
    }
    until("replaced", || {
        let alive = watchdogs();
        alive.len() == EXECUTORS && alive.iter().all(|pid| !killed.contains(pid))
    });
    let group = getpgid(Pid::from_raw(watchdogs()[0])).unwrap();
    kill_process_group(group, Signal::STOP).unwrap();
    victim.end(Signal::KILL);
    expect_nobody(&folder.0, "without their first watchdogs");
}
