//! [`Update`]: a cluster's report about one executor.

use std::time::SystemTime;

use super::agent_facts::AgentFacts;
use crate::foreign_text::length_problem;
use crate::limits::FOREIGN_ID_BYTES_MAX;
use crate::status::{ProcessReport, TaskState, UpdateReason};

/// A report about one executor, owned.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Update {
    /// The executor's id.
    pub executor: String,
    /// The agent that it is on, if the cluster names it.
    pub agent_id: Option<String>,
    /// Its state.
    pub state: TaskState,
    /// The reason for the state.
    pub reason: UpdateReason,
    /// The cluster's message; may be empty.
    pub message: String,
    /// The token that an acknowledgement must carry; without one the update must not be acknowledged.
    pub uuid: Option<Vec<u8>>,
    /// When the executor was in this state for the first time, by the cluster's clock, if the cluster says so. Only for
    /// the observer. A time before 1970 is serialized as none.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::time::serialize_clock_time"))]
    pub reported_at: Option<SystemTime>,
    /// What the cluster says of the executor's process. Only for the observer.
    #[cfg_attr(feature = "serde", serde(default))]
    pub process: Option<Box<ProcessReport>>,
    /// What the cluster says of the agent `agent_id`, if it chose the agent itself. Used when the executor is
    /// [bound](crate::Kernel::bind) to it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub facts: Option<Box<AgentFacts>>,
}

impl Update {
    /// Creates a report without a reason, agent or message, which must not be acknowledged.
    #[must_use]
    pub fn new(executor: impl Into<String>, state: TaskState) -> Update {
        Update {
            executor: executor.into(),
            agent_id: None,
            state,
            reason: UpdateReason::Other,
            message: String::new(),
            uuid: None,
            reported_at: None,
            process: None,
            facts: None,
        }
    }

    /// Sets the agent that the executor is on.
    #[must_use]
    pub fn with_agent(self, agent_id: impl Into<String>) -> Update {
        Update { agent_id: Some(agent_id.into()), ..self }
    }

    /// Sets the reason for the state.
    #[must_use]
    pub fn with_reason(self, reason: UpdateReason) -> Update {
        Update { reason, ..self }
    }

    /// Sets the cluster's message.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Update {
        Update { message: message.into(), ..self }
    }

    /// Sets when, by the cluster's clock, the executor was first in this state.
    #[must_use]
    pub fn with_reported_at(self, reported_at: SystemTime) -> Update {
        Update { reported_at: Some(reported_at), ..self }
    }

    /// Sets what the cluster says of the executor's process.
    #[must_use]
    pub fn with_process(self, process: ProcessReport) -> Update {
        Update { process: Some(Box::new(process)), ..self }
    }

    /// Sets what the cluster says of the agent that the executor is on.
    #[must_use]
    pub fn with_facts(self, facts: AgentFacts) -> Update {
        Update { facts: Some(Box::new(facts)), ..self }
    }

    /// Sets the token that the acknowledgement must carry.
    #[must_use]
    pub fn with_uuid(self, uuid: Vec<u8>) -> Update {
        Update { uuid: Some(uuid), ..self }
    }

    /// The agent that it is on, if the cluster names it. An empty name is none.
    pub(super) fn named_agent(&self) -> Option<&str> {
        self.agent_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Why the engine ignores this update: one of its ids or its token is longer than
    /// [`FOREIGN_ID_BYTES_MAX`], or a text of its facts. Returns none if it doesn't.
    pub(crate) fn length_problem(&self) -> Option<String> {
        let agent_id = self.agent_id.as_deref().unwrap_or_default();
        let is_long = self.uuid.as_ref().is_some_and(|uuid| uuid.len() > FOREIGN_ID_BYTES_MAX);
        let problem = |what: &str, id: &str| length_problem(what, id, FOREIGN_ID_BYTES_MAX);
        problem("its executor's id", &self.executor)
            .or_else(|| problem("its agent's id", agent_id))
            .or_else(|| is_long.then(|| "its uuid is too long".to_owned()))
            .or_else(|| {
                let is_bounded = self.facts.as_ref().is_none_or(|facts| facts.is_bounded());
                (!is_bounded).then(|| "what it says of its agent is too long".to_owned())
            })
    }
}
