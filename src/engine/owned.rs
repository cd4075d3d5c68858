//! Owned offers, which outlive the buffer that they were read from, and their conversion from and to borrowed offers.

use std::cell::OnceCell;
use std::time::Duration;

use crate::limits::{FOREIGN_ID_BYTES_MAX, HOSTNAME_BYTES_MAX};
use crate::offer::attributes::{self, Items, OwnedAttribute};
use crate::offer::{
    Attribute, Binding, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind, Reservations,
    ReservedBy, Resource, Revocability, Value,
};
use crate::resources::{PortRange, Scalar};

use super::agent_facts::is_short;
use super::resource_profile::ResourceProfileId;

/// Why an offer that [isn't bounded](OwnedOffer::is_bounded) isn't used.
pub(super) const WITHOUT_ID: &str = "it has no id";
pub(super) const LONG_TEXT: &str = "an id, a name or an attribute is too long";

/// An [`Offer`] that owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
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
    /// The resource profile that this offer has room for, from managers that are asked for executors.
    pub profile: Option<ResourceProfileId>,
    /// See [`Offer::binding`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub binding: Binding,
}

impl OwnedOffer {
    /// Whether its ids, its names and its attributes are as short as [`limits`](crate::limits) require.
    pub(crate) fn is_bounded(&self) -> bool {
        let is_name = |text: &String| text.len() <= FOREIGN_ID_BYTES_MAX;
        let names = [Some(&self.role), self.region.as_ref(), self.zone.as_ref()];
        [&self.id, &self.agent_id].into_iter().all(is_name)
            && names.into_iter().flatten().all(is_name)
            && self.resources.iter().all(|it| it.reservations.roles().all(is_name))
            && self.hostname.len() <= HOSTNAME_BYTES_MAX
            && self.attributes.iter().all(is_short)
    }
}

/// A [`Resource`] that owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct OwnedResource {
    /// See [`Resource::name`].
    pub name: String,
    /// See [`Resource::reservations`].
    pub reservations: OwnedReservations,
    /// Its quantity or intervals.
    pub value: OwnedValue,
    /// See [`Resource::revocability`].
    pub revocability: Revocability,
}

/// [`Reservations`] that own their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum OwnedReservations {
    /// See [`Reservations::PreRefinement`].
    PreRefinement {
        /// The role that the resource is reserved for, or [`DEFAULT_ROLE`].
        role: String,
        /// The principal and labels of the reservation, if it was made while the agent ran.
        dynamic: Option<OwnedReservedBy>,
    },
    /// See [`Reservations::PostRefinement`].
    PostRefinement(Vec<OwnedReservation>),
}

impl OwnedReservations {
    /// The roles that the resource is reserved for.
    fn roles(&self) -> impl Iterator<Item = &String> {
        let (role, stack) = match self {
            OwnedReservations::PreRefinement { role, .. } => (Some(role), &[][..]),
            OwnedReservations::PostRefinement(stack) => (None, &stack[..]),
        };
        role.into_iter().chain(stack.iter().map(|reservation| &reservation.role))
    }
}

/// A [`Reservation`] that owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OwnedReservedBy {
    /// See [`ReservedBy::principal`].
    pub principal: Option<String>,
    /// See [`ReservedBy::labels`].
    pub labels: Vec<(String, Option<String>)>,
}

/// A [`Value`] that owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OwnedValue {
    /// A quantity.
    Scalar(Scalar),
    /// Intervals.
    Ranges(Vec<PortRange>),
    /// Named items. Executors take none of them.
    Set(Vec<String>),
}

impl OwnedOffer {
    /// Creates an offer to the default role, [`DEFAULT_ROLE`], without attributes.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        agent_id: impl Into<String>,
        hostname: impl Into<String>,
        resources: Vec<OwnedResource>,
    ) -> OwnedOffer {
        OwnedOffer {
            id: id.into(),
            agent_id: agent_id.into(),
            hostname: hostname.into(),
            role: DEFAULT_ROLE.to_owned(),
            resources,
            attributes: Vec::new(),
            region: None,
            zone: None,
            maintenance_in: None,
            profile: None,
            binding: Binding::Immediate,
        }
    }

    /// Creates a permit for one executor, which the cluster itself places; see [`Offer::late`].
    #[must_use]
    pub fn late(id: impl Into<String>, resources: Vec<OwnedResource>) -> OwnedOffer {
        OwnedOffer { binding: Binding::Late, ..OwnedOffer::new(id, "", "", resources) }
    }

    /// Sets the role that the offer is allocated to.
    #[must_use]
    pub fn with_role(self, role: impl Into<String>) -> OwnedOffer {
        OwnedOffer { role: role.into(), ..self }
    }

    /// Sets the agent's attributes.
    #[must_use]
    pub fn with_attributes(self, attributes: Vec<OwnedAttribute>) -> OwnedOffer {
        OwnedOffer { attributes, ..self }
    }

    /// Sets the region and zone of the agent's fault domain.
    #[must_use]
    pub fn with_domain(self, region: impl Into<String>, zone: impl Into<String>) -> OwnedOffer {
        OwnedOffer { region: Some(region.into()), zone: Some(zone.into()), ..self }
    }

    /// Sets the time until the agent's planned maintenance begins.
    #[must_use]
    pub fn with_maintenance_in(self, maintenance_in: Duration) -> OwnedOffer {
        OwnedOffer { maintenance_in: Some(maintenance_in), ..self }
    }

    /// Sets the resource profile that the offer has room for.
    #[must_use]
    pub fn with_profile(self, profile: ResourceProfileId) -> OwnedOffer {
        OwnedOffer { profile: Some(profile), ..self }
    }
}

impl OwnedResource {
    /// An unreserved, non-revocable resource.
    #[must_use]
    pub fn new(name: impl Into<String>, value: OwnedValue) -> OwnedResource {
        let reservations =
            OwnedReservations::PreRefinement { role: DEFAULT_ROLE.to_owned(), dynamic: None };
        OwnedResource {
            name: name.into(),
            reservations,
            value,
            revocability: Revocability::NonRevocable,
        }
    }

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

    /// Sets the reservations.
    #[must_use]
    pub fn with_reservations(self, reservations: OwnedReservations) -> OwnedResource {
        OwnedResource { reservations, ..self }
    }

    /// Sets the revocability.
    #[must_use]
    pub fn with_revocability(self, revocability: Revocability) -> OwnedResource {
        OwnedResource { revocability, ..self }
    }

    /// The items of its set.
    fn items(&self) -> &[String] {
        match &self.value {
            OwnedValue::Set(items) => items,
            OwnedValue::Scalar(_) | OwnedValue::Ranges(_) => &[],
        }
    }

    /// Borrows the resource. `items` are those of its set.
    fn borrow<'a>(&'a self, reservations: Reservations<'a>, items: &'a [&'a str]) -> Resource<'a> {
        let value = match &self.value {
            OwnedValue::Scalar(scalar) => Value::Scalar(*scalar),
            OwnedValue::Ranges(ranges) => Value::Ranges(ranges),
            OwnedValue::Set(_) => Value::Set(items),
        };
        let resource = Resource::new(&self.name, value).with_revocability(self.revocability);
        resource.with_reservations(reservations)
    }
}

impl OwnedReservations {
    /// The principals and labels of the reservations that have them.
    fn records(&self) -> Vec<&OwnedReservedBy> {
        match self {
            OwnedReservations::PreRefinement { dynamic, .. } => dynamic.iter().collect(),
            OwnedReservations::PostRefinement(stack) => stack.iter().map(|one| &one.by).collect(),
        }
    }

    fn stack(&self) -> &[OwnedReservation] {
        match self {
            OwnedReservations::PreRefinement { .. } => &[],
            OwnedReservations::PostRefinement(stack) => stack,
        }
    }
}

/// Memory for the borrowed form of one batch of [`OwnedOffer`]s, for example of
/// [`Operation::batch`](super::journal::Operation::batch). Each part borrows from those before it.
#[derive(Debug, Default)]
pub struct BorrowedParts<'a> {
    labels: OnceCell<Vec<Label<'a>>>,
    reserved_by: OnceCell<Vec<ReservedBy<'a>>>,
    stacks: OnceCell<Vec<Reservation<'a>>>,
    resource_items: OnceCell<Vec<&'a str>>,
    resources: OnceCell<Vec<Resource<'a>>>,
    items: OnceCell<Items<'a>>,
    attributes: OnceCell<Vec<Attribute<'a>>>,
    offers: OnceCell<Vec<Offer<'a>>>,
}

/// Borrows a batch of owned offers as a kernel takes them. `parts` must be unused.
pub(super) fn borrow_offers<'a>(
    owned: &'a [OwnedOffer],
    parts: &'a BorrowedParts<'a>,
) -> &'a [Offer<'a>] {
    let resources = || owned.iter().flat_map(|offer| &offer.resources);
    let owned_records = || resources().flat_map(|resource| resource.reservations.records());
    let labels = parts.labels.get_or_init(|| {
        let labels = owned_records().flat_map(|by| &by.labels);
        labels.map(|(key, value)| (key.as_str(), value.as_deref())).collect()
    });
    let reserved_by = parts.reserved_by.get_or_init(|| {
        let mut rest = &labels[..];
        let record = |by: &'a OwnedReservedBy| {
            let principal = by.principal.as_deref();
            ReservedBy { principal, labels: split(&mut rest, by.labels.len()) }
        };
        owned_records().map(record).collect()
    });
    let stacks = parts.stacks.get_or_init(|| {
        let mut rest = &reserved_by[..];
        let pairs = resources().flat_map(|resource| {
            let own = split(&mut rest, resource.reservations.records().len());
            resource.reservations.stack().iter().zip(own)
        });
        pairs.map(|(one, by)| Reservation { kind: one.kind, role: &one.role, by: *by }).collect()
    });
    let resource_items = parts
        .resource_items
        .get_or_init(|| resources().flat_map(OwnedResource::items).map(String::as_str).collect());
    let borrowed_resources = parts.resources.get_or_init(|| {
        let mut items = &resource_items[..];
        let mut records = &reserved_by[..];
        let mut stacks = &stacks[..];
        let borrow = |resource: &'a OwnedResource| {
            let own = split(&mut records, resource.reservations.records().len());
            let stack = split(&mut stacks, resource.reservations.stack().len());
            let reservations = match &resource.reservations {
                OwnedReservations::PreRefinement { role, .. } => {
                    Reservations::PreRefinement { role, dynamic: own.first() }
                }
                OwnedReservations::PostRefinement(_) => Reservations::PostRefinement(stack),
            };
            resource.borrow(reservations, split(&mut items, resource.items().len()))
        };
        resources().map(borrow).collect()
    });
    let owned_attributes = || owned.iter().flat_map(|offer| &offer.attributes);
    let items = parts.items.get_or_init(|| Items::of(owned_attributes()));
    let borrowed_attributes =
        parts.attributes.get_or_init(|| attributes::borrow(owned_attributes(), items));
    parts.offers.get_or_init(|| join_parts(owned, borrowed_resources, borrowed_attributes))
}

/// The offers, each with its own resources and attributes of those of all.
fn join_parts<'a>(
    owned: &'a [OwnedOffer],
    mut resources: &'a [Resource<'a>],
    mut attributes: &'a [Attribute<'a>],
) -> Vec<Offer<'a>> {
    let join = |offer: &'a OwnedOffer| Offer {
        id: &offer.id,
        agent_id: &offer.agent_id,
        hostname: &offer.hostname,
        role: &offer.role,
        resources: split(&mut resources, offer.resources.len()),
        attributes: split(&mut attributes, offer.attributes.len()),
        region: offer.region.as_deref(),
        zone: offer.zone.as_deref(),
        maintenance_in: offer.maintenance_in,
        binding: offer.binding,
    };
    owned.iter().map(join).collect()
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
            profile: None,
            binding: offer.binding,
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
                Value::Set(items) => {
                    OwnedValue::Set(items.iter().map(|&item| item.to_owned()).collect())
                }
            },
            revocability: resource.revocability,
        }
    }
}

impl From<&Reservations<'_>> for OwnedReservations {
    fn from(reservations: &Reservations<'_>) -> OwnedReservations {
        match reservations {
            Reservations::PreRefinement { role, dynamic } => OwnedReservations::PreRefinement {
                role: (*role).to_owned(),
                dynamic: dynamic.map(OwnedReservedBy::from),
            },
            Reservations::PostRefinement(stack) => OwnedReservations::PostRefinement(
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

/// Splits the first `count` items off `rest`, which must have that many.
fn split<'a, T>(rest: &mut &'a [T], count: usize) -> &'a [T] {
    let (own, others) = rest.split_at(count);
    *rest = others;
    own
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
            .prop_map(|(role, dynamic)| OwnedReservations::PreRefinement { role, dynamic });
        let kind = prop_oneof![Just(ReservationKind::Static), Just(ReservationKind::Dynamic)];
        let one = (kind, "[a-c]", records()).prop_map(|(kind, role, by)| OwnedReservation {
            kind,
            role,
            by,
        });
        prop_oneof![
            old,
            prop::collection::vec(one, 0..4).prop_map(OwnedReservations::PostRefinement)
        ]
    }

    fn values() -> impl Strategy<Value = OwnedValue> {
        prop_oneof![
            (0u64..9).prop_map(|amount| OwnedValue::Scalar(Scalar::from_thousandths(amount))),
            prop::collection::vec(0u64..9, 0..3).prop_map(|ports| {
                OwnedValue::Ranges(ports.into_iter().map(|port| PortRange::new(port, 9)).collect())
            }),
            prop::collection::vec("[a-c]", 0..3).prop_map(OwnedValue::Set),
        ]
    }

    proptest! {
        /// Goal: resources of each kind pass through the offer queue and the journal whole. Method: random values,
        /// borrowed and made owned again.
        #[test]
        fn values_are_lent_whole(
            offers in prop::collection::vec(prop::collection::vec(values(), 0..5), 0..5),
        ) {
            let resource = |value: &OwnedValue| OwnedResource::new("r", value.clone());
            let batch = Vec::from_iter(offers.iter().map(|values| {
                OwnedOffer::new("o", "a", "h", values.iter().map(resource).collect())
            }));
            let parts = BorrowedParts::default();
            let back: Vec<OwnedOffer> =
                borrow_offers(&batch, &parts).iter().map(OwnedOffer::from).collect();
            prop_assert_eq!(back, batch);
        }

        /// Goal: a reservation of either form passes through the offer queue whole, with its own resource. Method:
        /// random offers, borrowed and made owned again.
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
                profile: None,
                binding: Binding::Immediate,
            }).collect();
            let parts = BorrowedParts::default();
            let borrowed = borrow_offers(&batch, &parts).iter();
            let of = |resource: &Resource<'_>| OwnedResource::from(resource).reservations;
            let back: Vec<Vec<OwnedReservations>> =
                borrowed.map(|offer| offer.resources.iter().map(of).collect()).collect();
            prop_assert_eq!(back, offers);
        }
    }
}
