//! Frameworks that return with an id from a file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use offermill::cluster::mesos::{AtEnd, MesosConfig};
use offermill::engine::Notice;
use offermill::{Change, Phase};
use serde_json::{Value, json};

use super::master::FakeMaster;
use super::script::{Answer, Call, offers, sound, stream_id, subscribed, update};
use super::streams::task_of;
use super::{framework, mesos};

/// A file that no other test uses.
struct IdFile(PathBuf);

impl IdFile {
    fn new() -> IdFile {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("framework-id-{}-{number}", std::process::id());
        IdFile(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn settings(&self, port: u16) -> MesosConfig {
        let mut mesos = mesos(&[port]);
        mesos.framework_id_file = Some(self.0.clone());
        mesos.at_end = AtEnd::Leave;
        mesos
    }
}

impl Drop for IdFile {
    fn drop(&mut self) {
        for ending in ["", ".lock"] {
            let _none = std::fs::remove_file(format!("{}{ending}", self.0.display()));
        }
    }
}

/// Runs a framework until its only executor runs, and leaves it. Returns the executor's id.
fn leave_one_behind(fake: &FakeMaster, file: &IdFile) -> String {
    let framework = framework(file.settings(fake.port()), 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    let task = task_of(&fake.wait_for("ACCEPT", 0));
    fake.send(&update(&task, "S-1", "TASK_RUNNING", Some("AAAA")));
    fake.wait_for("ACKNOWLEDGE", 0);
    drop(framework);
    assert_eq!(fake.calls_of("TEARDOWN").len(), 0, "it was to be left");
    task
}

fn error(message: &str) -> Value {
    json!({"type": "ERROR", "error": {"message": message}})
}

/// Goal: a framework that returns under its old id counts the old executors, reconciles them, and uses no offer for
/// others. Method: a framework that is left with one executor, and another with the same file.
#[test]
fn executors_are_taken_over() {
    let file = IdFile::new();
    let fake = FakeMaster::new(sound);
    let task = leave_one_behind(&fake, &file);
    let framework = framework(file.settings(fake.port()), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
    let again = fake.wait_for("SUBSCRIBE", 1);
    assert_eq!(again.body["framework_id"]["value"], "F-0001");
    let asked = fake.wait_for("RECONCILE", 0).body.to_string()
        + &fake.calls_of("RECONCILE").iter().map(|call| call.body.to_string()).collect::<String>();
    assert!(asked.contains(&task), "{asked}");
    fake.send(&offers("O-2", "S-2", 4));
    fake.send(&update(&task, "S-1", "TASK_RUNNING", None));
    fake.wait_for("DECLINE", 0);
    let running = |notice: &Notice| {
        matches!(
            notice,
            Notice::Updated { change: Change::Running | Change::Returned | Change::Readmitted, .. }
        )
        .then_some(())
    };
    framework.notices.wait("running executor", running);
    let executors = framework.snapshot().executors;
    assert!(matches!(&executors[..], [one] if one.phase == Phase::Running), "{executors:#?}");
    assert_eq!(framework.kernel.executor_name(executors[0].id).to_string(), task);
    assert_eq!(fake.calls_of("ACCEPT").len(), 1);
}

/// Goal: if the framework has been removed, the next run begins with a new id and no executors. Method: ERROR to the
/// old id, with the message of `Master::subscribe` for a completed framework; a subscription without an id is accepted.
#[test]
fn a_former_id_that_the_master_has_removed() {
    let file = IdFile::new();
    let buried = |call: &Call| call.body["framework_id"]["value"] == "F-0001";
    let fake = FakeMaster::new(move |call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 1..) if buried(call) => {
            Answer::stream("s-2").event(&error("Framework has been removed")).end()
        }
        ("SUBSCRIBE", 1..) => {
            let mut event = subscribed(call, 15.0);
            event["subscribed"]["framework_id"]["value"] = json!("F-0002");
            Answer::stream(&stream_id(call.number)).event(&event)
        }
        _ => sound(call),
    });
    leave_one_behind(&fake, &file);
    let framework = framework(file.settings(fake.port()), 1).unwrap();
    assert_eq!(framework.id(), "F-0002");
    let anew = fake.wait_for("SUBSCRIBE", 2);
    assert_eq!(anew.body["framework_id"], Value::Null);
    assert_eq!(anew.body["subscribe"]["framework_info"]["id"], Value::Null);
    assert_eq!(framework.snapshot().executors.len(), 0);
    fake.send(&offers("O-2", "S-2", 4));
    let accept = fake.wait_for("ACCEPT", 1);
    assert_eq!(accept.message.header("mesos-stream-id"), Some(stream_id(2).as_str()));
}

/// Goal: an executor beyond the limit is killed before any update reports it, because its agent may be away. Method: a
/// return that wants no executors; no update arrives.
#[test]
fn executors_beyond_the_caps_are_killed() {
    let file = IdFile::new();
    let fake = FakeMaster::new(sound);
    let task = leave_one_behind(&fake, &file);
    let begun = Instant::now();
    let _framework = framework(file.settings(fake.port()), 0).unwrap();
    let kill = fake.wait_for("KILL", 0);
    assert_eq!(kill.body["kill"]["task_id"]["value"], task.as_str());
    assert_eq!(kill.body["kill"]["agent_id"]["value"], "S-1");
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
}

/// Goal: an executor beyond the limit is not forgotten before its end is known: a further run kills it, too. Method: a
/// return without capacity, which ends before any update reports the executor, and another.
#[test]
fn executors_beyond_the_caps_are_not_forgotten() {
    let file = IdFile::new();
    let fake = FakeMaster::new(sound);
    let task = leave_one_behind(&fake, &file);
    for number in 0..2 {
        let _framework = framework(file.settings(fake.port()), 0).unwrap();
        let kill = fake.wait_for("KILL", number);
        assert_eq!(kill.body["kill"]["task_id"]["value"], task.as_str());
    }
}

/// Goal: executors of the former run that are unknown to this one are killed. Method: the framework returns, and the
/// cluster reports a task that isn't in the file, with a uuid: it is acknowledged, and killed.
#[test]
fn unknown_executors_are_killed() {
    let file = IdFile::new();
    let fake = FakeMaster::new(sound);
    leave_one_behind(&fake, &file);
    let framework = framework(file.settings(fake.port()), 1).unwrap();
    framework.id();
    fake.wait_for("RECONCILE", 0);
    fake.send(&update("test-0-7.7", "S-3", "TASK_RUNNING", Some("AAAF")));
    let kill = fake.wait_for("KILL", 0);
    assert_eq!(kill.body["kill"]["task_id"]["value"], "test-0-7.7");
    assert_eq!(kill.body["kill"]["agent_id"]["value"], "S-3");
    fake.wait_for("ACKNOWLEDGE", 1);
}

/// Goal: a run whose framework could not be torn down is over: the next run continues the framework under its id, but
/// counts no executor of that run, neither running nor finished, and kills those that run. Method: one executor has
/// finished and another runs when TEARDOWN is refused; the next run wants one executor.
#[test]
fn what_could_not_be_torn_down_is_over() {
    let file = IdFile::new();
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("TEARDOWN", 0) => Answer::status("403 Forbidden", "", "not allowed to end it"),
        _ => sound(call),
    });
    let mut settings = file.settings(fake.port());
    settings.at_end = AtEnd::TearDown;
    let first = framework(settings.clone(), 2).unwrap();
    first.id();
    let mut tasks = Vec::new();
    for (number, state, uuid) in [(0, "TASK_FINISHED", "AAAA"), (1, "TASK_RUNNING", "AAAB")] {
        fake.send(&offers(&format!("O-{number}"), "S-1", 1));
        let task = task_of(&fake.wait_for("ACCEPT", number));
        fake.send(&update(&task, "S-1", state, Some(uuid)));
        fake.wait_for("ACKNOWLEDGE", number);
        tasks.push(task);
    }
    drop(first);
    let second = framework(settings, 1).unwrap();
    assert_eq!(second.id(), "F-0001");
    second.notices.wait("end of the resumption", |notice| match notice {
        Notice::Resumed { finished } => {
            assert_eq!(*finished, 0);
            Some(())
        }
        _ => None,
    });
    assert_eq!(second.notices.count(|notice| matches!(notice, Notice::Adopted(_))), 0);
    fake.send(&update(&tasks[1], "S-1", "TASK_RUNNING", None));
    let kill = fake.wait_for("KILL", 0);
    assert_eq!(kill.body["kill"]["task_id"]["value"], tasks[1].as_str());
    fake.send(&offers("O-2", "S-2", 4));
    fake.wait_for("ACCEPT", 2);
}

/// Goal: two programs with one id would end each other's subscription forever, so the second doesn't start. Method: the
/// same file twice.
#[test]
fn one_file_is_one_framework() {
    let file = IdFile::new();
    let fake = FakeMaster::new(sound);
    let first = framework(file.settings(fake.port()), 1).unwrap();
    first.id();
    let second = framework(file.settings(fake.port()), 1).unwrap_err();
    assert!(second.is_cluster() && second.to_string().contains("another process"), "{second}");
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: a file of another format is not modified, and the error names it. Method: a text and bytes; both are
/// unchanged.
#[test]
fn a_file_that_is_something_else() {
    for content in [&b"dear diary\n"[..], &[0xff, 0xfe, 0]] {
        let file = IdFile::new();
        std::fs::write(&file.0, content).unwrap();
        let fake = FakeMaster::new(sound);
        let error = framework(file.settings(fake.port()), 1).unwrap_err();
        assert!(error.to_string().contains(&file.0.display().to_string()), "{error}");
        assert_eq!(std::fs::read(&file.0).unwrap(), content);
    }
}
