//! Gathers the settings of a run: reads all sources, checks the settings, and prepares the cluster. Starts nothing.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use offermill::allocation::AllocationRule;
use offermill::engine::cluster_manager::ClusterManager;
use offermill::http_server::raise_open_files;
use offermill::{Config, ConfigBuilder, IdScheme};

use crate::model::target::RunTarget;
use crate::record::{self, JournalFiles};
use crate::settings::checks::{
    allocation, containers, executor_queue, executors, http, kubernetes, limits, mesos, spark,
    tasks,
};
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::kernel::{LOAD_REVIVE_INTERVAL, config_builder};
use crate::settings::master::ClusterKind;
use crate::settings::run_name::{self, RunNames};
use crate::settings::{OutputForm, Readiness, RunSettings, secrets, shuffle, table};
use crate::target;

/// The result of reading and checking the arguments.
pub(super) struct Gathered {
    /// Sentences that don't stop the run.
    pub(super) remarks: Vec<String>,
    /// Everything that the run needs, or a sentence for each problem.
    pub(super) prepared: Result<Prepared, Vec<String>>,
}

/// Everything that a run needs.
pub(super) struct Prepared {
    pub(super) settings: RunSettings,
    /// Executes the engine's calls.
    pub(super) manager: Arc<dyn ClusterManager>,
    pub(super) journal: Option<JournalFiles>,
}

/// Reads and checks all settings, prepares the cluster, and creates the journal's files.
pub(super) fn gather(arguments: &RunArguments) -> Gathered {
    let mut draft = table::read_arguments(arguments);
    derive_from_flags(arguments, &mut draft);
    secrets::protect_memory(&draft);
    let checked = check(arguments, &mut draft).filter(|_| draft.problems.is_empty());
    // The journal comes last, so that no file is left if a setting is wrong.
    let prepared = checked.and_then(|(settings, manager)| {
        // Clients of the page take files. Local executors would inherit this limit.
        if settings.http.is_some() && !draft.is_on(ClusterKind::Local) {
            raise_open_files();
        }
        let journal = record::open(arguments.journal.as_deref(), &mut draft, &settings)?;
        tasks::open_results(arguments, &mut draft, &settings)?;
        Some(Prepared { settings, manager, journal })
    });
    let (remarks, problems) = draft.messages();
    Gathered { remarks, prepared: prepared.ok_or(problems) }
}

/// Reads and checks all settings without any side effect. Returns the draft, and the settings if they are valid.
pub(super) fn dry_run(arguments: &RunArguments) -> (SettingsDraft, Option<RunSettings>) {
    let mut draft = table::read_arguments(arguments);
    derive_from_flags(arguments, &mut draft);
    draft.is_dry_run = true;
    let settings = check(arguments, &mut draft).map(|(settings, _)| settings);
    (draft, settings)
}

/// Sets what follows from flags unless it was given: clients name hosts, and a parent raises the limit every second.
fn derive_from_flags(arguments: &RunArguments, draft: &mut SettingsDraft) {
    if arguments.takes_commands() {
        draft.follows_locality.get_or_insert(true);
    }
    if arguments.steered {
        draft.revive_interval.get_or_insert(LOAD_REVIVE_INTERVAL);
    }
}

/// Builds the kernel's configuration, or reports why it can't be.
fn build_config(
    arguments: &RunArguments,
    draft: &mut SettingsDraft,
    builder: ConfigBuilder,
) -> Option<Config> {
    let config = builder.build().map_err(|error| draft.report_error(&error)).ok()?;
    if arguments.tasks.is_none() {
        executor_queue::check_room(draft, &config);
    }
    Some(config)
}

fn check(
    arguments: &RunArguments,
    draft: &mut SettingsDraft,
) -> Option<(RunSettings, Arc<dyn ClusterManager>)> {
    // A setting that could not be read has no value to check against others.
    let is_readable = draft.problems.is_empty();
    kubernetes::check(draft);
    let executors = executors::executor_program(arguments, draft);
    containers::check(draft);
    allocation::check(draft);
    spark::check(draft);
    limits::check_limit(draft, arguments);
    mesos::check(draft);
    let http = http::plan(draft);
    let epoch = epoch_now();
    let RunNames { name, id_prefix } =
        run_name::names(draft, &executors::default_name(&arguments.command), epoch);
    let ids = IdScheme::unique(&id_prefix, epoch).map_err(|error| draft.report_error(&error)).ok();
    let by_core_cap = limits::limit_by_core_cap(draft);
    let until_finished = match arguments.until_finished {
        true => limits::finished_goal(draft, by_core_cap),
        false => None,
    };
    let allocation = allocation::rule(draft, arguments);
    let limit = match &allocation {
        Some(rule) => Some(rule.initial()),
        None => draft.executors.or(until_finished),
    };
    let exclusion = draft.excludes.then_some(draft.exclusion);
    let builder = limits::check_caps(draft, config_builder(draft, limit, exclusion));
    let config = is_readable.then(|| build_config(arguments, draft, builder)).flatten();
    // The following checks would only repeat these problems.
    if !draft.problems.is_empty() {
        return None;
    }
    let (config, ids, executors) = (config?, ids?, executors?);
    let (target, manager) = target::prepare(draft, &name, &config)?;
    remark_on_capacity(draft, &target, limit);
    let limit_max = allocation.as_ref().map(AllocationRule::max).or(limit);
    let executors_max = [limit_max, by_core_cap, target.fitting].into_iter().flatten().min();
    let default_failures_max = (2 * u64::from(executors_max.unwrap_or(1))).max(3);
    let settings = RunSettings {
        name,
        id_prefix,
        target,
        config,
        ids: executors.ids(ids),
        epoch,
        executors,
        until_finished,
        failures_max: draft.failures_max.unwrap_or(default_failures_max),
        failures_window: draft.failures_window,
        exclusion,
        shuffle: shuffle::plan(draft),
        shutdown_timeout: draft.shutdown_timeout,
        allocation,
        tracks_shuffle: allocation::tracks_shuffle(draft),
        readiness: Readiness {
            ratio: draft.registered_ratio.unwrap_or_default(),
            wait: draft.registered_wait,
        },
        is_steered: arguments.steered,
        registration_timeout: draft.registration_timeout,
        http,
        page_url: None,
        output: output_form(arguments),
    };
    Some((settings, manager))
}

/// The time since 1970, in milliseconds: it tells the ids of this run from those of others by the same name.
fn epoch_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

/// The form of the output that the flags ask for.
fn output_form(arguments: &RunArguments) -> OutputForm {
    match arguments {
        RunArguments { json: true, .. } | RunArguments { steered: true, .. } => OutputForm::Json,
        RunArguments { plain: true, .. } => OutputForm::Lines,
        _ => OutputForm::Automatic,
    }
}

/// Adds a remark if not all executors fit at the same time.
fn remark_on_capacity(draft: &mut SettingsDraft, target: &RunTarget, limit: Option<u32>) {
    if let (Some(fitting), Some(limit)) = (target.fitting, limit)
        && (1..limit).contains(&fitting)
    {
        let remark = format!("{fitting} of {limit} executors fit on {} at a time", target.master);
        draft.remarks.push(remark);
    }
}
