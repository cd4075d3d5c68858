//! The end of a run of the command line whose framework the master refuses meanwhile.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::master::FakeMaster;
use super::script::{offers, sound, update};

/// A run with one executor. Dropping it kills the process.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(port: u16) -> Program {
        let mut program = Command::new(env!("CARGO_BIN_EXE_offermill"));
        program.args(["run", "--json", "--master", &format!("mesos://127.0.0.1:{port}")]);
        program.args(["--num-executors", "1", "--executor-cores", "1", "--executor-memory", "32m"]);
        program.args(["--memory-overhead", "0", "--shutdown-timeout", "2s"]);
        program.args(["-c", "offermill.mesos.encoding=json", "-c", "offermill.mesos.user=nobody"]);
        program.args(["--", "true"]);
        program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = program.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Program { child, lines }
    }

    /// Waits for the next event with this name.
    #[track_caller]
    fn event(&mut self, name: &str) -> Value {
        let mut events =
            self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        events.find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Goal: a run that the master refuses while executors are waited for ends at its timeout, says that the framework
/// could not be torn down and why, doesn't call its executors ended, and has the exit code for that. Method: one
/// executor runs; Ctrl-C; an ERROR in place of its end.
#[test]
fn a_refusal_during_the_shutdown_is_the_reason_for_what_is_left() {
    let fake = FakeMaster::new(sound);
    let mut program = Program::start(fake.port());
    program.event("registered");
    fake.send(&offers("O-1", "S-1", 4));
    let accept = fake.wait_for("ACCEPT", 0);
    let launch = &accept.body["accept"]["operations"][0]["launch"];
    let task = launch["task_infos"][0]["task_id"]["value"].as_str().unwrap().to_owned();
    fake.send(&update(&task, "S-1", "TASK_RUNNING", Some("AAAB")));
    program.event("running");
    let interrupt = format!("kill -INT {}", program.child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    fake.wait_for("KILL", 0);
    let why = "Framework has been removed";
    fake.send(&json!({"type": "ERROR", "error": {"message": why}}));
    let refused = program.event("refused");
    assert!(refused["why"].as_str().unwrap().contains(why), "{refused}");
    let summary = program.event("summary");
    assert_eq!(program.child.wait().unwrap().code(), Some(3), "{summary}");
    let ending = summary["ending"].as_str().unwrap();
    assert!(ending.starts_with("stopped by Ctrl-C"), "{ending}");
    for told in ["1 executor had not ended in time and may run on", "could not be torn down", why] {
        assert!(ending.contains(told), "{told}: {ending}");
    }
    assert_eq!(fake.calls_of("TEARDOWN").len(), 0);
}
