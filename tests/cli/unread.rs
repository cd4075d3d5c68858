//! Tests of runs whose output nobody reads: they go on, obey commands, and end as usual.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::support::{Folder, finish, offermill, send_signal, small};

/// A timeout far beyond the duration of an end, including the wait for a reader.
const PATIENCE: Duration = Duration::from_secs(60);

/// A full pipe. The read end is kept open, so that writes block instead of failing.
fn full_pipe() -> (PipeReader, OwnedFd) {
    let (reader, writer) = pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut file = File::from(OwnedFd::from(writer));
    for piece in [4096, 1] {
        let full = loop {
            if let Err(error) = file.write(&vec![b'x'; piece]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
    }
    fcntl_setfl(&file, flags).unwrap();
    (reader, OwnedFd::from(file))
}

/// A run whose standard output, and optionally standard error, is a pipe that nobody reads.
struct Unread {
    folder: Folder,
    child: Child,
    _reader: PipeReader,
}

impl Unread {
    fn start(both: bool, flags: &[&str], command: &[&str]) -> Unread {
        let folder = Folder::new();
        let all = ["--master", "local-cluster[2,2,64]", "--num-executors", "4"];
        let arguments = small(&[&all[..], flags].concat(), command);
        let mut run = offermill(&folder.0, &arguments);
        let (reader, writer) = full_pipe();
        if both {
            run.stderr(Stdio::from(writer.try_clone().unwrap()));
        } else {
            run.stderr(Stdio::null());
        }
        run.stdout(Stdio::from(writer));
        Unread { child: run.spawn().unwrap(), folder, _reader: reader }
    }

    /// Waits until `executors` have written that they run.
    fn until_up(&self, executors: usize) {
        let give_up = Instant::now() + PATIENCE;
        let is_up = || {
            let outputs = self.folder.0.join("sandboxes").exists().then(|| self.folder.outputs());
            let up = outputs.unwrap_or_default().iter().filter(|it| *it == "up\n").count();
            up >= executors
        };
        while !is_up() {
            assert!(Instant::now() < give_up, "no executors");
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the exit code.
    fn end(&mut self) -> Option<i32> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.folder.assert_deserted();
                return status.code();
            }
            assert!(Instant::now() < give_up, "does not end");
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Unread {
    /// Kills the run if the test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FOR_LONG: [&str; 3] = ["sh", "-c", "echo up; exec sleep 1000"];
const STUBBORN: [&str; 3] = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"];

/// Goal: the first Ctrl-C ends a run in an orderly way even if nobody reads its output. Method: a full pipe as standard
/// output alone and as standard error, too; lines and JSON.
#[test]
fn a_signal_drains() {
    let cases = [(false, &[][..]), (true, &[]), (true, &["--json"])];
    let mut runs = cases.map(|(both, flags)| Unread::start(both, flags, &FOR_LONG));
    for run in &runs {
        run.until_up(4);
        send_signal("INT", run.child.id());
    }
    assert_eq!(runs.each_mut().map(Unread::end), [Some(0); 3]);
}

/// Goal: commands are executed even if nobody reads the run's output. Method: request the status, and stop the run by
/// command.
#[test]
fn commands_are_done() {
    let mut run = Unread::start(true, &["--control", "door"], &FOR_LONG);
    run.until_up(4);
    let status = finish(&run.folder, &["ctl", "door", "status"]);
    assert!(status.output.contains("4 running"), "{}", status.output);
    let stop = finish(&run.folder, &["ctl", "door", "stop"]);
    assert_eq!((stop.code, stop.output.as_str()), (Some(0), "stopping\n"));
    assert_eq!(run.end(), Some(0));
}

/// Goal: limits are enforced and the exit code is right even if nobody reads the run's output. Method: executors that
/// finish, that fail, and that don't end in time.
#[test]
fn limits_hold() {
    let flags = ["--max-executor-failures", "6", "--exclude-after", "never"];
    let mut runs = [
        Unread::start(true, &["--until-finished"], &["sh", "-c", "echo up; sleep 0.1"]),
        Unread::start(true, &flags, &["false"]),
        Unread::start(true, &["--shutdown-timeout", "300ms"], &STUBBORN),
    ];
    runs[2].until_up(4);
    send_signal("TERM", runs[2].child.id());
    assert_eq!(runs.each_mut().map(Unread::end), [Some(0), Some(1), Some(3)]);
}

/// Goal: a second Ctrl-C still ends a run at once. Method: executors that ignore the first, and a full pipe.
#[test]
fn a_second_signal_ends_at_once() {
    let mut run = Unread::start(true, &["--shutdown-timeout", "1h"], &STUBBORN);
    run.until_up(4);
    send_signal("INT", run.child.id());
    sleep(Duration::from_millis(600)); // or it would count as the same
    send_signal("INT", run.child.id());
    assert_eq!(run.end(), Some(130));
}

/// Goal: a second Ctrl-C that arrives when all executors have ended ends the wait for readers, and the exit code is the
/// run's. Method: executors that end at once; a full pipe as standard output and standard error.
#[test]
fn a_second_signal_ends_the_wait_for_readers() {
    let mut run = Unread::start(true, &[], &FOR_LONG);
    run.until_up(4);
    send_signal("INT", run.child.id());
    // Until the run is alone.
    while run.folder.processes() != [run.child.id()] {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_secs(1));
    let ended_at = Instant::now();
    send_signal("INT", run.child.id());
    assert_eq!(run.end(), Some(0));
    assert!(ended_at.elapsed() < Duration::from_secs(5));
}

/// Goal: a slow reader misses nothing. Method: begin to read after the run would have ended, in small pieces; more than
/// a pipe holds; check the order of events, and the summary at the end.
#[test]
fn a_slow_reader_misses_nothing() {
    use std::io::Read;

    const EXECUTORS: usize = 100;
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[1,100,4096]", "--num-executors", "100", "--json"];
    let arguments = small(&[&flags[..], &["--until-finished"]].concat(), &["true"]);
    let mut child = offermill(&folder.0, &arguments).stderr(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_secs(4));
    let (mut stdout, mut text, mut piece) = (child.stdout.take().unwrap(), Vec::new(), [0; 3000]);
    loop {
        match stdout.read(&mut piece).unwrap() {
            0 => break,
            length => text.extend_from_slice(&piece[..length]),
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(text.len() > 64 * 1024, "a pipe holds {} bytes", text.len());
    let text = String::from_utf8(text).unwrap();
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for name in ["placed", "running", "ended"] {
        assert_eq!(events.iter().filter(|it| it["event"] == name).count(), EXECUTORS, "{name}");
    }
    let summary = events.last().unwrap();
    assert_eq!((&summary["event"], &summary["exit_code"]), (&"summary".into(), &0.into()));
    assert_eq!(summary["executors"].as_array().unwrap().len(), EXECUTORS);
}
