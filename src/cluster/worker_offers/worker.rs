//! One worker's resources: its total, the resources in use, its open offer, and declined resources.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::engine::cluster_manager::{OwnedAttribute, OwnedOffer, OwnedResource};
use crate::limits::REFUSE_MAX;
use crate::offer::{Binding, DEFAULT_ROLE};
use crate::resources::{Mebibytes, MilliCpus, PortRange, Scalar};

/// An amount of cores and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuMemory {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
}

impl CpuMemory {
    fn covers(self, other: CpuMemory) -> bool {
        self.cores >= other.cores && self.memory >= other.memory
    }

    fn minus(self, other: CpuMemory) -> CpuMemory {
        CpuMemory {
            cores: MilliCpus::from_millis(self.cores.millis().saturating_sub(other.cores.millis())),
            memory: Mebibytes::new(self.memory.get().saturating_sub(other.memory.get())),
        }
    }

    fn plus(self, other: CpuMemory) -> CpuMemory {
        CpuMemory {
            cores: MilliCpus::from_millis(self.cores.millis().saturating_add(other.cores.millis())),
            memory: Mebibytes::new(self.memory.get().saturating_add(other.memory.get())),
        }
    }

    /// Whether an executor could run on it, which requires both cores and memory.
    fn is_usable(self) -> bool {
        self.cores > MilliCpus::ZERO && self.memory > Mebibytes::ZERO
    }
}

/// The properties of a worker that stay the same when it is lost and comes back under another id.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSpec {
    pub(crate) hostname: String,
    pub(crate) attributes: Vec<OwnedAttribute>,
    pub(crate) total: CpuMemory,
    pub(crate) ports: Option<PortRange>,
}

/// An open offer, or its rest after some executors were allocated.
#[derive(Debug)]
pub(crate) struct OpenOffer {
    pub(super) id: String,
    pub(crate) amounts: CpuMemory,
    ports: Vec<PortRange>,
}

impl OpenOffer {
    /// Allocates an executor's resources.
    ///
    /// # Errors
    /// The missing resource. Nothing is allocated then.
    pub(crate) fn allocate(&mut self, amounts: CpuMemory, port: Option<u16>) -> Result<(), String> {
        if !self.amounts.covers(amounts) {
            return Err(format!(
                "asks for {:#} and {} where {:#} and {} are left of the offer",
                amounts.cores, amounts.memory, self.amounts.cores, self.amounts.memory
            ));
        }
        if let Some(port) = port {
            let number = u64::from(port);
            if !self.ports.iter().any(|range| range.contains(number)) {
                return Err(format!("asks for port {port}, which is not left of the offer"));
            }
            self.ports = self.ports.iter().flat_map(|range| without(*range, number)).collect();
        }
        self.amounts = self.amounts.minus(amounts);
        Ok(())
    }
}

/// Declined resources: no offer of these amounts or less is made until the given time.
#[derive(Debug)]
struct OfferFilter {
    amounts: CpuMemory,
    until: Instant,
}

/// A registered worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: String,
    spec: WorkerSpec,
    held: CpuMemory,
    held_ports: BTreeSet<u16>,
    open_offer: Option<OpenOffer>,
    filters: Vec<OfferFilter>,
    next_offer_at: Instant,
}

impl Worker {
    pub(super) fn new(id: String, spec: WorkerSpec, now: Instant) -> Worker {
        Worker {
            id,
            spec,
            held: CpuMemory::default(),
            held_ports: BTreeSet::new(),
            open_offer: None,
            filters: Vec::new(),
            next_offer_at: now,
        }
    }

    fn free(&self) -> CpuMemory {
        self.spec.total.minus(self.held)
    }

    fn free_ports(&self) -> Vec<PortRange> {
        let mut free: Vec<PortRange> = self.spec.ports.into_iter().collect();
        for port in &self.held_ports {
            if let Some(last) = free.pop() {
                free.extend(without(last, u64::from(*port)));
            }
        }
        free
    }

    /// When the worker can make its next offer. `None` while an offer is open or nothing is free.
    ///
    /// Declined resources are held back until their time, unless more than these amounts has become free since.
    pub(super) fn offerable_at(&self) -> Option<Instant> {
        let free = self.free();
        if self.open_offer.is_some() || !free.is_usable() {
            return None;
        }
        let declined = self.filters.iter().filter(|filter| filter.amounts.covers(free));
        Some(declined.map(|filter| filter.until).fold(self.next_offer_at, Instant::max))
    }

    /// Offers everything that is free. The next offer comes `interval` from now at the earliest.
    pub(super) fn offer(&mut self, id: String, now: Instant, interval: Duration) -> OwnedOffer {
        let amounts = self.free();
        let ports = self.free_ports();
        self.filters.retain(|filter| filter.until > now);
        self.next_offer_at = now + interval;
        let memory = Scalar::from_thousandths(amounts.memory.get().saturating_mul(1000));
        let mut resources = vec![
            OwnedResource::scalar("cpus", Scalar::from_thousandths(amounts.cores.millis())),
            OwnedResource::scalar("mem", memory),
        ];
        if !ports.is_empty() {
            resources.push(OwnedResource::ranges("ports", ports.clone()));
        }
        self.open_offer = Some(OpenOffer { id: id.clone(), amounts, ports });
        OwnedOffer {
            id,
            agent_id: self.id.clone(),
            hostname: self.spec.hostname.clone(),
            role: DEFAULT_ROLE.to_owned(),
            resources,
            attributes: self.spec.attributes.clone(),
            region: None,
            zone: None,
            maintenance_in: None,
            profile: None,
            binding: Binding::Immediate,
        }
    }

    /// Closes the open offer and returns it.
    pub(super) fn close_offer(&mut self) -> Option<OpenOffer> {
        self.open_offer.take()
    }

    /// Holds `amounts` back for `refuse`.
    pub(super) fn refuse(&mut self, amounts: CpuMemory, refuse: Duration, now: Instant) {
        if refuse.is_zero() {
            return;
        }
        let until = now + refuse.min(REFUSE_MAX);
        self.filters.retain(|other| !(amounts.covers(other.amounts) && until >= other.until));
        self.filters.push(OfferFilter { amounts, until });
    }

    /// Drops all filters of declined resources.
    pub(super) fn revive(&mut self) {
        self.filters.clear();
    }

    /// Counts an executor's resources as in use.
    pub(super) fn reserve(&mut self, amounts: CpuMemory, port: Option<u16>) {
        self.held = self.held.plus(amounts);
        self.held_ports.extend(port);
    }

    /// Counts an executor's resources as free again.
    pub(super) fn release(&mut self, amounts: CpuMemory, port: Option<u16>) {
        self.held = self.held.minus(amounts);
        if let Some(port) = port {
            self.held_ports.remove(&port);
        }
    }
}

/// Returns the range without `number`: up to two ranges.
fn without(range: PortRange, number: u64) -> impl Iterator<Item = PortRange> {
    let parts = if range.contains(number) {
        let below = (number > range.begin).then(|| PortRange::new(range.begin, number - 1));
        let above = (number < range.end).then(|| PortRange::new(number + 1, range.end));
        [below, above]
    } else {
        [Some(range), None]
    };
    parts.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn amounts(cores: u64, memory: u64) -> CpuMemory {
        CpuMemory { cores: MilliCpus::from_cores(cores), memory: Mebibytes::new(memory) }
    }

    fn worker(now: Instant) -> Worker {
        let ports = Some(PortRange::new(100, 109));
        let spec =
            WorkerSpec { hostname: "h".into(), attributes: vec![], total: amounts(4, 1000), ports };
        Worker::new("a".into(), spec, now)
    }

    /// Goal: declined resources are held back until their time, and offered earlier if more becomes free. Method: a
    /// decline, then an executor's end, at times that the test sets.
    #[test]
    fn declines_hold_back_no_more_than_was_declined() {
        let start = Instant::now();
        let mut worker = worker(start);
        assert_eq!(worker.offerable_at(), Some(start));
        worker.offer("1".into(), start, SECOND);
        assert_eq!(worker.offerable_at(), None, "one open offer per worker");

        let mut left = worker.close_offer().unwrap();
        left.allocate(amounts(3, 600), None).unwrap();
        worker.reserve(amounts(3, 600), None);
        worker.refuse(left.amounts, 10 * SECOND, start);
        assert_eq!(worker.offerable_at(), Some(start + 10 * SECOND));
        worker.release(amounts(1, 0), None);
        assert_eq!(worker.offerable_at(), Some(start + SECOND), "more is free than was declined");

        worker.offer("2".into(), start + SECOND, SECOND);
        let whole = worker.close_offer().unwrap();
        worker.refuse(whole.amounts, Duration::MAX, start + SECOND);
        assert_eq!(worker.offerable_at(), Some(start + SECOND + REFUSE_MAX));
        worker.revive();
        assert_eq!(worker.offerable_at(), Some(start + 2 * SECOND));
    }

    /// Goal: resources are allocated only once, and never more than there are. Method: allocate, reserve and release,
    /// including ports.
    #[test]
    fn resources_are_allocated_once() {
        let start = Instant::now();
        let mut worker = worker(start);
        worker.offer("1".into(), start, SECOND);
        let mut offered = worker.close_offer().unwrap();
        assert!(offered.allocate(amounts(5, 1), None).unwrap_err().contains("asks for 5 cores"));
        assert!(offered.allocate(amounts(1, 1), Some(110)).unwrap_err().contains("port 110"));
        assert_eq!(offered.amounts, amounts(4, 1000), "a failed allocation leaves everything");
        offered.allocate(amounts(1, 100), Some(104)).unwrap();
        assert!(offered.allocate(amounts(1, 100), Some(104)).is_err());

        worker.reserve(amounts(1, 100), Some(104));
        worker.reserve(amounts(1, 100), Some(109));
        let free = [PortRange::new(100, 103), PortRange::new(105, 108)];
        assert_eq!(worker.free_ports(), free);
        assert_eq!(worker.free(), amounts(2, 800));
        worker.release(amounts(1, 100), Some(104));
        assert_eq!(worker.free_ports(), [PortRange::new(100, 108)]);

        worker.reserve(amounts(3, 1), None);
        assert_eq!(worker.offerable_at(), None, "memory without cores is of no use");
    }
}
