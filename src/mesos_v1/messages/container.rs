//! Containers: images, volumes and networks.

use serde::{Deserialize, Serialize};

use super::{Labels, Parameter, Parameters, Secret};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// A container to be made; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerInfo {
    /// Who makes it.
    #[prost(enumeration = "ContainerType", required, tag = "1")]
    #[serde(with = "EnumName::<ContainerType>")]
    pub r#type: i32,
    /// What it sees of other files.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Its host name.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// What Docker is told.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerInfo>,
    /// What Mesos is told.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesos: Option<MesosInfo>,
    /// Its networks.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_infos: Vec<NetworkInfo>,
}

names! {
    /// Who makes a container.
    pub enum ContainerType {
        /// Docker.
        Docker = 1, "DOCKER";
        /// Mesos.
        Mesos = 2, "MESOS";
    }
}

/// What Docker is told.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerInfo {
    /// The image.
    #[prost(string, required, tag = "1")]
    pub image: String,
    /// Its network. Default the host's.
    #[prost(enumeration = "DockerNetwork", optional, default = "Host", tag = "2")]
    #[serde(with = "OptionalName::<DockerNetwork>", skip_serializing_if = "Option::is_none")]
    pub network: Option<i32>,
    /// Ports of the host that lead to it.
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port_mappings: Vec<DockerPortMapping>,
    /// Whether it may do what the host may. Default no.
    #[prost(bool, optional, default = "false", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Further options of `docker run`.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Whether the image is fetched even if it is there.
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_pull_image: Option<bool>,
    /// Who makes its volumes; volumes say it themselves now.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_driver: Option<String>,
}

names! {
    /// A network of Docker's.
    pub enum DockerNetwork {
        /// The host's.
        Host = 1, "HOST";
        /// Behind a bridge.
        Bridge = 2, "BRIDGE";
        /// None.
        None = 3, "NONE";
        /// The one that `network_infos` names.
        User = 4, "USER";
    }
}

/// A port of the host that leads to a container.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerPortMapping {
    /// The host's.
    #[prost(uint32, required, tag = "1")]
    pub host_port: u32,
    /// The container's.
    #[prost(uint32, required, tag = "2")]
    pub container_port: u32,
    /// `tcp` or `udp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// What Mesos is told.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MesosInfo {
    /// The image; none for the host's files.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// An image; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Image {
    /// Its kind.
    #[prost(enumeration = "ImageType", required, tag = "1")]
    #[serde(with = "EnumName::<ImageType>")]
    pub r#type: i32,
    /// An Appc image.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appc: Option<AppcImage>,
    /// A Docker image.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerImage>,
    /// Whether one that is there is taken. Default yes.
    #[prost(bool, optional, default = "true", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
}

names! {
    /// What an image is made as.
    pub enum ImageType {
        /// As Appc defines it.
        Appc = 1, "APPC";
        /// As Docker defines it.
        Docker = 2, "DOCKER";
    }
}

/// An Appc image.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AppcImage {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Its hash.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its labels.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// A Docker image.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerImage {
    /// Registry, name, tag.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// A Docker configuration with what the registry asks for.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Secret>,
}

/// Other files that a container sees.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Whether it may write to them.
    #[prost(enumeration = "VolumeMode", required, tag = "3")]
    #[serde(with = "EnumName::<VolumeMode>")]
    pub mode: i32,
    /// Where it sees them.
    #[prost(string, required, tag = "1")]
    pub container_path: String,
    /// Where they are on the host, if nothing below says it.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// The image that they come from.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Where else they come from.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<VolumeSource>,
}

names! {
    /// Whether files may be written to.
    pub enum VolumeMode {
        /// Yes.
        Rw = 1, "RW";
        /// No.
        Ro = 2, "RO";
    }
}

/// Where files come from; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeSource {
    /// Its kind.
    #[prost(enumeration = "VolumeSourceType", optional, tag = "1")]
    #[serde(with = "OptionalName::<VolumeSourceType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A volume of Docker's.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_volume: Option<DockerVolume>,
    /// A path of the host.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPath>,
    /// A path in a sandbox.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_path: Option<SandboxPath>,
    /// A secret.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
}

names! {
    /// Where files come from.
    pub enum VolumeSourceType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// A volume of Docker's.
        DockerVolume = 1, "DOCKER_VOLUME";
        /// The host.
        HostPath = 4, "HOST_PATH";
        /// A sandbox.
        SandboxPath = 2, "SANDBOX_PATH";
        /// A secret.
        Secret = 3, "SECRET";
        /// A volume of a storage plug-in.
        CsiVolume = 5, "CSI_VOLUME";
    }
}

/// A volume of Docker's.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerVolume {
    /// Who makes it.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its name.
    #[prost(string, required, tag = "2")]
    pub name: String,
    /// What its driver is told.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_options: Option<Parameters>,
}

/// A path of the host.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HostPath {
    /// The path.
    #[prost(string, required, tag = "1")]
    pub path: String,
    /// Whether later mounts are seen.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_propagation: Option<MountPropagation>,
}

/// Whether later mounts are seen.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MountPropagation {
    /// In which direction.
    #[prost(enumeration = "MountPropagationMode", optional, tag = "1")]
    #[serde(
        with = "OptionalName::<MountPropagationMode>",
        skip_serializing_if = "Option::is_none"
    )]
    pub mode: Option<i32>,
}

names! {
    /// In which direction later mounts are seen.
    pub enum MountPropagationMode {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// The container sees the host's.
        HostToContainer = 1, "HOST_TO_CONTAINER";
        /// Each sees the other's.
        Bidirectional = 2, "BIDIRECTIONAL";
    }
}

/// A path in a sandbox.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxPath {
    /// Whose.
    #[prost(enumeration = "SandboxPathType", optional, tag = "1")]
    #[serde(with = "OptionalName::<SandboxPathType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The path, relative to the sandbox.
    #[prost(string, required, tag = "2")]
    pub path: String,
}

names! {
    /// Whose sandbox.
    pub enum SandboxPathType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// The container's own.
        Own = 1, "SELF";
        /// The one of the container around it.
        Parent = 2, "PARENT";
    }
}

/// A network of a container: what is wanted, or what it got.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInfo {
    /// Its addresses.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<IpAddress>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who it may talk to.
    #[prost(string, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What the network's maker is told.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Ports of the host that lead to it.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port_mappings: Vec<PortMapping>,
}

/// An address.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct IpAddress {
    /// Which IP. Default 4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "1")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The address, as text.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

names! {
    /// Which IP.
    pub enum Protocol {
        /// IPv4.
        Ipv4 = 1, "IPv4";
        /// IPv6.
        Ipv6 = 2, "IPv6";
    }
}

/// A port of the host that leads to a container.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PortMapping {
    /// The host's.
    #[prost(uint32, required, tag = "1")]
    pub host_port: u32,
    /// The container's.
    #[prost(uint32, required, tag = "2")]
    pub container_port: u32,
    /// `tcp` or `udp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}
