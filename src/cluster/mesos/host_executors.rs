//! Hosts of tasks on Mesos: the executor that a host is, and the tasks in it.
//!
//! A host is an executor with a task of its own, the *anchor*, whose id is the executor's. The anchor begins and ends
//! with the host: so a host is reported, reconciled and killed as any other executor of the kernel is. A task in the
//! host carries its command as data: a `CommandInfo` in protocol buffers, which the program of the host runs
//! (`cluster::task_host_on_mesos`).
//!
//! Mesos wants the same description of an executor with each of its tasks, so that of an agent's host is kept.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prost::Message as _;

use crate::engine::cluster_manager::{Amount, TakenResource};
use crate::error::Error;
use crate::mesos_v1::host_labels::HOST_LABEL;
use crate::mesos_v1::messages::{CommandInfo, ExecutorInfo, ExecutorType, Label, Labels, TaskInfo};
use crate::resources::Scalar;

/// The cores of an anchor, which Mesos wants to have some: the rest of the host's resources is the executor's.
const ANCHOR_CORES: Scalar = Scalar::from_thousandths(1);

/// The executors of hosts, by agent. An agent has at most one host at a time, so this is bounded by their number.
#[derive(Debug, Default)]
pub(super) struct HostExecutors {
    by_agent: Mutex<HashMap<String, ExecutorInfo>>,
}

impl HostExecutors {
    /// Makes a task the anchor of a host: what it would run is run by the executor.
    pub(super) fn make_anchor(
        &self,
        anchor: &mut TaskInfo,
        pieces: &[TakenResource<'_>],
        resource: impl Fn(&TakenResource<'_>) -> crate::mesos_v1::messages::Resource,
    ) {
        let (own, executors) = split(pieces);
        let executor = ExecutorInfo {
            r#type: Some(ExecutorType::Custom.into()),
            executor_id: anchor.task_id.value.as_str().into(),
            command: anchor.command.take(),
            container: anchor.container.take(),
            resources: executors.iter().map(&resource).collect(),
            name: Some(anchor.name.clone()),
            labels: Some(host_labels(anchor.labels.clone())),
            ..ExecutorInfo::default()
        };
        anchor.resources = own.iter().map(resource).collect();
        self.lock().insert(anchor.agent_id.value.clone(), executor.clone());
        anchor.executor = Some(executor);
    }

    /// Has a task run in the host with this executor id.
    ///
    /// # Errors
    /// If the agent's last host is another one.
    pub(super) fn put_in(&self, task: &mut TaskInfo, host: &str) -> Result<(), Error> {
        let executors = self.lock();
        let executor = executors.get(&task.agent_id.value);
        let Some(executor) = executor.filter(|executor| executor.executor_id.value == host) else {
            let why = format!("its host {host} isn't one that was started on its agent last");
            return Err(Error::cluster("Mesos", &why));
        };
        task.executor = Some(executor.clone());
        drop(executors);
        task.data = task.command.take().as_ref().map(CommandInfo::encode_to_vec);
        // The host's.
        task.container = None;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ExecutorInfo>> {
        self.by_agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The labels of an executor that is a host: those of its anchor, and one of its own.
fn host_labels(labels: Option<Labels>) -> Labels {
    let mut labels = labels.unwrap_or_default();
    labels.labels.push(Label { key: HOST_LABEL.to_owned(), value: None });
    labels
}

/// Splits what a host takes into the anchor's part and the executor's. If it takes no cores, all is the anchor's.
fn split<'a>(pieces: &[TakenResource<'a>]) -> (Vec<TakenResource<'a>>, Vec<TakenResource<'a>>) {
    let cores = |piece: &TakenResource<'_>| match piece.amount {
        Amount::Scalar(cores) if piece.resource.name == "cpus" && cores >= ANCHOR_CORES => {
            Some(cores)
        }
        _ => None,
    };
    let Some(at) = pieces.iter().position(|piece| cores(piece).is_some()) else {
        return (pieces.to_vec(), Vec::new());
    };
    let mut executors = pieces.to_vec();
    let piece = executors.remove(at);
    let with = |cores| TakenResource { amount: Amount::Scalar(cores), ..piece };
    let left = cores(&piece).unwrap_or_default().saturating_sub(ANCHOR_CORES);
    if left > Scalar::ZERO {
        executors.insert(at, with(left));
    }
    (vec![with(ANCHOR_CORES)], executors)
}
