//! [`PodVolume`]: volumes of pods, which are mounted into executors' containers.

use serde_json::{Value, json};

use super::names::is_name;
use crate::error::Error;

/// A volume of executors' pods, and where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodVolume {
    /// The volume's name: lower-case letters, digits and `-`.
    pub name: String,
    /// Where its content comes from.
    pub source: PodVolumeSource,
    /// The folder of the executor's container in which it is mounted.
    pub mount_path: String,
    /// The folder of the volume that is mounted; `None` mounts all of it.
    pub sub_path: Option<String>,
    /// Whether executors can't write to it.
    pub is_read_only: bool,
}

/// Where the content of a volume comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodVolumeSource {
    /// A file or folder of the node.
    HostPath {
        /// Its path.
        path: String,
        /// What must be there, such as `Directory`; `None` checks nothing.
        kind: Option<String>,
    },
    /// An empty folder, which ends with the pod.
    EmptyDir {
        /// `Memory`, or `None` for the node's disk.
        medium: Option<String>,
        /// The most that it can hold, such as `1Gi`.
        size_limit: Option<String>,
    },
    /// A folder of an NFS server.
    Nfs {
        /// The server's name or address.
        server: String,
        /// The folder's path.
        path: String,
    },
    /// A claim that exists, and that all executors share.
    Claim {
        /// Its name.
        name: String,
    },
    /// A claim of each pod's own, which its cluster creates and deletes with the pod, so that no right to claims is
    /// needed for it. One node at a time can use it (`ReadWriteOnce`). Servers know this since Kubernetes 1.21.
    OwnClaim {
        /// The storage class; `None` takes the cluster's default.
        storage_class: Option<String>,
        /// Its size, such as `10Gi`.
        size: String,
    },
}

impl PodVolume {
    /// Creates a volume that executors can write to, all of which is mounted.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        source: PodVolumeSource,
        mount_path: impl Into<String>,
    ) -> PodVolume {
        let (name, mount_path) = (name.into(), mount_path.into());
        PodVolume { name, source, mount_path, sub_path: None, is_read_only: false }
    }

    /// Checks what doesn't depend on the cluster.
    pub(super) fn check(&self) -> Result<(), Error> {
        let PodVolume { name, mount_path, .. } = self;
        if !is_name(name) {
            let allowed = "lower-case letters, digits and '-', the latter neither first nor last";
            return Err(Error::setting("name of the volume", name, allowed));
        }
        if !mount_path.starts_with('/') {
            let allowed = "an absolute path in the container";
            return Err(Error::setting(
                format!("mount path of volume {name}"),
                mount_path,
                allowed,
            ));
        }
        Ok(())
    }

    /// The volume as part of a pod.
    pub(super) fn source(&self) -> Value {
        let (kind, source) = match &self.source {
            PodVolumeSource::HostPath { path, kind } => {
                ("hostPath", json!({ "path": path, "type": kind }))
            }
            PodVolumeSource::EmptyDir { medium, size_limit } => {
                ("emptyDir", json!({ "medium": medium, "sizeLimit": size_limit }))
            }
            PodVolumeSource::Nfs { server, path } => {
                ("nfs", json!({ "server": server, "path": path }))
            }
            PodVolumeSource::Claim { name } => {
                ("persistentVolumeClaim", json!({ "claimName": name }))
            }
            PodVolumeSource::OwnClaim { storage_class, size } => {
                let spec = without_null(json!({
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": storage_class,
                    "resources": { "requests": { "storage": size } },
                }));
                ("ephemeral", json!({ "volumeClaimTemplate": { "spec": spec } }))
            }
        };
        json!({ "name": self.name, kind: without_null(source) })
    }

    /// Its mount as part of a container.
    pub(super) fn mount(&self) -> Value {
        without_null(json!({
            "name": self.name,
            "mountPath": self.mount_path,
            "subPath": self.sub_path,
            "readOnly": self.is_read_only,
        }))
    }
}

fn without_null(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    object
}
