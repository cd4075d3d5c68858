//! What answering a batch takes: the first time, and from then on.

use allocation_counter::measure;

use crate::support::fleet::Fleet;
use crate::support::scheduler::{Baseline, Ours, Scheduler};
use crate::support::stream::Stream;
use crate::support::{self, ENOUGH, MET};

const AGENTS: usize = 10_000;

/// The table's rows, its head included.
pub(crate) fn rows(batches: &[usize]) -> Vec<Vec<String>> {
    let head = ["bytes a batch of accepted offers", "offers", "kernel", "plain"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for &batch in batches {
        let fleet = Fleet::new(AGENTS, batch);
        let kernel = support::kernel(&support::config(MET, None));
        let baseline = Baseline::new(&support::config(MET, None), MET, ENOUGH);
        // Others have met the agents before: so what is new is the batch's.
        let _other = Stream::new(Ours::new(&kernel), &fleet);
        let (ours, plain) = (Costs::of(Ours::new(&kernel), &fleet), Costs::of(baseline, &fleet));
        let mut row = |what: &str, ours: u64, plain: u64| {
            rows.push(vec![
                what.to_owned(),
                batch.to_string(),
                ours.to_string(),
                plain.to_string(),
            ]);
        };
        row("the first, at its peak", ours.first, plain.first);
        row("each later one, its executors' ends included", ours.later, plain.later);
    }
    rows.sort_by_key(|row| row[0].starts_with("each"));
    rows
}

struct Costs {
    first: u64,
    later: u64,
}

impl Costs {
    fn of<D: Scheduler>(mut scheduler: D, fleet: &Fleet) -> Costs {
        let first = measure(|| scheduler.answer(fleet.stream[0])).bytes_max;
        let mut stream = Stream::new(scheduler, fleet);
        let mut round = || {
            for _ in &fleet.stream {
                stream.start(1);
                stream.name();
                stream.end();
            }
        };
        round();
        Costs { first, later: measure(round).bytes_total / fleet.stream.len() as u64 }
    }
}
