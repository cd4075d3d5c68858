//! The engine's shutdown: kills before updates, no call after the stop, observers that kill and shut down, and foreign
//! code that hangs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use offermill::engine::cluster_manager::Event;
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::CommandTemplate;
use offermill::{TaskState, Timestamp};

use crate::kernel;
use crate::recorder::{Call, FnObserver, Recorder, offer, update};

/// Far longer than any step here takes: a wait of this length has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn start(
    cluster: &Arc<Recorder>,
    observer: Box<dyn Observer>,
    change: impl Fn(&mut EngineOptions),
) -> Engine {
    let mut options = EngineOptions::default();
    options.handlers = 1;
    change(&mut options);
    let launcher = CommandTemplate::new(vec!["run".to_owned()]);
    let manager = Arc::clone(cluster) as _;
    let engine = Engine::start(kernel(Some(8)), manager, Arc::new(launcher), options, observer);
    let engine = engine.unwrap();
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    engine
}

/// A counter whose value can be waited for.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<(Mutex<usize>, Condvar)>);

impl Counter {
    pub(crate) fn add(&self) {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
    }

    pub(crate) fn wait_for(&self, number: usize) {
        let counted = self.0.0.lock().unwrap();
        let waited = self.0.1.wait_timeout_while(counted, PATIENCE, |counted| *counted < number);
        let (counted, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{} of {number}", *counted);
    }
}

/// Goal: a shutdown's kills don't wait for updates that came before, and no call is made after the manager's stop.
/// Method: an observer that takes a millisecond for each of 2000 updates; the cluster records after how many of them it
/// got the kill, and how many calls came after its stop.
#[test]
fn kills_come_before_updates_and_no_call_after_the_stop() {
    const UPDATES: usize = 2000;
    let seen = Arc::new(AtomicUsize::new(0));
    let killed_after = Arc::new(AtomicUsize::new(usize::MAX));
    let counted = Arc::clone(&seen);
    let killed = Arc::clone(&killed_after);
    let on_kill = move |executor: String| {
        if executor != "unknown" {
            killed.fetch_min(counted.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    };
    let mut cluster = Recorder::default();
    cluster.on_kill = Some(Box::new(on_kill));
    let cluster = Arc::new(cluster);
    let noticed = Arc::clone(&seen);
    let observer = FnObserver(move |notice| {
        if let Notice::Updated { .. } = notice {
            noticed.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let engine = start(&cluster, Box::new(observer), |_| {});
    cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
    cluster.wait_for(|call| matches!(call, Call::Accept { .. }).then_some(()));
    for _ in 0..UPDATES {
        cluster.send(update("unknown", TaskState::Lost));
    }
    assert!(!engine.shutdown(Duration::from_millis(500)).drained);
    assert_eq!(cluster.late_calls(), 0, "calls after the stop");
    assert_eq!(seen.load(Ordering::Relaxed), UPDATES, "the observer is told of all updates");
    let killed_after = killed_after.load(Ordering::Relaxed);
    assert!(killed_after < UPDATES / 2, "killed after {killed_after} updates");
}

/// Goal: an observer may kill, however many updates are queued. Method: one kill for each of 60 000 updates, which are
/// more than the engine's queue holds.
#[test]
fn an_observer_may_kill() {
    const UPDATES: usize = 60_000;
    let cluster = Arc::new(Recorder::default());
    let (itself, updates) = (Arc::new(OnceLock::<Weak<Engine>>::new()), Counter::default());
    let engine = Arc::clone(&itself);
    let counter = updates.clone();
    let observer = FnObserver(move |notice| {
        if let Notice::Updated { .. } = notice {
            if let Some(engine) = engine.get().and_then(Weak::upgrade) {
                engine.kill(Vec::new());
            }
            counter.add();
        }
    });
    let engine = Arc::new(start(&cluster, Box::new(observer), |_| {}));
    itself.set(Arc::downgrade(&engine)).unwrap();
    let sender = Arc::clone(&cluster);
    std::thread::spawn(move || {
        (0..UPDATES).for_each(|_| sender.send(update("unknown", TaskState::Lost)));
    });
    updates.wait_for(UPDATES);
}

/// Goal: an observer may end the engine: the manager is stopped, and no thread waits for itself. Method: it drops the
/// engine, or shuts it down, while events fill the engine's queue.
#[test]
fn an_observer_may_end_the_engine() {
    for shuts_down in [false, true] {
        let cluster = Arc::new(Recorder::default());
        let door = Arc::new(Mutex::new(None::<Engine>));
        let ended = Counter::default();
        let inside = Arc::clone(&door);
        let counter = ended.clone();
        let observer = FnObserver(move |notice| {
            if let Notice::AgentLost { .. } = notice {
                let engine = inside.lock().unwrap().take().unwrap();
                if shuts_down {
                    engine.shutdown(Duration::from_secs(1));
                } else {
                    drop(engine);
                }
                counter.add();
            }
        });
        let engine = start(&cluster, Box::new(observer), |_| {});
        *door.lock().unwrap() = Some(engine);
        cluster.send(Event::AgentLost { agent_id: "S0".to_owned() });
        ended.wait_for(1);
        cluster.wait_until_stopped();
        assert_eq!(cluster.late_calls(), 0);
    }
}

/// Goal: a shutdown returns although foreign code hangs, names the thread, and makes no call after the stop.
/// Method: a launch, the manager's stop, a call of the control thread's or the observer hangs until the shutdown has
/// returned; the slack is short, and the assertion of time is not.
#[test]
fn a_shutdown_returns_whatever_hangs() {
    for (place, thread) in [
        ("accept", "offermill-handler-0"),
        ("stop", "offermill-stop"),
        ("kill", "offermill-control"),
        ("observer", "offermill-control"),
    ] {
        let (release, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let door = Arc::clone(&held);
        // Returns when the test drops its end.
        let hang = move || {
            let _released = door.lock().unwrap().recv();
        };
        let in_call = hang.clone();
        let in_stop = hang.clone();
        let in_observer = hang;
        let is_hung = Counter::default();
        let call_hangs = is_hung.clone();
        let observer_hangs = is_hung.clone();
        let mut cluster = Recorder::default();
        cluster.on_call = Some(Box::new(move |call| {
            if call == place {
                call_hangs.add();
                in_call();
            }
        }));
        cluster.on_stop = Some(Box::new(move |()| {
            if place == "stop" {
                in_stop();
            }
        }));
        let cluster = Arc::new(cluster);
        let observer = FnObserver(move |notice| {
            if let (Notice::AgentLost { .. }, "observer") = (notice, place) {
                observer_hangs.add();
                in_observer();
            }
        });
        let slack = Duration::from_secs(2);
        let engine = start(&cluster, Box::new(observer), |options| options.shutdown_slack = slack);
        match place {
            "observer" => cluster.send(Event::AgentLost { agent_id: "S0".to_owned() }),
            _ => cluster.send(Event::Offers(vec![offer("o1", "S0", 1)])),
        }
        match place {
            "observer" | "accept" => is_hung.wait_for(1),
            _ => cluster.wait_for(|call| matches!(call, Call::Accept { .. }).then_some(())),
        }
        let started = Instant::now();
        let report = engine.shutdown(Duration::from_millis(100));
        assert!(started.elapsed() < PATIENCE, "{place}");
        assert_eq!(report.unfinished, [thread], "{place}");
        drop(release);
    }
}

/// Reports its drop, which is when the control thread has ended.
struct EndReporter<F> {
    notice: F,
    ended: Counter,
}

impl<F: FnMut(Notice) + Send> Observer for EndReporter<F> {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        (self.notice)(notice);
    }
}

impl<F> Drop for EndReporter<F> {
    fn drop(&mut self) {
        self.ended.add();
    }
}

/// Goal: events that a manager sends while it is stopped take bounded memory, although no thread reads them, and block
/// none of the manager's threads for ever; dropped events are counted. Method: an observer that hangs while the stop
/// sends more updates, offers and events about them than fit into the engine's queue; then the observer goes on and
/// counts.
#[test]
fn a_manager_that_floods_while_it_stops_takes_bounded_memory() {
    const UPDATES: usize = 100_000;
    const QUEUE: usize = 16 * 1024;
    let (release, held) = channel::<()>();
    let (itself, hangs) = (Arc::new(OnceLock::<Weak<Recorder>>::new()), Counter::default());
    let stopping = Arc::clone(&itself);
    let mut cluster = Recorder::default();
    cluster.on_stop = Some(Box::new(move |()| {
        let cluster = stopping.get().and_then(Weak::upgrade).unwrap();
        for number in 0..UPDATES {
            cluster.send(update("unknown", TaskState::Lost));
            if number % 100 == 0 {
                cluster.send(Event::Offers(vec![offer("o", "S0", 1); 100]));
            }
        }
    }));
    let cluster = Arc::new(cluster);
    itself.set(Arc::downgrade(&cluster)).unwrap();
    let updates = Arc::new(AtomicUsize::new(0));
    let offers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&updates);
    let refused = Arc::clone(&offers);
    let is_hung = hangs.clone();
    let notice = move |notice| match notice {
        Notice::AgentLost { .. } => {
            is_hung.add();
            let _released = held.recv();
        }
        Notice::Updated { .. } => drop(counted.fetch_add(1, Ordering::Relaxed)),
        Notice::Overflow { offers, .. } => drop(refused.fetch_add(offers, Ordering::Relaxed)),
        _ => {}
    };
    let ended = Counter::default();
    let observer = Box::new(EndReporter { notice, ended: ended.clone() });
    let slack = Duration::from_secs(4);
    let engine = start(&cluster, observer, |options| options.shutdown_slack = slack);
    cluster.send(Event::AgentLost { agent_id: "S0".to_owned() });
    hangs.wait_for(1);
    let report = engine.shutdown(Duration::ZERO);
    assert!(report.unfinished.contains(&"offermill-control".to_owned()));
    cluster.wait_until_stopped();
    drop(release);
    ended.wait_for(1);
    let updates = updates.load(Ordering::Relaxed);
    let offers = offers.load(Ordering::Relaxed);
    assert!(updates <= QUEUE, "{updates} updates waited");
    assert_eq!(offers, 0, "offers waited");
    if report.unfinished == ["offermill-control"] {
        assert_eq!(updates as u64 + report.events_dropped, UPDATES as u64);
    }
}
