//! Tests of what `offermill master` and `offermill worker` log.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::eventually::eventually;
use crate::standalone::{HandWorker, RunningMaster, subscribe};
use crate::support::{Ended, Folder, Run, finish, offermill, send_signal, small};

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef";

fn private(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Ends a master by a signal, and returns what it has logged.
fn end(master: RunningMaster) -> Ended {
    master.run.signal("TERM");
    let ended = master.run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    ended
}

fn await_workers(master: &RunningMaster, workers: u64) {
    while master.state()["workers"] != workers {
        sleep(Duration::from_millis(5));
    }
}

/// The lines of a log with these texts, which must be in it in this order.
fn assert_logged(log: &str, expected: &[&str]) {
    let mut lines = log.lines();
    for text in expected {
        assert!(lines.any(|line| line.contains(text)), "{text:?} is missing in:\n{log}");
    }
}

/// Goal: a master says who comes, goes and is refused, each in a line with time and level, and never shows a token.
/// Method: a worker with a wrong token; one with the right one, which is lost, is back and is lost again; a framework
/// that registers and leaves; a signal; then a master that waits for the worker.
#[test]
fn a_master_logs_who_comes_and_goes() {
    let folder = Folder::new();
    private(&folder, "tokens", &format!("w1 {TOKEN}\n"));
    let flags = ["--worker-tokens-file", "tokens", "--log-level", "debug"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &flags);
    let wrong = "POST /api/v1/worker HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer wrong-wrong-wrong\r\n\
                 connection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(master.ask(wrong).0, 401);
    let right = format!("authorization: Bearer {TOKEN}\r\n");
    let mut worker = HandWorker::connect(&master, &subscribe(), &right);
    let id = worker.hear_a("SUBSCRIBED")["id"].clone();
    drop(worker);
    await_workers(&master, 0);
    let mut again = subscribe();
    again["id"] = id.clone();
    let mut worker = HandWorker::connect(&master, &again, &right);
    worker.hear_a("SUBSCRIBED");
    let url = format!("offermill://127.0.0.1:{}", master.port);
    let user = ["--master", &url, "-c", "offermill.mesos.user=nobody", "--name", "etl"];
    let run = Run::start(&folder, &small(&[&user[..], &["--num-executors", "1"]].concat(), &["x"]));
    worker.hear_a("LAUNCH");
    run.signal("INT");
    worker.hear_a("KILL");
    worker.hear_a("SHUTDOWN_FRAMEWORK");
    drop(worker);
    await_workers(&master, 0);
    let ended = end(master);
    let id = id.as_str().unwrap();
    let expected = [
        " INFO the master of cluster ".to_owned(),
        " WARN a request from 127.0.0.1:".to_owned(),
        format!(" INFO worker {id} on h1 is registered with "),
        format!(" INFO worker {id} on h1 is disconnected"),
        format!(" INFO worker {id} on h1 is back with "),
        "(etl) is registered".to_owned(),
        " DEBUG executor ".to_owned(),
        "(etl) is torn down: it has asked for that".to_owned(),
        format!(" INFO worker {id} on h1 is disconnected"),
        " INFO SIGTERM: the master ends; executors go on".to_owned(),
        " INFO the master has ended".to_owned(),
    ];
    assert_logged(&ended.errors, &expected.each_ref().map(String::as_str));
    assert!(!ended.errors.contains("wrong-wrong") && !ended.errors.contains(TOKEN));
    for line in ended.errors.lines() {
        assert!(line.starts_with("20") && line[..24].ends_with('Z'), "{line}");
    }

    let quiet = RunningMaster::start(&folder, "127.0.0.1:0", &["--log-level", "warn"]);
    assert_eq!(end(quiet).errors, "");
    let flags = ["--worker-tokens-file", "tokens"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &flags);
    // It has begun by then.
    master.state();
    let log = end(master).errors;
    assert_logged(&log, &[" INFO waiting up to 15 s for 1 worker and 0 frameworks of the journal"]);
}

/// Goal: a master goes on, and ends on a signal, while nobody reads what it logs. Method: frameworks with long names
/// that come and go, until there are more lines than fit in the pipe and in memory.
#[test]
fn an_unread_log_stops_no_master() {
    let folder = Folder::new();
    let arguments = ["master", "--listen", "127.0.0.1:0", "--state-dir", "master"];
    let mut child = offermill(&folder.0, &arguments).spawn().unwrap();
    let errors = child.stderr.take().unwrap();
    child.stderr = Some(empty_pipe());
    let master = RunningMaster::watch(Run::watch(child));
    let info = json!({"user": "nobody", "name": "n".repeat(300)});
    let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}).to_string();
    let head = format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json\r\ncontent-length: {}\r\n\r\n{call}",
        call.len()
    );
    for _ in 0..400 {
        let mut stream = master.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    while master.state()["frameworks"] != 0 {
        sleep(Duration::from_millis(5));
    }
    send_signal("TERM", master.run.id());
    assert_eq!(master.run.end().code, Some(0));
    drop(errors);
}

/// Goal: a master serves although nobody reads what it says from the beginning. Method: its standard output and error
/// are a pipe that is full; the folder names its address.
#[test]
fn full_pipes_stop_no_master() {
    let folder = Folder::new();
    let (unread, mut full) = std::io::pipe().unwrap();
    // As much as Linux keeps.
    full.write_all(&[b'.'; 64 * 1024]).unwrap();
    let arguments = ["master", "--listen", "127.0.0.1:0", "--state-dir", "master"];
    let mut command = offermill(&folder.0, &arguments);
    command.stdout(full.try_clone().unwrap()).stderr(full);
    let mut master = command.spawn().unwrap();
    let state = eventually(PATIENCE, "a master that serves", || {
        let why = |error: std::io::Error| error.to_string();
        let address = std::fs::read_to_string(folder.0.join("master/master.leader"));
        let mut stream = TcpStream::connect(address.map_err(why)?.trim()).map_err(why)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(why)?;
        let get = "GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(get.as_bytes()).map_err(why)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(why)?;
        Ok(answer)
    });
    assert!(state.starts_with("HTTP/1.1 200"), "{state}");
    send_signal("TERM", master.id());
    assert_eq!(master.wait().unwrap().code(), Some(0));
    drop(unread);
}

/// The end of a pipe whose other end is closed.
fn empty_pipe() -> std::process::ChildStderr {
    let child = Command::new("true").stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    child.wait().unwrap();
    child.stderr.take().unwrap()
}

/// Goal: a worker says who has drained it, that it is drained, and what it starts if that is asked for. Method: a
/// master
/// with `ctl`, a worker with an executor and `RUST_LOG`, and a drain.
#[test]
fn a_worker_logs_its_drain() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &["--control", "m.sock"]);
    let url = format!("offermill://127.0.0.1:{}", master.port);
    let arguments =
        ["worker", "--master", &url, "--work-dir", "w", "--cores", "1", "--memory", "64m"];
    let mut command = offermill(&folder.0, &arguments);
    let worker = Run::watch(command.env("RUST_LOG", "debug").spawn().unwrap());
    let flags = ["--json", "--master", &url, "--num-executors", "1", "-c", &own_user()];
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "600"]));
    run.event_named("running");
    let status = finish(&folder, &["ctl", "m.sock", "status", "json"]).output;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let id = status["workers"][0]["id"].as_str().unwrap().to_owned();
    let drained = finish(&folder, &["ctl", "m.sock", "drain", &id, "5s"]);
    assert_eq!(drained.code, Some(0), "{}", drained.errors);
    let ended = worker.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_logged(
        &ended.errors,
        &[
            &format!(" as {id} (term 1)"),
            " DEBUG ",
            "the master drains this worker: 1 executor must end within 5 s, then the worker ends",
            "the worker is drained and has ended; the master was told",
        ],
    );
    // Nothing of it is a failure, nor blames the agent.
    let ended = run.event_named("ended");
    assert_eq!((&ended["state"], &ended["cause"]), (&json!("killed"), &json!("preempted")));
    run.signal("INT");
    run.end();
    let log = end(master).errors;
    assert_logged(
        &log,
        &[
            &format!("worker {id} on "),
            " drains, with 1 executor",
            " is removed: its worker has left",
        ],
    );
}

fn own_user() -> String {
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    format!("offermill.mesos.user={}", String::from_utf8(user).unwrap().trim())
}

/// Goal: a newcomer's mistake is told with what would help. Method: a worker with TLS to a master without it; a master
/// with a certificate of version 1, with a file that isn't there, and with tokens that others may read; what `ctl`
/// offers, and the exit codes of `clean`.
#[test]
fn mistakes_are_told_with_a_remedy() {
    let folder = Folder::new();
    let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let url = format!("https://127.0.0.1:{}", master.port);
    let worker = ["worker", "--master", &url, "--work-dir", "w", "--ca-file"];
    let authority = format!("{pem}authority.pem");
    let mut command = offermill(&folder.0, &[&worker[..], &[&authority]].concat());
    let mut worker = command.spawn().unwrap();
    let errors = BufReader::new(worker.stderr.take().unwrap());
    let said = errors.lines().map_while(Result::ok).find(|line| line.contains("not registered"));
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(
        said.as_ref().is_some_and(|it| it.contains("doesn't speak TLS: use http://")),
        "{said:?}"
    );
    end(master);

    folder.write("open", "0123456789abcdef\n");
    let old = format!("{pem}old.pem");
    private(&folder, "old-key.pem", &std::fs::read_to_string(format!("{pem}old-key.pem")).unwrap());
    let (server, key) = (format!("{pem}server.pem"), format!("{pem}server-key.pem"));
    for (flags, expected) in [
        (["--worker-tokens-file", "open", "--max-cores", "1"], "chmod 600 would do"),
        (["--certificate-file", "absent.pem", "--key-file", &key], "absent.pem: it can't be read"),
        (["--certificate-file", &server, "--key-file", "absent"], "absent: it can't be read"),
        (["--certificate-file", &old, "--key-file", "old-key.pem"], "must be of version 3"),
    ] {
        let refused = finish(&folder, &[&["master", "--state-dir", "m2"], &flags[..]].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
        assert!(refused.errors.contains(expected), "{expected:?}: {}", refused.errors);
    }
    let help = finish(&folder, &["ctl", "--help"]).output;
    assert!(help.contains("drain ID [GRACE]"), "{help}");
    let help = finish(&folder, &["clean", "--help"]).output;
    assert!(help.contains("the run is alive") && !help.contains("--until-finished"), "{help}");
}

/// Goal: a worker without the certificate that its master wants is told so, not about its token. Method: such a master.
#[test]
fn a_missing_client_certificate_is_named() {
    let folder = Folder::new();
    let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
    for name in ["authority.pem", "server.pem", "server-key.pem"] {
        private(&folder, name, &std::fs::read_to_string(format!("{pem}{name}")).unwrap());
    }
    private(&folder, "token", TOKEN);
    private(&folder, "tokens", TOKEN);
    let tls = ["--certificate-file", "server.pem", "--key-file", "server-key.pem"];
    let workers = ["--worker-ca-file", "authority.pem", "--worker-tokens-file", "tokens"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[tls, workers].concat());
    let url = format!("https://localhost:{}", master.port);
    let worker = ["worker", "--master", &url, "--work-dir", "w", "--ca-file", "authority.pem"];
    let refused = finish(&folder, &[&worker[..], &["--token-file", "token"]].concat());
    assert_eq!(refused.code, Some(4), "{}", refused.errors);
    assert!(refused.errors.contains("give --client-certificate-file"), "{}", refused.errors);
    assert!(!refused.errors.contains("accept the token"), "{}", refused.errors);
    let log = end(master).errors;
    assert_logged(&log, &["a worker has no certificate of an authority of --worker-ca-file"]);
}

/// Goal: the units of systemd start what this program has: their flags exist, and a stop waits longer than the worker's
/// grace period. Method: the command of each, with `--help`, which doesn't hide a flag that is unknown.
#[test]
fn units_of_systemd_have_flags_that_exist() {
    let folder = Folder::new();
    for name in ["master", "worker"] {
        let path = format!("{}/docs/systemd/offermill-{name}.service", env!("CARGO_MANIFEST_DIR"));
        let unit = std::fs::read_to_string(path).unwrap().replace("\\\n", " ");
        let setting = |name: &str| {
            let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_default().to_owned()
        };
        let command = setting("ExecStart");
        let mut words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[..2], ["/usr/local/bin/offermill", name]);
        words.push("--help");
        let ended = finish(&folder, &words[1..]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        words.insert(2, "--unknown");
        assert_eq!(finish(&folder, &words[1..]).code, Some(2));
        let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().unwrap();
        if let Some(at) = words.iter().position(|word| *word == "--grace") {
            assert!(seconds(&setting("TimeoutStopSec")) > seconds(words[at + 1]) + 5);
            assert_eq!(setting("KillMode"), "mixed");
        }
    }
}
