//! Runs a program of `tests/support/spark` and reads its output.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// The time limit of each wait. It is far above what any step takes once Spark is installed, which happens before.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program and its child processes, in a process group of their own. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Watched {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// The folder in which Spark is installed.
pub(crate) fn build_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("spark-build")
}

impl Watched {
    /// Starts one of the programs.
    pub(crate) fn start(name: &'static str, arguments: &[&str]) -> Watched {
        Watched::start_in(Path::new("."), name, arguments)
    }

    /// Starts one of the programs in a folder.
    pub(crate) fn start_in(folder: &Path, name: &'static str, arguments: &[&str]) -> Watched {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark");
        let mut command = Command::new(programs.join(name));
        command.arg("--dir").arg(build_folder()).args(arguments).process_group(0);
        command.current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Watched { name, child, lines, seen: Vec::new() }
    }

    /// The program's process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line that contains `beginning`, and returns the text after it.
    #[track_caller]
    pub(crate) fn line(&mut self, beginning: &str) -> String {
        let began = Instant::now();
        let found = self.find(PATIENCE, |line| line.find(beginning).map(|at| at + beginning.len()));
        found.unwrap_or_else(|| {
            let (name, state, waited) = (self.name, self.state(), began.elapsed().as_secs_f64());
            let seen = &self.seen;
            panic!("{name} didn't say {beginning:?} in {waited:.1} s, {state}, but {seen:#?}")
        })
    }

    /// Whether the program still runs, in words.
    fn state(&mut self) -> String {
        match self.child.try_wait() {
            Ok(None) => "and still runs".to_owned(),
            Ok(Some(status)) => format!("and has ended ({status})"),
            Err(error) => format!("and whether it runs can't be told ({error})"),
        }
    }

    /// Returns the text after the match of `look` in the next line that matches, if one arrives within the given time.
    fn find(&mut self, within: Duration, look: impl Fn(&str) -> Option<usize>) -> Option<String> {
        let give_up = Instant::now() + within;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            self.seen.push(line.clone());
            if let Some(end) = look(&line) {
                return Some(line[end..].trim().to_owned());
            }
        }
    }

    /// All lines so far.
    pub(crate) fn seen(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// Waits for the program's end. Returns its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            let is_early = Instant::now() < give_up;
            assert!(is_early, "{} doesn't end: {:#?}", self.name, self.seen);
            sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        let mut kill = Command::new("kill");
        kill.args(["-s", name, "--", &group]).stderr(Stdio::null());
        let _none_left = kill.status();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.seen();
            println!("{} said {:#?}", self.name, self.seen);
        }
        self.signal("TERM");
        let give_up = Instant::now() + Duration::from_secs(10);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < give_up {
            sleep(Duration::from_millis(20));
        }
        self.signal("KILL");
        let _ = self.child.wait();
    }
}
