//! Containers: images, volumes and networks.

use serde::{Deserialize, Serialize};

use super::{Labels, Parameter, Parameters, Secret};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// A container to create. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerInfo {
    /// The containerizer.
    #[prost(enumeration = "ContainerType", required, tag = "1")]
    #[serde(with = "EnumName::<ContainerType>")]
    pub r#type: i32,
    /// The mounted volumes.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// The host name in the container.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Options for Docker.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerInfo>,
    /// Options for the Mesos containerizer.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesos: Option<MesosInfo>,
    /// The networks that it joins.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_infos: Vec<NetworkInfo>,
}

names! {
    /// The type of a containerizer.
    pub enum ContainerType {
        /// Docker.
        Docker = 1, "DOCKER";
        /// The Mesos containerizer.
        Mesos = 2, "MESOS";
    }
}

/// Options for Docker.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerInfo {
    /// The image.
    #[prost(string, required, tag = "1")]
    pub image: String,
    /// The network mode. Default: the host's network.
    #[prost(enumeration = "DockerNetwork", optional, default = "Host", tag = "2")]
    #[serde(with = "OptionalName::<DockerNetwork>", skip_serializing_if = "Option::is_none")]
    pub network: Option<i32>,
    /// The published ports.
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port_mappings: Vec<DockerPortMapping>,
    /// Whether the container is privileged. Default: false.
    #[prost(bool, optional, default = "false", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Further options of `docker run`.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Whether the image is pulled even if the agent has it.
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_pull_image: Option<bool>,
    /// The volume driver. Deprecated: volumes have their own.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_driver: Option<String>,
}

names! {
    /// The network mode of a Docker container.
    pub enum DockerNetwork {
        /// The host's network.
        Host = 1, "HOST";
        /// A bridge network.
        Bridge = 2, "BRIDGE";
        /// No network.
        None = 3, "NONE";
        /// The user network named in `network_infos`.
        User = 4, "USER";
    }
}

/// A container port that is published on the host.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerPortMapping {
    /// The host's port.
    #[prost(uint32, required, tag = "1")]
    pub host_port: u32,
    /// The container's port.
    #[prost(uint32, required, tag = "2")]
    pub container_port: u32,
    /// The protocol: `tcp` or `udp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// Options for the Mesos containerizer.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MesosInfo {
    /// The image. Unset means the host's file system.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// An image. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Image {
    /// The kind; it determines which other field is set.
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
    /// Whether a cached image may be used. Default: true.
    #[prost(bool, optional, default = "true", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
}

names! {
    /// The format of an image.
    pub enum ImageType {
        /// Appc.
        Appc = 1, "APPC";
        /// Docker.
        Docker = 2, "DOCKER";
    }
}

/// An Appc image.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AppcImage {
    /// The name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// The hash.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The labels.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// A Docker image.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerImage {
    /// The registry, name and tag.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// A Docker configuration with the registry's credentials.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Secret>,
}

/// A volume that is mounted into a container.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Whether the mount is writable.
    #[prost(enumeration = "VolumeMode", required, tag = "3")]
    #[serde(with = "EnumName::<VolumeMode>")]
    pub mode: i32,
    /// The path in the container.
    #[prost(string, required, tag = "1")]
    pub container_path: String,
    /// The path on the host, unless `image` or `source` is set.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// The image that the volume contains.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Another source of the volume.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<VolumeSource>,
}

names! {
    /// The access mode of a volume.
    pub enum VolumeMode {
        /// Read and write.
        Rw = 1, "RW";
        /// Read only.
        Ro = 2, "RO";
    }
}

/// The source of a volume. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeSource {
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "VolumeSourceType", optional, tag = "1")]
    #[serde(with = "OptionalName::<VolumeSourceType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A Docker volume.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_volume: Option<DockerVolume>,
    /// A path on the host.
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
    /// The type of a volume's source.
    pub enum VolumeSourceType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// A Docker volume.
        DockerVolume = 1, "DOCKER_VOLUME";
        /// A path on the host.
        HostPath = 4, "HOST_PATH";
        /// A path in a sandbox.
        SandboxPath = 2, "SANDBOX_PATH";
        /// A secret.
        Secret = 3, "SECRET";
        /// A volume of a CSI plug-in.
        CsiVolume = 5, "CSI_VOLUME";
    }
}

/// A Docker volume.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerVolume {
    /// The containerizer.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The name.
    #[prost(string, required, tag = "2")]
    pub name: String,
    /// Options for the driver.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_options: Option<Parameters>,
}

/// A path on the host.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HostPath {
    /// The path.
    #[prost(string, required, tag = "1")]
    pub path: String,
    /// Propagation of mounts that are made later.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_propagation: Option<MountPropagation>,
}

/// Propagation of mounts that are made later.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MountPropagation {
    /// The direction of propagation.
    #[prost(enumeration = "MountPropagationMode", optional, tag = "1")]
    #[serde(
        with = "OptionalName::<MountPropagationMode>",
        skip_serializing_if = "Option::is_none"
    )]
    pub mode: Option<i32>,
}

names! {
    /// The direction in which later mounts are propagated.
    pub enum MountPropagationMode {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// From the host to the container.
        HostToContainer = 1, "HOST_TO_CONTAINER";
        /// In both directions.
        Bidirectional = 2, "BIDIRECTIONAL";
    }
}

/// A path in a sandbox.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxPath {
    /// The owner of the sandbox.
    #[prost(enumeration = "SandboxPathType", optional, tag = "1")]
    #[serde(with = "OptionalName::<SandboxPathType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The path, relative to the sandbox.
    #[prost(string, required, tag = "2")]
    pub path: String,
}

names! {
    /// The owner of a sandbox.
    pub enum SandboxPathType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// The container's own.
        Own = 1, "SELF";
        /// The parent container's.
        Parent = 2, "PARENT";
    }
}

/// A network of a container, as requested or as assigned.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInfo {
    /// The IP addresses.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<IpAddress>,
    /// The name.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The network groups that the container belongs to.
    #[prost(string, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Labels for the network's provider.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// The published ports.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port_mappings: Vec<PortMapping>,
}

/// An IP address.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct IpAddress {
    /// The IP version. Default: IPv4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "1")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The address, as text.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

names! {
    /// The IP version.
    pub enum Protocol {
        /// IPv4.
        Ipv4 = 1, "IPv4";
        /// IPv6.
        Ipv6 = 2, "IPv6";
    }
}

/// A container port that is published on the host.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PortMapping {
    /// The host's port.
    #[prost(uint32, required, tag = "1")]
    pub host_port: u32,
    /// The container's port.
    #[prost(uint32, required, tag = "2")]
    pub container_port: u32,
    /// The protocol: `tcp` or `udp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}
