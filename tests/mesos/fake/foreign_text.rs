//! Text that a hostile cluster chooses: it controls no terminal, and what is kept of it is bounded.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use offermill::engine::Notice;
use offermill::limits::{FOREIGN_ID_BYTES_MAX, HOSTNAME_BYTES_MAX, MESSAGE_BYTES_MAX};
use serde_json::{Value, json};

use super::master::FakeMaster;
use super::script::{Answer, offers, sound, update};
use super::streams::{Running, task_of};
use super::{framework, mesos, refusal_of};

/// Sets the title of a terminal, clears it, breaks the line, changes the colour and the direction of text, and has
/// letters that can't be seen.
const HOSTILE: &str =
    "\u{1b}]0;PWNED\u{7}\u{1b}[2J\r\n\u{9b}31m\u{7f}\u{2028}\u{e0041}\u{3164}\u{2800}\u{202e}";

/// Asserts that a terminal shows all characters of the lines.
fn assert_shown(lines: &str) {
    assert!(!lines.contains(|c: char| c.is_control() && c != '\n'), "{lines:?}");
    let hidden = ['\u{202e}', '\u{2028}', '\u{e0041}', '\u{3164}', '\u{2800}'];
    assert!(!lines.contains(hidden), "{lines:?}");
}

fn set(event: &mut Value, place: &str, text: &str) {
    *event.pointer_mut(place).unwrap() = json!(text);
}

/// An offer of an agent whose host name is hostile.
fn hostile_offer(id: &str, cores: u32) -> Value {
    let mut event = offers(id, "S-1", cores);
    set(&mut event, "/offers/offers/0/hostname", &format!("host{HOSTILE}"));
    event
}

fn hostile_update(task: &str, state: &str, uuid: &str) -> Value {
    let mut event = update(task, "S-1", state, Some(uuid));
    event["update"]["status"]["message"] = json!(format!("message{HOSTILE}"));
    event
}

fn program(fake: &FakeMaster, encoding: &str, executors: usize, flags: &[&str]) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_offermill"));
    program.arg("run").args(flags).args(["--num-executors", &executors.to_string()]);
    program.args(["--executor-cores", "1", "--executor-memory", "16m"]);
    program.args(["--memory-overhead", "0", "--max-executor-failures", "1"]);
    program.args(["--conf", &format!("offermill.mesos.encoding={encoding}")]);
    program.args(["--conf", "offermill.mesos.user=nobody"]);
    program.args(["--master", &format!("mesos://127.0.0.1:{}", fake.port()), "--", "true"]);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Plays a run whose only executor runs, becomes unreachable, returns and fails on the hostile agent. Returns what the
/// program writes to both outputs.
fn play(flags: &[&str]) -> String {
    let fake = FakeMaster::new(sound);
    let mut child = program(&fake, "json", 1, flags);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("registered") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    fake.send(&hostile_offer("O-1", 4));
    let task = task_of(&fake.wait_for("ACCEPT", 0));
    let states = ["TASK_RUNNING", "TASK_UNREACHABLE", "TASK_RUNNING", "TASK_FAILED"];
    for (state, uuid) in states.into_iter().zip(["AAAA", "AAAB", "AAAC", "AAAD"]) {
        fake.send(&hostile_update(&task, state, uuid));
    }
    let agent = json!({"value": format!("S-2{HOSTILE}")});
    fake.send(&json!({"type": "FAILURE", "failure": {"agent_id": agent}}));
    output.read_to_string(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    text
}

/// Goal: nothing that the cluster says reaches a terminal as it is, and programs that read JSON get it unchanged.
/// Method: a host name, an agent's id and messages that would control a terminal, in a run with lines and in one with
/// JSON.
#[test]
fn a_hostile_cluster_controls_no_terminal() {
    let text = play(&[]);
    assert!(text.contains("\\u{1b}[2J"), "{text}");
    assert_shown(&text);
    let text = play(&["--json"]);
    assert_shown(&text);
    let objects = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let objects: Vec<Value> = objects.collect();
    let host = format!("host{HOSTILE}");
    assert!(objects.iter().any(|it| it["event"] == "placed" && it["host"] == *host), "{text}");
    let message = format!("message{HOSTILE}");
    assert!(objects.iter().any(|it| it["event"] == "ended" && it["message"] == *message), "{text}");
}

/// Goal: messages of any length are cut before they are kept. Method: updates with messages of 7 MiB; the bytes that
/// the observer gets.
#[test]
fn long_messages_are_cut() {
    let fake = FakeMaster::new(sound);
    let mut mesos = mesos(&[fake.port()]);
    mesos.record_bytes_max = 64 << 20;
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    let task = task_of(&fake.wait_for("ACCEPT", 0));
    let long = "x".repeat(7 << 20);
    for (state, uuid) in [("TASK_RUNNING", "AAAA"), ("TASK_FAILED", "AAAB")] {
        let mut event = update(&task, "S-1", state, Some(uuid));
        event["update"]["status"]["message"] = json!(long);
        fake.send(&event);
        let kept = framework.notices.wait("update", |notice| match notice {
            Notice::Updated { state: of, message, .. } if of.as_str() == state => {
                Some(message.clone())
            }
            _ => None,
        });
        assert!(kept.len() <= MESSAGE_BYTES_MAX, "{} bytes", kept.len());
        assert!(kept.starts_with("xxx") && kept.ends_with("… (7340032 bytes)"), "{kept}");
    }
}

/// The peak of a process's resident memory, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Goal: long messages at speed take the memory of a few of them, however many executors they are about. Method: the
/// ends of 64 executors, each with a message of 7 MiB, one right after the other; the program's peak memory when all
/// are acknowledged.
#[test]
#[cfg(target_os = "linux")]
fn many_long_messages_take_little_memory() {
    use super::script::{chunk, framed, protobuf};

    const EXECUTORS: usize = 64;
    const MESSAGE: usize = 7 << 20;
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "SUBSCRIBE" => Answer::subscribed_in_protobuf(call),
        _ => sound(call),
    });
    let send = |event: &Value| fake.send_bytes(&chunk(&framed(&protobuf(event))));
    let mut child = program(&fake, "protobuf", EXECUTORS, &["--json"]);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("registered") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let reader = std::thread::spawn(move || output.lines().map(|line| line.unwrap().len()).max());
    send(&offers("O-1", "S-1", EXECUTORS as u32));
    let accept = fake.wait_for("ACCEPT", 0);
    let launched = &accept.body["accept"]["operations"][0]["launch"]["task_infos"];
    let launched = launched.as_array().unwrap();
    assert_eq!(launched.len(), EXECUTORS);
    let message = "x".repeat(MESSAGE);
    for task in launched {
        let task = task["task_id"]["value"].as_str().unwrap();
        let mut event = update(task, "S-1", "TASK_FINISHED", Some("AAAA"));
        event["update"]["status"]["message"] = json!(message);
        send(&event);
    }
    fake.wait_for("ACKNOWLEDGE", EXECUTORS - 1);
    let peak = peak_memory(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let longest = reader.join().unwrap().unwrap();
    assert!(longest < 2 * MESSAGE_BYTES_MAX + 4096, "a line of {longest} bytes");
    println!("peak memory: {} MiB", peak >> 20);
    assert!(peak < EXECUTORS * MESSAGE / 2, "{peak} bytes");
}

/// Goal: offers with ids and host names that are too long are declined, updates with such ids are ignored, both are
/// reported, and the framework goes on. Method: one of each, then a usual offer.
#[test]
fn long_ids_are_refused() {
    let fake = FakeMaster::new(sound);
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    let long_id = "i".repeat(FOREIGN_ID_BYTES_MAX + 1);
    let mut by_agent = offers("O-1", "S-1", 4);
    set(&mut by_agent, "/offers/offers/0/agent_id/value", &long_id);
    let mut by_host = offers("O-2", "S-1", 4);
    set(&mut by_host, "/offers/offers/0/hostname", &"h".repeat(HOSTNAME_BYTES_MAX + 1));
    let mut by_role = offers("O-4", "S-1", 4);
    set(&mut by_role, "/offers/offers/0/allocation_info/role", &long_id);
    let mut by_zone = offers("O-5", "S-1", 4);
    by_zone["offers"]["offers"][0]["domain"] = json!({"fault_domain":
        {"region": {"name": "r"}, "zone": {"name": long_id}}});
    let events = [(by_agent, "O-1"), (by_host, "O-2"), (by_role, "O-4"), (by_zone, "O-5")];
    for (number, (event, id)) in events.into_iter().enumerate() {
        fake.send(&event);
        let decline = fake.wait_for("DECLINE", number);
        assert_eq!(decline.body["decline"]["offer_ids"][0]["value"], id);
    }
    let is_report = |notice: &Notice| matches!(notice, Notice::Unreadable { offers: 1, .. });
    framework.notices.wait("report", |notice| is_report(notice).then_some(()));
    fake.send(&update(&long_id, "S-1", "TASK_RUNNING", Some("AAAA")));
    framework.notices.wait("report", |notice| match notice {
        Notice::CallFailed { why } => why.contains("an update was ignored").then_some(()),
        _ => None,
    });
    fake.send(&offers("O-3", "S-1", 4));
    fake.wait_for("ACCEPT", 0);
}

/// Goal: a framework's id with blanks or control characters, which would become words of commands, is refused. Method:
/// masters that give such ids, and one whose id is too long.
#[test]
fn odd_framework_ids_are_refused() {
    for (id, why) in [
        ("F 1 -Dx=y".to_owned(), "white space or control characters"),
        (format!("F{HOSTILE}"), "white space or control characters"),
        ("F".repeat(FOREIGN_ID_BYTES_MAX + 1), "at most 1024"),
    ] {
        let fake = FakeMaster::new(move |call| {
            let mut event = super::script::subscribed(call, 15.0);
            set(&mut event, "/subscribed/framework_id/value", &id);
            Answer::stream("s-1").event(&event)
        });
        let refusal = refusal_of(mesos(&[fake.port()]));
        assert!(refusal.contains("the framework's id") && refusal.contains(why), "{refusal}");
    }
}

/// Goal: a master that trickles is given up like a silent one. Method: a record that never ends, a byte at a time, with
/// heartbeats each second
/// expected.
#[test]
fn a_trickling_master_is_given_up() {
    let running = Running::start(|call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::stream(&super::script::stream_id(call.number))
            .event(&super::script::subscribed(call, 1.0)),
        _ => sound(call),
    });
    running.fake.trickle(b"9999\n", b' ');
    running.assert_subscribed_again();
    running.framework.notices.wait("reason", |notice| match notice {
        Notice::CallFailed { why } => why.contains("a record was not complete").then_some(()),
        _ => None,
    });
}
