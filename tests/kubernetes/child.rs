//! Runs as programs of their own, which are killed by SIGKILL.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use offermill::cluster::kubernetes::{ApiServer, KubernetesConfig, PodsAtEnd, Secret};

use crate::framework::settings;
use crate::run::Run;

/// What a run is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildSettings {
    pub(crate) url: String,
    pub(crate) namespace: String,
    pub(crate) token: String,
    /// The file with the certificates of the authorities; empty if there is none.
    pub(crate) authorities: String,
    pub(crate) name: String,
    pub(crate) executors: u32,
    /// Whether executors that finish aren't replaced.
    pub(crate) counts_down: bool,
}

/// A run in a process of its own. Dropping it kills the process.
pub(crate) struct Child {
    process: std::process::Child,
    said: BufReader<ChildStdout>,
}

/// The variables with what a run is told.
const VARIABLES: [&str; 8] = [
    "CHILD_URL",
    "CHILD_NAMESPACE",
    "CHILD_TOKEN",
    "CHILD_AUTHORITIES",
    "CHILD_NAME",
    "CHILD_EXECUTORS",
    "CHILD_COUNTS_DOWN",
    "CHILD_RUN",
];

impl Child {
    pub(crate) fn start(settings: &ChildSettings, run: u64) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "child::runs_until_it_is_killed"]);
        let ChildSettings { url, namespace, token, authorities, name, .. } = settings.clone();
        let (executors, counts_down) = (settings.executors.to_string(), settings.counts_down);
        let (counts_down, run) = (counts_down.to_string(), run.to_string());
        let values = [url, namespace, token, authorities, name, executors, counts_down, run];
        command.envs(VARIABLES.into_iter().zip(values));
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Child { process, said }
    }

    /// Waits until it says this. Returns the numbers that follow.
    #[track_caller]
    pub(crate) fn wait_said(&mut self, what: &str) -> Vec<u64> {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.said.read_line(&mut line).unwrap() > 0,
                "it ended before it said {what:?}"
            );
            if let Some((_, numbers)) = line.split_once(&format!("child: {what}")) {
                return numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            }
        }
    }

    /// Stops it by SIGSTOP: it does nothing more until it is killed.
    pub(crate) fn pause(&self) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    }

    /// Kills it by SIGKILL, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// The resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The program: keeps its executors until it is killed, and says when it knows all of them and when all run, after how
/// many milliseconds, and how many KiB it takes then. It fails if it ends.
#[test]
#[ignore = "a part of other tests"]
fn runs_until_it_is_killed() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let [url, namespace, token, authorities, name, executors, counts_down, run] =
        VARIABLES.map(variable);
    if url.is_empty() {
        println!("started by other tests only");
        return;
    }
    let began = Instant::now();
    let (executors, run) = (executors.parse::<u32>().unwrap(), run.parse::<u64>().unwrap());
    let token = Some(token).filter(|it| !it.is_empty()).map(Secret::new);
    let authorities =
        Some(authorities).filter(|it| !it.is_empty()).map(|it| std::fs::read(it).unwrap());
    let server = ApiServer::Url { url, token, token_file: None, authorities, key_pair: None };
    let mut config = KubernetesConfig::new(name)
        .with_api_server(server)
        .with_namespace(namespace)
        .with_image("hollow/worker:1")
        .with_at_end(PodsAtEnd::Leave)
        .with_lease_duration(Duration::from_secs(4));
    config.request_timeout = Duration::from_secs(3);
    let run = Run::start(config, settings(executors), run, counts_down == "true");
    let kernel = run.engine.kernel();
    let say = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(run.engine.broken().is_none());
            std::thread::sleep(Duration::from_millis(2));
        }
        println!("child: {what} {} {}", began.elapsed().as_millis(), resident());
    };
    let executors = executors as usize;
    say("knows", &|| kernel.totals().executors as usize == executors);
    say("runs", &|| run.executors(offermill::Phase::Running).len() == executors);
    loop {
        assert!(run.engine.broken().is_none());
        std::thread::sleep(Duration::from_secs(1));
    }
}
