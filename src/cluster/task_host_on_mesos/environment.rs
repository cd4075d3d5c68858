//! What an agent of Mesos tells an executor in environment variables.

use std::path::PathBuf;
use std::time::Duration;

use crate::cluster::http_client::Master;
use crate::launch::Secret;

/// The variable with the executor's id, by which a process knows that an agent has started it.
pub(super) const EXECUTOR_ID: &str = "MESOS_EXECUTOR_ID";
/// The defaults of Mesos, for what an agent doesn't say.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// What of the grace of a shutdown is left for reports: the agent destroys the container at its end.
const SHUTDOWN_REST: Duration = Duration::from_secs(1);

/// What the agent has told.
#[derive(Debug)]
pub(super) struct ExecutorEnvironment {
    pub(super) framework_id: String,
    pub(super) executor_id: String,
    pub(super) agent: Master,
    /// The path of the executor API.
    pub(super) path: String,
    pub(super) token: Option<Secret>,
    /// Whether tasks go on while the agent restarts.
    pub(super) is_checkpointing: bool,
    /// How long the agent may be away.
    pub(super) recovery_timeout: Duration,
    /// The longest wait before a subscription.
    pub(super) backoff_max: Duration,
    /// The time that tasks have after a shutdown.
    pub(super) shutdown_grace: Duration,
    /// The sandbox, as the agent's machine names it.
    pub(super) directory: PathBuf,
}

impl ExecutorEnvironment {
    /// Reads the variables.
    ///
    /// # Errors
    /// If one is missing or makes no sense, or if the agent speaks TLS, which hosts don't.
    pub(super) fn read(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ExecutorEnvironment, String> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let needed = |name: &str| given(name).ok_or_else(|| format!("the agent has set no {name}"));
        let duration = |name: &str, otherwise| match given(name) {
            Some(text) => {
                duration(&text).ok_or_else(|| format!("{name} is {text:?}, which is no duration"))
            }
            None => Ok(otherwise),
        };
        if given("LIBPROCESS_SSL_ENABLED").is_some_and(|it| ["1", "true"].contains(&&*it)) {
            return Err(
                "the agent speaks TLS with executors, which hosts of tasks don't".to_owned()
            );
        }
        // Such as `slave(1)@10.0.0.1:5051`. Agents that share a process have names of their own.
        let (address, path) = match given("MESOS_SLAVE_PID") {
            Some(pid) => match pid.split_once('@') {
                Some((name, address)) => (address.to_owned(), format!("/{name}/api/v1/executor")),
                None => return Err(format!("MESOS_SLAVE_PID is {pid:?}, which names no agent")),
            },
            None => (needed("MESOS_AGENT_ENDPOINT")?, "/slave(1)/api/v1/executor".to_owned()),
        };
        let agent = Master::read(&address);
        let shutdown_grace = duration("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", SHUTDOWN_GRACE)?;
        Ok(ExecutorEnvironment {
            framework_id: needed("MESOS_FRAMEWORK_ID")?,
            executor_id: needed(EXECUTOR_ID)?,
            agent: agent.ok_or_else(|| format!("the agent's address is {address:?}"))?,
            path,
            token: given("MESOS_EXECUTOR_AUTHENTICATION_TOKEN").map(Secret::new),
            is_checkpointing: given("MESOS_CHECKPOINT").is_some_and(|it| it == "1"),
            recovery_timeout: duration("MESOS_RECOVERY_TIMEOUT", RECOVERY_TIMEOUT)?,
            backoff_max: duration("MESOS_SUBSCRIPTION_BACKOFF_MAX", BACKOFF_MAX)?,
            shutdown_grace: shutdown_grace.saturating_sub(SHUTDOWN_REST),
            directory: needed("MESOS_DIRECTORY").or_else(|_| needed("MESOS_SANDBOX"))?.into(),
        })
    }

    /// The mark of the host and its tasks on this machine. The sandbox is the host's alone.
    pub(super) fn mark(&self) -> String {
        format!("{} in {}", self.executor_id, self.directory.display())
    }
}

/// Reads a duration as Mesos writes it, such as `15mins` and `1.5hrs`.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit);
    let seconds = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "secs" => 1.0,
        "mins" => 60.0,
        "hrs" => 3600.0,
        "days" => 86_400.0,
        "weeks" => 604_800.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * seconds;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: [(&str, &str); 6] = [
        ("MESOS_FRAMEWORK_ID", "F1"),
        ("MESOS_EXECUTOR_ID", "h-1"),
        ("MESOS_SLAVE_PID", "slave(2)@127.0.0.1:5051"),
        ("MESOS_DIRECTORY", "/work/sandbox"),
        ("MESOS_RECOVERY_TIMEOUT", "1.5mins"),
        ("MESOS_CHECKPOINT", "1"),
    ];

    fn read(changes: &[(&str, &str)]) -> Result<ExecutorEnvironment, String> {
        let all = || changes.iter().chain(&AGENT);
        let value = |name: &str| Some(all().find(|it| it.0 == name)?.1.to_owned());
        ExecutorEnvironment::read(value)
    }

    /// Goal: variables are read as a real agent sets them. Method: such variables, with and without those that have
    /// defaults.
    #[test]
    fn agents_tell_where_they_are() {
        let told = read(&[]).unwrap();
        assert_eq!((told.agent.to_string().as_str(), told.agent.port), ("127.0.0.1:5051", 5051));
        assert_eq!(
            (told.path.as_str(), told.is_checkpointing),
            ("/slave(2)/api/v1/executor", true)
        );
        assert_eq!(told.recovery_timeout, Duration::from_secs(90));
        assert_eq!(told.shutdown_grace, Duration::from_secs(4));
        assert_eq!(told.mark(), "h-1 in /work/sandbox");
        let plain =
            [("MESOS_SLAVE_PID", ""), ("MESOS_AGENT_ENDPOINT", "h:1"), ("MESOS_CHECKPOINT", "0")];
        let told = read(&plain).unwrap();
        assert_eq!((told.agent.port, told.is_checkpointing), (1, false));
    }

    /// Goal: what makes no sense is named. Method: a value each.
    #[test]
    fn nonsense_is_named() {
        for (name, value, part) in [
            ("MESOS_FRAMEWORK_ID", "", "no MESOS_FRAMEWORK_ID"),
            ("MESOS_SLAVE_PID", "slave(1)", "names no agent"),
            ("MESOS_SLAVE_PID", "slave(1)@", "the agent's address is \"\""),
            ("MESOS_RECOVERY_TIMEOUT", "soon", "no duration"),
            ("MESOS_RECOVERY_TIMEOUT", "1e400secs", "no duration"),
            ("LIBPROCESS_SSL_ENABLED", "1", "TLS"),
        ] {
            let why = read(&[(name, value)]).unwrap_err();
            assert!(why.contains(part), "{name}={value}: {why}");
        }
    }
}
