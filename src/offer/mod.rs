//! What comes in: an agent's offer of resources, borrowed from whoever decoded it.
//!
//! Nothing here owns memory. A wire decoder keeps its buffers, builds its [`Resource`]s and [`Attribute`]s on slices
//! of them, and hands the [`Offer`]s over; the kernel copies an agent's id once, when it first meets it.

pub mod attributes;
mod reservation;
mod resource;

pub use reservation::{Label, Reservation, ReservationKind, Reservations, ReservedBy};
pub use resource::{Resource, ResourceKind, Revocability, Value};

use std::time::Duration;

use crate::resources::PortRange;

/// An offer of one agent's resources to one role.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Offer<'a> {
    /// The offer's id. An offer without one is declined as malformed.
    pub id: &'a str,
    /// The id of the agent that offers. An offer without one is declined as malformed.
    pub agent_id: &'a str,
    /// The agent's host name, for reports and for the executor's `{{HOSTNAME}}`.
    pub hostname: &'a str,
    /// The role that the offer was allocated to: offers of one agent and role in a batch are answered as one, from
    /// what is reserved for that role, for one above it in the hierarchy (`eng` of `eng/etl`), or for nobody.
    /// [`DEFAULT_ROLE`] when the wire doesn't say, as old masters don't: then whatever is in the offer may be taken.
    pub role: &'a str,
    /// What is offered, in the order of the wire: resources are taken in this order.
    pub resources: &'a [Resource<'a>],
    /// The agent's attributes: constraints are matched against them.
    pub attributes: &'a [Attribute<'a>],
    /// The region of the agent's fault domain, if it is known.
    pub region: Option<&'a str>,
    /// The zone of the agent's fault domain, if it is known.
    pub zone: Option<&'a str>,
    /// How long from now until the agent's planned maintenance begins; zero if it has begun. `None`: none is planned.
    pub maintenance_in: Option<Duration>,
}

impl<'a> Offer<'a> {
    /// An offer to the default role, `*`.
    #[must_use]
    pub const fn new(
        id: &'a str,
        agent_id: &'a str,
        hostname: &'a str,
        resources: &'a [Resource<'a>],
        attributes: &'a [Attribute<'a>],
    ) -> Offer<'a> {
        Offer {
            id,
            agent_id,
            hostname,
            role: DEFAULT_ROLE,
            resources,
            attributes,
            region: None,
            zone: None,
            maintenance_in: None,
        }
    }

    /// The same offer, allocated to `role`.
    #[must_use]
    pub const fn with_role(mut self, role: &'a str) -> Offer<'a> {
        self.role = role;
        self
    }

    /// The same offer, of an agent whose maintenance begins so long from now.
    #[must_use]
    pub const fn maintained_in(mut self, maintenance_in: Duration) -> Offer<'a> {
        self.maintenance_in = Some(maintenance_in);
        self
    }

    /// The same offer, of an agent in this region and zone.
    #[must_use]
    pub const fn in_domain(mut self, region: &'a str, zone: &'a str) -> Offer<'a> {
        (self.region, self.zone) = (Some(region), Some(zone));
        self
    }
}

/// The role of resources that are reserved for nobody.
pub const DEFAULT_ROLE: &str = "*";

/// An attribute of an agent. Names may repeat.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: AttributeValue<'a>,
}

impl<'a> Attribute<'a> {
    /// A text attribute, such as `zone:east`.
    #[must_use]
    pub const fn text(name: &'a str, text: &'a str) -> Attribute<'a> {
        Attribute { name, value: AttributeValue::Text(text) }
    }

    /// A number, such as `tier:3`.
    #[must_use]
    pub const fn scalar(name: &'a str, scalar: f64) -> Attribute<'a> {
        Attribute { name, value: AttributeValue::Scalar(scalar) }
    }
}

/// An attribute's value.
#[derive(Clone, Copy, Debug)]
pub enum AttributeValue<'a> {
    /// Text.
    Text(&'a str),
    /// A number. It is compared, never added up, and so stays the wire's `f64`.
    Scalar(f64),
    /// Intervals of numbers.
    Ranges(&'a [PortRange]),
    /// Named items.
    Set(&'a [&'a str]),
}
