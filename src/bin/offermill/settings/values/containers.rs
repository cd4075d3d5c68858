//! The settings of containers, labels, URIs and secrets, and the setup of executors made of them.

use offermill::launch::{
    Container, ContainerKind, ContainerLabel, Network, PortMapping, Secret, SecretSource, Setup,
    Uri, Volume,
};

/// The settings of containers, labels, URIs and secrets.
#[derive(Debug, Default)]
pub(crate) struct ContainerSettings {
    pub(crate) containerizer: Containerizer,
    pub(crate) image: Option<String>,
    pub(crate) force_pull: bool,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) port_mappings: Vec<PortMapping>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) network: Option<String>,
    pub(crate) network_labels: Vec<ContainerLabel>,
    pub(crate) uris: Vec<Uri>,
    pub(crate) is_cached: bool,
    pub(crate) labels: Vec<ContainerLabel>,
    /// Secrets by their names in the cluster's store.
    pub(crate) secret_names: Vec<String>,
    /// Secrets by their values.
    pub(crate) secret_values: Vec<Secret>,
    /// The environment variables that hold the secrets.
    pub(crate) secret_variables: Vec<String>,
    /// The files that hold the secrets.
    pub(crate) secret_files: Vec<String>,
}

/// What runs containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Containerizer {
    /// Docker, the default as in Spark.
    #[default]
    Docker,
    /// The Mesos agent.
    Mesos,
}

impl ContainerSettings {
    /// The setup of all executors; `None` if it is the default.
    pub(crate) fn setup(&self) -> Option<Setup> {
        let mut setup = Setup::default();
        setup.uris.clone_from(&self.uris);
        setup.uris.iter_mut().for_each(|uri| uri.cache = self.is_cached);
        setup.labels.clone_from(&self.labels);
        setup.container = self.container();
        setup.secret_variables = self.secrets(&self.secret_variables);
        setup.secret_files = self.secrets(&self.secret_files);
        (setup != Setup::default()).then_some(setup)
    }

    /// Drops what Spark doesn't pass on: volumes and port mappings without an image, and port mappings of containers
    /// that the Mesos agent runs.
    pub(crate) fn drop_unused_by_spark(&mut self) {
        if self.image.is_none() {
            self.volumes.clear();
        }
        if self.image.is_none() || self.containerizer == Containerizer::Mesos {
            self.port_mappings.clear();
        }
    }

    /// Pairs the secrets with `places`.
    fn secrets(&self, places: &[String]) -> Vec<(String, SecretSource)> {
        let values = self.secret_values.iter().cloned().map(SecretSource::Value);
        let names = self.secret_names.iter().cloned().map(SecretSource::Reference);
        places.iter().cloned().zip(names.chain(values)).collect()
    }

    /// The container, if a setting requires one.
    fn container(&self) -> Option<Container> {
        let kind = match (&self.image, self.containerizer) {
            (Some(image), Containerizer::Docker) => ContainerKind::Docker {
                image: image.clone(),
                force_pull: self.force_pull,
                parameters: self.parameters.clone(),
            },
            (image, _) => {
                ContainerKind::Mesos { image: image.clone(), force_pull: self.force_pull }
            }
        };
        let mut container = Container::new(kind);
        container.volumes.clone_from(&self.volumes);
        container.port_mappings.clone_from(&self.port_mappings);
        let network = self
            .network
            .iter()
            .map(|name| Network { name: name.clone(), labels: self.network_labels.clone() });
        container.networks.extend(network);
        let is_required = self.image.is_some()
            || self.network.is_some()
            || !self.volumes.is_empty()
            || !self.port_mappings.is_empty();
        is_required.then_some(container)
    }
}
