//! The sinks of calls and notices: what an [`OfferHandler`](super::offer_handler::OfferHandler) and a
//! [`Controller`](super::controller::Controller) write their results to.
//!
//! The engine's threads and the simulated cluster implement both. A sink makes each call at once and in order.

use std::sync::Arc;

use super::cluster_manager::Call;
use super::notice::Notice;
use super::placed_batch::PlacedBatch;

/// Receives the calls that answer a batch of offers.
pub(crate) trait AnswerSink {
    /// Makes a call; `false` if it surely had no effect.
    fn call(&mut self, call: Call<'_>) -> bool;
    /// Reports executors that were placed. Comes before the calls that launch them, so that no update precedes it.
    fn placed(&mut self, placed: Arc<PlacedBatch>);
    /// Reports executors whose launching call surely had no effect.
    fn never_launched(&mut self, executors: Vec<String>);
}

/// Receives the controller's calls and notices.
pub(crate) trait CallSink {
    /// Makes a call. If it fails, reports [`Notice::CallFailed`].
    fn call(&mut self, call: Call<'_>);
    /// Like [`CallSink::call`]; returns `false` if the call failed.
    fn try_call(&mut self, call: Call<'_>) -> bool {
        self.call(call);
        true
    }
    /// Reports a notice to the observer.
    fn notice(&mut self, notice: Notice);
}
