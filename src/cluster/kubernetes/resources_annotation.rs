//! The annotation of a pod with its executor's resources, by which a next run adopts the executor.

use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

/// The annotation's key.
pub(super) const RESOURCES_ANNOTATION: &str = "offermill/resources";

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
