//! Fingerprints of what agents offer, from sums that a batch computes anyway. See
//! [`state::offered`](crate::kernel::state::offered) for what they are for.

use crate::constraint::AttributeFingerprints;
use crate::kernel::state::agents::AgentKey;
use crate::kernel::state::offered::NOT_RECORDED;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::kernel::state::policy::Policy;
use crate::offer::{DEFAULT_ROLE, Offer};

/// An odd number without pattern, from the digits of π.
const MIX: u64 = 0x2437_55d3_5c85_a309;
/// What a thousandth of a MiB and of a GPU count beside a thousandth of a core: odd numbers without pattern, from the
/// digits of e and of √2. Shifted amounts wouldn't do: those of 1024 GPUs would leave nothing of 64 bits.
const MEMORY: u64 = 0xb7e1_5162_8aed_2a6b;
const GPUS: u64 = 0x6a09_e667_f3bc_c909;

/// A sum of amounts in thousandths. It is linear: sums of parts can be added and multiplied.
#[inline]
fn linear(cpus: u64, memory: u64, gpus: u64) -> u64 {
    cpus.wrapping_add(memory.wrapping_mul(MEMORY)).wrapping_add(gpus.wrapping_mul(GPUS))
}

#[cold]
fn hash_of(role: &str) -> u64 {
    role.bytes().fold(1, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(MIX).rotate_left(23))
}

/// Computes the fingerprints of a batch's agents.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferFingerprint {
    /// What one executor on the agent adds. With executors of a fixed size it is the same as if the agent offered that
    /// much more; so nothing changes when an executor starts and the rest is offered.
    executor: u64,
    revocable: bool,
}

impl OfferFingerprint {
    #[cold]
    pub(super) fn new(policy: &Policy) -> OfferFingerprint {
        let ResourceSums { cores, memory, gpus } = executor_size(policy);
        let (memory, gpus) = (memory.get().wrapping_mul(1000), u64::from(gpus.get()) * 1000);
        let executor = linear(cores.millis(), memory, gpus);
        // If the size isn't fixed, each number of executors has a fingerprint of its own.
        let executor = if executor == 0 { MIX } else { executor };
        OfferFingerprint { executor, revocable: policy.config.revocable }
    }

    /// Returns the part of a candidate with these sums of cores, memory and GPUs, whose first offer is `first`.
    /// The parts of an agent's candidates are added up.
    #[inline]
    pub(super) fn part(
        self,
        non_revocable: [u64; 3],
        revocable: [u64; 3],
        first: &Offer<'_>,
    ) -> u64 {
        let [cpus, memory, gpus] = non_revocable;
        let mut part = linear(cpus, memory, gpus);
        if self.revocable {
            let [cpus, memory, gpus] = revocable;
            let revocable = linear(cpus, memory, gpus);
            part = part.wrapping_add(revocable.wrapping_mul(MIX));
        }
        // Mesos lets the attributes of an agent grow, but not change.
        part = part.wrapping_add((first.attributes.len() as u64) << 48);
        // A role of one letter is almost always the default one.
        if first.role.len() > 1 { part.wrapping_add(hash_of(first.role)) } else { part }
    }

    /// Returns the fingerprint of an agent that takes `room` more executors and whose parts add up to `parts`.
    #[inline]
    pub(super) fn of(self, parts: u64, agent: AgentKey, room: u16) -> u32 {
        // The fewer executors it takes, the more it has.
        let whole = parts.wrapping_sub(self.executor.wrapping_mul(u64::from(room)));
        // Never that of no record, which is even.
        const { assert!(NOT_RECORDED == 0) };
        // The upper half of the product depends on all bits.
        ((whole ^ agent.bits()).wrapping_mul(MIX) >> 32) as u32 | 1
    }
}

/// Computes the fingerprints of the details of what is recorded of an agent's offers: those that seldom change.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct DetailsFingerprint(AttributeFingerprints);

impl DetailsFingerprint {
    pub(in crate::kernel) fn new() -> DetailsFingerprint {
        DetailsFingerprint(AttributeFingerprints::new())
    }

    /// Returns the fingerprint of the offer's role and attributes and of this size of executors.
    #[inline]
    pub(super) fn of(&self, size: ResourceSums, offer: &Offer<'_>) -> u64 {
        let ResourceSums { cores, memory, gpus } = size;
        let size = linear(cores.millis(), memory.get(), gpus.get().into());
        let role = if offer.role == DEFAULT_ROLE { 0 } else { hash_of(offer.role) };
        self.0.of(offer.attributes).wrapping_add(size.wrapping_add(role).wrapping_mul(MIX))
    }
}

/// What each executor takes, if that is fixed; otherwise nothing.
pub(super) fn executor_size(policy: &Policy) -> ResourceSums {
    let config = &policy.config;
    let Some(cores) = policy.fixed_cores() else { return ResourceSums::NONE };
    ResourceSums { cores, memory: config.memory_taken(), gpus: config.gpus_at_least() }
}

/// A candidate whose offers aren't recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unrecorded {
    pub(super) candidate: u32,
    /// The fingerprint of what its agent offers.
    pub(super) offered: u32,
    /// Whether they are to be recorded even if the agent's fingerprint is the recorded one.
    pub(super) is_due: bool,
}

impl Unrecorded {
    #[cold]
    pub(super) fn push(list: &mut Vec<Unrecorded>, candidate: u32, offered: u32, recorded: u32) {
        list.push(Unrecorded { candidate, offered, is_due: recorded == NOT_RECORDED });
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FINGERPRINT: OfferFingerprint = OfferFingerprint { executor: MIX, revocable: true };

    fn part(role: &str) -> u64 {
        let offer = Offer::new("o", "S1", "h", &[], &[]).with_role(role);
        FINGERPRINT.part([1000, 1000, 0], [0; 3], &offer)
    }

    /// Goal: offers to different roles have different fingerprints. Method: all roles of two letters, some that have
    /// the same letters, and the default one.
    #[test]
    fn roles_differ() {
        let letters = || (b'a'..=b'z').map(char::from);
        let mut roles: Vec<String> =
            letters().flat_map(|one| letters().map(move |two| format!("{one}{two}"))).collect();
        roles.extend(["*", "eng", "gen", "eng/eng", "eng/eng/eng"].map(String::from));
        let parts: BTreeSet<u64> = roles.iter().map(|role| part(role)).collect();
        assert_eq!(parts.len(), roles.len());
    }

    /// Goal: a fingerprint is never that of no record, and each bit of what is offered counts. Method: agents with many
    /// keys; sums that differ in one bit.
    #[test]
    fn each_bit_counts() {
        for number in 0..200 {
            let agent = AgentKey::new(number * 1001, u64::from(number) * 7919);
            let parts = u64::from(number).wrapping_mul(GPUS);
            let whole = FINGERPRINT.of(parts, agent, 3);
            assert_eq!(whole % 2, 1);
            for bit in 0..64 {
                let other = FINGERPRINT.of(parts ^ 1 << bit, agent, 3);
                assert!(other != whole || bit < 8, "bit {bit} of {parts}");
                assert_eq!(other % 2, 1);
            }
        }
    }
}
