//! Registration with the agents' shuffle services during a run. The events of executors show which agents are in use.

use std::fmt;
use std::sync::Arc;

use offermill::spark::shuffle::{Registrar, RegistrationState, ShuffleEvent};
use serde_json::{Value, json};

use crate::model::event::RunEvent;
use crate::output::remark;
use crate::settings::shuffle::ShufflePlan;

/// Receives the events of the services at a port.
pub(super) type SendShuffleEvent = Arc<dyn Fn(ShuffleEvent, u16) + Send + Sync>;

/// The shuffle services of a run, if it has any.
pub(super) struct ShuffleServices {
    plan: Option<ShufflePlan>,
    registrar: Option<Registrar>,
    send: SendShuffleEvent,
}

impl fmt::Debug for ShuffleServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShuffleServices").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl ShuffleServices {
    /// Registers with no service yet: the application's id may be the framework's, which comes with the subscription.
    pub(super) fn new(plan: Option<ShufflePlan>, send: SendShuffleEvent) -> ShuffleServices {
        ShuffleServices { plan, registrar: None, send }
    }

    /// Applies an event: starts the registrar, or reports to it that an agent is in use or lost.
    pub(super) fn apply(&mut self, event: &RunEvent) {
        let Some(plan) = &mut self.plan else { return };
        match (event, &self.registrar) {
            (RunEvent::Registered { framework_id, .. }, registrar) => {
                let is_renamed =
                    plan.is_named_after_framework && plan.options.app_id != *framework_id;
                if is_renamed {
                    plan.options.app_id.clone_from(framework_id);
                }
                if is_renamed || registrar.is_none() {
                    self.start();
                }
            }
            (RunEvent::Running(record) | RunEvent::Returned(record), Some(registrar)) => {
                let host = if plan.is_local { "127.0.0.1" } else { &record.host };
                registrar.running(&record.agent_id, host);
            }
            (RunEvent::AgentLost { agent_id, .. }, Some(registrar)) => registrar.lost(agent_id),
            _ => {}
        }
    }

    fn start(&mut self) {
        let Some(plan) = &self.plan else { return };
        let port = plan.options.port;
        let send = Arc::clone(&self.send);
        let forward = move |event| send(event, port);
        self.registrar = match Registrar::start(plan.options.clone(), forward) {
            Ok(registrar) => Some(registrar),
            Err(error) => {
                remark(&format!("{error}; the application is registered with no shuffle service"));
                None
            }
        };
    }

    /// Ends the heartbeats.
    pub(super) fn stop(&mut self) {
        self.registrar = None;
    }

    /// The number of services in each state; null without services.
    pub(super) fn json(&self) -> Value {
        let Some(registrar) = &self.registrar else { return Value::Null };
        let services = registrar.services();
        let count = |state| services.iter().filter(|it| it.state == state).count();
        json!({
            "registered": count(RegistrationState::Registered),
            "failing": count(RegistrationState::Failing),
            "new": count(RegistrationState::New),
        })
    }
}
