//! What a cluster says of an agent that it chose itself.

use crate::limits::{
    AGENT_FACTS_BYTES_MAX, ATTRIBUTE_BYTES_MAX, FOREIGN_ID_BYTES_MAX, HOSTNAME_BYTES_MAX,
};
use crate::offer::BoundAgent;
use crate::offer::attributes::{self, Items, OwnedAttribute, OwnedAttributeValue};

/// What an attribute, an item of a set, and a range count for besides their texts.
const ENTRY_BYTES: usize = 16;

/// What a cluster says of the agent on which it has started an executor that is
/// [bound late](crate::Binding::Late); see [`BoundAgent`](crate::BoundAgent).
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AgentFacts {
    /// Its host name; empty if it is unknown.
    pub hostname: String,
    /// Its attributes. `None` if they are unknown; then the constraint is not evaluated.
    pub attributes: Option<Vec<OwnedAttribute>>,
    /// The region of its fault domain, if it is known.
    pub region: Option<String>,
    /// The zone of its fault domain, if it is known.
    pub zone: Option<String>,
}

impl AgentFacts {
    /// Creates the facts of an agent whose attributes are unknown.
    #[must_use]
    pub fn new(hostname: impl Into<String>) -> AgentFacts {
        AgentFacts { hostname: hostname.into(), ..AgentFacts::default() }
    }

    /// Sets the agent's attributes.
    #[must_use]
    pub fn with_attributes(self, attributes: Vec<OwnedAttribute>) -> AgentFacts {
        AgentFacts { attributes: Some(attributes), ..self }
    }

    /// Sets the region and zone of the agent's fault domain.
    #[must_use]
    pub fn with_domain(self, region: impl Into<String>, zone: impl Into<String>) -> AgentFacts {
        AgentFacts { region: Some(region.into()), zone: Some(zone.into()), ..self }
    }

    /// Whether its names and its attributes are as short, and together as small, as [`limits`](crate::limits) require.
    pub(super) fn is_bounded(&self) -> bool {
        let is_name = |text: &String| text.len() <= FOREIGN_ID_BYTES_MAX;
        self.hostname.len() <= HOSTNAME_BYTES_MAX
            && [&self.region, &self.zone].into_iter().flatten().all(is_name)
            && self.attributes.iter().flatten().all(is_short)
            && self.bytes() <= AGENT_FACTS_BYTES_MAX
    }

    /// The size of the texts, with 16 bytes for each attribute, item of a set, and range.
    pub(super) fn bytes(&self) -> usize {
        let names = [Some(&self.hostname), self.region.as_ref(), self.zone.as_ref()];
        let names: usize = names.into_iter().flatten().map(String::len).sum();
        names + self.attributes.iter().flatten().map(attribute_bytes).sum::<usize>()
    }
}

/// Calls `bind` with an agent and what is known of it.
pub(super) fn bind_to<R>(
    agent_id: &str,
    facts: Option<&AgentFacts>,
    bind: impl FnOnce(&BoundAgent<'_>) -> R,
) -> R {
    let Some(facts) = facts else { return bind(&BoundAgent::new(agent_id, "")) };
    let owned = || facts.attributes.iter().flatten();
    let items = Items::of(owned());
    let attributes = attributes::borrow(owned(), &items);
    let mut agent = BoundAgent::new(agent_id, &facts.hostname);
    agent.attributes = facts.attributes.as_ref().map(|_| &*attributes);
    agent.region = facts.region.as_deref();
    agent.zone = facts.zone.as_deref();
    bind(&agent)
}

fn attribute_bytes(attribute: &OwnedAttribute) -> usize {
    let value = match &attribute.value {
        OwnedAttributeValue::Text(text) => text.len(),
        OwnedAttributeValue::Set(items) => items.iter().map(|item| ENTRY_BYTES + item.len()).sum(),
        OwnedAttributeValue::Ranges(ranges) => ranges.len() * ENTRY_BYTES,
        OwnedAttributeValue::Scalar(_) => 0,
    };
    ENTRY_BYTES + attribute.name.len() + value
}

/// Whether an attribute's name and each text in its value are as short as they must be.
pub(super) fn is_short(attribute: &OwnedAttribute) -> bool {
    let is_short = |text: &String| text.len() <= ATTRIBUTE_BYTES_MAX;
    let has_short_value = match &attribute.value {
        OwnedAttributeValue::Text(text) => is_short(text),
        OwnedAttributeValue::Set(items) => items.iter().all(is_short),
        OwnedAttributeValue::Scalar(_) | OwnedAttributeValue::Ranges(_) => true,
    };
    is_short(&attribute.name) && has_short_value
}
