//! Which agents a framework wants to be offered, as the master evaluates it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::{OptionalName, names};

/// Which agents are offered, by role; a role that isn't there is offered all.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferConstraints {
    /// The roles.
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub role_constraints: BTreeMap<String, RoleConstraints>,
}

/// Which agents a role is offered.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleConstraints {
    /// Agents that meet one of them, at least one.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ConstraintGroup>,
}

/// Demands on an agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConstraintGroup {
    /// Agents that meet all of them.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attribute_constraints: Vec<AttributeConstraint>,
}

/// A demand on an attribute.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AttributeConstraint {
    /// Which attribute.
    #[prost(message, required, tag = "1")]
    pub selector: Selector,
    /// What is demanded.
    #[prost(message, required, tag = "2")]
    pub predicate: Predicate,
}

/// Which attribute; one of the fields is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// The first attribute of this name.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_name: Option<String>,
    /// Something else that an agent has.
    #[prost(enumeration = "Pseudoattribute", optional, tag = "1")]
    #[serde(with = "OptionalName::<Pseudoattribute>", skip_serializing_if = "Option::is_none")]
    pub pseudoattribute_type: Option<i32>,
}

names! {
    /// Something that each agent has, or may have, beside its attributes.
    pub enum Pseudoattribute {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Its host name.
        Hostname = 1, "HOSTNAME";
        /// Its region.
        Region = 2, "REGION";
        /// Its zone.
        Zone = 3, "ZONE";
    }
}

/// What is demanded; one of the fields is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Predicate {
    /// That there is one.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<Exists>,
    /// That there is none.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_exists: Option<NotExists>,
    /// That a text is this one.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_equals: Option<TextEquals>,
    /// That a text is another one.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_not_equals: Option<TextNotEquals>,
    /// That a text matches.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_matches: Option<TextMatches>,
    /// That a text doesn't match.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_not_matches: Option<TextNotMatches>,
}

/// That there is one.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct Exists {}

/// That there is none.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct NotExists {}

/// A text to be.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextEquals {
    /// The text.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A text not to be.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextNotEquals {
    /// The text.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A pattern to match.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextMatches {
    /// An RE2 pattern for the whole text.
    #[prost(string, required, tag = "1")]
    pub regex: String,
}

/// A pattern not to match.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TextNotMatches {
    /// An RE2 pattern for the whole text.
    #[prost(string, required, tag = "1")]
    pub regex: String,
}
