//! Drills of a standalone cluster: what may happen to masters and workers in production, with real programs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::eventually::eventually;
use crate::standalone::{RunningMaster, subscribe};
use crate::standalone_standby::{LoggedWorker, end, user};
use crate::support::{Folder, Run, offermill, process_of, small};

/// Goal: a second worker on one machine is refused with what to do while the first lives, and takes its place when the
/// first is gone. Method: two real workers with one address; the first leaves.
#[test]
fn the_same_host_twice() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let first = LoggedWorker::start(&folder, &master.port);
    first.wait_for("(term 1)");
    let second = LoggedWorker::start_in(&folder, "second", &master.port);
    second.wait_for("needs an address and a host name of its own (--address, --hostname)");
    assert_eq!(master.state()["workers"], 1);
    first.end();
    second.wait_for("(term 1)");
    assert_eq!(master.state()["workers"], 1);
    second.end();
}

/// Starts a master whose files can't become longer than 4 KiB.
fn start_without_room(folder: &Folder) -> RunningMaster {
    let binary = offermill(&folder.0, &[]).get_program().to_owned();
    let mut command = Command::new("sh");
    // Half KiB in some shells, KiB in others. Without the trap, the signal would end the master.
    command.args(["-c", "trap '' XFSZ; ulimit -f 4 && exec \"$0\" \"$@\""]).arg(binary);
    command.args(["master", "--listen", "127.0.0.1:0", "--state-dir", "master"]);
    command.current_dir(&folder.0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    RunningMaster::watch(Run::watch(command.spawn().unwrap()))
}

/// Registers a worker that says no more, if the master still answers.
fn register(port: &str, number: u32) -> std::io::Result<()> {
    let mut worker = subscribe();
    worker["address"] = json!(format!("paper-{number}"));
    let (text, head) = (worker.to_string(), "POST /api/v1/worker HTTP/1.1\r\nhost: localhost\r\n");
    let record = format!("{}\n{text}", text.len());
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let length = record.len();
    let kind = "content-type: application/json";
    write!(stream, "{head}{kind}\r\ncontent-length: {length}\r\n\r\n{record}")?;
    stream.read_exact(&mut [0; 12])
}

/// Goal: a master whose disk is full ends with code 7 and one sentence, executors go on, and a master with room goes
/// on with them. Method: a limit on the length of its files, and workers that register until the journal is that long.
#[test]
fn a_full_disk_ends_the_master_alone() {
    let folder = Folder::new();
    let master = start_without_room(&folder);
    let worker = LoggedWorker::start(&folder, &master.port);
    worker.wait_for("(term 1)");
    let url = format!("offermill://127.0.0.1:{}", master.port);
    let user = format!("offermill.mesos.user={}", user());
    let own = ["--num-executors", "1", "--failover-timeout", "1h", "--control", "control"];
    let flags = [&["--json", "--master", &url, "-c", &user][..], &own].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "600"]));
    let process = process_of(&run.event_named("running"));
    let port = master.port.clone();
    assert!((0..1000).any(|number| register(&port, number).is_err()), "the disk isn't full");
    let ended = master.run.end();
    assert_eq!(ended.code, Some(7), "{}\n{}", ended.output, ended.errors);
    let about = ended.errors.lines().filter(|line| line.contains("can't be written"));
    assert_eq!(about.count(), 1, "{}", ended.errors);
    let master =
        RunningMaster::start(&folder, &format!("127.0.0.1:{port}"), &["--recovery-timeout", "1s"]);
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    eventually(Duration::from_secs(60), "the executor", || match master.state() {
        state if state["executors"] == 1 => Ok(()),
        state => Err(state.to_string()),
    });
    end(&folder, run, process);
    worker.end();
}
