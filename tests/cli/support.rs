//! Runs the binary in a folder of its own, and reads its output.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A timeout far beyond the duration of any test, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that only one test uses, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("offermill-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The standard output of all executors, in no particular order.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let mut outputs = Vec::new();
        let mut folders = vec![self.0.join("sandboxes")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with("stdout") {
                    outputs.push(fs::read_to_string(path).unwrap());
                }
            }
        }
        outputs
    }

    /// The sandbox of an executor.
    pub(crate) fn sandbox(&self, executor: &str) -> PathBuf {
        let mut folders = vec![self.0.join("sandboxes")];
        while let Some(path) = folders.pop() {
            if path.ends_with(executor) {
                return path;
            }
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            folders.extend(entries.filter(|path| path.is_dir()));
        }
        panic!("no sandbox of {executor}")
    }

    /// Sends a command to the run whose socket is `control`. Returns the exit code, and what was printed: the reply, or
    /// why it was refused.
    pub(crate) fn ctl(&self, words: &[&str]) -> (Option<i32>, String) {
        let ended = offermill(&self.0, &[&["ctl", "control"], words].concat()).output().unwrap();
        let text = if ended.status.success() { ended.stdout } else { ended.stderr };
        (ended.status.code(), String::from_utf8(text).unwrap())
    }

    /// The queue with this name, as `queues json` has it.
    #[track_caller]
    pub(crate) fn queue(&self, name: &str) -> Value {
        let (code, text) = self.ctl(&["queues", "json"]);
        assert_eq!(code, Some(0), "{text}");
        let all: Value = serde_json::from_str(&text).unwrap();
        let mut queues = all["queues"].as_array().unwrap().iter();
        queues.find(|queue| queue["name"] == name).unwrap().clone()
    }

    /// The live processes in the folder: executors, their children, and watchdogs.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let number: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let cwd = fs::read_link(format!("/proc/{number}/cwd")).ok()?;
            cwd.starts_with(&self.0).then_some(number)
        });
        numbers.collect()
    }

    /// Waits until no process lives in the folder. The run may notice an end before the process is gone from the
    /// system's list.
    pub(crate) fn assert_deserted(&self) {
        let give_up = Instant::now() + PATIENCE;
        while !self.processes().is_empty() {
            assert!(Instant::now() < give_up, "left behind: {:?}", self.processes());
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The binary with `arguments`, working in `folder`.
pub(crate) fn offermill(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The result of a run that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// The lines of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs the binary to its end.
pub(crate) fn finish(folder: &Folder, arguments: &[&str]) -> Ended {
    Run::start(folder, arguments).end()
}

/// A live run.
pub(crate) struct Run {
    child: Child,
    lines: Receiver<String>,
    output: String,
    errors: Option<JoinHandle<String>>,
}

impl Run {
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Run {
        Run::watch(offermill(&folder.0, arguments).spawn().unwrap())
    }

    /// Starts a run with a pipe as standard input.
    pub(crate) fn start_fed(folder: &Folder, arguments: &[&str]) -> (Run, ChildStdin) {
        let mut child = offermill(&folder.0, arguments).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        (Run::watch(child), input)
    }

    pub(crate) fn watch(mut child: Child) -> Run {
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut stderr = child.stderr.take().unwrap();
        let errors = spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Run { child, lines, output: String::new(), errors: Some(errors) }
    }

    /// Waits for the next line for which `is_it` returns true.
    pub(crate) fn line(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let wait = give_up.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(wait) {
                Ok(line) => {
                    self.output.push_str(&line);
                    self.output.push('\n');
                    if is_it(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no such line in\n{}", self.output)
                }
            }
        }
    }

    /// Waits for the next event of `--json` for which `is_it` returns true.
    pub(crate) fn event(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let parse = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
        parse(&self.line(|line| is_it(&parse(line))))
    }

    /// Waits for the next event with this name.
    pub(crate) fn event_named(&mut self, name: &str) -> Value {
        self.event(|event| event["event"] == name)
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        send_signal(signal, self.child.id());
    }

    pub(crate) fn end(mut self) -> Ended {
        let give_up = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < give_up, "does not end");
            sleep(Duration::from_millis(10));
        };
        while let Ok(line) = self.lines.recv() {
            self.output.push_str(&line);
            self.output.push('\n');
        }
        let errors = self.errors.take().unwrap().join().unwrap();
        Ended { code: status.code(), output: std::mem::take(&mut self.output), errors }
    }
}

impl Drop for Run {
    /// Kills the run if the test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send_signal(signal: &str, process: u32) {
    let script = format!("kill -{signal} {process}");
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
}

/// The process id in a running executor's event.
pub(crate) fn process_of(running: &Value) -> u32 {
    let message = running["message"].as_str().unwrap();
    let number = message.strip_prefix("process ").and_then(|rest| rest.split(',').next());
    number.unwrap().parse().unwrap()
}

/// The arguments for small executors, followed by `command`.
pub(crate) fn small<'a>(flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let size = ["--executor-cores", "1", "--executor-memory", "16m", "--memory-overhead", "0"];
    [&["run"], &size[..], flags, &["--"], command].concat()
}
