//! Books that the master doesn't keep: what workers really run, and what frameworks were really offered.

use std::collections::BTreeSet;

use super::world::{PORTS, TestWorld, WORKER_CPUS, WORKER_MEM};
use crate::mesos_v1::messages::Resource;

/// A sum of what was given away of a worker, in thousandths, and the ports.
#[derive(Debug, Default)]
struct GivenAway {
    cpus: u64,
    mem: u64,
    ports: BTreeSet<u64>,
}

impl GivenAway {
    fn add_ports(&mut self, ports: impl Iterator<Item = u64>) {
        for port in ports {
            assert!(self.ports.insert(port), "port {port} is given twice");
        }
    }

    fn add_offered(&mut self, resources: &[Resource]) {
        for resource in resources {
            let amount = resource.scalar.as_ref().map_or(0.0, |it| it.value * 1000.0) as u64;
            match resource.name.as_str() {
                "cpus" => self.cpus += amount,
                "mem" => self.mem += amount,
                "ports" => {
                    let ranges = resource.ranges.iter().flat_map(|it| &it.range);
                    self.add_ports(ranges.flat_map(|it| it.begin..=it.end));
                }
                other => panic!("no worker has {other}"),
            }
        }
    }
}

impl TestWorld {
    /// What a worker runs or is about to, and what frameworks hold in offers of it, is at most what it has. What a
    /// connected worker runs is known to the master.
    pub(super) fn assert_books(&self) {
        for worker in &self.workers {
            let mut given = GivenAway::default();
            let running = worker.running.values().filter(|held| !held.state.is_end());
            let held = running.map(|held| &held.resources).chain(worker.unread_launches());
            for resources in held {
                given.cpus += resources.cpus.thousandths();
                given.mem += resources.mem.thousandths();
                let ranges = resources.ports.ranges().iter();
                given.add_ports(ranges.flat_map(|it| it.begin..=it.end));
            }
            let offers = self.frameworks.iter().flat_map(|framework| framework.offers.values());
            let own = offers.filter(|offer| Some(&offer.agent_id.value) == worker.id.as_ref());
            own.for_each(|offer| given.add_offered(&offer.resources));
            assert!(
                given.cpus <= WORKER_CPUS * 1000
                    && given.mem <= WORKER_MEM * 1000
                    && given.ports.iter().all(|port| PORTS.contains(port)),
                "{:?} gives {given:?}",
                worker.id
            );
            if worker.connection.is_none() || worker.silent {
                continue;
            }
            for (key, held) in worker.running.iter().filter(|(_, held)| !held.state.is_end()) {
                let known = self.master.placed.get(key);
                assert_eq!(known, worker.id.as_ref(), "{held:?} isn't known");
            }
        }
    }
}
