//! KILLs that are accepted and have no effect. A master answers 202 before it looks for the task, and drops the call if
//! the task's agent is disconnected or has not registered with it yet (`Master::kill`).

use std::thread::spawn;
use std::time::{Duration, Instant};

use super::master::FakeMaster;
use super::script::{sound, update};
use super::streams::Running;
use crate::framework::Framework;

/// Begins a shutdown; `lose` is called when the first KILL has arrived, the executor ends when the second has. Returns
/// the time between the two. The shutdown must end soon after that.
#[track_caller]
fn time_to_second_kill(timeout: Duration, lose: impl FnOnce(&FakeMaster)) -> Duration {
    let running = Running::start(sound);
    let Running { fake, framework, task } = running;
    let Framework { engine, cluster, kernel, notices } = framework;
    let shutdown = spawn(move || engine.shutdown(timeout));
    fake.wait_for("KILL", 0);
    let lost_at = Instant::now();
    lose(&fake);
    let second = fake.wait_for("KILL", 1);
    let passed = lost_at.elapsed();
    assert_eq!(second.body["kill"]["task_id"]["value"], task.as_str());
    fake.send(&update(&task, "S-1", "TASK_KILLED", Some("AAAC")));
    let ended = shutdown.join().unwrap();
    assert!(ended.drained, "{ended:?}, {:#?}", notices.all());
    assert!(lost_at.elapsed() < passed + Duration::from_secs(5), "{:?}", lost_at.elapsed());
    assert_eq!(cluster.why_left(), None);
    kernel.check().unwrap();
    passed
}

/// Goal: a shutdown repeats a kill that was lost while it still waits, and ends soon then. Method: a master that drops
/// the first KILL, and timeouts of which the shorter is shorter than the interval of other kills.
#[test]
fn a_shutdown_repeats_them() {
    for (timeout, at_most) in [(9, 4), (30, 9)] {
        let passed = time_to_second_kill(Duration::from_secs(timeout), |_| {});
        assert!(passed < Duration::from_secs(at_most), "{passed:?} of {timeout} s");
    }
}

/// Goal: a shutdown makes its kills again as soon as there is a subscription. Method: a master that drops the first
/// KILL and ends the stream, and a timeout of which a sixth is far longer than the assertion allows.
#[test]
fn the_next_subscription_repeats_them() {
    let passed = time_to_second_kill(Duration::from_secs(120), FakeMaster::cut_stream);
    assert!(passed < Duration::from_secs(5), "{passed:?}");
}

/// Goal: a shutdown makes the kill of an executor again when its agent is back. Method: the executor is unreachable
/// when the KILL is lost, and returns at once.
#[test]
fn the_return_of_an_agent_repeats_them() {
    let passed = time_to_second_kill(Duration::from_secs(120), |fake| {
        let kill = fake.wait_for("KILL", 0);
        let task = kill.body["kill"]["task_id"]["value"].as_str().unwrap().to_owned();
        fake.send(&update(&task, "S-1", "TASK_UNREACHABLE", None));
        std::thread::sleep(Duration::from_millis(300));
        fake.send(&update(&task, "S-1", "TASK_RUNNING", None));
    });
    assert!(passed < Duration::from_secs(3), "{passed:?}");
}
