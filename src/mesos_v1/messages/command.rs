//! The command of a task or an executor: its program, environment, files and secrets.

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::{Base64, OptionalName, names};

/// What is run, and what is fetched before.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandInfo {
    /// Fetched into the sandbox first.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<Uri>,
    /// The environment.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Whether `value` is for a shell. Default yes.
    #[prost(bool, optional, default = "true", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// The shell's command line, or the program.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Without a shell: the arguments, from the program's own name on.
    #[prost(string, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Who it runs as, if not the framework's user.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A file to be fetched into the sandbox.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Uri {
    /// Where it is.
    #[prost(string, required, tag = "1")]
    pub value: String,
    /// Whether it is made executable.
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// Whether an archive is unpacked. Default yes.
    #[prost(bool, optional, default = "true", tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<bool>,
    /// Whether the agent may keep it for the next.
    #[prost(bool, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// What it is called in the sandbox, if not by its own name.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
}

/// Environment variables.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The variables.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// An environment variable.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Whether it is a secret. Default no.
    #[prost(enumeration = "VariableType", optional, default = "Value", tag = "3")]
    #[serde(with = "OptionalName::<VariableType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// Its value, unless it is a secret.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Its value, if it is a secret.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
}

names! {
    /// How an environment variable is given.
    pub enum VariableType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Plainly.
        Value = 1, "VALUE";
        /// As a secret.
        Secret = 2, "SECRET";
    }
}

/// A secret: itself or where it is kept.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Which of them.
    #[prost(enumeration = "SecretType", optional, tag = "1")]
    #[serde(with = "OptionalName::<SecretType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// Where it is kept.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<SecretReference>,
    /// The secret.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<SecretValue>,
}

names! {
    /// How a secret is given.
    pub enum SecretType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// By where it is kept.
        Reference = 1, "REFERENCE";
        /// Itself.
        Value = 2, "VALUE";
    }
}

/// Where a secret is kept.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretReference {
    /// The name that the store knows.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Which part of it.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A secret itself.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
#[prost(skip_debug)]
pub struct SecretValue {
    /// The secret.
    #[prost(bytes = "vec", required, tag = "1")]
    #[serde(with = "Base64")]
    pub data: Vec<u8>,
}

/// Without the secret, so that it can't get into a log.
impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue(..)")
    }
}
