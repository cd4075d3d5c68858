//! `offermill worker` as a program: bad input, Ctrl-C, and what is left when it is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use offermill::cluster::standalone::protocol::{ReportedState, WorkerCall};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::fake::FakeMaster;
use crate::launch;

const OFFERMILL: &str = env!("CARGO_BIN_EXE_offermill");

fn worker(folder: &Path, port: u16) -> Command {
    let mut command = Command::new(OFFERMILL);
    command.args(["worker", "--master", &format!("http://127.0.0.1:{port}"), "--work-dir"]);
    command.arg(folder).env_remove("SPARK_WORKER_CORES").env_remove("SPARK_WORKER_MEMORY");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn sentences(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Goal: bad input is refused with exit code 2 and a sentence that names the flag or variable, and nothing is started.
/// Method: each flag and variable with values that aren't allowed, and several at a time.
#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("open-token"), "0123456789abcdef").unwrap();
    fs::set_permissions(path("open-token"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path("token"), "0123456789abcdef\n").unwrap();
    fs::set_permissions(path("token"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path("file"), "x").unwrap();
    let (file, open, token) = (path("file"), path("open-token"), path("token"));
    for (arguments, sentence) in [
        (&["--master", "mesos://m"][..], "--master is \"mesos://m\", but must be https://HOST"),
        (&["--master", ""], "--master is \"\", but must be https://"),
        (&["--cores", "none"], "--cores is \"none\", but must be"),
        (&["--cores", "0"], "--cores is \"0\", but must be a number of cores above 0"),
        (&["--memory", "0"], "--memory is \"0\", but must be more than 0"),
        (&["--memory", "1.5g"], "--memory is \"1.5g\", but must be"),
        (&["--grace", "soon"], "--grace is \"soon\", but must be"),
        (&["--attributes", "zone"], "--attributes is \"zone\", but must be NAME:VALUE"),
        (&["--hostname", ""], "--hostname is \"\", but must be"),
        (&["--token-file", "0123456789abcdefg"], "--token-file must be a file with a token"),
        (&["--token-file", &open], "it can be read by others; chmod 600 would do"),
        (
            &["--master", "http://m.example", "--token-file", &token],
            "--master is \"http://m.example",
        ),
        (&["--ca-file-only"], "--ca-file-only is for masters with https://"),
        (&["--master", "https://m", "--ca-file-only"], "--ca-file-only is \"true\", but must be"),
        (&["--master", "https://m", "--ca-file", &file], "--ca-file is"),
        (&["--client-key-file", &file], "give --client-certificate-file too"),
        (&["--work-dir", &file], "--work-dir is"),
    ] {
        let output = worker(folder.path(), 1).args(arguments).output().unwrap();
        let said = sentences(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(sentence), "{arguments:?}: {said}");
        assert!(!said.contains("0123456789abcdef"), "{arguments:?}: {said}");
    }
    let mut command = worker(folder.path(), 1);
    command.env("SPARK_WORKER_CORES", "many").env("SPARK_WORKER_MEMORY", "lots");
    let output = command.output().unwrap();
    let said = sentences(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for sentence in ["SPARK_WORKER_CORES is \"many\"", "SPARK_WORKER_MEMORY is \"lots\""] {
        assert!(said.contains(sentence), "{said}");
    }
}

/// Goal: a worker says its size and who it is; at Ctrl-C it ends its executors, tells the master, and ends with 0; its
/// output is found by `offermill logs`; an executor has no variable of the worker that it doesn't need; two workers
/// don't share a folder. Method: sizes from the environment, one executor, which prints variables, a second worker,
/// SIGINT.
#[test]
fn a_worker_runs_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let master = FakeMaster::new();
    let mut command = worker(folder.path(), master.port());
    command.env("SPARK_WORKER_CORES", "3").env("SPARK_WORKER_MEMORY", "2g");
    command.args(["--attributes", "zone:east;rack:7", "--hostname", "h1", "--address", "a1"]);
    command.env("DATABASE_PASSWORD", "hunter2");
    let child = command.spawn().unwrap();
    let (mut connection, subscribe) = master.register("w-1", 1);
    assert_eq!(subscribe.resources.cpus.thousandths(), 3000);
    assert_eq!(subscribe.resources.mem.thousandths(), 2_048_000);
    assert_eq!((&*subscribe.hostname, &*subscribe.address), ("h1", "a1"));
    let attributes: Vec<_> =
        subscribe.attributes.iter().map(|it| (&*it.name, &*it.value)).collect();
    assert_eq!(attributes, [("zone", "east"), ("rack", "7")]);
    let line = "echo printed ${DATABASE_PASSWORD-nothing} $GREETING $HOME; exec sleep 600";
    connection.send(&launch("e1", 1, 1, line));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);

    let second = worker(folder.path(), master.port()).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(sentences(&second).contains("another worker uses it"), "{}", sentences(&second));

    signal(&child, Signal::INT);
    assert_eq!(connection.call(), WorkerCall::Leaving);
    connection.acknowledge(ReportedState::Killing);
    connection.acknowledge(ReportedState::Killed);
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    let output = child.wait_with_output().unwrap();
    let said = sentences(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for sentence in [
        "a worker with 3 cores and 2048 MiB in ",
        "registered at 127.0.0.1:",
        " as w-1 (term 1)",
        "Ctrl-C: executors are asked to end",
        "the worker has ended; the master was told",
    ] {
        assert!(said.contains(sentence), "{sentence:?} is missing in: {said}");
    }
    // Executors are logged with --log-level debug.
    assert!(!said.contains("e1 of framework-1"), "{said}");
    let mut logs = Command::new(OFFERMILL);
    let logs = logs.args(["logs", "e1", "--work-dir"]).arg(folder.path()).output().unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let expected = format!("printed nothing hello {home}");
    assert_eq!(String::from_utf8_lossy(&logs.stdout).trim(), expected.trim());
}

/// Goal: executors end with a worker that is killed, and the next one in its folder has its id and its term, and holds
/// nothing. Method: SIGKILL while an executor runs that has left its process group; then a worker again.
#[test]
fn executors_end_with_a_killed_worker() {
    let folder = tempfile::tempdir().unwrap();
    let master = FakeMaster::new();
    let mut child = worker(folder.path(), master.port()).spawn().unwrap();
    let (mut connection, first) = master.register("w-1", 4);
    connection.send(&launch("e1", 1, 4, "exec sleep 600"));
    connection.acknowledge(ReportedState::Starting);
    let pid = connection.acknowledge(ReportedState::Running).pid.unwrap();
    let executor = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let is_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") Z")
    };
    while test_kill_process(executor).is_ok() && !is_zombie() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let child = worker(folder.path(), master.port()).spawn().unwrap();
    let (mut connection, again) = master.register("w-1", 4);
    assert_eq!((again.id.as_deref(), again.term), (Some("w-1"), 4));
    assert!(again.executors.is_empty() && again.unacknowledged.is_empty(), "{again:?}");
    assert_ne!(again.session, first.session);
    signal(&child, Signal::TERM);
    assert_eq!(connection.call(), WorkerCall::Leaving);
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

/// Goal: a refused token ends the program with 4 and a sentence. Method: 401 to the first request.
#[test]
fn a_refused_token_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let master = FakeMaster::new();
    let mut command = worker(folder.path(), master.port());
    let child = command.arg("--token-file").arg(&token).spawn().unwrap();
    master.accept().answer("401 Unauthorized", "", "0123456789abcdef is revoked");
    let output = child.wait_with_output().unwrap();
    let said = sentences(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("it doesn't accept the token"), "{said}");
    assert!(!said.contains("0123456789abcdef"), "{said}");
}
