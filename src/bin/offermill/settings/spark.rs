//! What Spark's executors are started with, while it is read; and the launcher that comes of it.

use offermill::Error;
use offermill::cluster::local::LocalMaster;
use offermill::config::ExecutorCores;
use offermill::launch::spark::{Hostname, MODULE_OPTIONS, Software, SparkExecutor};

use crate::settings::draft::Draft;
use crate::settings::sources::Sourced;

/// What the rows about Spark's executors write to.
#[derive(Debug, Default)]
pub(crate) struct SparkSettings {
    /// The driver's URL, as it was given.
    pub(crate) driver_url: Option<String>,
    pub(crate) driver_host: Option<String>,
    pub(crate) driver_port: Option<u16>,
    /// The application's id; the framework's if there is none.
    pub(crate) app_id: Option<String>,
    /// The name that executors bind their ports to; their agents' if there is none.
    pub(crate) hostname: Option<String>,
    pub(crate) home: Option<String>,
    /// The archive's URI.
    pub(crate) archive: Option<String>,
    pub(crate) class_path: Option<String>,
    pub(crate) library_path: Option<String>,
    pub(crate) default_java_options: Option<String>,
    pub(crate) java_options: Option<String>,
    /// Whether Java is given the options without which Spark can't be run by a newer one.
    pub(crate) opens_modules: bool,
    /// The cores of a task.
    pub(crate) task_cores: u32,
    pub(crate) user: Option<String>,
    pub(crate) authenticate: bool,
}

/// Spark's executors as Spark itself would start them with these settings; `None` without a driver, or if it isn't said
/// where Spark is.
///
/// # Errors
/// When the library can't do with one of the settings.
pub(crate) fn spark_executor(draft: &Draft) -> Result<Option<SparkExecutor>, Error> {
    let settings = &draft.spark;
    let (Some(url), Some(software)) = (driver_url(settings)?, software(draft)) else {
        return Ok(None);
    };
    let mut executor = SparkExecutor::new(&url, software)?
        .java_options(java_options(settings, None))
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

/// The same for a run, which has to do some things that the driver saw to in Spark.
///
/// # Errors
/// When the library can't do with one of the settings.
pub(crate) fn for_run(draft: &Draft, is_local: bool) -> Result<Option<SparkExecutor>, Error> {
    let Some(mut executor) = spark_executor(draft)? else { return Ok(None) };
    let settings = &draft.spark;
    if settings.opens_modules {
        executor = executor.java_options(java_options(settings, Some(MODULE_OPTIONS)));
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

/// Whether there is a driver that executors could register with.
pub(crate) fn has_driver(draft: &Draft) -> bool {
    matches!(driver_url(&draft.spark), Ok(Some(_)) | Err(_))
}

/// A name of this machine under which the driver can reach executors: agents here have names that nobody else knows.
fn local_hostname(settings: &SparkSettings) -> String {
    const HERE: &str = "127.0.0.1";
    let url = driver_url(settings).ok().flatten().unwrap_or_default();
    let address = url.rsplit_once('@').map_or("", |(_, address)| address);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_here = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    let machine = "local".parse().map(|machine: LocalMaster| machine.hostname(0));
    match machine {
        Ok(name) if !is_here && !name.is_empty() => name,
        _ => HERE.to_owned(),
    }
}

/// The URL that was given, or the one that follows from the driver's host and port.
pub(crate) fn driver_url(settings: &SparkSettings) -> Result<Option<String>, Error> {
    match (&settings.driver_url, &settings.driver_host, settings.driver_port) {
        (Some(url), ..) => Ok(Some(url.clone())),
        (None, Some(host), Some(port)) => SparkExecutor::driver_url(host, port).map(Some),
        _ => Ok(None),
    }
}

/// Where Spark is. An archive counts more than a home, as it did for Spark.
fn software(draft: &Draft) -> Option<Software> {
    let cache = draft.container.is_cached;
    let archive = draft.spark.archive.clone();
    let archive = archive.map(|uri| Software::Archive { uri, cache });
    archive.or_else(|| draft.spark.home.clone().map(Software::Home))
}

fn java_options(settings: &SparkSettings, modules: Option<&str>) -> String {
    let own = [&settings.default_java_options, &settings.java_options];
    let own = own.into_iter().flatten().map(String::as_str);
    modules.into_iter().chain(own).collect::<Vec<&str>>().join(" ")
}

/// Complains about settings that contradict each other.
pub(crate) fn check(draft: &mut Draft) {
    let cores = u64::from(draft.spark.task_cores) * 1000;
    if let ExecutorCores::Fixed(fixed) = draft.executor_cores
        && cores > fixed.millis()
        && draft.text_of("spark.task.cpus").is_some()
    {
        let why = "no task would fit into an executor";
        draft.contradict(&["spark.task.cpus", "spark.executor.cores"], why);
    }
}

/// Reads options for Java. What has settings of its own can't be among them.
pub(crate) fn read_java_options(draft: &mut Draft, given: &Sourced) -> Option<String> {
    for (part, instead) in [
        ("-Dspark", "settings of Spark go into --conf"),
        ("-Xmx", "memory goes into spark.executor.memory"),
    ] {
        if given.text.contains(part) {
            draft.refuse(given, &format!("without {part}: {instead}"));
        }
    }
    not_empty(given)
}

/// The text, unless it is empty.
pub(crate) fn not_empty(given: &Sourced) -> Option<String> {
    Some(given.text.trim().to_owned()).filter(|text| !text.is_empty())
}
