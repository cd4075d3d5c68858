//! Checks of the settings of containers and secrets.

use crate::settings::draft::SettingsDraft;
use crate::settings::values::containers::{ContainerSettings, Containerizer};
use crate::text::format::count;

/// Reports settings that the chosen kind of container doesn't support.
pub(crate) fn check(draft: &mut SettingsDraft) {
    let ContainerSettings { containerizer, image, parameters, port_mappings, network, .. } =
        &draft.container;
    let is_docker = image.is_some() && *containerizer == Containerizer::Docker;
    let has_parameters = !parameters.is_empty();
    let has_ports = !port_mappings.is_empty();
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

/// Reports secrets without a place and places without a secret.
fn check_secrets(draft: &mut SettingsDraft, is_docker: bool) {
    let ContainerSettings { secret_names, secret_values, secret_variables, secret_files, .. } =
        &draft.container;
    let names = secret_names.len();
    let values = secret_values.len();
    let places = [(VARIABLES, secret_variables.len()), (FILES, secret_files.len())];
    if names > 0 && values > 0 {
        draft.report_conflict(&[NAMES, VALUES], "secrets can be given by one of them only");
        return;
    }
    let secrets = names + values;
    let from = if values > 0 { VALUES } else { NAMES };
    let plural = |number: usize, noun| count(number as u64, noun);
    for (key, number) in places {
        if number > 0 && number != secrets {
            let why = format!("{} for {}", plural(number, "place"), plural(secrets, "secret"));
            draft.report_conflict(&[key, from], &why);
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
        let why =
            "Docker containers can't have secrets, containers of the agent can: set it to mesos";
        draft.report_conflict(&[from, "spark.mesos.containerizer"], why);
    }
}
