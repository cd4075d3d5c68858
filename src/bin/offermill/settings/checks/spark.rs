//! Checks of the settings of Spark's executors, and the launcher made of them.

use std::path::absolute;

use offermill::Error;
use offermill::cluster::local::LocalMaster;
use offermill::config::ExecutorCores;
use offermill::launch::spark::{Hostname, MODULE_OPTIONS, Software, SparkExecutor};

use crate::settings::checks::startup;
use crate::settings::draft::SettingsDraft;
use crate::settings::master::{ClusterKind, ClusterMaster};
use crate::settings::values::log_links::LogLinks;
use crate::settings::values::spark::SparkSettings;

/// The launcher of Spark's executors, with the command that Spark itself would use. `None` without a driver, or without
/// a home or an archive of Spark.
///
/// # Errors
/// If the library rejects one of the settings.
pub(crate) fn spark_executor(draft: &SettingsDraft) -> Result<Option<SparkExecutor>, Error> {
    let settings = &draft.spark;
    let (Some(url), Some(software)) = (settings.driver_url()?, software(draft)) else {
        return Ok(None);
    };
    let mut executor = SparkExecutor::new(&url, software)?
        .java_options(java_options(settings))
        .task_cores(settings.task_cores)
        .setup(draft.container.setup().unwrap_or_default())
        .form(draft.form);
    if let Some(id) = &settings.app_id {
        executor = executor.app_id(id);
    }
    if let Some(path) = &settings.class_path {
        executor = executor.class_path(path);
    }
    if let Some(path) = &settings.library_path {
        executor = executor.library_path(path);
    }
    if let Some(user) = &settings.user {
        executor = executor.user(user);
    }
    for (name, value) in &draft.variables {
        executor = executor.variable(name, value);
    }
    let hostname = match &settings.hostname {
        Some(name) => Hostname::Fixed(name.clone()),
        None if draft.container.network.is_some() => Hostname::Own,
        None => Hostname::OfAgent,
    };
    Ok(Some(executor.hostname(hostname)))
}

/// The launcher of Spark's executors for a run, which adds what Spark's driver adds: module options of Java, a name to
/// listen at on local agents, and the user.
///
/// # Errors
/// If the library rejects one of the settings.
pub(crate) fn for_run(
    draft: &SettingsDraft,
    is_local: bool,
) -> Result<Option<SparkExecutor>, Error> {
    let Some(mut executor) = spark_executor(draft)? else { return Ok(None) };
    let settings = &draft.spark;
    let modules = settings.opens_modules.then(|| MODULE_OPTIONS.to_owned());
    let own = Some(java_options(settings)).filter(|own| !own.is_empty());
    let options = startup::java_options(draft).into_iter().chain(modules).chain(own);
    executor = executor.java_options(options.collect::<Vec<String>>().join(" "));
    for (name, secret) in startup::secrets(draft) {
        executor = executor.secret_variable(name, secret.clone());
    }
    if settings.hostname.is_none() && is_local {
        executor = executor.hostname(Hostname::Fixed(local_hostname(settings)));
    }
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    Ok(Some(match (&settings.user, user) {
        (None, Some(user)) => executor.user(user),
        _ => executor,
    }))
}

/// Whether a driver was given that executors could register with.
pub(crate) fn has_driver(draft: &SettingsDraft) -> bool {
    matches!(draft.spark.driver_url(), Ok(Some(_)) | Err(_))
}

/// The name or address of executors on local agents.
pub(crate) fn local_address(draft: &SettingsDraft) -> String {
    match &draft.spark.hostname {
        Some(name) if has_driver(draft) => name.clone(),
        _ => local_hostname(&draft.spark),
    }
}

/// The host name of this machine; empty if it has none.
pub(crate) fn machine_name() -> String {
    "local".parse().map_or(String::new(), |machine: LocalMaster| machine.hostname(0))
}

/// A name of this machine at which the driver can reach executors. The names of local agents can't be resolved.
fn local_hostname(settings: &SparkSettings) -> String {
    const HERE: &str = "127.0.0.1";
    let url = settings.driver_url().ok().flatten().unwrap_or_default();
    let address = url.rsplit_once('@').map_or("", |(_, address)| address);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_here =
        host.is_empty() || host == "localhost" || host == "[::1]" || host.starts_with("127.");
    let machine = machine_name();
    if is_here || machine.is_empty() { HERE.to_owned() } else { machine }
}

/// Where Spark is: on Kubernetes in the image. An archive takes precedence over a home, as in Spark.
fn software(draft: &SettingsDraft) -> Option<Software> {
    if draft.is_on(ClusterKind::Kubernetes) {
        return Some(Software::Image);
    }
    let cache = draft.container.is_cached;
    let archive = draft.spark.archive.clone();
    let archive = archive.map(|uri| Software::Archive { uri, cache });
    archive.or_else(|| draft.spark.home.clone().map(Software::Home))
}

/// The options of Java of all executors.
pub(crate) fn java_options(settings: &SparkSettings) -> String {
    let own = [&settings.default_java_options, &settings.java_options];
    own.into_iter().flatten().map(String::as_str).collect::<Vec<&str>>().join(" ")
}

/// Where executors' logs can be read, if that has an address.
pub(crate) fn log_links(draft: &SettingsDraft) -> Option<LogLinks> {
    match &draft.master {
        Some((_, ClusterMaster::Mesos(masters))) => {
            let scheme = if masters.tls() { "https" } else { "http" };
            Some(LogLinks::OnAgents { scheme, port: draft.mesos.agent_port })
        }
        // Logs of pods have no links.
        Some((_, ClusterMaster::Kubernetes(_))) => None,
        _ => {
            let folder = draft.work_dir.join("sandboxes");
            Some(LogLinks::Here(absolute(&folder).unwrap_or(folder)))
        }
    }
}

/// Reports settings that contradict each other.
pub(crate) fn check(draft: &mut SettingsDraft) {
    let cores = u64::from(draft.spark.task_cores) * 1000;
    if let ExecutorCores::Fixed(fixed) = draft.executor_cores
        && cores > fixed.millis()
        && draft.text_of("spark.task.cpus").is_some()
    {
        let why = "no task would fit into an executor";
        draft.report_conflict(&["spark.task.cpus", "spark.executor.cores"], why);
    }
}
