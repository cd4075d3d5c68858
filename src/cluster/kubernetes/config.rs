//! [`KubernetesConfig`]: where the cluster is, and what pods are made of.

use std::collections::BTreeMap;
use std::time::Duration;

use super::access::AccessNeeds;
use super::api_server::ApiServer;
use super::names::{
    POD_PREFIX_BYTES_MAX, PodNames, RUN_NAME_BYTES_MAX, is_domain, is_label_key, is_label_value,
    is_name, is_variable,
};
use super::pod_files::PodFiles;
use super::pod_placement::PodPlacement;
use super::pod_template::PodTemplate;
use super::run_owner::RunOwner;
use super::volumes::PodVolume;
use crate::config::{Config, ExecutorCores, ExecutorGpus};
use crate::constraint::Constraint;
use crate::error::Error;
use crate::resources::{Gpus, MilliCpus};

/// What becomes of pods and of the run's lease when the manager is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PodsAtEnd {
    /// They are deleted.
    #[default]
    Delete,
    /// They stay: the next run of the same name adopts the executors.
    Leave,
}

/// The settings of a [`KubernetesCluster`](super::KubernetesCluster).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KubernetesConfig {
    /// How the API server is reached.
    pub api_server: ApiServer,
    /// The namespace. `None` takes that of the context or of the own pod.
    pub namespace: Option<String>,
    /// The run's name: lower-case letters, digits and `-`, at most 24. Runs of one name in one namespace exclude each
    /// other, and one adopts the executors that another has left.
    pub name: String,
    /// The beginning of pods' names if executors' ids are plain numbers, which Spark's drivers need: a pod is named
    /// `PREFIX-exec-NUMBER`. Lower-case letters, digits and `-`, at most 47. `None` makes names of the ids.
    pub pod_prefix: Option<String>,
    /// The image of the executors' containers, unless their setup names one.
    pub image: Option<String>,
    /// When it is pulled: `Always`, `IfNotPresent` or `Never`. `None` leaves it to the server.
    pub pull_policy: Option<String>,
    /// The names of the secrets by which it is pulled.
    pub pull_secrets: Vec<String>,
    /// Labels of pods. `{{EXECUTOR_ID}}` in a value becomes the executor's id.
    pub labels: BTreeMap<String, String>,
    /// Annotations of pods. `{{EXECUTOR_ID}}` in a value becomes the executor's id.
    pub annotations: BTreeMap<String, String>,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that pods tolerate, each `KEY[=VALUE][:EFFECT]`.
    pub tolerations: Vec<Toleration>,
    /// The service account of pods. `None` takes the namespace's default.
    pub service_account: Option<String>,
    /// The scheduler. `None` takes the cluster's default.
    pub scheduler: Option<String>,
    /// The priority class. `None` takes the cluster's default.
    pub priority_class: Option<String>,
    /// The cores that a pod requests, if they aren't those of its executor.
    pub cpu_request: Option<MilliCpus>,
    /// The most cores that a pod gets. `None` sets no limit.
    pub cpu_limit: Option<MilliCpus>,
    /// Secrets of the namespace, each with the folder of the container in which its values are files.
    pub secret_mounts: BTreeMap<String, String>,
    /// Variables of the executors' environment that have the values of fields of their pods, such as `status.podIP`.
    pub field_variables: BTreeMap<String, String>,
    /// Ports of the executors' containers by name. They are only named: no port of a node is taken.
    pub ports: BTreeMap<String, u16>,
    /// Volumes that are mounted into the executors' containers.
    pub volumes: Vec<PodVolume>,
    /// Files that executors find in a folder of their containers, which `OFFERMILL_FILES` names. The rights to create
    /// config maps and to delete collections of them are needed for it.
    pub files: PodFiles,
    /// What pods have beside what these settings say.
    pub template: Option<PodTemplate>,
    /// The grace period of pods whose end others request. `None` takes the server's default.
    pub termination_grace: Option<Duration>,
    /// The maximum number of creations in flight.
    pub creations_max: usize,
    /// The maximum number of pods that were created and don't run yet.
    pub pending_max: usize,
    /// How long an image or a configuration may keep a pod from starting, and how long its creation may be repeated,
    /// until its executor is given up.
    pub start_timeout: Duration,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long the first connection may take, and the wait for the lease of a run that has ended without giving it
    /// back.
    pub connect_timeout: Duration,
    /// How long a run's lease is valid without being renewed.
    pub lease_duration: Duration,
    /// What becomes of pods when the manager is stopped.
    pub at_end: PodsAtEnd,
    /// What owns the lease of the run, and with it its pods and files.
    pub owner: RunOwner,
    /// Whether executors that a former run of this name has left are taken over. If not, the manager gives up if there
    /// are any: ids that are plain numbers are used again by each run.
    pub adopts: bool,
    /// Whether pods stay that have ended by themselves, for their logs. Once their ends were applied, they are labelled
    /// `offermill/acknowledged`, for which the right to patch pods is needed, and take no part in the run any more.
    /// They and the lease, which is their owner, stay when the manager is stopped, until a [`RunCleaner`] deletes them.
    ///
    /// [`RunCleaner`]: super::RunCleaner
    pub keeps_ended: bool,
    /// A label, with its value, that pods get before the manager ends their executors, so that others can tell those
    /// that are about to end. The right to patch pods is needed for it.
    pub end_label: Option<(String, String)>,
    /// Whether the manager asks, before the run begins, whether the address is an API server's, the namespace exists,
    /// and its user has the rights that it needs. If not, it gives up at once, and names what is missing. Up to 16
    /// requests. It asks in any case if the constraint needs the labels of nodes.
    pub checks_access: bool,
    /// Whether [`KubernetesConfig::for_kernel`] was called, without which a constraint would be ignored.
    is_for_kernel: bool,
    /// Where executors may be placed.
    pub(super) placement: PodPlacement,
    /// The GPUs and the fixed port of each executor.
    pub(super) gpus: Gpus,
    pub(super) port: Option<u16>,
}

/// A taint that pods tolerate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Toleration {
    /// The taint's key. Empty tolerates all.
    pub key: String,
    /// The taint's value. `None` tolerates each.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`. `None` tolerates each.
    pub effect: Option<String>,
}

impl Toleration {
    /// Tolerates all taints of this key.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Toleration {
        Toleration { key: key.into(), value: None, effect: None }
    }
}

impl KubernetesConfig {
    /// Creates the settings of a run with this name, to which [`KubernetesConfig::for_kernel`] must be added: the
    /// inferred API server and its namespace, 16 creations in flight, and pods that are deleted at the end.
    #[must_use]
    pub fn new(name: impl Into<String>) -> KubernetesConfig {
        KubernetesConfig {
            api_server: ApiServer::default(),
            namespace: None,
            name: name.into(),
            pod_prefix: None,
            image: None,
            pull_policy: None,
            pull_secrets: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            service_account: None,
            scheduler: None,
            priority_class: None,
            cpu_request: None,
            cpu_limit: None,
            secret_mounts: BTreeMap::new(),
            field_variables: BTreeMap::new(),
            ports: BTreeMap::new(),
            volumes: Vec::new(),
            files: PodFiles::default(),
            template: None,
            termination_grace: None,
            creations_max: 16,
            pending_max: usize::MAX,
            start_timeout: Duration::from_secs(600),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(60),
            lease_duration: Duration::from_secs(15),
            at_end: PodsAtEnd::default(),
            owner: RunOwner::Nobody,
            adopts: true,
            keeps_ended: false,
            end_label: None,
            checks_access: false,
            is_for_kernel: false,
            placement: PodPlacement::of(&Constraint::default()),
            gpus: Gpus::ZERO,
            port: None,
        }
    }

    /// Takes from a kernel's configuration what pods need: the constraint, which decides where they are placed, the
    /// number of GPUs, and the fixed port.
    ///
    /// Node affinities express names and a few values of labels. A constraint with `like`, `matches`, a comparison of
    /// numbers, or too many values is checked on the labels of all nodes instead. So the rights to list and to watch
    /// nodes are needed for it, without which the manager gives up before the run begins.
    ///
    /// # Errors
    /// If the number of cores isn't fixed: no offer says how many there are.
    pub fn for_kernel(self, config: &Config) -> Result<KubernetesConfig, Error> {
        if config.executor_cores() == ExecutorCores::WholeOffer {
            let allowed = "a number: a pod must say how many it takes";
            return Err(Error::setting("executor cores", "", allowed));
        }
        let gpus = match config.executor_gpus() {
            ExecutorGpus::Exactly(gpus) => gpus,
            _ => Gpus::ZERO,
        };
        let placement = PodPlacement::of(config.constraint());
        let port = config.fixed_port();
        Ok(KubernetesConfig { is_for_kernel: true, placement, gpus, port, ..self })
    }

    /// Sets how the API server is reached.
    #[must_use]
    pub fn with_api_server(self, api_server: ApiServer) -> KubernetesConfig {
        KubernetesConfig { api_server, ..self }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn with_namespace(self, namespace: impl Into<String>) -> KubernetesConfig {
        KubernetesConfig { namespace: Some(namespace.into()), ..self }
    }

    /// Sets the image of the executors' containers.
    #[must_use]
    pub fn with_image(self, image: impl Into<String>) -> KubernetesConfig {
        KubernetesConfig { image: Some(image.into()), ..self }
    }

    /// Sets what becomes of pods when the manager is stopped.
    #[must_use]
    pub fn with_at_end(self, at_end: PodsAtEnd) -> KubernetesConfig {
        KubernetesConfig { at_end, ..self }
    }

    /// Sets how long a run's lease is valid without being renewed.
    #[must_use]
    pub fn with_lease_duration(self, lease_duration: Duration) -> KubernetesConfig {
        KubernetesConfig { lease_duration, ..self }
    }

    /// Sets how long the first connection may take.
    #[must_use]
    pub fn with_connect_timeout(self, connect_timeout: Duration) -> KubernetesConfig {
        KubernetesConfig { connect_timeout, ..self }
    }

    /// Sets how long an image or a configuration may keep a pod from starting.
    #[must_use]
    pub fn with_start_timeout(self, start_timeout: Duration) -> KubernetesConfig {
        KubernetesConfig { start_timeout, ..self }
    }

    /// How pods are named.
    pub(super) fn pod_names(&self) -> PodNames {
        match &self.pod_prefix {
            Some(prefix) => PodNames::Numbered { prefix: prefix.clone() },
            None => PodNames::OfId,
        }
    }

    /// What a run does beside what all runs do.
    pub(super) fn more_needs(&self) -> AccessNeeds {
        AccessNeeds {
            labels_pods: self.keeps_ended || self.end_label.is_some(),
            stores_files: !self.files.is_empty(),
            reads_nodes: self.placement.reads_nodes(),
        }
    }

    /// Checks the values that don't depend on the cluster.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_connection()?;
        self.check_pods()
    }

    /// Checks the values that the connection and the lease have.
    pub(super) fn check_connection(&self) -> Result<(), Error> {
        if !is_name(&self.name) || self.name.len() > RUN_NAME_BYTES_MAX {
            let allowed =
                "1 to 24 lower-case letters, digits and '-', the latter neither first nor last";
            return Err(Error::setting("name of the run", &self.name, allowed));
        }
        if let Some(namespace) = self.namespace.as_ref().filter(|it| !is_domain(it)) {
            let allowed = "lower-case letters, digits and '-'";
            return Err(Error::setting("namespace", namespace, allowed));
        }
        self.api_server.check()?;
        for (name, value) in [
            ("request timeout", self.request_timeout),
            ("connect timeout", self.connect_timeout),
            ("start timeout", self.start_timeout),
        ] {
            if value.is_zero() || value > DURATION_MAX {
                return Err(Error::setting(
                    name,
                    format!("{value:?}"),
                    "more than 0, at most 1 year",
                ));
            }
        }
        if self.lease_duration < Duration::from_secs(3) || self.lease_duration > DURATION_MAX {
            let value = format!("{:?}", self.lease_duration);
            return Err(Error::setting("lease duration", value, "3 s to 1 year"));
        }
        if self.request_timeout.as_secs_f64() >= self.lease_duration.as_secs() as f64 {
            let value = format!("{:?}", self.request_timeout);
            let allowed = "less than the lease duration in whole seconds, as a renewal may take it";
            return Err(Error::setting("request timeout", value, allowed));
        }
        Ok(())
    }

    /// Checks the names of pods, and their labels.
    fn check_names(&self) -> Result<(), Error> {
        if let Some(prefix) = &self.pod_prefix
            && (!is_name(prefix) || prefix.len() > POD_PREFIX_BYTES_MAX)
        {
            let allowed =
                "1 to 47 lower-case letters, digits and '-', the latter neither first nor last";
            return Err(Error::setting("prefix of pods' names", prefix, allowed));
        }
        let end_label = self.end_label.iter().map(|(key, value)| (key, value));
        let labels = [
            ("label of pods", self.labels.iter().collect::<Vec<_>>()),
            ("node selector", self.node_selector.iter().collect()),
            ("label of pods that end", end_label.collect()),
        ];
        for (name, labels) in labels {
            let is_invalid = |(key, value): &(&String, &String)| {
                !is_label_key(key) || !is_label_value(&with_executor(value, "0"))
            };
            if let Some((key, value)) = labels.into_iter().find(is_invalid) {
                let allowed = "a key and a value of at most 63 letters, digits, '-', '_' and '.'";
                return Err(Error::setting(name, format!("{key}={value}"), allowed));
            }
        }
        if let Some(name) = self.field_variables.keys().find(|name| !is_variable(name)) {
            let allowed = "letters, digits, '_', '-' and '.', no digit first";
            return Err(Error::setting("name of a variable", name, allowed));
        }
        Ok(())
    }

    /// Checks the values that pods have.
    fn check_pods(&self) -> Result<(), Error> {
        self.check_names()?;
        for (secret, path) in &self.secret_mounts {
            if !is_domain(secret) || !path.starts_with('/') {
                let allowed = "the name of a secret, and an absolute path in the container";
                return Err(Error::setting("secret mount", format!("{secret}={path}"), allowed));
            }
        }
        self.files.check()?;
        self.volumes.iter().try_for_each(PodVolume::check)?;
        if let Some(key) = self.annotations.keys().find(|key| !is_label_key(key)) {
            let allowed = "a key of at most 63 letters, digits, '-', '_' and '.'";
            return Err(Error::setting("annotation", key, allowed));
        }
        if self.creations_max == 0 || self.pending_max == 0 {
            let zero = if self.creations_max == 0 { "creations in flight" } else { "pending pods" };
            return Err(Error::setting(zero, 0, "at least 1"));
        }
        if !self.is_for_kernel {
            let allowed = "given by KubernetesConfig::for_kernel: its constraint says where pods may be placed";
            return Err(Error::setting("configuration of the kernel", "", allowed));
        }
        if self.placement.is_nowhere() {
            let allowed = "one that a node can meet: its names or values can't be labels";
            return Err(Error::setting("constraint", "", allowed));
        }
        Ok(())
    }
}

/// A value with the executor's id in place of its placeholder.
pub(super) fn with_executor(value: &str, executor: &str) -> String {
    value.replace("{{EXECUTOR_ID}}", executor)
}

/// The longest time that a setting may name.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
