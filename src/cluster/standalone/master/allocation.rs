//! Who is offered what: first in, first out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::StandaloneMaster;
use super::registered::{
    DeclinedResources, OutstandingOffer, RegisteredFramework, RegisteredWorker,
};
use super::statuses::event;
use crate::cluster::standalone::protocol::{WorkerAttribute, WorkerResources};
use crate::mesos_v1::messages::event::{Offers, Rescind, Type};
use crate::mesos_v1::messages::{
    AllocationInfo, Attribute, Event, Offer, Range, Ranges, Resource, Scalar as WireScalar, Text,
    ValueType,
};
use crate::resources::Scalar;

/// The shortest time for which declined resources are held back: an offer that is declined at once isn't made again
/// at once.
pub(super) const REFUSE_MIN: Duration = Duration::from_secs(1);
/// The time for which declined resources are held back if the framework names none.
pub(super) const REFUSE_DEFAULT: Duration = Duration::from_secs(5);
/// The longest such time.
const REFUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// What is offered, by worker, and how many cores more each framework may be offered. It is counted once for all offers
/// that are made after a call.
#[derive(Debug)]
pub(super) struct OfferShares {
    /// The frameworks that have an open offer of a worker, and the sum of these offers.
    of_workers: HashMap<String, (BTreeSet<u64>, WorkerResources)>,
    /// `None` without a cap.
    cores_left: Option<HashMap<u64, Scalar>>,
}

impl OfferShares {
    /// How many cores more a framework may be offered.
    fn cores_left_of(&self, framework: u64) -> Scalar {
        match &self.cores_left {
            None => Scalar::MAX,
            Some(left) => left.get(&framework).copied().unwrap_or_default(),
        }
    }

    fn add(&mut self, framework: u64, worker: &str, resources: &WorkerResources) {
        let (frameworks, sum) = self.of_workers.entry(worker.to_owned()).or_default();
        frameworks.insert(framework);
        *sum = sum.plus(resources);
        let left = self.cores_left.as_mut().and_then(|left| left.get_mut(&framework));
        if let Some(left) = left {
            *left = left.saturating_sub(resources.cpus);
        }
    }
}

impl StandaloneMaster {
    /// Offers what is free.
    pub(super) fn allocate(&mut self, now: Duration) {
        self.allocated_at = now;
        if self.is_recovering() {
            return;
        }
        let mut made: BTreeMap<u64, Vec<Offer>> = BTreeMap::new();
        let mut shares = self.offer_shares();
        for id in self.workers_with_room(&shares) {
            while let Some((framework, resources)) = self.next_offer(&id, &shares, now) {
                shares.add(framework, &id, &resources);
                let offer = self.make_offer(framework, &id, resources, now);
                made.entry(framework).or_default().push(offer);
            }
        }
        for (framework, offers) in made {
            let offers = Some(Offers { offers });
            self.tell_framework(framework, Event { offers, ..event(Type::Offers) });
        }
    }

    /// The workers that may have something to offer, those with the most free cores first: a framework that takes the
    /// offers in their order then fills the same workers as Spark's own master.
    fn workers_with_room(&self, shares: &OfferShares) -> Vec<String> {
        if !self.frameworks.values().any(RegisteredFramework::takes_offers) {
            return Vec::new();
        }
        let workers = self.workers.iter().filter(|(_, worker)| worker.may_be_offered());
        let mut all: Vec<(Reverse<Scalar>, &String)> = workers
            .filter_map(|(id, worker)| {
                let offered = shares.of_workers.get(id).map(|(_, offered)| offered);
                let cores = free_cores(worker, offered)?;
                Some((Reverse(cores), id))
            })
            .collect();
        all.sort();
        all.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// What is offered, counted anew.
    pub(super) fn offer_shares(&self) -> OfferShares {
        let cores_left = self.settings.max_cores.map(|most| self.cores_left(most));
        let mut shares = OfferShares { of_workers: HashMap::new(), cores_left };
        for offer in self.offers.values() {
            shares.add(offer.framework, &offer.worker, &offer.resources);
        }
        shares
    }

    /// How many cores more each framework may have.
    fn cores_left(&self, most: Scalar) -> HashMap<u64, Scalar> {
        // Of frameworks with executors, by id.
        let mut own: HashMap<&str, Scalar> = HashMap::new();
        let tasks = self.workers.values().flat_map(|worker| &worker.tasks);
        for (key, task) in tasks.filter(|(_, task)| !task.has_ended) {
            let left = own.entry(&key.framework).or_insert(most);
            *left = left.saturating_sub(task.resources.cpus);
        }
        let left = |it: &RegisteredFramework| own.get(it.id.as_str()).copied().unwrap_or(most);
        self.frameworks.iter().map(|(number, it)| (*number, left(it))).collect()
    }

    /// The first framework that is to be offered what is free on a worker, and how much of it.
    pub(super) fn next_offer(
        &self,
        id: &str,
        shares: &OfferShares,
        now: Duration,
    ) -> Option<(u64, WorkerResources)> {
        let free = self.free(id, shares).filter(is_usable)?;
        let holders = shares.of_workers.get(id).map(|(frameworks, _)| frameworks);
        self.frameworks.iter().find_map(|(number, framework)| {
            if !framework.takes_offers() || holders.is_some_and(|holders| holders.contains(number))
            {
                return None;
            }
            let cpus = free.cpus.min(shares.cores_left_of(*number));
            let offered = WorkerResources { cpus, ..free.clone() };
            (is_usable(&offered) && !framework.has_declined(id, &offered, now))
                .then_some((*number, offered))
        })
    }

    /// What is free on a worker, if it may be offered.
    pub(super) fn free(&self, id: &str, shares: &OfferShares) -> Option<WorkerResources> {
        let worker = self.workers.get(id).filter(|worker| worker.may_be_offered())?;
        let unused = worker.total.minus(&worker.used());
        Some(match shares.of_workers.get(id) {
            None => unused,
            Some((_, offered)) => unused.minus(offered),
        })
    }

    fn make_offer(
        &mut self,
        framework: u64,
        worker: &str,
        resources: WorkerResources,
        now: Duration,
    ) -> Offer {
        self.totals.offers += 1;
        let (id, number) = self.new_id('O');
        let mut offer =
            Offer { id: id.as_str().into(), agent_id: worker.into(), ..Offer::default() };
        if let Some(framework) = self.frameworks.get(&framework) {
            let allocated = AllocationInfo { role: Some(framework.role().to_owned()) };
            offer.framework_id = framework.id.as_str().into();
            offer.resources = wire_resources(&resources, &allocated);
            offer.allocation_info = Some(allocated);
        }
        if let Some(worker) = self.workers.get(worker) {
            offer.hostname.clone_from(&worker.hostname);
            offer.attributes = worker.attributes.iter().map(wire_attribute).collect();
        }
        let worker = worker.to_owned();
        self.offers
            .insert(number, OutstandingOffer { id, framework, worker, resources, made_at: now });
        offer
    }

    /// Takes back the offers that `is_meant` selects. Their frameworks are told if they are connected.
    pub(super) fn rescind(&mut self, is_meant: impl Fn(&OutstandingOffer) -> bool) {
        let meant: Vec<u64> =
            self.offers.iter().filter(|(_, it)| is_meant(it)).map(|(number, _)| *number).collect();
        for number in meant {
            if let Some(offer) = self.offers.remove(&number) {
                let rescind = Some(Rescind { offer_id: offer.id.into() });
                self.tell_framework(offer.framework, Event { rescind, ..event(Type::Rescind) });
            }
        }
    }

    /// Holds resources back from a framework.
    pub(super) fn hold_back(
        &mut self,
        number: u64,
        worker: &str,
        resources: WorkerResources,
        refuse: Duration,
        now: Duration,
    ) {
        if let Some(framework) = self.frameworks.get_mut(&number) {
            let until = now + refuse.clamp(REFUSE_MIN, REFUSE_MAX);
            let declined = framework.declined.entry(worker.to_owned()).or_default();
            declined.retain(|it| {
                let is_less = resources.covers(&it.resources);
                it.until > now && !(is_less && it.until <= until)
            });
            declined.push(DeclinedResources { resources, until });
        }
    }
}

/// A worker's free cores, if it has free memory as well. It is for all workers after each call, and leaves out what an
/// executor can be without.
fn free_cores(worker: &RegisteredWorker, offered: Option<&WorkerResources>) -> Option<Scalar> {
    let tasks = worker.tasks.values().filter(|task| !task.has_ended);
    let given = tasks.map(|task| &task.resources).chain(offered);
    let all = (worker.total.cpus, worker.total.mem);
    let (cpus, mem) = given.fold(all, |(cpus, mem), given| {
        (cpus.saturating_sub(given.cpus), mem.saturating_sub(given.mem))
    });
    (cpus > Scalar::ZERO && mem > Scalar::ZERO).then_some(cpus)
}

/// Whether an executor could run on it.
fn is_usable(resources: &WorkerResources) -> bool {
    resources.cpus > Scalar::ZERO && resources.mem > Scalar::ZERO
}

fn wire_resources(resources: &WorkerResources, allocated: &AllocationInfo) -> Vec<Resource> {
    let resource = |name: &str| Resource {
        name: name.to_owned(),
        allocation_info: Some(allocated.clone()),
        ..Resource::default()
    };
    let scalars = resources.scalars().into_iter().filter(|(_, amount)| *amount > Scalar::ZERO);
    let mut wire: Vec<Resource> = scalars
        .map(|(name, amount)| Resource {
            r#type: ValueType::Scalar.into(),
            scalar: Some(WireScalar { value: amount.as_f64() }),
            ..resource(name)
        })
        .collect();
    if !resources.ports.is_empty() {
        let range = |it: &crate::resources::PortRange| Range { begin: it.begin, end: it.end };
        let range = resources.ports.ranges().iter().map(range).collect();
        wire.push(Resource {
            r#type: ValueType::Ranges.into(),
            ranges: Some(Ranges { range }),
            ..resource("ports")
        });
    }
    wire
}

fn wire_attribute(attribute: &WorkerAttribute) -> Attribute {
    let name = attribute.name.clone();
    let number = attribute.value.parse::<f64>().ok().filter(|number| number.is_finite());
    match number {
        Some(value) => Attribute {
            name,
            r#type: ValueType::Scalar.into(),
            scalar: Some(WireScalar { value }),
            ..Attribute::default()
        },
        None => Attribute {
            name,
            r#type: ValueType::Text.into(),
            text: Some(Text { value: attribute.value.clone() }),
            ..Attribute::default()
        },
    }
}
