//! Where settings are given, and which counts: a flag before `--conf` before the properties file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use offermill::Error;
use offermill::config::properties::{PROPERTIES_BYTES_MAX, parse_properties};

use crate::arguments::RunArguments;
use crate::key_table::KEYS;

/// A setting's text, and where it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// How its author named it: the flag, or the key and where it stands.
    pub(crate) name: String,
    /// The key in full.
    pub(crate) key: String,
    /// The text.
    pub(crate) text: String,
    /// Whether a flag gave it.
    pub(crate) is_flag: bool,
}

impl Given {
    /// A default, as if given.
    pub(crate) fn default_of(key: &str, text: &str) -> Given {
        Given { name: key.to_owned(), key: key.to_owned(), text: text.to_owned(), is_flag: false }
    }

    /// Reads the text with `parse` and puts it into `place`.
    pub(crate) fn read_into<T>(
        &self,
        place: &mut T,
        parse: impl FnOnce(&str, &str) -> Result<T, Error>,
    ) -> Result<(), Error> {
        *place = parse(&self.name, &self.text)?;
        Ok(())
    }
}

/// All that was given, by key, and what there is to say about it.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) given: BTreeMap<String, Given>,
    pub(crate) problems: Vec<String>,
    pub(crate) remarks: Vec<String>,
    unknown: Vec<String>,
}

impl Layers {
    /// Puts the layers on top of each other.
    pub(crate) fn collect(arguments: &RunArguments) -> Layers {
        let mut layers = Layers::default();
        if let Some(path) = &arguments.properties_file {
            layers.file(path);
        }
        for setting in &arguments.conf {
            match setting.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    layers.key(key.trim(), value, "--conf");
                }
                _ => layers.problems.push(format!("--conf is {setting:?}, but must be KEY=VALUE")),
            }
        }
        for key in KEYS {
            let Some(flag) = key.flag else { continue };
            if let Some(text) = arguments.value_of(flag) {
                let (name, text) = (flag.to_owned(), text.to_owned());
                let given = Given { name, key: key.name.to_owned(), text, is_flag: true };
                layers.given.insert(key.name.to_owned(), given);
            }
        }
        for variable in &arguments.env {
            match variable.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    let key = format!("spark.executorEnv.{name}");
                    let (name, text) = ("--env".to_owned(), value.to_owned());
                    layers.given.insert(key.clone(), Given { name, key, text, is_flag: true });
                }
                _ => {
                    layers.problems.push(format!("--env is {variable:?}, but must be NAME=VALUE"));
                }
            }
        }
        if !layers.unknown.is_empty() {
            let unknown = layers.unknown.join(", ");
            layers.remarks.push(format!("ignored, as they mean nothing here: {unknown}"));
        }
        layers
    }

    fn file(&mut self, path: &str) {
        let mut text = String::new();
        let read = File::open(path)
            .and_then(|file| file.take(PROPERTIES_BYTES_MAX as u64 + 1).read_to_string(&mut text));
        if let Err(error) = read {
            let allowed = format!("a file of settings that can be read ({error})");
            self.problems.push(format!("--properties-file is {path:?}, but must be {allowed}"));
            return;
        }
        match parse_properties(&text) {
            Ok(properties) => {
                properties.iter().for_each(|(key, value)| self.key(key, value, path));
            }
            Err(error) => self.problems.push(format!("--properties-file {path:?}: {error}")),
        }
    }

    fn key(&mut self, name: &str, text: &str, place: &str) {
        let Some(key) = KEYS.iter().find(|key| key.stands_for(name)) else {
            let hint = nearest(name).map(|near| format!("is {near} meant?"));
            let is_stray = place == "--conf" && !name.starts_with("spark.");
            if is_stray || name.starts_with("offermill.") {
                let hint = hint.unwrap_or_else(|| "see --help".to_owned());
                self.problems.push(format!("{name} ({place}) is not a setting; {hint}"));
                return;
            }
            let unknown = match hint {
                Some(hint) => format!("{name} ({hint})"),
                None => name.to_owned(),
            };
            if !self.unknown.contains(&unknown) {
                self.unknown.push(unknown);
            }
            return;
        };
        let full = if key.name.ends_with('.') { name } else { key.name };
        if full != name {
            self.remarks.push(format!("{name} is an older name of {full}"));
        }
        let named = format!("{name} ({place})");
        let given =
            Given { name: named, key: full.to_owned(), text: text.to_owned(), is_flag: false };
        self.given.insert(full.to_owned(), given);
    }
}

/// The key that `name` is at most two slips of the pen away from.
fn nearest(name: &str) -> Option<&'static str> {
    const SLIPS_MAX: usize = 2;
    let near = KEYS.iter().map(|key| (slips(name, key.name), key.name));
    near.filter(|(slips, _)| *slips <= SLIPS_MAX).min().map(|(_, key)| key)
}

/// How many letters have to be put in, left out or replaced to make `a` into `b`.
fn slips(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
