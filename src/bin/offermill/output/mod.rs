//! Output of a run: renderers that show the same events and the same summary as lines, as a live table or as JSON.

pub(crate) mod capacity;
pub(crate) mod json;
pub(crate) mod kinds;
pub(crate) mod lines;
pub(crate) mod log;
mod messages;
pub(crate) mod queues;
pub(crate) mod renderer;
pub(crate) mod sentence;
pub(crate) mod stall;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod tasks;
pub(crate) mod totals;
pub(crate) mod view;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use console::Term;

pub(crate) use messages::{
    PrintOutcome, drain_remarks, print_json, print_raw, print_result, remark,
    serve_with_remarks_aside, write_remarks_aside,
};

use crate::output::json::JsonRenderer;
use crate::output::lines::LineRenderer;
use crate::output::renderer::Renderer;
use crate::output::table::TableRenderer;
use crate::settings::OutputForm;
use crate::text::stdout::{Bounds, Writer};

/// The most bytes of a run's output that may wait to be read: some 50 000 lines, or 15 000 objects.
const OUTPUT_BOUNDS: Bounds = Bounds { routine: 4 << 20, notable: 6 << 20 };

/// Starts the thread that writes a run's output.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start_writer() -> io::Result<Arc<Writer>> {
    Writer::start("output", io::stdout(), OUTPUT_BOUNDS).map(Arc::new)
}

/// The renderer for the form that was asked for, as far as standard output can show it.
pub(crate) fn choose_renderer(form: OutputForm, writer: Arc<Writer>) -> Box<dyn Renderer> {
    let terminal = Term::stdout();
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match form {
        OutputForm::Json => Box::new(JsonRenderer::new(writer)),
        OutputForm::Automatic if terminal.is_term() && !is_dumb => {
            Box::new(TableRenderer::new(terminal, writer))
        }
        OutputForm::Automatic | OutputForm::Lines => Box::new(LineRenderer::new(writer)),
    }
}
