//! Carving executors' resources from offers: exact pieces, each kind from one supply, reserved resources first.

use super::candidates::{ScalarSource, ScalarSources, ScalarSums};
use super::eligibility::{Eligibility, Supply, TaskSupplies};
use super::piece::{Amount, Piece, ResourcePlace};
use crate::config::Config;
use crate::offer::{Offer, Resource, ResourceKind};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, Scalar};

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
        pieces.push(scalar_piece(self.at, thousandths));
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

/// The offers that are carved together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarveGroup<'a> {
    pub(crate) batch: &'a [Offer<'a>],
    /// Their positions in the batch, at least one.
    pub(crate) offers: &'a [u32],
    pub(crate) config: &'a Config,
    /// What is offered that is not revocable.
    pub(crate) firm: ScalarSums,
    /// Which resources hold it.
    pub(crate) sources: ScalarSources,
}

/// The only resource of a group that holds cores and the only one that holds memory, neither of them revocable.
#[derive(Clone, Copy, Debug)]
struct OnlySources {
    cpus: ResourcePlace,
    memory: ResourcePlace,
}

impl OnlySources {
    /// `None` if cores or memory lie in several resources or in none.
    #[inline(always)]
    fn of(group: &CarveGroup<'_>) -> Option<OnlySources> {
        let ScalarSources { cpus, memory } = group.sources;
        Some(OnlySources { cpus: cpus.only()?, memory: memory.only()? })
    }

    /// Appends the pieces of an executor without GPUs and port.
    #[inline(always)]
    fn carve(self, resources: &ExecutorResources, pieces: &mut Vec<Piece>) {
        let amounts =
            [(self.cpus, resources.cores.millis()), (self.memory, thousandths(resources.memory))];
        for (at, thousandths) in amounts {
            if thousandths > 0 {
                pieces.push(scalar_piece(at, thousandths));
            }
        }
    }
}

fn thousandths(memory: Mebibytes) -> u64 {
    memory.get() * 1000
}

#[inline]
fn scalar_piece(at: ResourcePlace, thousandths: u64) -> Piece {
    let amount = Amount::Scalar(Scalar::from_thousandths(thousandths));
    Piece { offer: at.offer(), resource: at.resource(), amount }
}

/// Carves executors of the configured shape from one group, one after the other.
#[derive(Debug)]
pub(crate) struct ExecutorCarver<'a> {
    group: CarveGroup<'a>,
    /// Set if each executor takes one piece of each of these, as it mostly is: then nothing is searched.
    only: Option<OnlySources>,
    carver: Option<ResourceCarver<'a>>,
}

impl<'a> ExecutorCarver<'a> {
    /// For this number of executors, of which none takes more than the first one.
    #[inline(always)]
    pub(crate) fn new(
        group: CarveGroup<'a>,
        executors: u32,
        first: &ExecutorResources,
    ) -> ExecutorCarver<'a> {
        let all = |each: u64| each.saturating_mul(executors.into());
        let are_plain = first.gpus == Gpus::ZERO
            && first.port.is_none()
            && all(first.cores.millis()) <= group.firm.cpus
            && all(thousandths(first.memory)) <= group.firm.memory;
        let only = OnlySources::of(&group).filter(|_| are_plain);
        ExecutorCarver { group, only, carver: None }
    }

    /// Appends the pieces of the next executor.
    #[inline(always)]
    pub(crate) fn carve(&mut self, resources: &ExecutorResources, pieces: &mut Vec<Piece>) {
        match self.only {
            Some(only) => only.carve(resources, pieces),
            None => self.search(resources, pieces),
        }
    }

    #[inline(never)]
    fn search(&mut self, resources: &ExecutorResources, pieces: &mut Vec<Piece>) {
        let carver = self.carver.get_or_insert_with(|| ResourceCarver::new(&self.group));
        carver.carve(resources, pieces);
    }
}

/// Carves from one group, searching for resources that have something left.
#[derive(Debug)]
struct ResourceCarver<'a> {
    offers: OfferGroup<'a>,
    cpus: CarveCursor,
    memory: CarveCursor,
    gpus: CarveCursor,
}

impl<'a> ResourceCarver<'a> {
    fn new(group: &CarveGroup<'a>) -> ResourceCarver<'a> {
        let CarveGroup { batch, offers: group, config, firm, sources } = *group;
        // All offers of a group are made to one role.
        let eligibility = Eligibility::new(&batch[group[0] as usize], config);
        let reserved_first = config.compatibility.reserved_first;
        let offers = OfferGroup { batch, group, eligibility, reserved_first };
        let cursor = CarveCursor::of_firm;
        ResourceCarver {
            cpus: cursor(ResourceKind::Cpus, &offers, firm.cpus, sources.cpus),
            memory: cursor(ResourceKind::Memory, &offers, firm.memory, sources.memory),
            gpus: CarveCursor::new(ResourceKind::Gpus, Supply::NonRevocable, &offers, firm.gpus),
            offers,
        }
    }

    /// Appends the pieces of one executor. Each takes as much as the one before, except that GPUs may be for the first
    /// one only.
    fn carve(&mut self, resources: &ExecutorResources, pieces: &mut Vec<Piece>) {
        let [cpus, memory, gpus] = amounts(resources);
        self.cpus.cut(&self.offers, cpus, pieces);
        self.memory.cut(&self.offers, memory, pieces);
        self.gpus.cut(&self.offers, gpus, pieces);
        if let Some(port) = resources.port {
            pieces.extend(self.offers.find_port(port));
        }
    }
}

/// Thousandths of cores, memory and GPUs.
fn amounts(resources: &ExecutorResources) -> [u64; 3] {
    let ExecutorResources { cores, memory, gpus, .. } = resources;
    [cores.millis(), thousandths(*memory), u64::from(gpus.get()) * 1000]
}

/// Carves tasks of unequal sizes, one after the other, each kind from the supply that was chosen for it.
#[derive(Debug)]
pub(crate) struct TaskCarver<'a> {
    group: CarveGroup<'a>,
    /// Set if what isn't revocable lies in these alone: a task that takes no more needs no search.
    only: Option<OnlySources>,
    carver: Option<ResourceCarver<'a>>,
    /// For cores, memory and GPUs; made for the first task that takes something revocable.
    revocable: Option<[CarveCursor; 3]>,
}

impl<'a> TaskCarver<'a> {
    #[inline(always)]
    pub(crate) fn new(group: CarveGroup<'a>) -> TaskCarver<'a> {
        TaskCarver { only: OnlySources::of(&group), group, carver: None, revocable: None }
    }

    /// Appends the pieces of one task, which the supplies must have.
    #[inline(always)]
    pub(crate) fn carve(
        &mut self,
        resources: &ExecutorResources,
        supplies: TaskSupplies,
        pieces: &mut Vec<Piece>,
    ) {
        match self.only {
            Some(only) if supplies == TaskSupplies::FIRM && resources.gpus == Gpus::ZERO => {
                only.carve(resources, pieces);
            }
            _ => self.search(resources, supplies, pieces),
        }
    }

    /// What was carved without a search isn't missing here: all of it came from a resource in which the cursor stays.
    #[inline(never)]
    fn search(
        &mut self,
        resources: &ExecutorResources,
        supplies: TaskSupplies,
        pieces: &mut Vec<Piece>,
    ) {
        let carver = self.carver.get_or_insert_with(|| ResourceCarver::new(&self.group));
        if supplies == TaskSupplies::FIRM {
            return carver.carve(resources, pieces);
        }
        let ResourceCarver { offers, cpus, memory, gpus } = carver;
        let kinds = [ResourceKind::Cpus, ResourceKind::Memory, ResourceKind::Gpus];
        let cursor = |kind| CarveCursor::new(kind, Supply::Revocable, offers, 0);
        let revocable = self.revocable.get_or_insert_with(|| kinds.map(cursor));
        let firm = [cpus, memory, gpus];
        let cursors = firm.into_iter().zip(revocable).zip(supplies.each());
        for (((firm, revocable), supply), amount) in cursors.zip(amounts(resources)) {
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
    use crate::resources::MilliCpus;
    use proptest::prelude::*;

    fn resource(kind: u8, reserved: bool, thousandths: u64) -> Resource<'static> {
        let name = ["cpus", "mem", "disk"][usize::from(kind)];
        let scalar = Value::Scalar(Scalar::from_thousandths(thousandths));
        let resource = Resource::new(name, scalar);
        if reserved { resource.reserved_for("etl") } else { resource }
    }

    /// What is offered, as (0: cores, 1: memory, 2: other; whether it is reserved; how much), by offer.
    type Offered = Vec<Vec<(u8, bool, u64)>>;

    fn offered() -> impl Strategy<Value = Offered> {
        prop::collection::vec(
            prop::collection::vec((0u8..3, any::<bool>(), 0u64..5_000), 0..6),
            1..4,
        )
    }

    fn sum(offers: &Offered, wanted: u8, only_reserved: bool) -> u64 {
        let all = offers.iter().flatten();
        all.filter(|(kind, reserved, _)| *kind == wanted && (*reserved || !only_reserved))
            .map(|r| r.2)
            .sum()
    }

    /// Has `carve` make pieces of these offers.
    fn carved(offers: &Offered, carve: impl FnOnce(CarveGroup<'_>, &mut Vec<Piece>)) -> Vec<Piece> {
        let resources: Vec<Vec<Resource<'_>>> = offers
            .iter()
            .map(|offer| {
                offer.iter().map(|(kind, reserved, n)| resource(*kind, *reserved, *n)).collect()
            })
            .collect();
        let batch: Vec<Offer<'_>> =
            resources.iter().map(|own| Offer::new("o", "a", "h", own, &[])).collect();
        let group: Vec<u32> = (0..batch.len() as u32).collect();
        let config = Config::builder().build().unwrap();
        let (cpus, memory) = (sum(offers, 0, false), sum(offers, 1, false));
        let firm = ScalarSums { cpus, memory, gpus: 0 };
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
        let mut pieces = Vec::new();
        carve(
            CarveGroup { batch: &batch, offers: &group, config: &config, firm, sources },
            &mut pieces,
        );
        pieces
    }

    fn executor(cores: u64, memory: u64) -> ExecutorResources {
        let (cores, memory) = (MilliCpus::from_millis(cores), Mebibytes::new(memory));
        ExecutorResources { cores, memory, ..ExecutorResources::NONE }
    }

    /// Reserved resources come before others, and no resource gives more than it has.
    fn prefer_reservations(offers: &Offered, pieces: &[Piece]) -> Result<(), TestCaseError> {
        let mut left: Vec<Vec<u64>> =
            offers.iter().map(|offer| offer.iter().map(|r| r.2).collect()).collect();
        for piece in pieces {
            let (offer, at) = (piece.offer as usize, piece.resource as usize);
            prop_assert!(left[offer][at] >= thousandths(piece));
            left[offer][at] -= thousandths(piece);
        }
        for kind in 0..2u8 {
            let place = |piece: &Piece| offers[piece.offer as usize][piece.resource as usize];
            let of_kind = || pieces.iter().filter(|piece| place(piece).0 == kind);
            if of_kind().any(|piece| !place(piece).1) {
                let reserved: u64 = of_kind().filter(|it| place(it).1).map(thousandths).sum();
                prop_assert_eq!(reserved, sum(offers, kind, true));
            }
        }
        Ok(())
    }

    proptest! {
        /// Goal: executors' pieces add up to what they take, come from resources that have as much, reserved ones
        /// first, and are the same whether they are searched or not. Method: random offers, carved as often as they
        /// allow.
        #[test]
        fn pieces_add_up_and_prefer_reservations(
            offers in offered(),
            cores in 1u64..3_000,
            memory in 1u64..3,
        ) {
            let fit = (sum(&offers, 0, false) / cores).min(sum(&offers, 1, false) / (1000 * memory));
            let each = executor(cores, memory);
            let pieces = carved(&offers, |group, pieces| {
                let mut carver = ExecutorCarver::new(group, fit as u32, &each);
                (0..fit).for_each(|_| carver.carve(&each, pieces));
            });
            let searched = carved(&offers, |group, pieces| {
                let mut carver = ResourceCarver::new(&group);
                (0..fit).for_each(|_| carver.carve(&each, pieces));
            });
            prop_assert_eq!(&pieces, &searched);
            let taken: u64 = pieces.iter().map(thousandths).sum();
            prop_assert_eq!(taken, fit * (cores + 1000 * memory));
            prefer_reservations(&offers, &pieces)?;
        }

        /// Goal: the same of tasks of unequal sizes, of which some take no memory. Method: random offers, carved for
        /// the tasks that still fit.
        #[test]
        fn tasks_pieces_add_up(
            offers in offered(),
            tasks in prop::collection::vec((1u64..2_000, 0u64..3), 0..8),
        ) {
            let (mut left_cores, mut left_memory) = (sum(&offers, 0, false), sum(&offers, 1, false));
            let fits = |(cores, memory): &(u64, u64)| {
                let fits = *cores <= left_cores && memory * 1000 <= left_memory;
                left_cores -= if fits { *cores } else { 0 };
                left_memory -= if fits { memory * 1000 } else { 0 };
                fits
            };
            let tasks: Vec<(u64, u64)> = tasks.into_iter().filter(fits).collect();
            let sizes = || tasks.iter().map(|(cores, memory)| executor(*cores, *memory));
            let pieces = carved(&offers, |group, pieces| {
                let mut carver = TaskCarver::new(group);
                sizes().for_each(|size| carver.carve(&size, TaskSupplies::FIRM, pieces));
            });
            let searched = carved(&offers, |group, pieces| {
                let mut carver = ResourceCarver::new(&group);
                sizes().for_each(|size| carver.carve(&size, pieces));
            });
            prop_assert_eq!(&pieces, &searched);
            let taken: u64 = pieces.iter().map(thousandths).sum();
            prop_assert_eq!(taken, tasks.iter().map(|(cores, memory)| cores + 1000 * memory).sum::<u64>());
            prefer_reservations(&offers, &pieces)?;
        }
    }

    fn thousandths(piece: &Piece) -> u64 {
        match piece.amount {
            Amount::Scalar(scalar) => scalar.thousandths(),
            Amount::Port(_) => 0,
        }
    }
}
