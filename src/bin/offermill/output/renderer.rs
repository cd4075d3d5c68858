//! The trait of all renderers, and one that shows nothing.

use std::io;

use crate::model::event::TimedEvent;
use crate::output::summary::Summary;
use crate::output::view::RunView;
use crate::settings::RunSettings;

/// Shows a run. No method blocks. An error means that standard output can't be written any more.
pub(crate) trait Renderer {
    /// Shows the start of the run.
    fn show_start(&mut self, settings: &RunSettings) -> io::Result<()>;
    /// Shows an event.
    fn show_event(&mut self, event: &TimedEvent) -> io::Result<()>;
    /// Shows the current state if it is time for that. Called several times a second.
    fn refresh(&mut self, view: &RunView<'_>) -> io::Result<()>;
    /// Shows the summary at the end.
    fn show_summary(&mut self, summary: &Summary<'_>) -> io::Result<()>;
    /// Restores the terminal if no summary follows.
    fn restore_terminal(&mut self);
}

/// Shows nothing: standard output is gone.
pub(crate) struct NullRenderer;

impl Renderer for NullRenderer {
    fn show_start(&mut self, _: &RunSettings) -> io::Result<()> {
        Ok(())
    }

    fn show_event(&mut self, _: &TimedEvent) -> io::Result<()> {
        Ok(())
    }

    fn refresh(&mut self, _: &RunView<'_>) -> io::Result<()> {
        Ok(())
    }

    fn show_summary(&mut self, _: &Summary<'_>) -> io::Result<()> {
        Ok(())
    }

    fn restore_terminal(&mut self) {}
}
