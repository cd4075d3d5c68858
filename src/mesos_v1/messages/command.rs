//! The command of a task or an executor: its program, environment, files and secrets.

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::{Base64, OptionalName, names};

/// The program to run, and the files to fetch before.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandInfo {
    /// Files that are fetched into the sandbox first.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<Uri>,
    /// The environment.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Whether `value` is a shell command line. Default: true.
    #[prost(bool, optional, default = "true", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// The shell command line, or the program.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Without a shell: the arguments, starting with the program's own name.
    #[prost(string, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The user that runs it, if not the framework's.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A file to fetch into the sandbox.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Uri {
    /// The file's URI.
    #[prost(string, required, tag = "1")]
    pub value: String,
    /// Whether it is made executable.
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// Whether an archive is extracted. Default: true.
    #[prost(bool, optional, default = "true", tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<bool>,
    /// Whether the agent caches the file.
    #[prost(bool, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// The file name in the sandbox, if it differs from the URI's.
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
    /// The name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Whether the value is plain or a secret. Default: plain.
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
    /// The type of an environment variable.
    pub enum VariableType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// A plain value.
        Value = 1, "VALUE";
        /// A secret.
        Secret = 2, "SECRET";
    }
}

/// A secret: its value, or a reference to a secret store.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// The type of the secret.
    #[prost(enumeration = "SecretType", optional, tag = "1")]
    #[serde(with = "OptionalName::<SecretType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The reference to a secret store.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<SecretReference>,
    /// The secret's value.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<SecretValue>,
}

names! {
    /// The type of a secret.
    pub enum SecretType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// A reference to a secret store.
        Reference = 1, "REFERENCE";
        /// The value itself.
        Value = 2, "VALUE";
    }
}

/// A reference to a secret in a secret store.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretReference {
    /// The secret's name in the store.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// The key of a part of the secret.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The value of a secret.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
#[prost(skip_debug)]
pub struct SecretValue {
    /// The secret's value.
    #[prost(bytes = "vec", required, tag = "1")]
    #[serde(with = "Base64")]
    pub data: Vec<u8>,
}

/// Omits the secret, so that it can't be logged.
impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue(..)")
    }
}
