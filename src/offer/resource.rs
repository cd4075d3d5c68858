//! An entry of an offer's resources, and what the kernel may take of it.

use super::{DEFAULT_ROLE, Reservations, ReservedBy};
use crate::resources::{PortRange, Scalar};

/// One entry of an offer's resources.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Resource<'a> {
    /// Its name on the wire, such as `cpus`.
    pub name: &'a str,
    /// What the kernel takes it for. Resources of other kinds are carried in offers and never taken.
    pub kind: ResourceKind,
    /// What the kernel may do with it, besides.
    pub standing: Revocability,
    /// Whom it is reserved for.
    pub reservations: Reservations<'a>,
    /// How much of it, or which.
    pub value: Value<'a>,
}

impl<'a> Resource<'a> {
    /// An unreserved resource of any value.
    #[must_use]
    pub fn new(name: &'a str, value: Value<'a>) -> Resource<'a> {
        let kind = ResourceKind::of(name, &value);
        let (standing, reservations) = (Revocability::Firm, Reservations::NONE);
        Resource { name, kind, standing, reservations, value }
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

    /// The same resource, reserved for `role` by the agent's settings, in the old form ([`DEFAULT_ROLE`] takes the
    /// reservation away).
    #[must_use]
    pub const fn reserved_for(self, role: &'a str) -> Resource<'a> {
        self.with_reservations(Reservations::Old { role, dynamic: None })
    }

    /// The same resource, reserved for `role` while the agent ran, in the old form.
    #[must_use]
    pub const fn reserved_by(self, role: &'a str, by: &'a ReservedBy<'a>) -> Resource<'a> {
        self.with_reservations(Reservations::Old { role, dynamic: Some(by) })
    }

    /// The same resource, reserved so.
    #[must_use]
    pub const fn with_reservations(mut self, reservations: Reservations<'a>) -> Resource<'a> {
        self.reservations = reservations;
        self
    }

    /// The same resource with another standing.
    #[must_use]
    pub const fn with_standing(mut self, standing: Revocability) -> Resource<'a> {
        self.standing = standing;
        self
    }

    /// The role that it is reserved for in effect, or [`DEFAULT_ROLE`].
    #[must_use]
    pub fn role(&self) -> &'a str {
        self.reservations.role()
    }

    /// Whether it is reserved for some role.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.role() != DEFAULT_ROLE
    }

    /// How much can be cut from it as its kind, in thousandths. GPUs are cut whole.
    pub(crate) fn quantity(&self) -> u64 {
        match (self.kind, self.value) {
            (ResourceKind::Cpus | ResourceKind::Memory, Value::Scalar(scalar)) => {
                scalar.thousandths()
            }
            (ResourceKind::Gpus, Value::Scalar(scalar)) => scalar.thousandths() / 1000 * 1000,
            _ => 0,
        }
    }

    /// Whether `port` is among its ports.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        match self.value {
            Value::Ranges(ranges) if self.kind == ResourceKind::Ports => {
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
    /// `gpus`, a scalar in whole GPUs. Of an entry with a fraction the whole ones are used.
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

/// Whether a resource stays with those who have it, and whether they have it alone. If several apply, the last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revocability {
    /// It stays, and is had alone.
    #[default]
    Firm,
    /// Mesos may take it back at any time. Used only if [asked for](crate::ConfigBuilder::revocable).
    Revocable,
    /// Several may have it at once. Never used: Mesos shares only persistent volumes, and executors take none.
    Shared,
    /// A persistent volume, or a part of a disk of its own (a path, a mount, a block device). Never used.
    Disk,
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
