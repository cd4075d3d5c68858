//! The cost of a picture of the cluster's capacity for its caller, by what has changed since the last one: alone, and
//! while another thread answers offers. Beside it a map of amounts behind a lock, which is copied whole.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use offermill::resources::MilliCpus;
use offermill::{Config, Kernel, Value};

use crate::support::beside::beside;
use crate::support::fleet::{Batch, Fleet};
use crate::support::scheduler::{Ours, Scheduler};
use crate::support::stream::{EXECUTORS_LIVE, Stream};
use crate::support::{self, EXECUTOR_CORES, MET, NOW};

const AGENTS: usize = 100_000;
const BATCH: usize = 100;

/// More than any agent has: each offer is looked at and declined.
const TOO_MANY_CORES: MilliCpus = MilliCpus::from_cores(8);

/// What has changed since the last picture.
#[derive(Clone, Copy)]
enum Changed {
    Nothing,
    OneAgent,
    /// Each tenth, all over the table.
    TenthOfAgents,
    /// Each fourth, likewise.
    QuarterOfAgents,
    AllAgents,
}

/// The offers of all agents, with one and with other amounts.
struct Variants {
    batches: [Vec<Batch>; 2],
    /// Which of them are made now. Relaxed: nothing else is read for its sake.
    current: AtomicUsize,
}

impl Variants {
    fn new(fleet: &Fleet) -> Variants {
        let others = fleet.stream_changed();
        Variants { batches: [fleet.stream.clone(), others], current: AtomicUsize::new(0) }
    }

    fn current(&self) -> &[Batch] {
        &self.batches[self.current.load(Ordering::Relaxed)]
    }

    fn other(&self) -> &[Batch] {
        &self.batches[1 - self.current.load(Ordering::Relaxed)]
    }

    /// Makes offers that differ from the last ones of the same agents, as far as `changed` says.
    fn change(&self, changed: Changed, turn: u64, mut answer: impl FnMut(Batch)) {
        match changed {
            Changed::Nothing => {}
            Changed::OneAgent => {
                let batches = if turn.is_multiple_of(2) { self.other() } else { self.current() };
                answer(&batches[0][..1]);
            }
            Changed::TenthOfAgents | Changed::QuarterOfAgents => {
                let part = if let Changed::TenthOfAgents = changed { 10 } else { 4 };
                let batches = if turn.is_multiple_of(2) { self.other() } else { self.current() };
                batches.iter().take(batches.len() / part).for_each(|batch| answer(batch));
            }
            Changed::AllAgents => {
                self.current.fetch_xor(1, Ordering::Relaxed);
                self.current().iter().for_each(|batch| answer(batch));
            }
        }
    }
}

/// What a program would write itself.
type Amounts = Mutex<HashMap<Arc<str>, [Value<'static>; 2]>>;

fn record(amounts: &Amounts, batch: Batch) {
    let mut amounts = amounts.lock().unwrap_or_else(PoisonError::into_inner);
    for offer in batch {
        let entry = amounts.get_mut(offer.agent_id).expect("all agents are met");
        *entry = [offer.resources[0].value, offer.resources[1].value];
    }
}

pub(crate) fn all(criterion: &mut Criterion) {
    let fleet = Fleet::new(AGENTS, BATCH);
    let variants = Variants::new(&fleet);
    let kernel = support::kernel(&config(EXECUTOR_CORES));
    let stream = Stream::new(Ours::new(&kernel), &fleet).filled();
    kernel.reconfigure(config(TOO_MANY_CORES));
    let mut ours = [stream.scheduler, Ours::new(&kernel)];
    prove(&kernel, &variants, &mut ours[0]);

    let agents = fleet.stream.iter().flat_map(|batch| batch.iter());
    let nothing = [Value::Set(&[]); 2];
    let amounts = agents.map(|offer| (Arc::from(offer.agent_id), nothing)).collect();
    let amounts = Amounts::new(amounts);
    let mut locked = [(); 2];

    let mut group = support::group(criterion, "reports/capacity");
    for (changed, name) in [
        (Changed::Nothing, "nothing changed"),
        (Changed::OneAgent, "one agent changed"),
        (Changed::TenthOfAgents, "a tenth changed"),
        (Changed::QuarterOfAgents, "a quarter changed"),
        (Changed::AllAgents, "all agents changed"),
    ] {
        let picture = || kernel.capacity(NOW);
        let answer = |scheduler: &mut Ours, batch: Batch| scheduler.answer(batch);
        let mut bench = Bench { group: &mut group, name, changed, variants: &variants };
        bench.run("offermill", &mut ours, answer, picture);
        let copy = || amounts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        bench.run("mutex", &mut locked, |(), batch| record(&amounts, batch), copy);
    }
    group.finish();
    explain(criterion, &kernel, &amounts);
}

/// An explanation why nothing is placed on any of the agents, with a picture of them that is there. Beside it a search
/// of the map for the agent with the most cores.
fn explain(criterion: &mut Criterion, kernel: &Kernel, amounts: &Amounts) {
    let keeps_pictures = config(TOO_MANY_CORES).to_builder();
    let keeps_pictures = keeps_pictures.capacity_refresh(Duration::from_secs(60)).build();
    kernel.reconfigure(keeps_pictures.expect("settings"));
    assert!(kernel.explain(NOW).to_string().contains("cores"), "{}", kernel.explain(NOW));
    let mut group = support::group(criterion, "reports/explain all agents");
    group.bench_function("offermill", |bencher| bencher.iter(|| kernel.explain(NOW)));
    let cores = |it: &[Value<'static>; 2]| match it[0] {
        Value::Scalar(cores) => cores.thousandths(),
        _ => 0,
    };
    let largest = || {
        let amounts = amounts.lock().unwrap_or_else(PoisonError::into_inner);
        amounts.iter().max_by_key(|(_, it)| cores(it)).map(|(agent, _)| Arc::clone(agent))
    };
    group.bench_function("mutex", |bencher| bencher.iter(largest));
    group.finish();
}

fn config(cores: MilliCpus) -> Config {
    let config = support::config_of(cores, MET, None);
    config.to_builder().capacity_refresh(Duration::ZERO).build().expect("settings")
}

/// That each change is seen, and that all agents and executors are there.
fn prove(kernel: &Kernel, variants: &Variants, ours: &mut Ours) {
    let mut offered = Vec::new();
    for changed in [Changed::AllAgents, Changed::AllAgents, Changed::OneAgent] {
        variants.change(changed, 0, |batch| ours.answer(batch));
        offered.push(kernel.capacity(NOW).sums().offered);
    }
    assert!(offered[0] != offered[1] && offered[1] != offered[2], "{offered:?}");
    let sums = kernel.capacity(NOW).sums();
    assert_eq!(sums.agents, AGENTS);
    assert!(kernel.totals().executors as usize >= EXECUTORS_LIVE);
}

struct Bench<'a, 'c> {
    group: &'a mut criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>,
    name: &'a str,
    changed: Changed,
    variants: &'a Variants,
}

impl Bench<'_, '_> {
    /// Measures `picture` after changes by the first of two handlers: alone, and while the second answers offers.
    fn run<H: Send, P>(
        &mut self,
        function: &str,
        [first, second]: &mut [H; 2],
        answer: impl Fn(&mut H, Batch) + Sync,
        picture: impl Fn() -> P,
    ) {
        let (variants, changed) = (self.variants, self.changed);
        let mut turn = 0;
        // What the picture before was alone to hold is freed by a store within `capacity`, on the clock.
        let mut measure = |times: u64| {
            let mut spent = Duration::ZERO;
            for _ in 0..times {
                variants.change(changed, turn, |batch| answer(first, batch));
                turn += 1;
                let start = Instant::now();
                let picture = picture();
                spent += start.elapsed();
                drop(picture);
            }
            spent
        };
        let id = |when| BenchmarkId::new(function, format!("{}, {when}", self.name));
        self.group.bench_function(id("alone"), |bencher| bencher.iter_custom(&mut measure));
        let (mut next, mut handler) = (0, second);
        let id = id("under load");
        self.group.bench_function(id, |bencher| {
            let turn = |(next, handler): &mut (&mut usize, &mut &mut H)| {
                let batches = variants.current();
                answer(handler, batches[**next % batches.len()]);
                **next += 1;
            };
            beside(&mut (&mut next, &mut handler), turn, || bencher.iter_custom(&mut measure));
        });
    }
}
