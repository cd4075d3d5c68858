//! One agent's books: what it has, what runs on it, what it has on offer, and what was refused.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::engine::cluster_manager::{OwnedAttribute, OwnedOffer, OwnedResource};
use crate::limits::REFUSE_MAX;
use crate::offer::DEFAULT_ROLE;
use crate::resources::{Mebibytes, MilliCpus, PortRange, Scalar};

/// Cores and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) cores: MilliCpus,
    pub(super) memory: Mebibytes,
}

impl Room {
    fn covers(self, other: Room) -> bool {
        self.cores >= other.cores && self.memory >= other.memory
    }

    fn minus(self, other: Room) -> Room {
        Room {
            cores: MilliCpus::from_millis(self.cores.millis().saturating_sub(other.cores.millis())),
            memory: Mebibytes::new(self.memory.get().saturating_sub(other.memory.get())),
        }
    }

    fn plus(self, other: Room) -> Room {
        Room {
            cores: MilliCpus::from_millis(self.cores.millis().saturating_add(other.cores.millis())),
            memory: Mebibytes::new(self.memory.get().saturating_add(other.memory.get())),
        }
    }

    /// Whether anything could run in it: both cores and memory are needed.
    fn is_of_use(self) -> bool {
        self.cores > MilliCpus::ZERO && self.memory > Mebibytes::ZERO
    }
}

/// What stays the same while an agent goes and comes back: its place in the cluster.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) hostname: String,
    pub(super) attributes: Vec<OwnedAttribute>,
    pub(super) total: Room,
    pub(super) ports: Option<PortRange>,
}

/// What an agent has offered, or what is left of it while executors are taken out.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) id: String,
    pub(super) room: Room,
    ports: Vec<PortRange>,
}

impl Offered {
    /// Takes an executor's resources out, or leaves everything as it is and says what is missing.
    pub(super) fn take(&mut self, room: Room, port: Option<u16>) -> Result<(), String> {
        if !self.room.covers(room) {
            return Err(format!(
                "asks for {} cores and {} where {} cores and {} are left of the offer",
                room.cores, room.memory, self.room.cores, self.room.memory
            ));
        }
        if let Some(port) = port {
            let number = u64::from(port);
            if !self.ports.iter().any(|range| range.contains(number)) {
                return Err(format!("asks for port {port}, which is not left of the offer"));
            }
            self.ports = self.ports.iter().flat_map(|range| without(*range, number)).collect();
        }
        self.room = self.room.minus(room);
        Ok(())
    }
}

#[derive(Debug)]
struct Refusal {
    room: Room,
    until: Instant,
}

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) id: String,
    seat: Seat,
    held: Room,
    held_ports: BTreeSet<u16>,
    offered: Option<Offered>,
    refusals: Vec<Refusal>,
    quiet_until: Instant,
}

impl Agent {
    pub(super) fn new(id: String, seat: Seat, now: Instant) -> Agent {
        let (held, held_ports) = (Room::default(), BTreeSet::new());
        Agent { id, seat, held, held_ports, offered: None, refusals: Vec::new(), quiet_until: now }
    }

    fn free(&self) -> Room {
        self.seat.total.minus(self.held)
    }

    fn free_ports(&self) -> Vec<PortRange> {
        let mut free: Vec<PortRange> = self.seat.ports.into_iter().collect();
        for port in &self.held_ports {
            if let Some(last) = free.pop() {
                free.extend(without(last, u64::from(*port)));
            }
        }
        free
    }

    /// From when on it could make an offer; `None` while one is open or nothing is free.
    ///
    /// What was refused is not offered again before its time, unless more is free by now: then it
    /// is another offer.
    pub(super) fn offers_from(&self) -> Option<Instant> {
        let free = self.free();
        if self.offered.is_some() || !free.is_of_use() {
            return None;
        }
        let refused = self.refusals.iter().filter(|refusal| refusal.room.covers(free));
        Some(refused.map(|refusal| refusal.until).fold(self.quiet_until, Instant::max))
    }

    /// Offers all that is free; the next offer comes no sooner than `interval` from now.
    pub(super) fn offer(&mut self, id: String, now: Instant, interval: Duration) -> OwnedOffer {
        let (room, ports) = (self.free(), self.free_ports());
        self.refusals.retain(|refusal| refusal.until > now);
        self.quiet_until = now + interval;
        let memory = Scalar::from_thousandths(room.memory.get().saturating_mul(1000));
        let mut resources = vec![
            OwnedResource::scalar("cpus", Scalar::from_thousandths(room.cores.millis())),
            OwnedResource::scalar("mem", memory),
        ];
        if !ports.is_empty() {
            resources.push(OwnedResource::ranges("ports", ports.clone()));
        }
        self.offered = Some(Offered { id: id.clone(), room, ports });
        OwnedOffer {
            id,
            agent_id: self.id.clone(),
            hostname: self.seat.hostname.clone(),
            role: DEFAULT_ROLE.to_owned(),
            resources,
            attributes: self.seat.attributes.clone(),
            region: None,
            zone: None,
            maintenance_in: None,
            shape: None,
        }
    }

    /// Ends the open offer, whatever comes of it.
    pub(super) fn take_offered(&mut self) -> Option<Offered> {
        self.offered.take()
    }

    /// Remembers that `room` is not wanted for a while.
    pub(super) fn refuse(&mut self, room: Room, refuse: Duration, now: Instant) {
        if refuse.is_zero() {
            return;
        }
        let until = now + refuse.min(REFUSE_MAX);
        self.refusals.retain(|other| !(room.covers(other.room) && until >= other.until));
        self.refusals.push(Refusal { room, until });
    }

    /// Forgets what was refused.
    pub(super) fn revive(&mut self) {
        self.refusals.clear();
    }

    pub(super) fn hold(&mut self, room: Room, port: Option<u16>) {
        self.held = self.held.plus(room);
        self.held_ports.extend(port);
    }

    pub(super) fn free_up(&mut self, room: Room, port: Option<u16>) {
        self.held = self.held.minus(room);
        if let Some(port) = port {
            self.held_ports.remove(&port);
        }
    }
}

/// The interval without one of its numbers: up to two intervals.
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

    fn room(cores: u64, memory: u64) -> Room {
        Room { cores: MilliCpus::from_cores(cores), memory: Mebibytes::new(memory) }
    }

    fn agent(now: Instant) -> Agent {
        let ports = Some(PortRange::new(100, 109));
        let seat = Seat { hostname: "h".into(), attributes: vec![], total: room(4, 1000), ports };
        Agent::new("a".into(), seat, now)
    }

    /// Goal: a refusal holds back what was refused, until its time, and no longer when more is
    /// free. Method: decline, then an end of an executor, with made-up times.
    #[test]
    fn refusals_hold_back_no_more_than_was_refused() {
        let start = Instant::now();
        let mut agent = agent(start);
        assert_eq!(agent.offers_from(), Some(start));
        agent.offer("1".into(), start, SECOND);
        assert_eq!(agent.offers_from(), None, "one open offer an agent");

        let mut left = agent.take_offered().unwrap();
        left.take(room(3, 600), None).unwrap();
        agent.hold(room(3, 600), None);
        agent.refuse(left.room, 10 * SECOND, start);
        assert_eq!(agent.offers_from(), Some(start + 10 * SECOND));
        agent.free_up(room(1, 0), None);
        assert_eq!(agent.offers_from(), Some(start + SECOND), "more is free than was refused");

        agent.offer("2".into(), start + SECOND, SECOND);
        let whole = agent.take_offered().unwrap();
        agent.refuse(whole.room, Duration::MAX, start + SECOND);
        assert_eq!(agent.offers_from(), Some(start + SECOND + REFUSE_MAX));
        agent.revive();
        assert_eq!(agent.offers_from(), Some(start + 2 * SECOND));
    }

    /// Goal: nothing is given out twice or beyond what there is. Method: take, hold and free, ports
    /// included.
    #[test]
    fn what_is_taken_is_there_once() {
        let start = Instant::now();
        let mut agent = agent(start);
        agent.offer("1".into(), start, SECOND);
        let mut offered = agent.take_offered().unwrap();
        assert!(offered.take(room(5, 1), None).unwrap_err().contains("asks for 5 cores"));
        assert!(offered.take(room(1, 1), Some(110)).unwrap_err().contains("port 110"));
        assert_eq!(offered.room, room(4, 1000), "a refused take leaves everything");
        offered.take(room(1, 100), Some(104)).unwrap();
        assert!(offered.take(room(1, 100), Some(104)).is_err());

        agent.hold(room(1, 100), Some(104));
        agent.hold(room(1, 100), Some(109));
        let free = [PortRange::new(100, 103), PortRange::new(105, 108)];
        assert_eq!(agent.free_ports(), free);
        assert_eq!(agent.free(), room(2, 800));
        agent.free_up(room(1, 100), Some(104));
        assert_eq!(agent.free_ports(), [PortRange::new(100, 108)]);

        agent.hold(room(3, 1), None);
        assert_eq!(agent.offers_from(), None, "memory without cores is of no use");
    }
}
