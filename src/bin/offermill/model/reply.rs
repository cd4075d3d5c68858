//! The reply to a control command.

use serde_json::Value;

/// A reply to a control command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControlReply {
    /// The command was executed.
    Done(String),
    /// The command was refused and changed nothing.
    Refused(String),
    /// Several lines of text.
    Block(String),
    /// A JSON object for programs.
    Object(Value),
}

/// The result of a command: the reply, and the same in detail for programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandOutcome {
    pub(crate) reply: ControlReply,
    /// Null if there is nothing to add to the reply.
    pub(crate) detail: Value,
}

impl CommandOutcome {
    /// A command that was executed, with its detail.
    pub(crate) fn done(text: String, detail: Value) -> CommandOutcome {
        CommandOutcome { reply: ControlReply::Done(text), detail }
    }
}

impl From<ControlReply> for CommandOutcome {
    fn from(reply: ControlReply) -> CommandOutcome {
        CommandOutcome { reply, detail: Value::Null }
    }
}

/// The answer to a command from standard input, which is shown among the run's events.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandAnswer {
    /// The command's number: 1 for the first.
    pub(crate) number: u64,
    /// The client's own name for the command.
    pub(crate) id: Option<String>,
    pub(crate) reply: ControlReply,
    pub(crate) detail: Value,
}
