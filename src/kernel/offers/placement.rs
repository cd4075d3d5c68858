//! Placement: a pure function from capacities and headroom to an order of executors.
//!
//! The first `n` entries of a plan are themselves a plan. So a plan that is too large for the caps is truncated, and
//! what remains is still round robin.

use crate::config::Placement;
use crate::resources::MilliCpus;

/// How many executors a candidate's offers have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// The number of executors.
    pub(crate) executors: u32,
    /// The cores of each. For executors without a fixed size, at first all that is offered, then what the caps leave of
    /// it.
    pub(crate) cores: MilliCpus,
    /// Whether it comes after the others in each round, because an executor failed on its agent recently and the
    /// replacement should start elsewhere.
    pub(crate) last: bool,
}

impl Capacity {
    /// No room for any.
    pub(crate) const NONE: Capacity =
        Capacity { executors: 0, cores: MilliCpus::ZERO, last: false };
}

/// The capacities with their positions, in the order in which they are used.
fn by_priority(capacities: &[Capacity]) -> impl Iterator<Item = (u32, &Capacity)> {
    let of =
        |last: bool| (0u32..).zip(capacities).filter(move |(_, capacity)| capacity.last == last);
    of(false).chain(of(true))
}

/// Places up to `budget` executors of a fixed size. Appends the position of each one's capacity to `order`.
pub(crate) fn place(
    capacities: &[Capacity],
    budget: u32,
    placement: Placement,
    order: &mut Vec<u32>,
    scratch: &mut Vec<(u32, u32)>,
) {
    match (capacities, placement) {
        ([only], _) => order.extend(std::iter::repeat_n(0, only.executors.min(budget) as usize)),
        (_, Placement::RoundRobin) => round_robin(capacities, budget, order, scratch),
        (_, Placement::Consolidate) => consolidate(capacities, budget, order),
    }
}

/// Places one executor per capacity and round, until a round places none. Linear in capacities and executors, because a
/// full capacity leaves the rounds.
fn round_robin(
    capacities: &[Capacity],
    budget: u32,
    order: &mut Vec<u32>,
    left: &mut Vec<(u32, u32)>,
) {
    let mut budget = budget as usize;
    left.clear();
    left.extend(by_priority(capacities).map(|(at, capacity)| (at, capacity.executors)));
    left.retain(|(_, capacity)| *capacity > 0);
    while budget > 0 && !left.is_empty() {
        let pass = left.len().min(budget);
        order.extend(left[..pass].iter().map(|(at, _)| *at));
        budget -= pass;
        left.retain_mut(|(_, capacity)| {
            *capacity -= 1;
            *capacity > 0
        });
    }
}

/// Fills one capacity before the next.
fn consolidate(capacities: &[Capacity], budget: u32, order: &mut Vec<u32>) {
    let mut budget = budget;
    for (at, capacity) in by_priority(capacities) {
        let executors = capacity.executors.min(budget);
        order.extend(std::iter::repeat_n(at, executors as usize));
        budget -= executors;
    }
}

/// Places one executor per capacity, which takes all its whole cores that `cores` leaves.
pub(crate) fn place_whole(
    capacities: &mut [Capacity],
    budget: u32,
    mut cores: MilliCpus,
    order: &mut Vec<u32>,
) {
    order.extend(
        by_priority(capacities).filter(|(_, capacity)| capacity.executors > 0).map(|(at, _)| at),
    );
    order.truncate(budget as usize);
    for (at, turn) in order.iter().zip(0..) {
        let left = MilliCpus::from_cores(cores.whole_cores());
        if left == MilliCpus::ZERO {
            return order.truncate(turn);
        }
        let capacity = &mut capacities[*at as usize];
        capacity.cores = capacity.cores.min(left);
        cores = MilliCpus::from_millis(cores.millis() - capacity.cores.millis());
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capacities(executors: &[u32]) -> Vec<Capacity> {
        let cores = MilliCpus::from_cores(1);
        let capacity = |executors: &u32| Capacity { executors: *executors, cores, last: false };
        executors.iter().map(capacity).collect()
    }

    fn placed(sizes: &[u32], budget: u32, placement: Placement) -> Vec<u32> {
        let mut order = Vec::new();
        place(&capacities(sizes), budget, placement, &mut order, &mut Vec::new());
        order
    }

    /// Goal: executors are placed in the order of the rounds. Method: a small case worked out by hand.
    #[test]
    fn rounds_use_capacities_in_order() {
        assert_eq!(placed(&[2, 0, 1, 3], 10, Placement::RoundRobin), [0, 2, 3, 0, 3, 3]);
        assert_eq!(placed(&[2, 0, 1, 3], 4, Placement::RoundRobin), [0, 2, 3, 0]);
        assert_eq!(placed(&[2, 0, 1, 3], 4, Placement::Consolidate), [0, 0, 2, 3]);
    }

    /// Goal: a replacement starts elsewhere if it can. Method: an executor failed at the first of three capacities.
    #[test]
    fn failed_agents_come_last() {
        let mut capacities = capacities(&[2, 1, 1]);
        capacities[0].last = true;
        for (placement, expected) in
            [(Placement::RoundRobin, [1, 2, 0, 0]), (Placement::Consolidate, [1, 2, 0, 0])]
        {
            let mut order = Vec::new();
            place(&capacities, 9, placement, &mut order, &mut Vec::new());
            assert_eq!(order, expected);
        }
        let mut order = Vec::new();
        place_whole(&mut capacities, 9, MilliCpus::from_cores(2), &mut order);
        assert_eq!(order, [1, 2]);
    }

    proptest! {
        /// Goal: round robin treats equal capacities equally, uses all of them, and every prefix of a plan is the plan
        /// for a smaller budget. Method: random capacities and budgets, checked against these properties.
        #[test]
        fn round_robin_is_fair_complete_and_prefix_closed(
            sizes in prop::collection::vec(0u32..6, 0..20),
            budget in 0u32..60,
        ) {
            let order = placed(&sizes, budget, Placement::RoundRobin);
            prop_assert_eq!(order.len() as u32, budget.min(sizes.iter().sum()));
            let count = |at: usize| order.iter().filter(|place| **place as usize == at).count() as u32;
            for (one, one_room) in sizes.iter().enumerate() {
                prop_assert!(count(one) <= *one_room);
                for other in 0..sizes.len() {
                    if count(one) < *one_room {
                        prop_assert!(count(other) <= count(one) + 1, "{:?}", order);
                    }
                }
            }
            for shorter in 0..order.len() {
                let prefix = placed(&sizes, shorter as u32, Placement::RoundRobin);
                prop_assert_eq!(&prefix[..], &order[..shorter]);
            }
        }

        /// Goal: executors without a fixed size take whole cores, never more than the cap leaves. Method: random offers
        /// and caps.
        #[test]
        fn whole_offers_stay_within_the_cap(
            cores in prop::collection::vec(1u64..9, 0..20),
            cap in 0u64..40_000,
            budget in 0u32..20,
        ) {
            let mut capacities: Vec<Capacity> = cores
                .iter()
                .map(|cores| Capacity { executors: 1, cores: MilliCpus::from_cores(*cores), last: false })
                .collect();
            let mut order = Vec::new();
            place_whole(&mut capacities, budget, MilliCpus::from_millis(cap), &mut order);
            let taken: u64 = order.iter().map(|at| capacities[*at as usize].cores.millis()).sum();
            prop_assert!(taken <= cap && order.len() <= budget as usize);
            let full = order.len() == budget as usize || order.len() == cores.len();
            prop_assert!(full || cap - taken < 1000);
        }
    }
}
