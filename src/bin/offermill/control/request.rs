//! A client's request to the run, and the channel for its reply.

use std::sync::mpsc::SyncSender;

use crate::control::command::ControlCommand;
use crate::model::reply::ControlReply;

/// A client's request.
#[derive(Debug)]
pub(crate) struct ControlRequest {
    /// The command, or why the line holds none.
    pub(crate) command: Result<ControlCommand, String>,
    /// Whether the reply is shown among the run's events, because the client is standard input.
    pub(crate) is_shown: bool,
    pub(super) reply_to: SyncSender<ControlReply>,
}

impl ControlRequest {
    /// Sends the reply. Does not block; a client that doesn't wait any more misses it.
    pub(crate) fn reply(self, reply: ControlReply) {
        let _gone = self.reply_to.try_send(reply);
    }
}
