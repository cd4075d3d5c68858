//! Panics of foreign code, in each of the engine's threads: no launch is lost, each offer is answered, and the panic is
//! reported.
#![allow(clippy::panic)]

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use offermill::TaskState;
use offermill::engine::cluster_manager::Event;
use offermill::engine::journal::{Journal, JournalEntry};
use offermill::engine::{Engine, EngineOptions, Notice, Shutdown};
use offermill::launch::{Command, CommandTemplate, LaunchContext, Launcher};

use crate::kernel;
use crate::recorder::{Call, FnObserver, Notices, Recorder, encoded, offer, update};
use crate::shutdown::{Counter, start};

/// Panics at its second command.
#[derive(Default)]
struct Faulty(AtomicUsize);

impl Launcher for Faulty {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        assert_ne!(self.0.fetch_add(1, Ordering::Relaxed), 1, "no second command");
        CommandTemplate::new(vec!["run".to_owned()]).command(context)
    }
}

fn options() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.handlers = 1;
    options.shutdown_slack = Duration::from_secs(2);
    options
}

/// Goal: a launcher that panics costs its batch: launched executors stay, those committed and not launched are taken
/// back, each offer is answered once, and the handler continues. Method: three offers of which the second's command
/// panics, then another one.
#[test]
fn a_launcher_that_panics_costs_its_batch() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let manager = Arc::clone(&cluster) as _;
    let launcher = Arc::new(Faulty::default());
    let observer = Box::new(notices.clone());
    let engine = Engine::start(kernel(Some(3)), manager, launcher, options(), observer).unwrap();
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    let offers = ["o1", "o2", "o3", "o4"].map(|id| offer(id, &format!("agent-of-{id}"), 1));
    cluster.send(Event::Offers(offers.to_vec()));
    let taken_back = |notice: &Notice| match notice {
        Notice::Updated { state: TaskState::Dropped, executor, .. } => Some(executor.clone()),
        _ => None,
    };
    let taken_back = notices.wait_for_many(2, taken_back);
    let placed = notices.wait_for_many(3, |notice| match notice {
        Notice::Placed(placed) => Some(placed.executor.clone()),
        _ => None,
    });
    assert_eq!(placed[1..], taken_back, "each was placed before it was taken back");
    let declined = cluster.declined_when(3);
    let mut answered: Vec<_> = declined.into_iter().map(|(id, _)| id).collect();
    answered.extend(cluster.accepted());
    answered.sort();
    assert_eq!(answered, ["o1", "o2", "o3", "o4"], "each once");
    let why = notices.wait_for(|notice| match notice {
        Notice::HandlerPanicked { why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("no second command"), "{why}");
    assert_eq!(engine.kernel().totals().executors, 1);
    engine.kernel().check().unwrap();
    cluster.send(Event::Offers(vec![offer("o5", "S5", 5)]));
    cluster.wait_for(|call| match call {
        Call::Accept { offers, executors, .. } if offers == &["o5"] => Some(executors.clone()),
        _ => None,
    });
    assert_eq!(engine.broken(), None);
    assert_eq!(engine.shutdown(Duration::from_millis(50)).unfinished, [""; 0]);
}

/// Goal: a launch in which the cluster manager panicked has an unknown outcome: the executor stays, and the later ones
/// of its batch are taken back. Method: a call that panics once, with offers owned and encoded.
#[test]
fn a_call_that_panics_is_not_made_again() {
    for is_encoded in [false, true] {
        let panicked = AtomicBool::new(false);
        let mut cluster = Recorder::default();
        cluster.on_call = Some(Box::new(move |call| {
            let first = call == "accept" && !panicked.swap(true, Ordering::Relaxed);
            assert!(!first, "no accept");
        }));
        let cluster = Arc::new(cluster);
        let notices = Notices::default();
        let engine = start(&cluster, Box::new(notices.clone()), |_| {});
        cluster.send(if is_encoded {
            encoded(&["o1 S1 4", "o2 S2 4"])
        } else {
            Event::Offers(vec![offer("o1", "S1", 4), offer("o2", "S2", 4)])
        });
        let taken_back = |notice: &Notice| {
            matches!(notice, Notice::Updated { state: TaskState::Dropped, .. }).then_some(())
        };
        notices.wait_for_many(4, taken_back);
        assert_eq!(cluster.declined_when(1).len(), 1);
        assert_eq!(engine.kernel().totals().executors, 4, "in doubt");
        notices.wait_for(|notice| matches!(notice, Notice::HandlerPanicked { .. }).then_some(()));
        engine.kernel().check().unwrap();
    }
}

/// Goal: if a reader panics, the offers of its batch are declined, and the handler continues with a new reader. Method:
/// an offer whose number of executors isn't a number.
#[test]
fn a_reader_that_panics_is_replaced() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let engine = start(&cluster, Box::new(notices.clone()), |_| {});
    cluster.send(encoded(&["o1 S1 1", "o2 S2 many"]));
    let declined: Vec<_> = cluster.declined_when(2).into_iter().map(|(id, _)| id).collect();
    assert_eq!(declined, ["o1", "o2"]);
    notices.wait_for(|notice| matches!(notice, Notice::HandlerPanicked { .. }).then_some(()));
    cluster.send(encoded(&["o3 S3 1"]));
    cluster.wait_for(|call| matches!(call, Call::Accept { .. }).then_some(()));
    assert_eq!(engine.kernel().totals().executors, 1);
}

/// Goal: after a panic of the control thread no executor is launched, offers are declined, no thread waits for it, and
/// the panic is reported. Method: the observer or a call panics; then more updates come than the engine's queue holds,
/// and offers.
#[test]
fn a_broken_engine_says_so_and_launches_nothing() {
    for place in ["observer", "acknowledge"] {
        let mut cluster = Recorder::default();
        cluster.on_call = Some(Box::new(move |call| assert_ne!(call, place, "no such call")));
        let cluster = Arc::new(cluster);
        let broken = Counter::default();
        let counter = broken.clone();
        let observer = FnObserver(move |notice| match notice {
            Notice::Updated { .. } if place == "observer" => panic!("no such notice"),
            Notice::Broken { why } => {
                assert!(why.contains("no such"), "{why}");
                counter.add();
            }
            _ => {}
        });
        let engine = start(&cluster, Box::new(observer), |options| {
            options.shutdown_slack = Duration::from_secs(2);
        });
        cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
        let launched = cluster.wait_for(|call| match call {
            Call::Accept { executors, .. } => Some(executors.clone()),
            _ => None,
        });
        cluster.send(update(&launched[0], TaskState::Running));
        broken.wait_for(1);
        assert!(engine.broken().unwrap().contains("no such"));
        for _ in 0..20_000 {
            cluster.send(update(&launched[0], TaskState::Running));
        }
        cluster.send(Event::Offers(vec![offer("o2", "S1", 1)]));
        let stopping = engine.kernel().config().refuse_durations().stopping;
        assert_eq!(cluster.declined_when(1), [("o2".to_owned(), stopping)]);
        assert_eq!(cluster.launched(), launched);
        let report = engine.shutdown(Duration::from_secs(3600));
        assert!(report.broken.is_some() && report.unfinished.is_empty() && !report.drained);
        assert!(cluster.stopped());
    }
}

struct Broken;

impl Journal for Broken {
    fn record(&mut self, _entry: &JournalEntry) -> std::io::Result<()> {
        panic!("no such entry");
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An engine with a journal, registered with its cluster.
fn registered_with_journal(journal: impl Journal + 'static) -> (Arc<Recorder>, Notices, Engine) {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let engine = Engine::start_with_journal(
        kernel(Some(1)),
        Arc::clone(&cluster) as _,
        Arc::new(CommandTemplate::new(vec!["run".to_owned()])),
        options(),
        Box::new(notices.clone()),
        Box::new(journal),
    );
    let engine = engine.unwrap();
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    (cluster, notices, engine)
}

/// Goal: a journal that panics is given up at once, and the engine continues. Method: it panics at its first entry; the
/// notice comes although the queue to the journal has room for many more, and the shutdown doesn't wait for it.
#[test]
fn a_journal_that_panics_is_given_up() {
    let (cluster, notices, engine) = registered_with_journal(Broken);
    let why = notices.wait_for(|notice| match notice {
        Notice::JournalEnded { why } => Some(why.clone()),
        _ => None,
    });
    assert_eq!(why, "it panicked: no such entry");
    cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
    cluster.wait_for(|call| matches!(call, Call::Accept { .. }).then_some(()));
    assert!(engine.broken().is_none());
}

/// A panic's payload that panics when it is dropped, with a payload of the same kind.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic_any(Grenade);
    }
}

/// Shuts the engine down. Catches its panics, whose payloads would end the test's harness.
#[track_caller]
fn shut_down(engine: Engine, timeout: Duration) -> Shutdown {
    let ended = catch_unwind(AssertUnwindSafe(|| engine.shutdown(timeout)));
    ended.map_err(std::mem::forget).unwrap()
}

struct Thrower;

impl Launcher for Thrower {
    fn command(&self, _context: &LaunchContext<'_>) -> Command {
        panic_any(Grenade);
    }
}

impl Journal for Thrower {
    fn record(&mut self, _entry: &JournalEntry) -> std::io::Result<()> {
        panic_any(Grenade);
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Goal: a handler continues, and the engine shuts down, although a panic's payload panics when it is dropped. Method:
/// a launcher that throws such a payload for each of two batches.
#[test]
fn a_launcher_may_throw_what_panics() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let manager = Arc::clone(&cluster) as _;
    let launcher = Arc::new(Thrower);
    let observer = Box::new(notices.clone());
    let engine = Engine::start(kernel(Some(1)), manager, launcher, options(), observer).unwrap();
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    for batch in 1..=2 {
        cluster.send(Event::Offers(vec![offer(&format!("o{batch}"), "S0", 1)]));
        assert_eq!(cluster.declined_when(batch).len(), batch);
        let panicked = |notice: &Notice| match notice {
            Notice::HandlerPanicked { why } => Some(why.clone()),
            _ => None,
        };
        assert_eq!(notices.wait_for_many(batch, panicked).len(), batch);
        // Only now is there room for an executor again.
        let lost = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
        assert_eq!(notices.wait_for_many(batch, lost).len(), batch);
    }
    let report = shut_down(engine, Duration::from_secs(30));
    assert!(report.drained && report.unfinished.is_empty() && cluster.stopped());
}

/// Goal: the same of the cluster manager. Method: one that throws such a payload in its first accept, in an
/// acknowledgement, and in its stop; the engine continues, or is broken, and shuts down in order.
#[test]
fn a_manager_may_throw_what_panics() {
    for place in ["accept", "acknowledge", "stop"] {
        let thrown = AtomicBool::new(false);
        let throw = move |here: &str| {
            if here == place && !thrown.swap(true, Ordering::Relaxed) {
                panic_any(Grenade);
            }
        };
        let mut cluster = Recorder::default();
        if place == "stop" {
            cluster.on_stop = Some(Box::new(move |()| throw("stop")));
        } else {
            cluster.on_call = Some(Box::new(throw));
        }
        let cluster = Arc::new(cluster);
        let notices = Notices::default();
        let engine = start(&cluster, Box::new(notices.clone()), |options| {
            options.shutdown_slack = Duration::from_secs(20);
        });
        cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
        let placed = notices.wait_for(|notice| match notice {
            Notice::Placed(placed) => Some(placed.executor.clone()),
            _ => None,
        });
        cluster.send(update(&placed, TaskState::Running));
        notices.wait_for(|notice| match place {
            "accept" => matches!(notice, Notice::HandlerPanicked { .. }).then_some(()),
            "acknowledge" => matches!(notice, Notice::Broken { .. }).then_some(()),
            _ => matches!(notice, Notice::Updated { .. }).then_some(()),
        });
        assert_eq!(engine.broken().is_some(), place == "acknowledge");
        let report = shut_down(engine, Duration::from_millis(50));
        assert_eq!(report.unfinished, [""; 0], "{place}");
        assert!(cluster.stopped() || place == "stop", "{place}");
    }
}

/// Goal: the same of an observer. Method: one that throws such a payload at an update, and at the notice that the
/// engine is broken.
#[test]
fn an_observer_may_throw_what_panics() {
    let cluster = Arc::new(Recorder::default());
    let broken = Counter::default();
    let counter = broken.clone();
    let observer = FnObserver(move |notice| match notice {
        Notice::Updated { .. } => panic_any(Grenade),
        Notice::Broken { .. } => {
            counter.add();
            panic_any(Grenade);
        }
        _ => {}
    });
    let engine = start(&cluster, Box::new(observer), |_| {});
    cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
    let launched = cluster.wait_for(|call| match call {
        Call::Accept { executors, .. } => Some(executors.clone()),
        _ => None,
    });
    cluster.send(update(&launched[0], TaskState::Running));
    broken.wait_for(1);
    let report = shut_down(engine, Duration::from_secs(3600));
    assert!(report.broken.is_some() && report.unfinished.is_empty() && cluster.stopped());
}

/// Goal: the same of a journal. Method: one that throws such a payload at its first entry.
#[test]
fn a_journal_may_throw_what_panics() {
    let (cluster, notices, engine) = registered_with_journal(Thrower);
    notices.wait_for(|notice| matches!(notice, Notice::JournalEnded { .. }).then_some(()));
    let report = shut_down(engine, Duration::from_millis(50));
    assert!(report.unfinished.is_empty() && cluster.stopped());
}
