//! Tests of runs that another program steers (`--steered`): commands and answers, the end of the parent, and parents
//! that are slow or send garbage.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, Run, finish, offermill, send_signal, small};

/// Executors that ignore SIGTERM, and say when they do.
pub(crate) const STUBBORN: [&str; 3] =
    ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"];
/// The time within which nothing of a run is left after its parent's end, with a margin for a busy machine.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(4);

/// Starts a run on two agents with four cores each, without executors.
pub(crate) fn start(folder: &Folder, flags: &[&str], command: &[&str]) -> (Run, ChildStdin) {
    let all = ["--master", "local-cluster[2,4,128]", "--steered", "--num-executors", "0"];
    Run::start_fed(folder, &small(&[&all[..], flags].concat(), command))
}

/// Sends a line and returns its answer.
pub(crate) fn ask(run: &mut Run, input: &mut ChildStdin, line: &str) -> Value {
    input.write_all(format!("{line}\n").as_bytes()).unwrap();
    run.event_named("answer")
}

fn session_of(process: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name, in parentheses, may contain spaces.
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned()
}

/// Goal: a parent raises the limit from 0, lowers it, ends executors and stops the run; each answer has its command's
/// number and name; events say how executors ended; the run has a session of its own. Method: real executors, of which
/// one exits, one is killed by a signal, and one by a command together with one that has ended.
#[test]
fn a_parent_steers_a_run() {
    let folder = Folder::new();
    let script = "until [ -e \"$PLACE/$OFFERMILL_EXECUTOR_ID\" ]; do sleep 0.05; done; exit 7";
    let place = format!("PLACE={}", folder.0.display());
    let (mut run, mut input) =
        start(&folder, &["--env", &place, "--name", "etl"], &["sh", "-c", script]);
    let started = run.event_named("started");
    assert_eq!((&started["protocol"], &started["executor_limit"]), (&json!(1), &json!(0)));
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
    let process = u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
    assert_eq!(session_of(process), process.to_string());
    run.event_named("registered");

    let answer = ask(&mut run, &mut input, "limit 3");
    let detail = json!({"from": 0, "to": 3, "hosts": []});
    assert_eq!((&answer["command"], &answer["id"]), (&json!(1), &Value::Null));
    assert_eq!((&answer["answer"], &answer["detail"]), (&json!("limit 0 -> 3"), &detail));
    let running: Vec<Value> = (0..3).map(|_| run.event_named("running")).collect();
    for executor in &running {
        let sandbox = executor["sandbox"].as_str().unwrap();
        assert!(fs::exists(format!("{sandbox}/stdout")).unwrap(), "{executor}");
        assert_eq!(executor["address"], "127.0.0.1");
    }
    ask(&mut run, &mut input, "limit 0");

    let first = running[0]["executor"].as_str().unwrap();
    folder.write(first, "");
    let ended = run.event_named("ended");
    assert_eq!(ended["executor"], first);
    let how =
        |ended: &Value| [&ended["cause"], &ended["exit_code"], &ended["signal"]].map(Value::clone);
    assert_eq!(how(&ended), [json!("exited"), json!(7), Value::Null], "{ended}");
    send_signal("KILL", u32::try_from(running[1]["pid"].as_u64().unwrap()).unwrap());
    let ended = run.event_named("ended");
    assert_eq!(how(&ended), [json!("signaled"), Value::Null, json!(9)], "{ended}");

    let third = running[2]["executor"].as_str().unwrap();
    let answer = ask(&mut run, &mut input, &format!("id=k-7 kill {first} {third} nobody"));
    assert_eq!(
        (&answer["command"], &answer["id"], &answer["ok"]),
        (&json!(3), &json!("k-7"), &json!(true))
    );
    assert_eq!(answer["detail"]["asked"], json!([third]));
    let rest: Vec<&Value> =
        answer["detail"]["rest"].as_array().unwrap().iter().map(|it| &it["executor"]).collect();
    assert_eq!(rest, [&json!(first), &json!("nobody")]);
    let ended = run.event_named("ended");
    assert_eq!((&ended["executor"], &ended["cause"]), (&json!(third), &json!("requested")));
    let answer = ask(&mut run, &mut input, &format!("kill {first}"));
    assert_eq!((&answer["ok"], &answer["detail"]["asked"]), (&json!(false), &json!([])));

    assert_eq!(ask(&mut run, &mut input, "stop")["answer"], "stopping");
    assert_eq!(run.event_named("summary")["exit_code"], 0);
    let ended = run.end();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    folder.assert_deserted();
}

/// Goal: a parent's settings come by standard input, before commands that are there already; a secret among them is in
/// no argument. Method: settings with a secret and a limit, and commands, in one piece.
#[test]
fn settings_come_by_standard_input() {
    let folder = Folder::new();
    let flags = ["--properties-file", "-"];
    let script = "[ ${#TOKEN} = 14 ] && exit 7";
    let (mut run, mut input) = start(&folder, &flags, &["sh", "-c", script]);
    let settings =
        "spark.app.name=fed\nspark.executorEnv.TOKEN=not-to-be-seen\n# end of settings\n";
    input.write_all(format!("{settings}id=a limit 1\nid=b limit 2\n").as_bytes()).unwrap();
    let started = run.event_named("started");
    assert_eq!(started["name"], "fed", "{started}");
    for (id, number) in [("a", 1), ("b", 2)] {
        let answer = run.event_named("answer");
        assert_eq!((&answer["id"], &answer["command"]), (&json!(id), &json!(number)), "{answer}");
    }
    let process = fs::read(format!("/proc/{}/cmdline", started["pid"])).unwrap();
    assert!(!String::from_utf8_lossy(&process).contains("not-to-be-seen"));
    assert_eq!(run.event_named("ended")["exit_code"], 7);
    drop(input);
    run.end();
    folder.assert_deserted();
}

/// Goal: settings on standard input that don't end, or that nobody steers with, are refused. Method: input that ends,
/// input with a mistake, and a run that isn't steered.
#[test]
fn settings_on_standard_input_have_an_end() {
    let folder = Folder::new();
    let flags = ["--properties-file", "-"];
    for (text, why) in [
        ("spark.app.name=fed\n", "the input ended before the line \"# end of settings\""),
        (
            "spark.executor.maxNumFailures=x\n# end of settings\n",
            "(standard input, line 1) is \"x\"",
        ),
    ] {
        let (run, mut input) = start(&folder, &flags, &["sleep", "60"]);
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        let ended = run.end();
        assert_eq!(ended.code, Some(2));
        assert!(ended.errors.contains(why), "{}", ended.errors);
    }
    let ended = finish(
        &folder,
        &small(&[&["--master", "local[1]"], &flags[..]].concat(), &["sleep", "60"]),
    );
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains("which is for --steered"), "{}", ended.errors);
}

/// Goal: an executor that can't be started, and one that could be, have different causes. Method: a program that is
/// removed after the run has checked it.
#[test]
fn a_failed_start_is_told() {
    let folder = Folder::new();
    let program = folder.write("worker", "#!/bin/sh\nsleep 1000\n");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let (mut run, mut input) = start(&folder, &[], &["./worker"]);
    run.event_named("registered");
    fs::remove_file(&program).unwrap();
    ask(&mut run, &mut input, "limit 1");
    let ended = run.event_named("ended");
    assert_eq!((&ended["cause"], &ended["exit_code"]), (&json!("not_started"), &Value::Null));
    drop(input);
    run.end();
}

/// Waits for the end of a run, and returns how long it took until its process and all others in its folder were gone.
fn time_to_end(folder: &Folder, run: Run, since: Instant) -> (Option<i32>, Duration) {
    let code = run.end().code;
    folder.assert_deserted();
    (code, since.elapsed())
}

/// Goal: a run ends soon after standard input, whatever its executors and its shutdown timeout: also if it stops
/// already. Method: executors that ignore SIGTERM, with a long timeout; standard input is closed at once, after a stop,
/// and by a command.
#[test]
fn a_run_ends_with_standard_input() {
    for last_line in ["", "stop\n", "quit\n"] {
        let folder = Folder::new();
        let (mut run, mut input) = start(&folder, &["--shutdown-timeout", "1h"], &STUBBORN);
        ask(&mut run, &mut input, "limit 4");
        (0..4).for_each(|_| drop(run.event_named("running")));
        sleep(Duration::from_millis(200)); // until the traps are set
        input.write_all(last_line.as_bytes()).unwrap();
        let since = Instant::now();
        let kept = (last_line == "quit\n").then_some(input);
        let (code, took) = time_to_end(&folder, run, since);
        assert_eq!(code, Some(3), "{last_line:?}");
        assert!(took < GONE_WITHIN, "{last_line:?}: {took:?}");
        drop(kept);
    }
}

/// Goal: a run without executors, and one whose executors end when asked, end at once and in order with their parent.
/// Method: standard input is closed; the summary is read.
#[test]
fn the_end_of_the_parent_is_an_orderly_end() {
    for limit in ["limit 0", "limit 2"] {
        let folder = Folder::new();
        let (mut run, mut input) =
            start(&folder, &["--shutdown-timeout", "1h"], &["sleep", "1000"]);
        ask(&mut run, &mut input, limit);
        if limit == "limit 2" {
            (0..2).for_each(|_| drop(run.event_named("running")));
        }
        let since = Instant::now();
        drop(input);
        let summary = run.event_named("summary");
        let why = "the parent program has ended, or closed standard input";
        assert_eq!((&summary["ending"], &summary["exit_code"]), (&json!(why), &json!(0)));
        let (code, took) = time_to_end(&folder, run, since);
        assert_eq!(code, Some(0));
        assert!(took < GONE_WITHIN, "{took:?}");
    }
}

/// A shell that feeds a run, in a process group of its own, which is killed when this is dropped.
struct Parent(Child);

impl Parent {
    /// Sends a signal to the process group, and returns whether there was one.
    fn signal(&self, signal: &str) -> bool {
        let script = format!("kill -{signal} -{}", self.0.id());
        Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        // Its number is its own until it is waited for.
        let _ended = self.signal("KILL");
        let _ = self.0.wait();
    }
}

fn parent(folder: &Folder, feed: &str) -> Parent {
    let arguments = ["--master", "local-cluster[1,4,128]", "--num-executors", "2", "--steered"];
    let run = offermill(
        &folder.0,
        &small(&[&arguments[..], &["--shutdown-timeout", "1h"]].concat(), &STUBBORN),
    );
    let words: Vec<String> = std::iter::once(run.get_program())
        .chain(run.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''")))
        .collect();
    let script = format!("{{ {feed}; }} | {} > output 2> errors", words.join(" "));
    let mut shell = Command::new("setsid");
    shell.args(["sh", "-c", &script]).current_dir(&folder.0);
    // Nothing of it holds the pipes of the tests open.
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Parent(shell.spawn().unwrap())
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Goal: nothing of a run is left soon after its parent was killed, whose signals don't reach the run. Method: a
/// parent's process group gets SIGINT, which its processes ignore, and then SIGKILL; executors ignore SIGTERM.
#[test]
fn a_killed_parent_takes_the_run_along() {
    let folder = Folder::new();
    let parent = parent(&folder, "trap '' INT; sleep 1000");
    until("executors", || {
        folder.0.join("sandboxes").exists()
            && folder.outputs().iter().filter(|it| *it == "up\n").count() == 2
    });
    assert!(parent.signal("INT"));
    sleep(Duration::from_millis(500));
    let output = || fs::read_to_string(folder.0.join("output")).unwrap();
    assert!(!output().contains("\"stopping\""), "{}", output());
    let since = Instant::now();
    assert!(parent.signal("KILL"));
    folder.assert_deserted();
    assert!(since.elapsed() < GONE_WITHIN, "{:?}", since.elapsed());
    assert!(output().contains("\"event\":\"summary\""), "{}", output());
}

/// Goal: garbage is answered line by line and harms nothing. Method: unknown commands, wrong names, bytes that aren't
/// text, a line that is too long, and the beginning of a command without an end.
#[test]
fn garbage_is_answered() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &[], &["sleep", "1000"]);
    let long = format!("kill {}\n", "x".repeat(1 << 20));
    let pieces: [&[u8]; 6] = [
        b"frobnicate 7\n",
        b"\n \t\n",
        b"id=a/b stop\n",
        b"\xff\xfe\0\n",
        long.as_bytes(),
        b"id=z status json\n",
    ];
    pieces.iter().for_each(|piece| input.write_all(piece).unwrap());
    for (number, sentence) in [
        (1, "\"frobnicate\" is not a command; expected limit, kill,"),
        (2, "after \"id=\" was expected: 1 to 64 letters, digits and _.:-"),
        (3, "the line is not UTF-8"),
        (4, "the line is too long; expected at most 1048576 bytes"),
    ] {
        let answer = run.event_named("answer");
        assert_eq!((&answer["command"], &answer["ok"]), (&json!(number), &json!(false)));
        assert!(answer["answer"].as_str().unwrap().starts_with(sentence), "{answer}");
    }
    let status = run.event_named("answer");
    assert_eq!((&status["id"], &status["answer"]["limit"]), (&json!("z"), &json!(0)));
    input.write_all(b"sto").unwrap();
    drop(input);
    assert_eq!(run.end().code, Some(0));
}

/// A run whose parent doesn't read its output, after thousands of commands.
fn unread(folder: &Folder) -> (Child, ChildStdin, ChildStdout) {
    let all = ["--master", "local-cluster[1,1,64]", "--num-executors", "0", "--steered"];
    let mut child = offermill(&folder.0, &small(&all, &["sh", "-c", "echo up; exec sleep 99"]))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // Each answer has some 3 kB.
    for _ in 0..4_000 {
        input.write_all(b"help\n").unwrap();
    }
    input.write_all(b"limit 1\n").unwrap();
    // When the executor is there, all commands before it were executed.
    until("an executor", || folder.0.join("sandboxes").exists() && folder.outputs() == ["up\n"]);
    let output = child.stdout.take().unwrap();
    (child, input, output)
}

/// Goal: a parent that doesn't read neither blocks the run nor makes it take memory, and is told what it missed.
/// Method: standard output isn't read while thousands of commands are written and executed; then it is read to the end.
#[test]
fn a_parent_that_does_not_read_is_told() {
    let folder = Folder::new();
    let (mut child, mut input, mut output) = unread(&folder);
    input.write_all(b"stop\n").unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|it| it["event"] == "left_out"), "{} events", events.len());
    assert_eq!(events.last().unwrap()["event"], "summary");
    assert!(text.len() < 16 << 20, "{} bytes", text.len());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Goal: the end of a parent that doesn't read is noticed, and the run waits for no reader then. Method: such a parent
/// closes both pipes; standard input alone; and standard input while the run, which it has stopped, waits for it.
#[test]
fn a_parent_that_does_not_read_may_end() {
    for how in ["both", "input", "input after stop"] {
        let folder = Folder::new();
        let (mut child, mut input, output) = unread(&folder);
        if how == "input after stop" {
            input.write_all(b"stop\n").unwrap();
            until("the run is alone", || folder.processes() == [child.id()]);
        }
        let since = Instant::now();
        let kept = (how != "both").then_some(output);
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{how}");
        assert!(since.elapsed() < GONE_WITHIN, "{how}: {:?}", since.elapsed());
        folder.assert_deserted();
        drop(kept);
    }
}

/// Goal: a limit and the hosts of data are one command, without dynamic allocation; names of this machine stand for all
/// its agents. Method: an endless wait for one of two hosts; then a name of this machine; the journal is replayed.
#[test]
fn a_limit_has_hosts() {
    let folder = Folder::new();
    let flags = ["-c", "spark.locality.wait=1h", "--journal", "J"];
    let (mut run, mut input) = start(&folder, &flags, &["sleep", "1000"]);
    run.event_named("registered");
    let answer = ask(&mut run, &mut input, "limit 2 locality agent-1=3 agent-0=0");
    assert_eq!(answer["answer"], "limit 0 -> 2; executors start on 1 host if possible");
    assert_eq!(answer["detail"]["hosts"], json!(["agent-1"]));
    assert_eq!(run.event_named("placed")["host"], "agent-1");
    let answer = ask(&mut run, &mut input, "limit 4 locality agent-1=3 localhost=1");
    assert_eq!(answer["answer"], "limit 2 -> 4; executors start wherever they fit");
    assert_eq!(answer["detail"]["hosts"], json!([]));
    (0..3).for_each(|_| drop(run.event_named("placed")));
    let answer = ask(&mut run, &mut input, "limit 4 locality none");
    assert_eq!(answer["answer"], "limit 4 as before; executors start wherever they fit");
    ask(&mut run, &mut input, "stop");
    let ended = run.end();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let replayed = finish(&folder, &["replay", "J", "--expect", "J.answers"]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.output, replayed.errors);
}

/// Goal: executors that are wanted start within a second or two, several times in a row. Method: raise the limit from 0
/// to 1, 2 and 4, each as soon as the executors before run.
#[test]
fn executors_start_soon() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &[], &["sleep", "1000"]);
    run.event_named("registered");
    let since = Instant::now();
    for (limit, new) in [(1, 1), (2, 1), (4, 2)] {
        ask(&mut run, &mut input, &format!("limit {limit}"));
        (0..new).for_each(|_| drop(run.event_named("running")));
    }
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    drop(input);
    assert_eq!(run.end().code, Some(0));
}

/// Goal: a run that no master registers gives up in time, with the reason. Method: a port where nothing listens.
#[test]
fn an_unregistered_run_gives_up() {
    let folder = Folder::new();
    let flags = ["--master", "mesos://127.0.0.1:1", "--steered", "--num-executors", "0"];
    let more = ["-c", "offermill.registrationTimeout=1s", "-c", "offermill.mesos.user=nobody"];
    let (mut run, input) =
        Run::start_fed(&folder, &small(&[&flags[..], &more].concat(), &["true"]));
    let why = run.event_named("refused")["why"].as_str().unwrap().to_owned();
    let begin = "after 1 s (offermill.registrationTimeout) not registered with a master yet";
    assert!(why.starts_with(begin), "{why}");
    assert_eq!(run.event_named("summary")["exit_code"], 4);
    assert_eq!(run.end().code, Some(4));
    drop(input);
}

/// Goal: a parent may pass on settings that mean nothing here, and invalid ones are reported. Method: keys of other
/// programs and clusters; and a value that can't be read.
#[test]
fn settings_are_ignored_quietly() {
    let folder = Folder::new();
    let flags = [
        ["-c", "spark.eventLog.enabled=true"],
        ["-c", "spark.kubernetes.namespace=x"],
        ["-c", "spark.mesos.role=r"],
        ["-c", "spark.task.cpus=1"],
    ];
    let (mut run, mut input) = start(&folder, &flags.concat(), &["true"]);
    ask(&mut run, &mut input, "stop");
    let ended = run.end();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let (run, _input) = start(&folder, &["-c", "spark.locality.wait=soon"], &["true"]);
    let ended = run.end();
    assert_eq!((ended.code, ended.errors.lines().count()), (Some(2), 1), "{}", ended.errors);
    let (run, _input) = start(&folder, &["--plain"], &["true"]);
    assert_eq!(run.end().code, Some(2));
}

/// Goal: the guide's example works. Method: run it.
#[test]
fn the_example_works() {
    let folder = Folder::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/steer.py");
    let flags =
        ["--master", "local-cluster[2,2,128]", "--executor-cores", "1", "--executor-memory", "16m"];
    let output = Command::new("python3")
        .args([example, env!("CARGO_BIN_EXE_offermill")])
        .args(flags)
        .args(["--memory-overhead", "0"])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{errors}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].ends_with("1 executor asked to end, the limit stays 1"), "{text}");
    assert!(lines[3].ends_with("ended: requested by signal 15"), "{text}");
    assert_eq!(lines[4], "stopped by a command - exit code 0");
    folder.assert_deserted();
}
