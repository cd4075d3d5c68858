//! What frameworks call, apart from SUBSCRIBE.

use std::time::Duration;

use super::allocation::REFUSE_DEFAULT;
use super::statuses::uuid_digits;
use super::task_info::grace;
use super::{ConnectionNumber, Peer, RefusedCall, StandaloneMaster};
use crate::cluster::standalone::protocol::{ExecutorKey, WorkerEvent};
use crate::mesos_v1::json::Named;
use crate::mesos_v1::messages::call::{Acknowledge, Kill, Reconcile, Type};
use crate::mesos_v1::messages::{Call, Filters, Reason, TaskState};

impl StandaloneMaster {
    /// Does what the framework of a connection calls.
    ///
    /// # Errors
    /// If the connection isn't a framework's, if the call names another framework, lacks its part, or isn't one that
    /// this master knows. Nothing is done then.
    pub fn framework_calls(
        &mut self,
        connection: ConnectionNumber,
        call: Call,
        now: Duration,
    ) -> Result<(), RefusedCall> {
        let Some(Peer::Framework(number)) = self.connections.get(&connection) else {
            return Err(RefusedCall("the framework isn't subscribed".to_owned()));
        };
        let number = *number;
        let own = self.frameworks.get(&number).map(|it| it.id.as_str());
        if own != call.framework_id.as_ref().map(|id| id.value.as_str()) {
            return Err(RefusedCall("the call names another framework".to_owned()));
        }
        let of = call.r#type();
        self.do_call(number, call, now)?;
        // The others free nothing and want nothing. There are some of them for each executor.
        if !matches!(of, Type::Acknowledge | Type::Kill | Type::Reconcile | Type::Request) {
            self.allocate(now);
        }
        Ok(())
    }

    fn do_call(&mut self, number: u64, call: Call, now: Duration) -> Result<(), RefusedCall> {
        let of = call.r#type();
        match of {
            Type::Accept => {
                let accept = call.accept.ok_or_else(|| lacking(of))?;
                let refuse = refuse(accept.filters.as_ref());
                self.accept(number, accept, refuse, now)?;
            }
            Type::Decline => {
                let decline = call.decline.ok_or_else(|| lacking(of))?;
                let refuse = refuse(decline.filters.as_ref());
                let ids: Vec<&str> = decline.offer_ids.iter().map(|it| it.value.as_str()).collect();
                for offer in self.close_offers(number, &ids) {
                    self.totals.offers_declined += 1;
                    self.hold_back(number, &offer.worker, offer.resources, refuse, now);
                }
            }
            Type::Revive => {
                if let Some(framework) = self.frameworks.get_mut(&number) {
                    framework.suppressed = false;
                    framework.declined.clear();
                }
            }
            Type::Suppress => {
                if let Some(framework) = self.frameworks.get_mut(&number) {
                    framework.suppressed = true;
                }
            }
            Type::Kill => self.kill(number, &call.kill.ok_or_else(|| lacking(of))?),
            Type::Acknowledge => {
                let acknowledge = call.acknowledge.ok_or_else(|| lacking(of))?;
                self.acknowledge(number, &acknowledge)?;
            }
            Type::Reconcile => {
                self.reconcile(number, &call.reconcile.ok_or_else(|| lacking(of))?);
            }
            Type::Teardown => self.tear_down(number, "it has asked for that"),
            Type::UpdateFramework => {
                let update = call.update_framework.ok_or_else(|| lacking(of))?;
                self.update_framework(number, update)?;
            }
            // Offers hold all that is free, so that there is nothing to add. Mesos' own allocator ignores it as well.
            Type::Request => drop(call.request.ok_or_else(|| lacking(of))?),
            Type::Subscribe => {
                return Err(RefusedCall("SUBSCRIBE opens a connection of its own".to_owned()));
            }
            other => {
                return Err(RefusedCall(format!("the call {} isn't supported", other.name())));
            }
        }
        Ok(())
    }

    fn kill(&mut self, number: u64, kill: &Kill) {
        let key = self.key(number, &kill.task_id.value);
        let Some(worker) = self.placed.get(&key).cloned() else {
            let agent = kill.agent_id.as_ref().map(|id| id.value.clone());
            self.report_unplaced(&key, agent.as_deref());
            return;
        };
        let grace = grace(kill.kill_policy.as_ref());
        let task = self.workers.get_mut(&worker).and_then(|it| it.tasks.get_mut(&key));
        if let Some(task) = task
            && !task.has_ended
        {
            task.kill_grace = Some(grace);
            let term = self.settings.term;
            self.tell_worker(&worker, WorkerEvent::Kill { key, term, grace });
        }
    }

    fn acknowledge(&mut self, number: u64, call: &Acknowledge) -> Result<(), RefusedCall> {
        let uuid = uuid_digits(&call.uuid)
            .ok_or_else(|| RefusedCall("a uuid must have 16 bytes".to_owned()))?;
        let key = self.key(number, &call.task_id.value);
        let worker = call.agent_id.value.clone();
        let task = self.workers.get(&worker).and_then(|it| it.tasks.get(&key));
        // Anything else means nothing to the worker, which would refuse a text that is no id.
        let Some(task) = task else { return Ok(()) };
        // An end is the last update of an executor, so what is acknowledged once it was reported may be one before it.
        let is_last = task.has_ended && task.end_uuid.as_ref().is_none_or(|end| *end == uuid);
        self.acknowledge_update(&worker, &key, uuid, is_last);
        Ok(())
    }

    fn reconcile(&mut self, number: u64, reconcile: &Reconcile) {
        if reconcile.tasks.is_empty() {
            let Some(id) = self.frameworks.get(&number).map(|it| it.id.clone()) else { return };
            let keys = self.placed.keys().filter(|key| key.framework == id);
            let mut keys: Vec<ExecutorKey> = keys.cloned().collect();
            keys.sort();
            keys.iter().for_each(|key| self.report_state(key));
            return;
        }
        for task in &reconcile.tasks {
            let key = self.key(number, &task.task_id.value);
            match self.placed.contains_key(&key) {
                true => self.report_state(&key),
                false => {
                    self.report_unplaced(&key, task.agent_id.as_ref().map(|it| it.value.as_str()));
                }
            }
        }
    }

    /// Tells the state of an executor that is known.
    fn report_state(&mut self, key: &ExecutorKey) {
        let Some(worker) = self.placed.get(key).cloned() else { return };
        let Some(registered) = self.workers.get(&worker) else { return };
        let Some(task) = registered.tasks.get(key) else { return };
        let is_away = registered.is_unreachable && !task.has_ended;
        let state = if is_away { TaskState::Unreachable } else { task.state };
        self.report(key, Some(&worker), state, Reason::Reconciliation, "");
    }

    /// Tells that an executor isn't known, unless its worker may still come back with it.
    fn report_unplaced(&mut self, key: &ExecutorKey, worker: Option<&str>) {
        let state = match worker.and_then(|id| self.workers.get(id)) {
            Some(worker) if worker.is_awaited && self.is_recovering() => return,
            None if self.is_recovering() => return,
            Some(worker) if worker.is_unreachable => TaskState::Unreachable,
            Some(_) => TaskState::Gone,
            None => TaskState::Unknown,
        };
        self.report(key, worker, state, Reason::Reconciliation, "");
    }
}

fn lacking(of: Type) -> RefusedCall {
    RefusedCall(format!("the call {} lacks its part", of.name()))
}

fn refuse(filters: Option<&Filters>) -> Duration {
    let seconds = filters.and_then(|filters| filters.refuse_seconds);
    seconds.map_or(REFUSE_DEFAULT, |seconds| match seconds {
        seconds if seconds.is_nan() || seconds < 0.0 => REFUSE_DEFAULT,
        seconds => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
    })
}
