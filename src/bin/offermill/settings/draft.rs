//! The draft of the settings of a run: values as they were read, with problems and remarks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::local::AgentAttributes;
use offermill::config::text::TimeUnit;
use offermill::config::{
    ExclusionRule, ExecutorCores, ExecutorGpus, Placement, QueueId, RefuseDurations,
    UnreachableRule,
};
use offermill::launch::CommandForm;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Constraint, Error};

use crate::settings::master::{ClusterKind, ClusterMaster};
use crate::settings::option::{Applicability, DefaultValue, OptionSpec, OptionSpecs};
use crate::settings::redact::Redaction;
use crate::settings::sources::{Sourced, Sources, VARIABLES};
use crate::settings::values::allocation::{AllocationSettings, ShuffleSettings};
use crate::settings::values::containers::ContainerSettings;
use crate::settings::values::http::HttpSettings;
use crate::settings::values::kubernetes::KubernetesSettings;
use crate::settings::values::mesos::MesosSettings;
use crate::settings::values::spark::SparkSettings;
use crate::tasks::run_queues::RunQueues;
use crate::text::format::shortened;

/// The draft of the settings of a run, which the readers of the options write to.
#[derive(Debug)]
pub(crate) struct SettingsDraft {
    pub(crate) master: Option<(String, ClusterMaster)>,
    pub(crate) attributes: AgentAttributes,
    pub(crate) work_dir: PathBuf,
    /// Whether executors on local agents don't inherit this program's variables.
    pub(crate) has_clean_environment: bool,
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
    /// How long an executor may be unreachable before it is replaced; `None` is for ever.
    pub(crate) unreachable_timeout: Option<Duration>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) constraint: Constraint,
    pub(crate) placement: Placement,
    /// The queues of tasks or of executors, and the memory of all of them.
    pub(crate) queues: RunQueues,
    /// The queue of executors without tasks: its name as given, and the queue once it is known.
    pub(crate) executor_queue_name: Option<String>,
    pub(crate) executor_queue: QueueId,
    pub(crate) queued_memory: Option<Mebibytes>,
    pub(crate) refusals: RefuseDurations,
    pub(crate) excludes: bool,
    pub(crate) exclusion: ExclusionRule,
    pub(crate) failures_max: Option<u64>,
    pub(crate) failures_window: Option<Duration>,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) form: CommandForm,
    pub(crate) mesos: MesosSettings,
    pub(crate) kubernetes: KubernetesSettings,
    pub(crate) container: ContainerSettings,
    pub(crate) http: HttpSettings,
    pub(crate) spark: SparkSettings,
    pub(crate) allocation: AllocationSettings,
    pub(crate) shuffle: ShuffleSettings,
    pub(crate) network_timeout: Duration,
    /// How long executors are placed only on the hosts of their data.
    pub(crate) locality_wait: Duration,
    /// Whether they are. By default with commands or dynamic allocation.
    pub(crate) follows_locality: Option<bool>,
    /// The least time between two revives, if it isn't the default.
    pub(crate) revive_interval: Option<Duration>,
    /// The least time between two offers of a local agent, if it isn't the default.
    pub(crate) offer_interval: Option<Duration>,
    /// How long the cluster may take to register the framework; `None` is for ever.
    pub(crate) registration_timeout: Option<Duration>,
    /// The ratio of the expected cores that must be registered before a framework begins its work. By default 0, on
    /// Kubernetes 0.8.
    pub(crate) registered_ratio: Option<f64>,
    /// The longest that it waits for them.
    pub(crate) registered_wait: Duration,
    /// Whether nothing will be started.
    pub(crate) is_dry_run: bool,
    /// Sentences that don't stop the run.
    pub(crate) remarks: Vec<String>,
    /// Sentences that do.
    pub(crate) problems: Vec<String>,
    /// Values of `--conf` that other values override.
    pub(crate) overridden: Vec<Sourced>,
    /// What is hidden in messages.
    pub(crate) redaction: Redaction,
    /// Whether there are no remarks on settings that are ignored.
    pub(crate) ignores_quietly: bool,
    /// The settings that Spark's executors need to start, by key.
    pub(crate) startup: BTreeMap<String, Sourced>,
    /// The given settings by key.
    given: BTreeMap<String, Sourced>,
    /// The keys of settings that could not be read.
    unread: BTreeSet<&'static str>,
    /// All options.
    specs: OptionSpecs,
}

impl Default for SettingsDraft {
    /// Before anything was read. The defaults of most options are in the table of options.
    fn default() -> SettingsDraft {
        SettingsDraft {
            master: None,
            attributes: AgentAttributes::default(),
            work_dir: PathBuf::new(),
            has_clean_environment: false,
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
            unreachable_timeout: UnreachableRule::default().release_after,
            variables: BTreeMap::new(),
            constraint: Constraint::none(),
            placement: Placement::RoundRobin,
            queues: RunQueues::default(),
            executor_queue_name: None,
            executor_queue: QueueId::DEFAULT,
            queued_memory: None,
            refusals: RefuseDurations::default(),
            excludes: true,
            exclusion: ExclusionRule::default(),
            failures_max: None,
            failures_window: None,
            shutdown_timeout: Duration::ZERO,
            form: CommandForm::default(),
            mesos: MesosSettings::default(),
            kubernetes: KubernetesSettings::default(),
            container: ContainerSettings::default(),
            http: HttpSettings::default(),
            spark: SparkSettings::default(),
            allocation: AllocationSettings::default(),
            shuffle: ShuffleSettings::default(),
            network_timeout: Duration::from_secs(120),
            locality_wait: Duration::from_secs(3),
            follows_locality: None,
            revive_interval: None,
            offer_interval: None,
            registration_timeout: None,
            registered_ratio: None,
            registered_wait: Duration::from_secs(30),
            is_dry_run: false,
            remarks: Vec::new(),
            problems: Vec::new(),
            overridden: Vec::new(),
            redaction: Redaction::default(),
            ignores_quietly: false,
            startup: BTreeMap::new(),
            given: BTreeMap::new(),
            unread: BTreeSet::new(),
            specs: OptionSpecs::default(),
        }
    }
}

impl SettingsDraft {
    /// A draft of what `sources` give, before it is read.
    pub(crate) fn new(sources: Sources, specs: OptionSpecs) -> SettingsDraft {
        let Sources {
            given,
            problems,
            remarks,
            overridden,
            redaction,
            ignores_quietly,
            startup,
            ..
        } = sources;
        let draft = SettingsDraft::default();
        SettingsDraft {
            given,
            problems,
            remarks,
            overridden,
            redaction,
            ignores_quietly,
            startup,
            specs,
            ..draft
        }
    }

    /// All options.
    pub(crate) fn specs(&self) -> &OptionSpecs {
        &self.specs
    }

    /// Whether an option does not apply to the cluster of this run.
    pub(crate) fn is_inapplicable(&self, spec: &OptionSpec) -> bool {
        match (spec.applicability, &self.master) {
            (Applicability::Only(kinds) | Applicability::Needs(kinds), Some((_, master))) => {
                !kinds.contains(&master.kind())
            }
            _ => false,
        }
    }

    /// Whether the cluster of this run is of this kind.
    pub(crate) fn is_on(&self, kind: ClusterKind) -> bool {
        self.master.as_ref().is_some_and(|(_, master)| master.kind() == kind)
    }

    /// Adds a remark about ignored settings, and a problem for each that can't be ignored.
    pub(crate) fn report_inapplicable(&mut self, inapplicable: &[(Applicability, String)]) {
        let Some((text, _)) = &self.master else { return };
        let mut ignored: Vec<&str> = Vec::new();
        for (applicability, name) in inapplicable {
            match applicability {
                Applicability::Needs(kinds) => {
                    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                    let cluster = kinds.join(" or ");
                    self.problems.push(format!("{name} needs {cluster}, and --master is {text:?}"));
                }
                Applicability::Only(_) | Applicability::Everywhere => ignored.push(name),
            }
        }
        if !ignored.is_empty() && !self.ignores_quietly {
            let names = ignored.join(", ");
            self.remarks.push(format!("ignored, as they mean nothing on {text}: {names}"));
        }
    }

    /// Reports a value that isn't `allowed`.
    pub(crate) fn reject(&mut self, given: &Sourced, allowed: &str) {
        let shown = shortened(&self.shown(given));
        self.problems.push(format!("{} is {shown:?}, but must be {allowed}", given.name));
    }

    /// Reads a value for which a word stands, too. Its error names the word.
    pub(crate) fn read_or<T>(
        &mut self,
        given: &Sourced,
        word: &str,
        value: Result<T, Error>,
    ) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                let allowed = error.invalid_setting().map(|setting| setting.allowed.to_owned());
                let allowed = allowed.unwrap_or_else(|| error.to_string());
                self.reject(given, &format!("{allowed}, or {word}"));
                None
            }
        }
    }

    /// Reads a duration, or the word that stands for none. `None` if it is neither, which is reported.
    pub(crate) fn duration_or(
        &mut self,
        given: &Sourced,
        word: &str,
        bare_unit: TimeUnit,
    ) -> Option<Option<Duration>> {
        if given.text.trim() == word {
            return Some(None);
        }
        self.read_or(given, word, given.duration(bare_unit)).map(Some)
    }

    /// Reports settings that contradict each other, with the value of each. Does nothing if one of them could not be
    /// read.
    pub(crate) fn report_conflict(&mut self, keys: &[&str], why: &str) {
        if !keys.iter().all(|key| self.is_read(key)) {
            return;
        }
        let settings: Vec<String> = keys.iter().map(|key| self.with_value(key)).collect();
        self.problems.push(format!("{}: {why}", settings.join(", and ")));
    }

    /// Reports an error of the library, with the setting's name as the user knows it.
    pub(crate) fn report_error(&mut self, error: &Error) {
        let setting = error.invalid_setting();
        let spec = setting.and_then(|setting| {
            self.specs.iter().find(|spec| spec.library_name == Some(setting.name))
        });
        let sentence = match (setting, spec) {
            (Some(setting), Some(spec)) => {
                let name = self.name_of(spec.key);
                let value = shortened(&self.redaction.value(setting.value));
                format!("{name} is {value:?}, but must be {}", setting.allowed)
            }
            _ => error.to_string(),
        };
        self.problems.push(sentence);
    }

    /// Reports a value that its reader rejected. Secrets in the value are hidden.
    pub(crate) fn report_unreadable(&mut self, spec: &OptionSpec, given: &Sourced, error: &Error) {
        // Constraints hold nothing that agents don't show to everybody.
        let is_public = spec.key == "spark.mesos.constraints";
        let shown = self.shown(given);
        let hides_secret = !is_public && shown != given.text;
        let sentence = match error.invalid_setting() {
            Some(setting) => {
                let name = match setting.name {
                    name if Some(name) == spec.library_name => given.name.clone(),
                    name if name.starts_with(&given.name) => name.to_owned(),
                    name => format!("{}: {name}", given.name),
                };
                // The library may quote only a part of the value, in which a secret's name is missing.
                let value = shortened(if hides_secret { shown.as_str() } else { setting.value });
                format!("{name} is {value:?}, but must be {}", setting.allowed)
            }
            None if hides_secret => {
                let name = &given.name;
                format!("{name} can't be read; its value isn't shown, as it may hold a secret")
            }
            None => format!("{}: {error}", given.name),
        };
        self.problems.push(sentence);
    }

    /// The text of a setting without secrets. Values of variables, and of keys that the user's expression matches, are
    /// hidden as a whole.
    fn shown(&self, given: &Sourced) -> String {
        match given.key.starts_with(VARIABLES) || self.redaction.matches(&given.key) {
            true => "…".to_owned(),
            false => self.redaction.value(&given.text),
        }
    }

    /// The remarks and the problems without known secrets.
    pub(crate) fn messages(&self) -> (Vec<String>, Vec<String>) {
        let without_secrets = |texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| self.redaction.sentence(text)).collect()
        };
        (without_secrets(&self.remarks), without_secrets(&self.problems))
    }

    /// Records that a setting could not be read.
    pub(crate) fn mark_unread(&mut self, key: &'static str) {
        self.unread.insert(key);
    }

    /// Whether a setting was read, or not given.
    pub(crate) fn is_read(&self, key: &str) -> bool {
        !self.unread.contains(key)
    }

    /// A setting's name with its value, as a part of a sentence.
    fn with_value(&self, key: &str) -> String {
        let name = self.name_of(key);
        match (self.given.get(key), self.specs.with_key(key).map(|spec| &spec.default)) {
            (Some(given), _) if given.secret.is_some() => format!("{name} is set"),
            (Some(given), _) => {
                format!("{name} is {:?}", shortened(&self.shown(given)))
            }
            (None, Some(DefaultValue::Text(text) | DefaultValue::Derived(text))) => {
                format!("{name} is {text}")
            }
            (None, None) => name,
        }
    }

    /// The memory overhead that was given, or that follows from a given factor; and what Spark adds to it for pods.
    pub(crate) fn overhead(&self) -> Option<Mebibytes> {
        /// The least overhead that follows from a factor, in MiB.
        const LEAST: f64 = 384.0;
        /// What it is if nothing is given.
        const FACTOR: f64 = 0.1;
        let by_factor = |factor: f64| {
            // The cast saturates.
            Mebibytes::new((factor * self.memory.get() as f64).max(LEAST) as u64)
        };
        let given = self.overhead.or(self.overhead_factor.map(by_factor));
        match self.kubernetes.memory_beyond_overhead() {
            Mebibytes::ZERO => given,
            more => Some(given.unwrap_or_else(|| by_factor(FACTOR)) + more),
        }
    }

    /// Adds an environment variable of the executors.
    pub(crate) fn add_variable(&mut self, given: &Sourced) {
        let name = given.key.trim_start_matches(VARIABLES);
        if name.contains(['=', '\0']) || given.text.contains('\0') {
            let allowed = "a name without \"=\", and a value without a zero byte";
            let sentence = format!("{} sets {name:?}, but must be {allowed}", given.name);
            self.problems.push(sentence);
        } else {
            self.variables.insert(name.to_owned(), given.text.clone());
        }
    }

    /// The name of a setting as it was given; else its flag, or its key.
    pub(crate) fn name_of(&self, key: &str) -> String {
        if let Some(given) = self.given.get(key) {
            return given.name.clone();
        }
        let flag = self.specs.with_key(key).and_then(|spec| spec.flag);
        flag.unwrap_or(key).to_owned()
    }

    /// The setting, if it was given.
    pub(crate) fn given(&self, key: &str) -> Option<&Sourced> {
        self.given.get(key)
    }

    /// All given settings that an option matches.
    pub(crate) fn given_for(&self, spec: &OptionSpec) -> impl Iterator<Item = &Sourced> {
        self.given.values().filter(|given| spec.matches(&given.key))
    }

    /// The text of a setting, if it was given.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.text.as_str())
    }

    /// The texts of these settings or of their defaults, except secrets and derived defaults.
    pub(crate) fn texts_of(&self, keys: &[&str]) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        let is_wanted = |spec: &&OptionSpec| keys.contains(&spec.key) && !spec.is_secret;
        for spec in self.specs.iter().filter(is_wanted) {
            let default = match spec.default {
                DefaultValue::Text(text) => Some(text),
                DefaultValue::Derived(_) => None,
            };
            if let Some(text) = self.text_of(spec.key).or(default) {
                texts.insert(spec.key.to_owned(), text.to_owned());
            }
        }
        texts
    }
}
