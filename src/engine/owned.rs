//! Offers that outlive the buffer that they were read from: what waits in the offer queue.

use std::time::Duration;

use crate::offer::attributes::{self, Items, OwnedAttribute};
use crate::offer::{
    Attribute, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind, Reservations, ReservedBy,
    Resource, Revocability, Value,
};
use crate::resources::{PortRange, Scalar};

use super::cluster_manager::{RecoveredExecutor, Shape};
use crate::kernel::Recovered;

/// An [`Offer`] that owns its parts.
#[derive(Clone, Debug)]
pub struct OwnedOffer {
    /// See [`Offer::id`].
    pub id: String,
    /// See [`Offer::agent_id`].
    pub agent_id: String,
    /// See [`Offer::hostname`].
    pub hostname: String,
    /// See [`Offer::role`].
    pub role: String,
    /// See [`Offer::resources`].
    pub resources: Vec<OwnedResource>,
    /// See [`Offer::attributes`].
    pub attributes: Vec<OwnedAttribute>,
    /// See [`Offer::region`].
    pub region: Option<String>,
    /// See [`Offer::zone`].
    pub zone: Option<String>,
    /// See [`Offer::maintenance_in`].
    pub maintenance_in: Option<Duration>,
    /// The shape that this room was made for, from managers that are asked for executors.
    pub shape: Option<Shape>,
}

/// A [`Resource`] that owns its parts.
#[derive(Clone, Debug)]
pub struct OwnedResource {
    /// See [`Resource::name`].
    pub name: String,
    /// See [`Resource::reservations`].
    pub reservations: OwnedReservations,
    /// How much of it, or which.
    pub value: OwnedValue,
    /// See [`Resource::standing`].
    pub standing: Revocability,
}

/// [`Reservations`] that own their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedReservations {
    /// See [`Reservations::Old`].
    Old {
        /// The role that the resource is reserved for, or [`DEFAULT_ROLE`].
        role: String,
        /// Who reserved it, if it was reserved while the agent ran.
        dynamic: Option<OwnedReservedBy>,
    },
    /// See [`Reservations::Refined`].
    Refined(Vec<OwnedReservation>),
}

/// A [`Reservation`] that owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedReservation {
    /// See [`Reservation::kind`].
    pub kind: ReservationKind,
    /// See [`Reservation::role`].
    pub role: String,
    /// See [`Reservation::by`].
    pub by: OwnedReservedBy,
}

/// A [`ReservedBy`] that owns its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedReservedBy {
    /// See [`ReservedBy::principal`].
    pub principal: Option<String>,
    /// See [`ReservedBy::labels`].
    pub labels: Vec<(String, Option<String>)>,
}

/// A [`Value`] that owns its parts.
#[derive(Clone, Debug)]
pub enum OwnedValue {
    /// A quantity.
    Scalar(Scalar),
    /// Intervals.
    Ranges(Vec<PortRange>),
}

impl OwnedResource {
    /// An unreserved scalar.
    #[must_use]
    pub fn scalar(name: &str, quantity: Scalar) -> OwnedResource {
        Self::new(name, OwnedValue::Scalar(quantity))
    }

    /// Unreserved intervals.
    #[must_use]
    pub fn ranges(name: &str, ranges: Vec<PortRange>) -> OwnedResource {
        Self::new(name, OwnedValue::Ranges(ranges))
    }

    fn new(name: &str, value: OwnedValue) -> OwnedResource {
        let reservations = OwnedReservations::Old { role: DEFAULT_ROLE.to_owned(), dynamic: None };
        OwnedResource { name: name.to_owned(), reservations, value, standing: Revocability::Firm }
    }

    fn borrow<'a>(&'a self, reservations: Reservations<'a>) -> Resource<'a> {
        let value = match &self.value {
            OwnedValue::Scalar(scalar) => Value::Scalar(*scalar),
            OwnedValue::Ranges(ranges) => Value::Ranges(ranges),
        };
        let resource = Resource::new(&self.name, value).with_standing(self.standing);
        resource.with_reservations(reservations)
    }
}

impl OwnedReservations {
    /// Who reserved: one for each reservation that says so.
    fn records(&self) -> Vec<&OwnedReservedBy> {
        match self {
            OwnedReservations::Old { dynamic, .. } => dynamic.iter().collect(),
            OwnedReservations::Refined(stack) => stack.iter().map(|one| &one.by).collect(),
        }
    }

    fn stack(&self) -> &[OwnedReservation] {
        match self {
            OwnedReservations::Old { .. } => &[],
            OwnedReservations::Refined(stack) => stack,
        }
    }
}

/// The borrowed parts of a batch of owned offers, but for what they lie on: [`lend`] ties them together.
#[derive(Debug)]
struct Borrowed<'a> {
    owned: &'a [OwnedOffer],
    resources: Vec<Resource<'a>>,
    attributes: Vec<Attribute<'a>>,
}

/// Lends a batch as the offers that a kernel takes.
pub(super) fn lend<R>(owned: &[OwnedOffer], use_them: impl FnOnce(&[Offer<'_>]) -> R) -> R {
    let resources = || owned.iter().flat_map(|offer| &offer.resources);
    let records = || resources().flat_map(|resource| resource.reservations.records());
    let labels: Vec<Label<'_>> = records()
        .flat_map(|by| &by.labels)
        .map(|(key, value)| (key.as_str(), value.as_deref()))
        .collect();
    let mut rest = &labels[..];
    let records: Vec<ReservedBy<'_>> = records()
        .map(|by| {
            let principal = by.principal.as_deref();
            ReservedBy { principal, labels: split(&mut rest, by.labels.len()) }
        })
        .collect();
    let mut rest = &records[..];
    let stacks: Vec<Reservation<'_>> = resources()
        .flat_map(|resource| {
            let own = split(&mut rest, resource.reservations.records().len());
            resource.reservations.stack().iter().zip(own)
        })
        .map(|(one, by)| Reservation { kind: one.kind, role: &one.role, by: *by })
        .collect();
    let (mut records, mut stacks) = (&records[..], &stacks[..]);
    let lent = resources().map(|resource| {
        let own = split(&mut records, resource.reservations.records().len());
        let stack = split(&mut stacks, resource.reservations.stack().len());
        resource.borrow(match &resource.reservations {
            OwnedReservations::Old { role, .. } => Reservations::Old { role, dynamic: own.first() },
            OwnedReservations::Refined(_) => Reservations::Refined(stack),
        })
    });
    let attributes = || owned.iter().flat_map(|offer| &offer.attributes);
    let items = Items::of(attributes());
    let borrowed = Borrowed {
        owned,
        resources: lent.collect(),
        attributes: attributes::lend(attributes(), &items),
    };
    use_them(&borrowed.offers())
}

/// Former executors as a kernel takes them.
pub(super) fn borrow_former(former: &[RecoveredExecutor]) -> Vec<Recovered<'_>> {
    let borrowed = former.iter().map(|it| Recovered {
        executor: &it.executor,
        agent_id: &it.agent_id,
        hostname: &it.hostname,
        cores: it.cores,
        memory: it.memory,
        gpus: it.gpus,
        port: it.port,
    });
    borrowed.collect()
}

impl From<&Offer<'_>> for OwnedOffer {
    fn from(offer: &Offer<'_>) -> OwnedOffer {
        OwnedOffer {
            id: offer.id.to_owned(),
            agent_id: offer.agent_id.to_owned(),
            hostname: offer.hostname.to_owned(),
            role: offer.role.to_owned(),
            resources: offer.resources.iter().map(OwnedResource::from).collect(),
            attributes: offer.attributes.iter().map(OwnedAttribute::from).collect(),
            region: offer.region.map(str::to_owned),
            zone: offer.zone.map(str::to_owned),
            maintenance_in: offer.maintenance_in,
            shape: None,
        }
    }
}

impl From<&Resource<'_>> for OwnedResource {
    fn from(resource: &Resource<'_>) -> OwnedResource {
        OwnedResource {
            name: resource.name.to_owned(),
            reservations: OwnedReservations::from(&resource.reservations),
            value: match resource.value {
                Value::Scalar(scalar) => OwnedValue::Scalar(scalar),
                Value::Ranges(ranges) => OwnedValue::Ranges(ranges.to_vec()),
                // Nothing is ever taken of a set: it only has to keep its place.
                Value::Set(_) => OwnedValue::Ranges(Vec::new()),
            },
            standing: resource.standing,
        }
    }
}

impl From<&Reservations<'_>> for OwnedReservations {
    fn from(reservations: &Reservations<'_>) -> OwnedReservations {
        match reservations {
            Reservations::Old { role, dynamic } => OwnedReservations::Old {
                role: (*role).to_owned(),
                dynamic: dynamic.map(OwnedReservedBy::from),
            },
            Reservations::Refined(stack) => OwnedReservations::Refined(
                stack
                    .iter()
                    .map(|one| OwnedReservation {
                        kind: one.kind,
                        role: one.role.to_owned(),
                        by: OwnedReservedBy::from(&one.by),
                    })
                    .collect(),
            ),
        }
    }
}

impl From<&ReservedBy<'_>> for OwnedReservedBy {
    fn from(by: &ReservedBy<'_>) -> OwnedReservedBy {
        let label = |(key, value): &Label<'_>| ((*key).to_owned(), value.map(str::to_owned));
        OwnedReservedBy {
            principal: by.principal.map(str::to_owned),
            labels: by.labels.iter().map(label).collect(),
        }
    }
}

/// Cuts the first `count` off `rest`, which has as many.
fn split<'a, T>(rest: &mut &'a [T], count: usize) -> &'a [T] {
    let (own, others) = rest.split_at(count);
    *rest = others;
    own
}

impl Borrowed<'_> {
    fn offers(&self) -> Vec<Offer<'_>> {
        let (mut resources, mut attributes) = (&self.resources[..], &self.attributes[..]);
        let mut offers = Vec::with_capacity(self.owned.len());
        for offer in self.owned {
            let (own_resources, rest) = resources.split_at(offer.resources.len());
            let (own_attributes, others) = attributes.split_at(offer.attributes.len());
            (resources, attributes) = (rest, others);
            let OwnedOffer { id, agent_id, hostname, .. } = offer;
            let borrowed = Offer::new(id, agent_id, hostname, own_resources, own_attributes);
            let (region, zone) = (offer.region.as_deref(), offer.zone.as_deref());
            let maintenance_in = offer.maintenance_in;
            let borrowed = borrowed.with_role(&offer.role);
            offers.push(Offer { region, zone, maintenance_in, ..borrowed });
        }
        offers
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records() -> impl Strategy<Value = OwnedReservedBy> {
        let label = ("[a-c]", prop::option::of("[a-c]"));
        let records = (prop::option::of("[a-c]"), prop::collection::vec(label, 0..3));
        records.prop_map(|(principal, labels)| OwnedReservedBy { principal, labels })
    }

    fn reservations() -> impl Strategy<Value = OwnedReservations> {
        let old = ("[a-c*]", prop::option::of(records()))
            .prop_map(|(role, dynamic)| OwnedReservations::Old { role, dynamic });
        let kind = prop_oneof![Just(ReservationKind::Static), Just(ReservationKind::Dynamic)];
        let one = (kind, "[a-c]", records()).prop_map(|(kind, role, by)| OwnedReservation {
            kind,
            role,
            by,
        });
        prop_oneof![old, prop::collection::vec(one, 0..4).prop_map(OwnedReservations::Refined)]
    }

    proptest! {
        /// Goal: a reservation of either form passes through the offer queue whole, with its own resource. Method: random
        /// offers; what is lent, made owned again, is what it was.
        #[test]
        fn reservations_are_lent_whole(
            offers in prop::collection::vec(prop::collection::vec(reservations(), 0..5), 0..5),
        ) {
            let batch: Vec<OwnedOffer> = offers.iter().map(|reservations| OwnedOffer {
                id: "o".into(),
                agent_id: "a".into(),
                hostname: "h".into(),
                role: "etl".into(),
                resources: reservations.iter().map(|own| OwnedResource {
                    reservations: own.clone(),
                    ..OwnedResource::scalar("cpus", Scalar::ZERO)
                }).collect(),
                attributes: Vec::new(),
                region: None,
                zone: None,
            maintenance_in: None,
                shape: None,
            }).collect();
            let back: Vec<Vec<OwnedReservations>> = lend(&batch, |lent| {
                let of = |resource: &Resource<'_>| OwnedResource::from(resource).reservations;
                lent.iter().map(|offer| offer.resources.iter().map(of).collect()).collect()
            });
            prop_assert_eq!(back, offers);
        }
    }
}
