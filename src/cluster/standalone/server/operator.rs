//! What the operator of a master asks for, from the master's own program.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::shared::SharedMaster;
use crate::cluster::standalone::master::MasterReport;

/// A request of a master's operator. A reply that isn't waited for any more is dropped.
#[derive(Debug)]
pub enum OperatorRequest {
    /// What there is.
    Report(oneshot::Sender<Box<MasterReport>>),
    /// A worker is to take no launches any more, to end its executors within this time, and to leave.
    Drain {
        /// The worker's id.
        worker: String,
        /// The executors' grace period.
        grace: Duration,
        /// Takes whether there is such a worker.
        known: oneshot::Sender<bool>,
    },
    /// A worker is to take no launches any more, and to leave once its executors have ended by themselves.
    Decommission {
        /// The worker's id.
        worker: String,
        /// Takes whether there is such a worker.
        known: oneshot::Sender<bool>,
    },
}

/// Does what the operator asks for, for as long as the master lives.
pub(super) async fn serve_operator(
    shared: Rc<SharedMaster>,
    mut requests: UnboundedReceiver<OperatorRequest>,
) {
    while let Some(request) = requests.recv().await {
        match request {
            OperatorRequest::Report(reply) => {
                let _gone = reply.send(Box::new(shared.report()));
            }
            OperatorRequest::Drain { worker, grace, known } => {
                let _gone = known.send(shared.drain_worker(&worker, grace));
            }
            OperatorRequest::Decommission { worker, known } => {
                let _gone = known.send(shared.decommission_worker(&worker));
            }
        }
    }
    std::future::pending::<()>().await;
}
