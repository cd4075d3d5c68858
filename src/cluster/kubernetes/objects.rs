//! The parts of Kubernetes' objects that are read: pods, their status, lists of pods, and the status of a failure.
//! Other fields are skipped without being kept, so that objects of any version can be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads null as the default value: servers write null for some empty lists and maps.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pod {
    pub(super) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(super) spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: PodStatus,
}

impl Pod {
    /// Whether its deletion was requested.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// The metadata of any object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Set when a deletion was requested: the time until which the pod may take.
    pub(super) deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// What of a pod's specification is read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    /// The node, once the scheduler has chosen one.
    #[serde(deserialize_with = "or_default")]
    pub(super) node_name: String,
    /// Where it may be placed, as it was created.
    pub(super) affinity: Value,
}

/// A pod's status.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    /// The node for which the scheduler has preempted others, until they are gone.
    #[serde(deserialize_with = "or_default")]
    pub(super) nominated_node_name: String,
    /// The address of its sandbox, in which its containers run.
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    pub(super) pod_ip: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) conditions: Vec<PodCondition>,
    #[serde(deserialize_with = "or_default")]
    pub(super) container_statuses: Vec<PodContainerStatus>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodCondition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// `True`, `False` or `Unknown`.
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// The status of a container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodContainerStatus {
    pub(super) name: String,
    /// Set when the container was created on the node.
    #[serde(rename = "containerID")]
    pub(super) container_id: Option<String>,
    pub(super) ready: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) state: ContainerState,
}

/// The state of a container: one of the three, or none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct ContainerState {
    pub(super) waiting: Option<Waiting>,
    pub(super) terminated: Option<Terminated>,
}

/// Why a container doesn't run yet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) exit_code: i32,
    #[serde(deserialize_with = "or_default")]
    pub(super) signal: i32,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// One page of a list of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodPage {
    pub(super) metadata: PageMetadata,
    #[serde(deserialize_with = "or_default")]
    pub(super) items: Vec<Pod>,
}

/// The metadata of a page.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PageMetadata {
    /// The version of the whole list, from which a watch goes on.
    pub(super) resource_version: String,
    /// The token of the next page; empty on the last.
    #[serde(rename = "continue", deserialize_with = "or_default")]
    pub(super) next: String,
}

/// The body of a request that failed, and of an `ERROR` event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ApiFailure {
    #[serde(deserialize_with = "or_default")]
    pub(super) code: u16,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) details: ApiFailureDetails,
}

/// Details of a failure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ApiFailureDetails {
    /// The seconds after which the server wants the request to be repeated.
    pub(super) retry_after_seconds: Option<u64>,
}
