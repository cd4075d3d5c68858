//! Preparation of local agents, about which everything is known before the start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::local::{LocalCluster, LocalConfig, LocalMaster};
use offermill::launch::Secret;
use offermill::resources::PortRange;

use crate::model::target::{AgentCounts, FrameworkRemains, OnExit, RunTarget, SandboxPlace};
use crate::settings::checks::preflight;
use crate::settings::draft::SettingsDraft;
use crate::target::PreparedTarget;

/// Checks that executors fit on an agent, and that sandboxes can be created.
pub(super) fn prepare(
    draft: &mut SettingsDraft,
    text: String,
    master: &LocalMaster,
    config: &Config,
) -> Option<PreparedTarget> {
    let capacity = preflight::check_capacity(draft, config, &text, master)?;
    let cluster = LocalCluster::new(local_config(draft, master));
    let cluster = cluster.map_err(|error| draft.report_error(&error)).ok()?;
    if draft.problems.is_empty() && !draft.is_dry_run {
        preflight::check_work_dir(draft);
    }
    let target = RunTarget {
        master: text,
        agents: Some(AgentCounts { all: master.agents(), usable: capacity.agents }),
        fitting: capacity.executors,
        sandboxes: SandboxPlace::Here(draft.work_dir.join("sandboxes")),
        no_offers_hint: None,
        on_exit: OnExit::Killed,
        remains: FrameworkRemains::default(),
        teardown_url: None,
        stop_timeout: Duration::from_secs(15),
    };
    Some((target, Arc::new(cluster)))
}

/// The variables of this program that hold one of its secrets.
fn secret_variables(draft: &SettingsDraft) -> Vec<OsString> {
    let given = draft.specs().iter().flat_map(|spec| draft.given_for(spec));
    let secrets: Vec<&Secret> = given.filter_map(|given| given.secret.as_ref()).collect();
    let is_secret = |value: &OsStr| {
        let value = value.to_string_lossy();
        secrets.iter().any(|secret| !secret.is_empty() && value.contains(secret.expose()))
    };
    let variables = env::vars_os().filter(|(_, value)| is_secret(value));
    variables.map(|(name, _)| name).collect()
}

fn local_config(draft: &SettingsDraft, master: &LocalMaster) -> LocalConfig {
    let local = LocalConfig::new(master.clone())
        .withhold_variables(secret_variables(draft))
        .attributes(draft.attributes.clone())
        .work_dir(draft.work_dir.clone())
        // The engine has waited for executors before it stops the cluster, so the rest is killed at once.
        .grace(Duration::ZERO);
    let local = if draft.has_clean_environment { local.clean_environment() } else { local };
    match draft.port {
        Some(port) if !(31_000..=32_000).contains(&port) => {
            local.ports(PortRange::new(1_024, 65_535))
        }
        _ => local,
    }
}
