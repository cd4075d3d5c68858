//! The settings of a Kubernetes cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::kubernetes::{ClientKeyPair, Toleration};
use offermill::launch::Secret;
use offermill::resources::{Mebibytes, MilliCpus};

use crate::settings::sources::Sourced;

/// A language of tasks. Those that aren't Java's run in processes beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TaskLanguage {
    #[default]
    Java,
    Python,
    R,
}

/// The settings of a Kubernetes cluster.
#[derive(Debug, Default)]
pub(crate) struct KubernetesSettings {
    pub(crate) namespace: Option<String>,
    pub(crate) context: Option<String>,
    /// Whether executors are Spark's.
    pub(crate) runs_spark: bool,
    /// The files for executors, and their folder.
    pub(crate) files: Option<(Sourced, Vec<String>)>,
    pub(crate) files_folder: Option<String>,
    /// Whether there are no config maps.
    pub(crate) has_no_config_map: bool,
    pub(crate) config_map_bytes_max: usize,
    /// The pod in which this program runs.
    pub(crate) own_pod: Option<String>,
    /// The prefix of the names of Spark's pods.
    pub(crate) pod_prefix: Option<String>,
    /// The prefix that no other run has.
    pub(crate) own_prefix: String,
    /// In which language the tasks of Spark's executors run.
    pub(crate) language: TaskLanguage,
    /// The memory of Python, if tasks run in it.
    pub(crate) python_memory: Mebibytes,
    /// Whether Java takes memory outside its heap, and how much then.
    pub(crate) has_off_heap: bool,
    pub(crate) off_heap: Mebibytes,
    pub(crate) image: Option<(Sourced, String)>,
    pub(crate) pull_policy: Option<String>,
    pub(crate) pull_secrets: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) service_account: Option<String>,
    pub(crate) scheduler: Option<String>,
    pub(crate) priority_class: Option<String>,
    pub(crate) cpu_request: Option<MilliCpus>,
    pub(crate) cpu_limit: Option<MilliCpus>,
    pub(crate) secret_mounts: BTreeMap<String, String>,
    pub(crate) template_file: Option<(Sourced, PathBuf)>,
    pub(crate) template_container: Option<String>,
    /// What was given of volumes, by type and name: each key after that, and its value.
    pub(crate) volume_keys: BTreeMap<(String, String), BTreeMap<String, Sourced>>,
    pub(crate) termination_grace: Option<Duration>,
    pub(crate) creations_max: usize,
    pub(crate) pending_max: Option<usize>,
    pub(crate) start_timeout: Duration,
    /// The label of pods that are about to end, and its value.
    pub(crate) end_label: Option<String>,
    pub(crate) end_label_value: String,
    /// Whether pods stay that have ended.
    pub(crate) keeps_ended: bool,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) lease_duration: Duration,
    pub(crate) token: Option<(Sourced, Secret)>,
    pub(crate) token_file: Option<(Sourced, PathBuf)>,
    pub(crate) authority_file: Option<(Sourced, PathBuf)>,
    pub(crate) certificate_file: Option<(Sourced, PathBuf)>,
    pub(crate) key_file: Option<(Sourced, PathBuf)>,
}

impl KubernetesSettings {
    /// The memory that an executor takes beyond heap and overhead, as Spark adds it up for pods.
    pub(crate) fn memory_beyond_overhead(&self) -> Mebibytes {
        let off_heap = if self.has_off_heap { self.off_heap } else { Mebibytes::ZERO };
        match self.language {
            TaskLanguage::Python => off_heap + self.python_memory,
            TaskLanguage::Java | TaskLanguage::R => off_heap,
        }
    }

    /// Sets the image of executors, unless a source of higher precedence has. Of one source, the last one counts.
    pub(crate) fn set_image(&mut self, given: &Sourced) {
        let text = given.text.trim();
        if !text.is_empty() && self.image.as_ref().is_none_or(|(it, _)| it.source <= given.source) {
            self.image = Some((given.clone(), text.to_owned()));
        }
    }

    /// Whether credentials or authorities are given, in place of those of a kubeconfig.
    pub(crate) fn has_login(&self) -> bool {
        self.secret_name().is_some() || self.authority_file.is_some()
    }

    /// The name under which a credential was given.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        let token = self.token.as_ref().map(|(given, _)| given);
        let files = [&self.token_file, &self.certificate_file, &self.key_file];
        let mut given =
            token.into_iter().chain(files.into_iter().flatten().map(|(given, _)| given));
        given.next().map(|given| given.name.as_str())
    }

    /// The certificate that is shown to the server, and its key.
    ///
    /// # Errors
    /// With a sentence if only one of them is given.
    pub(crate) fn key_pair(&self) -> Result<Option<ClientKeyPair>, String> {
        let (given, missing) = match (&self.certificate_file, &self.key_file) {
            (None, None) => return Ok(None),
            (Some((_, certificate_file)), Some((_, key_file))) => {
                return Ok(Some(ClientKeyPair::new(certificate_file, key_file)));
            }
            (Some((given, _)), None) => (given, "spark.kubernetes.authenticate.clientKeyFile"),
            (None, Some((given, _))) => (given, "spark.kubernetes.authenticate.clientCertFile"),
        };
        Err(format!("{} is given alone; give {missing} too", given.name))
    }
}
