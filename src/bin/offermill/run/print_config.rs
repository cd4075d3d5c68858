//! `offermill run --print-config`: prints each setting with its value and its source.

use std::time::Duration;

use offermill::cluster::mesos::default_user;
use offermill::config::ExecutorCores;
use serde_json::json;

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_json, print_result, remark};
use crate::run::gather::dry_run;
use crate::settings::RunSettings;
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::master::ClusterKind;
use crate::settings::option::{DefaultValue, OptionSpec};
use crate::settings::redact::Redaction;
use crate::settings::sources::{SettingSource, Sourced, VARIABLES};
use crate::settings::task_flags::{TaskFlag, is_unused_by_tasks, task_flags};
use crate::text::format::count;
use crate::text::styled::{StyledText, padded};

/// The widest that the column of values gets. Longer values stick out.
const VALUE_COLUMNS_MAX: usize = 32;

/// A setting with the value in force.
struct ShownSetting {
    key: String,
    /// A placeholder if it is a secret.
    value: String,
    source: SettingSource,
    /// The flag, the variable or the file.
    place: Option<String>,
    /// The older key under which it was given.
    alias: Option<String>,
    usage: SettingUse,
}

/// Whether a run uses a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingUse {
    Used,
    /// It doesn't apply to the cluster of the run.
    NotOnCluster,
    /// Tasks don't use it.
    NotByTasks,
}

/// Prints all settings; or, if settings are invalid, all problems. Starts nothing and creates no file.
pub(crate) fn print_config(arguments: &RunArguments) -> ExitStatus {
    let (draft, settings) = dry_run(arguments);
    let (remarks, problems) = draft.messages();
    remarks.iter().for_each(|text| remark(text));
    let Some(settings) = settings.filter(|_| problems.is_empty()) else {
        problems.iter().for_each(|problem| remark(problem));
        return ExitStatus::BadInput;
    };
    let shows_values = arguments.show_values;
    let specs = draft.specs().iter();
    let options = specs.flat_map(|spec| shown(spec, &draft, &settings, shows_values));
    let flags = shown_task_flags(arguments);
    let mut all: Vec<ShownSetting> =
        flags.chain(options).chain(startup_settings(&draft, &settings)).collect();
    let printed = match arguments.json {
        true => print_json(&objects(&all)),
        false => {
            if arguments.tasks.is_some() {
                leave_out_unused(&mut all);
            }
            print_result(&table(&all, &settings.target.master))
        }
    };
    match printed {
        PrintOutcome::Failed => ExitStatus::OutputClosed,
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
    }
}

/// The flags of tasks, which have no keys, if there are tasks; those of hosts only if there are hosts.
fn shown_task_flags(arguments: &RunArguments) -> impl Iterator<Item = ShownSetting> {
    let file = arguments.tasks.as_ref().map(|name| TaskFlag {
        name: "--tasks",
        given: Some(name.clone()),
        default: String::new(),
        is_of_hosts: false,
    });
    let others = file.is_some().then(|| task_flags(arguments));
    let all = file.into_iter().chain(others.into_iter().flatten());
    let has_hosts = arguments.task_hosts;
    all.filter(move |flag| has_hosts || !flag.is_of_hosts).map(|flag| ShownSetting {
        key: flag.name.to_owned(),
        source: if flag.given.is_some() { SettingSource::Flag } else { SettingSource::Default },
        place: flag.given.is_some().then(|| flag.name.to_owned()),
        value: flag.given.unwrap_or(flag.default),
        alias: None,
        usage: SettingUse::Used,
    })
}

/// Whether a run uses the settings of an option.
fn usage(spec: &OptionSpec, draft: &SettingsDraft, settings: &RunSettings) -> SettingUse {
    let is_for_tasks = settings.executors.tasks().is_some();
    if is_for_tasks && is_unused_by_tasks(spec.key, settings.exclusion.is_some()) {
        SettingUse::NotByTasks
    } else if draft.is_inapplicable(spec) {
        SettingUse::NotOnCluster
    } else {
        SettingUse::Used
    }
}

/// Leaves out the defaults that a run of tasks doesn't use, and says so.
fn leave_out_unused(all: &mut Vec<ShownSetting>) {
    let before = all.len();
    all.retain(|it| it.usage == SettingUse::Used || it.source != SettingSource::Default);
    let left_out = (before - all.len()) as u64;
    if left_out > 0 {
        let settings = count(left_out, "setting");
        let verb = if left_out == 1 { "is" } else { "are" };
        remark(&format!(
            "{settings} that this run of tasks doesn't use, such as executor cores, {verb} left out; --json has all"
        ));
    }
}

/// The settings of an option: one, or any number if its key ends in a dot.
fn shown(
    spec: &OptionSpec,
    draft: &SettingsDraft,
    settings: &RunSettings,
    shows_values: bool,
) -> Vec<ShownSetting> {
    let usage = usage(spec, draft, settings);
    let of_given = |given: &Sourced| {
        let alias = given.name.split(' ').next().filter(|name| *name != given.key);
        let is_alias = alias.is_some_and(|name| spec.aliases.contains(&name));
        ShownSetting {
            key: given.key.clone(),
            value: value_of(spec, given, &draft.redaction, shows_values),
            source: given.source,
            place: given.place.clone(),
            alias: alias.filter(|_| is_alias).map(str::to_owned),
            usage,
        }
    };
    let given: Vec<ShownSetting> = draft.given_for(spec).map(of_given).collect();
    if !given.is_empty() || spec.key.ends_with('.') {
        return given;
    }
    let value = match spec.default {
        // With tasks it follows from them.
        _ if spec.key == "spark.mesos.gpus.max" => settings.config.gpu_cap().to_string(),
        _ if spec.is_secret => "unset".to_owned(),
        DefaultValue::Text("") => "none".to_owned(),
        DefaultValue::Text(text) => text.to_owned(),
        DefaultValue::Derived(words) => {
            derived(spec.key, draft, settings).unwrap_or_else(|| words.to_owned())
        }
    };
    vec![ShownSetting {
        key: spec.key.to_owned(),
        value,
        source: SettingSource::Default,
        place: None,
        alias: None,
        usage,
    }]
}

/// The settings that Spark's executors need to start and that are no options here.
fn startup_settings(
    draft: &SettingsDraft,
    settings: &RunSettings,
) -> impl Iterator<Item = ShownSetting> {
    let usage = match settings.executors.tasks() {
        Some(_) => SettingUse::NotByTasks,
        None => SettingUse::Used,
    };
    let others = draft.startup.values().filter(|it| draft.specs().matching(&it.key).is_none());
    others.map(move |given| ShownSetting {
        key: given.key.clone(),
        value: match draft.redaction.hides_key(&given.key) {
            true => "set".to_owned(),
            false => draft.redaction.value(given.text.trim()),
        },
        source: given.source,
        place: given.place.clone(),
        alias: None,
        usage,
    })
}

/// A value as it was given, without secrets. Those of environment variables are shown only if that was asked for.
fn value_of(
    spec: &OptionSpec,
    given: &Sourced,
    redaction: &Redaction,
    shows_values: bool,
) -> String {
    let is_variable = spec.key == VARIABLES;
    let has_secret_name = spec.key.ends_with('.') && redaction.hides_key(&given.key);
    if spec.is_secret || has_secret_name || (is_variable && !shows_values) {
        return "set".to_owned();
    }
    let text = redaction.value(given.text.trim());
    if text.is_empty() { "none".to_owned() } else { text }
}

/// The value of an option that follows from other settings.
fn derived(key: &str, draft: &SettingsDraft, settings: &RunSettings) -> Option<String> {
    let config = &settings.config;
    let refuse = config.refuse_durations();
    Some(match key {
        // On Kubernetes it has the start time in it.
        "spark.app.name" if draft.is_on(ClusterKind::Kubernetes) => return None,
        "spark.app.name" => settings.name.clone(),
        "spark.executor.cores" => match config.executor_cores() {
            ExecutorCores::Fixed(cores) => cores.to_string(),
            ExecutorCores::WholeOffer => "all offered".to_owned(),
        },
        "spark.scheduler.minRegisteredResourcesRatio" => format!("{:?}", settings.readiness.ratio),
        "spark.mesos.executor.memoryOverhead" => {
            let overhead =
                config.memory_taken().get().saturating_sub(config.executor_memory().get());
            format!("{overhead}m")
        }
        "spark.mesos.rejectOfferDurationForUnmetConstraints" => duration(refuse.unmet_constraint),
        "spark.mesos.rejectOfferDurationForReachedMaxCores" => duration(refuse.reached_cap),
        "spark.executor.maxNumFailures" => match settings.failures_max {
            u64::MAX => "no limit".to_owned(),
            most => most.to_string(),
        },
        "spark.dynamicAllocation.initialExecutors" => draft.allocation.initial.to_string(),
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout" => {
            duration(draft.allocation.sustained_timeout)
        }
        "spark.storage.blockManagerHeartbeatTimeoutMs" => duration(draft.shuffle.heartbeat_timeout),
        "offermill.locality" => config.locality_wait().is_some().to_string(),
        "offermill.reviveInterval" => duration(config.revive_interval()),
        "offermill.mesos.user" => default_user().ok()?,
        "offermill.spark.driver" => draft.spark.driver_url().ok().flatten()?,
        _ => return None,
    })
}

fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1000 == 0 => format!("{}s", duration.as_secs()),
        millis => format!("{millis}ms"),
    }
}

impl ShownSetting {
    /// The source as a phrase.
    fn origin(&self) -> String {
        let place = self.place.as_deref().unwrap_or_default();
        let mut origin = match self.source {
            SettingSource::Default => "default".to_owned(),
            SettingSource::Environment => format!("environment ({place})"),
            SettingSource::File => format!("properties file {place}"),
            SettingSource::Conf => "--conf".to_owned(),
            SettingSource::Flag => format!("flag {place}"),
        };
        if let Some(alias) = &self.alias {
            origin.push_str(&format!(", as {alias}"));
        }
        origin
    }

    /// The source as a word.
    fn kind(&self) -> &'static str {
        match self.source {
            SettingSource::Default => "default",
            SettingSource::Environment => "environment",
            SettingSource::File => "file",
            SettingSource::Conf => "conf",
            SettingSource::Flag => "flag",
        }
    }
}

fn table(all: &[ShownSetting], master: &str) -> StyledText {
    let columns = |text: &str| StyledText::plain(text).width();
    let key_columns = all.iter().map(|shown| columns(&shown.key)).max().unwrap_or(0);
    let values = all.iter().map(|shown| columns(&shown.value));
    let value_columns = values.filter(|columns| *columns <= VALUE_COLUMNS_MAX).max().unwrap_or(0);
    let line = |shown: &ShownSetting| {
        let unused = match shown.usage {
            SettingUse::Used => String::new(),
            SettingUse::NotOnCluster => format!(" (not on {master})"),
            SettingUse::NotByTasks => " (not used by tasks)".to_owned(),
        };
        let ShownSetting { key, value, .. } = shown;
        let origin = shown.origin();
        let key = padded(key, key_columns);
        let value = padded(value, value_columns);
        format!("{key}  {value}  {origin}{unused}\n")
    };
    StyledText::lines(&all.iter().map(line).collect::<String>())
}

fn objects(all: &[ShownSetting]) -> String {
    let object = |shown: &ShownSetting| {
        let object = json!({
            "key": shown.key,
            "value": shown.value,
            "origin": shown.kind(),
            "place": shown.place,
            "alias": shown.alias,
            "counts": shown.usage == SettingUse::Used,
        });
        format!("{object}\n")
    };
    all.iter().map(object).collect()
}
