//! Values of resources and attributes.

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::{EnumName, names};

names! {
    /// The type of a value.
    pub enum ValueType {
        /// A number.
        Scalar = 0, "SCALAR";
        /// Ranges of whole numbers.
        Ranges = 1, "RANGES";
        /// A set of texts.
        Set = 2, "SET";
        /// A text.
        Text = 3, "TEXT";
    }
}

/// A number.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Scalar {
    /// The number. Mesos keeps three decimals.
    #[prost(double, required, tag = "1")]
    pub value: f64,
}

/// A range of whole numbers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Range {
    /// The first number.
    #[prost(uint64, required, tag = "1")]
    pub begin: u64,
    /// The last number, inclusive.
    #[prost(uint64, required, tag = "2")]
    pub end: u64,
}

/// Ranges of whole numbers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Ranges {
    /// The ranges.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<Range>,
}

/// A set of texts.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Set {
    /// The texts.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub item: Vec<String>,
}

/// A text.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Text {
    /// The text.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A value. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Value {
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "ValueType", required, tag = "1")]
    #[serde(with = "EnumName::<ValueType>")]
    pub r#type: i32,
    /// The number.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalar: Option<Scalar>,
    /// The ranges.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
    /// The set.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Set>,
    /// The text.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
}

/// An attribute of an agent. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Attribute {
    /// The name, which isn't unique.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "ValueType", required, tag = "2")]
    #[serde(with = "EnumName::<ValueType>")]
    pub r#type: i32,
    /// The number.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalar: Option<Scalar>,
    /// The ranges.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
    /// The set.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Set>,
    /// The text.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
}
