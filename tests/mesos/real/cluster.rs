//! A real cluster: a master and agents, each a process, which end with the test. It is one of Mesos, unless
//! `OFFERMILL_SCENES_ON` is `offermill`: then the master is `offermill master`, and the agents are `offermill worker`s.

use std::fmt::Debug;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::eventually;
use super::mesos_programs::MesosPrograms;
use super::standalone_programs::StandalonePrograms;
use super::state::State;
use crate::http::get_json;

/// The ports of clusters: below those that the operating system assigns by itself.
const PORTS: std::ops::Range<u16> = 16_000..30_000;
/// The maximum time that the master may take to answer: it may just have been killed and restarted.
const PATIENCE: Duration = Duration::from_secs(30);

/// The properties of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// The number of agents.
    pub(crate) agents: u16,
    /// The number of agents per process. Agents that share a process can't be harmed one by one.
    pub(crate) per_process: u16,
    /// The agents' attributes, in the form of `mesos-up --attributes`.
    pub(crate) attributes: &'a str,
    /// The agents' host names, in the form of `mesos-up --hostnames`.
    pub(crate) hostnames: &'a str,
    /// The resources of each agent.
    pub(crate) resources: &'a str,
    /// Whether a lost agent is noticed after 3 seconds instead of 75.
    pub(crate) fast: bool,
    /// The only principal that may register frameworks, and its secret.
    pub(crate) credential: Option<(&'a str, &'a str)>,
    /// Additional flags of Mesos' master, as `name=value`.
    pub(crate) mesos_flags: &'a [&'a str],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            agents: 3,
            per_process: 1,
            attributes: "",
            hostnames: "agent-%d",
            resources: "cpus:8;mem:4096;disk:20000;ports:[31000-32000]",
            fast: true,
            credential: None,
            mesos_flags: &[],
        }
    }
}

/// The master and the agents of a cluster. Dropping them ends them and their tasks.
pub(crate) trait ClusterPrograms: Debug {
    /// The master's URL without its host, in the form of `--master`.
    fn scheme(&self) -> &'static str;
    /// The master's state.
    fn state(&self) -> Result<State, String>;
    /// The number of executors that run on agent `i`.
    fn executors_of_agent(&self, i: u16) -> Result<usize, String>;
    /// Takes an agent out of the cluster.
    fn drain(&self, agent_id: &str);
    /// Does `kill`, `start` (after `kill`), `pause` or `resume` with `master` or `agent-0` and so on.
    fn control(&self, verb: &str, name: &str);
    /// Ends all of them.
    fn end(&mut self) -> Result<(), String>;
}

/// A running cluster. Dropping it ends it and its tasks; its logs are kept if the test failed.
#[derive(Debug)]
pub(crate) struct RealCluster {
    folder: PathBuf,
    port: u16,
    agents: u16,
    programs: Box<dyn ClusterPrograms>,
}

impl RealCluster {
    /// Starts a cluster on free ports and in a folder of its own. Builds its programs if that has not been done.
    pub(crate) fn start(setup: Setup<'_>) -> RealCluster {
        let port = free_ports(setup.agents + 1);
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = target.join(format!("scene-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let programs: Box<dyn ClusterPrograms> =
            match std::env::var("OFFERMILL_SCENES_ON").as_deref() {
                Ok("offermill") => Box::new(StandalonePrograms::start(&folder, port, setup)),
                Ok(other) => panic!("OFFERMILL_SCENES_ON is {other:?}, but must be offermill"),
                Err(_) => Box::new(MesosPrograms::start(&folder, port, setup)),
            };
        RealCluster { folder, port, agents: setup.agents, programs }
    }

    /// The master's port on this machine.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The master's URL, in the form of `--master`.
    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.programs.scheme(), self.port)
    }

    /// The number of agents, running or not.
    pub(crate) fn agents(&self) -> u16 {
        self.agents
    }

    /// The folder of the cluster's files, including sandboxes.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The master's state.
    pub(crate) fn master_state(&self) -> State {
        eventually(PATIENCE, "the master's state", || self.programs.state())
    }

    /// Drains an agent.
    pub(crate) fn drain_agent(&self, id: &str) {
        self.programs.drain(id);
    }

    /// The master's JSON response under `path`.
    pub(crate) fn look(&self, path: &str) -> Value {
        get_json(self.port, path).unwrap()
    }

    /// The number of executors that run on agent `i`.
    pub(crate) fn executors_of_agent(&self, i: u16) -> usize {
        eventually(PATIENCE, "an agent's executors", || self.programs.executors_of_agent(i))
    }

    /// Waits until all agents are registered, and there is a status for everything that runs.
    pub(crate) fn wait_for_agents(&self) {
        let all = usize::from(self.agents);
        eventually(Duration::from_secs(90), "all agents registered", || {
            match self.master_state().active_agents() {
                active if active == all => Ok(()),
                active => Err(format!("{active} of {all} are")),
            }
        });
    }

    /// Sends SIGKILL to agent `i`. Its executors continue to run without it on Mesos, and otherwise end.
    pub(crate) fn kill_agent(&self, i: u16) {
        self.programs.control("kill", &agent(i));
    }

    /// Restarts agent `i` with its old state.
    pub(crate) fn start_agent(&self, i: u16) {
        self.programs.control("start", &agent(i));
    }

    /// Sends SIGSTOP to agent `i`: it no longer answers, and its connections stay open.
    pub(crate) fn pause_agent(&self, i: u16) {
        self.programs.control("pause", &agent(i));
    }

    /// Sends SIGCONT to agent `i`.
    pub(crate) fn resume_agent(&self, i: u16) {
        self.programs.control("resume", &agent(i));
    }

    /// Sends SIGKILL to the master.
    pub(crate) fn kill_master(&self) {
        self.programs.control("kill", "master");
    }

    /// Restarts the master with its old registry.
    pub(crate) fn start_master(&self) {
        self.programs.control("start", "master");
    }

    /// Sends SIGSTOP to the master.
    pub(crate) fn pause_master(&self) {
        self.programs.control("pause", "master");
    }

    /// Sends SIGCONT to the master.
    pub(crate) fn resume_master(&self) {
        self.programs.control("resume", "master");
    }

    /// The standard output of each executor, in no particular order.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let mut folders = vec![self.folder.join("agents")];
        let mut outputs = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                // There is also a link to each sandbox.
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if path.ends_with("stdout") {
                    outputs.extend(fs::read_to_string(path));
                }
            }
        }
        outputs
    }

    /// The processes whose working directory is in an executor's sandbox, and their command lines.
    pub(crate) fn executor_processes(&self) -> Vec<(u32, String)> {
        let processes = processes_within(&self.folder).into_iter();
        processes.map(|(number, _, command)| (number, command)).collect()
    }

    /// Waits until no process of an executor is left.
    #[track_caller]
    pub(crate) fn assert_deserted(&self) {
        eventually(Duration::from_secs(20), "no process left in a sandbox", || {
            let left = self.executor_processes();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        let ended = self.programs.end();
        let failed = std::thread::panicking();
        if failed {
            println!("the cluster's logs are in {}", self.folder.display());
        } else {
            let _ = fs::remove_dir_all(&self.folder);
        }
        assert!(failed || ended.is_ok(), "the cluster doesn't end: {ended:?}");
    }
}

/// The processes whose working directory is within a folder: their numbers, those directories, and command lines.
pub(crate) fn processes_within(folder: &Path) -> Vec<(u32, PathBuf, String)> {
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let within = fs::read_link(format!("/proc/{number}/cwd")).ok()?;
        let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        within.starts_with(folder).then_some((number, within, command))
    });
    numbers.collect()
}

fn agent(i: u16) -> String {
    format!("agent-{i}")
}

/// The first of `count` consecutive ports that have no listener and were not given to another cluster of this process.
fn free_ports(count: u16) -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let room = PORTS.end - PORTS.start - count;
    // Another test process begins at another port.
    let begin = u16::try_from(std::process::id() % 997).unwrap() * 13;
    loop {
        let given = GIVEN.fetch_add(count, Ordering::Relaxed);
        let first = PORTS.start + begin.wrapping_add(given) % room;
        let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first..first + count).all(free) {
            return first;
        }
    }
}
