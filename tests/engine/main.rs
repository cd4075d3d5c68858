//! The engine with a cluster manager that records calls and sends the events of the test.
#![allow(clippy::unwrap_used, clippy::panic)]

mod binding;
mod capacity;
mod demand;
mod journal;
mod journal_changes;
mod panics;
mod recorder;
#[cfg(feature = "serde")]
mod serialized;
mod shutdown;
mod tasks;
#[cfg(feature = "tracing")]
mod traced;
mod unreadable;
#[cfg(feature = "local")]
mod work_queue;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::Event;
use offermill::engine::{Engine, EngineOptions, Notice};
use offermill::launch::CommandTemplate;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, TaskState};
use recorder::{Call, Notices, Recorder, encoded, offer, update};

fn kernel(limit: Option<u32>) -> Kernel {
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(100))
        .memory_overhead(Some(Mebibytes::new(28)))
        .executor_limit(limit)
        .build()
        .unwrap();
    Kernel::new(config, IdScheme::unique("test", 1).unwrap())
}

struct Fixture {
    engine: Engine,
    cluster: Arc<Recorder>,
    notices: Notices,
}

impl Fixture {
    fn new(limit: Option<u32>, change: impl Fn(&mut EngineOptions)) -> Fixture {
        Fixture::around(Recorder::default(), limit, change)
    }

    fn around(
        cluster: Recorder,
        limit: Option<u32>,
        change: impl Fn(&mut EngineOptions),
    ) -> Fixture {
        let mut options = EngineOptions::default();
        options.handlers = 1;
        change(&mut options);
        let cluster = Arc::new(cluster);
        let notices = Notices::default();
        let launcher = CommandTemplate::new(vec!["run".to_owned(), "{{EXECUTOR_ID}}".to_owned()]);
        let engine = Engine::start(
            kernel(limit),
            Arc::clone(&cluster) as _,
            Arc::new(launcher),
            options,
            Box::new(notices.clone()),
        );
        let fixture = Fixture { engine: engine.unwrap(), cluster, notices };
        fixture.register(false);
        fixture
    }

    fn register(&self, again: bool) {
        self.cluster.send(Event::Registered { framework_id: "F".to_owned(), again });
    }

    /// Sends one offer with room for `executors` and waits until they are launched.
    fn launch(&self, id: &str, executors: u32) -> Vec<String> {
        self.cluster.send(Event::Offers(vec![offer(id, "S0", executors)]));
        self.cluster.wait_for(|call| match call {
            Call::Accept { offers, executors, .. } if offers == &[id] => Some(executors.clone()),
            _ => None,
        })
    }
}

/// Goal: a manager gets no call that no event of its own asked for before its start has returned: it couldn't carry it
/// out. Method: a start that takes several times the interval at which demand is polled, and a kernel that wants
/// executors, so that the first poll makes a call.
#[test]
fn no_call_precedes_the_end_of_the_start() {
    let calls = Arc::new(AtomicUsize::new(0));
    let early = Arc::new(AtomicUsize::new(usize::MAX));
    let [counted, compared, noted] = [&calls, &calls, &early].map(Arc::clone);
    let mut cluster = Recorder::default();
    cluster.on_call = Some(Box::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    cluster.on_start = Some(Box::new(move |()| {
        std::thread::sleep(Duration::from_millis(400));
        noted.store(compared.load(Ordering::Relaxed), Ordering::Relaxed);
    }));
    let fixture = Fixture::around(cluster, Some(2), |_| {});
    fixture.cluster.wait_for(|call| matches!(call, Call::RequestExecutors(_)).then_some(()));
    assert_eq!(early.load(Ordering::Relaxed), 0);
    assert!(calls.load(Ordering::Relaxed) > 0);
}

/// Goal: an offer becomes an executor with its command, and an update is applied before it is acknowledged. Method:
/// one offer, one update; the kernel is checked when the acknowledgement comes.
#[test]
fn offers_become_launches_and_updates_are_acknowledged() {
    let fixture = Fixture::new(Some(1), |_| {});
    let executors = fixture.launch("o1", 5);
    assert_eq!(executors.len(), 1);
    let argv = fixture.cluster.wait_for(|call| match call {
        Call::Accept { argv, .. } => Some(argv.clone()),
        _ => None,
    });
    assert_eq!(argv, ["run", &executors[0]]);
    fixture.cluster.send(update(&executors[0], TaskState::Finished));
    fixture.cluster.wait_for(|call| matches!(call, Call::Acknowledge(_)).then_some(()));
    assert_eq!(fixture.engine.kernel().totals().executors, 0);
    let ended = fixture.notices.wait_for(|notice| match notice {
        Notice::Updated { change, .. } => Some(*change),
        _ => None,
    });
    assert_eq!(ended, Change::Ended(Fate::Finished));
}

/// Goal: offers beyond the bound are declined for the overflow's duration and nothing is lost. Method: a burst of
/// offers larger than the offer queue while the only handler is blocked in a call.
#[test]
fn a_burst_beyond_the_bound_is_declined() {
    let fixture = Fixture::new(Some(0), |options| {
        options.offers_queued_max = 10;
        options.overflow_refuse = Duration::from_secs(7);
        options.batch_max = 1;
    });
    let held = fixture.cluster.hold_calls();
    let offers: Vec<_> = (0..100).map(|n| offer(&format!("o{n}"), "S0", 1)).collect();
    fixture.cluster.send(Event::Offers(offers));
    drop(held);
    let mut declined = fixture.cluster.declined_when(100);
    let overflowed = declined.iter().filter(|(_, refuse)| *refuse == Duration::from_secs(7));
    assert_eq!(overflowed.count(), 90);
    declined.sort();
    declined.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(declined.len(), 100, "each once");
}

/// Goal: offers that are rescinded, or whose subscription ended, before a handler takes them are not answered.
/// Method: the handler is blocked in a call while both happen to queued offers.
#[test]
fn dead_offers_are_not_answered() {
    let fixture = Fixture::new(Some(0), |options| options.batch_max = 1);
    let held = fixture.cluster.hold_calls();
    fixture.cluster.send(Event::Offers(vec![offer("first", "S0", 1)]));
    fixture.cluster.wait_until_held();
    fixture.cluster.send(Event::Offers(vec![offer("rescinded", "S0", 1), offer("kept", "S1", 1)]));
    fixture.cluster.send(Event::Rescinded { offer_id: "rescinded".to_owned() });
    drop(held);
    let declined = fixture.cluster.declined_when(2);
    assert_eq!(declined.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["first", "kept"]);

    let held = fixture.cluster.hold_calls();
    fixture.cluster.send(Event::Offers(vec![offer("second", "S0", 1)]));
    fixture.cluster.wait_until_held();
    fixture.cluster.send(Event::Offers(vec![offer("dead", "S0", 1)]));
    fixture.cluster.send(Event::Disconnected);
    fixture.register(true);
    fixture.cluster.send(Event::Offers(vec![offer("alive", "S0", 1)]));
    drop(held);
    let declined = fixture.cluster.declined_when(4);
    let ids: Vec<_> = declined.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["first", "kept", "second", "alive"]);
}

/// Goal: encoded offers are answered as others are, in one queue with them: launched on, rescinded, declined beyond
/// the bound and dropped with their subscription. Method: the handler is blocked while both kinds are queued.
#[test]
fn encoded_offers_are_answered_like_others() {
    let fixture = Fixture::new(Some(1), |options| {
        options.batch_max = 4;
        options.offers_queued_max = 4;
        options.overflow_refuse = Duration::from_secs(7);
    });
    let held = fixture.cluster.hold_calls();
    fixture.cluster.send(encoded(&["first S0 5"]));
    fixture.cluster.wait_until_held();
    fixture.cluster.send(encoded(&["rescinded S1 1", "one S1 1"]));
    fixture.cluster.send(Event::Offers(vec![offer("two", "S2", 1)]));
    fixture.cluster.send(Event::Rescinded { offer_id: "rescinded".to_owned() });
    fixture.cluster.send(encoded(&["three S3 1", "four S4 1", "over S5 1", " S6 1"]));
    drop(held);
    fixture.cluster.wait_for(|call| match call {
        Call::Accept { offers, .. } if offers == &["first"] => Some(()),
        _ => None,
    });
    let mut declined = fixture.cluster.declined_when(5);
    declined.sort();
    let ids: Vec<_> = declined.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["four", "one", "over", "three", "two"]);
    assert_eq!(declined[2].1, Duration::from_secs(7));
    let overflow = fixture.notices.wait_for(|notice| match notice {
        Notice::Overflow { offers, .. } => Some(*offers),
        _ => None,
    });
    assert_eq!(overflow, 2, "the one without an id is noticed, too");

    let held = fixture.cluster.hold_calls();
    fixture.cluster.send(encoded(&["last S0 1"]));
    fixture.cluster.wait_until_held();
    fixture.cluster.send(encoded(&["dead S0 1"]));
    fixture.register(true);
    fixture.cluster.send(encoded(&["alive S0 1"]));
    drop(held);
    let declined = fixture.cluster.declined_when(7);
    let ids: Vec<_> = declined[5..].iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["last", "alive"]);
}

/// Goal: a launch that surely had no effect releases its resources and counts as no failure. Method: the manager
/// refuses accepts.
#[test]
fn a_refused_accept_is_rolled_back() {
    let fixture = Fixture::new(None, |_| {});
    fixture.cluster.refuse_accepts(true);
    for round in 0..3 {
        let id = format!("refused-{round}");
        fixture.cluster.send(Event::Offers(vec![offer(&id, "S0", 2)]));
        let dropped = |notice: &Notice| match notice {
            Notice::Updated { state: TaskState::Dropped, executor, .. } => Some(executor.clone()),
            _ => None,
        };
        fixture.notices.wait_for_many(2 * (round + 1), dropped);
    }
    assert_eq!(fixture.engine.kernel().totals().executors, 0);
    fixture.cluster.refuse_accepts(false);
    assert_eq!(fixture.launch("taken", 2).len(), 2, "the agent is not excluded");
    fixture.engine.kernel().check().unwrap();
}

/// Goal: the control thread never waits for itself. Method: all its calls fail, while updates that each need one come
/// faster than it works and fill its queue.
#[test]
fn failing_calls_do_not_stall_the_control_thread() {
    const UPDATES: usize = 20_000;
    let fixture = Fixture::new(None, |_| {});
    fixture.cluster.refuse_all(true);
    for number in 0..UPDATES {
        fixture.cluster.send(update(&format!("unknown-{number}"), TaskState::Running));
    }
    let applied = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
    fixture.notices.wait_for_many(UPDATES, applied);
    assert_eq!(fixture.engine.kernel().unknown_updates(), UPDATES as u64);
}

/// Goal: unknown executors are killed. Method: an update about an executor that the kernel did not place.
#[test]
fn unknown_executors_are_killed() {
    let fixture = Fixture::new(None, |_| {});
    fixture.cluster.send(update("unknown", TaskState::Running));
    let killed = fixture.cluster.wait_for(|call| match call {
        Call::Kill(executor) => Some(executor.clone()),
        _ => None,
    });
    assert_eq!(killed, "unknown");
}

/// Goal: neither a reconciliation by name nor a kill overtakes the launch of its executor, however long that takes, and
/// both follow it. Method: the call that launches two executors is blocked for several ticks while the framework is
/// registered again, their agent is reported lost, and one of them is killed.
#[test]
fn nothing_overtakes_a_launch() {
    let fixture = Fixture::new(None, |_| {});
    let held = fixture.cluster.hold_answers();
    fixture.cluster.send(Event::Offers(vec![offer("o1", "S0", 2)]));
    let placed = fixture.notices.wait_for_many(2, |notice| match notice {
        Notice::Placed(placed) => Some((placed.id, placed.executor.clone())),
        _ => None,
    });
    fixture.cluster.wait_until_held();
    fixture.register(true);
    fixture.cluster.send(Event::AgentLost { agent_id: "S0".to_owned() });
    fixture.engine.kill(vec![placed[0].0]);
    std::thread::sleep(Duration::from_millis(2_200));
    fixture.cluster.send(update("unknown", TaskState::Running));
    let is_about = |call: &Call, name: &String| match call {
        Call::Kill(executor) => executor == name,
        Call::Reconcile(executors) => executors.contains(name),
        _ => false,
    };
    fixture.cluster.wait_for(|call| is_about(call, &"unknown".to_owned()).then_some(()));
    for call in fixture.cluster.calls() {
        let early = placed.iter().any(|(_, name)| is_about(&call, name));
        assert!(!early, "{call:?} came before the launch");
    }
    drop(held);
    fixture.cluster.wait_for(|call| (*call == Call::Kill(placed[0].1.clone())).then_some(()));
    fixture.cluster.wait_for(|call| match call {
        Call::Reconcile(executors) => executors.contains(&placed[1].1).then_some(()),
        _ => None,
    });
}

/// Goal: executors whose launch has returned are reconciled and killed, although another launch of their batch hangs;
/// the others wait for their own launch. Method: the second accept of a batch is blocked while the framework is
/// registered again and all executors are killed.
#[test]
fn the_launched_do_not_wait_for_their_batch() {
    let (release, held) = channel::<()>();
    let held = Mutex::new(held);
    let accepts = AtomicUsize::new(0);
    let (begins, begun) = channel::<()>();
    let mut cluster = Recorder::default();
    cluster.on_call = Some(Box::new(move |call| {
        if call == "accept" && accepts.fetch_add(1, Ordering::Relaxed) == 1 {
            begins.send(()).unwrap();
            let _released = held.lock().unwrap().recv();
        }
    }));
    let fixture = Fixture::around(cluster, None, |_| {});
    fixture.cluster.send(Event::Offers(vec![offer("o1", "S0", 2), offer("o2", "S1", 2)]));
    let placed = fixture.notices.wait_for_many(4, |notice| match notice {
        Notice::Placed(placed) => Some((placed.id, placed.executor.clone())),
        _ => None,
    });
    // They are reported before the first launch. Once the second one is called, the first has returned.
    begun.recv().unwrap();
    let launched = fixture.cluster.launched();
    assert_eq!(launched.len(), 2);
    fixture.register(true);
    fixture.engine.kill(placed.iter().map(|(id, _)| *id).collect());
    let wait_for_kill = |executor: &String| {
        let killed = Call::Kill(executor.clone());
        fixture.cluster.wait_for(|call| (*call == killed).then_some(()));
    };
    launched.iter().for_each(wait_for_kill);
    fixture.cluster.wait_for(|call| match call {
        Call::Reconcile(executors) if *executors == launched => Some(()),
        _ => None,
    });
    let others: Vec<_> =
        placed.iter().map(|(_, name)| name).filter(|name| !launched.contains(name)).collect();
    for call in fixture.cluster.calls() {
        let early = others.iter().any(|name| match &call {
            Call::Kill(executor) => executor == *name,
            Call::Reconcile(executors) => executors.contains(name),
            _ => false,
        });
        assert!(!early, "{call:?} came before the launch");
    }
    drop(release);
    others.into_iter().for_each(wait_for_kill);
}

/// Goal: a shutdown kills each executor, waits, and reports those that did not end. Method: one of two ends.
#[test]
fn a_shutdown_reports_who_is_left() {
    let fixture = Fixture::new(None, |_| {});
    let executors = fixture.launch("o1", 2);
    fixture.cluster.end_when_killed(&executors[0]);
    let report = fixture.engine.shutdown(Duration::from_millis(500));
    assert!(!report.drained);
    let mut fates: Vec<Fate> = report.executors.iter().map(|drained| drained.fate).collect();
    fates.sort_by_key(|fate| fate.as_str());
    assert_eq!(fates, [Fate::Alive, Fate::Killed]);
    assert!(fixture.cluster.stopped());
}

/// Goal: options out of range are refused before anything starts. Method: each at zero, and more handlers than there
/// can be.
#[test]
fn impossible_options_are_named() {
    let cases = [
        (0, 1, 1, "at least 1"),
        (1, 0, 1, "at least 1"),
        (1, 1, 0, "at least 1"),
        (1025, 1, 1, "handler threads is \"1025\", but must be at most 1024"),
        (usize::MAX, 1, 1, "at most 1024"),
    ];
    for (handlers, offers_queued_max, batch_max, allowed) in cases {
        let mut options = EngineOptions::default();
        (options.handlers, options.batch_max) = (handlers, batch_max);
        options.offers_queued_max = offers_queued_max;
        let cluster = Arc::new(Recorder::default());
        let launcher = Arc::new(CommandTemplate::new(Vec::new()));
        let observer = Box::new(Notices::default());
        let started =
            Engine::start(kernel(None), Arc::clone(&cluster) as _, launcher, options, observer);
        let error = started.unwrap_err();
        assert!(error.is_setting() && error.to_string().contains(allowed), "{error}");
        assert!(!cluster.started());
    }
}
