//! [`WorkerResources`]: cores, memory, disk, GPUs and ports, in exact numbers, and their sums and differences.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::resources::{PortRange, PortSet, Scalar};

/// The largest amount on the wire, in thousandths: up to it a number's third decimal is exact.
pub(super) const AMOUNT_MAX: Scalar = Scalar::from_thousandths(1 << 50);
/// The most intervals of ports.
pub(super) const PORT_RANGES_MAX: usize = 1024;

/// What a worker has, or what an executor uses. Amounts are in thousandths, as Mesos counts; on the wire they are plain
/// numbers.
///
/// ```
/// use offermill::cluster::standalone::protocol::WorkerResources;
///
/// let text = r#"{"cpus":1.5,"mem":1024.0,"ports":[[31000,31009]]}"#;
/// let resources: WorkerResources = serde_json::from_str(text).unwrap();
/// assert_eq!(resources.cpus.thousandths(), 1500);
/// assert_eq!(serde_json::to_string(&resources).unwrap(), text);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerResources {
    /// Cores.
    #[serde(with = "number", skip_serializing_if = "is_zero")]
    pub cpus: Scalar,
    /// Memory, in MiB.
    #[serde(with = "number", skip_serializing_if = "is_zero")]
    pub mem: Scalar,
    /// Disk, in MiB.
    #[serde(with = "number", skip_serializing_if = "is_zero")]
    pub disk: Scalar,
    /// GPUs.
    #[serde(with = "number", skip_serializing_if = "is_zero")]
    pub gpus: Scalar,
    /// Ports.
    #[serde(with = "intervals", skip_serializing_if = "PortSet::is_empty")]
    pub ports: PortSet,
}

impl WorkerResources {
    /// Returns the amounts with their names in Mesos, in a fixed order.
    #[must_use]
    pub fn scalars(&self) -> [(&'static str, Scalar); 4] {
        [("cpus", self.cpus), ("mem", self.mem), ("disk", self.disk), ("gpus", self.gpus)]
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scalars().iter().all(|(_, amount)| *amount == Scalar::ZERO) && self.ports.is_empty()
    }

    /// Whether `other` is part of this.
    #[must_use]
    pub fn covers(&self, other: &WorkerResources) -> bool {
        let mut pairs = self.scalars().into_iter().zip(other.scalars());
        pairs.all(|((_, own), (_, asked))| own >= asked)
            && other.ports.without(&self.ports).is_empty()
    }

    /// The sum. It saturates; ports are united.
    #[must_use]
    pub fn plus(&self, other: &WorkerResources) -> WorkerResources {
        let sum = |own: Scalar, more: Scalar| own.checked_add(more).unwrap_or(Scalar::MAX);
        WorkerResources {
            cpus: sum(self.cpus, other.cpus),
            mem: sum(self.mem, other.mem),
            disk: sum(self.disk, other.disk),
            gpus: sum(self.gpus, other.gpus),
            ports: PortSet::of(self.ports.ranges().iter().chain(other.ports.ranges()).copied()),
        }
    }

    /// The difference: zero where `other` has more.
    #[must_use]
    pub fn minus(&self, other: &WorkerResources) -> WorkerResources {
        WorkerResources {
            cpus: self.cpus.saturating_sub(other.cpus),
            mem: self.mem.saturating_sub(other.mem),
            disk: self.disk.saturating_sub(other.disk),
            gpus: self.gpus.saturating_sub(other.gpus),
            ports: self.ports.without(&other.ports),
        }
    }

    /// Whether both have ports in common.
    #[must_use]
    pub fn shares_ports_with(&self, other: &WorkerResources) -> bool {
        let own = self.ports.count();
        own > 0 && self.ports.without(&other.ports).count() != own
    }
}

impl fmt::Display for WorkerResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (name, amount) in self.scalars() {
            if amount > Scalar::ZERO {
                write!(f, "{comma}{name} {amount}")?;
                comma = ", ";
            }
        }
        match self.ports.count() {
            0 if comma.is_empty() => f.write_str("nothing"),
            0 => Ok(()),
            1 => write!(f, "{comma}1 port"),
            ports => write!(f, "{comma}{ports} ports"),
        }
    }
}

fn is_zero(amount: &Scalar) -> bool {
    *amount == Scalar::ZERO
}

/// An amount as a number.
mod number {
    use super::{AMOUNT_MAX, Deserialize, Deserializer, Scalar, Serializer};

    pub(super) fn serialize<S: Serializer>(
        amount: &Scalar,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(amount.as_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Scalar, D::Error> {
        match Scalar::from_f64(f64::deserialize(deserializer)?) {
            Ok(amount) if amount <= AMOUNT_MAX => Ok(amount),
            Ok(_) => Err(serde::de::Error::custom("too large")),
            Err(why) => Err(serde::de::Error::custom(why)),
        }
    }
}

/// Ports as pairs of numbers, the first and the last of each interval.
mod intervals {
    use super::{
        Deserialize, Deserializer, PORT_RANGES_MAX, PortRange, PortSet, Serialize, Serializer,
    };

    pub(super) fn serialize<S: Serializer>(
        ports: &PortSet,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs: Vec<(u64, u64)> = ports.ranges().iter().map(|it| (it.begin, it.end)).collect();
        pairs.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PortSet, D::Error> {
        let pairs = Vec::<(u16, u16)>::deserialize(deserializer)?;
        if pairs.len() > PORT_RANGES_MAX || pairs.iter().any(|(begin, end)| begin > end) {
            return Err(super::bad_ports());
        }
        let range = |(begin, end): (u16, u16)| PortRange::new(begin.into(), end.into());
        Ok(PortSet::of(pairs.into_iter().map(range)))
    }
}

fn bad_ports<E: serde::de::Error>() -> E {
    E::custom(format_args!(
        "ports must be at most {PORT_RANGES_MAX} pairs of a first and a last number"
    ))
}
