//! The framework's `FrameworkInfo`: name, roles, capabilities, and filters of offers.

use super::config::MesosConfig;
use super::offer_constraints::{offer_constraints, offer_filters};
use crate::mesos_v1::messages::{
    Capability, CapabilityType, FrameworkId, FrameworkInfo, Label, Labels, OfferConstraints,
};

/// The `FrameworkInfo` of these settings, with the framework's id if it has one.
pub(super) fn info(config: &MesosConfig, id: Option<&str>) -> FrameworkInfo {
    let labels =
        config.labels.iter().map(|(key, value)| Label { key: key.clone(), value: value.clone() });
    FrameworkInfo {
        // The cluster manager has set it.
        user: config.user.clone().unwrap_or_default(),
        name: config.name.clone(),
        id: id.map(framework_id),
        failover_timeout: Some(config.failover_timeout.as_secs_f64()),
        checkpoint: Some(config.checkpoint),
        roles: config.roles.clone(),
        hostname: config.hostname.clone().or_else(hostname),
        principal: config.credential.as_ref().map(|credential| credential.principal.clone()),
        webui_url: config.webui_url.clone(),
        capabilities: capabilities(config),
        labels: (!config.labels.is_empty()).then(|| Labels { labels: labels.collect() }),
        offer_filters: offer_filters(&config.min_offer_resources, &config.roles),
        ..FrameworkInfo::default()
    }
}

/// The constraints that the master can check.
pub(super) fn constraints(config: &MesosConfig) -> Option<OfferConstraints> {
    offer_constraints(&config.constraint.pushdown(config.duplicate_attributes), &config.roles)
}

pub(super) fn framework_id(id: &str) -> FrameworkId {
    FrameworkId { value: id.to_owned() }
}

/// The capabilities that this crate supports and the settings ask for.
fn capabilities(config: &MesosConfig) -> Vec<Capability> {
    use CapabilityType::{
        GpuResources, MultiRole, PartitionAware, RegionAware, ReservationRefinement,
        RevocableResources, TaskKillingState,
    };
    let always = [MultiRole, PartitionAware, TaskKillingState, ReservationRefinement, RegionAware];
    let gpus = config.gpus.then_some(GpuResources);
    let revocable = config.revocable.then_some(RevocableResources);
    let all = always.into_iter().chain(gpus).chain(revocable);
    all.map(|one| Capability { r#type: Some(one.into()) }).collect()
}

/// This machine's host name, if the system has it in a file.
fn hostname() -> Option<String> {
    let text = std::fs::read_to_string("/etc/hostname").ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}
