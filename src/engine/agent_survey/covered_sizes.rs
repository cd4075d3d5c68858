//! Which sizes of tasks fit into one of many amounts, found in one sweep over both.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::kernel::ResourceSums;
use crate::resources::{Gpus, Mebibytes};

/// Removes the sizes that fit into one of the amounts at least. O(n log n) in sizes and amounts together.
pub(super) fn remove_covered(sizes: &mut Vec<ResourceSums>, mut amounts: Vec<ResourceSums>) {
    amounts.sort_unstable_by_key(|has| Reverse(has.cores));
    sizes.sort_unstable_by_key(|size| Reverse(size.cores));
    let mut amounts = amounts.into_iter().peekable();
    let mut seen = Staircase::default();
    sizes.retain(|size| {
        while let Some(has) = amounts.next_if(|has| has.cores >= size.cores) {
            seen.add(has.memory, has.gpus);
        }
        !seen.covers(size.memory, size.gpus)
    });
}

/// The amounts of memory and GPUs of which none is as much as another in both: more memory is with fewer GPUs.
#[derive(Debug, Default)]
struct Staircase(BTreeMap<Mebibytes, Gpus>);

impl Staircase {
    fn covers(&self, memory: Mebibytes, gpus: Gpus) -> bool {
        // Of those with enough memory, the first has the most GPUs.
        self.0.range(memory..).next().is_some_and(|(_, most)| *most >= gpus)
    }

    fn add(&mut self, memory: Mebibytes, gpus: Gpus) {
        if self.covers(memory, gpus) {
            return;
        }
        while let Some((less, fewer)) = self.0.range(..=memory).next_back()
            && *fewer <= gpus
        {
            let less = *less;
            self.0.remove(&less);
        }
        self.0.insert(memory, gpus);
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::resources::MilliCpus;

    fn sums() -> impl Strategy<Value = ResourceSums> {
        (0u64..6, 0u64..6, 0u32..4).prop_map(|(cores, memory, gpus)| ResourceSums {
            cores: MilliCpus::from_cores(cores),
            memory: Mebibytes::new(memory),
            gpus: Gpus::new(gpus),
        })
    }

    proptest! {
        /// Goal: exactly the sizes that fit into none of the amounts are left. Method: random sizes and amounts with
        /// few values, so that many are equal in one kind, beside a look at each pair.
        #[test]
        fn sizes_that_fit_nowhere_are_left(sizes in vec(sums(), 0..20), amounts in vec(sums(), 0..20)) {
            let fits = |size: &ResourceSums| amounts.iter().any(|has| size.times_in(*has) > 0);
            let key = |it: &ResourceSums| (it.cores, it.memory, it.gpus);
            let mut expected: Vec<ResourceSums> =
                sizes.iter().filter(|size| !fits(size)).copied().collect();
            expected.sort_unstable_by_key(key);
            let mut left = sizes.clone();
            remove_covered(&mut left, amounts.clone());
            left.sort_unstable_by_key(key);
            prop_assert_eq!(left, expected);
        }
    }
}
