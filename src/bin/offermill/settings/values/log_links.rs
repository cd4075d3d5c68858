//! Where executors' logs can be read: the variables from which Spark's page makes links.

use std::path::PathBuf;

use offermill::launch::{EnvironmentVariable, LaunchContext};

/// The files with an executor's output.
const LOGS: [&str; 2] = ["stdout", "stderr"];

/// Makes the links to executors' logs.
#[derive(Clone, Debug)]
pub(crate) enum LogLinks {
    /// Logs are below this folder of this machine, which holds a folder per framework.
    Here(PathBuf),
    /// Logs are served by the agents of a Mesos cluster.
    OnAgents { scheme: &'static str, port: u16 },
}

impl LogLinks {
    /// Adds the variables of an executor to an environment. Those that it has already stay.
    pub(crate) fn add_to(
        &self,
        environment: &mut Vec<EnvironmentVariable>,
        context: &LaunchContext<'_>,
    ) {
        let attributes = [
            ("AGENT_ID", context.agent_id),
            ("EXECUTOR_ID", context.executor),
            ("FRAMEWORK_ID", context.app),
            ("HOSTNAME", context.hostname),
            ("LOG_FILES", "stdout,stderr"),
        ];
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| (format!("SPARK_EXECUTOR_ATTRIBUTE_{name}"), value.to_owned()));
        let logs = LOGS.into_iter().map(|log| {
            (format!("SPARK_LOG_URL_{}", log.to_ascii_uppercase()), self.link(context, log))
        });
        for (name, value) in attributes.chain(logs) {
            if environment.iter().all(|(known, _)| *known != name) {
                environment.push((name.into(), value));
            }
        }
    }

    /// The link to a log.
    fn link(&self, context: &LaunchContext<'_>, log: &str) -> String {
        let LaunchContext { executor, agent_id, app, hostname, .. } = context;
        match self {
            LogLinks::Here(folder) => {
                let folder = folder.to_string_lossy();
                let path = format!("{folder}/{app}/{agent_id}/{executor}/{log}");
                format!("file://{}", encoded(&path))
            }
            LogLinks::OnAgents { scheme, port } => {
                // A path that agents give to each sandbox, whatever their work folder is.
                let path = format!("/frameworks/{app}/executors/{executor}/runs/latest/{log}");
                let path = encoded(&path).replace('/', "%2F");
                format!("{scheme}://{hostname}:{port}/files/download?path={path}")
            }
        }
    }
}

/// A path in which what isn't a letter, a digit or one of `/_.~-` is encoded as in URLs.
fn encoded(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' | b'_' | b'.' | b'~' | b'-' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use offermill::resources::{Mebibytes, MilliCpus};

    use super::*;

    fn context() -> LaunchContext<'static> {
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(512));
        LaunchContext::new("7", "S1", "host-1", cores, memory).with_app("fw 1")
    }

    /// Goal: links lead to the files that executors write, with any characters in their paths. Method: a folder with a
    /// space and an umlaut; a Mesos agent over TLS.
    #[test]
    fn links_lead_to_the_logs() {
        let here = LogLinks::Here("/tmp/a b/ä".into());
        let link = here.link(&context(), "stderr");
        assert_eq!(link, "file:///tmp/a%20b/%C3%A4/fw%201/S1/7/stderr");
        let agents = LogLinks::OnAgents { scheme: "https", port: 5051 };
        assert_eq!(
            agents.link(&context(), "stdout"),
            "https://host-1:5051/files/download?path=%2Fframeworks%2Ffw%201%2Fexecutors%2F7%2Fruns%2Flatest%2Fstdout"
        );
    }

    /// Goal: each variable occurs once, and those that a user has set stay. Method: an environment with one of them.
    #[test]
    fn own_variables_stay() {
        let own = ("SPARK_LOG_URL_STDOUT".into(), "mine".to_owned());
        let mut environment = vec![own.clone()];
        LogLinks::Here("/x".into()).add_to(&mut environment, &context());
        assert_eq!((environment.len(), &environment[0]), (7, &own));
        let agent = ("SPARK_EXECUTOR_ATTRIBUTE_AGENT_ID".into(), "S1".to_owned());
        assert!(environment.contains(&agent), "{environment:?}");
    }
}
