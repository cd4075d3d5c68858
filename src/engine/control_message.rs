//! Messages to the control thread.

use super::controller::ControllerEvent;
use super::inbox::InboxMessage;
use super::kill_retry::KillTerms;
use super::notice::PlacedExecutor;
use crate::ids::ExecutorId;

/// A message to the control thread.
pub(super) enum ControlMessage {
    /// The manager has started: calls can be made.
    Started,
    Event(ControllerEvent),
    Placed(Vec<PlacedExecutor>),
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
    /// Offers that can't be read; an id that can't be read either is empty.
    Unreadable {
        epoch: u64,
        offers: Vec<String>,
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
            ControlMessage::Placed(placed) => placed.len(),
            ControlMessage::Resumed { adopted, surplus, .. } => adopted.len() + surplus.len(),
            ControlMessage::NeverLaunched(executors) => executors.len(),
            ControlMessage::Overflow { offers, .. } | ControlMessage::Unreadable { offers, .. } => {
                offers.len()
            }
            _ => 1,
        };
        items.max(1)
    }

    fn is_about_offers(&self) -> bool {
        matches!(self, ControlMessage::Overflow { .. } | ControlMessage::Unreadable { .. })
    }
}
