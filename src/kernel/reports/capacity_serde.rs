//! The picture of the cluster's capacity as serde writes it. It is a view of shared parts, so it isn't read back.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::capacity::ClusterCapacity;
use super::capacity_agent::AgentResources;

/// The items of an iterator that can be begun anew, as a sequence.
struct Sequence<F>(F);

impl<F, I> Serialize for Sequence<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl Serialize for ClusterCapacity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ClusterCapacity", 7)?;
        fields.serialize_field("version", &self.version())?;
        fields.serialize_field("time", &self.time())?;
        fields.serialize_field("totals", &self.totals())?;
        fields.serialize_field("exact", &self.exact())?;
        fields.serialize_field("sums", &self.sums())?;
        fields.serialize_field("largest_agent", &self.largest_agent())?;
        fields.serialize_field("agents", &Sequence(|| self.agents()))?;
        fields.end()
    }
}

impl Serialize for AgentResources<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("AgentResources", 12)?;
        fields.serialize_field("agent_id", self.agent_id())?;
        fields.serialize_field("hostname", self.hostname())?;
        fields.serialize_field("executors", &self.executors())?;
        fields.serialize_field("offered", &self.offered())?;
        fields.serialize_field("offered_at", &self.offered_at())?;
        fields.serialize_field("seen_at", &self.seen_at())?;
        fields.serialize_field("used", &self.used())?;
        fields.serialize_field("free", &self.free())?;
        fields.serialize_field("excluded_until", &self.excluded_until())?;
        fields.serialize_field("suspect_until", &self.suspect_until())?;
        fields.serialize_field("attributes", self.attributes())?;
        fields.serialize_field("roles", &Sequence(|| self.roles()))?;
        fields.end()
    }
}
