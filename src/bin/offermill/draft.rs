//! Settings while they are read, and the complaints that come up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::local::{AgentAttributes, LocalMaster};
use offermill::config::{ExclusionRule, ExecutorCores, Placement, RefuseDurations};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Constraint, Error};

use crate::key_table::KEYS;
use crate::keys::{Key, Otherwise};
use crate::layers::{Given, Layers};

/// What the rows of the table of keys write to.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) master: Option<(String, LocalMaster)>,
    pub(crate) attributes: AgentAttributes,
    pub(crate) work_dir: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) executors: Option<u32>,
    pub(crate) core_cap: Option<MilliCpus>,
    pub(crate) executor_cores: ExecutorCores,
    pub(crate) memory: Mebibytes,
    pub(crate) overhead: Option<Mebibytes>,
    pub(crate) extra_cores: u32,
    pub(crate) gpu_cap: Gpus,
    pub(crate) port: Option<u16>,
    pub(crate) revocable: bool,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) constraint: Constraint,
    pub(crate) placement: Placement,
    pub(crate) refusals: RefuseDurations,
    pub(crate) excludes: bool,
    pub(crate) exclusion: ExclusionRule,
    pub(crate) failures_max: Option<u64>,
    pub(crate) shutdown_timeout: Duration,
    /// One sentence each.
    pub(crate) problems: Vec<String>,
    /// What was given, for naming settings as their author does.
    given: BTreeMap<String, Given>,
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
            extra_cores: 0,
            gpu_cap: Gpus::ZERO,
            port: None,
            revocable: false,
            variables: BTreeMap::new(),
            constraint: Constraint::none(),
            placement: Placement::RoundRobin,
            refusals: RefuseDurations::default(),
            excludes: true,
            exclusion: ExclusionRule::default(),
            failures_max: None,
            shutdown_timeout: Duration::ZERO,
            problems: Vec::new(),
            given: BTreeMap::new(),
        }
    }
}

impl Draft {
    /// Reads what was given, and the defaults of the rest.
    pub(crate) fn read(layers: Layers) -> Draft {
        let Layers { given, problems, .. } = layers;
        let mut draft = Draft { given, problems, ..Draft::default() };
        for key in KEYS {
            let mut given: Vec<Given> =
                draft.given.values().filter(|given| key.stands_for(&given.key)).cloned().collect();
            if let (true, Otherwise::Reads(text)) = (given.is_empty(), &key.default) {
                given.push(Given::default_of(key.name, text));
            }
            for given in &given {
                if let Err(error) = (key.read)(&mut draft, given) {
                    let sentence = sentence(key, given, &error);
                    draft.problems.push(sentence);
                }
            }
        }
        draft
    }

    /// Adds a complaint about a value that isn't `allowed`.
    pub(crate) fn refuse(&mut self, given: &Given, allowed: &str) {
        self.problems.push(format!("{} is {:?}, but must be {allowed}", given.name, given.text));
    }

    /// Adds a variable of the executors' environment.
    pub(crate) fn variable(&mut self, given: &Given) {
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
        let flag = KEYS.iter().find(|known| known.name == key).and_then(|known| known.flag);
        flag.unwrap_or(key).to_owned()
    }

    /// The setting's text as it was given, if it was.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.text.as_str())
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
        let sentence = match KEYS.iter().find(is_about) {
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
fn sentence(key: &Key, given: &Given, error: &Error) -> String {
    let text = error.to_string();
    match key.inside.and_then(|inside| text.strip_prefix(inside)) {
        Some(rest) => format!("{}{rest}", given.name),
        None if text.starts_with(&given.name) => text,
        None => format!("{}: {text}", given.name),
    }
}
