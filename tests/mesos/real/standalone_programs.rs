//! The programs of a standalone cluster: `offermill master` and `offermill worker`s.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};

use super::cluster::{ClusterPrograms, Setup, processes_within};
use super::eventually;
use super::state::State;
use crate::http::get_json;

/// A master and workers.
#[derive(Debug)]
pub(crate) struct StandalonePrograms {
    folder: PathBuf,
    port: u16,
    /// The arguments of `master`, `agent-0` and so on.
    arguments: BTreeMap<String, Vec<String>>,
    running: Mutex<BTreeMap<String, Child>>,
}

impl StandalonePrograms {
    /// Starts them.
    pub(crate) fn start(folder: &Path, port: u16, setup: Setup<'_>) -> StandalonePrograms {
        assert!(setup.mesos_flags.is_empty(), "{:?}", setup.mesos_flags);
        let path = |name: &str| folder.join(name).display().to_string();
        let mut master = vec!["master".to_owned(), "--listen".to_owned(), port.to_string()];
        master.extend(["--state-dir".to_owned(), path("master")]);
        master.extend(["--control".to_owned(), path("master.sock")]);
        if setup.fast {
            master.extend(["--worker-timeout", "3s"].map(str::to_owned));
        }
        if let Some((principal, secret)) = setup.credential {
            let file = folder.join("principals");
            fs::write(&file, format!("{principal} {secret}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            master.extend(["--principals-file".to_owned(), path("principals")]);
        }
        let mut arguments = BTreeMap::from([("master".to_owned(), master)]);
        for i in 0..setup.agents {
            let (number, name) = (i.to_string(), format!("agent-{i}"));
            let one_of = |text: &str| {
                let all: Vec<&str> = text.split('|').collect();
                all[usize::from(i) % all.len()].replace("%d", &number)
            };
            let resources = one_of(setup.resources);
            let amount = |name: &str| {
                let mut parts = resources.split(';').filter_map(|part| part.split_once(':'));
                parts.find(|(known, _)| *known == name).unwrap().1.to_owned()
            };
            let mut worker = vec!["worker".to_owned(), "--master".to_owned()];
            worker.extend([format!("http://127.0.0.1:{port}"), "--work-dir".to_owned()]);
            worker.extend([path(&format!("agents/{name}")), "--hostname".to_owned()]);
            worker.extend([one_of(setup.hostnames), "--cores".to_owned(), amount("cpus")]);
            worker.extend(["--memory".to_owned(), format!("{}m", amount("mem"))]);
            if !setup.attributes.is_empty() {
                worker.extend(["--attributes".to_owned(), one_of(setup.attributes)]);
            }
            arguments.insert(name, worker);
        }
        fs::create_dir(folder.join("agents")).unwrap();
        let names: Vec<String> = arguments.keys().cloned().collect();
        let running = Mutex::new(BTreeMap::new());
        let programs = StandalonePrograms { folder: folder.to_owned(), port, arguments, running };
        names.iter().for_each(|name| programs.control("start", name));
        // As the tools for Mesos do.
        eventually(Duration::from_secs(60), "all workers registered", || {
            match programs.state()?.active_agents() {
                active if active == usize::from(setup.agents) => Ok(()),
                active => Err(format!("{active} are")),
            }
        });
        programs
    }

    fn spawn(&self, name: &str) -> Child {
        let log = self.folder.join(format!("{name}.log"));
        let log = File::options().append(true).create(true).open(log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
        command.args(&self.arguments[name]).stdin(Stdio::null());
        // Not in the cluster's folder, where processes are executors.
        command.current_dir("/").stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }
}

impl ClusterPrograms for StandalonePrograms {
    fn scheme(&self) -> &'static str {
        "offermill"
    }

    fn state(&self) -> Result<State, String> {
        let get = |path| get_json(self.port, path).map_err(|error| error.to_string());
        let (state, executors) = (get("/state")?, get("/executors")?);
        Ok(State::of_standalone(as_mesos_has_it(&state, &executors["executors"])))
    }

    fn executors_of_agent(&self, i: u16) -> Result<usize, String> {
        let sandboxes = self.folder.join(format!("agents/agent-{i}"));
        let processes = processes_within(&sandboxes).into_iter();
        Ok(processes.map(|(_, sandbox, _)| sandbox).collect::<BTreeSet<_>>().len())
    }

    fn drain(&self, agent_id: &str) {
        let mut ctl = Command::new(env!("CARGO_BIN_EXE_offermill"));
        ctl.arg("ctl").arg(self.folder.join("master.sock")).args(["drain", agent_id]);
        let output = ctl.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn control(&self, verb: &str, name: &str) {
        let mut running = self.running.lock().unwrap();
        let signal = match verb {
            "start" => {
                assert!(!running.contains_key(name), "{name} runs");
                running.insert(name.to_owned(), self.spawn(name));
                return;
            }
            "kill" => Signal::KILL,
            "pause" => Signal::STOP,
            "resume" => Signal::CONT,
            other => panic!("{other} {name}"),
        };
        let child = running.get_mut(name).unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
        match verb {
            "kill" => {
                child.wait().unwrap();
                running.remove(name);
            }
            // Until all of its threads have stopped.
            "pause" => drop(waitpid(Some(Pid::from_child(child)), WaitOptions::UNTRACED).unwrap()),
            _ => {}
        }
    }

    fn end(&mut self) -> Result<(), String> {
        for child in self.running.get_mut().unwrap().values_mut() {
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The part of a master's `/state` and `/executors` that scenes look at, as Mesos has it.
fn as_mesos_has_it(state: &Value, executors: &Value) -> Value {
    let list = |name: &str| state[name].as_array().cloned().unwrap_or_default();
    let workers = list("workers");
    let away: BTreeSet<&str> = workers
        .iter()
        .filter(|worker| worker["state"] == "unreachable")
        .filter_map(|worker| worker["id"].as_str())
        .collect();
    let slave = |worker: &Value| {
        json!({
            "id": worker["id"], "hostname": worker["hostname"], "active": worker["state"] == "active",
            "resources": worker["total"], "used_resources": worker["used"],
        })
    };
    let slaves: Vec<Value> = workers.iter().map(slave).collect();
    let executors = executors.as_array().cloned().unwrap_or_default();
    let framework = |framework: &Value| {
        let own = executors.iter().filter(|one| one["framework"] == framework["id"]);
        let task = |one: &Value| {
            let state = one["state"].as_str().unwrap().to_ascii_uppercase();
            json!({
                "id": one["id"], "slave_id": one["worker"], "state": format!("TASK_{state}"),
                "resources": one["resources"],
            })
        };
        let is_away = |one: &&Value| one["worker"].as_str().is_some_and(|id| away.contains(id));
        let (unreachable, tasks): (Vec<&Value>, Vec<&Value>) = own.partition(is_away);
        let tasks_of = |all: Vec<&Value>| all.into_iter().map(task).collect::<Vec<Value>>();
        json!({
            "id": framework["id"], "active": framework["connected"],
            "tasks": tasks_of(tasks), "unreachable_tasks": tasks_of(unreachable),
        })
    };
    let frameworks: Vec<Value> = list("frameworks").iter().map(framework).collect();
    json!({"slaves": slaves, "frameworks": frameworks})
}
