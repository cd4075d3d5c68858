//! Ends of hosts whose sweepers don't do their work, or do it late, and hosts that hang; as real processes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::bench::{Bench, launch, processes_in};
use super::hosts::{assert_ended, ends, host, impostor, start_host, task};
use crate::cluster::task_host::HostPatience;
use crate::engine::cluster_manager::Launch;
use crate::status::TaskState;

fn send(signal: Signal, pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The sweeper of the host with this process.
fn sweeper_of(host: i32) -> i32 {
    let is_it = |pid: &i32| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let parent =
            read("stat").rsplit_once(") ").and_then(|it| it.1.split(' ').nth(1)?.parse().ok());
        parent == Some(host) && read("cmdline").contains("\0task-sweeper\0")
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(is_it).unwrap()
}

/// Goal: nothing of a host's tasks is left when they are reported as gone, whatever became of the sweeper. Method: the
/// sweeper is killed before the host, after it while it is stopped, in the same moment, and alone; the host is stopped
/// meanwhile, so that it can't kill its tasks.
#[test]
fn tasks_are_swept_without_a_sweeper() {
    let killed = "killed by signal 9 (SIGKILL)";
    for (round, signals) in ["host sweeper", "sweeper host"].into_iter().enumerate() {
        let bench = Bench::new(&format!("host-ends-{round}"), "local-cluster[1,4,1024]");
        let host = start_host(&bench);
        let sweeper = sweeper_of(host);
        send(Signal::STOP, host);
        send(Signal::STOP, sweeper);
        for name in signals.split(' ') {
            send(Signal::KILL, if name == "host" { host } else { sweeper });
        }
        assert_ended(&bench, killed);
    }
    let bench = Bench::new("host-ends-alone", "local-cluster[1,4,1024]");
    send(Signal::KILL, sweeper_of(start_host(&bench)));
    // That of a test that fails.
    assert_ended(&bench, "exit code 101");
}

/// Goal: a connection that somebody holds beyond the host's end is cut, and who holds it is killed before the tasks are
/// reported. Method: a shell that ends, with a process in a session of its own that holds the connection; a short
/// patience.
#[test]
fn a_held_connection_is_cut() {
    let patience = HostPatience { closed_wait: Duration::from_secs(2), ..HostPatience::default() };
    let bench = Bench::with("host-ends-held", "local-cluster[1,4,1024]", |config| {
        config.host_patience(patience)
    });
    let offer = bench.offer();
    let line = "exec 3<&0; setsid sh -c 'echo >there; exec sleep 600' &
        until [ -e there ]; do sleep 0.01; done; exit 3";
    bench.accept(&offer, &[impostor("h", line), task("a", "h", "true")], Duration::ZERO);
    let dropped = bench.update("a", TaskState::Dropped).message;
    assert_eq!(dropped, "its host h is gone: exit code 3");
    assert_eq!(processes_in(&bench.sandbox(&offer, "h")), [] as [i32; 0]);
}

/// Goal: a host that hangs after it was ready is ended with its tasks, and one that has nothing to say isn't. Method: a
/// host of each kind, with a short patience; one is stopped, then both it and its sweeper are.
#[test]
fn a_hanging_host_is_ended() {
    // What is left after the connection was cut must be found within the second, beside other tests.
    let patience = HostPatience {
        look_interval: Duration::from_millis(300),
        closed_wait: Duration::from_secs(3),
    };
    for is_sweeper_stopped in [false, true] {
        let name = format!("host-ends-stopped-{is_sweeper_stopped}");
        let bench =
            Bench::with(&name, "local-cluster[2,4,1024]", |config| config.host_patience(patience));
        let offers = bench.offers();
        let quiet: [Launch<'_>; 2] = [host("quiet"), task("t", "quiet", "sleep 600")];
        bench.accept(&offers[0], &quiet, Duration::ZERO);
        bench.update("t", TaskState::Running);
        let launches = [host("h"), task("a", "h", "setsid sleep 600 & sleep 600")];
        bench.accept(&offers[1], &launches, Duration::ZERO);
        let process = bench.update("h", TaskState::Running).process.unwrap().pid.unwrap() as i32;
        bench.update("a", TaskState::Running);
        let sandbox = bench.sandbox(&offers[1], "a");
        if is_sweeper_stopped {
            send(Signal::STOP, sweeper_of(process));
        }
        send(Signal::STOP, process);
        let stopped = Instant::now();
        let gone = bench.update("a", TaskState::Gone).message;
        assert_eq!(gone, "its host h is gone: the host doesn't answer after 1.8 s");
        assert_eq!(processes_in(&sandbox), [] as [i32; 0]);
        assert!(stopped.elapsed() > patience.look_interval * 5);
        bench.update("h", TaskState::Failed);
        assert_eq!(ends(&bench, "quiet") + ends(&bench, "t"), 0, "the other host was ended");
    }
}

/// Goal: tasks of a host that has sent nonsense are reported only once its sweeper has done its work. Method: a shell
/// that sends nonsense, with a process that holds the connection for a second, and then says that it ends.
#[test]
fn the_sweeper_of_a_faulty_host_is_waited_for() {
    let bench = Bench::new("host-ends-nonsense", "local-cluster[1,4,1024]");
    let offer = bench.offer();
    let line = r"exec 3<&0; setsid sh -c 'echo >there; sleep 1; echo >swept' &
        until [ -e there ]; do sleep 0.01; done; printf '\377\377\377\377' >&3; wait";
    bench.accept(&offer, &[impostor("h", line), task("a", "h", "true")], Duration::ZERO);
    let why = "the host sent a message of 4294967295 bytes, of which 65536 are allowed";
    assert_eq!(bench.update("a", TaskState::Dropped).message, format!("its host h is gone: {why}"));
    assert!(bench.sandbox(&offer, "h").join("swept").exists());
    assert_eq!(bench.update("h", TaskState::Failed).message, why);
}

/// Goal: what an impostor leaves is killed before its tasks are reported. Method: a shell that ends, with a process in
/// a session of its own that holds no connection, beside an executor that is no host.
#[test]
fn an_impostor_leaves_nothing() {
    let bench = Bench::new("host-ends-impostor", "local-cluster[1,4,1024]");
    let offer = bench.offer();
    let line = "setsid sh -c 'echo >there; exec sleep 600' </dev/null &
        until [ -e there ]; do sleep 0.01; done; exit 3";
    let other = launch("other", &["sleep", "600"]);
    let launches = [impostor("h", line), task("a", "h", "true"), other];
    bench.accept(&offer, &launches, Duration::ZERO);
    let dropped = bench.update("a", TaskState::Dropped).message;
    assert_eq!(dropped, "its host h is gone: exit code 3");
    assert_eq!(processes_in(&bench.sandbox(&offer, "h")), [] as [i32; 0]);
    bench.update("other", TaskState::Running);
    assert_eq!(ends(&bench, "other"), 0);
}
