//! Pictures of the cluster's capacity, by what has changed since the last one.

use std::time::Duration;

use offermill::Config;
use offermill::resources::MilliCpus;

use crate::support::fleet::Fleet;
use crate::support::scheduler::{Ours, Scheduler as _};
use crate::support::{self, MET, NOW};
use crate::{Scene, Size, counted};

pub(crate) const SCENES: [(&str, Scene); 2] = [
    ("capacity/nothing changed", |size| pictures(size, false)),
    ("capacity/all agents changed", |size| pictures(size, true)),
];

/// The settings, with executors that no agent has room for.
pub(crate) fn config(refresh: Duration) -> Config {
    let config = support::config_of(MilliCpus::from_cores(64), MET, None);
    config.to_builder().capacity_refresh(refresh).build().expect("settings")
}

fn pictures(size: Size, is_changed: bool) -> u64 {
    let fleet = Fleet::new(size.agents, 100);
    let others = fleet.stream_changed();
    let kernel = support::kernel(&config(Duration::ZERO));
    let mut ours = Ours::new(&kernel);
    let mut elements = 0;
    for lap in 0..=size.laps {
        let batches = if is_changed && lap % 2 == 1 { &others } else { &fleet.stream };
        batches.iter().for_each(|batch| ours.answer(batch));
        if lap == 0 {
            drop(kernel.capacity(NOW));
        } else {
            elements += counted(|| kernel.capacity(NOW)).sums().agents as u64;
        }
    }
    elements
}
