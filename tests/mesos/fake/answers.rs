//! Answers to offers: each offer is answered, whatever happens to the answer, because a master holds offers until then.

use std::path::{Path, PathBuf};
use std::time::Duration;

use offermill::engine::Notice;

use super::master::FakeMaster;
use super::script::{Answer, Call, Then, offers, sound, update};
use super::{framework, mesos};

/// The ids of the offers in a decline.
fn declined(call: &Call) -> Vec<String> {
    let ids = call.body["decline"]["offer_ids"].as_array().unwrap();
    ids.iter().map(|id| id["value"].as_str().unwrap().to_owned()).collect()
}

/// The path of a file of this process, in a folder of its own.
fn file_in_folder(name: &str) -> PathBuf {
    let name = format!("{name}-{}", std::process::id());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("framework")
}

/// Offers an agent again and again, as a master does, until an executor is launched there. Returns that call.
fn offer_until_accepted(fake: &FakeMaster, agent: &str) -> Call {
    for number in 0..200 {
        fake.send(&offers(&format!("again-{number}"), agent, 4));
        std::thread::sleep(Duration::from_millis(100));
        if let Some(call) = fake.calls_of("ACCEPT").into_iter().next() {
            return call;
        }
    }
    fake.wait_for("ACCEPT", 0)
}

/// Goal: the offers of a launch that failed, or may have failed, are declined. Method: an ACCEPT without an answer, and
/// one that is rejected for its form (`validation::scheduler::call::validate`). (`Master::decline` ignores offers that
/// were used.)
#[test]
fn offers_of_failed_launches_are_declined() {
    for answer in
        [Answer::none(), Answer::status("400 Bad Request", "", "Expecting something else")]
    {
        let fake = FakeMaster::new(move |call| match call.kind.as_str() {
            "ACCEPT" => answer.clone(),
            _ => sound(call),
        });
        let framework = framework(mesos(&[fake.port()]), 1).unwrap();
        framework.id();
        fake.send(&offers("O-1", "S-1", 4));
        fake.wait_for("ACCEPT", 0);
        assert_eq!(declined(&fake.wait_for("DECLINE", 0)), ["O-1"]);
        assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1);
    }
}

/// Goal: offers that can't be declined don't stay with the framework forever. Method: no DECLINE is answered, while the
/// stream is sound; the framework subscribes again, which ends all offers (`Master::failoverFramework`).
#[test]
fn declines_that_do_not_get_through() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("DECLINE", 0..3) => Answer::none(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 0));
    fake.wait_for("SUBSCRIBE", 1);
    assert_eq!(fake.calls_of("DECLINE").len(), 3);
}

/// Goal: nothing is launched that isn't written to the framework id file, its offers are declined, and launches
/// continue once the file can be written. Method: the folder of the file is missing when the framework gets its id, and
/// comes back.
#[test]
fn a_file_that_can_not_be_written() {
    let file = file_in_folder("unwritable");
    let folder = file.parent().unwrap().to_owned();
    let gone = folder.clone();
    let fake = FakeMaster::new(move |call| {
        if call.kind == "SUBSCRIBE" {
            std::fs::remove_dir_all(&gone).unwrap();
        }
        sound(call)
    });
    let mut mesos = mesos(&[fake.port()]);
    mesos.framework_id_file = Some(file.clone());
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    assert_eq!(declined(&fake.wait_for("DECLINE", 0)), ["O-1"]);
    assert_eq!(fake.calls_of("ACCEPT").len(), 0);
    // The kernel learns of it before it gets the next offer.
    let dropped = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
    framework.notices.wait("update", dropped);
    std::fs::create_dir_all(&folder).unwrap();
    offer_until_accepted(&fake, "S-2");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nid F-0001\n") && text.contains(" S-2 "), "{text}");
    drop(framework);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The file whose presence holds up the rewriting of a framework id file, in place of a disk that hangs.
fn held(file: &Path) -> PathBuf {
    file.with_extension("held")
}

fn wait_while_held(file: &Path) {
    while held(file).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Goal: a disk that hangs delays only launches, and not forever; when it works again, so do launches. Method: the
/// framework's id must be written, which is held up; updates are acknowledged, an offer is declined; then it is
/// written, and the next offer is used.
#[test]
fn a_file_that_hangs() {
    let file = file_in_folder("hanging");
    let held = held(&file);
    let made = held.clone();
    let fake = FakeMaster::new(move |call| {
        if call.kind == "SUBSCRIBE" {
            std::fs::write(&made, "").unwrap();
        }
        sound(call)
    });
    let mut mesos = mesos(&[fake.port()]);
    mesos.framework_id_file = Some(file.clone());
    mesos.before_rewrite = Some(wait_while_held);
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    fake.send(&update("unknown", "S-1", "TASK_RUNNING", Some("AAAA")));
    fake.send(&update("gone", "S-1", "TASK_FINISHED", Some("AAAB")));
    fake.wait_for("ACKNOWLEDGE", 1);
    assert_eq!(fake.wait_for("KILL", 0).body["kill"]["task_id"]["value"], "unknown");
    assert_eq!(declined(&fake.wait_for("DECLINE", 0)), ["O-1"]);
    let why = |notice: &Notice| match notice {
        Notice::CallFailed { why } if why.contains("nothing was written for 5 s") => Some(()),
        _ => None,
    };
    framework.notices.wait("failure", why);
    assert_eq!(fake.calls_of("ACCEPT").len(), 0);
    std::fs::remove_file(&held).unwrap();
    offer_until_accepted(&fake, "S-2");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nid F-0001\n") && text.contains(" S-2 "), "{text}");
    assert!(!text.contains(" S-1 ") || text.contains("-0.0 ended\n"), "it was called off: {text}");
    drop(framework);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

/// Goal: nothing is launched before it is written, and no end is acknowledged before that is written. Method: writing
/// the framework's new id is held up for a while: no launch; then a launch, whose end is in the file when its
/// acknowledgement arrives.
#[test]
fn the_file_is_written_before_calls() {
    let file = file_in_folder("ending");
    let held = held(&file);
    let text = "offermill framework 1\nid F-0007\n+ old-1 S-1 host 1000 32 0 -\n";
    std::fs::write(&file, text).unwrap();
    let made = held.clone();
    let fake = FakeMaster::new(move |call| match (call.kind.as_str(), call.number) {
        // Not the id of the former run: the file is rewritten.
        ("SUBSCRIBE", 0) => {
            std::fs::write(&made, "").unwrap();
            Answer::stream(&super::script::stream_id(0)).event(&serde_json::json!({
                "type": "SUBSCRIBED", "subscribed": {"framework_id": {"value": "F-0008"}}}))
        }
        _ => sound(call),
    });
    let mut mesos = mesos(&[fake.port()]);
    mesos.framework_id_file = Some(file.clone());
    mesos.before_rewrite = Some(wait_while_held);
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(fake.calls_of("ACCEPT").len(), 0, "launched before it was written");
    std::fs::remove_file(&held).unwrap();
    let task = super::streams::task_of(&offer_until_accepted(&fake, "S-1"));
    fake.send(&update(&task, "S-1", "TASK_FINISHED", Some("AAAA")));
    fake.wait_for("ACKNOWLEDGE", 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with(&format!("- {task} finished\n")), "{text}");
    drop(framework);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

/// Goal: queued calls don't delay the end of the framework. Method: many kills, which a master answers slowly; then the
/// engine is dropped.
#[test]
fn the_end_does_not_wait_for_other_calls() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "KILL" => Answer::none().then(Then::Silence(Duration::from_secs(2))),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    for number in 0..20 {
        fake.send(&update(&format!("unknown-{number}"), "S-1", "TASK_RUNNING", None));
    }
    fake.wait_for("KILL", 0);
    drop(framework);
    fake.wait_for("TEARDOWN", 0);
}

/// Goal: executors of a former run are adopted, those beyond the limit are killed, and all are reconciled. Method: a
/// file with two of them, and a limit of one; both run.
#[test]
fn former_executors_beyond_the_limit() {
    let file = file_in_folder("adopted");
    let text = "offermill framework 1\nid F-0007\n+ old-1 S-1 host 1000 32 0 -\n+ old-2 S-2 host 1000 32 0 -\n";
    std::fs::write(&file, text).unwrap();
    let fake = FakeMaster::new(sound);
    let mut mesos = mesos(&[fake.port()]);
    mesos.framework_id_file = Some(file.clone());
    let framework = framework(mesos, 1).unwrap();
    assert_eq!(framework.id(), "F-0007");
    let named = fake.wait_for("RECONCILE", 0);
    assert_eq!(named.body["reconcile"]["tasks"][0]["task_id"]["value"], "old-1");
    fake.wait_for("RECONCILE", 1);
    for (task, agent, uuid) in [("old-1", "S-1", "AAAA"), ("old-2", "S-2", "AAAB")] {
        fake.send(&update(task, agent, "TASK_RUNNING", Some(uuid)));
    }
    fake.wait_for("ACKNOWLEDGE", 1);
    assert_eq!(fake.wait_for("KILL", 0).body["kill"]["task_id"]["value"], "old-2");
    assert_eq!(framework.snapshot().executors.len(), 1);
    for (task, agent, uuid) in [("old-2", "S-2", "AAAC"), ("old-1", "S-1", "AAAD")] {
        fake.send(&update(task, agent, "TASK_KILLED", Some(uuid)));
    }
    fake.wait_for("ACKNOWLEDGE", 3);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("- old-2 ended\n- old-1 ended\n"), "{text}");
    framework.kernel.check().unwrap();
    drop(framework);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}
