//! What a run listens to besides its engine: control sockets, the program that steers it, the clients of its page,
//! signals, and shuffle services. All of them send messages to the session.

use std::sync::Arc;

use super::inbox::Sender;
use super::shuffle::SendShuffleEvent;
use super::{SessionMessage, parent};
use crate::control::request::ControlRequest;
use crate::control::{self, ControlSockets};
use crate::http::{self, HttpServer};
use crate::settings::RunSettings;
use crate::settings::flags::RunArguments;

/// What is open for clients.
pub(super) struct Listeners {
    pub(super) sockets: ControlSockets,
    /// `None` without a page.
    pub(super) http: Option<HttpServer>,
}

/// Opens the control sockets and the address of the page, and starts to read the parent's commands.
///
/// # Errors
/// With a sentence about the first one that can't be used.
pub(super) fn listen(
    arguments: &RunArguments,
    settings: &mut RunSettings,
    sender: &Sender<SessionMessage>,
) -> Result<Listeners, String> {
    let bound = settings.http.as_ref().map(http::bind).transpose()?;
    settings.page_url = bound.as_ref().map(|bound| bound.url.clone());
    let send = request_sender(sender);
    let sockets = control::open(&arguments.control, arguments.steered, &send)?;
    if arguments.steered {
        let sender = sender.clone();
        control::steer(send, move |end| {
            // A session that has ended needs no end of its parent.
            let _ended = sender.send(SessionMessage::ParentEnded(parent::record_input_end(end)));
        })?;
    }
    let http = match bound {
        None => None,
        Some(bound) => {
            let labels = (settings.name.clone(), settings.target.master.clone());
            let sender = sender.clone();
            let ask = move |request| sender.send(SessionMessage::Report(request)).is_ok();
            Some(http::serve(bound, labels, ask)?)
        }
    };
    Ok(Listeners { sockets, http })
}

/// Passes signals on.
pub(super) fn signal_sender(
    sender: &Sender<SessionMessage>,
) -> impl Fn(&'static str) + Send + 'static {
    let sender = sender.clone();
    move |name| {
        // A session that has ended needs no signal.
        let _ended = sender.send(SessionMessage::Signal(name));
    }
}

fn request_sender(
    sender: &Sender<SessionMessage>,
) -> impl Fn(ControlRequest) -> bool + Clone + Send + 'static {
    let sender = sender.clone();
    move |request| sender.send(SessionMessage::Request(request)).is_ok()
}

/// Passes events of shuffle services on.
pub(super) fn shuffle_sender(sender: &Sender<SessionMessage>) -> SendShuffleEvent {
    let sender = sender.clone();
    Arc::new(move |event, port| {
        // A session that has ended needs no events.
        let _ended = sender.send(SessionMessage::Shuffle { event, port });
    })
}
