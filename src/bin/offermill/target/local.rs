//! The embedded cluster: everything about it can be known beforehand.

use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::local::{LocalCluster, LocalConfig, LocalMaster};
use offermill::resources::PortRange;

use super::{Agents, OnExit, Prepared, Remains, Sandboxes, Target};
use crate::settings::draft::Draft;
use crate::settings::preflight;

/// Checks that executors fit somewhere and that sandboxes can be made.
pub(super) fn prepare(
    draft: &mut Draft,
    text: String,
    master: &LocalMaster,
    config: &Config,
) -> Option<Prepared> {
    let room = preflight::check_room(draft, config, &text, master)?;
    let cluster = LocalCluster::new(local_config(draft, master));
    let cluster = cluster.map_err(|error| draft.complain(&error)).ok()?;
    if draft.problems.is_empty() && !draft.only_looks {
        preflight::check_work_dir(draft);
    }
    let site = Target {
        master: text,
        agents: Some(Agents { all: master.agents(), usable: room.agents }),
        fitting: room.executors,
        sandboxes: Sandboxes::Here(draft.work_dir.join("sandboxes")),
        silence: None,
        leavings: OnExit::Killed,
        remains: Remains::default(),
        stop_within: Duration::from_secs(15),
    };
    Some((site, Arc::new(cluster)))
}

fn local_config(draft: &Draft, master: &LocalMaster) -> LocalConfig {
    let local = LocalConfig::new(master.clone())
        .attributes(draft.attributes.clone())
        .work_dir(draft.work_dir.clone())
        // The engine asks executors to end and waits; what is left then is left over.
        .grace(Duration::ZERO);
    match draft.port {
        Some(port) if !(31_000..=32_000).contains(&port) => {
            local.ports(PortRange::new(1_024, 65_535))
        }
        _ => local,
    }
}
