//! Settings that are checked, each by itself and against the others.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offermill::cluster::local::{AgentAttributes, LocalCluster, LocalConfig, LocalMaster};
use offermill::config::{ExclusionRule, ExecutorCores};
use offermill::resources::PortRange;
use offermill::{Config, ConfigBuilder, IdScheme};

use crate::arguments::RunArguments;
use crate::draft::Draft;
use crate::layers::Layers;
use crate::preflight;

/// Everything that a run needs to know.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The application's name.
    pub(crate) name: String,
    /// The master as it was given.
    pub(crate) master: String,
    /// How many agents there are.
    pub(crate) agents: usize,
    /// How many of them can get executors.
    pub(crate) usable_agents: usize,
    /// The kernel's settings.
    pub(crate) config: Config,
    /// How executors' ids are written.
    pub(crate) ids: IdScheme,
    /// Where sandboxes are.
    pub(crate) sandboxes: PathBuf,
    /// The executors' command.
    pub(crate) command: Vec<String>,
    /// Variables of the executors' environment.
    pub(crate) variables: Vec<(String, String)>,
    /// End when so many have finished.
    pub(crate) until_finished: Option<u32>,
    /// End when so many have failed.
    pub(crate) failures_max: u64,
    /// When agents are excluded.
    pub(crate) exclusion: Option<ExclusionRule>,
    /// How long executors may take to end.
    pub(crate) shutdown_timeout: Duration,
    /// How events are shown.
    pub(crate) output: Output,
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

/// What became of the arguments, with remarks that don't stop anything.
pub(crate) struct Gathered {
    pub(crate) remarks: Vec<String>,
    /// The settings and the cluster, not started yet; or a sentence for each that isn't allowed.
    pub(crate) settings: Result<(Settings, LocalCluster), Vec<String>>,
}

/// Reads and checks all settings.
pub(crate) fn gather(arguments: &RunArguments) -> Gathered {
    let layers = Layers::collect(arguments);
    let mut remarks = layers.remarks.clone();
    let mut draft = Draft::read(layers);
    let settings = finish(arguments, &mut draft, &mut remarks);
    let settings = match settings {
        Some(settings) if draft.problems.is_empty() => Ok(settings),
        _ => Err(draft.problems),
    };
    Gathered { remarks, settings }
}

fn finish(
    arguments: &RunArguments,
    draft: &mut Draft,
    remarks: &mut Vec<String>,
) -> Option<(Settings, LocalCluster)> {
    // What can't be read has no value that could be checked against others.
    let is_readable = draft.problems.is_empty();
    let command = preflight::find_command(&arguments.command, draft);
    let name = draft.name.clone().unwrap_or_else(|| name_after(&arguments.command));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = u64::try_from(since.as_millis()).unwrap_or_default();
    let ids = IdScheme::unique(&name, epoch).map_err(|error| draft.complain(&error)).ok();
    let derived = derived_limit(draft);
    let until_finished = arguments.until_finished.then(|| finish_line(draft, derived)).flatten();
    let limit = draft.executors.or(until_finished);
    let exclusion = draft.excludes.then_some(draft.exclusion);
    let builder = builder(draft, limit, exclusion);
    let built = is_readable.then(|| builder.build());
    let config = built.and_then(|built| built.map_err(|error| draft.complain(&error)).ok());
    let (master_text, master) = draft.master.clone()?;
    // What follows from wrong settings needs no complaint of its own.
    if !draft.problems.is_empty() {
        return None;
    }
    let (config, ids, command) = (config?, ids?, command?);
    let room = preflight::check_room(draft, &config, &master_text, &master)?;
    let fitting = room.executors;
    let most = [limit, derived, fitting].into_iter().flatten().min().unwrap_or(1);
    if let (Some(fitting), Some(limit)) = (fitting, limit)
        && (1..limit).contains(&fitting)
    {
        remarks.push(format!("{fitting} of {limit} executors fit on {master_text} at a time"));
    }
    let cluster = LocalCluster::new(local_config(draft, &master));
    let cluster = cluster.map_err(|error| draft.complain(&error)).ok()?;
    if draft.problems.is_empty() {
        preflight::check_work_dir(draft);
    }
    let settings = Settings {
        name,
        master: master_text,
        agents: master.agents(),
        usable_agents: room.agents,
        config,
        ids,
        sandboxes: draft.work_dir.join("sandboxes"),
        command,
        variables: std::mem::take(&mut draft.variables).into_iter().collect(),
        until_finished,
        failures_max: draft.failures_max.unwrap_or((2 * u64::from(most)).max(3)),
        exclusion,
        shutdown_timeout: draft.shutdown_timeout,
        output: match arguments {
            RunArguments { json: true, .. } => Output::Json,
            RunArguments { plain: true, .. } => Output::Lines,
            _ => Output::Fitting,
        },
    };
    Some((settings, cluster))
}

fn builder(draft: &Draft, limit: Option<u32>, exclusion: Option<ExclusionRule>) -> ConfigBuilder {
    Config::builder()
        .core_cap(draft.core_cap)
        .executor_cores(draft.executor_cores)
        .executor_memory(draft.memory)
        .memory_overhead(draft.overhead)
        .extra_cores(draft.extra_cores)
        .gpu_cap(draft.gpu_cap)
        .executor_limit(limit)
        .fixed_port(draft.port)
        .revocable(draft.revocable)
        .constraint(draft.constraint.clone())
        .refuse_durations(draft.refusals)
        .exclusion(exclusion)
        .placement(draft.placement)
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

/// The command's file name, if ids can begin with it.
fn name_after(command: &[String]) -> String {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if IdScheme::unique(name, 0).is_ok() { name.to_owned() } else { "app".to_owned() }
}

fn local_config(draft: &Draft, master: &LocalMaster) -> LocalConfig {
    let local = LocalConfig::new(master.clone())
        .attributes(draft.attributes.clone())
        .work_dir(draft.work_dir.clone())
        // The engine asks executors to end and waits; what is left then is left over.
        .grace(Duration::ZERO);
    match draft.port {
        Some(port) if !(31_000..=32_000).contains(&port) => {
            local.ports(PortRange::new(1_024, 65_535))
        }
        _ => local,
    }
}

/// The attributes of the agent with this number, if they can be had.
pub(crate) fn attributes_of(
    attributes: &AgentAttributes,
    agent: usize,
) -> Vec<offermill::attributes::OwnedAttribute> {
    attributes.of_agent(agent).unwrap_or_default()
}
