//! Offers that outlive the buffer that they were read from: what waits in the intake.

use crate::attributes::{Items, OwnedAttribute, lend};
use crate::offer::{Attribute, DEFAULT_ROLE, Offer, Reservation, Resource, Value};
use crate::resources::{PortRange, Scalar};

use super::seam::Shape;

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
    /// The shape that this room was made for, from managers that are asked for executors.
    pub shape: Option<Shape>,
}

/// A [`Resource`] that owns its parts.
#[derive(Clone, Debug)]
pub struct OwnedResource {
    /// See [`Resource::name`].
    pub name: String,
    /// See [`Resource::role`].
    pub role: String,
    /// The principal and role of the dynamic reservation, if it is one.
    pub reservation: Option<(Option<String>, String)>,
    /// How much of it, or which.
    pub value: OwnedValue,
    /// See [`Resource::plain`].
    pub plain: bool,
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
        let (name, role) = (name.to_owned(), DEFAULT_ROLE.to_owned());
        OwnedResource { name, role, reservation: None, value, plain: true }
    }

    fn borrow(&self) -> Resource<'_> {
        let value = match &self.value {
            OwnedValue::Scalar(scalar) => Value::Scalar(*scalar),
            OwnedValue::Ranges(ranges) => Value::Ranges(ranges),
        };
        let mut resource = Resource::new(&self.name, value).reserved_for(&self.role);
        if let Some((principal, role)) = &self.reservation {
            resource =
                resource.with_reservation(Reservation { principal: principal.as_deref(), role });
        }
        if self.plain { resource } else { resource.left_alone() }
    }
}

/// The borrowed parts of a batch of owned offers: [`Borrowed::offers`] ties them together.
#[derive(Debug)]
pub(super) struct Borrowed<'a> {
    owned: &'a [OwnedOffer],
    resources: Vec<Resource<'a>>,
    items: Items<'a>,
}

impl<'a> Borrowed<'a> {
    pub(super) fn of(owned: &'a [OwnedOffer]) -> Borrowed<'a> {
        let resources = owned.iter().flat_map(|offer| &offer.resources);
        Borrowed {
            owned,
            resources: resources.map(OwnedResource::borrow).collect(),
            items: Items::of(owned.iter().flat_map(|offer| &offer.attributes)),
        }
    }

    /// All offers' attributes, one after the other.
    pub(super) fn attributes(&self) -> Vec<Attribute<'_>> {
        lend(self.owned.iter().flat_map(|offer| &offer.attributes), &self.items)
    }

    pub(super) fn offers<'b>(&'b self, attributes: &'b [Attribute<'b>]) -> Vec<Offer<'b>> {
        let (mut resources, mut attributes) = (&self.resources[..], attributes);
        let mut offers = Vec::with_capacity(self.owned.len());
        for offer in self.owned {
            let (own_resources, rest) = resources.split_at(offer.resources.len());
            let (own_attributes, others) = attributes.split_at(offer.attributes.len());
            (resources, attributes) = (rest, others);
            let OwnedOffer { id, agent_id, hostname, .. } = offer;
            let borrowed = Offer::new(id, agent_id, hostname, own_resources, own_attributes);
            let (region, zone) = (offer.region.as_deref(), offer.zone.as_deref());
            offers.push(Offer { region, zone, ..borrowed.with_role(&offer.role) });
        }
        offers
    }
}
