//! What a setting is, and how `--help` shows all of them. The settings themselves are in
//! `key_table.rs`, `allocation_key_table.rs`, `spark_key_table.rs` and `mesos_key_table.rs`.

use std::time::Duration;

use offermill::Error;
use offermill::config::text::{TimeUnit, parse_duration};

use crate::settings::allocation_table::ALLOCATION_KEYS;
use crate::settings::draft::Draft;
use crate::settings::master::Kind;
use crate::settings::mesos_table::MESOS_KEYS;
use crate::settings::sources::{Layer, Sourced};
use crate::settings::spark_table::SPARK_KEYS;
use crate::settings::table::KEYS;

/// A setting.
pub(crate) struct Key {
    /// Its key. One that ends in a dot stands for all keys that begin with it.
    pub(crate) name: &'static str,
    /// Older names of the same.
    pub(crate) aliases: &'static [&'static str],
    /// The flag that sets it too.
    pub(crate) flag: Option<&'static str>,
    /// The variable of the environment that sets it too.
    pub(crate) variable: Option<&'static str>,
    /// Whether its value is shown to nobody.
    pub(crate) is_secret: bool,
    /// On which clusters it means something.
    pub(crate) scope: Scope,
    /// What the library calls it in errors, if it checks it.
    pub(crate) inside: Option<&'static str>,
    /// What a value is, for people; with the unit of a bare number.
    pub(crate) value: &'static str,
    /// What it is when it isn't given.
    pub(crate) default: Otherwise,
    /// Who knows it.
    pub(crate) origin: Origin,
    /// Reads a value.
    pub(crate) read: fn(&mut Draft, &Sourced) -> Result<(), Error>,
}

/// A setting that isn't given.
pub(crate) enum Otherwise {
    /// Is as if this had been given.
    Reads(&'static str),
    /// Is this, which follows from other settings or is nothing.
    Is(&'static str),
}

/// On which clusters a setting means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// On all.
    Everywhere,
    /// On these; on others it may be passed over.
    Only(Kind),
    /// On these; executors would not be what was asked for on others.
    Needs(Kind),
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Spark, on any cluster.
    Spark,
    /// Spark on Mesos.
    SparkOnMesos,
    /// Ours.
    Offermill,
}

/// What a row without a reader would do.
const UNREAD: fn(&mut Draft, &Sourced) -> Result<(), Error> = |_, _| Ok(());

impl Key {
    const fn new(origin: Origin, name: &'static str, value: &'static str) -> Key {
        let (aliases, default) = (&[], Otherwise::Is("none"));
        Key {
            name,
            aliases,
            flag: None,
            variable: None,
            is_secret: false,
            scope: Scope::Everywhere,
            inside: None,
            value,
            default,
            origin,
            read: UNREAD,
        }
    }

    /// A key of Spark's.
    pub(crate) const fn spark(name: &'static str, value: &'static str) -> Key {
        Key::new(Origin::Spark, name, value)
    }

    /// A key of Spark's on Mesos.
    pub(crate) const fn spark_on_mesos(name: &'static str, value: &'static str) -> Key {
        Key::new(Origin::SparkOnMesos, name, value)
    }

    /// A key of ours.
    pub(crate) const fn offermill(name: &'static str, value: &'static str) -> Key {
        Key::new(Origin::Offermill, name, value)
    }

    /// With older names.
    pub(crate) const fn formerly(mut self, aliases: &'static [&'static str]) -> Key {
        self.aliases = aliases;
        self
    }

    /// With a flag that sets it too.
    pub(crate) const fn flag(mut self, flag: &'static str) -> Key {
        self.flag = Some(flag);
        self
    }

    /// With a variable of the environment that sets it too.
    pub(crate) const fn variable(mut self, variable: &'static str) -> Key {
        self.variable = Some(variable);
        self
    }

    /// With a value that is shown to nobody.
    pub(crate) const fn secret(mut self) -> Key {
        self.is_secret = true;
        self
    }

    /// Passed over on other clusters.
    pub(crate) const fn only(mut self, kind: Kind) -> Key {
        self.scope = Scope::Only(kind);
        self
    }

    /// Refused on other clusters.
    pub(crate) const fn needs(mut self, kind: Kind) -> Key {
        self.scope = Scope::Needs(kind);
        self
    }

    /// With what the library calls it.
    pub(crate) const fn inside(mut self, name: &'static str) -> Key {
        self.inside = Some(name);
        self
    }

    /// Without it, as if this had been given.
    pub(crate) const fn default(mut self, text: &'static str) -> Key {
        self.default = Otherwise::Reads(text);
        self
    }

    /// Without it, this: in words.
    pub(crate) const fn otherwise(mut self, words: &'static str) -> Key {
        self.default = Otherwise::Is(words);
        self
    }

    /// With its reader.
    pub(crate) const fn read(mut self, read: fn(&mut Draft, &Sourced) -> Result<(), Error>) -> Key {
        self.read = read;
        self
    }

    /// Whether it stands for `name`: its own, an older one, or one that begins like it.
    pub(crate) fn stands_for(&self, name: &str) -> bool {
        match self.name.strip_suffix('.') {
            Some(_) => name.len() > self.name.len() && name.starts_with(self.name),
            None => name == self.name || self.aliases.contains(&name),
        }
    }
}

/// All settings, in the order in which they are read.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(ALLOCATION_KEYS).chain(SPARK_KEYS).chain(MESOS_KEYS)
}

impl Sourced {
    /// Reads a duration, whose bare number is in `bare_unit` unless it comes from a flag.
    pub(crate) fn duration(&self, bare_unit: TimeUnit) -> Result<Duration, Error> {
        let unit = if self.layer == Layer::Flag { TimeUnit::Seconds } else { bare_unit };
        parse_duration(&self.name, &self.text, unit)
    }
}

/// The table as `--help` shows it.
pub(crate) fn help() -> String {
    let mut text =
        "Keys of --conf and of properties files (a bare number is in the unit in brackets):\n"
            .to_owned();
    let headings = [
        (Origin::Spark, "Spark's"),
        (Origin::SparkOnMesos, "Spark's on Mesos"),
        (Origin::Offermill, "Offermill's own"),
    ];
    for (origin, heading) in headings {
        text.push_str(&format!("  {heading}:\n"));
        for key in all().filter(|key| key.origin == origin) {
            let name = if key.name.ends_with('.') {
                format!("{}NAME", key.name)
            } else {
                key.name.to_owned()
            };
            let default = match key.default {
                Otherwise::Reads("") => "none",
                Otherwise::Reads(text) | Otherwise::Is(text) => text,
            };
            let others = [key.flag, key.variable].into_iter().flatten();
            let others: String = others.map(|other| format!(", {other}")).collect();
            text.push_str(&format!(
                "    {name}{others}\n        {} [default: {default}]\n",
                key.value
            ));
        }
    }
    text.push_str(
        "Other spark.* keys, and all others in a properties file, are named once and ignored.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every default can be read, and no name stands for two settings. Method: read all into
    /// a draft.
    #[test]
    fn defaults_are_readable_and_names_unique() {
        let mut draft = Draft::default();
        for key in all() {
            if let Otherwise::Reads(text) = key.default {
                (key.read)(&mut draft, &Sourced::default_of(key.name, text)).unwrap();
            }
            for name in key.aliases.iter().chain([&key.name]) {
                assert_eq!(
                    all()
                        .filter(|other| other.name == *name || other.aliases.contains(name))
                        .count(),
                    1
                );
            }
        }
        assert!(draft.problems.is_empty());
        assert_eq!(draft.shutdown_timeout, Duration::from_secs(10));
        assert_eq!(draft.memory.get(), 1024);
    }
}
