//! Settings that are checked, each by itself and against the others.

pub(crate) mod allocation;
pub(crate) mod allocation_table;
pub(crate) mod containers;
pub(crate) mod draft;
pub(crate) mod executors;
pub(crate) mod flags;
pub(crate) mod master;
pub(crate) mod mesos;
pub(crate) mod mesos_table;
pub(crate) mod option;
pub(crate) mod preflight;
pub(crate) mod print;
pub(crate) mod redact;
pub(crate) mod sources;
pub(crate) mod spark;
pub(crate) mod spark_table;
pub(crate) mod table;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offermill::allocation::Rule;
use offermill::cluster::local::AgentAttributes;
use offermill::config::{ExclusionRule, ExecutorCores, ExecutorGpus};
use offermill::engine::cluster_manager::ClusterManager;
use offermill::{Config, ConfigBuilder, IdScheme};

use crate::run::shuffle::ShufflePlan;
use crate::settings::draft::Draft;
use crate::settings::executors::Executors;
use crate::settings::flags::RunArguments;
use crate::settings::sources::Layers;
use crate::target::{self, Target};

/// Everything that a run needs to know.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The application's name.
    pub(crate) name: String,
    /// Where the run takes place.
    pub(crate) site: Target,
    /// The kernel's settings.
    pub(crate) config: Config,
    /// How executors' ids are written.
    pub(crate) ids: IdScheme,
    /// The number in executors' ids that tells this run from others: its start, in milliseconds since 1970.
    pub(crate) epoch: u64,
    /// What executors are.
    pub(crate) executors: Executors,
    /// End when so many have finished.
    pub(crate) until_finished: Option<u32>,
    /// End when so many have failed.
    pub(crate) failures_max: u64,
    /// Failures count for so long; `None` is for ever.
    pub(crate) failures_window: Option<Duration>,
    /// When agents are excluded.
    pub(crate) exclusion: Option<ExclusionRule>,
    /// What is done about agents' shuffle services; nothing if there are none.
    pub(crate) shuffle: Option<ShufflePlan>,
    /// How long executors may take to end.
    pub(crate) shutdown_timeout: Duration,
    /// How the number of executors follows the load, with dynamic allocation.
    pub(crate) allocation: Option<Rule>,
    /// Whether executors that hold shuffle data are kept for it.
    pub(crate) tracks_shuffle: bool,
    /// How much has to be there before work begins.
    pub(crate) readiness: Readiness,
    /// How events are shown.
    pub(crate) output: Output,
}

/// How much has to be there before a framework begins its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The share of the cores that have to be registered, 0 to 1.
    pub(crate) ratio: f64,
    /// After so long it begins anyway.
    pub(crate) wait: Duration,
}

/// How events are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A live table if standard output is a terminal, else lines.
    Fitting,
    /// Lines.
    Lines,
    /// JSON.
    Json,
}

/// Where the limit follows a load, offers are asked for as often as it may grow, so that executors come in time.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);

/// The result of reading the arguments: the draft, with its remarks and problems, and the checked settings.
pub(crate) struct Gathered {
    pub(crate) draft: Draft,
    /// The settings and the cluster, not started yet; none if the draft has problems.
    pub(crate) settings: Option<Checked>,
}

/// Settings that are fine, and what carries out the engine's calls.
pub(crate) type Checked = (Settings, Arc<dyn ClusterManager>);

/// Reads and checks all settings, and leaves everything as it is.
pub(crate) fn look(arguments: &RunArguments) -> Looked {
    let mut draft = Draft::read(Layers::collect(arguments));
    draft.only_looks = true;
    let settings = finish(arguments, &mut draft).map(|(settings, _)| settings);
    Looked { draft, settings }
}

/// Settings, if they are fine, and what they were made of.
pub(crate) struct Looked {
    pub(crate) draft: Draft,
    pub(crate) settings: Option<Settings>,
}

/// Reads and checks all settings.
pub(crate) fn gather(arguments: &RunArguments) -> Gathered {
    let layers = Layers::collect(arguments);
    let mut draft = Draft::read(layers);
    let settings = finish(arguments, &mut draft).filter(|_| draft.problems.is_empty());
    Gathered { draft, settings }
}

fn finish(arguments: &RunArguments, draft: &mut Draft) -> Option<Checked> {
    // What can't be read has no value that could be checked against others.
    let is_readable = draft.problems.is_empty();
    let executors = executors::find(arguments, draft);
    containers::check(draft);
    allocation::check(draft);
    spark::check(draft);
    check_limit(draft);
    mesos::check(draft);
    let name = draft.name.clone().unwrap_or_else(|| executors::name_after(&arguments.command));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = u64::try_from(since.as_millis()).unwrap_or_default();
    let ids = IdScheme::unique(&name, epoch).map_err(|error| draft.complain(&error)).ok();
    let derived = derived_limit(draft);
    let until_finished = arguments.until_finished.then(|| finish_line(draft, derived)).flatten();
    let allocation = allocation::rule(draft, arguments);
    let limit = match &allocation {
        Some(rule) => Some(rule.initial()),
        None => draft.executors.or(until_finished),
    };
    let exclusion = draft.excludes.then_some(draft.exclusion);
    let builder = check_caps(draft, builder(draft, limit, exclusion));
    let built = is_readable.then(|| builder.build());
    let config = built.and_then(|built| built.map_err(|error| draft.complain(&error)).ok());
    // What follows from wrong settings needs no complaint of its own.
    if !draft.problems.is_empty() {
        return None;
    }
    let (config, ids, executors) = (config?, ids?, executors?);
    let (site, manager) = target::prepare(draft, &name, &config)?;
    let ceiling = allocation.as_ref().map(Rule::max).or(limit);
    let most = [ceiling, derived, site.fitting].into_iter().flatten().min().unwrap_or(1);
    remark_on_room(draft, &site, limit);
    let settings = Settings {
        name,
        site,
        config,
        ids: executors.ids(ids),
        epoch,
        executors,
        until_finished,
        failures_max: draft.failures_max.unwrap_or((2 * u64::from(most)).max(3)),
        failures_window: draft.failures_window,
        exclusion,
        shuffle: ShufflePlan::of(draft),
        shutdown_timeout: draft.shutdown_timeout,
        allocation,
        tracks_shuffle: allocation::tracks_shuffle(draft),
        readiness: Readiness { ratio: draft.registered_ratio, wait: draft.registered_wait },
        output: match arguments {
            RunArguments { json: true, .. } => Output::Json,
            RunArguments { plain: true, .. } => Output::Lines,
            _ => Output::Fitting,
        },
    };
    Some((settings, manager))
}

/// Says so if not all executors fit at a time.
fn remark_on_room(draft: &mut Draft, site: &Target, limit: Option<u32>) {
    if let (Some(fitting), Some(limit)) = (site.fitting, limit)
        && (1..limit).contains(&fitting)
    {
        let remark = format!("{fitting} of {limit} executors fit on {} at a time", site.master);
        draft.remarks.push(remark);
    }
}

/// Complains about caps below one executor. What comes of the others can then be checked without them.
fn check_caps(draft: &mut Draft, mut builder: ConfigBuilder) -> ConfigBuilder {
    if let (Some(cap), ExecutorCores::Fixed(cores)) = (draft.core_cap, draft.executor_cores)
        && cap < cores
    {
        let (name, other) =
            (draft.name_of("spark.cores.max"), draft.name_of("spark.executor.cores"));
        let allowed = format!("at least the {cores} cores of one executor ({other})");
        draft.problems.push(format!("{name} is \"{cap}\", but must be {allowed}"));
        builder = builder.core_cap(None);
    }
    if let ExecutorGpus::Exactly(gpus) = draft.executor_gpus
        && gpus > draft.gpu_cap
    {
        let why = "the second is for all executors together, and must be enough for one";
        draft.contradict(&["spark.mesos.executor.gpus", "spark.mesos.gpus.max"], why);
        builder = builder.executor_gpus(ExecutorGpus::WhatThereIs);
    }
    builder
}

/// Complains about a limit that lets nothing start.
fn check_limit(draft: &mut Draft) {
    if draft.executors == Some(0) && !draft.allocation.enabled {
        let name = draft.name_of("spark.executor.instances");
        let allowed = "at least 1, as nothing could raise it later";
        draft.problems.push(format!("{name} is \"0\", but must be {allowed}"));
    }
}

/// The kernel's settings, with this limit and this exclusion.
pub(crate) fn builder(
    draft: &Draft,
    limit: Option<u32>,
    exclusion: Option<ExclusionRule>,
) -> ConfigBuilder {
    let builder = Config::builder()
        .core_cap(draft.core_cap)
        .executor_cores(draft.executor_cores)
        .executor_memory(draft.memory)
        .memory_overhead(draft.overhead())
        .extra_cores(draft.extra_cores)
        .gpu_cap(draft.gpu_cap)
        .executor_gpus(draft.executor_gpus)
        .executor_limit(limit)
        .fixed_port(draft.port)
        .revocable(draft.revocable)
        .maintenance_lead(draft.maintenance_lead)
        .constraint(draft.constraint.clone())
        .refuse_durations(draft.refusals)
        .exclusion(exclusion)
        .placement(draft.placement);
    // Who tells where work is tells how much there is, too.
    match draft.allocation.enabled {
        true => builder.locality_wait(Some(draft.locality_wait)).revive_interval(FOLLOWED_WITHIN),
        false => builder,
    }
}

/// How many executors the core cap leaves room for, where executors have a size.
fn derived_limit(draft: &Draft) -> Option<u32> {
    match (draft.core_cap, draft.executor_cores) {
        (Some(cap), ExecutorCores::Fixed(cores)) => {
            u32::try_from(cap.millis() / cores.millis().max(1)).ok()
        }
        _ => None,
    }
}

/// How many executors have to finish.
fn finish_line(draft: &mut Draft, derived: Option<u32>) -> Option<u32> {
    match draft.executors.or(derived) {
        None => {
            let sentence = "--until-finished needs to know how many executors there are to be: \
                            give --num-executors, or --total-executor-cores and --executor-cores";
            draft.problems.push(sentence.to_owned());
            None
        }
        known => known,
    }
}

/// The attributes of the agent with this number, if they can be had.
pub(crate) fn attributes_of(
    attributes: &AgentAttributes,
    agent: usize,
) -> Vec<offermill::attributes::OwnedAttribute> {
    attributes.of_agent(agent).unwrap_or_default()
}
