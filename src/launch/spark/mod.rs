//! [`SparkExecutor`]: the command line and environment of Spark's executors, as in Spark's own backend for Mesos.

mod pod;
#[cfg(test)]
mod tests;

pub use pod::CONF_DIR;

use std::sync::Arc;

use super::placeholder_text::PlaceholderText;
use super::{
    Command, CommandForm, EnvironmentVariable, LaunchContext, Launcher, Secret, Setup,
    ShellPrologue, Uri,
};
use crate::error::Error;

/// The main class of an executor, an argument of Spark's launcher script.
const BACKEND: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
/// The name of the driver's endpoint that executors register with.
const ENDPOINT: &str = "CoarseGrainedScheduler";

/// The placeholders of [`SparkExecutor::java_options`].
const OPTION_PLACEHOLDERS: [&str; 2] = ["APP_ID", "EXECUTOR_ID"];

/// Java options that Spark needs on Java versions above 11. Older versions ignore them. Spark's driver prepends them to
/// other options itself; an executor that is started without a driver's options needs them as well.
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

/// Builds the commands of Spark's executors, which register with a driver and run its tasks.
///
/// The command is that of Spark 3.5's backend for Mesos, with the same arguments in the same order and the same
/// environment variables. Spark passes it as a shell line; here it is an argument list. A shell is only used if Spark
/// must be unpacked on the agent first, or if a library path is prepended to the agent's own. All values are quoted, so
/// the shell never interprets them.
///
/// Drivers accept only whole numbers as executor ids: [`IdScheme::plain`](crate::IdScheme::plain).
///
/// ```
/// use offermill::launch::spark::{Software, SparkExecutor};
/// use offermill::launch::{LaunchContext, Launcher};
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// # fn main() -> Result<(), offermill::Error> {
/// let url = SparkExecutor::driver_url("driver.example", 7078)?;
/// let launcher = SparkExecutor::new(&url, Software::Home("/opt/spark".to_owned()))?;
/// let (cores, memory) = (MilliCpus::from_cores(2), Mebibytes::new(1024));
/// let context = LaunchContext::new("7", "agent-1", "a1.example", cores, memory).with_app("app-1");
/// let command = launcher.java_options("-verbose:gc").command(&context);
/// assert_eq!(command.argv[0], "/opt/spark/./bin/spark-class");
/// assert!(command.argv.iter().any(|argument| *argument == url));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SparkExecutor {
    driver_url: String,
    program: String,
    prologue: ShellPrologue,
    archive: Option<Uri>,
    /// Whether the entry point of an image starts it.
    is_in_image: bool,
    setup: Option<Arc<Setup>>,
    app_id: Option<String>,
    java_options: PlaceholderText,
    class_path: Option<String>,
    task_cores: u32,
    user: Option<String>,
    variables: Vec<(String, String)>,
    secrets: Vec<(String, Secret)>,
    hostname: Hostname,
    form: CommandForm,
}

/// The location of Spark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Software {
    /// An installation in this folder.
    Home(String),
    /// In the container's image, whose entry point starts executors as that of Spark's images for Kubernetes does.
    Image,
    /// An archive that is fetched and unpacked.
    Archive {
        /// The archive's URI.
        uri: String,
        /// Whether agents cache the archive for other executors.
        cache: bool,
    },
}

/// The host name that an executor advertises and binds its port to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hostname {
    /// The agent's host name.
    #[default]
    OfAgent,
    /// This host name.
    Fixed(String),
    /// The name that the executor determines itself, for example in a container with its own network.
    Own,
}

impl SparkExecutor {
    /// Creates a launcher for executors of the driver at `driver_url`, such as
    /// `spark://CoarseGrainedScheduler@driver.example:7078`. By default they use their agent's host name, and the
    /// framework's id as the application id.
    ///
    /// # Errors
    /// If the URL is malformed, the home is empty, or the archive's URI has no file name or contains white space.
    pub fn new(driver_url: &str, software: Software) -> Result<SparkExecutor, Error> {
        check_driver_url(driver_url)?;
        let is_in_image = software == Software::Image;
        let (program, folder, archive) = match software {
            Software::Image => (pod::EXECUTOR.to_owned(), None, None),
            Software::Home(home) => (script_in(&home)?, None, None),
            Software::Archive { uri, cache } => {
                let folder = folder_of(&uri)?.into();
                ("./bin/spark-class".to_owned(), Some(folder), Some(Uri { cache, ..Uri::new(uri) }))
            }
        };
        Ok(SparkExecutor {
            driver_url: driver_url.to_owned(),
            program,
            prologue: ShellPrologue { folder, library_path: None },
            archive,
            is_in_image,
            setup: None,
            app_id: None,
            java_options: PlaceholderText::new("", &OPTION_PLACEHOLDERS),
            class_path: None,
            task_cores: 1,
            user: None,
            variables: Vec::new(),
            secrets: Vec::new(),
            hostname: Hostname::default(),
            form: CommandForm::default(),
        }
        .setup(Setup::default()))
    }

    /// Returns the URL of the driver that listens on this host and port.
    ///
    /// # Errors
    /// If the host is not a valid host name, or the port is zero.
    pub fn driver_url(host: &str, port: u16) -> Result<String, Error> {
        let url = format!("spark://{ENDPOINT}@{host}:{port}");
        check_driver_url(&url).map(|()| url)
    }

    /// Returns the URL of the driver that executors register with.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver_url
    }

    /// Sets the application id, which is the framework's id by default.
    #[must_use]
    pub fn app_id(mut self, id: impl Into<String>) -> Self {
        self.app_id = Some(id.into());
        self
    }

    /// Sets Java options for the executors. The placeholders `{{APP_ID}}` and `{{EXECUTOR_ID}}` are filled in.
    #[must_use]
    pub fn java_options(mut self, options: impl Into<String>) -> Self {
        self.java_options = PlaceholderText::new(&options.into(), &OPTION_PLACEHOLDERS);
        self
    }

    /// Sets a class path that comes before Spark's own.
    #[must_use]
    pub fn class_path(mut self, path: impl Into<String>) -> Self {
        self.class_path = Some(path.into());
        self
    }

    /// Sets a library path that comes before the agent's own. The executors are then started by a shell; those of an
    /// [image](Software::Image) don't have it.
    #[must_use]
    pub fn library_path(mut self, path: impl Into<String>) -> Self {
        self.prologue.library_path = Some(Arc::from(path.into()));
        self
    }

    /// Sets the cores per task, which become `OMP_NUM_THREADS`: the number of threads for native libraries that would
    /// otherwise use all cores. Default: 1.
    #[must_use]
    pub fn task_cores(mut self, cores: u32) -> Self {
        self.task_cores = cores;
        self
    }

    /// Sets Spark's user (`SPARK_USER`), which can differ from the user that runs the executors.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// Sets an environment variable. It overrides Spark's own variables, but not the [user](SparkExecutor::user).
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets an environment variable whose value is a secret, such as `_SPARK_AUTH_SECRET`. It overrides others of its
    /// name. Unlike those of [`variable`](SparkExecutor::variable), its value isn't shown by `Debug`.
    #[must_use]
    pub fn secret_variable(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.secrets.push((name.into(), value));
        self
    }

    /// Sets which host names the executors use. Default: [`Hostname::OfAgent`]. Those of an [image](Software::Image)
    /// use the address of their pod.
    #[must_use]
    pub fn hostname(mut self, hostname: Hostname) -> Self {
        self.hostname = hostname;
        self
    }

    /// Sets the form of the command. It is always [`CommandForm::Shell`] if the command needs a shell, and
    /// [`CommandForm::EntryPoint`] with [`Software::Image`].
    #[must_use]
    pub fn form(mut self, form: CommandForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the setup that the executors share. Spark's archive is fetched before its other URIs.
    #[must_use]
    pub fn setup(mut self, mut setup: Setup) -> Self {
        if let Some(archive) = &self.archive {
            setup.uris.insert(0, archive.clone());
        }
        self.setup = (setup != Setup::default()).then(|| Arc::new(setup));
        self
    }

    /// The environment variables. Each name occurs once.
    fn environment(
        &self,
        context: &LaunchContext<'_>,
        app_id: &str,
        cores: &str,
    ) -> Vec<EnvironmentVariable> {
        let options = self.java_options.fill(&[Some(app_id), Some(context.executor)]);
        let class_path = self.class_path.as_deref();
        let mut environment: Vec<EnvironmentVariable> = if self.is_in_image {
            pod::environment(context, (&self.driver_url, app_id, cores), &options, class_path)
        } else {
            let memory = format!("{}m", context.memory.get());
            let variables = [
                ("SPARK_EXECUTOR_OPTS", Some(&*options)),
                ("SPARK_EXECUTOR_MEMORY", Some(&memory)),
                ("SPARK_EXECUTOR_CLASSPATH", class_path),
            ];
            let given = variables.into_iter().filter_map(|(name, value)| Some((name, value?)));
            given.map(|(name, value)| (name.into(), value.to_owned())).collect()
        };
        environment.push(("OMP_NUM_THREADS".into(), self.task_cores.to_string()));
        let user = self.user.iter().map(|user| ("SPARK_USER".to_owned(), user.clone()));
        let secrets = self.secrets.iter();
        let secrets = secrets.map(|(name, secret)| (name.clone(), secret.expose().to_owned()));
        for (name, value) in self.variables.iter().cloned().chain(user).chain(secrets) {
            match environment.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => environment.push((name.into(), value)),
            }
        }
        environment
    }
}

impl Launcher for SparkExecutor {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let app_id = self.app_id.as_deref().unwrap_or(context.app);
        // Drivers count whole cores, and an executor without a core would receive no tasks.
        let cores = (context.cores.millis() / 1000).max(1).to_string();
        let environment = self.environment(context, app_id, &cores);
        if self.is_in_image {
            let argv = vec![self.program.clone()];
            let (form, setup) = (CommandForm::EntryPoint, self.setup.clone());
            return Command { argv, environment, form, setup, ..Command::default() };
        }
        let mut argv = vec![self.program.clone(), BACKEND.to_owned()];
        let hostname = match &self.hostname {
            Hostname::OfAgent => Some(context.hostname),
            Hostname::Fixed(name) => Some(name.as_str()),
            Hostname::Own => None,
        };
        let arguments = [
            ("--driver-url", Some(self.driver_url.as_str())),
            ("--executor-id", Some(context.executor)),
            ("--cores", Some(&cores)),
            ("--app-id", Some(app_id)),
            ("--hostname", hostname),
        ];
        for (name, value) in arguments {
            if let Some(value) = value {
                argv.extend([name.to_owned(), value.to_owned()]);
            }
        }
        let prologue = self.prologue.clone();
        let form =
            if prologue == ShellPrologue::default() { self.form } else { CommandForm::Shell };
        Command {
            argv,
            environment,
            form,
            setup: self.setup.clone(),
            prologue,
            ..Command::default()
        }
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
    let allowed = "spark://CoarseGrainedScheduler@HOST:PORT, with a port from 1 to 65535";
    is_one.ok_or_else(|| Error::setting("driver URL", url, allowed))
}

/// The path of the launcher script, normalized like Java's `File` does.
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

/// The prefix of the folder names in an archive: the archive's file name up to the first dot.
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
