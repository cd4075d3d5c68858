//! The model; see `main.rs` for what it assumes.

use crate::counts::Writes;
use crate::lines::Costs;

/// A batch or an update.
pub(crate) struct Load {
    /// Nanoseconds on one thread.
    pub(crate) alone: f64,
    pub(crate) writes: Writes,
    /// How many threads have a counter of what was released to themselves, and so visit no line that others do. The
    /// further ones share one.
    pub(crate) own_counters: u32,
    /// How much of the time lies between the look at the admission word and its exchange; none if it is changed
    /// without a look.
    pub(crate) plans: Option<f64>,
}

/// A line that all share, or several alike that share out its visits.
struct Station {
    name: &'static str,
    lines: f64,
    /// For how long a batch or an update has one of these lines, in nanoseconds.
    demand: f64,
}

/// The number of stacks of free cells.
const STACKS: f64 = 8.0;

/// An exchange that failed has brought the line here. So long, in nanoseconds, it takes to look at the caps and to try
/// again: a guess.
const TRIED_AGAIN: f64 = 10.0;

/// How likely it is that one of the other threads was here since.
fn met(threads: f64) -> f64 {
    (threads - 1.0) / threads
}

/// What a visit costs that finds the line here or not.
fn visit(costs: Costs, met: f64) -> f64 {
    met * costs.take + (1.0 - met) * costs.own
}

/// The lines that all threads visit, when the admission word is tried so often again.
fn stations(load: &Load, costs: Costs, threads: f64, failures: f64) -> Vec<Station> {
    let Writes { admission, released, sequence, stack, .. } = load.writes;
    let met_all = met(threads);
    let look = if load.plans.is_some() { met_all * costs.load } else { 0.0 };
    let admission = admission as f64;
    let sharing = |lines: f64| met((threads / lines).max(1.0));
    let released = released as f64 * visit(costs, met_all);
    let all = [
        ("released", 1.0, released),
        ("admission", 1.0, admission * (look + visit(costs, met_all) + failures * costs.take)),
        ("sequence", 1.0, sequence as f64 * visit(costs, met_all)),
        ("stacks", STACKS.min(threads), stack as f64 * visit(costs, sharing(STACKS))),
    ];
    let used = all.into_iter().filter(|(_, _, demand)| *demand > 0.0);
    used.map(|(name, lines, demand)| Station { name, lines, demand }).collect()
}

/// Batches or updates a nanosecond.
pub(crate) fn rate(load: &Load, costs: Costs, threads: u32) -> f64 {
    let apart = threads.min(load.own_counters);
    let others = if threads > apart { rate_of_sharing(load, costs, threads - apart) } else { 0.0 };
    f64::from(apart) / load.alone + others
}

/// The same of threads that share all lines.
fn rate_of_sharing(load: &Load, costs: Costs, threads: u32) -> f64 {
    let count = f64::from(threads);
    // Without contention, the shared lines are part of the time measured alone.
    let Writes { admission, released, sequence, stack, .. } = load.writes;
    let shared = (admission + released + sequence + stack) as f64;
    let of_agents = load.writes.agents + load.writes.ended;
    let by_chance = met(count) * (costs.take - costs.own).max(0.0) * of_agents as f64;
    // A count of an agent's ends that others write, too, takes a read-modify-write.
    let more = if load.own_counters > 0 { load.writes.ended as f64 * costs.own } else { 0.0 };
    let think = (load.alone - shared * costs.own).max(0.0) + more + by_chance;
    let (mut failures, mut rate) = (0.0, 0.0);
    for _ in 0..200 {
        let stations = stations(load, costs, count, failures);
        rate = network(think, &stations, threads);
        let Some(plans) = load.plans else { break };
        let others = rate * met(count) * load.writes.admission as f64;
        let first = 1.0 - (-others * plans * think).exp();
        let again = 1.0 - (-others * TRIED_AGAIN).exp();
        let expected = load.writes.admission as f64 * first / (1.0 - again);
        failures += (expected - failures) * 0.1;
    }
    rate
}

/// Mean value analysis: the throughput of a closed network with `customers` customers and a think time.
fn network(think: f64, stations: &[Station], customers: u32) -> f64 {
    let mut queues = vec![0.0; stations.len()];
    let mut stays = vec![0.0; stations.len()];
    let mut rate = 0.0;
    for present in 1..=customers {
        for ((stay, queue), station) in stays.iter_mut().zip(&queues).zip(stations) {
            // A customer waits only for customers at the same line.
            *stay = station.demand * (1.0 + queue / station.lines);
        }
        rate = f64::from(present) / (think + stays.iter().sum::<f64>());
        queues.iter_mut().zip(&stays).for_each(|(queue, stay)| *queue = rate * stay);
    }
    rate
}

/// The line that bounds the rate however many threads there are, and the bound: no exchange fails, and every visit
/// finds the line elsewhere.
pub(crate) fn ceiling(load: &Load, costs: Costs) -> Option<(&'static str, f64)> {
    let stations = stations(load, costs, 1e9, 0.0);
    let bound = |station: &Station| station.lines / station.demand;
    let narrowest = stations.iter().min_by(|one, other| bound(one).total_cmp(&bound(other)))?;
    Some((narrowest.name, f64::from(load.own_counters) / load.alone + bound(narrowest)))
}
