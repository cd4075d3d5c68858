//! The options of containers, labels, URIs and secrets, which apply on Mesos only.

use offermill::Error;
use offermill::config::text::parse_bool;
use offermill::launch::{Secret, labels, parameters, port_mappings, uris, volumes};

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, non_empty};
use crate::settings::values::containers::Containerizer;

/// Containers, networks, labels, URIs and secrets.
pub(super) const CONTAINER_ROWS: &[OptionRow] = &[
    OptionRow::spark_on_mesos("spark.mesos.executor.docker.image", "image")
        .flag("--container-image")
        .derived("none")
        .needs_one_of(&[ClusterKind::Mesos, ClusterKind::Kubernetes])
        .read(|draft, given| {
            match draft.is_on(ClusterKind::Kubernetes) {
                true => draft.kubernetes.set_image(given),
                false => draft.container.image = non_empty(given),
            }
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.containerizer", "docker or mesos: what runs images")
        .default("docker")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_containerizer(draft, given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.executor.docker.forcePullImage", "true or false")
        .default("false")
        .only(ClusterKind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.container.force_pull, parse_bool)),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.docker.volumes",
        "[HOST:]CONTAINER[:rw|:ro][,...]",
    )
    .library_name("volume")
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(read_volumes),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.docker.portmaps",
        "HOST:CONTAINER[:tcp|:udp][,...]",
    )
    .library_name("port mapping")
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(read_ports),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.docker.parameters",
        "KEY=VALUE[,...] for docker run",
    )
    .library_name("container parameter")
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(read_parameters),
    OptionRow::spark_on_mesos("spark.mesos.network.name", "name")
        .derived("the agent's network")
        .needs(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.container.network = non_empty(given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.network.labels", "KEY:VALUE[,...]")
        .library_name("label")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(read_network_labels),
    OptionRow::spark_on_mesos("spark.mesos.uris", "URI[,...] to fetch into sandboxes")
        .library_name("URI")
        .derived("none")
        .needs(ClusterKind::Mesos)
        .read(read_uris),
    OptionRow::spark_on_mesos("spark.mesos.fetcherCache.enable", "true or false")
        .default("false")
        .only(ClusterKind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.container.is_cached, parse_bool)),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.secret.names",
        "NAME[,...] in the store of secrets",
    )
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(|draft, given| {
        draft.container.secret_names = list(given);
        Ok(())
    }),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.secret.values",
        "SECRET[,...], for properties files",
    )
    .secret()
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(|draft, given| {
        let secret = given.secret.as_ref();
        draft.container.secret_values = secret.map(Secret::list).unwrap_or_default();
        Ok(())
    }),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.secret.envkeys",
        "VARIABLE[,...] for the secrets",
    )
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(|draft, given| {
        read_secret_variables(draft, given);
        Ok(())
    }),
    OptionRow::spark_on_mesos(
        "spark.mesos.executor.secret.filenames",
        "PATH[,...] for the secrets",
    )
    .derived("none")
    .needs(ClusterKind::Mesos)
    .read(|draft, given| {
        draft.container.secret_files = list(given);
        Ok(())
    }),
    OptionRow::spark_on_mesos("spark.mesos.task.labels", "KEY:VALUE[,...]")
        .library_name("label")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(read_labels),
];

/// Reads a list separated by commas.
fn list(given: &Sourced) -> Vec<String> {
    let items = given.text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// Reads the names of environment variables.
fn read_secret_variables(draft: &mut SettingsDraft, given: &Sourced) {
    draft.container.secret_variables = list(given);
    if given.text.contains(['=', '\0']) {
        draft.reject(given, "names of variables without \"=\", separated by commas");
    }
}

/// Reads a containerizer.
fn read_containerizer(draft: &mut SettingsDraft, given: &Sourced) {
    match given.text.trim() {
        "docker" => draft.container.containerizer = Containerizer::Docker,
        "mesos" => draft.container.containerizer = Containerizer::Mesos,
        _ => draft.reject(given, "docker or mesos"),
    }
}

/// The items of a list that can be read. The others are left out with a remark, as in Spark.
fn readable<T>(
    draft: &mut SettingsDraft,
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
fn read_volumes(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.volumes = readable(draft, given, volumes);
    Ok(())
}

/// Reads port mappings.
fn read_ports(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.port_mappings = readable(draft, given, port_mappings);
    Ok(())
}

/// Reads options of `docker run`.
fn read_parameters(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.parameters = readable(draft, given, parameters);
    Ok(())
}

/// Reads a network's labels.
fn read_network_labels(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.network_labels = labels(&given.text)?;
    Ok(())
}

/// Reads URIs to fetch.
fn read_uris(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.uris = uris(&list(given).join(","))?;
    Ok(())
}

/// Reads the labels of tasks.
fn read_labels(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.container.labels = labels(&given.text)?;
    Ok(())
}
