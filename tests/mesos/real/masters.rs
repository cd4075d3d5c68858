//! Masters that die, and connections that are closed, while executors run.

use std::thread::sleep;
use std::time::Duration;

use offermill::engine::Notice;

use super::cable::Cable;
use super::cluster::{RealCluster, Setup};
use super::{SLEEP, accounts, eventually, mesos, sleepers};
use crate::framework::{Framework, small_executors};

fn subscriptions(framework: &Framework) -> usize {
    framework.notices.count(|notice| matches!(notice, Notice::Registered { .. }))
}

/// Goal: a master's crash costs no executor, and afterwards everything continues. Method: `kill -9` of the master, and
/// its restart after two seconds; the same tasks run; then the limit is raised and three more run.
#[test]
#[ignore = "needs a real Mesos"]
fn a_masters_crash_costs_no_executor() {
    let cluster = RealCluster::start(Setup::default());
    let framework = sleepers(&cluster, 9);
    let id = framework.id();
    let before = accounts::agree(&cluster, &framework, 9);
    cluster.kill_master();
    framework.notices.wait("disconnection", |notice| match notice {
        Notice::Disconnected => Some(()),
        _ => None,
    });
    sleep(Duration::from_secs(2));
    cluster.start_master();
    framework.notices.wait("second registration", |notice| match notice {
        Notice::Registered { again: true, framework_id } => {
            assert_eq!(framework_id, &id);
            Some(())
        }
        _ => None,
    });
    cluster.wait_for_agents();
    assert_eq!(accounts::agree(&cluster, &framework, 9), before);
    framework.kernel.set_executor_limit(Some(12)).unwrap();
    let after = accounts::agree(&cluster, &framework, 12);
    assert!(before.iter().all(|(task, _)| after.contains_key(task)), "{before:#?}, {after:#?}");
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: a broken connection is replaced at once, with the same framework and the same executors. Method: close all
/// connections five times, also in the middle of launches.
#[test]
#[ignore = "needs a real Mesos"]
fn a_cut_connection_costs_no_executor() {
    let cluster = RealCluster::start(Setup::default());
    let cable = Cable::to(cluster.port());
    let config = small_executors(6).build().unwrap();
    let framework = Framework::start(mesos(cable.port()), config, SLEEP).unwrap();
    let mut before = accounts::agree(&cluster, &framework, 6);
    for round in 1..=5 {
        let limit = 6 + 2 * round;
        framework.kernel.set_executor_limit(Some(limit)).unwrap();
        sleep(Duration::from_millis(u64::from(round) * 250));
        cable.cut();
        eventually(Duration::from_secs(20), "another subscription", || {
            let (now, due) = (subscriptions(&framework), 1 + round as usize);
            if now >= due { Ok(()) } else { Err(format!("{now} of {due}")) }
        });
        let after = accounts::agree(&cluster, &framework, limit);
        let lost: Vec<_> = before.keys().filter(|task| !after.contains_key(*task)).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        before = after;
    }
    assert_eq!(cluster.master_state().frameworks(), [framework.id()]);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}
