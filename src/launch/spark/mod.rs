//! Spark's executors, as Spark's own backend for Mesos started them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::template::fill;
use super::{Command, Facts, Form, Launcher, Prelude, Setup, Uri};
use crate::error::Error;

/// The program that an executor is, for Spark's launcher script.
const BACKEND: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
/// The name under which executors find a driver.
const ENDPOINT: &str = "CoarseGrainedScheduler";

/// The options without which newer Javas than 11 can't run Spark. Older ones pass them over. Spark's driver puts them
/// before others by itself; executors that are started without one need them as well.
pub const MODULE_OPTIONS: &str = "-XX:+IgnoreUnrecognizedVMOptions \
    --add-opens=java.base/java.lang=ALL-UNNAMED \
    --add-opens=java.base/java.lang.invoke=ALL-UNNAMED \
    --add-opens=java.base/java.lang.reflect=ALL-UNNAMED \
    --add-opens=java.base/java.io=ALL-UNNAMED \
    --add-opens=java.base/java.net=ALL-UNNAMED \
    --add-opens=java.base/java.nio=ALL-UNNAMED \
    --add-opens=java.base/java.util=ALL-UNNAMED \
    --add-opens=java.base/java.util.concurrent=ALL-UNNAMED \
    --add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.cs=ALL-UNNAMED \
    --add-opens=java.base/sun.security.action=ALL-UNNAMED \
    --add-opens=java.base/sun.util.calendar=ALL-UNNAMED \
    --add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED";

/// Starts executors of Spark, which register with a driver and take tasks from it.
///
/// The command is the one of Spark 3.5's backend for Mesos, with the same arguments in the same order, and the same
/// variables. It is a list of arguments where Spark had a line for a shell; a shell is only taken where Spark has to be
/// unpacked on the agent first, or a library path is put before the agent's own. No value is read as a part of its
/// language.
///
/// Drivers take only whole numbers as ids of executors: [`IdScheme::plain`](crate::IdScheme::plain).
#[derive(Clone, Debug)]
pub struct SparkExecutor {
    driver_url: String,
    program: String,
    prelude: Prelude,
    archive: Option<Uri>,
    setup: Option<Arc<Setup>>,
    app_id: Option<String>,
    java_options: String,
    class_path: Option<String>,
    task_cores: u32,
    user: Option<String>,
    variables: Vec<(String, String)>,
    hostname: Hostname,
    form: Form,
}

/// Where agents have Spark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Software {
    /// In this folder.
    Home(String),
    /// In an archive to fetch.
    Archive {
        /// Where it is.
        uri: String,
        /// Whether agents keep it for others.
        cache: bool,
    },
}

/// The name that an executor gives others to find it, and that it binds its port to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hostname {
    /// Its agent's.
    #[default]
    OfAgent,
    /// This one.
    Fixed(String),
    /// Whatever it finds itself, as in a container on a network of its own.
    Own,
}

impl SparkExecutor {
    /// Executors of the driver at `driver_url`, such as `spark://CoarseGrainedScheduler@driver.example:7078`. Where
    /// they are started is their host name; they are told the framework's id as the application's.
    ///
    /// # Errors
    /// When the URL isn't such a one, the home is empty, or the archive's URI names no file or has white space in it.
    pub fn new(driver_url: &str, software: Software) -> Result<SparkExecutor, Error> {
        check_driver_url(driver_url)?;
        let (program, folder, archive) = match software {
            Software::Home(home) => (script_in(&home)?, None, None),
            Software::Archive { uri, cache } => {
                let folder = folder_of(&uri)?.into();
                ("./bin/spark-class".to_owned(), Some(folder), Some(Uri { cache, ..Uri::new(uri) }))
            }
        };
        Ok(SparkExecutor {
            driver_url: driver_url.to_owned(),
            program,
            prelude: Prelude { folder, library_path: None },
            archive,
            setup: None,
            app_id: None,
            java_options: String::new(),
            class_path: None,
            task_cores: 1,
            user: None,
            variables: Vec::new(),
            hostname: Hostname::default(),
            form: Form::default(),
        }
        .setup(Setup::default()))
    }

    /// The URL of the driver that listens at this host and port.
    ///
    /// # Errors
    /// When the host can't be one.
    pub fn driver_url(host: &str, port: u16) -> Result<String, Error> {
        let url = format!("spark://{ENDPOINT}@{host}:{port}");
        check_driver_url(&url).map(|()| url)
    }

    /// With this id of the application in place of the framework's.
    #[must_use]
    pub fn app_id(mut self, id: impl Into<String>) -> Self {
        self.app_id = Some(id.into());
        self
    }

    /// With options for the executors' Java, in which `{{APP_ID}}` and `{{EXECUTOR_ID}}` are filled in.
    #[must_use]
    pub fn java_options(mut self, options: impl Into<String>) -> Self {
        self.java_options = options.into();
        self
    }

    /// With this class path before Spark's own.
    #[must_use]
    pub fn class_path(mut self, path: impl Into<String>) -> Self {
        self.class_path = Some(path.into());
        self
    }

    /// With this path of libraries before the agent's own. A shell starts the executors then.
    #[must_use]
    pub fn library_path(mut self, path: impl Into<String>) -> Self {
        self.prelude.library_path = Some(Arc::from(path.into()));
        self
    }

    /// With so many cores for a task: so many threads may libraries take that count cores themselves. One without this.
    #[must_use]
    pub fn task_cores(mut self, cores: u32) -> Self {
        self.task_cores = cores;
        self
    }

    /// With this user for Spark, who needn't be the one that executors run as.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// With a variable. It counts more than what Spark itself sets, but for the user.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// With these host names.
    #[must_use]
    pub fn hostname(mut self, hostname: Hostname) -> Self {
        self.hostname = hostname;
        self
    }

    /// With the command in this form where both are possible.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// With what executors share. Spark's archive is fetched before all else.
    #[must_use]
    pub fn setup(mut self, mut setup: Setup) -> Self {
        if let Some(archive) = &self.archive {
            setup.uris.insert(0, archive.clone());
        }
        self.setup = (setup != Setup::default()).then(|| Arc::new(setup));
        self
    }

    /// The variables, each once.
    fn environment(&self, facts: &Facts<'_>, app_id: &str) -> Vec<(String, String)> {
        let known = [("APP_ID", app_id), ("EXECUTOR_ID", facts.executor)];
        let mut environment: Vec<(String, String)> = vec![
            ("SPARK_EXECUTOR_OPTS".into(), fill(&self.java_options, &known)),
            ("SPARK_EXECUTOR_MEMORY".into(), format!("{}m", facts.memory.get())),
            ("OMP_NUM_THREADS".into(), self.task_cores.to_string()),
        ];
        if let Some(path) = &self.class_path {
            environment.push(("SPARK_EXECUTOR_CLASSPATH".into(), path.clone()));
        }
        let user = self.user.iter().map(|user| ("SPARK_USER".to_owned(), user.clone()));
        for (name, value) in self.variables.iter().cloned().chain(user) {
            match environment.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => environment.push((name, value)),
            }
        }
        environment
    }
}

impl Launcher for SparkExecutor {
    fn command(&self, facts: &Facts<'_>) -> Command {
        let app_id = self.app_id.as_deref().unwrap_or(facts.app);
        // Drivers count whole cores, and an executor with none would get no task.
        let cores = (facts.cores.millis() / 1000).max(1).to_string();
        let mut argv = vec![self.program.clone(), BACKEND.to_owned()];
        let hostname = match &self.hostname {
            Hostname::OfAgent => Some(facts.hostname),
            Hostname::Fixed(name) => Some(name.as_str()),
            Hostname::Own => None,
        };
        let arguments = [
            ("--driver-url", Some(self.driver_url.as_str())),
            ("--executor-id", Some(facts.executor)),
            ("--cores", Some(&cores)),
            ("--app-id", Some(app_id)),
            ("--hostname", hostname),
        ];
        for (name, value) in arguments {
            if let Some(value) = value {
                argv.extend([name.to_owned(), value.to_owned()]);
            }
        }
        let prelude = self.prelude.clone();
        let form = if prelude == Prelude::default() { self.form } else { Form::Shell };
        let environment = self.environment(facts, app_id);
        Command { argv, environment, form, setup: self.setup.clone(), prelude }
    }
}

fn check_driver_url(url: &str) -> Result<(), Error> {
    let is_one = url.strip_prefix("spark://").and_then(|rest| {
        let (endpoint, address) = rest.split_once('@')?;
        let (host, port) = address.rsplit_once(':')?;
        let plain = |c: char| c.is_ascii_graphic() && !"/@?#'\"\\".contains(c);
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = digits.then(|| port.parse::<u16>().ok()).flatten()?;
        let whole = |text: &str| !text.is_empty() && text.chars().all(plain);
        (whole(endpoint) && whole(host) && port > 0).then_some(())
    });
    let allowed = "spark://CoarseGrainedScheduler@HOST:PORT";
    is_one.ok_or_else(|| Error::setting("driver URL", url, allowed))
}

/// The launcher script, as Java puts a path together.
fn script_in(home: &str) -> Result<String, Error> {
    if home.trim().is_empty() {
        return Err(Error::setting("Spark's home", home, "the folder of Spark on the agents"));
    }
    let mut parts =
        home.split('/').filter(|part| !part.is_empty()).fold(String::new(), |mut path, part| {
            if !path.is_empty() || home.starts_with('/') {
                path.push('/');
            }
            path.push_str(part);
            path
        });
    parts.push_str("/./bin/spark-class");
    Ok(parts)
}

/// What the names of the folders in an archive begin with: its own name up to the first dot.
fn folder_of(uri: &str) -> Result<&str, Error> {
    let name = uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let folder = name.split('.').next().unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if folder.is_empty() || uri.contains(odd) {
        let allowed = "the URI of an archive with Spark, without spaces";
        return Err(Error::setting("Spark's archive", uri, allowed));
    }
    Ok(folder)
}
