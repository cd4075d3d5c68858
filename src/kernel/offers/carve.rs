//! Carving executors' resources from offers: exact pieces, each kind from one supply, reserved resources first.

use super::candidates::{ScalarSource, ScalarSources, ScalarSums};
use super::eligibility::{Eligibility, Supply, TaskSupplies};
use super::piece::{Amount, Piece, ResourcePlace};
use crate::config::Config;
use crate::offer::{Offer, Resource, ResourceKind};
use crate::resources::Scalar;

/// Which resources a cursor takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preference {
    /// Reserved resources.
    Reserved,
    /// Unreserved resources, after the reserved ones.
    Unreserved,
    /// All resources.
    Any,
}

/// A position among the offers of one group, for one kind of scalar. Reserved resources are used first, then unreserved
/// ones, each in the order of the offers; or all in that order. Revocable resources are used only when too little for
/// one executor is left of the others, because no executor may have both.
#[derive(Clone, Copy, Debug)]
struct CarveCursor {
    kind: ResourceKind,
    supply: Supply,
    preference: Preference,
    /// Where to continue: the offer's position in the group and the resource's position in the offer.
    offer: usize,
    resource: usize,
    /// The current resource.
    at: ResourcePlace,
    /// What is left of the current resource, in thousandths.
    left: u64,
    /// What is left of all non-revocable resources, in thousandths.
    firm: u64,
}

impl Preference {
    fn is_of(self, resource: &Resource<'_>) -> bool {
        self == Preference::Any || resource.is_reserved() == (self == Preference::Reserved)
    }
}

impl CarveCursor {
    fn new(kind: ResourceKind, supply: Supply, offers: &OfferGroup<'_>, firm: u64) -> CarveCursor {
        let preference = if offers.reserved_first { Preference::Reserved } else { Preference::Any };
        let at = ResourcePlace::default();
        CarveCursor { kind, supply, preference, offer: 0, resource: 0, at, left: 0, firm }
    }

    /// A cursor of non-revocable resources. If one resource holds all of `firm`, as it usually does, the cursor starts
    /// there without a search.
    fn of_firm(
        kind: ResourceKind,
        offers: &OfferGroup<'_>,
        firm: u64,
        source: ScalarSource,
    ) -> CarveCursor {
        let cursor = CarveCursor::new(kind, Supply::NonRevocable, offers, firm);
        source.only().map_or(cursor, |at| CarveCursor { at, left: firm, ..cursor })
    }

    /// Moves to the next usable resource. Returns `false` at the end.
    fn advance(&mut self, offers: &OfferGroup<'_>) -> bool {
        loop {
            let Some(offer) = offers.group.get(self.offer) else {
                if self.preference != Preference::Reserved {
                    return false;
                }
                (self.preference, self.offer, self.resource) = (Preference::Unreserved, 0, 0);
                continue;
            };
            let Some(resource) = offers.batch[*offer as usize].resources.get(self.resource) else {
                self.offer += 1;
                self.resource = 0;
                continue;
            };
            self.at = ResourcePlace::new(*offer, self.resource as u32);
            self.resource += 1;
            // The most selective condition comes first.
            if resource.kind == self.kind
                && self.preference.is_of(resource)
                && offers.eligibility.supply(resource) == Some(self.supply)
            {
                self.left = resource.quantity();
                return true;
            }
        }
    }

    /// Takes `thousandths` for one executor. All executors of a group take the same amount.
    #[inline]
    fn cut(&mut self, offers: &OfferGroup<'_>, thousandths: u64, pieces: &mut Vec<Piece>) {
        if thousandths == 0 {
            return;
        }
        if thousandths > self.left {
            return self.cut_across(offers, thousandths, pieces);
        }
        self.cut_current(thousandths, pieces);
    }

    /// Whether the current resource has that much left, which isn't nothing.
    #[inline]
    fn has(&self, thousandths: u64) -> bool {
        (1..=self.left).contains(&thousandths)
    }

    /// Takes all `thousandths` for one executor from the current resource.
    #[inline]
    fn cut_current(&mut self, thousandths: u64, pieces: &mut Vec<Piece>) {
        self.firm = self.firm.saturating_sub(thousandths);
        self.cut_here(thousandths, pieces);
    }

    /// Takes `thousandths` from several resources, or from the next one.
    fn cut_across(
        &mut self,
        offers: &OfferGroup<'_>,
        mut thousandths: u64,
        pieces: &mut Vec<Piece>,
    ) {
        if self.supply == Supply::NonRevocable && self.firm < thousandths {
            *self = CarveCursor::new(self.kind, Supply::Revocable, offers, 0);
        }
        self.firm = self.firm.saturating_sub(thousandths);
        while thousandths > 0 {
            if self.left == 0 && !self.advance(offers) {
                debug_assert!(false, "a plan takes more than is offered");
                return;
            }
            let taken = self.left.min(thousandths);
            if taken > 0 {
                self.cut_here(taken, pieces);
            }
            thousandths -= taken;
        }
    }

    /// Takes `thousandths` from the current resource.
    fn cut_here(&mut self, thousandths: u64, pieces: &mut Vec<Piece>) {
        let amount = Amount::Scalar(Scalar::from_thousandths(thousandths));
        pieces.push(Piece { offer: self.at.offer(), resource: self.at.resource(), amount });
        self.left -= thousandths;
    }
}

/// The offers of one group, by their positions in the batch, and which of their resources may be taken.
#[derive(Debug)]
struct OfferGroup<'a> {
    batch: &'a [Offer<'a>],
    group: &'a [u32],
    eligibility: Eligibility<'a>,
    reserved_first: bool,
}

/// Carves the executors of one group, one after the other.
#[derive(Debug)]
pub(crate) struct ResourceCarver<'a> {
    offers: OfferGroup<'a>,
    cpus: CarveCursor,
    memory: CarveCursor,
    gpus: CarveCursor,
}

impl<'a> ResourceCarver<'a> {
    /// `group` holds the positions of its offers in `batch`, at least one. `firm` is what is offered that is not
    /// revocable, and `sources` says which resources hold it. Always inlined: it is large, and would be copied.
    #[inline(always)]
    pub(crate) fn new(
        batch: &'a [Offer<'a>],
        group: &'a [u32],
        config: &Config,
        firm: ScalarSums,
        sources: ScalarSources,
    ) -> ResourceCarver<'a> {
        // All offers of a group are made to one role.
        let eligibility = Eligibility::new(&batch[group[0] as usize], config);
        let offers = OfferGroup {
            batch,
            group,
            eligibility,
            reserved_first: config.compatibility.reserved_first,
        };
        ResourceCarver {
            cpus: CarveCursor::of_firm(ResourceKind::Cpus, &offers, firm.cpus, sources.cpus),
            memory: CarveCursor::of_firm(
                ResourceKind::Memory,
                &offers,
                firm.memory,
                sources.memory,
            ),
            gpus: CarveCursor::new(ResourceKind::Gpus, Supply::NonRevocable, &offers, firm.gpus),
            offers,
        }
    }

    /// Appends the pieces of one executor: thousandths of cores, memory and GPUs, and a port. Each executor takes as
    /// much as the one before, except that GPUs may be for the first one only.
    pub(crate) fn carve(
        &mut self,
        cpus: u64,
        memory: u64,
        gpus: u64,
        port: Option<u16>,
        pieces: &mut Vec<Piece>,
    ) {
        self.cpus.cut(&self.offers, cpus, pieces);
        self.memory.cut(&self.offers, memory, pieces);
        self.gpus.cut(&self.offers, gpus, pieces);
        if let Some(port) = port {
            pieces.extend(self.offers.find_port(port));
        }
    }

    /// [`ResourceCarver::carve`] for a task, without a port. Always inlined: most tasks take two pieces of the resources
    /// where the cursors are.
    #[inline(always)]
    fn carve_task(&mut self, cpus: u64, memory: u64, gpus: u64, pieces: &mut Vec<Piece>) {
        if gpus > 0 || !self.cpus.has(cpus) || !self.memory.has(memory) {
            return self.carve(cpus, memory, gpus, None, pieces);
        }
        self.cpus.cut_current(cpus, pieces);
        self.memory.cut_current(memory, pieces);
    }
}

/// Carves tasks of unequal sizes, one after the other, each kind from the supply that was chosen for it.
#[derive(Debug)]
pub(crate) struct TaskCarver<'a> {
    firm: ResourceCarver<'a>,
    /// For cores, memory and GPUs; made for the first task that takes something revocable.
    revocable: Option<[CarveCursor; 3]>,
}

impl<'a> TaskCarver<'a> {
    /// As [`ResourceCarver::new`].
    #[inline(always)]
    pub(crate) fn new(
        batch: &'a [Offer<'a>],
        group: &'a [u32],
        config: &Config,
        firm: ScalarSums,
        sources: ScalarSources,
    ) -> TaskCarver<'a> {
        let firm = ResourceCarver::new(batch, group, config, firm, sources);
        TaskCarver { firm, revocable: None }
    }

    /// Appends the pieces of one task: thousandths of cores, memory and GPUs, which the supplies must have.
    #[inline]
    pub(crate) fn carve(
        &mut self,
        thousandths: [u64; 3],
        supplies: TaskSupplies,
        pieces: &mut Vec<Piece>,
    ) {
        let [cpus, memory, gpus] = thousandths;
        match supplies {
            TaskSupplies::FIRM => self.firm.carve_task(cpus, memory, gpus, pieces),
            _ => self.carve_revocable(thousandths, supplies.each(), pieces),
        }
    }

    #[cold]
    fn carve_revocable(
        &mut self,
        thousandths: [u64; 3],
        supplies: [Supply; 3],
        pieces: &mut Vec<Piece>,
    ) {
        let ResourceCarver { offers, cpus, memory, gpus } = &mut self.firm;
        let kinds = [ResourceKind::Cpus, ResourceKind::Memory, ResourceKind::Gpus];
        let cursor = |kind| CarveCursor::new(kind, Supply::Revocable, offers, 0);
        let revocable = self.revocable.get_or_insert_with(|| kinds.map(cursor));
        let firm = [cpus, memory, gpus];
        let cursors = firm.into_iter().zip(revocable).zip(supplies);
        for (((firm, revocable), supply), amount) in cursors.zip(thousandths) {
            match supply {
                Supply::NonRevocable => firm.cut(offers, amount, pieces),
                Supply::Revocable => revocable.cut(offers, amount, pieces),
            }
        }
    }
}

impl OfferGroup<'_> {
    /// Finds the port, in the order in which scalars are taken.
    fn find_port(&self, port: u16) -> Option<Piece> {
        let of_offer = |offer: &u32| {
            let offer = *offer;
            let resources = self.batch[offer as usize].resources.iter().zip(0u32..);
            resources.map(move |(resource, at)| (offer, resource, at))
        };
        let found = self.group.iter().flat_map(of_offer).filter_map(|(offer, resource, at)| {
            let supply = self.eligibility.supply(resource).filter(|_| resource.has_port(port))?;
            Some(((supply, self.reserved_first && !resource.is_reserved()), offer, at))
        });
        let (_, offer, resource) = found.min_by_key(|(order, ..)| *order)?;
        Some(Piece { offer, resource, amount: Amount::Port(port) })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::offer::Value;
    use proptest::prelude::*;

    fn resource(kind: u8, reserved: bool, thousandths: u64) -> Resource<'static> {
        let name = ["cpus", "mem", "disk"][usize::from(kind)];
        let scalar = Value::Scalar(Scalar::from_thousandths(thousandths));
        let resource = Resource::new(name, scalar);
        if reserved { resource.reserved_for("etl") } else { resource }
    }

    proptest! {
        /// Goal: executors get exactly what they take, and reserved resources are used first. Method: random offers,
        /// compared with a naive sum; no piece is unreserved while something reserved is left.
        #[test]
        fn pieces_add_up_and_prefer_reservations(
            offers in prop::collection::vec(
                prop::collection::vec((0u8..3, any::<bool>(), 0u64..5_000), 0..6), 1..4),
            executor in 1u64..3_000,
        ) {
            let resources: Vec<Vec<Resource<'_>>> = offers
                .iter()
                .map(|offer| offer.iter().map(|(kind, reserved, n)| resource(*kind, *reserved, *n)).collect())
                .collect();
            let batch: Vec<Offer<'_>> = resources.iter().map(|own| Offer::new("o", "a", "h", own, &[])).collect();
            let group: Vec<u32> = (0..batch.len() as u32).collect();
            let sum = |wanted: u8, only_reserved: bool| -> u64 {
                let all = offers.iter().flatten();
                all.filter(|(kind, reserved, _)| *kind == wanted && (*reserved || !only_reserved)).map(|r| r.2).sum()
            };
            let fit = (sum(0, false) / executor).min(sum(1, false) / executor);
            let config = Config::builder().build().unwrap();
            let firm = ScalarSums { cpus: sum(0, false), memory: sum(1, false), gpus: 0 };
            let mut sources = ScalarSources::default();
            for (offer, at) in batch.iter().zip(0u32..) {
                for (resource, position) in offer.resources.iter().zip(0u32..) {
                    let source = match resource.kind {
                        ResourceKind::Cpus => &mut sources.cpus,
                        ResourceKind::Memory => &mut sources.memory,
                        _ => continue,
                    };
                    source.add(at, position, resource.quantity());
                }
            }
            let mut carver = ResourceCarver::new(&batch, &group, &config, firm, sources);
            let mut pieces = Vec::new();
            for number in 0..fit {
                let start = pieces.len();
                carver.carve(executor, executor, 0, None, &mut pieces);
                let taken: u64 = pieces[start..].iter().map(thousandths).sum();
                prop_assert_eq!(taken, 2 * executor, "executor {}", number);
            }
            let mut left: Vec<Vec<u64>> =
                offers.iter().map(|offer| offer.iter().map(|r| r.2).collect()).collect();
            for piece in &pieces {
                let (offer, at) = (piece.offer as usize, piece.resource as usize);
                prop_assert!(left[offer][at] >= thousandths(piece));
                left[offer][at] -= thousandths(piece);
            }
            for kind in 0..2u8 {
                let of_kind = |piece: &&Piece| offers[piece.offer as usize][piece.resource as usize].0 == kind;
                let unreserved = |piece: &&Piece| !offers[piece.offer as usize][piece.resource as usize].1;
                if pieces.iter().filter(of_kind).any(|piece| unreserved(&piece)) {
                    let reserved: u64 = pieces.iter().filter(of_kind).filter(|p| !unreserved(p)).map(thousandths).sum();
                    prop_assert_eq!(reserved, sum(kind, true));
                }
            }
        }
    }

    fn thousandths(piece: &Piece) -> u64 {
        match piece.amount {
            Amount::Scalar(scalar) => scalar.thousandths(),
            Amount::Port(_) => 0,
        }
    }
}
