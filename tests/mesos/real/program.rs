//! A run of the command line on a real cluster, of which the tests read the events.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cluster::RealCluster;
use super::executors_user;

/// The maximum time that an event may take: longer than a lost agent takes to be noticed.
const PATIENCE: Duration = Duration::from_secs(90);

/// A run. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    events: Receiver<Value>,
    seen: Vec<Value>,
    errors: Option<JoinHandle<String>>,
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// All events, in order.
    pub(crate) events: Vec<Value>,
    /// The output on standard error.
    pub(crate) errors: String,
}

impl Program {
    /// Starts `offermill run` with small executors, `flags` and `command`.
    pub(crate) fn start(cluster: &RealCluster, flags: &[&str], command: &[&str]) -> Program {
        let small = ["--executor-cores", "1", "--executor-memory", "32m", "--memory-overhead", "0"];
        Program::run(cluster, &[&small[..], flags, &["--"], command].concat())
    }

    /// Starts `offermill run` with these arguments behind the cluster's.
    pub(crate) fn run(cluster: &RealCluster, arguments: &[&str]) -> Program {
        let mut program = Command::new(env!("CARGO_BIN_EXE_offermill"));
        program.args(["run", "--json", "--master", &cluster.url()]);
        program.args(["-c", &format!("offermill.mesos.user={}", executors_user())]);
        program.args(arguments).current_dir(cluster.folder());
        program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let (sender, events) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            let mut parsed = lines.map(|line| serde_json::from_str(&line).unwrap());
            parsed.try_for_each(|event: Value| sender.send(event))
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Program { child, events, seen: Vec::new(), errors: Some(errors) }
    }

    /// Waits for the next event for which `is_it` holds.
    #[track_caller]
    pub(crate) fn event(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let wait = give_up.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(wait) {
                Ok(event) => {
                    self.seen.push(event.clone());
                    if is_it(&event) {
                        return event;
                    }
                }
                Err(error) => panic!("{what}: {error}; {}", self.told()),
            }
        }
    }

    /// The framework's id. Waits until it is registered.
    #[track_caller]
    pub(crate) fn registered(&mut self) -> String {
        let event = self.event("registered", |event| event["event"] == "registered");
        event["framework_id"].as_str().unwrap().to_owned()
    }

    /// Waits until this number of executors were reported running.
    #[track_caller]
    pub(crate) fn running(&mut self, executors: usize) {
        let already = self.seen.iter().filter(|event| event["event"] == "running").count();
        for _ in already..executors {
            self.event("running", |event| event["event"] == "running");
        }
    }

    /// The process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the signal with this name.
    pub(crate) fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    /// Sends SIGINT (Ctrl-C), and waits for the end, which must be successful.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Ended {
        self.signal("INT");
        let ended = self.end();
        assert_eq!(ended.code, Some(0), "{}", ended.told());
        ended
    }

    /// Kills the process with SIGKILL. Returns its output on standard error.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.errors.take().unwrap().join().unwrap()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let give_up = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            while let Ok(event) = self.events.try_recv() {
                self.seen.push(event);
            }
            assert!(Instant::now() < give_up, "does not end; {}", self.told());
            sleep(Duration::from_millis(10));
        };
        loop {
            match self.events.recv_timeout(PATIENCE) {
                Ok(event) => self.seen.push(event),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("the output doesn't end: {error}"),
            }
        }
        let errors = self.errors.take().unwrap().join().unwrap();
        Ended { code: status.code(), events: std::mem::take(&mut self.seen), errors }
    }

    /// The output so far, for the messages of failures.
    fn told(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let lines: Vec<String> = self.seen.iter().map(Value::to_string).collect();
        format!("it said\n{}\n{errors}", lines.join("\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The events with this name.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == name)
    }

    /// The complete output, for the messages of failures.
    pub(crate) fn told(&self) -> String {
        let lines: Vec<String> = self.events.iter().map(Value::to_string).collect();
        format!("exit code {:?}\n{}\n{}", self.code, lines.join("\n"), self.errors)
    }
}
