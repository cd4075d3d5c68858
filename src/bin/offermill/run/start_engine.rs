//! The start of the engine of a run, around what is run.

use std::sync::Arc;

use offermill::engine::cluster_manager::ClusterManager;
use offermill::engine::{Engine, EngineOptions, Observer, TaskChooser};
use offermill::{Error, Kernel};

use crate::record::JournalFiles;
use crate::settings::RunSettings;

/// Starts the engine around what is run: executors, perhaps with a journal, or tasks.
pub(super) fn start_engine(
    settings: &RunSettings,
    kernel: Kernel,
    manager: Arc<dyn ClusterManager>,
    journal: Option<JournalFiles>,
    options: EngineOptions,
    observer: Box<dyn Observer>,
) -> Result<Engine, Error> {
    let launcher = Arc::new(settings.executors.clone());
    match (settings.executors.tasks(), journal) {
        (Some(queue), _) => {
            let chooser = Arc::clone(queue) as Arc<dyn TaskChooser>;
            Engine::start_with_tasks(kernel, manager, launcher, chooser, options, observer)
        }
        (None, Some(journal)) => {
            let journal = Box::new(journal);
            Engine::start_with_journal(kernel, manager, launcher, options, observer, journal)
        }
        (None, None) => Engine::start(kernel, manager, launcher, options, observer),
    }
}
