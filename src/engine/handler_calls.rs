//! The sink of a handler thread: its calls to the cluster manager, through its gate, and its reports to the control
//! thread.

use std::sync::Arc;

use super::cluster_manager::Call;
use super::control_message::ControlMessage;
use super::gate::Gate;
use super::placed_batch::PlacedBatch;
use super::sinks::AnswerSink;
use super::state::EngineState;

/// The most executors of a message: the control thread does nothing else while it reports them, not even a kill.
pub(super) const PLACED_ROWS_MAX: usize = 256;

/// Makes a handler thread's calls.
pub(super) struct HandlerCalls<'a> {
    shared: &'a EngineState,
    gate: &'a Gate,
}

impl<'a> HandlerCalls<'a> {
    /// `gate` is the thread's own.
    pub(super) fn new(shared: &'a EngineState, gate: &'a Gate) -> HandlerCalls<'a> {
        HandlerCalls { shared, gate }
    }
}

impl AnswerSink for HandlerCalls<'_> {
    fn call(&mut self, call: Call<'_>) -> bool {
        match self.gate.call(&*self.shared.manager, call) {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                self.shared.send_control(ControlMessage::CallFailed { why: error.to_string() });
                false
            }
            None => false,
        }
    }

    fn placed(&mut self, placed: Arc<PlacedBatch>) {
        let mut first = 0;
        while first < placed.len() {
            let rows = first..placed.len().min(first + PLACED_ROWS_MAX);
            first = rows.end;
            self.shared.send_control(ControlMessage::Placed(Arc::clone(&placed), rows));
        }
    }

    fn never_launched(&mut self, executors: Vec<String>) {
        self.shared.send_control(ControlMessage::NeverLaunched(executors));
    }
}
