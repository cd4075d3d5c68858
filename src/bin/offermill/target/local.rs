//! Preparation of local agents, about which everything is known before the start.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::local::{LocalCluster, LocalConfig, LocalMaster};
use offermill::resources::PortRange;

use crate::model::local_names::LocalNames;
use crate::model::target::{AgentCounts, FrameworkRemains, OnExit, RunTarget, SandboxPlace};
use crate::settings::checks::{preflight, spark};
use crate::settings::draft::SettingsDraft;
use crate::settings::secrets::variables_with_secrets;
use crate::target::PreparedTarget;
use crate::text::format::printable;

/// Checks that executors fit on an agent, and that sandboxes can be created.
pub(super) fn prepare(
    draft: &mut SettingsDraft,
    text: String,
    master: &LocalMaster,
    config: &Config,
) -> Option<PreparedTarget> {
    let capacity = preflight::check_capacity(draft, config, &text, master)?;
    let withheld = withheld_variables(draft);
    let cluster = LocalCluster::new(local_config(draft, master, withheld));
    let cluster = cluster.map_err(|error| draft.report_error(&error)).ok()?;
    if draft.problems.is_empty() && !draft.is_dry_run {
        preflight::check_work_dir(draft);
    }
    let target = RunTarget {
        master: text,
        agents: Some(AgentCounts { all: master.agents(), usable: capacity.agents }),
        fitting: capacity.executors,
        sandboxes: SandboxPlace::Here(draft.work_dir.join("sandboxes")),
        local_names: Some(LocalNames {
            address: spark::local_address(draft),
            machine: spark::machine_name(),
        }),
        no_offers_hint: None,
        on_exit: OnExit::Killed,
        remains: FrameworkRemains::default(),
        teardown_url: None,
        stop_timeout: Duration::from_secs(15),
    };
    Some((target, Arc::new(cluster)))
}

/// The variables with secrets, which executors don't inherit. A remark names them.
fn withheld_variables(draft: &mut SettingsDraft) -> Vec<OsString> {
    if draft.has_clean_environment {
        return Vec::new();
    }
    let variables = variables_with_secrets(draft);
    if !variables.is_empty() {
        let names: Vec<String> =
            variables.iter().map(|name| printable(&name.to_string_lossy())).collect();
        let names = names.join(", ");
        draft.remarks.push(format!("executors don't inherit {names}: a secret is in them"));
    }
    variables
}

fn local_config(
    draft: &SettingsDraft,
    master: &LocalMaster,
    withheld: Vec<OsString>,
) -> LocalConfig {
    let local = LocalConfig::new(master.clone())
        .withhold_variables(withheld)
        .attributes(draft.attributes.clone())
        .work_dir(draft.work_dir.clone())
        // The engine has waited for executors before it stops the cluster, so the rest is killed at once.
        .grace(Duration::ZERO);
    let local = match draft.offer_interval {
        Some(interval) => local.allocation_interval(interval),
        None => local,
    };
    let local = if draft.has_clean_environment { local.clean_environment() } else { local };
    match draft.port {
        Some(port) if !(31_000..=32_000).contains(&port) => {
            local.ports(PortRange::new(1_024, 65_535))
        }
        _ => local,
    }
}
