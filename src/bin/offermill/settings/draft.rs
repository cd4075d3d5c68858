//! Settings while they are read, and the complaints that come up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::local::AgentAttributes;
use offermill::config::{ExclusionRule, ExecutorCores, ExecutorGpus, Placement, RefuseDurations};
use offermill::launch::Form;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Constraint, Error};

use crate::settings::allocation::{self, AllocationSettings, ShuffleSettings};
use crate::settings::containers::ContainerSettings;
use crate::settings::master::{Kind, Master};
use crate::settings::mesos::MesosSettings;
use crate::settings::option::{self, Key, Otherwise, Scope};
use crate::settings::redact;
use crate::settings::sources::{Layer, Layers, Sourced};
use crate::settings::spark::SparkSettings;

/// What the rows of the table of keys write to.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) master: Option<(String, Master)>,
    pub(crate) attributes: AgentAttributes,
    pub(crate) work_dir: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) executors: Option<u32>,
    pub(crate) core_cap: Option<MilliCpus>,
    pub(crate) executor_cores: ExecutorCores,
    pub(crate) memory: Mebibytes,
    pub(crate) overhead: Option<Mebibytes>,
    pub(crate) overhead_factor: Option<f64>,
    pub(crate) extra_cores: u32,
    pub(crate) gpu_cap: Gpus,
    pub(crate) executor_gpus: ExecutorGpus,
    pub(crate) port: Option<u16>,
    pub(crate) revocable: bool,
    pub(crate) maintenance_lead: Duration,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) constraint: Constraint,
    pub(crate) placement: Placement,
    pub(crate) refusals: RefuseDurations,
    pub(crate) excludes: bool,
    pub(crate) exclusion: ExclusionRule,
    pub(crate) failures_max: Option<u64>,
    pub(crate) failures_window: Option<Duration>,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) form: Form,
    pub(crate) mesos: MesosSettings,
    pub(crate) container: ContainerSettings,
    pub(crate) spark: SparkSettings,
    pub(crate) allocation: AllocationSettings,
    pub(crate) shuffle: ShuffleSettings,
    pub(crate) network_timeout: Duration,
    /// How long executors are only placed where their work is.
    pub(crate) locality_wait: Duration,
    /// The share of the cores that has to have registered before work begins, and the longest that this is waited for.
    pub(crate) registered_ratio: f64,
    pub(crate) registered_wait: Duration,
    /// Whether nothing will be started.
    pub(crate) only_looks: bool,
    /// What doesn't stop anything.
    pub(crate) remarks: Vec<String>,
    /// One sentence each.
    pub(crate) problems: Vec<String>,
    /// What was given, for naming settings as their author does.
    given: BTreeMap<String, Sourced>,
    /// The keys with values that can't be had.
    unread: BTreeSet<&'static str>,
}

impl Default for Draft {
    /// Nothing is read yet: the defaults are in the table of keys.
    fn default() -> Draft {
        Draft {
            master: None,
            attributes: AgentAttributes::default(),
            work_dir: PathBuf::new(),
            name: None,
            executors: None,
            core_cap: None,
            executor_cores: ExecutorCores::WholeOffer,
            memory: Mebibytes::ZERO,
            overhead: None,
            overhead_factor: None,
            extra_cores: 0,
            gpu_cap: Gpus::ZERO,
            executor_gpus: ExecutorGpus::WhatThereIs,
            port: None,
            revocable: false,
            maintenance_lead: Duration::from_secs(600),
            variables: BTreeMap::new(),
            constraint: Constraint::none(),
            placement: Placement::RoundRobin,
            refusals: RefuseDurations::default(),
            excludes: true,
            exclusion: ExclusionRule::default(),
            failures_max: None,
            failures_window: None,
            shutdown_timeout: Duration::ZERO,
            form: Form::default(),
            mesos: MesosSettings::default(),
            container: ContainerSettings::default(),
            spark: SparkSettings::default(),
            allocation: AllocationSettings::default(),
            shuffle: ShuffleSettings::default(),
            network_timeout: Duration::from_secs(120),
            locality_wait: Duration::from_secs(3),
            registered_ratio: 0.0,
            registered_wait: Duration::from_secs(30),
            only_looks: false,
            remarks: Vec::new(),
            problems: Vec::new(),
            given: BTreeMap::new(),
            unread: BTreeSet::new(),
        }
    }
}

impl Draft {
    /// Reads what was given, and the defaults of the rest.
    pub(crate) fn read(layers: Layers) -> Draft {
        let Layers { given, problems, remarks, .. } = layers;
        let mut draft = Draft { given, problems, remarks, ..Draft::default() };
        let mut strangers = Vec::new();
        for key in option::all() {
            let mut given: Vec<Sourced> = draft.given_to(key).cloned().collect();
            if draft.is_strange(key) {
                // Variables may be there for other programs.
                given.retain(|given| given.layer > Layer::Environment);
                strangers.extend(given.iter().map(|given| (key.scope, given.name.clone())));
                continue;
            }
            if let (true, Otherwise::Reads(text)) = (given.is_empty(), &key.default) {
                given.push(Sourced::default_of(key.name, text));
            }
            let before = draft.problems.len();
            for given in &given {
                if let Err(error) = (key.read)(&mut draft, given) {
                    let sentence = sentence(key, given, &error);
                    draft.problems.push(sentence);
                }
            }
            if draft.problems.len() > before {
                draft.unread.insert(key.name);
            }
        }
        allocation::settle(&mut draft);
        draft.tell_strangers(&strangers);
        draft
    }

    /// Whether a setting means nothing on the cluster that was asked for.
    pub(crate) fn is_strange(&self, key: &Key) -> bool {
        match (key.scope, &self.master) {
            (Scope::Only(kind) | Scope::Needs(kind), Some((_, master))) => master.kind() != kind,
            _ => false,
        }
    }

    /// Names the settings that mean nothing here; complains about those that can't be done without.
    fn tell_strangers(&mut self, strangers: &[(Scope, String)]) {
        let Some((text, _)) = &self.master else { return };
        let mut passed_over: Vec<&str> = Vec::new();
        for (scope, name) in strangers {
            match scope {
                Scope::Needs(kind) => {
                    let cluster = match kind {
                        Kind::Local => "local agents",
                        Kind::Mesos => "Mesos",
                    };
                    self.problems.push(format!("{name} needs {cluster}, and --master is {text:?}"));
                }
                Scope::Only(_) | Scope::Everywhere => passed_over.push(name),
            }
        }
        if !passed_over.is_empty() {
            let names = passed_over.join(", ");
            self.remarks.push(format!("ignored, as they mean nothing on {text}: {names}"));
        }
    }

    /// Adds a complaint about a value that isn't `allowed`.
    pub(crate) fn refuse(&mut self, given: &Sourced, allowed: &str) {
        let shown = redact::without_secrets(&given.text);
        self.problems.push(format!("{} is {shown:?}, but must be {allowed}", given.name));
    }

    /// Adds a complaint about settings that don't go together, with the value of each; not if one of them can't be had
    /// anyway.
    pub(crate) fn contradict(&mut self, keys: &[&str], why: &str) {
        if !keys.iter().all(|key| self.is_read(key)) {
            return;
        }
        let stated: Vec<String> = keys.iter().map(|key| self.stated(key)).collect();
        self.problems.push(format!("{}: {why}", stated.join(", and ")));
    }

    /// Whether what was given for a key, if anything, could be had.
    pub(crate) fn is_read(&self, key: &str) -> bool {
        !self.unread.contains(key)
    }

    /// A setting with its value, as a part of a sentence.
    fn stated(&self, key: &str) -> String {
        let name = self.name_of(key);
        match (self.given.get(key), option::all().find(|known| known.name == key)) {
            (Some(given), _) if given.secret.is_some() => format!("{name} is set"),
            (Some(given), _) => {
                format!("{name} is {:?}", redact::without_secrets(&given.text))
            }
            (None, Some(Key { default: Otherwise::Reads(text) | Otherwise::Is(text), .. })) => {
                format!("{name} is {text}")
            }
            (None, None) => name,
        }
    }

    /// What an executor takes besides its memory, if it isn't what the library makes of that.
    pub(crate) fn overhead(&self) -> Option<Mebibytes> {
        /// The least that follows from a factor, in MiB.
        const LEAST: f64 = 384.0;
        let by_factor = |factor: f64| {
            // What doesn't fit ends at the largest number.
            Mebibytes::new((factor * self.memory.get() as f64).max(LEAST) as u64)
        };
        self.overhead.or(self.overhead_factor.map(by_factor))
    }

    /// Adds a variable of the executors' environment.
    pub(crate) fn variable(&mut self, given: &Sourced) {
        let name = given.key.trim_start_matches("spark.executorEnv.");
        if name.contains(['=', '\0']) || given.text.contains('\0') {
            let allowed = "a name without \"=\", and a value without a zero byte";
            let sentence = format!("{} sets {name:?}, but must be {allowed}", given.name);
            self.problems.push(sentence);
        } else {
            self.variables.insert(name.to_owned(), given.text.clone());
        }
    }

    /// The setting as whoever gave it named it; else by its flag, or its key.
    pub(crate) fn name_of(&self, key: &str) -> String {
        if let Some(given) = self.given.get(key) {
            return given.name.clone();
        }
        let flag = option::all().find(|known| known.name == key).and_then(|known| known.flag);
        flag.unwrap_or(key).to_owned()
    }

    /// The setting as it was given, if it was.
    pub(crate) fn given(&self, key: &str) -> Option<&Sourced> {
        self.given.get(key)
    }

    /// All that was given of what a row stands for.
    pub(crate) fn given_to(&self, key: &Key) -> impl Iterator<Item = &Sourced> {
        self.given.values().filter(|given| key.stands_for(&given.key))
    }

    /// The setting's text as it was given, if it was.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.text.as_str())
    }

    /// The texts of these settings, as they were given or else their defaults; neither of secrets nor of what has no
    /// text.
    pub(crate) fn texts_of(&self, names: &[&str]) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for key in option::all().filter(|key| names.contains(&key.name) && !key.is_secret) {
            let default = match key.default {
                Otherwise::Reads(text) => Some(text),
                Otherwise::Is(_) => None,
            };
            if let Some(text) = self.text_of(key.name).or(default) {
                texts.insert(key.name.to_owned(), text.to_owned());
            }
        }
        texts
    }

    /// Adds the library's complaint, with its name of the setting put into words that the author
    /// knows.
    pub(crate) fn complain(&mut self, error: &Error) {
        let text = error.to_string();
        let is_about = |key: &&Key| {
            key.inside
                .and_then(|inside| text.strip_prefix(inside))
                .is_some_and(|rest| rest.starts_with(" is "))
        };
        let sentence = match option::all().find(is_about) {
            Some(key) => {
                let rest = key.inside.and_then(|inside| text.strip_prefix(inside));
                format!("{}{}", self.name_of(key.name), rest.unwrap_or_default())
            }
            None => text,
        };
        self.problems.push(sentence);
    }
}

/// The complaint of a reader, which names the setting as its author does.
fn sentence(key: &Key, given: &Sourced, error: &Error) -> String {
    let text = error.to_string();
    let sentence = match key.inside.and_then(|inside| text.strip_prefix(inside)) {
        Some(rest) => format!("{}{rest}", given.name),
        None if text.starts_with(&given.name) => text,
        None => format!("{}: {text}", given.name),
    };
    // Constraints say nothing that agents don't.
    if key.name == "spark.mesos.constraints" {
        return sentence;
    }
    redact::about(sentence, &given.text)
}
