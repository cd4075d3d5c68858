//! Settings of a run: their sources, the table of options, checks, and the result, [`RunSettings`].
//!
//! ```text
//! flags.rs ─► sources.rs ─► draft.rs ◄─ table/ reads (a row per option: option.rs, and a reader)
//!                              │  └─ values/: plain values by topic
//!                              ▼
//!                           checks/ ─► RunSettings (made in `run/gather.rs`)
//! ```

pub(crate) mod api_address;
pub(crate) mod checks;
pub(crate) mod draft;
pub(crate) mod file_access;
pub(crate) mod flags;
pub(crate) mod kernel;
pub(crate) mod master;
pub(crate) mod option;
pub(crate) mod redact;
pub(crate) mod run_name;
pub(crate) mod secrets;
mod settings_input;
pub(crate) mod shuffle;
pub(crate) mod sources;
pub(crate) mod startup_keys;
pub(crate) mod table;
pub(crate) mod task_flags;
pub(crate) mod token_file;
mod unused_keys;
pub(crate) mod values;
mod variables;

use std::time::Duration;

use offermill::allocation::AllocationRule;
use offermill::config::ExclusionRule;
use offermill::{Config, IdScheme};

use crate::model::target::RunTarget;
use crate::settings::shuffle::ShufflePlan;
use crate::settings::values::executors::ExecutorProgram;
use crate::settings::values::http::HttpPlan;

/// The checked settings of a run.
#[derive(Debug)]
pub(crate) struct RunSettings {
    /// The application's name.
    pub(crate) name: String,
    /// With what executors' ids begin.
    pub(crate) id_prefix: String,
    /// The cluster.
    pub(crate) target: RunTarget,
    /// The kernel's configuration.
    pub(crate) config: Config,
    /// The scheme of executors' ids.
    pub(crate) ids: IdScheme,
    /// The number in executors' ids that tells this run from others: its start, in milliseconds since 1970.
    pub(crate) epoch: u64,
    /// The program of executors.
    pub(crate) executors: ExecutorProgram,
    /// The run ends once this many executors have finished.
    pub(crate) until_finished: Option<u32>,
    /// The run ends once this many executors have failed.
    pub(crate) failures_max: u64,
    /// The time for which a failure counts; `None` is for ever.
    pub(crate) failures_window: Option<Duration>,
    /// When agents are excluded after failures.
    pub(crate) exclusion: Option<ExclusionRule>,
    /// The registration with shuffle services, if agents have any.
    pub(crate) shuffle: Option<ShufflePlan>,
    /// How long executors may take to end.
    pub(crate) shutdown_timeout: Duration,
    /// The rule of dynamic allocation, if that is enabled.
    pub(crate) allocation: Option<AllocationRule>,
    /// Whether executors that hold shuffle data are kept.
    pub(crate) tracks_shuffle: bool,
    /// When enough cores have registered for a framework to begin its work.
    pub(crate) readiness: Readiness,
    /// Whether the program that started this one steers the run.
    pub(crate) is_steered: bool,
    /// How long the cluster may take to register the framework; `None` is for ever.
    pub(crate) registration_timeout: Option<Duration>,
    /// Where and for whom the page about the run is served, if it is.
    pub(crate) http: Option<HttpPlan>,
    /// The URL of the page, once its address is bound.
    pub(crate) page_url: Option<String>,
    /// The form of the output.
    pub(crate) output: OutputForm,
}

/// When enough cores have registered for a framework to begin its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The ratio of the expected cores that must be registered, from 0 to 1.
    pub(crate) ratio: f64,
    /// The longest that the framework waits for them.
    pub(crate) wait: Duration,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// A live table if standard output is a terminal, else lines.
    Automatic,
    /// Lines.
    Lines,
    /// JSON.
    Json,
}
