//! Offer constraints: restrictions on the offered agents, which the master evaluates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::{OptionalName, names};

/// Constraints by role. A role without an entry is offered all agents.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferConstraints {
    /// The roles.
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub role_constraints: BTreeMap<String, RoleConstraints>,
}

/// The constraints of one role.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleConstraints {
    /// The groups, of which an agent must meet at least one. At least one group is required.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ConstraintGroup>,
}

/// A group of constraints.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConstraintGroup {
    /// The constraints, all of which an agent must meet.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attribute_constraints: Vec<AttributeConstraint>,
}

/// A constraint on an attribute.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AttributeConstraint {
    /// The selected attribute.
    #[prost(message, required, tag = "1")]
    pub selector: Selector,
    /// The predicate that the attribute must meet.
    #[prost(message, required, tag = "2")]
    pub predicate: Predicate,
}

/// Selects an attribute. One of the fields is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// The first attribute of this name.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_name: Option<String>,
    /// A property of the agent that isn't an attribute.
    #[prost(enumeration = "Pseudoattribute", optional, tag = "1")]
    #[serde(with = "OptionalName::<Pseudoattribute>", skip_serializing_if = "Option::is_none")]
    pub pseudoattribute_type: Option<i32>,
}

names! {
    /// A property of an agent that isn't an attribute.
    pub enum Pseudoattribute {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// The host name.
        Hostname = 1, "HOSTNAME";
        /// The region.
        Region = 2, "REGION";
        /// The zone.
        Zone = 3, "ZONE";
    }
}

/// A predicate on an attribute. One of the fields is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Predicate {
    /// The attribute exists.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<Exists>,
    /// The attribute doesn't exist.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_exists: Option<NotExists>,
    /// The text equals this one.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_equals: Option<TextEquals>,
    /// The text differs from this one.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_not_equals: Option<TextNotEquals>,
    /// The text matches a pattern.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_matches: Option<TextMatches>,
    /// The text doesn't match a pattern.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_not_matches: Option<TextNotMatches>,
}

/// The attribute exists.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct Exists {}

/// The attribute doesn't exist.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct NotExists {}

/// Requires equality with a text.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextEquals {
    /// The text.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// Requires inequality with a text.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextNotEquals {
    /// The text.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// Requires a match of a pattern.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextMatches {
    /// An RE2 pattern, which is matched against the whole text.
    #[prost(string, required, tag = "1")]
    pub regex: String,
}

/// Requires that a pattern doesn't match.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextNotMatches {
    /// An RE2 pattern, which is matched against the whole text.
    #[prost(string, required, tag = "1")]
    pub regex: String,
}
