//! A client's request to the run, and the wait for its reply.

use std::sync::mpsc::{SyncSender, sync_channel};

use crate::control::command::ControlCommand;
use crate::model::reply::ControlReply;

/// A client's request.
#[derive(Debug)]
pub(crate) struct ControlRequest {
    /// The command, or why the line holds none.
    pub(crate) command: Result<ControlCommand, String>,
    /// How the reply is labelled among the run's events, if the client is standard input.
    pub(crate) label: Option<AnswerLabel>,
    reply_to: SyncSender<ControlReply>,
}

/// What tells an answer among the run's events from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerLabel {
    /// The command's number: 1 for the first.
    pub(crate) number: u64,
    /// The client's own name for the command.
    pub(crate) id: Option<String>,
}

impl ControlRequest {
    /// Sends the reply. Does not block; a client that doesn't wait any more misses it.
    pub(crate) fn reply(self, reply: ControlReply) {
        let _gone = self.reply_to.try_send(reply);
    }
}

/// Sends a command to the run and waits for the reply. Returns the reply, and whether the client is done.
pub(super) fn exchange(
    command: Result<ControlCommand, String>,
    label: Option<AnswerLabel>,
    send: &impl Fn(ControlRequest) -> bool,
) -> (ControlReply, bool) {
    let is_last = command == Ok(ControlCommand::Quit);
    let (reply_to, reply) = sync_channel(1);
    let is_sent = send(ControlRequest { command, label, reply_to });
    let reply = is_sent.then(|| reply.recv().ok()).flatten();
    let has_ended = reply.is_none();
    let ended = || ControlReply::Refused("the run has ended".to_owned());
    (reply.unwrap_or_else(ended), is_last || has_ended)
}
