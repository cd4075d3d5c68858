//! The sources of settings, in the order of precedence: flags, `--conf`, the properties file, environment variables.

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use offermill::Error;
use offermill::cluster::mesos::Secret;
use offermill::config::properties::{PROPERTIES_BYTES_MAX, Property, parse_properties};
use offermill::config::text::{TimeUnit, parse_duration};
use offermill::private_files::{FileAccess, open_input};

use crate::settings::file_access::report_file_access;
use crate::settings::flags::RunArguments;
use crate::settings::master::is_kubernetes;
use crate::settings::option::{OptionSpec, OptionSpecs};
use crate::settings::redact::{Redaction, may_be_secret};
use crate::settings::settings_input::{self, read_settings};
use crate::settings::startup_keys::is_startup_key;
use crate::settings::unused_keys;

/// The text of a setting, and its source.
#[derive(Clone, Debug)]
pub(crate) struct Sourced {
    /// The name for messages: the flag, or the key and its place.
    pub(crate) name: String,
    /// The whole key.
    pub(crate) key: String,
    /// The text; a placeholder if it is a secret.
    pub(crate) text: String,
    /// The secret, if the setting is one.
    pub(crate) secret: Option<Secret>,
    /// Where it was given.
    pub(crate) source: SettingSource,
    /// The flag, the variable or the file that set it.
    pub(crate) place: Option<String>,
}

/// A source of settings. Later ones take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingSource {
    Default,
    Environment,
    File,
    Conf,
    Flag,
}

/// Where a key was given: a flag, or a file and the line in it.
#[derive(Clone, Copy, Debug)]
struct SettingPlace<'a> {
    name: &'a str,
    line: Option<usize>,
}

impl fmt::Display for SettingPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.line.map_or(Ok(()), |line| write!(f, ", line {line}"))
    }
}

/// The key of the regular expression for what is hidden.
pub(crate) const REDACTION_KEY: &str = "spark.redaction.regex";
/// The shortest value of a variable with the name of a secret that is hidden wherever it occurs, in bytes.
const VARIABLE_BYTES_MIN: usize = 8;
/// The beginning of the keys of executors' environment variables.
pub(crate) const VARIABLES: &str = "spark.executorEnv.";
/// The placeholder for the text of a secret.
const HIDDEN: &str = "…";

impl Sourced {
    /// A default.
    pub(crate) fn default_of(key: &str, text: &str) -> Sourced {
        Sourced::new(key.to_owned(), key, text, SettingSource::Default)
    }

    pub(super) fn new(name: String, key: &str, text: &str, source: SettingSource) -> Sourced {
        let key = key.to_owned();
        let text = text.to_owned();
        Sourced { name, key, text, secret: None, source, place: None }
    }

    /// Sets the flag, the variable or the file.
    pub(super) fn at(self, place: &str) -> Sourced {
        Sourced { place: Some(place.to_owned()), ..self }
    }

    /// A value of the option `spec`. The text of a secret is stored only as the secret.
    fn of(
        spec: &OptionSpec,
        name: String,
        full: &str,
        text: &str,
        source: SettingSource,
    ) -> Sourced {
        match spec.is_secret {
            false => Sourced::new(name, full, text, source),
            true => Sourced {
                secret: Some(Secret::new(text)),
                ..Sourced::new(name, full, HIDDEN, source)
            },
        }
    }

    /// Whether this is an executor's environment variable whose value may be secret.
    fn is_secret_variable(&self) -> bool {
        let name = self.key.strip_prefix(VARIABLES);
        name.is_some_and(|name| may_be_secret(name, &self.text))
    }

    /// Parses the text and stores the value in `place`.
    pub(crate) fn read_into<T>(
        &self,
        place: &mut T,
        parse: impl FnOnce(&str, &str) -> Result<T, Error>,
    ) -> Result<(), Error> {
        *place = parse(&self.name, &self.text)?;
        Ok(())
    }

    /// Parses a duration. A bare number is in `bare_unit`, or in seconds if a flag was given.
    pub(crate) fn duration(&self, bare_unit: TimeUnit) -> Result<Duration, Error> {
        let unit = if self.source == SettingSource::Flag { TimeUnit::Seconds } else { bare_unit };
        parse_duration(&self.name, &self.text, unit)
    }
}

/// The given settings by key, with problems and remarks.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) given: BTreeMap<String, Sourced>,
    pub(crate) problems: Vec<String>,
    pub(crate) remarks: Vec<String>,
    /// Values of `--conf` that other values override.
    pub(crate) overridden: Vec<Sourced>,
    /// What is hidden in messages.
    pub(crate) redaction: Redaction,
    /// Whether there are no remarks on settings that are ignored.
    pub(crate) ignores_quietly: bool,
    /// The settings that Spark's executors need to start, by key.
    pub(crate) startup: BTreeMap<String, Sourced>,
    /// Whether executors are Spark's.
    starts_spark: bool,
    /// Unknown keys, each with a hint.
    unknown: Vec<String>,
    /// Keys of Spark that are ignored.
    unused: Vec<String>,
}

impl Sources {
    /// Collects the settings of a run.
    pub(crate) fn of_arguments(arguments: &RunArguments, specs: &OptionSpecs) -> Sources {
        let mut sources =
            Sources { starts_spark: arguments.command.is_empty(), ..Sources::default() };
        sources.add_environment(specs);
        if let Some(path) = &arguments.properties_file {
            match path == settings_input::STANDARD_INPUT {
                true => sources.add_input(arguments, specs),
                false => sources.add_file(path, specs),
            }
        }
        for setting in &arguments.conf {
            match setting.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    let place = SettingPlace { name: "--conf", line: None };
                    sources.add(key.trim(), value, SettingSource::Conf, place, specs);
                }
                // It may be a secret whose key is followed by something else than "=".
                _ if setting.to_ascii_lowercase().contains("secret") => {
                    sources.problems.push("--conf must be KEY=VALUE, and one is not".to_owned());
                }
                _ => {
                    let ends_key = |c: char| c == ':' || c == '=' || c.is_whitespace();
                    let key = setting.split(ends_key).next().unwrap_or_default();
                    let rest = if key.len() < setting.len() { "…" } else { "" };
                    let why = format!("--conf is \"{key}{rest}\", but must be KEY=VALUE");
                    sources.problems.push(why);
                }
            }
        }
        for spec in specs.iter() {
            let Some(flag) = spec.flag else { continue };
            if let Some(text) = arguments.value_of(flag) {
                let given = Sourced::of(spec, flag.to_owned(), spec.key, text, SettingSource::Flag)
                    .at(flag);
                sources.replace(spec.key, given);
            }
        }
        sources.add_variables(arguments);
        sources.learn_secrets();
        sources.leave_out_kubernetes();
        sources.ignores_quietly = arguments.steered;
        sources.remark_on_ignored();
        sources
    }

    /// Whether the run's cluster is one of Kubernetes.
    fn is_on_kubernetes(&self) -> bool {
        self.given.get("spark.master").is_some_and(|master| is_kubernetes(&master.text))
    }

    /// Leaves out what Spark has for Kubernetes alone, if the cluster is another: it is ignored as a whole.
    fn leave_out_kubernetes(&mut self) {
        if self.is_on_kubernetes() {
            return;
        }
        let unused = &mut self.unused;
        self.given.retain(|key, given| {
            let is_left_out = unused_keys::is_unused(key) && given.source < SettingSource::Flag;
            if is_left_out {
                unused.push(key.clone());
            }
            !is_left_out
        });
    }

    /// Adds remarks on the keys that are ignored. A parent passes on all the settings that it has.
    fn remark_on_ignored(&mut self) {
        if self.ignores_quietly {
            return;
        }
        for (why, names) in unused_keys::by_reason(&self.unused, self.is_on_kubernetes()) {
            self.remarks.push(format!("ignored, as {why}: {}", names.join(", ")));
        }
        if !self.unknown.is_empty() {
            let unknown = self.unknown.join(", ");
            self.remarks.push(format!("ignored, as they mean nothing here: {unknown}"));
        }
    }

    /// Collects the settings of a scenario. Environment variables don't count, and credentials are left out, so that
    /// a scenario can't make this program read a file.
    pub(crate) fn of_scenario(conf: &BTreeMap<String, String>, specs: &OptionSpecs) -> Sources {
        const DEFAULTS: [(&str, &str); 3] = [
            ("spark.master", "mesos://scenario:5050"),
            ("spark.driver.host", "localhost"),
            ("spark.driver.port", "7077"),
        ];
        let mut sources = Sources::default();
        for (key, text) in DEFAULTS {
            sources.given.insert(key.to_owned(), Sourced::default_of(key, text));
        }
        for (key, text) in conf {
            if !key.starts_with("spark.mesos.principal") && !key.starts_with("spark.mesos.secret") {
                let place = SettingPlace { name: "conf", line: None };
                sources.add(key, text, SettingSource::File, place, specs);
            }
        }
        // Unknown keys may be known to the scheduler that the scenario was recorded from.
        sources.remarks.clear();
        sources
    }

    /// Records what must be hidden in messages: secrets, variables with names of secrets, and the user's expression.
    fn learn_secrets(&mut self) {
        if let Some(given) = self.given.get(REDACTION_KEY) {
            // Its reader reports an invalid one.
            let _reported = self.redaction.set_expression(&given.text);
        }
        for given in self.given.values().chain(&self.overridden) {
            let secrets = given.secret.iter().flat_map(|whole| [vec![whole.clone()], whole.list()]);
            secrets.flatten().for_each(|secret| self.redaction.add_secret(secret.expose()));
            // Such a variable needn't be a secret: a short value would be hidden where it occurs by chance.
            let is_long = given.text.trim().len() >= VARIABLE_BYTES_MIN;
            if given.key.starts_with(VARIABLES) && is_long && self.redaction.hides_key(&given.key) {
                self.redaction.add_secret(&given.text);
            }
        }
    }

    fn add_environment(&mut self, specs: &OptionSpecs) {
        for (spec, variable) in specs.iter().filter_map(|spec| Some((spec, spec.variable?))) {
            match env::var(variable) {
                Ok(text) if !text.is_empty() => {
                    let name = variable.to_owned();
                    let given =
                        Sourced::of(spec, name, spec.key, &text, SettingSource::Environment);
                    self.given.insert(spec.key.to_owned(), given.at(variable));
                }
                Ok(_) | Err(VarError::NotPresent) => {}
                Err(VarError::NotUnicode(_)) => {
                    self.problems.push(format!("{variable} must be text in UTF-8"));
                }
            }
        }
    }

    fn add_file(&mut self, path: &str, specs: &OptionSpecs) {
        let mut text = String::new();
        let read = open_input(Path::new(path)).and_then(|file| {
            let file_access = FileAccess::of(&file)?;
            file.take(PROPERTIES_BYTES_MAX as u64 + 1)
                .read_to_string(&mut text)
                .map(|_| file_access)
        });
        let file_access = match read {
            Ok(file_access) => file_access,
            Err(error) => {
                let allowed = format!("a file of settings that can be read ({error})");
                self.problems.push(format!("--properties-file is {path:?}, but must be {allowed}"));
                return;
            }
        };
        self.add_properties(&text, path, specs);
        let has_secret = |it: &Sourced| {
            it.source == SettingSource::File && (it.secret.is_some() || it.is_secret_variable())
        };
        if self.given.values().any(has_secret) {
            report_file_access(file_access, path, &mut self.remarks, &mut self.problems);
        }
    }

    /// Adds the settings of a parent, which come before its commands.
    fn add_input(&mut self, arguments: &RunArguments, specs: &OptionSpecs) {
        if !arguments.steered {
            let why = "--properties-file is \"-\", standard input, which is for --steered";
            self.problems.push(why.to_owned());
            return;
        }
        match read_settings() {
            Ok(text) => self.add_properties(&text, "standard input", specs),
            Err(error) => {
                self.problems.push(format!("--properties-file - (standard input): {error}"));
            }
        }
    }

    fn add_properties(&mut self, text: &str, name: &str, specs: &OptionSpecs) {
        let properties = match parse_properties(text) {
            Ok(properties) => properties,
            Err(error) => {
                self.problems.push(format!("--properties-file {name:?}: {error}"));
                return;
            }
        };
        for Property { key, value, line, .. } in &properties {
            if key.is_empty() {
                // The value isn't shown, as it may be a secret.
                let place = format!("line {line} of {name:?}");
                self.remarks.push(format!("ignored: {place} has a value without a key"));
                continue;
            }
            let place = SettingPlace { name, line: Some(*line) };
            self.add(key, value, SettingSource::File, place, specs);
        }
    }

    /// Adds a setting by its key, which may be unknown.
    fn add(
        &mut self,
        key: &str,
        text: &str,
        source: SettingSource,
        place: SettingPlace<'_>,
        specs: &OptionSpecs,
    ) {
        let is_startup = self.starts_spark && is_startup_key(key);
        if is_startup {
            let given = Sourced::new(format!("{key} ({place})"), key, text, source);
            let is_file = source == SettingSource::File;
            let given = if is_file { given.at(place.name) } else { given };
            self.startup.insert(key.to_owned(), given);
        }
        let Some(spec) = specs.matching(key) else {
            // One that resembles an option is remarked on all the same.
            if !is_startup || nearest(key, specs).is_some() {
                self.add_unknown(key, source, place, specs);
            }
            return;
        };
        let full = if spec.key.ends_with('.') { key } else { spec.key };
        if full != key {
            self.remarks.push(format!("{key} is an older name of {full}"));
        }
        let mut given = Sourced::of(spec, format!("{key} ({place})"), full, text, source);
        if source == SettingSource::File {
            given = given.at(place.name);
        }
        let is_secret = given.secret.is_some() || given.is_secret_variable();
        if is_secret && source == SettingSource::Conf {
            let instead = match spec.key {
                "spark.mesos.secret" => "--secret-file",
                "spark.kubernetes.authenticate.oauthToken" => {
                    "spark.kubernetes.authenticate.oauthTokenFile"
                }
                VARIABLES => "--env NAME or --env-file",
                _ => "a properties file",
            };
            self.remarks.push(format!(
                "{key} (--conf) can be read by everybody who lists this machine's processes; use \
                 {instead} instead"
            ));
        }
        // If one source gives the older and the current key, the current one takes precedence.
        let is_current =
            |it: &Sourced| it.source == source && it.name.starts_with(&format!("{full} ("));
        if full == key || !self.given.get(full).is_some_and(is_current) {
            self.replace(full, given);
        } else if source == SettingSource::Conf {
            self.overridden.push(given);
        }
    }

    /// Sets the value of a key. Remembers a value of `--conf` that it overrides.
    pub(super) fn replace(&mut self, key: &str, given: Sourced) {
        let former = self.given.insert(key.to_owned(), given);
        self.overridden.extend(former.filter(|former| former.source == SettingSource::Conf));
    }

    /// Records a key that no option matches.
    fn add_unknown(
        &mut self,
        key: &str,
        source: SettingSource,
        place: SettingPlace<'_>,
        specs: &OptionSpecs,
    ) {
        if unused_keys::is_unused(key) {
            if !self.unused.iter().any(|known| known == key) {
                self.unused.push(key.to_owned());
            }
            return;
        }
        let hint = nearest(key, specs).map(|near| format!("is {near} meant?"));
        let is_mistake = source == SettingSource::Conf && !key.starts_with("spark.");
        if is_mistake || key.starts_with("offermill.") {
            let hint = hint.unwrap_or_else(|| "see --help".to_owned());
            self.problems.push(format!("{key} ({place}) is not a setting; {hint}"));
            return;
        }
        let unknown = match hint {
            Some(hint) => format!("{key} ({hint})"),
            None => key.to_owned(),
        };
        if !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
    }
}

/// The key at an edit distance of at most two from `name`.
fn nearest(name: &str, specs: &OptionSpecs) -> Option<&'static str> {
    const DISTANCE_MAX: usize = 2;
    let near = specs.iter().map(|spec| (strsim::levenshtein(name, spec.key), spec.key));
    near.filter(|(distance, _)| *distance <= DISTANCE_MAX).min().map(|(_, key)| key)
}
