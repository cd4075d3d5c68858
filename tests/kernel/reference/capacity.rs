//! The cluster's capacity in the reference model: what each agent offered in its last batch, whether or not that was
//! something new.

use std::collections::BTreeMap;

use offermill::Timestamp;
use offermill::limits::EXECUTORS_PER_AGENT_MAX;

use super::{Agent, Executor, Life, Model};
use crate::reference::offers::offered;
use crate::world::OfferData;

/// Cores in thousandths, MiB and GPUs.
pub(crate) type Size = [u64; 3];

/// The most that sums may be.
const SATURATED: Size = [u64::MAX, u64::MAX, u32::MAX as u64];

/// What an agent offered in one batch.
#[derive(Clone, Debug)]
pub(crate) struct LastOffered {
    amounts: Size,
    executors: u32,
    /// The number of the next executor at that time.
    since: u64,
    size: Option<Size>,
}

impl Executor {
    pub(crate) fn size(&self) -> Size {
        [self.cores, self.memory, self.gpus]
    }
}

impl Model {
    /// Notes what the batch's agents offer, before anything is placed.
    /// Offers of agents that take no executors are not noted.
    pub(super) fn note_offered(&mut self, batch: &[OfferData], now: Timestamp) {
        let request = self.request();
        let mut sums = BTreeMap::<String, [u128; 3]>::new();
        for offer in batch.iter().filter(|offer| self.is_candidate(offer)) {
            let sum = sums.entry(offer.agent.clone()).or_default();
            for entry in &offer.entries {
                let kind = match entry.name {
                    "cpus" => 0,
                    "mem" => 1,
                    "gpus" => 2,
                    _ => continue,
                };
                sum[kind] += offered(entry).usable_amount(offer.role, &request);
            }
        }
        let memory = request.memory;
        let size = request.cores.map(|cores| [cores, memory, request.gpus.unwrap_or(0).into()]);
        let since = self.executors.len() as u64;
        for (name, [cores, memory, gpus]) in sums {
            let executors = self.on_agent(&name);
            if self.is_refused(&name, now) || executors >= EXECUTORS_PER_AGENT_MAX {
                continue;
            }
            let gpus = (gpus / 1000).min(u32::MAX.into());
            let amounts = [cores, memory / 1000, gpus].map(|amount| amount as u64);
            if let Some(agent) = self.agents.get_mut(&name) {
                agent.offered.push(LastOffered { amounts, executors, since, size });
                agent.sizes.insert(size);
            }
        }
    }

    fn is_refused(&self, name: &str, now: Timestamp) -> bool {
        let is_suspect = |agent: &Agent| now < agent.suspect_until;
        self.excluded_until(name, now).is_some() || self.agents.get(name).is_some_and(is_suspect)
    }

    /// The executors that were ever on an agent, with their numbers.
    fn ever_on<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u64, &'a Executor)> {
        (0..).zip(&self.executors).filter(move |(_, executor)| executor.agent == name)
    }

    /// What the counted executors on an agent use.
    pub(crate) fn used_on(&self, name: &str) -> Size {
        let counted = self.ever_on(name).filter(|(_, executor)| executor.life.counted());
        sum(counted.map(|(_, executor)| executor.size()))
    }

    /// What is free on an agent that was offered, if all executors that were ever there have the one size that was in
    /// force whenever it was offered.
    pub(crate) fn free_on(&self, name: &str) -> Option<Size> {
        let agent = self.agents.get(name)?;
        let last = agent.offered.last()?;
        let size = last.size.filter(|_| agent.sizes.len() == 1)?;
        if self.ever_on(name).any(|(_, executor)| executor.size() != size) {
            return None;
        }
        let since = self.living_on(name).filter(|(number, _)| *number >= last.since).count() as u64;
        // Executors that were bound since are among those that were there before.
        let before = self.living_on(name).count() as u64 - since;
        let ended = u64::from(last.executors).saturating_sub(before);
        let placed = self.placed_since(name, last);
        Some(std::array::from_fn(|kind| {
            let given_back = last.amounts[kind] + size[kind] * ended;
            given_back.min(SATURATED[kind]).saturating_sub(placed[kind])
        }))
    }

    /// What an agent offered last and what is free there, if executors always took all cores of their offers; none if
    /// executors had another size at some time.
    pub(crate) fn whole_offer(&self, name: &str) -> Option<[Size; 2]> {
        let agent = self.agents.get(name)?;
        let last = agent.offered.last().filter(|_| agent.sizes.iter().all(Option::is_none))?;
        if self.ever_on(name).any(|(_, executor)| executor.tag.is_some()) {
            return None;
        }
        let placed = self.placed_since(name, last);
        let free = std::array::from_fn(|kind| last.amounts[kind].saturating_sub(placed[kind]));
        Some([last.amounts, free])
    }

    /// What living executors use that were placed on an agent since it offered this.
    fn placed_since(&self, name: &str, offered: &LastOffered) -> Size {
        let since = self.living_on(name).filter(|(number, _)| *number >= offered.since);
        sum(since.filter(|(_, executor)| !executor.adopted).map(|(_, executor)| executor.size()))
    }

    fn living_on<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u64, &'a Executor)> {
        self.ever_on(name).filter(|(_, executor)| !matches!(executor.life, Life::Ended(_)))
    }
}

fn sum(sizes: impl Iterator<Item = Size>) -> Size {
    sizes.fold([0; 3], |sum, size| std::array::from_fn(|kind| sum[kind] + size[kind]))
}
