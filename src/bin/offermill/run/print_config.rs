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
    /// Whether it applies to the cluster of the run.
    applies: bool,
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
    let all: Vec<ShownSetting> = options.chain(startup_settings(&draft)).collect();
    let printed = match arguments.json {
        true => print_json(&objects(&all)),
        false => print_result(&table(&all, &settings.target.master)),
    };
    match printed {
        PrintOutcome::Failed => ExitStatus::OutputClosed,
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
    }
}

/// The settings of an option: one, or any number if its key ends in a dot.
fn shown(
    spec: &OptionSpec,
    draft: &SettingsDraft,
    settings: &RunSettings,
    shows_values: bool,
) -> Vec<ShownSetting> {
    let applies = !draft.is_inapplicable(spec);
    let of_given = |given: &Sourced| {
        let alias = given.name.split(' ').next().filter(|name| *name != given.key);
        let is_alias = alias.is_some_and(|name| spec.aliases.contains(&name));
        ShownSetting {
            key: given.key.clone(),
            value: value_of(spec, given, &draft.redaction, shows_values),
            source: given.source,
            place: given.place.clone(),
            alias: alias.filter(|_| is_alias).map(str::to_owned),
            applies,
        }
    };
    let given: Vec<ShownSetting> = draft.given_for(spec).map(of_given).collect();
    if !given.is_empty() || spec.key.ends_with('.') {
        return given;
    }
    let value = match spec.default {
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
        applies,
    }]
}

/// The settings that Spark's executors need to start and that are no options here.
fn startup_settings(draft: &SettingsDraft) -> impl Iterator<Item = ShownSetting> {
    let others = draft.startup.values().filter(|it| draft.specs().matching(&it.key).is_none());
    others.map(|given| ShownSetting {
        key: given.key.clone(),
        value: match draft.redaction.hides_key(&given.key) {
            true => "set".to_owned(),
            false => draft.redaction.value(given.text.trim()),
        },
        source: given.source,
        place: given.place.clone(),
        alias: None,
        applies: true,
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
        "spark.executor.maxNumFailures" => settings.failures_max.to_string(),
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
        let inapplicable =
            if shown.applies { String::new() } else { format!(" (not on {master})") };
        let ShownSetting { key, value, .. } = shown;
        let origin = shown.origin();
        let key = padded(key, key_columns);
        let value = padded(value, value_columns);
        format!("{key}  {value}  {origin}{inapplicable}\n")
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
            "counts": shown.applies,
        });
        format!("{object}\n")
    };
    all.iter().map(object).collect()
}
