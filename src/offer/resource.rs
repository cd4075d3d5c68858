//! One entry of an offer's resources: name, kind, revocability, reservations and value.

use super::{DEFAULT_ROLE, Reservations, ReservedBy};
use crate::resources::{PortRange, Scalar};

/// One entry of an offer's resources.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource<'a> {
    /// The name on the wire, such as `cpus`.
    pub name: &'a str,
    /// The kind of resource. Executors never use resources of kind [`ResourceKind::Other`].
    pub kind: ResourceKind,
    /// Whether the resource is revocable, shared or a disk.
    pub revocability: Revocability,
    /// The reservations.
    pub reservations: Reservations<'a>,
    /// The quantity, intervals or items.
    pub value: Value<'a>,
}

impl<'a> Resource<'a> {
    /// Creates an unreserved resource of any value.
    #[must_use]
    pub fn new(name: &'a str, value: Value<'a>) -> Resource<'a> {
        let kind = ResourceKind::of(name, &value);
        let (revocability, reservations) = (Revocability::NonRevocable, Reservations::NONE);
        Resource { name, kind, revocability, reservations, value }
    }

    /// Creates an unreserved scalar such as `cpus`. A number that isn't a valid quantity becomes zero, see
    /// [`Scalar::from_f64_lenient`].
    #[must_use]
    pub fn scalar(name: &'a str, value: f64) -> Resource<'a> {
        Self::new(name, Value::Scalar(Scalar::from_f64_lenient(value)))
    }

    /// Creates an unreserved resource of intervals, such as `ports`.
    #[must_use]
    pub fn ranges(name: &'a str, ranges: &'a [PortRange]) -> Resource<'a> {
        Self::new(name, Value::Ranges(ranges))
    }

    /// Adds a static reservation for `role`, in the pre-refinement form. [`DEFAULT_ROLE`] removes the reservation.
    #[must_use]
    pub const fn reserved_for(self, role: &'a str) -> Resource<'a> {
        self.with_reservations(Reservations::PreRefinement { role, dynamic: None })
    }

    /// Adds a dynamic reservation for `role`, in the pre-refinement form.
    #[must_use]
    pub const fn reserved_by(self, role: &'a str, by: &'a ReservedBy<'a>) -> Resource<'a> {
        self.with_reservations(Reservations::PreRefinement { role, dynamic: Some(by) })
    }

    /// Sets the reservations.
    #[must_use]
    pub const fn with_reservations(mut self, reservations: Reservations<'a>) -> Resource<'a> {
        self.reservations = reservations;
        self
    }

    /// Sets the revocability.
    #[must_use]
    pub const fn with_revocability(mut self, revocability: Revocability) -> Resource<'a> {
        self.revocability = revocability;
        self
    }

    /// Returns the role that the resource is effectively reserved for, or [`DEFAULT_ROLE`].
    #[must_use]
    pub fn role(&self) -> &'a str {
        self.reservations.role()
    }

    /// Returns whether the resource is reserved for any role.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.role() != DEFAULT_ROLE
    }

    /// Returns the quantity that executors can take, in thousandths. For GPUs, only whole ones count.
    pub(crate) fn quantity(&self) -> u64 {
        match (self.kind, self.value) {
            (ResourceKind::Cpus | ResourceKind::Memory, Value::Scalar(scalar)) => {
                scalar.thousandths()
            }
            (ResourceKind::Gpus, Value::Scalar(scalar)) => scalar.thousandths() / 1000 * 1000,
            _ => 0,
        }
    }

    /// Returns whether `port` is one of its ports.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        match self.value {
            Value::Ranges(ranges) if self.kind == ResourceKind::Ports => {
                ranges.iter().any(|range| range.contains(u64::from(port)))
            }
            _ => false,
        }
    }
}

/// The kind of a resource, by its name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceKind {
    /// `cpus`, a scalar in cores.
    Cpus,
    /// `mem`, a scalar in MiB.
    Memory,
    /// `gpus`, a scalar in whole GPUs. The fraction of an entry is not used.
    Gpus,
    /// `ports`, intervals.
    Ports,
    /// Anything else; never used.
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

/// Whether a resource can be revoked, is shared, or is a disk. If several apply, the last one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Revocability {
    /// None of the others: neither revocable, nor shared, nor a disk.
    #[default]
    NonRevocable,
    /// Mesos may revoke it at any time. Used only if [enabled](crate::ConfigBuilder::revocable).
    Revocable,
    /// Several tasks may use it at once. Never used: Mesos shares only persistent volumes, which executors don't use.
    Shared,
    /// A persistent volume, or a disk with a source (a path, a mount, a block device). Never used.
    Disk,
}

/// A resource's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A quantity.
    Scalar(Scalar),
    /// Closed intervals of whole numbers.
    Ranges(&'a [PortRange]),
    /// Named items.
    Set(&'a [&'a str]),
}
