//! Where settings are given, and which counts: a flag before `--conf` before the properties file before a variable of
//! the environment.

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use offermill::Error;
use offermill::cluster::mesos::Secret;
use offermill::config::properties::{PROPERTIES_BYTES_MAX, parse_properties};

use crate::settings::flags::RunArguments;
use crate::settings::option::{self, Key};

/// A setting's text, and where it was given.
#[derive(Clone, Debug)]
pub(crate) struct Sourced {
    /// How its author named it: the flag, or the key and where it stands.
    pub(crate) name: String,
    /// The key in full.
    pub(crate) key: String,
    /// The text. Of a secret it says nothing.
    pub(crate) text: String,
    /// The secret, if it is one.
    pub(crate) secret: Option<Secret>,
    /// Where it was given.
    pub(crate) layer: Layer,
    /// The flag, the variable or the file that gave it.
    pub(crate) place: Option<String>,
}

/// Where a setting can be given; later ones count more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    Default,
    Environment,
    File,
    Conf,
    Flag,
}

/// What stands for the text of a secret.
const UNSHOWN: &str = "…";

impl Sourced {
    /// A default, as if given.
    pub(crate) fn default_of(key: &str, text: &str) -> Sourced {
        Sourced::new(key.to_owned(), key, text, Layer::Default)
    }

    fn new(name: String, key: &str, text: &str, layer: Layer) -> Sourced {
        let (key, text) = (key.to_owned(), text.to_owned());
        Sourced { name, key, text, secret: None, layer, place: None }
    }

    /// The same with the flag, the variable or the file that gave it.
    fn at(self, place: &str) -> Sourced {
        Sourced { place: Some(place.to_owned()), ..self }
    }

    /// The value of `key`; a secret is kept where it can't be shown.
    fn of(key: &Key, name: String, full: &str, text: &str, layer: Layer) -> Sourced {
        match key.is_secret {
            false => Sourced::new(name, full, text, layer),
            true => Sourced {
                secret: Some(Secret::new(text)),
                ..Sourced::new(name, full, UNSHOWN, layer)
            },
        }
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
    pub(crate) given: BTreeMap<String, Sourced>,
    pub(crate) problems: Vec<String>,
    pub(crate) remarks: Vec<String>,
    unknown: Vec<String>,
    /// Keys that Spark knows, by why they aren't used.
    unused: BTreeMap<&'static str, Vec<String>>,
}

impl Layers {
    /// Puts the layers on top of each other.
    pub(crate) fn collect(arguments: &RunArguments) -> Layers {
        let mut layers = Layers::default();
        layers.environment();
        if let Some(path) = &arguments.properties_file {
            layers.file(path);
        }
        for setting in &arguments.conf {
            match setting.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    layers.key(key.trim(), value, Layer::Conf, "--conf");
                }
                // It may be a secret, with something else than "=" before it.
                _ if setting.to_ascii_lowercase().contains("secret") => {
                    layers.problems.push("--conf must be KEY=VALUE, and one is not".to_owned());
                }
                _ => layers.problems.push(format!("--conf is {setting:?}, but must be KEY=VALUE")),
            }
        }
        for key in option::all() {
            let Some(flag) = key.flag else { continue };
            if let Some(text) = arguments.value_of(flag) {
                let given = Sourced::of(key, flag.to_owned(), key.name, text, Layer::Flag).at(flag);
                layers.given.insert(key.name.to_owned(), given);
            }
        }
        for variable in &arguments.env {
            match variable.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    let key = format!("spark.executorEnv.{name}");
                    let given =
                        Sourced::new("--env".to_owned(), &key, value, Layer::Flag).at("--env");
                    layers.given.insert(key, given);
                }
                _ => {
                    layers.problems.push(format!("--env is {variable:?}, but must be NAME=VALUE"));
                }
            }
        }
        for (why, names) in &layers.unused {
            layers.remarks.push(format!("ignored, as {why}: {}", names.join(", ")));
        }
        if !layers.unknown.is_empty() {
            let unknown = layers.unknown.join(", ");
            layers.remarks.push(format!("ignored, as they mean nothing here: {unknown}"));
        }
        layers
    }

    /// The settings of a scenario, and nothing else: what this machine's environment says doesn't count. Whose secret
    /// it was doesn't matter there, and no file is read because a scenario says so.
    pub(crate) fn of_scenario(conf: &BTreeMap<String, String>) -> Layers {
        const DEFAULTS: [(&str, &str); 3] = [
            ("spark.master", "mesos://scenario:5050"),
            ("spark.driver.host", "localhost"),
            ("spark.driver.port", "7077"),
        ];
        let mut layers = Layers::default();
        for (key, text) in DEFAULTS {
            layers.given.insert(key.to_owned(), Sourced::default_of(key, text));
        }
        for (key, text) in conf {
            if !key.starts_with("spark.mesos.principal") && !key.starts_with("spark.mesos.secret") {
                layers.key(key, text, Layer::File, "conf");
            }
        }
        // Settings that aren't known were known to whoever wrote the scenario.
        layers.remarks.clear();
        layers
    }

    fn environment(&mut self) {
        for (key, variable) in option::all().filter_map(|key| Some((key, key.variable?))) {
            match env::var(variable) {
                Ok(text) if !text.is_empty() => {
                    let name = variable.to_owned();
                    let given = Sourced::of(key, name, key.name, &text, Layer::Environment);
                    self.given.insert(key.name.to_owned(), given.at(variable));
                }
                Ok(_) | Err(VarError::NotPresent) => {}
                Err(VarError::NotUnicode(_)) => {
                    self.problems.push(format!("{variable} must be text in UTF-8"));
                }
            }
        }
    }

    fn file(&mut self, path: &str) {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            let is_open = is_open_to_all(&file);
            file.take(PROPERTIES_BYTES_MAX as u64 + 1).read_to_string(&mut text).map(|_| is_open)
        });
        let is_open = match read {
            Ok(is_open) => is_open,
            Err(error) => {
                let allowed = format!("a file of settings that can be read ({error})");
                self.problems.push(format!("--properties-file is {path:?}, but must be {allowed}"));
                return;
            }
        };
        match parse_properties(&text) {
            Ok(properties) => {
                for (key, value) in &properties {
                    self.key(key, value, Layer::File, path);
                }
                let has_secret = |it: &Sourced| it.secret.is_some() && it.layer == Layer::File;
                if is_open && self.given.values().any(has_secret) {
                    self.remarks.push(open_to_all(path));
                }
            }
            Err(error) => self.problems.push(format!("--properties-file {path:?}: {error}")),
        }
    }

    fn key(&mut self, name: &str, text: &str, layer: Layer, place: &str) {
        let Some(key) = option::all().find(|key| key.stands_for(name)) else {
            if let Some(why) = why_unused(name) {
                let names = self.unused.entry(why).or_default();
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
                return;
            }
            let hint = nearest(name).map(|near| format!("is {near} meant?"));
            let is_stray = layer == Layer::Conf && !name.starts_with("spark.");
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
        let mut given = Sourced::of(key, format!("{name} ({place})"), full, text, layer);
        if layer == Layer::File {
            given = given.at(place);
        }
        if key.is_secret && layer == Layer::Conf {
            let instead = match key.name {
                "spark.mesos.secret" => "--secret-file",
                _ => "a properties file",
            };
            self.remarks.push(format!(
                "{name} (--conf) can be read by whoever lists this machine's processes; \
                 {instead} keeps it to yourself"
            ));
        }
        // Of two names in one place the newer one counts.
        let is_newer =
            |it: &Sourced| it.layer == layer && it.name.starts_with(&format!("{full} ("));
        if full == name || !self.given.get(full).is_some_and(is_newer) {
            self.given.insert(full.to_owned(), given);
        }
    }
}

/// What Spark knows and Offermill doesn't use, and why. A name that ends in a dot stands for all that begin with it.
const UNUSED: &[(&str, &[&str])] = &[
    (
        "they are for drivers that Spark's dispatcher starts",
        &[
            "spark.mesos.dispatcher.",
            "spark.mesos.driver.constraints",
            "spark.mesos.driver.labels",
            "spark.mesos.driver.memoryOverhead",
            "spark.mesos.driver.secret.",
            "spark.mesos.driverEnv.",
            "spark.mesos.maxDrivers",
            "spark.mesos.retainedDrivers",
            "spark.mesos.cluster.retry.wait.max",
            "spark.mesos.proxy.baseURL",
            "spark.mesos.appJar.local.resolution.mode",
        ],
    ),
    ("there is no fine-grained mode", &["spark.mesos.mesosExecutor.cores"]),
    (
        "they are for standalone clusters",
        &["spark.deploy.", "spark.worker.", "spark.dead.worker.persistence"],
    ),
    ("they are for Kubernetes", &["spark.kubernetes."]),
    ("they are for YARN", &["spark.yarn."]),
    ("they are the shuffle service's own", &["spark.shuffle.cleaner.interval"]),
    (
        "executors of excluded agents run on until they end",
        &[
            "spark.excludeOnFailure.killExcludedExecutors",
            "spark.excludeOnFailure.killExcludedExecutors.decommission",
            "spark.blacklist.killBlacklistedExecutors",
        ],
    ),
    ("executors are ended without being decommissioned before", &["spark.decommission.enabled"]),
    (
        "on Mesos it is spark.mesos.executor.memoryOverhead that counts",
        &["spark.executor.memoryOverhead"],
    ),
    ("it is --framework-id-file that keeps a framework's id", &["spark.mesos.driver.frameworkId"]),
];

/// Why a key of Spark's isn't used, if it is one of those.
fn why_unused(name: &str) -> Option<&'static str> {
    let is_it = |known: &str| match known.ends_with('.') {
        true => name.len() > known.len() && name.starts_with(known),
        false => name == known,
    };
    UNUSED.iter().find(|(_, names)| names.iter().any(|known| is_it(known))).map(|(why, _)| *why)
}

/// Whether everybody on this machine may read a file.
pub(crate) fn is_open_to_all(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

/// The remark about a file with a secret.
pub(crate) fn open_to_all(path: &str) -> String {
    format!("{path:?} has a secret in it and can be read by everybody; chmod o-r would do")
}

/// The key that `name` is at most two slips of the pen away from.
fn nearest(name: &str) -> Option<&'static str> {
    const SLIPS_MAX: usize = 2;
    let near = option::all().map(|key| (slips(name, key.name), key.name));
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
