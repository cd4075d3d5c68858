//! Ctrl-C and other signals during a simulation.

use std::io;
use std::sync::mpsc::{Receiver, channel};

use crate::exit::ExitStatus;
use crate::output::remark;
use crate::signals;

/// Receives signals, and remembers the first.
pub(super) struct Interrupt {
    signals: Receiver<&'static str>,
    first: Option<&'static str>,
}

impl Interrupt {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If signals can't be handled.
    pub(super) fn listen() -> io::Result<Interrupt> {
        let (sender, signals) = channel();
        // The receiver lives as long as the process.
        signals::listen(move |signal| {
            let _gone = sender.send(signal);
        })?;
        Ok(Interrupt { signals, first: None })
    }

    /// Returns the name of the first signal, if one has arrived. Ends the process if there was a second.
    pub(super) fn signal(&mut self) -> Option<&'static str> {
        for name in self.signals.try_iter() {
            if self.first.replace(name).is_some() {
                remark("ended at once");
                std::process::exit(i32::from(ExitStatus::AtOnce.code()));
            }
        }
        self.first
    }
}
