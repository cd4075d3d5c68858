//! `offermill run --print-config`: each setting with its value and where that comes from.

use std::time::Duration;

use serde_json::json;

use crate::exit::Exit;
use crate::output::{Said, remark, say};
use crate::settings::draft::Draft;
use crate::settings::flags::RunArguments;
use crate::settings::option::{self, Key, Otherwise};
use crate::settings::redact::{sounds_secret, without_secrets};
use crate::settings::sources::{Layer, Sourced};
use crate::settings::spark;
use crate::settings::{Looked, Settings, look};
use crate::text::format::printable;

/// So wide is the column of values, unless one is longer.
const VALUE_COLUMNS: usize = 32;

/// A setting as it counts.
struct Shown {
    key: String,
    /// Nothing of a secret.
    value: String,
    layer: Layer,
    /// The flag, the variable or the file.
    place: Option<String>,
    /// The older name that it was given by.
    alias: Option<String>,
    /// Whether it means something on the cluster that was asked for.
    counts: bool,
}

/// Prints all settings; or, if one is wrong, all that is wrong. Starts nothing, and leaves nothing behind.
pub(crate) fn print_config(arguments: &RunArguments) -> Exit {
    let Looked { draft, settings } = look(arguments);
    draft.remarks.iter().for_each(|text| remark(text));
    let Some(settings) = settings.filter(|_| draft.problems.is_empty()) else {
        draft.problems.iter().for_each(|problem| remark(problem));
        return Exit::BadInput;
    };
    let all: Vec<Shown> = option::all().flat_map(|key| shown(key, &draft, &settings)).collect();
    let text = if arguments.json { objects(&all) } else { table(&all, &settings.site.master) };
    match say(&text) {
        Said::Lost => Exit::OutputClosed,
        Said::Heard | Said::Unheard => Exit::Done,
    }
}

/// The settings that a row stands for: one, or any number if it stands for all of a kind.
fn shown(key: &Key, draft: &Draft, settings: &Settings) -> Vec<Shown> {
    let counts = !draft.is_strange(key);
    let of_given = |given: &Sourced| {
        let alias = given.name.split(' ').next().filter(|name| *name != given.key);
        let is_alias = alias.is_some_and(|name| key.aliases.contains(&name));
        Shown {
            key: given.key.clone(),
            value: value_of(key, given),
            layer: given.layer,
            place: given.place.clone(),
            alias: alias.filter(|_| is_alias).map(str::to_owned),
            counts,
        }
    };
    let given: Vec<Shown> = draft.given_to(key).map(of_given).collect();
    if !given.is_empty() || key.name.ends_with('.') {
        return given;
    }
    let value = match key.default {
        _ if key.is_secret => "unset".to_owned(),
        Otherwise::Reads("") => "none".to_owned(),
        Otherwise::Reads(text) => text.to_owned(),
        Otherwise::Is(words) => {
            derived(key.name, draft, settings).unwrap_or_else(|| words.to_owned())
        }
    };
    let (layer, place, alias) = (Layer::Default, None, None);
    vec![Shown { key: key.name.to_owned(), value, layer, place, alias, counts }]
}

/// A value as it was given, without what nobody should see.
fn value_of(key: &Key, given: &Sourced) -> String {
    if key.is_secret || (key.name.ends_with('.') && sounds_secret(&given.key)) {
        return "set".to_owned();
    }
    let text = printable(&without_secrets(given.text.trim()));
    if text.is_empty() { "none".to_owned() } else { text }
}

/// What follows from other settings.
fn derived(key: &str, draft: &Draft, settings: &Settings) -> Option<String> {
    let config = &settings.config;
    let refuse = config.refuse_durations();
    Some(match key {
        "spark.app.name" => settings.name.clone(),
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
        "offermill.spark.driver" => spark::driver_url(&draft.spark).ok().flatten()?,
        _ => return None,
    })
}

fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1000 == 0 => format!("{}s", duration.as_secs()),
        millis => format!("{millis}ms"),
    }
}

impl Shown {
    fn origin(&self) -> String {
        let place = self.place.as_deref().unwrap_or_default();
        let mut origin = match self.layer {
            Layer::Default => "default".to_owned(),
            Layer::Environment => format!("environment ({place})"),
            Layer::File => format!("properties file {place}"),
            Layer::Conf => "--conf".to_owned(),
            Layer::Flag => format!("flag {place}"),
        };
        if let Some(alias) = &self.alias {
            origin.push_str(&format!(", as {alias}"));
        }
        origin
    }

    /// The origin in a word.
    fn kind(&self) -> &'static str {
        match self.layer {
            Layer::Default => "default",
            Layer::Environment => "environment",
            Layer::File => "file",
            Layer::Conf => "conf",
            Layer::Flag => "flag",
        }
    }
}

fn table(all: &[Shown], master: &str) -> String {
    let columns = |text: &str| text.chars().count();
    let key_columns = all.iter().map(|shown| columns(&shown.key)).max().unwrap_or(0);
    let values = all.iter().map(|shown| columns(&shown.value));
    let value_columns = values.filter(|columns| *columns <= VALUE_COLUMNS).max().unwrap_or(0);
    let line = |shown: &Shown| {
        let idle = if shown.counts { String::new() } else { format!(" (not on {master})") };
        let (key, value, origin) = (&shown.key, &shown.value, shown.origin());
        format!("{key:key_columns$}  {value:value_columns$}  {origin}{idle}\n")
    };
    all.iter().map(line).collect()
}

fn objects(all: &[Shown]) -> String {
    let object = |shown: &Shown| {
        let object = json!({
            "key": shown.key,
            "value": shown.value,
            "origin": shown.kind(),
            "place": shown.place,
            "alias": shown.alias,
            "counts": shown.counts,
        });
        format!("{object}\n")
    };
    all.iter().map(object).collect()
}
