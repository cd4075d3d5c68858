//! Journals: a player repeats what an engine did, with the same outcomes.

use std::io;
use std::mem::discriminant;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use offermill::config::{ExclusionRule, ExecutorCores, RefuseDurations, UnreachableRule};
use offermill::engine::cluster_manager::{
    AgentFacts, Event, OwnedOffer, RecoveredExecutor, Update,
};
use offermill::engine::journal::{Journal, JournalEntry, Operation, OperationOutcome, Player};
use offermill::engine::{Engine, EngineOptions, Notice};
use offermill::launch::CommandTemplate;
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{Config, DemandCall, IdScheme, Kernel, TaskState, Timestamp, UpdateReason};

use crate::recorder::{
    Call, FnObserver, Notices, Recorder, encoded, offer, update, update_because,
};
use crate::shutdown::Counter;

/// Keeps entries in memory.
#[derive(Clone, Default)]
pub(super) struct Tape {
    entries: Arc<Mutex<Vec<JournalEntry>>>,
    flushed: Arc<Mutex<usize>>,
}

impl Journal for Tape {
    fn record(&mut self, entry: &JournalEntry) -> io::Result<()> {
        self.entries.lock().unwrap().push(entry.clone());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        *self.flushed.lock().unwrap() = self.entries.lock().unwrap().len();
        Ok(())
    }
}

impl Tape {
    /// All entries, once the engine has ended.
    pub(super) fn entries(&self) -> Vec<JournalEntry> {
        let entries = self.entries.lock().unwrap().clone();
        assert_eq!(entries.len(), *self.flushed.lock().unwrap(), "flushed at the end");
        assert!(matches!(entries.last().unwrap().operation, Operation::Wait), "the end is told");
        entries
    }
}

/// Pseudo-random numbers from a seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len() as u64) as usize) }
    }
}

/// A kernel whose settings make many things happen in a short time.
pub(super) fn kernel() -> Kernel {
    kernel_excluding_for(Some(Duration::from_secs(1)))
}

fn kernel_excluding_for(expiry: Option<Duration>) -> Kernel {
    let second = Duration::from_secs(1);
    let exclusion = ExclusionRule { failures: 2, window: 60 * second, expiry };
    let unreachable = UnreachableRule { release_after: Some(second / 2), forget_after: second };
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(100))
        .memory_overhead(Some(Mebibytes::new(28)))
        .executor_limit(Some(9))
        .core_cap(Some(MilliCpus::from_cores(12)))
        .exclusion(Some(exclusion))
        .unreachable(unreachable)
        .locality_wait(Some(second / 4))
        .revive_interval(Duration::from_millis(100))
        .refuse_durations(RefuseDurations::default())
        .build();
    Kernel::new(config.unwrap(), IdScheme::unique("test", 1).unwrap())
}

pub(super) fn start(
    cluster: &Arc<Recorder>,
    notices: &Notices,
    journal: impl Journal + 'static,
    counting: bool,
) -> Engine {
    start_on(kernel(), cluster, notices, journal, counting)
}

fn start_on(
    kernel: Kernel,
    cluster: &Arc<Recorder>,
    notices: &Notices,
    journal: impl Journal + 'static,
    counting: bool,
) -> Engine {
    let mut options = EngineOptions::default();
    options.handlers = 4;
    options.batch_max = 7;
    options.offers_queued_max = 50;
    options.finished_count_down = counting;
    let launcher = Arc::new(CommandTemplate::new(vec!["run".to_owned()]));
    let manager = Arc::clone(cluster) as _;
    let observer = Box::new(notices.clone());
    let journal = Box::new(journal);
    Engine::start_with_journal(kernel, manager, launcher, options, observer, journal).unwrap()
}

/// Plays entries on a new kernel. Returns how the outcomes differ, if they do.
pub(super) fn play(entries: &[JournalEntry]) -> Result<(), String> {
    play_on(kernel(), entries)
}

pub(super) fn play_on(kernel: Kernel, entries: &[JournalEntry]) -> Result<(), String> {
    let mut player = Player::new(kernel);
    let mut last = Timestamp::ORIGIN;
    for (place, entry) in entries.iter().enumerate() {
        assert!(entry.at >= last, "moments never fall");
        last = entry.at;
        let passed = player.advance(entry.at).unwrap();
        let again = match entry.operation {
            Operation::Point => passed.ok_or(format!("{place}: {entry:?} did not happen"))?,
            _ if passed.is_some() => return Err(format!("{place}: {passed:?} before {entry:?}")),
            _ => player.play(entry.at, entry.operation.clone()).unwrap(),
        };
        let state = |of: &JournalEntry| (of.at, of.outcome.clone(), of.totals, of.limit);
        if state(&again) != state(entry) {
            return Err(format!("{place}: {entry:?}\nis now {again:?}"));
        }
    }
    player.kernel().check().map_err(|violation| violation.to_string())
}

/// The random actions of one of several threads.
fn act(engine: &Engine, cluster: &Recorder, thread: u64, rng: &mut Rng) {
    const STATES: [TaskState; 7] = [
        TaskState::Running,
        TaskState::Finished,
        TaskState::Failed,
        TaskState::Lost,
        TaskState::Unreachable,
        TaskState::Dropped,
        TaskState::Starting,
    ];
    const REASONS: [UpdateReason; 3] =
        [UpdateReason::Other, UpdateReason::AgentRemoved, UpdateReason::Reconciliation];
    let agent = format!("S{}", rng.below(6));
    let some_executor = |rng: &mut Rng| {
        let launched = cluster.launched();
        rng.pick(&launched).cloned().unwrap_or_else(|| "former-1".to_owned())
    };
    match rng.below(40) {
        0..=9 => {
            let ids: Vec<u64> = (0..=rng.below(4)).collect();
            let name = |n: &u64| format!("{agent}-{thread}-{n}");
            let offers = ids.iter().map(|n| offer(&name(n), &agent, 1 + *n as u32)).collect();
            cluster.send(Event::Offers(offers));
        }
        10..=15 => {
            let texts =
                [format!("e{thread} {agent} 2"), format!("f{thread} S1 1"), "bad".to_owned()];
            cluster.send(encoded(&[&texts[0], &texts[1], &texts[2]]));
        }
        16..=26 => {
            let executor = some_executor(rng);
            let state = *rng.pick(&STATES).unwrap();
            let reason = *rng.pick(&REASONS).unwrap();
            cluster.send(update_because(&executor, state, reason));
        }
        27 => {
            let resources = offer("permit", &agent, 1).resources;
            cluster.send(Event::Offers(vec![OwnedOffer::late("permit", resources)]));
            let update = Update::new(some_executor(rng), TaskState::Running).with_agent(&agent);
            let facts = AgentFacts::new("host").with_attributes(Vec::new());
            cluster.send(Event::Update(update.with_facts(facts)));
        }
        28 => cluster.send(update("stranger", TaskState::Running)),
        29 => cluster.send(Event::AgentLost { agent_id: agent }),
        30 => cluster.send(Event::ExecutorLost { executor: some_executor(rng) }),
        31 | 32 => {
            let limit = Some(rng.below(14) as u32).filter(|limit| *limit < 13);
            match rng.below(2) {
                0 => engine.set_executor_limit(limit).unwrap(),
                _ => engine.request_executors(limit, &["host-of-S1", "host"]).unwrap(),
            }
        }
        33 => {
            let name = some_executor(rng);
            engine.kill(engine.kernel().executor_id(&name).into_iter().collect());
        }
        34 if rng.below(4) == 0 => {
            cluster.send(Event::Disconnected);
            cluster.send(Event::Registered { framework_id: "F".to_owned(), again: true });
        }
        35 if rng.below(3) == 0 => {
            let held = cluster.hold_calls();
            std::thread::sleep(Duration::from_millis(70));
            drop(held);
        }
        36 => drop(engine.readmit_agent(&agent)),
        _ => std::thread::sleep(Duration::from_millis(rng.below(30))),
    }
}

/// The entries of a run in which three threads act at random.
fn run_wild(seed: u64) -> Vec<JournalEntry> {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let tape = Tape::default();
    let engine = start(&cluster, &notices, tape.clone(), seed.is_multiple_of(2));
    let former = |number: u64| {
        let resources = ExecutorResources {
            cores: MilliCpus::from_cores(1 + 5 * number),
            memory: Mebibytes::new(128),
            gpus: Gpus::ZERO,
            port: None,
        };
        let (executor, agent) = (format!("former-{number}"), format!("S{number}"));
        RecoveredExecutor::new(executor, agent, "host", resources)
    };
    cluster.send(Event::Recovered { executors: (0..3).map(former).collect(), finished: seed });
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    let until = Instant::now() + Duration::from_millis(2_500);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let engine = &engine;
            let cluster = &cluster;
            scope.spawn(move || {
                let mut rng = Rng(seed * 8 + thread);
                while Instant::now() < until {
                    act(engine, cluster, thread, &mut rng);
                }
            });
        }
    });
    engine.shutdown(Duration::from_millis(100));
    tape.entries()
}

/// Goal: whatever several threads do with an engine, playing its journal gives the same outcomes, executors' ids
/// included. Method: random runs with all kinds of operations.
#[test]
fn a_journal_is_replayed() {
    let mut seen = Vec::new();
    for seed in 1..=4 {
        let entries = run_wild(seed);
        if let Err(difference) = play(&entries) {
            panic!("seed {seed}: {difference}");
        }
        for entry in entries {
            let kind = (discriminant(&entry.operation), discriminant(&entry.outcome));
            if !seen.contains(&kind) {
                seen.push(kind);
            }
        }
    }
    // All except late answers, which have their own test.
    assert!(seen.len() >= 12, "{seen:?}");
}

/// Goal: the comparison above sees a difference. Method: a journal from which an operation that placed executors is
/// left out. On a busy machine a run may end before it has placed any; then another one.
#[test]
fn a_journal_with_a_gap_is_found_out() {
    let placed = |entry: &JournalEntry| match &entry.outcome {
        OperationOutcome::Answers(answers) => !answers.accepts.is_empty(),
        _ => false,
    };
    let with_placements = |seed| {
        let entries = run_wild(seed);
        entries.iter().position(placed).map(|first| (entries, first))
    };
    let (entries, first) = (9..29).find_map(with_placements).unwrap();
    let mut gapped = entries.clone();
    gapped.remove(first);
    assert!(play(&entries).is_ok());
    assert!(play(&gapped).is_err());
}

/// Goal: answers that are sent after a revive that came meanwhile are recorded as such. Method: declines because of a
/// cap are blocked while the limit rises.
#[test]
fn answers_that_leave_late_are_on_record() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let tape = Tape::default();
    let engine = start(&cluster, &notices, tape.clone(), false);
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    engine.set_executor_limit(Some(0)).unwrap();
    cluster.wait_for(|call| (*call == Call::Suppress).then_some(()));
    let held = cluster.hold_answers();
    cluster.send(Event::Offers(vec![offer("o", "S0", 1)]));
    cluster.wait_until_held();
    engine.set_executor_limit(Some(1)).unwrap();
    // The revive is due at a point of the grid, and is recorded a moment later.
    let revived = |entry: &JournalEntry| match entry.outcome {
        OperationOutcome::Point { demand, .. } => demand == Some(DemandCall::Revive),
        _ => false,
    };
    let until = Instant::now() + Duration::from_secs(20);
    while !tape.entries.lock().unwrap().iter().any(revived) {
        assert!(Instant::now() < until, "timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(held);
    cluster.declined_when(1);
    engine.shutdown(Duration::ZERO);
    let entries = tape.entries();
    let late = |entry: &JournalEntry| matches!(entry.operation, Operation::AnswersLeftLate);
    assert_eq!(entries.iter().filter(|entry| late(entry)).count(), 1);
    play(&entries).unwrap();
}

/// Goal: an agent's readmission by the engine is recorded, and replayed at its place. Method: an agent is excluded for
/// ever, readmitted twice, and offered again; without its entry, the journal isn't replayed.
#[test]
fn a_readmission_is_replayed() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let tape = Tape::default();
    let forever = || kernel_excluding_for(None);
    let engine = start_on(forever(), &cluster, &notices, tape.clone(), false);
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    cluster.send(Event::Offers(vec![offer("o1", "S0", 2)]));
    let executors = cluster.wait_for(|call| match call {
        Call::Accept { executors, .. } => Some(executors.clone()),
        _ => None,
    });
    executors.iter().for_each(|executor| cluster.send(update(executor, TaskState::Failed)));
    notices.wait_for(|notice| matches!(notice, Notice::AgentExcluded { .. }).then_some(()));
    assert!(engine.readmit_agent("S0"));
    assert!(!engine.readmit_agent("S0"), "it is admitted");
    assert!(!engine.readmit_agent("S9"), "it is unknown");
    cluster.wait_for(|call| (*call == Call::Revive).then_some(()));
    cluster.send(Event::Offers(vec![offer("o2", "S0", 1)]));
    cluster.wait_for(|call| match call {
        Call::Accept { offers, .. } if *offers == ["o2"] => Some(()),
        _ => None,
    });
    engine.shutdown(Duration::ZERO);
    let entries = tape.entries();
    let readmissions = entries.iter().filter_map(|entry| match entry.outcome {
        OperationOutcome::Readmitted { was_refused } => Some(was_refused),
        _ => None,
    });
    assert_eq!(readmissions.collect::<Vec<_>>(), [true, false, false]);
    play_on(forever(), &entries).unwrap();
    let kept =
        |entry: &&JournalEntry| !matches!(entry.operation, Operation::AgentReadmitted { .. });
    let others: Vec<JournalEntry> = entries.iter().filter(kept).cloned().collect();
    assert!(play_on(forever(), &others).is_err());
}

/// A journal that fails at a given entry.
struct Failing {
    after: usize,
}

impl Journal for Failing {
    fn record(&mut self, _entry: &JournalEntry) -> io::Result<()> {
        match self.after.checked_sub(1) {
            Some(left) => self.after = left,
            None => return Err(io::Error::other("the disk is full")),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Goal: a journal's failure is reported once, and the run continues without it. Method: it fails at different
/// operations, the last one included.
#[test]
fn a_failing_journal_is_told_once() {
    for after in [0, 1, 3, 6] {
        let cluster = Arc::new(Recorder::default());
        let notices = Notices::default();
        let engine = start(&cluster, &notices, Failing { after }, false);
        cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
        for round in 0..3 {
            let id = format!("o{round}");
            cluster.send(Event::Offers(vec![offer(&id, "S0", 1)]));
            cluster.wait_for(|call| match call {
                Call::Accept { offers, .. } if *offers == [id.as_str()] => Some(()),
                _ => None,
            });
        }
        engine.shutdown(Duration::ZERO);
        let told = |notice: &Notice| match notice {
            Notice::JournalEnded { why } => Some(why.clone()),
            _ => None,
        };
        assert_eq!(notices.wait_for_many(1, told), ["the disk is full"], "after {after}");
    }
}

/// A journal that hangs at its first entry until the test drops the other end.
struct Stuck(Receiver<()>);

impl Journal for Stuck {
    fn record(&mut self, _entry: &JournalEntry) -> io::Result<()> {
        let _released = self.0.recv();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Goal: a journal that hangs doesn't prolong a shutdown, and is named and reported. Method: one that never returns
/// from its first entry, with more updates than its queue holds, or none; the slack is far shorter than the time that a
/// running engine waits for a journal.
#[test]
fn a_shutdown_returns_though_the_journal_hangs() {
    for (updates, at_least) in [(30_000, 16_000), (0, 0)] {
        let (release, held) = channel();
        let cluster = Arc::new(Recorder::default());
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut options = EngineOptions::default();
        options.shutdown_slack = Duration::from_secs(4);
        let launcher = Arc::new(CommandTemplate::new(vec!["run".to_owned()]));
        let seen = Counter::default();
        let ended = Arc::clone(&told);
        let counted = seen.clone();
        let observer = FnObserver(move |notice| match notice {
            Notice::Updated { .. } => counted.add(),
            Notice::JournalEnded { why } => ended.lock().unwrap().push(why),
            _ => {}
        });
        let manager = Arc::clone(&cluster) as _;
        let observer = Box::new(observer);
        let kernel = kernel();
        let journal = Box::new(Stuck(held));
        let engine =
            Engine::start_with_journal(kernel, manager, launcher, options, observer, journal);
        let engine = engine.unwrap();
        cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
        (0..updates).for_each(|_| cluster.send(update("unknown", TaskState::Lost)));
        seen.wait_for(at_least);
        let started = Instant::now();
        let report = engine.shutdown(Duration::from_millis(100));
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        assert_eq!(report.unfinished, ["offermill-journal"]);
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("too slowly"), "{told:?}");
        assert_eq!(report.events_dropped, 0);
        drop(release);
    }
}
