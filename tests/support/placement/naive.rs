//! A naive placement, written from the documentation: it places one executor at a time, in passes over the agents, and
//! recomputes every amount before each.
//!
//! The reference model of the kernel places with it under the model's caps, and the checker of resource allocation
//! compares the answers of an empty kernel with it. Amounts have 128 bits, because the sum of the
//! fuzzer's resources may exceed 64 bits.

use std::collections::BTreeMap;

use offermill::limits::EXECUTOR_CORES_MAX;
use offermill::resources::{Gpus, Mebibytes, MilliCpus, PortRange};
use offermill::{DEFAULT_ROLE, Reason, Revocability};

/// The positions of an offer in its batch and of a resource in its offer.
pub(crate) type Position = (usize, usize);

/// Amounts of scalars, in thousandths.
pub(crate) type Amounts = BTreeMap<Position, u128>;

/// What each executor takes, and how executors are distributed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// In thousandths; `None` means all whole cores.
    pub(crate) cores: Option<u64>,
    /// In MiB, with the overhead.
    pub(crate) memory: u64,
    /// `None` means all available GPUs, for the first executor of an agent.
    pub(crate) gpus: Option<u32>,
    pub(crate) port: Option<u16>,
    /// Whether revocable resources may be used.
    pub(crate) revocable: bool,
    pub(crate) consolidate: bool,
}

/// What the caps still allow on an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) executors: u64,
    /// In thousandths.
    pub(crate) cores: u64,
    pub(crate) gpus: u64,
}

/// The caps, and the executors that count against them.
pub(crate) trait Caps {
    /// Returns what may still be placed on an agent. It is called before each executor.
    fn room(&self, agent: &str) -> Room;

    /// Counts an executor that was placed on an agent. Returns its number.
    fn add(&mut self, agent: &str, cores: u64, gpus: u64) -> u64;
}

/// A resource of an offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered<'a> {
    pub(crate) name: &'a str,
    /// The role for which it is reserved in the end, or `*`.
    pub(crate) role: &'a str,
    pub(crate) revocability: Revocability,
    pub(crate) amount: Amount<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount<'a> {
    Scalar(f64),
    Ranges(&'a [PortRange]),
    Set,
}

/// The offers of one agent to one role.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) agent: &'a str,
    role: &'a str,
    pub(crate) offers: Vec<usize>,
    resources: Vec<(Position, Offered<'a>)>,
    /// What is left of each resource.
    left: Amounts,
    /// Whether it is one offer without an agent, which has room for one executor.
    pub(crate) is_permit: bool,
    /// Whether each pass comes to the group after those without this mark.
    pub(crate) comes_last: bool,
    /// Why not even one executor fits.
    pub(crate) shortage: Option<Reason>,
    pub(crate) executors: Vec<Executor>,
}

#[derive(Clone, Debug)]
pub(crate) struct Executor {
    /// What [`Caps::add`] returned.
    pub(crate) number: u64,
    pub(crate) cores: u64,
    pub(crate) gpus: u64,
    pub(crate) pieces: Amounts,
    /// From where the port is taken.
    pub(crate) port: Option<Position>,
}

/// The offers of a batch in groups, in the order of their first offers, and what is placed on them.
#[derive(Debug)]
pub(crate) struct Placement<'a> {
    request: Request,
    pub(crate) groups: Vec<Group<'a>>,
}

/// Converts a number as Mesos sends it to thousandths.
pub(crate) fn thousandths(value: f64) -> u128 {
    let most = (1u64 << 53) as f64;
    if value.is_finite() { (value * 1000.0).round().clamp(0.0, most) as u128 } else { 0 }
}

impl Request {
    /// Whether the caps allow another executor.
    pub(crate) fn is_allowed(&self, room: Room) -> bool {
        let gpus = u64::from(self.gpus.unwrap_or(0));
        room.executors > 0 && self.cores_at_least() <= room.cores && gpus <= room.gpus
    }

    fn cores_at_least(&self) -> u64 {
        self.cores.unwrap_or(1000)
    }

    /// Whether an agent has at most one executor per batch.
    fn is_alone(&self) -> bool {
        self.cores.is_none() || self.port.is_some()
    }
}

impl Offered<'_> {
    /// Whether it may be used if it is offered to `role`.
    pub(crate) fn is_usable(&self, role: &str, request: &Request) -> bool {
        let own: Vec<&str> = self.role.split('/').collect();
        let offered: Vec<&str> = role.split('/').collect();
        let is_ours = !self.is_reserved() || role == DEFAULT_ROLE || offered.starts_with(&own);
        let is_wanted = match self.revocability {
            Revocability::NonRevocable => true,
            Revocability::Revocable => request.revocable,
            _ => false,
        };
        is_ours && is_wanted
    }

    /// Returns the usable amount of a scalar; of GPUs only whole ones.
    pub(crate) fn usable_amount(&self, role: &str, request: &Request) -> u128 {
        let Amount::Scalar(value) = self.amount else { return 0 };
        if !self.is_usable(role, request) {
            return 0;
        }
        let thousandths = thousandths(value);
        match self.name {
            "cpus" | "mem" => thousandths,
            "gpus" => thousandths - thousandths % 1000,
            _ => 0,
        }
    }

    pub(crate) fn has_port(&self, port: u16) -> bool {
        let Amount::Ranges(ranges) = self.amount else { return false };
        let port = u64::from(port);
        self.name == "ports" && ranges.iter().any(|range| range.begin <= port && port <= range.end)
    }

    pub(crate) fn is_revocable(&self) -> bool {
        self.revocability == Revocability::Revocable
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.role != DEFAULT_ROLE
    }
}

impl<'a> Placement<'a> {
    pub(crate) fn new(request: Request) -> Placement<'a> {
        Placement { request, groups: Vec::new() }
    }

    /// Adds the offer at position `offer` of the batch.
    pub(crate) fn add(
        &mut self,
        offer: usize,
        agent: &'a str,
        role: &'a str,
        resources: impl Iterator<Item = Offered<'a>>,
    ) {
        let is_same =
            |group: &Group<'_>| (group.agent, group.role) == (agent, role) && !group.is_permit;
        let at = self.groups.iter().position(is_same).unwrap_or(self.groups.len());
        self.add_to(at, offer, (agent, role), resources);
    }

    /// Adds the offer at position `offer` of the batch, which has no agent.
    #[allow(dead_code)]
    pub(crate) fn add_permit(
        &mut self,
        offer: usize,
        role: &'a str,
        resources: impl Iterator<Item = Offered<'a>>,
    ) {
        let at = self.groups.len();
        self.add_to(at, offer, ("", role), resources);
        self.groups[at].is_permit = true;
    }

    /// Adds an offer to the group at this position, which may be a new one.
    fn add_to(
        &mut self,
        at: usize,
        offer: usize,
        (agent, role): (&'a str, &'a str),
        resources: impl Iterator<Item = Offered<'a>>,
    ) {
        if at == self.groups.len() {
            self.groups.push(Group {
                agent,
                role,
                offers: Vec::new(),
                resources: Vec::new(),
                left: Amounts::new(),
                is_permit: false,
                comes_last: false,
                shortage: None,
                executors: Vec::new(),
            });
        }
        let group = &mut self.groups[at];
        group.offers.push(offer);
        for (place, resource) in resources.enumerate() {
            let position = (offer, place);
            group.resources.push((position, resource));
            group.left.insert(position, resource.usable_amount(role, &self.request));
        }
    }

    /// Makes passes over the groups until one places nothing.
    pub(crate) fn place(&mut self, caps: &mut impl Caps) {
        self.find_shortages();
        while self.pass(caps) {}
    }

    /// Finds for each group why not even one executor fits, if that is so.
    pub(crate) fn find_shortages(&mut self) {
        for group in &mut self.groups {
            group.shortage = group.find_shortage(&self.request);
        }
    }

    /// Places one executor per group or, with consolidation, as many as fit. Returns whether any was placed.
    fn pass(&mut self, caps: &mut impl Caps) -> bool {
        let mut has_placed = false;
        for comes_last in [false, true] {
            for group in self.groups.iter_mut().filter(|group| group.comes_last == comes_last) {
                while group.place(&self.request, caps) {
                    has_placed = true;
                    if !self.request.consolidate {
                        break;
                    }
                }
            }
        }
        has_placed
    }
}

impl Group<'_> {
    /// Places one executor if the resources and the caps allow it.
    fn place(&mut self, request: &Request, caps: &mut impl Caps) -> bool {
        let is_first = self.executors.is_empty();
        let room = caps.room(self.agent);
        let is_alone = request.is_alone() || self.is_permit;
        if self.shortage.is_some() || !request.is_allowed(room) || is_alone && !is_first {
            return false;
        }
        let cores = request.cores.unwrap_or_else(|| {
            let most = u128::from(EXECUTOR_CORES_MAX.millis().min(room.cores));
            self.most("cpus").min(most) as u64 / 1000 * 1000
        });
        let gpus = match request.gpus {
            Some(gpus) => u64::from(gpus),
            None if is_first => room.gpus.min(self.whole_gpus().into()),
            None => 0,
        };
        let wanted = [("cpus", cores), ("mem", request.memory * 1000), ("gpus", gpus * 1000)];
        if wanted.iter().any(|(name, amount)| self.most(name) < u128::from(*amount)) {
            return false;
        }
        let port = request.port.and_then(|port| self.find_port(port, request));
        let mut pieces = Amounts::new();
        for (name, amount) in wanted {
            self.take(name, amount.into(), &mut pieces);
        }
        let number = caps.add(self.agent, cores, gpus);
        self.executors.push(Executor { number, cores, gpus, pieces, port });
        true
    }

    /// Returns the first resource that doesn't suffice for one executor, if there is one.
    fn find_shortage(&self, request: &Request) -> Option<Reason> {
        let most = |name| u64::try_from(self.most(name)).unwrap_or(u64::MAX);
        let asked = MilliCpus::from_millis(request.cores_at_least());
        let offered = MilliCpus::from_millis(most("cpus"));
        if offered < asked {
            return Some(Reason::Cpus { asked, offered });
        }
        let asked = Mebibytes::new(request.memory);
        let offered = Mebibytes::new(most("mem") / 1000);
        if offered < asked {
            return Some(Reason::Memory { asked, offered });
        }
        let asked = Gpus::new(request.gpus.unwrap_or(0));
        let offered = Gpus::new(self.whole_gpus());
        if offered < asked {
            return Some(Reason::Gpus { asked, offered });
        }
        let port = request.port.filter(|port| self.find_port(*port, request).is_none());
        port.map(|port| Reason::Port { port })
    }

    /// Returns what is left of the revocable or non-revocable resources of a name.
    fn sum(&self, name: &str, is_revocable: bool) -> u128 {
        let is_meant = |resource: &Offered<'_>| {
            resource.name == name && resource.is_revocable() == is_revocable
        };
        let meant = self.resources.iter().filter(|(_, resource)| is_meant(resource));
        meant.map(|(position, _)| self.left[position]).sum()
    }

    /// Returns the most of a name that one executor can take. It can't mix revocable and other resources.
    fn most(&self, name: &str) -> u128 {
        self.sum(name, false).max(self.sum(name, true))
    }

    fn whole_gpus(&self) -> u32 {
        u32::try_from(self.most("gpus") / 1000).unwrap_or(u32::MAX)
    }

    /// Takes an amount from non-revocable resources if they suffice, otherwise from revocable ones; from reserved ones
    /// first.
    fn take(&mut self, name: &str, mut wanted: u128, pieces: &mut Amounts) {
        let is_revocable = self.sum(name, false) < wanted;
        for is_reserved in [true, false] {
            for (position, resource) in &self.resources {
                let kind = (resource.name, resource.is_revocable(), resource.is_reserved());
                let left = self.left.get_mut(position).expect("each resource has an amount");
                if kind != (name, is_revocable, is_reserved) || wanted.min(*left) == 0 {
                    continue;
                }
                let taken = wanted.min(*left);
                *left -= taken;
                wanted -= taken;
                pieces.insert(*position, taken);
            }
        }
        assert_eq!(wanted, 0, "more is taken than is offered");
    }

    /// Returns what is left of cores in thousandths, whole MiB and whole GPUs, revocable or not.
    #[allow(dead_code)]
    pub(crate) fn sums(&self, is_revocable: bool) -> [u128; 3] {
        let sum = |name| self.sum(name, is_revocable);
        [sum("cpus"), sum("mem") / 1000, sum("gpus") / 1000]
    }

    /// Takes cores, memory and GPUs, each in thousandths. They must be there.
    #[allow(dead_code)]
    pub(crate) fn take_all(&mut self, wanted: [u64; 3]) -> Amounts {
        let mut pieces = Amounts::new();
        for (name, amount) in ["cpus", "mem", "gpus"].into_iter().zip(wanted) {
            self.take(name, amount.into(), &mut pieces);
        }
        pieces
    }

    /// Returns where the port is taken from: non-revocable resources come first and, of these, reserved ones.
    fn find_port(&self, port: u16, request: &Request) -> Option<Position> {
        let has_port = |resource: &Offered<'_>| {
            resource.has_port(port) && resource.is_usable(self.role, request)
        };
        let with_port = self.resources.iter().filter(|(_, resource)| has_port(resource));
        let order = |(position, resource): &&(Position, Offered<'_>)| {
            (resource.is_revocable(), !resource.is_reserved(), *position)
        };
        with_port.min_by_key(order).map(|(position, _)| *position)
    }
}
