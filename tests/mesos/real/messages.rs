//! Messages of a framework to executors of its own, and of these to the framework.

use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use offermill::engine::Notice;
use serde_json::Value;

use super::cluster::{RealCluster, Setup};
use super::mesos;
use super::work_queue::{HELD, Queue, go, start};

/// The time for an answer. Messages are delivered at most once, so they are repeated.
const PATIENCE: Duration = Duration::from_secs(60);
const REPEATED_AFTER: Duration = Duration::from_secs(2);

/// Follows notices until `is_there` finds in them, and in what was told, what is waited for.
#[track_caller]
fn wait<T>(
    queue: &mut Queue,
    what: &str,
    mut is_there: impl FnMut(&Queue, Option<&Notice>) -> Option<T>,
) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let notice = match queue.notices.recv_timeout(Duration::from_millis(100)) {
            Err(RecvTimeoutError::Timeout) => None,
            notice => Some(notice.unwrap()),
        };
        if let Some(notice) = &notice {
            queue.told.follow(notice.clone());
        }
        if let Some(found) = is_there(queue, notice.as_ref()) {
            return found;
        }
        assert!(Instant::now() < give_up, "{what}: {:#?}", queue.told);
    }
}

/// Sends each host a message, and waits for its answer: a host tells which tasks it runs, with their processes. Returns
/// the tasks.
#[track_caller]
fn ask_hosts(queue: &mut Queue, question: &[u8]) -> BTreeSet<String> {
    let mut tasks = BTreeSet::new();
    for (host, agent) in queue.told.hosts.clone() {
        let mut sent_at = None::<Instant>;
        let answer = wait(queue, &host, |queue, notice| {
            if sent_at.is_none_or(|at| at.elapsed() > REPEATED_AFTER) {
                // Without a subscription it isn't sent, and a message that is sent may be lost.
                let sent = queue.cluster.send_message(&host, &agent, question.to_vec());
                sent_at = sent.is_ok().then(Instant::now);
            }
            match notice? {
                Notice::Message { executor, agent_id, data } if *executor == host => {
                    assert_eq!(*agent_id, agent);
                    Some(serde_json::from_slice::<Value>(data).unwrap())
                }
                _ => None,
            }
        });
        for task in answer["tasks"].as_array().unwrap() {
            let at = fs::read_link(format!("/proc/{}/cwd", task["pid"])).unwrap();
            assert_eq!(at.to_str(), task["folder"].as_str());
            let id = task["task"].as_str().unwrap().to_owned();
            assert_eq!(queue.told.attempts[&id].1, agent);
            tasks.insert(id);
        }
    }
    tasks
}

/// Goal: messages reach executors that take them, and theirs reach the observer, also after the agent and the master
/// were restarted; one to an executor or an agent that isn't there changes nothing. Method: hosts, which answer each
/// message by the list of the tasks that they run: an empty one, one that is no text, one of 256 KiB; an agent and the
/// master are killed, and return.
#[test]
#[ignore = "needs a real Mesos"]
fn messages_pass_both_ways() {
    let cluster = RealCluster::start(Setup { agents: 2, ..Setup::default() });
    let log = cluster.folder().join("log");
    let mut queue = start(mesos(cluster.port()), HELD, &log);
    let all = HELD as usize;
    wait(&mut queue, "tasks run", |queue, _| (queue.told.held.len() == all).then_some(()));
    let held = queue.told.held.clone();
    assert_eq!(ask_hosts(&mut queue, b""), held);
    assert_eq!(ask_hosts(&mut queue, b"\xff\x00?"), held);

    let (host, agent) = queue.told.hosts.clone().pop_first().unwrap();
    for (executor, agent) in
        [("nobody", &*agent), (&*host, "nowhere"), (&*held.clone().pop_first().unwrap(), &*agent)]
    {
        queue.cluster.send_message(executor, agent, b"?".to_vec()).unwrap();
    }
    assert_eq!(ask_hosts(&mut queue, &[b'?'; 256 << 10]), held);

    cluster.kill_agent(0);
    cluster.start_agent(0);
    cluster.wait_for_agents();
    assert_eq!(ask_hosts(&mut queue, b"agent"), held);
    cluster.kill_master();
    cluster.start_master();
    cluster.wait_for_agents();
    assert_eq!(ask_hosts(&mut queue, b"master"), held);

    fs::write(go(&log), "").unwrap();
    for _ in 0..HELD {
        let end = queue.ends.recv_timeout(PATIENCE).unwrap();
        assert_eq!(end.fate, offermill::Fate::Finished, "{end:?}");
        assert!(held.contains(&end.executor), "no task has begun anew");
    }
    assert!(queue.engine.shutdown(Duration::from_secs(30)).drained);
    cluster.assert_deserted();
}
