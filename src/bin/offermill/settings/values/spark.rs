//! The settings of Spark's executors.

use std::collections::BTreeMap;

use offermill::Error;
use offermill::launch::Secret;
use offermill::launch::spark::SparkExecutor;

/// The settings of Spark's executors.
#[derive(Debug, Default)]
pub(crate) struct SparkSettings {
    /// The driver's URL, if it was given as a whole.
    pub(crate) driver_url: Option<String>,
    pub(crate) driver_host: Option<String>,
    pub(crate) driver_port: Option<u16>,
    /// The application's id; `None` is the framework's id.
    pub(crate) app_id: Option<String>,
    /// The name at which executors listen; `None` is their agents' name.
    pub(crate) hostname: Option<String>,
    pub(crate) home: Option<String>,
    /// The URI of an archive with Spark.
    pub(crate) archive: Option<String>,
    pub(crate) class_path: Option<String>,
    pub(crate) library_path: Option<String>,
    pub(crate) default_java_options: Option<String>,
    pub(crate) java_options: Option<String>,
    /// Whether Java gets the module options that Spark needs from Java 17 on.
    pub(crate) opens_modules: bool,
    /// The cores of a task.
    pub(crate) task_cores: u32,
    pub(crate) user: Option<String>,
    pub(crate) authenticate: bool,
    /// The secrets that executors may need to start, by the variable that passes each on.
    pub(crate) secrets: BTreeMap<&'static str, Secret>,
}

impl SparkSettings {
    /// The driver's URL as it was given, or made of its host and port.
    ///
    /// # Errors
    /// If the host or the port can't be in a URL.
    pub(crate) fn driver_url(&self) -> Result<Option<String>, Error> {
        match (&self.driver_url, &self.driver_host, self.driver_port) {
            (Some(url), ..) => Ok(Some(url.clone())),
            (None, Some(host), Some(port)) => SparkExecutor::driver_url(host, port).map(Some),
            _ => Ok(None),
        }
    }
}
