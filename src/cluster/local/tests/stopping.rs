//! What happens to executors when the cluster stops, including those that have not been started.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::bench::{Bench, EPOCH, Folder, PATIENCE, launch};
use crate::cluster::local::{LocalCluster, LocalConfig};
use crate::engine::cluster_manager::{Accept, Call, ClusterManager, Event, Events};
use crate::offer::Offer;
use crate::status::{TaskState, UpdateReason};

/// A number of executors whose starts take a long time.
const MANY: usize = 600;

/// Goal: the ends of executors that a stop ends are reported, and no event follows the stop. Method: an executor that
/// ends on SIGTERM, one that ignores it, and one that ended by itself just before.
#[test]
fn ends_are_told_before_stop_returns() {
    let bench =
        Bench::with("told", "local-cluster[1,3,512]", |it| it.grace(Duration::from_millis(200)));
    let deaf = ["sh", "-c", "trap '' TERM; echo ready; sleep 1000; sleep 1000"];
    let obedient = launch("obedient", &["sleep", "1000"]);
    let done = launch("done", &["sh", "-c", "exit 3"]);
    let offer = bench.offer();
    bench.accept(&offer, &[launch("deaf", &deaf), obedient, done], Duration::ZERO);
    bench.update("done", TaskState::Failed);
    // The file may not be there yet: another executor was awaited.
    let output = bench.sandbox(&offer, "deaf").join("stdout");
    let is_ready = |text: String| text.contains("ready");
    super::bench::until("ready", || std::fs::read_to_string(&output).is_ok_and(is_ready));
    bench.cluster.stop();
    let by = |signal| format!("killed by signal {signal} when the cluster stopped");
    assert_eq!(bench.update("obedient", TaskState::Killed).message, by("15 (SIGTERM)"));
    assert_eq!(bench.update("deaf", TaskState::Killed).message, by("9 (SIGKILL)"));
    let ended = [TaskState::Killed, TaskState::Failed, TaskState::Finished, TaskState::Dropped];
    let update = |event: &Event| match event {
        Event::Update(update) if ended.contains(&update.state) => Some(update.executor.clone()),
        _ => None,
    };
    assert_eq!(bench.try_expect(Duration::ZERO, update), None, "each end is told once");
}

/// Goal: neither a kill nor a stop waits until all accepted executors are started, and each executor's end is reported.
/// Method: very many executors in one accept, of which the last is killed; then a stop.
#[test]
fn kills_and_stops_overtake_starts() {
    let bench = Bench::new("overtake", &format!("local-cluster[1,{MANY},65536]"));
    let ids: Vec<String> = (0..MANY).map(|number| format!("e{number}")).collect();
    let launches: Vec<_> = ids.iter().map(|id| launch(id, &["sleep", "1000"])).collect();
    bench.accept(&bench.offer(), &launches, Duration::ZERO);
    bench.kill(&ids[MANY - 1], Duration::ZERO);
    bench.reconcile(&[&ids[MANY - 2]]);
    let killed = bench.update(&ids[MANY - 1], TaskState::Killed);
    assert_eq!(killed.message, "on request, before it was started");
    bench.update(&ids[MANY - 2], TaskState::Staging);
    bench.update(&ids[0], TaskState::Running);
    bench.cluster.stop();
    bench.update(&ids[0], TaskState::Killed);
    let mut dropped = 0;
    for id in &ids[1..MANY - 1] {
        let end = bench.expect(&format!("the end of {id}"), |event| match event {
            Event::Update(it) if it.executor == *id => match it.state {
                TaskState::Killed | TaskState::Dropped => Some((it.state, it.reason)),
                _ => None,
            },
            _ => None,
        });
        if end.0 == TaskState::Dropped {
            assert_eq!(end.1, UpdateReason::InvalidOffers);
            dropped += 1;
        }
    }
    assert!(dropped > 0, "all were started");
}

/// Runs an executor on the first offer, and stops the cluster when one ends.
struct Stopper {
    cluster: OnceLock<Weak<LocalCluster>>,
    told: Sender<TaskState>,
}

impl Events for Stopper {
    fn send(&self, event: Event) {
        let Some(cluster) = self.cluster.get().and_then(Weak::upgrade) else { return };
        match event {
            Event::Offers(offers) => {
                let offer = &offers[0];
                let agent_id = &offer.agent_id;
                let offer = Offer::new(&offer.id, agent_id, &offer.hostname, &[], &[]);
                let (offers, executors) = (&[&offer][..], &[launch("one", &["sleep", "1000"])][..]);
                let refuse = Duration::from_secs(600);
                let accept = Accept { epoch: EPOCH, agent_id, offers, executors, refuse };
                let _ = cluster.call(Call::Accept(accept));
            }
            Event::Update(update) => {
                if update.state == TaskState::Killed {
                    cluster.stop();
                }
                let _ = self.told.send(update.state);
            }
            _ => {}
        }
    }
}

/// Goal: a stop that is called by an event's receiver doesn't wait for a stop that waits for that receiver. Method:
/// stop on a thread of its own; the executor's end then stops the cluster again.
#[test]
fn stops_do_not_wait_for_each_other() {
    let folder = Folder::new("stops");
    let config = LocalConfig::new("local-cluster[1,1,512]".parse().unwrap()).work_dir(&folder.0);
    let cluster = Arc::new(LocalCluster::new(config).unwrap());
    let (told, states): (_, Receiver<TaskState>) = channel();
    let stopper = Stopper { cluster: OnceLock::from(Arc::downgrade(&cluster)), told };
    cluster.start(Arc::new(stopper)).unwrap();
    while states.recv_timeout(PATIENCE).unwrap() != TaskState::Running {}
    let (stopped, is_stopped) = channel();
    std::thread::spawn(move || {
        cluster.stop();
        stopped.send(())
    });
    is_stopped.recv_timeout(PATIENCE).unwrap();
    assert_eq!(states.try_recv(), Ok(TaskState::Killed));
}
