//! Tests of a standby master, with real workers and runs that are given both masters.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::eventually::eventually;
use crate::standalone::RunningMaster;
use crate::support::{Folder, Run, finish, offermill, process_of, send_signal, small};

/// A master that leads, and one that stands by for it.
struct MasterPair {
    leader: RunningMaster,
    standby: RunningMaster,
}

impl MasterPair {
    fn start(folder: &Folder, flags: &[&str]) -> MasterPair {
        let leader = RunningMaster::start(folder, "127.0.0.1:0", flags);
        let standby = ["master", "--listen", "127.0.0.1:0", "--state-dir", "master", "--standby"];
        let standby = Run::start(folder, &[&standby[..], flags].concat());
        MasterPair { leader, standby: RunningMaster::watch_for(standby, "stands by at") }
    }

    /// A worker that knows both.
    fn worker(&self, folder: &Folder) -> LoggedWorker {
        let (leader, standby) = (&self.leader.port, &self.standby.port);
        LoggedWorker::start(folder, &format!("{leader},127.0.0.1:{standby}"))
    }

    /// A run that knows both, the standby first, with an executor that runs.
    fn run(&self, folder: &Folder) -> (Run, u32) {
        let (standby, leader) = (&self.standby.port, &self.leader.port);
        let master = format!("offermill://127.0.0.1:{standby},127.0.0.1:{leader}");
        let user = format!("offermill.mesos.user={}", user());
        let flags = ["--json", "--master", &master, "-c", &user];
        let own = ["--num-executors", "1", "--failover-timeout", "1h", "--control", "control"];
        let flags = [&flags[..], &own].concat();
        let mut run = Run::start(folder, &small(&flags, &["sleep", "600"]));
        let process = process_of(&run.event_named("running"));
        (run, process)
    }
}

/// A worker whose log is a file.
pub(crate) struct LoggedWorker {
    child: Child,
    log: PathBuf,
}

impl LoggedWorker {
    /// A worker of the masters at these ports.
    pub(crate) fn start(folder: &Folder, ports: &str) -> LoggedWorker {
        LoggedWorker::start_in(folder, "w", ports)
    }

    /// A worker with a work folder of this name.
    pub(crate) fn start_in(folder: &Folder, name: &str, ports: &str) -> LoggedWorker {
        LoggedWorker::start_with(folder, name, &format!("http://127.0.0.1:{ports}"), &[])
    }

    /// A worker with a work folder of this name, and these flags.
    pub(crate) fn start_with(
        folder: &Folder,
        name: &str,
        url: &str,
        flags: &[&str],
    ) -> LoggedWorker {
        let sizes = ["--cores", "1", "--memory", "64m"];
        let worker = ["worker", "--master", url, "--work-dir", name];
        let log = folder.0.join(format!("{name}.log"));
        let mut program = offermill(&folder.0, &[&worker[..], &sizes, flags].concat());
        let program = program.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        LoggedWorker { child: program.spawn().unwrap(), log }
    }

    pub(crate) fn wait_for(&self, words: &str) {
        self.wait_for_times(words, 1);
    }

    /// Waits until the log has these words a number of times.
    pub(crate) fn wait_for_times(&self, words: &str, times: usize) {
        eventually(Duration::from_secs(60), words, || {
            match fs::read_to_string(&self.log).unwrap() {
                log if log.matches(words).count() >= times => Ok(()),
                log => Err(log),
            }
        });
    }

    pub(crate) fn end(mut self) {
        send_signal("TERM", self.child.id());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for LoggedWorker {
    /// Kills the worker if the test failed.
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// The user of the tests, who is that of the workers.
pub(crate) fn user() -> String {
    let id = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(id.stdout).unwrap().trim().to_owned()
}

fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Ends a run by its command, and checks that its executor lived until then.
pub(crate) fn end(folder: &Folder, run: Run, process: u32) {
    assert!(is_alive(process), "the executor has ended");
    let stopped = finish(folder, &["ctl", "control", "stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.errors);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
    let ends: Vec<Value> =
        ended.events().into_iter().filter(|event| event["event"] == "ended").collect();
    assert!(ends.len() == 1 && ends[0]["state"] == "killed", "{ends:?}");
}

/// Goal: while another master leads, a standby sends clients there, refuses commands, and is no reason to restart it;
/// when the leader is killed, it leads with a higher term, and workers and runs that know both go on, without the end
/// of an executor. Method: real programs; requests to the standby; SIGKILL of the leader; a third master.
#[test]
fn a_standby_takes_over() {
    let folder = Folder::new();
    let pair = MasterPair::start(&folder, &[]);
    let get = |path: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        pair.standby.whole_answer(&request)
    };
    let location = format!("location: //127.0.0.1:{}/state?a=b\r\n", pair.leader.port);
    let answer = get("/state?a=b");
    assert!(answer.starts_with("HTTP/1.1 307 ") && answer.contains(&location), "{answer}");
    assert!(get("/health").ends_with("\r\n\r\nstandby\n"));
    let worker = pair.worker(&folder);
    let (mut run, process) = pair.run(&folder);

    let MasterPair { leader, standby } = pair;
    leader.run.signal("KILL");
    let _killed = leader.run.end();
    let standby = RunningMaster::watch(standby.run);
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    while standby.state()["executors"] != 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let third = ["master", "--listen", "127.0.0.1:0", "--state-dir", "master", "--standby"];
    let flags = ["--control", "third.sock", "--advertise", "m3.example:5050"];
    let third = Run::start(&folder, &[&third[..], &flags].concat());
    let third = RunningMaster::watch_for(third, "stands by at");
    let refused = finish(&folder, &["ctl", "third.sock", "status"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("this master is a standby"), "{}", refused.errors);
    third.run.signal("TERM");
    assert_eq!(third.run.end().code, Some(0));
    end(&folder, run, process);
    worker.end();
    standby.run.signal("TERM");
    let ended = standby.run.end();
    assert!(ended.code == Some(0) && ended.output.contains("term 2"), "{}", ended.output);
}

/// Goal: a leader whose place another took, and which doesn't know it, is obeyed by no worker that was with the other.
/// Method: the leader's lock is taken away, as a file system of several machines may do while it is stopped; a worker
/// that was with its successor is started again with the old leader alone.
#[test]
fn a_leader_of_the_past_is_not_obeyed() {
    let folder = Folder::new();
    let MasterPair { leader, standby } = MasterPair::start(&folder, &[]);
    fs::remove_file(folder.0.join("master/master.lock")).unwrap();
    let standby = RunningMaster::watch(standby.run);
    let worker = LoggedWorker::start(&folder, &standby.port);
    worker.wait_for("(term 2)");
    worker.end();
    let worker = LoggedWorker::start(&folder, &leader.port);
    worker.wait_for("the worker knows of term 2, but this master's is 1");
    assert_eq!(leader.state()["workers"], 0);
    worker.end();
}
