//! When an executor is bound to an agent, and what is known of the agent then.

use super::Attribute;

/// When the executors of an offer are bound to an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Binding {
    /// At once: the offer names the agent whose resources it offers.
    #[default]
    Immediate,
    /// Later: the cluster has a scheduler of its own, as Kubernetes has, which chooses the agent after the executor was
    /// created. The offer is a permit to create one executor. The first update that names an agent
    /// [binds](crate::Kernel::bind) the executor to it.
    Late,
}

/// An agent on which the cluster has placed an executor that is [bound late](Binding::Late).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BoundAgent<'a> {
    /// Its id. If it is empty, nothing is bound.
    pub agent_id: &'a str,
    /// Its host name; empty if it is unknown.
    pub hostname: &'a str,
    /// Its attributes, which the constraint is matched against. `None` if they are unknown; then the constraint is not
    /// evaluated.
    pub attributes: Option<&'a [Attribute<'a>]>,
    /// The region of its fault domain, if it is known.
    pub region: Option<&'a str>,
    /// The zone of its fault domain, if it is known.
    pub zone: Option<&'a str>,
}

impl<'a> BoundAgent<'a> {
    /// Creates the description of an agent whose attributes are unknown.
    #[must_use]
    pub const fn new(agent_id: &'a str, hostname: &'a str) -> BoundAgent<'a> {
        BoundAgent { agent_id, hostname, attributes: None, region: None, zone: None }
    }

    /// Sets the agent's attributes.
    #[must_use]
    pub const fn with_attributes(mut self, attributes: &'a [Attribute<'a>]) -> BoundAgent<'a> {
        self.attributes = Some(attributes);
        self
    }

    /// Sets the region and zone of the agent's fault domain.
    #[must_use]
    pub const fn in_domain(mut self, region: &'a str, zone: &'a str) -> BoundAgent<'a> {
        self.region = Some(region);
        self.zone = Some(zone);
        self
    }
}
