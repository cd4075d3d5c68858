//! What is kept for an agent and for an executor.

use std::time::Duration;

use allocation_counter::measure;
use offermill::Config;

use crate::support::fleet::{Batch, Fleet};
use crate::support::scheduler::{Baseline, Ours, Scheduler};
use crate::support::{self, ENOUGH, MET};

/// Few, so that what a batch takes isn't mistaken for what agents take.
const BATCH: usize = 10;

/// The table's rows, its head included.
pub(crate) fn rows(counts: &[usize]) -> Vec<Vec<String>> {
    let head = ["bytes", "how many", "kernel", "each handler", "plain"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for &count in counts {
        let fleet = Fleet::new(count, BATCH);
        let config = support::config(MET, None);
        let (recorded, plain) = (Ourselves::new(&fleet, &config), Plain::new(&fleet));
        let unrecorded = config.to_builder().capacity_refresh(Duration::MAX).build();
        let ours = Ourselves::new(&fleet, &unrecorded.expect("settings"));
        let texts = texts(&fleet);
        let cells = [ours.shared - texts.both, ours.handler - texts.ids, plain.agents - texts.both];
        rows.push(row("an agent", count, &cells.map(Some)));
        let more = recorded.shared - ours.shared;
        rows.push(row("the record of what it offered", count, &[Some(more), None, None]));
        rows.push(row("an executor", count, &[Some(ours.executors), None, Some(plain.executors)]));
    }
    let kinds = ["an agent", "the record of what it offered", "an executor"];
    rows[1..].sort_by_key(|row| kinds.iter().position(|kind| row[0] == *kind));
    rows
}

fn row(what: &str, count: usize, bytes: &[Option<i64>]) -> Vec<String> {
    let each = |bytes: &Option<i64>| match bytes {
        Some(bytes) => format!("{:.0}", *bytes as f64 / count as f64),
        None => "—".to_owned(),
    };
    [what.to_owned(), count.to_string()].into_iter().chain(bytes.iter().map(each)).collect()
}

/// The bytes of agents' texts.
struct Texts {
    ids: i64,
    /// Host names, too.
    both: i64,
}

fn texts(fleet: &Fleet) -> Texts {
    let offers = || fleet.met.iter().copied().flatten();
    let ids = offers().map(|offer| offer.agent_id.len() as i64).sum();
    Texts { ids, both: ids + offers().map(|offer| offer.hostname.len() as i64).sum::<i64>() }
}

/// Bytes of a kernel.
struct Ourselves {
    shared: i64,
    handler: i64,
    executors: i64,
}

impl Ourselves {
    fn new(fleet: &Fleet, config: &Config) -> Ourselves {
        let kernel = support::kernel(config);
        let (first, mut scheduler) = met(|| Ours::new(&kernel), &fleet.met);
        // Shared memory is there already: what grows is the handler's.
        let (handler, _) = met(|| Ours::new(&kernel), &fleet.met);
        let executors = placed(&mut scheduler, &fleet.stream);
        Ourselves { shared: first - handler, handler, executors }
    }
}

/// Bytes of the baseline.
struct Plain {
    agents: i64,
    executors: i64,
}

impl Plain {
    fn new(fleet: &Fleet) -> Plain {
        let baseline = || Baseline::new(&support::config(MET, None), MET, ENOUGH);
        let (agents, mut scheduler) = met(baseline, &fleet.met);
        Plain { agents, executors: placed(&mut scheduler, &fleet.stream) }
    }
}

/// A scheduler that has met all agents, and what it grew by.
fn met<D: Scheduler>(scheduler: impl FnOnce() -> D, batches: &[Batch]) -> (i64, D) {
    let mut made = None;
    let mut names = Vec::new();
    // The names' memory is the cluster's.
    allocation_counter::opt_out(|| names.resize_with(BATCH, || String::with_capacity(100)));
    let bytes = measure(|| {
        let mut scheduler = scheduler();
        for batch in batches {
            scheduler.answer(batch);
            scheduler.names(&mut names);
            names.iter().for_each(|name| scheduler.end(name));
        }
        made = Some(scheduler);
    });
    (bytes.bytes_current, made.expect("a scheduler"))
}

/// What a scheduler grows by when each agent gets an executor.
fn placed<D: Scheduler>(scheduler: &mut D, batches: &[Batch]) -> i64 {
    measure(|| batches.iter().for_each(|batch| scheduler.answer(batch))).bytes_current
}
