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
