//! What executors run in and start with, while it is read; and the setup that comes of it.

use offermill::Error;
use offermill::launch::{
    Container, ContainerKind, Label, Network, PortMapping, Secret, SecretSource, Setup, Uri,
    Volume, labels, parameters, port_mappings, uris, volumes,
};

use crate::settings::draft::Draft;
use crate::settings::sources::Sourced;

/// What the rows about containers write to.
#[derive(Debug, Default)]
pub(crate) struct ContainerSettings {
    pub(crate) made_by: MadeBy,
    pub(crate) image: Option<String>,
    pub(crate) force_pull: bool,
    volumes: Vec<Volume>,
    port_mappings: Vec<PortMapping>,
    parameters: Vec<(String, String)>,
    pub(crate) network: Option<String>,
    network_labels: Vec<Label>,
    uris: Vec<Uri>,
    pub(crate) is_cached: bool,
    labels: Vec<Label>,
    /// The names that the cluster's store of secrets has for some.
    pub(crate) secret_names: Vec<String>,
    /// Others as they are.
    pub(crate) secret_values: Vec<Secret>,
    /// The variables that the secrets become.
    pub(crate) secret_variables: Vec<String>,
    /// The files that they become.
    pub(crate) secret_files: Vec<String>,
}

/// Who makes containers of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MadeBy {
    /// Docker, as on Spark.
    #[default]
    Docker,
    /// The Mesos agent.
    Mesos,
}

impl ContainerSettings {
    /// What all executors are started with; `None` if that is nothing special.
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

    /// Without an image there are neither volumes nor ports, on Spark.
    pub(crate) fn leave_images_what_is_theirs(&mut self) {
        if self.image.is_none() {
            self.volumes.clear();
            self.port_mappings.clear();
        }
    }

    /// The secrets, each for one of `places`.
    fn secrets(&self, places: &[String]) -> Vec<(String, SecretSource)> {
        let values = self.secret_values.iter().cloned().map(SecretSource::Value);
        let names = self.secret_names.iter().cloned().map(SecretSource::Reference);
        places.iter().cloned().zip(names.chain(values)).collect()
    }

    /// A container, if anything asks for one.
    fn container(&self) -> Option<Container> {
        let kind = match (&self.image, self.made_by) {
            (Some(image), MadeBy::Docker) => ContainerKind::Docker {
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
        let network = self.network.iter().map(|name| {
            let (name, labels) = (name.clone(), self.network_labels.clone());
            Network { name, labels }
        });
        container.networks.extend(network);
        let asks = self.image.is_some()
            || self.network.is_some()
            || !self.volumes.is_empty()
            || !self.port_mappings.is_empty();
        asks.then_some(container)
    }
}

/// Complains about what the container that comes of it can't have.
pub(crate) fn check(draft: &mut Draft) {
    let ContainerSettings { made_by, image, parameters, port_mappings, network, .. } =
        &draft.container;
    let is_docker = image.is_some() && *made_by == MadeBy::Docker;
    let (has_parameters, has_ports) = (!parameters.is_empty(), !port_mappings.is_empty());
    let has_network = network.is_some();
    check_secrets(draft, is_docker);
    if !is_docker && !has_network && has_ports {
        let name = draft.name_of("spark.mesos.executor.docker.portmaps");
        draft.problems.push(format!(
            "{name} need a network of their own; give --container-image, with \
             spark.mesos.containerizer docker, or spark.mesos.network.name"
        ));
    }
    if !is_docker && has_parameters {
        let name = draft.name_of("spark.mesos.executor.docker.parameters");
        draft.problems.push(format!(
            "{name} are for docker run; give --container-image, with spark.mesos.containerizer docker"
        ));
    }
}

const NAMES: &str = "spark.mesos.executor.secret.names";
const VALUES: &str = "spark.mesos.executor.secret.values";
const VARIABLES: &str = "spark.mesos.executor.secret.envkeys";
const FILES: &str = "spark.mesos.executor.secret.filenames";

/// Complains about secrets that there is no place for, and places without secrets.
fn check_secrets(draft: &mut Draft, is_docker: bool) {
    let ContainerSettings { secret_names, secret_values, secret_variables, secret_files, .. } =
        &draft.container;
    let (names, values) = (secret_names.len(), secret_values.len());
    let places = [(VARIABLES, secret_variables.len()), (FILES, secret_files.len())];
    if names > 0 && values > 0 {
        draft.contradict(&[NAMES, VALUES], "secrets are given by one of them");
        return;
    }
    let secrets = names + values;
    let from = if values > 0 { VALUES } else { NAMES };
    for (key, count) in places {
        if count > 0 && count != secrets {
            let why = format!("the first are {count}, and the secrets {secrets}");
            draft.contradict(&[key, from], &why);
        }
    }
    if secrets == 0 {
        return;
    }
    if places.iter().all(|(_, count)| *count == 0) {
        let name = draft.name_of(from);
        draft
            .problems
            .push(format!("{name} must come with {VARIABLES} or {FILES}, where the secrets go"));
    }
    if is_docker {
        let why = "Docker's containers can't have secrets, those of the agent can: with mesos";
        draft.contradict(&[from, "spark.mesos.containerizer"], why);
    }
}

/// Reads a list with commas between.
pub(crate) fn list(given: &Sourced) -> Vec<String> {
    let items = given.text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// Reads the names of variables.
pub(crate) fn read_secret_variables(draft: &mut Draft, given: &Sourced) {
    draft.container.secret_variables = list(given);
    if given.text.contains(['=', '\0']) {
        draft.refuse(given, "names of variables without \"=\", with commas between");
    }
}

/// Reads who makes containers.
pub(crate) fn containerizer(draft: &mut Draft, given: &Sourced) {
    match given.text.trim() {
        "docker" => draft.container.made_by = MadeBy::Docker,
        "mesos" => draft.container.made_by = MadeBy::Mesos,
        _ => draft.refuse(given, "docker or mesos"),
    }
}

/// The items of a list that can be read. The others are left out, as on Spark, and told.
fn readable<T>(
    draft: &mut Draft,
    given: &Sourced,
    read: fn(&str) -> Result<Vec<T>, Error>,
) -> Vec<T> {
    let mut all = Vec::new();
    for item in list(given) {
        match read(&item) {
            Ok(items) => all.extend(items),
            Err(error) => draft.remarks.push(format!("{}: {error}; it is left out", given.name)),
        }
    }
    all
}

/// Reads volumes.
pub(crate) fn read_volumes(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.volumes = readable(draft, given, volumes);
    Ok(())
}

/// Reads port mappings.
pub(crate) fn read_ports(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.port_mappings = readable(draft, given, port_mappings);
    Ok(())
}

/// Reads options of `docker run`.
pub(crate) fn read_parameters(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.parameters = readable(draft, given, parameters);
    Ok(())
}

/// Reads a network's labels.
pub(crate) fn read_network_labels(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.network_labels = labels(&given.text)?;
    Ok(())
}

/// Reads what is to be fetched.
pub(crate) fn read_uris(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.uris = uris(&list(given).join(","))?;
    Ok(())
}

/// Reads the labels of executors' tasks.
pub(crate) fn read_labels(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    draft.container.labels = labels(&given.text)?;
    Ok(())
}
