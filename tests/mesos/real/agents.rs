//! Agents that die, come back, and don't answer while executors run on them.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use offermill::engine::Notice;
use offermill::{Change, Phase};

use super::cluster::{RealCluster, Setup};
use super::state::Tasks;
use super::{SLEEP, accounts, eventually, mesos, sleepers};
use crate::framework::{Framework, small_executors};

/// The number of updates about executors with any other state than running.
fn troubles(framework: &Framework) -> usize {
    let trouble = |notice: &Notice| match notice {
        Notice::Updated { change, .. } => !matches!(change, Change::Nothing | Change::Running),
        Notice::AgentLost { .. } => true,
        _ => false,
    };
    framework.notices.count(trouble)
}

fn agents_of(tasks: &Tasks) -> BTreeSet<&str> {
    tasks.values().map(|task| task.agent_id.as_str()).collect()
}

/// Goal: executors and the framework don't notice an agent's crash and quick restart. Method: `kill -9` of each agent
/// in turn with the usual, long timeouts, each restarted half a second later; the tasks are the same, and no update
/// reports anything but running.
#[test]
#[ignore = "needs a real Mesos"]
fn a_quick_restart_of_an_agent_is_invisible() {
    let cluster = RealCluster::start(Setup { fast: false, ..Setup::default() });
    let framework = sleepers(&cluster, 9);
    let before = accounts::agree(&cluster, &framework, 9);
    for i in 0..cluster.agents() {
        cluster.kill_agent(i);
        sleep(Duration::from_millis(500));
        cluster.start_agent(i);
        cluster.wait_for_agents();
        // Executors register with their agent again within 2 s.
        sleep(Duration::from_secs(3));
    }
    assert_eq!(accounts::agree(&cluster, &framework, 9), before);
    assert_eq!(troubles(&framework), 0, "{:#?}", framework.notices.all());
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: without checkpoints executors end with their agent, and are replaced. Method: `kill -9` of an agent and its
/// quick restart; nine executors run at the end, of which the six on the other agents are the same.
#[test]
#[ignore = "needs a real Mesos"]
fn without_checkpoints_executors_end_with_their_agent() {
    let cluster = RealCluster::start(Setup::default());
    let mut settings = mesos(cluster.port());
    settings.checkpoint = false;
    let config = small_executors(9).build().unwrap();
    let framework = Framework::start(settings, config, SLEEP).unwrap();
    let before = accounts::agree(&cluster, &framework, 9);
    let lost = cluster.master_state().agent_id("agent-1").unwrap().to_owned();
    cluster.kill_agent(1);
    sleep(Duration::from_millis(500));
    cluster.start_agent(1);
    cluster.wait_for_agents();
    let ended = |notice: &Notice| match notice {
        Notice::Updated { change: Change::Ended(_) | Change::Unreachable, .. } => Some(()),
        _ => None,
    };
    framework.notices.wait("end of an executor", ended);
    let after = accounts::agree(&cluster, &framework, 9);
    for (task, it) in &before {
        assert_eq!(after.contains_key(task), it.agent_id != lost, "{task}: {before:#?} {after:#?}");
    }
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: executors of an agent that stays away are replaced elsewhere, and end when the agent comes back, because the
/// executor limit is reached. Method: `kill -9`, wait for nine executors on the other two agents, restart the agent;
/// kernel and master agree, and the replacements are the ones that stayed.
#[test]
#[ignore = "needs a real Mesos"]
fn executors_of_an_agent_that_stays_away_are_replaced() {
    let cluster = RealCluster::start(Setup::default());
    let framework = sleepers(&cluster, 9);
    let id = framework.id();
    let before = accounts::agree(&cluster, &framework, 9);
    let all = agents_of(&before);
    assert_eq!(all.len(), 3, "{before:#?}");
    cluster.kill_agent(1);
    let replaced = eventually(Duration::from_secs(60), "nine executors on two agents", || {
        let tasks = cluster.master_state().tasks(&id);
        let running = tasks.values().filter(|task| task.state == "TASK_RUNNING").count();
        if running == 9 && agents_of(&tasks).len() == 2 {
            Ok(tasks)
        } else {
            Err(format!("{tasks:#?}"))
        }
    });
    let given_up = framework.snapshot().executors;
    let given_up = given_up.iter().filter(|one| one.phase == Phase::GivenUp).count();
    assert_eq!(given_up, 3, "the executors on the lost agent");
    cluster.start_agent(1);
    cluster.wait_for_agents();
    // The executors that came back are killed; only then there are nine again.
    eventually(Duration::from_secs(60), "an end of those that returned", || {
        match cluster.master_state().completed_tasks(&id).map(|ended| ended.len()) {
            None | Some(3) => Ok(()),
            Some(ended) => Err(format!("{ended} of 3 have ended")),
        }
    });
    assert_eq!(accounts::agree(&cluster, &framework, 9), replaced);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: after an agent didn't answer for longer than its timeout and comes back, its executors are counted again; none
/// was replaced if executors are not given up that soon. Method: SIGSTOP until the kernel regards its executors as
/// unreachable, then SIGCONT; the same tasks run.
#[test]
#[ignore = "needs a real Mesos"]
fn executors_of_a_silent_agent_return_with_it() {
    let cluster = RealCluster::start(Setup::default());
    let rule = offermill::config::UnreachableRule {
        release_after: None,
        forget_after: Duration::from_secs(600),
    };
    let config = small_executors(9).unreachable(rule).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, SLEEP).unwrap();
    let before = accounts::agree(&cluster, &framework, 9);
    cluster.pause_agent(2);
    eventually(Duration::from_secs(30), "three executors out of sight", || {
        let executors = framework.snapshot().executors;
        let unseen = executors.iter().filter(|one| one.phase == Phase::Unreachable).count();
        if unseen == 3 { Ok(()) } else { Err(format!("{unseen} are: {executors:#?}")) }
    });
    assert_eq!(framework.kernel.totals().executors, 9, "they are counted while out of sight");
    sleep(Duration::from_secs(5));
    cluster.resume_agent(2);
    assert_eq!(accounts::agree(&cluster, &framework, 9), before);
    let ended =
        |notice: &Notice| matches!(notice, Notice::Updated { change: Change::Ended(_), .. });
    assert_eq!(framework.notices.count(ended), 0, "{:#?}", framework.notices.all());
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: the tools on which these tests are based work. Method: the master's own view after each.
#[test]
#[ignore = "needs a real Mesos"]
fn agents_can_be_killed_silenced_and_brought_back() {
    let cluster = RealCluster::start(Setup { agents: 5, ..Setup::default() });
    let active = |agents: usize| {
        eventually(Duration::from_secs(30), "active agents", || {
            let active = cluster.master_state().active_agents();
            if active == agents { Ok(()) } else { Err(format!("{active} of {agents}")) }
        });
    };
    active(5);
    cluster.kill_agent(0);
    cluster.pause_agent(1);
    active(3);
    cluster.start_agent(0);
    cluster.resume_agent(1);
    active(5);
    cluster.kill_master();
    cluster.start_master();
    active(5);
    cluster.pause_master();
    cluster.resume_master();
    active(5);
}
