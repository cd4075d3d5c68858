//! The three commands together: a master, workers and a run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const OFFERMILL: &str = env!("CARGO_BIN_EXE_offermill");

/// A program that is killed at the end of the test.
pub(crate) struct Program(pub(crate) Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts a master at an address, and returns the address at which it listens.
pub(crate) fn master(state: &Path, listen: &str) -> (Program, String) {
    let mut command = Command::new(OFFERMILL);
    command.args(["master", "--listen", listen, "--state-dir"]).arg(state);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (Program(child), address)
}

pub(crate) fn worker(folder: &Path, name: &str, master: &str) -> Program {
    let mut command = Command::new(OFFERMILL);
    command.args(["worker", "--master", &format!("http://{master}"), "--work-dir"]);
    command.arg(folder.join(name)).args(["--hostname", name, "--cores", "2", "--memory", "1g"]);
    Program(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// A run of small executors, until they have finished.
pub(crate) fn run(master: &str, executors: u32, line: &str) -> Command {
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    let mut command = Command::new(OFFERMILL);
    command.args(["run", "--until-finished", "--memory-overhead", "0", "--executor-cores", "1"]);
    command.args(["--executor-memory", "64m", "--master", &format!("mesos://{master}")]);
    command.args(["-c", &format!("offermill.mesos.user={}", user.trim())]);
    command.args(["--num-executors", &executors.to_string(), "--", "sh", "-c", line]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Goal: executors of a run start on all workers, and their ends are known to it. Method: two workers of two cores, and
/// three executors that end once all of them have started, so that no worker has room for all.
#[test]
fn a_run_has_executors_on_both_workers() {
    let folder = tempfile::tempdir().unwrap();
    let (_master, address) = master(&folder.path().join("master"), "127.0.0.1:0");
    let _workers = ["h1", "h2"].map(|name| worker(folder.path(), name, &address));
    let starts = folder.path().join("starts");
    let starts = starts.display();
    let line = format!(
        "echo started >> {starts}; while [ $(wc -l < {starts}) -lt 3 ]; do sleep 0.05; done"
    );
    let output = run(&address, 3, &line).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches(": Command exited with status 0").count(), 3, "{said}");
    assert!(said.contains("running on h1") && said.contains("running on h2"), "{said}");
}

/// Goal: an executor survives the master, is not started again, and its end is known to the run. Method: SIGKILL to the
/// master while an executor runs that has written a line to a file; another master with the same journal at the same
/// address; then the executor ends.
#[test]
fn an_executor_survives_the_master() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("master");
    let (first, address) = master(&state, "127.0.0.1:0");
    let _worker = worker(folder.path(), "h1", &address);
    let (starts, end) = (folder.path().join("starts"), folder.path().join("end"));
    let line = format!(
        "echo started >>{}; while [ ! -e {} ]; do sleep 0.05; done",
        starts.display(),
        end.display()
    );
    let run = run(&address, 1, &line).spawn().unwrap();
    while fs::read_to_string(&starts).unwrap_or_default().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(first);
    let (_second, _) = master(&state, &address);
    fs::write(&end, "").unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(fs::read_to_string(&starts).unwrap(), "started\n", "{said}");
}
