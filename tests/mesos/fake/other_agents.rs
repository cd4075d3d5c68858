//! Updates that the framework must not believe: of agents that don't have the executor, and with ids that the engine
//! refuses.

use std::path::PathBuf;

use offermill::engine::Notice;
use offermill::{Change, Phase};
use serde_json::Value;

use super::master::FakeMaster;
use super::script::{offers, sound, update};
use super::streams::task_of;
use super::{framework, mesos};
use crate::framework::Framework;

/// A framework with one executor, on S-1, and its framework id file.
struct Recorded {
    fake: FakeMaster,
    framework: Framework,
    file: PathBuf,
    task: String,
}

impl Recorded {
    fn file(name: &str) -> PathBuf {
        let name = format!("other-agents-{name}-{}", std::process::id());
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
    }

    fn start(name: &str) -> Recorded {
        let file = Recorded::file(name);
        let fake = FakeMaster::new(sound);
        let mut mesos = mesos(&[fake.port()]);
        mesos.framework_id_file = Some(file.clone());
        let framework = framework(mesos, 1).unwrap();
        framework.id();
        fake.send(&offers("O-1", "S-1", 4));
        let task = task_of(&fake.wait_for("ACCEPT", 0));
        let it = Recorded { fake, framework, file, task };
        it.send("S-1", "TASK_RUNNING", "AAAA");
        it.assert_acknowledged(0, "S-1");
        it
    }

    fn send(&self, agent: &str, state: &str, uuid: &str) {
        self.fake.send(&update(&self.task, agent, state, Some(uuid)));
    }

    /// The acknowledgement with this number goes to this agent.
    #[track_caller]
    fn assert_acknowledged(&self, number: usize, agent: &str) {
        let call = self.fake.wait_for("ACKNOWLEDGE", number);
        assert_eq!(call.body["acknowledge"]["agent_id"]["value"], agent);
    }

    /// The number of reports of ignored updates.
    fn reports(&self) -> usize {
        self.framework.notices.count(|notice| match notice {
            Notice::CallFailed { why } => {
                why.contains("an update was ignored") || why.contains("updates were ignored")
            }
            _ => false,
        })
    }

    #[track_caller]
    fn assert_runs(&self) {
        let executors = self.framework.snapshot().executors;
        assert!(matches!(&executors[..], [one] if one.phase == Phase::Running), "{executors:#?}");
        let text = std::fs::read_to_string(&self.file).unwrap();
        assert!(!text.contains("\n- "), "{text}");
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        for ending in ["", ".lock"] {
            let _none = std::fs::remove_file(format!("{}{ending}", self.file.display()));
        }
    }
}

/// Goal: an agent can't end the executors of another: its updates are acknowledged, so that they aren't sent again, but
/// neither applied nor written to the framework id file, and are reported a bounded number of times. An update without
/// an agent, such as a master makes, is applied. Method: updates of another agent, of one kind after the other, many of
/// them; then one without an agent, and the end.
#[test]
fn updates_of_other_agents_are_acknowledged_only() {
    let it = Recorded::start("others");
    let states = [
        "TASK_FINISHED",
        "TASK_FAILED",
        "TASK_LOST",
        "TASK_GONE",
        "TASK_UNREACHABLE",
        "TASK_ERROR",
    ];
    for number in 0..30 {
        it.send("S-2", states[number % states.len()], "AAAB");
        it.assert_acknowledged(1 + number, "S-2");
    }
    it.assert_runs();
    let others = |notice: &Notice| matches!(notice, Notice::Updated { change, .. } if *change != Change::Running);
    assert_eq!(it.framework.notices.count(others), 0);
    assert_eq!(it.reports(), 2, "the first, and the tenth: {:#?}", it.framework.notices.all());
    let mut unnamed = update(&it.task, "", "TASK_UNREACHABLE", None);
    unnamed["update"]["status"]["agent_id"] = Value::Null;
    it.fake.send(&unnamed);
    let unreachable = |notice: &Notice| {
        matches!(notice, Notice::Updated { change: Change::Unreachable, .. }).then_some(())
    };
    it.framework.notices.wait("unreachable", unreachable);
    it.send("S-1", "TASK_FINISHED", "AAAC");
    it.assert_acknowledged(31, "S-1");
    let text = std::fs::read_to_string(&it.file).unwrap();
    assert!(text.ends_with(&format!("- {} finished\n", it.task)), "{text}");
}

/// Goal: executors of a former run keep their agents. Method: a framework id file with one; another agent, then its own
/// reports its end.
#[test]
fn adopted_executors_keep_their_agents() {
    let file = Recorded::file("adopted");
    let text = "offermill framework 1\nid F-0007\n+ old-1 S-1 host 1000 32 0 -\n";
    std::fs::write(&file, text).unwrap();
    let fake = FakeMaster::new(sound);
    let mut mesos = mesos(&[fake.port()]);
    mesos.framework_id_file = Some(file.clone());
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    let it = Recorded { fake, framework, file, task: "old-1".to_owned() };
    it.fake.wait_for("RECONCILE", 0);
    it.send("S-1", "TASK_RUNNING", "AAAA");
    it.assert_acknowledged(0, "S-1");
    it.send("S-2", "TASK_FINISHED", "AAAB");
    it.assert_acknowledged(1, "S-2");
    it.assert_runs();
    it.send("S-1", "TASK_FINISHED", "AAAC");
    it.assert_acknowledged(2, "S-1");
    assert_eq!(it.framework.snapshot().executors.len(), 0);
}

/// Goal: an update that the engine ignores isn't written to the framework id file either. Method: an end with a token
/// that is too long; then a usual update of the same executor, which is acknowledged once all writes about it are done.
#[test]
fn ignored_updates_are_not_recorded() {
    let it = Recorded::start("ignored");
    it.send("S-1", "TASK_FINISHED", &"AAAA".repeat(500));
    it.framework.notices.wait("report", |notice| match notice {
        Notice::CallFailed { why } => why.contains("its uuid is too long").then_some(()),
        _ => None,
    });
    it.send("S-1", "TASK_RUNNING", "AAAB");
    it.assert_acknowledged(1, "S-1");
    it.assert_runs();
}
