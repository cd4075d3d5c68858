//! A row of the table of options: the description of an option and its reader.

use std::time::Duration;

use offermill::Error;
use offermill::config::text::TimeUnit;

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::option::{Applicability, DefaultValue, OptionSpec, Origin};
use crate::settings::sources::Sourced;

/// Reads the value of an option into the draft.
pub(super) type OptionReader = fn(&mut SettingsDraft, &Sourced) -> Result<(), Error>;

/// A row of the table of options.
#[derive(Debug)]
pub(super) struct OptionRow {
    pub(super) spec: OptionSpec,
    pub(super) read: OptionReader,
}

/// The reader of a row without one.
const NO_READER: OptionReader = |_, _| Ok(());

impl OptionRow {
    const fn new(origin: Origin, key: &'static str, value: &'static str) -> OptionRow {
        OptionRow { spec: OptionSpec::new(origin, key, value), read: NO_READER }
    }

    /// An option of Spark.
    pub(super) const fn spark(key: &'static str, value: &'static str) -> OptionRow {
        OptionRow::new(Origin::Spark, key, value)
    }

    /// An option of Spark on Mesos.
    pub(super) const fn spark_on_mesos(key: &'static str, value: &'static str) -> OptionRow {
        OptionRow::new(Origin::SparkOnMesos, key, value)
    }

    /// An option of Spark on Kubernetes, which clusters of other kinds ignore.
    pub(super) const fn spark_on_kubernetes(key: &'static str, value: &'static str) -> OptionRow {
        OptionRow::new(Origin::SparkOnKubernetes, key, value).only(ClusterKind::Kubernetes)
    }

    /// An option of Offermill.
    pub(super) const fn offermill(key: &'static str, value: &'static str) -> OptionRow {
        OptionRow::new(Origin::Offermill, key, value)
    }

    /// Sets its older keys.
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> OptionRow {
        self.spec.aliases = aliases;
        self
    }

    /// Sets its flag.
    pub(super) const fn flag(mut self, flag: &'static str) -> OptionRow {
        self.spec.flag = Some(flag);
        self
    }

    /// Sets its environment variable.
    pub(super) const fn variable(mut self, variable: &'static str) -> OptionRow {
        self.spec.variable = Some(variable);
        self
    }

    /// Makes its value a secret.
    pub(super) const fn secret(mut self) -> OptionRow {
        self.spec.is_secret = true;
        self
    }

    /// Makes clusters of other kinds ignore it.
    pub(super) const fn only(self, kind: ClusterKind) -> OptionRow {
        self.only_on(alone(kind))
    }

    /// Makes clusters of other kinds than these ignore it.
    pub(super) const fn only_on(mut self, kinds: &'static [ClusterKind]) -> OptionRow {
        self.spec.applicability = Applicability::Only(kinds);
        self
    }

    /// Makes it an error on clusters of other kinds.
    pub(super) const fn needs(self, kind: ClusterKind) -> OptionRow {
        self.needs_one_of(alone(kind))
    }

    /// Makes it an error on clusters of other kinds than these.
    pub(super) const fn needs_one_of(mut self, kinds: &'static [ClusterKind]) -> OptionRow {
        self.spec.applicability = Applicability::Needs(kinds);
        self
    }

    /// Sets its name in errors of the library.
    pub(super) const fn library_name(mut self, name: &'static str) -> OptionRow {
        self.spec.library_name = Some(name);
        self
    }

    /// Sets its default.
    pub(super) const fn default(mut self, text: &'static str) -> OptionRow {
        self.spec.default = DefaultValue::Text(text);
        self
    }

    /// Describes a default that follows from other settings or is none.
    pub(super) const fn derived(mut self, words: &'static str) -> OptionRow {
        self.spec.default = DefaultValue::Derived(words);
        self
    }

    /// Sets its reader.
    pub(super) const fn read(mut self, read: OptionReader) -> OptionRow {
        self.read = read;
        self
    }
}

const fn alone(kind: ClusterKind) -> &'static [ClusterKind] {
    match kind {
        ClusterKind::Local => &[ClusterKind::Local],
        ClusterKind::Mesos => &[ClusterKind::Mesos],
        ClusterKind::Kubernetes => &[ClusterKind::Kubernetes],
    }
}

/// Reads a duration that must be longer than 0.
pub(super) fn positive_duration(
    draft: &mut SettingsDraft,
    given: &Sourced,
    unit: TimeUnit,
) -> Result<Duration, Error> {
    let duration = given.duration(unit)?;
    if duration.is_zero() {
        draft.reject(given, "more than 0");
    }
    Ok(duration)
}

/// The trimmed text; `None` if it is empty.
pub(super) fn non_empty(given: &Sourced) -> Option<String> {
    Some(given.text.trim().to_owned()).filter(|text| !text.is_empty())
}
