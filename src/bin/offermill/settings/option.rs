//! The description of an option: its key, its flag, its environment variable and its default. The options themselves,
//! with their readers, are in `table/`.

use crate::settings::master::ClusterKind;

/// The description of an option.
#[derive(Debug)]
pub(crate) struct OptionSpec {
    /// Its key. One that ends in a dot stands for all keys that begin with it.
    pub(crate) key: &'static str,
    /// Its older keys.
    pub(crate) aliases: &'static [&'static str],
    /// The flag that sets it.
    pub(crate) flag: Option<&'static str>,
    /// The environment variable that sets it.
    pub(crate) variable: Option<&'static str>,
    /// Whether its value must never be shown.
    pub(crate) is_secret: bool,
    /// The clusters to which it applies.
    pub(crate) applicability: Applicability,
    /// Its name in errors of the library, if the library checks it.
    pub(crate) library_name: Option<&'static str>,
    /// What its values are, with the unit of a bare number. For `--help`.
    pub(crate) value: &'static str,
    /// The default.
    pub(crate) default: DefaultValue,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// The value of an option that isn't given.
#[derive(Debug)]
pub(crate) enum DefaultValue {
    /// The value that this text has.
    Text(&'static str),
    /// Follows from other settings, or is none; in words.
    Derived(&'static str),
}

/// The clusters to which an option applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applicability {
    /// All clusters.
    Everywhere,
    /// Clusters of these kinds; ignored on others.
    Only(&'static [ClusterKind]),
    /// Clusters of these kinds; an error on others, where executors would not be what was asked for.
    Needs(&'static [ClusterKind]),
}

/// Where an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Spark, on any cluster.
    Spark,
    /// Spark on Mesos.
    SparkOnMesos,
    /// Spark on Kubernetes.
    SparkOnKubernetes,
    /// Offermill.
    Offermill,
}

impl OptionSpec {
    /// An option without flag, variable and default.
    pub(crate) const fn new(origin: Origin, key: &'static str, value: &'static str) -> OptionSpec {
        OptionSpec {
            key,
            aliases: &[],
            flag: None,
            variable: None,
            is_secret: false,
            applicability: Applicability::Everywhere,
            library_name: None,
            value,
            default: DefaultValue::Derived("none"),
            origin,
        }
    }

    /// Whether `key` is its key, an older one of it, or begins with its key if that ends in a dot.
    pub(crate) fn matches(&self, key: &str) -> bool {
        match self.key.strip_suffix('.') {
            Some(_) => key.len() > self.key.len() && key.starts_with(self.key),
            None => key == self.key || self.aliases.contains(&key),
        }
    }
}

/// The descriptions of all options.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionSpecs(Vec<&'static OptionSpec>);

impl OptionSpecs {
    /// The descriptions in the order in which the options are read.
    pub(crate) fn new(specs: impl Iterator<Item = &'static OptionSpec>) -> OptionSpecs {
        OptionSpecs(specs.collect())
    }

    /// All descriptions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static OptionSpec> {
        self.0.iter().copied()
    }

    /// The option with this key.
    pub(crate) fn with_key(&self, key: &str) -> Option<&'static OptionSpec> {
        self.iter().find(|spec| spec.key == key)
    }

    /// The option that matches a key as it was given.
    pub(crate) fn matching(&self, key: &str) -> Option<&'static OptionSpec> {
        self.iter().find(|spec| spec.matches(key))
    }

    /// The options as `--help` lists them.
    pub(crate) fn help(&self) -> String {
        const HEADINGS: [(Origin, &str); 4] = [
            (Origin::Spark, "Spark's"),
            (Origin::SparkOnMesos, "Spark's on Mesos"),
            (Origin::SparkOnKubernetes, "Spark's on Kubernetes"),
            (Origin::Offermill, "Offermill's own"),
        ];
        let mut text = "Keys of --conf and of properties files (a bare number is in the unit in \
                        brackets):\n"
            .to_owned();
        for (origin, heading) in HEADINGS {
            text.push_str(&format!("  {heading}:\n"));
            let specs = self.iter().filter(|spec| spec.origin == origin);
            specs.for_each(|spec| text.push_str(&help_entry(spec)));
        }
        text.push_str(
            "Other spark.* keys, and all others in a properties file, are ignored with a remark.\n",
        );
        text
    }
}

/// An option as `--help` shows it.
fn help_entry(spec: &OptionSpec) -> String {
    let OptionSpec { key, value, .. } = spec;
    let name = if key.ends_with('.') { "NAME" } else { "" };
    let default = match spec.default {
        DefaultValue::Text("") => "none",
        DefaultValue::Text(text) | DefaultValue::Derived(text) => text,
    };
    let others = [spec.flag, spec.variable].into_iter().flatten();
    let others: String = others.map(|other| format!(", {other}")).collect();
    format!("    {key}{name}{others}\n        {value} [default: {default}]\n")
}
