//! What workers say.

use std::time::Duration;

use super::{ConnectionNumber, Peer, RefusedCall, StandaloneMaster};
use crate::cluster::standalone::protocol::WorkerCall;
use crate::mesos_v1::messages::TaskState;

impl StandaloneMaster {
    /// Takes a message of a worker that has subscribed.
    ///
    /// # Errors
    /// If the worker must not say this now. The connection is to be closed then.
    pub fn worker_calls(
        &mut self,
        connection: ConnectionNumber,
        call: WorkerCall,
        now: Duration,
    ) -> Result<(), RefusedCall> {
        // A heartbeat frees nothing.
        let mut frees = !matches!(&call, WorkerCall::Heartbeat);
        let id = match (self.connections.get(&connection), call) {
            (Some(Peer::Worker(_)), WorkerCall::Subscribe(_)) => {
                return Err(RefusedCall("a connection subscribes once".to_owned()));
            }
            (Some(Peer::Worker(id)), call) => {
                let id = id.clone();
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.heard_at = now;
                }
                match call {
                    WorkerCall::Update(update) => frees = self.take_update(&id, update),
                    WorkerCall::Leaving => frees = self.worker_ends_executors(&id),
                    WorkerCall::Leave => {
                        self.hang_up(connection);
                        self.forget_worker(&id, TaskState::Gone, "its worker has left");
                    }
                    WorkerCall::Heartbeat | WorkerCall::Subscribe(_) => {}
                }
                id
            }
            _ => return Err(RefusedCall("the worker isn't subscribed".to_owned())),
        };
        if self.workers.get(&id).is_some_and(|worker| worker.is_unreachable) {
            return Err(RefusedCall("the worker was given up".to_owned()));
        }
        if frees {
            self.allocate(now);
        }
        Ok(())
    }
}
