//! What comes in: an agent's offer of resources, borrowed from whoever decoded it.
//!
//! Nothing here owns memory. A wire decoder keeps its buffers, builds its [`Resource`]s and [`Attribute`]s on slices
//! of them, and hands the [`Offer`]s over; the kernel copies an agent's id once, when it first meets it.

use crate::resources::{PortRange, Scalar};

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
    /// The role that the offer was allocated to: offers of one agent and role in a batch are answered as one.
    pub role: &'a str,
    /// What is offered, in the order of the wire: resources are taken in this order.
    pub resources: &'a [Resource<'a>],
    /// The agent's attributes: constraints are matched against them.
    pub attributes: &'a [Attribute<'a>],
    /// The region of the agent's fault domain, if it is known.
    pub region: Option<&'a str>,
    /// The zone of the agent's fault domain, if it is known.
    pub zone: Option<&'a str>,
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
        let (region, zone) = (None, None);
        Offer { id, agent_id, hostname, role: DEFAULT_ROLE, resources, attributes, region, zone }
    }

    /// The same offer, allocated to `role`.
    #[must_use]
    pub const fn with_role(mut self, role: &'a str) -> Offer<'a> {
        self.role = role;
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

/// One entry of an offer's resources.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Resource<'a> {
    /// Its name on the wire, such as `cpus`.
    pub name: &'a str,
    /// What the kernel takes it for. Resources of other kinds are carried in offers and never taken.
    pub kind: ResourceKind,
    /// The role that it is reserved for, or [`DEFAULT_ROLE`].
    pub role: &'a str,
    /// Who reserved it, if it was reserved dynamically.
    pub reservation: Option<Reservation<'a>>,
    /// How much of it, or which.
    pub value: Value<'a>,
    /// Whether the kernel may take it: revocable, shared and persistent resources are left alone.
    pub plain: bool,
}

impl<'a> Resource<'a> {
    /// An unreserved resource of any value.
    #[must_use]
    pub fn new(name: &'a str, value: Value<'a>) -> Resource<'a> {
        let kind = ResourceKind::of(name, &value);
        Resource { name, kind, role: DEFAULT_ROLE, reservation: None, value, plain: true }
    }

    /// An unreserved scalar such as `cpus`; a number that is no quantity counts as nothing, see
    /// [`Scalar::from_f64_lenient`].
    #[must_use]
    pub fn scalar(name: &'a str, value: f64) -> Resource<'a> {
        Self::new(name, Value::Scalar(Scalar::from_f64_lenient(value)))
    }

    /// An unreserved resource of intervals, such as `ports`.
    #[must_use]
    pub fn ranges(name: &'a str, ranges: &'a [PortRange]) -> Resource<'a> {
        Self::new(name, Value::Ranges(ranges))
    }

    /// The same resource, reserved for `role` ([`DEFAULT_ROLE`] takes the reservation away).
    #[must_use]
    pub const fn reserved_for(mut self, role: &'a str) -> Resource<'a> {
        self.role = role;
        self
    }

    /// The same resource with the record of its dynamic reservation.
    #[must_use]
    pub const fn with_reservation(mut self, reservation: Reservation<'a>) -> Resource<'a> {
        self.reservation = Some(reservation);
        self
    }

    /// The same resource marked as one that the kernel must leave alone (revocable, shared, persistent).
    #[must_use]
    pub const fn left_alone(mut self) -> Resource<'a> {
        self.plain = false;
        self
    }

    /// Whether it is reserved for some role.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.role != DEFAULT_ROLE
    }

    /// Its scalar, if it is one that the kernel may take as `kind`.
    pub(crate) fn takeable(&self, kind: ResourceKind) -> Option<Scalar> {
        match self.value {
            Value::Scalar(scalar) if self.plain && self.kind == kind => Some(scalar),
            _ => None,
        }
    }

    /// Whether the kernel may take `port` from it.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        match self.value {
            Value::Ranges(ranges) if self.plain && self.kind == ResourceKind::Ports => {
                ranges.iter().any(|range| range.contains(u64::from(port)))
            }
            _ => false,
        }
    }
}

/// What the kernel takes a resource for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceKind {
    /// `cpus`, a scalar in cores.
    Cpus,
    /// `mem`, a scalar in MiB.
    Memory,
    /// `gpus`, a scalar in whole GPUs.
    Gpus,
    /// `ports`, intervals.
    Ports,
    /// Anything else: never taken.
    Other,
}

impl ResourceKind {
    fn of(name: &str, value: &Value<'_>) -> ResourceKind {
        match (name, value) {
            ("cpus", Value::Scalar(_)) => ResourceKind::Cpus,
            ("mem", Value::Scalar(_)) => ResourceKind::Memory,
            ("gpus", Value::Scalar(_)) => ResourceKind::Gpus,
            ("ports", Value::Ranges(_)) => ResourceKind::Ports,
            _ => ResourceKind::Other,
        }
    }
}

/// The record of a dynamic reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation<'a> {
    /// Who reserved.
    pub principal: Option<&'a str>,
    /// The role reserved for.
    pub role: &'a str,
}

/// A resource's value.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A quantity.
    Scalar(Scalar),
    /// Intervals of numbers.
    Ranges(&'a [PortRange]),
    /// Named items.
    Set(&'a [&'a str]),
}

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
