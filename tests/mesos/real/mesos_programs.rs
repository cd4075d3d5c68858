//! The programs of a Mesos cluster, by the tools in `tests/support/mesos`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::cluster::{ClusterPrograms, Setup};
use super::state::State;
use crate::http::{get_json, post_json};

/// A master and agents of Mesos.
#[derive(Debug)]
pub(crate) struct MesosPrograms {
    folder: PathBuf,
    port: u16,
}

impl MesosPrograms {
    /// Starts them. Builds them if that has not been done.
    pub(crate) fn start(folder: &Path, port: u16, setup: Setup<'_>) -> MesosPrograms {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut up = tool("mesos-up");
        up.arg("--build-dir").arg(target.join("mesos-build")).arg("--work-dir").arg(folder);
        up.args(["--port", &port.to_string(), "--agents", &setup.agents.to_string()]);
        up.args(["--per-process", &setup.per_process.to_string()]);
        up.args(["--resources", setup.resources, "--attributes", setup.attributes]);
        up.args(["--hostname", setup.hostnames]);
        for flag in setup.mesos_flags {
            up.args(["--master-flag", flag]);
        }
        if let Some((principal, secret)) = setup.credential {
            let file = folder.join("credentials");
            let known = json!({"credentials": [{"principal": principal, "secret": secret}]});
            std::fs::write(&file, known.to_string()).unwrap();
            up.args(["--master-flag", "authenticate_http_frameworks=true"]);
            up.args(["--master-flag", "http_framework_authenticators=basic"]);
            up.args(["--master-flag", &format!("credentials={}", file.display())]);
        }
        if setup.fast {
            up.arg("--fast");
        }
        let programs = MesosPrograms { folder: folder.to_owned(), port };
        succeed(&mut up);
        programs
    }
}

impl ClusterPrograms for MesosPrograms {
    fn scheme(&self) -> &'static str {
        "mesos"
    }

    fn state(&self) -> Result<State, String> {
        get_json(self.port, "/state").map(State::of_mesos).map_err(|error| error.to_string())
    }

    fn executors_of_agent(&self, i: u16) -> Result<usize, String> {
        let state = get_json(self.port + 1 + i, "/slave(1)/state");
        let state: Value = state.map_err(|error| error.to_string())?;
        let frameworks = state["frameworks"].as_array().ok_or("no frameworks")?;
        Ok(frameworks.iter().map(|one| one["executors"].as_array().map_or(0, Vec::len)).sum())
    }

    fn drain(&self, agent_id: &str) {
        let call = json!({"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": agent_id}}});
        let answer = post_json(self.port, "/api/v1", &call).unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{call}: {answer}");
    }

    fn control(&self, verb: &str, name: &str) {
        succeed(tool("mesos-ctl").arg(&self.folder).args([verb, name]));
    }

    fn end(&mut self) -> Result<(), String> {
        let down = tool("mesos-down").arg(&self.folder).output();
        let down = down.map_err(|error| error.to_string())?;
        if down.status.success() { Ok(()) } else { Err(format!("{down:?}")) }
    }
}

fn tool(name: &str) -> Command {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mesos");
    Command::new(tools.join(name))
}

/// Runs a tool. If it fails, the panic contains its output.
#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        told(&output.stdout),
        told(&output.stderr)
    );
}
