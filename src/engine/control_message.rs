//! Messages to the control thread.

use std::ops::Range;
use std::sync::Arc;

use super::cluster_manager::Update;
use super::controller::ControllerEvent;
use super::inbox::InboxMessage;
use super::kill_retry::KillTerms;
use super::notice::PlacedExecutor;
use super::placed_batch::PlacedBatch;
use super::unreadable_offers::RefusedOffer;
use crate::ids::ExecutorId;

/// A message to the control thread.
pub(super) enum ControlMessage {
    /// The manager has started: calls can be made.
    Started,
    Event(ControllerEvent),
    /// Executors that a batch of offers places: these rows of it.
    Placed(Arc<PlacedBatch>, Range<usize>),
    /// A former run is resumed.
    Resumed {
        adopted: Vec<PlacedExecutor>,
        /// Executors that there is no room for, and their agents.
        surplus: Vec<(String, String)>,
        finished: u64,
    },
    /// Executors whose launching call surely had no effect.
    NeverLaunched(Vec<String>),
    /// Offers that the offer queue has no room for.
    Overflow {
        epoch: u64,
        offers: Vec<String>,
    },
    /// Offers that can't be read.
    Unreadable {
        epoch: u64,
        offers: Vec<RefusedOffer>,
    },
    CallFailed {
        why: String,
    },
    HandlerPanicked {
        why: String,
    },
    Kill {
        executors: Vec<ExecutorId>,
        terms: KillTerms,
    },
}

impl InboxMessage for ControlMessage {
    fn weight(&self) -> usize {
        let items = match self {
            ControlMessage::Placed(_, rows) => rows.len(),
            ControlMessage::Resumed { adopted, surplus, .. } => adopted.len() + surplus.len(),
            ControlMessage::NeverLaunched(executors) => executors.len(),
            ControlMessage::Overflow { offers, .. } => offers.len(),
            ControlMessage::Unreadable { offers, .. } => offers.len(),
            // Of any length, as custom executors send them.
            ControlMessage::Event(ControllerEvent::Message { data, .. }) => 1 + data.len() / 1024,
            ControlMessage::Event(ControllerEvent::Update(Update {
                facts: Some(facts), ..
            })) => 1 + facts.bytes() / 1024,
            _ => 1,
        };
        items.max(1)
    }

    fn is_about_offers(&self) -> bool {
        matches!(self, ControlMessage::Overflow { .. } | ControlMessage::Unreadable { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::agent_facts::AgentFacts;
    use crate::limits::AGENT_FACTS_BYTES_MAX;
    use crate::offer::attributes::parse;
    use crate::status::TaskState;

    /// Goal: messages of executors are bounded by their bytes, not by their number. Method: a short and a long one.
    #[test]
    fn messages_weigh_what_they_hold() {
        let weight = |bytes| {
            let (executor, agent_id) = ("E".to_owned(), "S".to_owned());
            let data = vec![0; bytes];
            ControlMessage::Event(ControllerEvent::Message { executor, agent_id, data }).weight()
        };
        assert_eq!(weight(0), 1);
        assert_eq!(weight(64 << 20), (64 << 10) + 1);
    }

    /// Goal: what an update says of an agent is bounded as a whole and weighs what it holds. Method: many short
    /// attributes, of which more are too many.
    #[test]
    fn facts_weigh_what_they_hold() {
        let one = parse("disk:ssd").unwrap();
        let facts = |count: usize| {
            let attributes = one.iter().cycle().take(count).cloned().collect();
            AgentFacts::new("host").with_attributes(attributes)
        };
        let max = (AGENT_FACTS_BYTES_MAX - "host".len()) / (16 + "diskssd".len());
        assert!(facts(max).is_bounded() && !facts(max + 1).is_bounded());
        let update = Update::new("E", TaskState::Running).with_facts(facts(max));
        let message = ControlMessage::Event(ControllerEvent::Update(update));
        assert_eq!(message.weight(), AGENT_FACTS_BYTES_MAX / 1024);
    }
}
