//! `offermill run --print-config`: each setting with its value and where that comes from.

use std::time::Duration;

use serde_json::json;

use crate::arguments::RunArguments;
use crate::draft::Draft;
use crate::exit::Exit;
use crate::face::{Said, remark, say};
use crate::keys::{self, Key, Otherwise};
use crate::layers::{Given, Layer};
use crate::settings::{Looked, Settings, look};
use crate::spark_settings;
use crate::words::printable;

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
    let all: Vec<Shown> = keys::all().flat_map(|key| shown(key, &draft, &settings)).collect();
    let text = if arguments.json { objects(&all) } else { table(&all, &settings.site.master) };
    match say(&text) {
        Said::Lost => Exit::OutputClosed,
        Said::Heard | Said::Unheard => Exit::Done,
    }
}

/// The settings that a row stands for: one, or any number if it stands for all of a kind.
fn shown(key: &Key, draft: &Draft, settings: &Settings) -> Vec<Shown> {
    let counts = !draft.is_strange(key);
    let of_given = |given: &Given| {
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
fn value_of(key: &Key, given: &Given) -> String {
    if key.is_secret || (key.name.ends_with('.') && sounds_secret(&given.key)) {
        return "set".to_owned();
    }
    let text = printable(&without_secrets(given.text.trim()));
    if text.is_empty() { "none".to_owned() } else { text }
}

/// A text without passwords in URLs, and without all that comes after `NAME=` if that sounds like a secret: where the
/// secret ends can't be known.
fn without_secrets(text: &str) -> String {
    let secret = text.match_indices('=').find(|(at, _)| {
        let before = text.get(..*at).unwrap_or_default();
        let name = before.rsplit([' ', ',', ';', '=', '&', '"', '\'']).next().unwrap_or_default();
        sounds_secret(name)
    });
    let (text, hidden) = match secret {
        Some((at, _)) => (text.get(..=at).unwrap_or_default(), "…"),
        None => (text, ""),
    };
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ',', ' ']).unwrap_or(part.len());
        let (authority, rest) = part.split_at(end);
        let kept = match authority.rsplit_once('@') {
            Some((user, host)) if user.contains(':') => format!("…@{host}"),
            _ => authority.to_owned(),
        };
        shown.push_str(&format!("://{kept}{rest}"));
    }
    shown + hidden
}

/// Whether the value of something with this name is probably one to be kept.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["secret", "password", "passwd", "token", "accesskey", "access.key", "access_key"]
        .iter()
        .any(|word| name.contains(word))
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
        "offermill.spark.driver" => spark_settings::driver_url(&draft.spark).ok().flatten()?,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what sounds like a secret isn't shown, all else is. Method: the places where people put them.
    #[test]
    fn secrets_in_texts_are_left_out() {
        for (text, shown) in [
            ("-Dx=1 -XX:+Y", "-Dx=1 -XX:+Y"),
            ("-Dx=1 -Dkey.password=\"a b\" -Dz", "-Dx=1 -Dkey.password=…"),
            ("env=A=b,env=API_TOKEN=c,env=D=e", "env=A=b,env=API_TOKEN=…"),
            ("https://h/a?x=1&token=2", "https://h/a?x=1&token=…"),
            ("https://u:p@h:1/a,ftp://v:q@i/b@c:d", "https://…@h:1/a,ftp://…@i/b@c:d"),
            ("spark://CoarseGrainedScheduler@h:7", "spark://CoarseGrainedScheduler@h:7"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
