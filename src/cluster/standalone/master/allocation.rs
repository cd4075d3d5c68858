//! Who is offered what: first in, first out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::StandaloneMaster;
use super::registered::{DeclinedResources, OutstandingOffer, RegisteredFramework};
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

impl StandaloneMaster {
    /// Offers what is free.
    pub(super) fn allocate(&mut self, now: Duration) {
        self.allocated_at = now;
        if self.is_recovering() {
            return;
        }
        let mut made: BTreeMap<u64, Vec<Offer>> = BTreeMap::new();
        let ids: Vec<String> = self.workers.keys().cloned().collect();
        for id in ids {
            while let Some((framework, resources)) = self.next_offer(&id, now) {
                let offer = self.make_offer(framework, &id, resources, now);
                made.entry(framework).or_default().push(offer);
            }
        }
        for (framework, offers) in made {
            let offers = Some(Offers { offers });
            self.tell_framework(framework, Event { offers, ..event(Type::Offers) });
        }
    }

    /// The first framework that is to be offered what is free on a worker, and how much of it.
    pub(super) fn next_offer(&self, id: &str, now: Duration) -> Option<(u64, WorkerResources)> {
        let free = self.free(id).filter(is_usable)?;
        self.frameworks.iter().find_map(|(number, framework)| {
            let takes = framework.connection.is_some() && !framework.suppressed;
            if !takes || self.offers.values().any(|it| it.framework == *number && it.worker == id) {
                return None;
            }
            let cpus = free.cpus.min(self.cores_left(*number, framework));
            let offered = WorkerResources { cpus, ..free.clone() };
            (is_usable(&offered) && !framework.has_declined(id, &offered, now))
                .then_some((*number, offered))
        })
    }

    /// How many cores more a framework may be offered.
    pub(super) fn cores_left(&self, number: u64, framework: &RegisteredFramework) -> Scalar {
        let Some(most) = self.settings.max_cores else { return Scalar::MAX };
        let offered = self.offers.values().filter(|offer| offer.framework == number);
        let offered = offered.map(|offer| offer.resources.cpus);
        let tasks = self.workers.values().flat_map(|worker| &worker.tasks);
        let own = tasks.filter(|(key, task)| key.framework == framework.id && !task.has_ended);
        let used = own.map(|(_, task)| task.resources.cpus);
        offered.chain(used).fold(most, Scalar::saturating_sub)
    }

    /// What is free on a worker, if it may be offered.
    pub(super) fn free(&self, id: &str) -> Option<WorkerResources> {
        let worker = self.workers.get(id)?;
        if worker.connection.is_none() || worker.is_unreachable || worker.is_draining {
            return None;
        }
        let offers = self.offers.values().filter(|offer| offer.worker == id);
        let taken = offers.fold(worker.used(), |sum, offer| sum.plus(&offer.resources));
        Some(worker.total.minus(&taken))
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
            framework.declined.retain(|it| {
                let is_less = it.worker == worker && resources.covers(&it.resources);
                it.until > now && !(is_less && it.until <= until)
            });
            let worker = worker.to_owned();
            framework.declined.push(DeclinedResources { worker, resources, until });
        }
    }
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
