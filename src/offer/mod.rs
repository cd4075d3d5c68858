//! Resource offers: an agent's offer, its resources and its attributes, borrowed from the decoder's buffers.
//!
//! Nothing here owns memory. A wire decoder keeps its buffers, builds [`Resource`]s and [`Attribute`]s on slices of
//! them, and passes on the [`Offer`]s. The kernel copies an agent's id once, when it first sees the agent.

pub mod attributes;
mod binding;
mod reservation;
mod resource;

pub use binding::{Binding, BoundAgent};
pub use reservation::{Label, Reservation, ReservationKind, Reservations, ReservedBy};
pub use resource::{Resource, ResourceKind, Revocability, Value};

use std::time::Duration;

use crate::resources::PortRange;

/// An offer of one agent's resources to one role.
///
/// It borrows all its parts. Quantities are rounded to a thousandth, as Mesos does it.
///
/// ```
/// use std::time::Duration;
/// use offermill::resources::PortRange;
/// use offermill::{Attribute, Constraint, Offer, Resource};
///
/// let ports = [PortRange::new(31_000, 32_000)];
/// let resources = [
///     Resource::scalar("cpus", 2.0).reserved_for("eng"),
///     Resource::scalar("cpus", 6.0),
///     Resource::scalar("mem", 16_384.0),
///     Resource::ranges("ports", &ports),
/// ];
/// let attributes = [Attribute::text("rack", "r7"), Attribute::scalar("tier", 3.0)];
/// let offer = Offer::new("O1", "S1", "host-1", &resources, &attributes)
///     .with_role("eng/etl") // may use what is reserved for `eng`
///     .in_domain("eu", "eu-1")
///     .maintained_in(Duration::from_secs(3600));
/// assert!(Constraint::parse("expr:: @region = eu and tier >= 3")?.check(&offer).is_ok());
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Offer<'a> {
    /// The offer's id. If it is empty, the offer is declined as malformed.
    pub id: &'a str,
    /// The id of the agent whose resources are offered. If it is empty, the offer is declined as malformed, unless its
    /// executor is [bound late](Binding::Late).
    pub agent_id: &'a str,
    /// The agent's host name, for reports and for the executor's `{{HOSTNAME}}`.
    pub hostname: &'a str,
    /// The role that the offer is allocated to. Offers of one agent and role in a batch are answered together.
    /// Executors may use resources that are unreserved, reserved for this role, or reserved for one of its ancestors
    /// (`eng` of `eng/etl`). Old masters send no role; it is then [`DEFAULT_ROLE`], and executors may use resources of
    /// any role.
    pub role: &'a str,
    /// The offered resources, in wire order. Executors take resources in this order.
    pub resources: &'a [Resource<'a>],
    /// The agent's attributes, which constraints are matched against.
    pub attributes: &'a [Attribute<'a>],
    /// The region of the agent's fault domain, if it is known.
    pub region: Option<&'a str>,
    /// The zone of the agent's fault domain, if it is known.
    pub zone: Option<&'a str>,
    /// The time until the agent's planned maintenance begins; zero if it has begun, `None` if none is planned.
    pub maintenance_in: Option<Duration>,
    /// When its executors are bound to an agent. [`Binding::Late`] has an effect only if there is no `agent_id`.
    pub binding: Binding,
}

impl<'a> Offer<'a> {
    /// Creates an offer to the default role, `*`.
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
            binding: Binding::Immediate,
        }
    }

    /// Creates a permit for one executor, which the cluster itself places: an offer without an agent, to the default
    /// role. No more than one executor is placed on it, however much it offers. Nothing is known of the agent yet, so
    /// no rule about agents applies: constraint, exclusion, locality wait.
    ///
    /// [`Kernel::bind`](crate::Kernel::bind) shows the rest of its way.
    #[must_use]
    pub const fn late(id: &'a str, resources: &'a [Resource<'a>]) -> Offer<'a> {
        let mut offer = Offer::new(id, "", "", resources, &[]);
        offer.binding = Binding::Late;
        offer
    }

    /// Whether it is a permit for an executor whose agent isn't known yet.
    pub(crate) fn is_late(&self) -> bool {
        self.binding == Binding::Late && self.agent_id.is_empty() && !self.id.is_empty()
    }

    /// Sets the role that the offer is allocated to.
    #[must_use]
    pub const fn with_role(mut self, role: &'a str) -> Offer<'a> {
        self.role = role;
        self
    }

    /// Sets the time until the agent's planned maintenance begins.
    #[must_use]
    pub const fn maintained_in(mut self, maintenance_in: Duration) -> Offer<'a> {
        self.maintenance_in = Some(maintenance_in);
        self
    }

    /// Sets the region and zone of the agent's fault domain.
    #[must_use]
    pub const fn in_domain(mut self, region: &'a str, zone: &'a str) -> Offer<'a> {
        self.region = Some(region);
        self.zone = Some(zone);
        self
    }
}

/// The role of unreserved resources.
pub const DEFAULT_ROLE: &str = "*";

/// An attribute of an agent. Names may repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribute<'a> {
    /// The name.
    pub name: &'a str,
    /// The value.
    pub value: AttributeValue<'a>,
}

impl<'a> Attribute<'a> {
    /// Creates a text attribute such as `zone:east`.
    #[must_use]
    pub const fn text(name: &'a str, text: &'a str) -> Attribute<'a> {
        Attribute { name, value: AttributeValue::Text(text) }
    }

    /// Creates a number such as `tier:3`.
    #[must_use]
    pub const fn scalar(name: &'a str, scalar: f64) -> Attribute<'a> {
        Attribute { name, value: AttributeValue::Scalar(scalar) }
    }
}

/// An attribute's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue<'a> {
    /// Text.
    Text(&'a str),
    /// A number. It is only compared, never summed, so it stays an `f64` as on the wire.
    Scalar(f64),
    /// Closed intervals of whole numbers.
    Ranges(&'a [PortRange]),
    /// Named items.
    Set(&'a [&'a str]),
}
