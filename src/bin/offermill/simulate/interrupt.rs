//! Ctrl-C while something is simulated.

use std::io;

use crate::exit::Exit;
use crate::output::remark;
use crate::run::Message;
use crate::run::inbox::{Receiver, channel};
use crate::run::signals;

/// Whether the user wants an end.
pub(super) struct Interrupt {
    inbox: Receiver<Message>,
    asked: Option<&'static str>,
}

impl Interrupt {
    /// Starts to listen.
    ///
    /// # Errors
    /// When signals can't be handled.
    pub(super) fn listen() -> io::Result<Interrupt> {
        let (sender, inbox) = channel();
        signals::listen(sender)?;
        Ok(Interrupt { inbox, asked: None })
    }

    /// The signal that asked for an end, if one has. A second one ends the program here.
    pub(super) fn asked(&mut self) -> Option<&'static str> {
        while let Some(message) = self.inbox.try_recv() {
            let Message::Signal(name) = message else { continue };
            if self.asked.replace(name).is_some() {
                remark("ended at once");
                std::process::exit(i32::from(Exit::AtOnce.code()));
            }
        }
        self.asked
    }
}
