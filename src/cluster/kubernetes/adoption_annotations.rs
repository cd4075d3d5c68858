//! The annotations of a pod by which a next run adopts its executor: the executor's resources, and its queue's name.

use std::collections::BTreeMap;

use crate::limits::QUEUE_NAME_BYTES_MAX;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

/// The key of the resources.
pub(super) const RESOURCES_ANNOTATION: &str = "offermill/resources";
/// The key of the queue's name. A pod of a kernel without queues has none.
pub(super) const QUEUE_ANNOTATION: &str = "offermill/queue";

/// Writes resources for the annotation: thousandths of a core, MiB, GPUs and the port.
pub(super) fn written_resources(resources: ExecutorResources) -> String {
    let ExecutorResources { cores, memory, gpus, port } = resources;
    let port = port.map_or(String::new(), |port| port.to_string());
    format!("{} {} {} {port}", cores.millis(), memory.get(), gpus.get())
}

/// Reads resources from the annotation. `None` if they can't be read.
pub(super) fn read_resources(text: &str) -> Option<ExecutorResources> {
    let mut parts = text.split(' ');
    let cores = MilliCpus::from_millis(parts.next()?.parse().ok()?);
    let memory = Mebibytes::new(parts.next()?.parse().ok()?);
    let gpus = Gpus::new(parts.next()?.parse().ok()?);
    let port = match parts.next()? {
        "" => None,
        port => Some(port.parse().ok()?),
    };
    parts.next().is_none().then_some(ExecutorResources { cores, memory, gpus, port })
}

/// The name of a pod's queue, by its annotations. `None` if there is none, or none that is as short as names are.
pub(super) fn read_queue(annotations: &BTreeMap<String, String>) -> Option<&str> {
    let name = annotations.get(QUEUE_ANNOTATION)?;
    (1..=QUEUE_NAME_BYTES_MAX).contains(&name.len()).then_some(name)
}
