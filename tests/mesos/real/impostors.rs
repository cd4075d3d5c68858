//! Programs that speak as executors of a run to the agents' executor API. By default agents take that from any
//! program that reaches their port.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::cluster::{RealCluster, Setup};
use super::eventually;
use super::program::{Ended, Program};
use super::task_file::{last_results, log, results};
use super::task_hosts::hosts_of;
use crate::http::post_json;

/// The tasks: as many as two agents have room for.
const TASKS: usize = 6;
const RESOURCES: &str = "cpus:4.2;mem:4096;disk:20000;ports:[31000-32000]";
/// What an executor may report of a task.
const STATES: [&str; 6] =
    ["TASK_RUNNING", "TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_LOST", "TASK_ERROR"];
const PATIENCE: Duration = Duration::from_secs(60);
const PATH: &str = "/slave(1)/api/v1/executor";

/// A host of the run, as the master knows it.
#[derive(Clone, Debug)]
struct Host {
    port: u16,
    agent_id: String,
    framework: String,
    executor: String,
    /// The ids of its tasks, without the anchor.
    tasks: Vec<String>,
}

impl Host {
    /// Sends its agent a call in its name. Returns the first line of the answer.
    fn call(&self, kind: &str, field: &str, content: Value) -> String {
        post_json(self.port, PATH, &self.body(kind, field, content)).unwrap()
    }

    fn body(&self, kind: &str, field: &str, content: Value) -> Value {
        json!({"framework_id": {"value": self.framework}, "executor_id": {"value": self.executor},
            "type": kind, field: content})
    }

    fn message(&self, data: &[u8]) -> String {
        self.call("MESSAGE", "message", json!({"data": BASE64.encode(data)}))
    }

    /// Reports a task.
    fn update(&self, number: u8, task: &str, state: &str) -> String {
        // Agents take no other UUIDs than those of a known version.
        let mut uuid = [number; 16];
        (uuid[6], uuid[8]) = (0x40, 0x80);
        let status = json!({"task_id": {"value": task}, "agent_id": {"value": self.agent_id},
            "executor_id": {"value": self.executor}, "state": state, "source": "SOURCE_EXECUTOR",
            "uuid": BASE64.encode(uuid), "message": "told by an impostor"});
        self.call("UPDATE", "update", json!({"status": status}))
    }

    /// Subscribes, by which the agent ends the host's own subscription.
    fn subscribe(&self) -> TcpStream {
        let body = self.body("SUBSCRIBE", "subscribe", json!({})).to_string();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }
}

/// Starts tasks of a core each, in hosts: they write their ids to a log, and run a line in which `{}` is the cluster's
/// folder.
fn start(cluster: &RealCluster, line: &str, flags: &[&str]) -> Program {
    let folder = cluster.folder().to_str().unwrap();
    let line = line.replace("{}", folder);
    let command = format!("echo $OFFERMILL_TASK_ID >> {folder}/log; {line}");
    let tasks = (0..TASKS).map(|i| json!({"id": format!("task-{i}"), "command": command}));
    let tasks: String = tasks.map(|task| format!("{task}\n")).collect();
    fs::write(cluster.folder().join("tasks"), tasks).unwrap();
    let small = ["--tasks", "tasks", "--task-memory", "32m", "--task-cores", "1", "--task-hosts"];
    Program::run(cluster, &[&small[..], flags].concat())
}

/// The hosts of a framework, once all tasks run in them.
fn hosts(cluster: &RealCluster, framework: &str) -> Vec<Host> {
    eventually(PATIENCE, "all tasks run", || {
        let state = cluster.look("/state");
        let mut all = state["frameworks"].as_array().unwrap().iter();
        let own = all.find(|it| it["id"] == framework).ok_or("no framework")?;
        let mut hosts: BTreeMap<&str, Host> = BTreeMap::new();
        for task in own["tasks"].as_array().unwrap() {
            if task["state"] != "TASK_RUNNING" {
                return Err(own["tasks"].to_string());
            }
            let agent_id = task["slave_id"].as_str().unwrap();
            let mut agents = state["slaves"].as_array().unwrap().iter();
            let agent = agents.find(|it| it["id"] == agent_id).unwrap();
            let number: u16 =
                agent["hostname"].as_str().unwrap()["agent-".len()..].parse().unwrap();
            let (id, executor) =
                (task["id"].as_str().unwrap(), task["executor_id"].as_str().unwrap());
            let host = hosts.entry(agent_id).or_insert_with(|| Host {
                port: cluster.port() + 1 + number,
                agent_id: agent_id.to_owned(),
                framework: framework.to_owned(),
                executor: executor.to_owned(),
                tasks: Vec::new(),
            });
            if id != executor {
                host.tasks.push(id.to_owned());
            }
        }
        let running: usize = hosts.values().map(|host| host.tasks.len()).sum();
        if running == TASKS {
            Ok(hosts.into_values().collect())
        } else {
            Err(own["tasks"].to_string())
        }
    })
}

/// Waits until the impostor's subscription has ended, after its first event.
#[track_caller]
fn wait_for_end(mut stream: TcpStream) {
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    while !heard.ends_with(b"\r\n0\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(length @ 1..) => heard.extend_from_slice(&piece[..length]),
            end => panic!("{end:?} after {}", String::from_utf8_lossy(&heard)),
        }
    }
    assert!(String::from_utf8_lossy(&heard).contains("\"SUBSCRIBED\""));
}

/// Asserts that each task has run once, and that nothing is left.
#[track_caller]
fn assert_each_ran_once(cluster: &RealCluster, ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}", ended.told());
    let log = log(cluster);
    assert!(
        log.len() == TASKS && log.values().all(|begun| *begun == 1),
        "{log:?} {}",
        ended.told()
    );
    let succeeded = results(cluster).iter().filter(|line| line["state"] == "succeeded").count();
    assert_eq!((succeeded, last_results(cluster).len()), (TASKS, TASKS), "{}", ended.told());
    cluster.assert_deserted();
}

/// Goal: a program that speaks as an executor of a run changes nothing about tasks that are not this executor's, and
/// ends none; the run reports tasks that it doesn't have, and agents that report another agent's. Method: tasks that
/// wait in hosts on two agents. Calls as an executor that isn't there, which the agent refuses; as a host, data that
/// are nonsense, empty, or large, and updates to each state of tasks that no host ever got, and of tasks of the other
/// agent; a second subscription, which ends the host's until it subscribes again. Then the tasks may end.
#[test]
#[ignore = "needs a real Mesos"]
fn impostors_change_nothing() {
    let cluster = RealCluster::start(Setup { agents: 2, resources: RESOURCES, ..Setup::default() });
    let mut program = start(&cluster, "until [ -e {}/go ]; do sleep 0.1; done", &[]);
    let framework = program.registered();
    let hosts = hosts(&cluster, &framework);
    let [first, second] = &hosts[..] else { panic!("{hosts:#?}") };
    let agents = ["agent-0", "agent-1"];
    let processes = agents.map(|agent| hosts_of(&cluster, agent));

    let refused = "HTTP/1.1 400 Bad Request";
    let nobody = Host { executor: "nobody".to_owned(), ..first.clone() };
    let stranger = Host { framework: "nobody".to_owned(), ..first.clone() };
    for host in [nobody, stranger] {
        assert_eq!(host.message(b"?"), refused);
        assert_eq!(host.update(1, &first.tasks[0], "TASK_FINISHED"), refused);
    }
    let taken = "HTTP/1.1 202 Accepted";
    let control: Vec<u8> = (0..=255).collect();
    for data in [&b""[..], &vec![0xff; 1 << 20], br#"{"tasks":[{"task":1}]}"#, &control] {
        assert_eq!(first.message(data), taken);
    }
    for (number, state) in (1..).zip(STATES) {
        assert_eq!(first.update(number, &format!("unknown-{number}"), state), taken);
        assert_eq!(first.update(number + 100, &second.tasks[0], state), taken);
    }
    let (agent, task) = (&first.agent_id, &second.tasks[0]);
    // In whichever order they come.
    let reports = RefCell::new(BTreeSet::from([
        format!(
            "executor unknown-1 on agent {agent}, which this framework doesn't have, is reported to run, and is killed"
        ),
        format!(
            "an update was ignored: agent {agent} reported executor {task}, which is on agent {}",
            second.agent_id
        ),
    ]));
    program.event("reports", |event| {
        reports.borrow_mut().remove(event["why"].as_str().unwrap_or_default());
        reports.borrow().is_empty()
    });
    wait_for_end(first.subscribe());
    assert_eq!(agents.map(|agent| hosts_of(&cluster, agent)), processes);
    let last = last_results(&cluster);
    assert!(last.values().all(|line| line["state"] == "started"), "{last:#?}");

    fs::write(cluster.folder().join("go"), "").unwrap();
    let ended = program.end();
    assert_each_ran_once(&cluster, &ended);
    assert_eq!(results(&cluster).len(), 2 * TASKS, "{}", ended.told());
}

/// An executor in place of a host: it tells that its anchor runs, sends nonsense, tells ends of tasks that it never
/// got, and ends without a word about those that it has. Hosts that start later are hosts.
const IMPOSTOR: &str = r#"#!/usr/bin/env python3
import base64, http.client, json, os, sys, uuid

try:
    os.close(os.open(sys.argv[0] + ".first", os.O_CREAT | os.O_EXCL))
except FileExistsError:
    os.execv("OFFERMILL", ["OFFERMILL", "task-host"])
name, address = os.environ["MESOS_SLAVE_PID"].split("@")
executor, agent = os.environ["MESOS_EXECUTOR_ID"], os.environ["MESOS_SLAVE_ID"]


def call(kind, **content):
    body = {"framework_id": {"value": os.environ["MESOS_FRAMEWORK_ID"]}, "executor_id": {"value": executor}}
    connection = http.client.HTTPConnection(address)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    connection.request("POST", f"/{name}/api/v1/executor", json.dumps({**body, "type": kind, **content}), headers)
    return connection.getresponse()


def update(task, state):
    status = {"task_id": {"value": task}, "agent_id": {"value": agent}, "executor_id": {"value": executor}}
    status |= {"state": state, "source": "SOURCE_EXECUTOR", "uuid": base64.b64encode(uuid.uuid4().bytes).decode()}
    call("UPDATE", update={"status": status})


events, tasks = call("SUBSCRIBE", subscribe={}), set()
while True:
    event = json.loads(events.read(int(events.readline())))
    if event["type"] == "LAUNCH":
        tasks.add(event["launch"]["task"]["task_id"]["value"])
        if executor in tasks and len(tasks) == 2:
            update(executor, "TASK_RUNNING")
    elif event["type"] == "ACKNOWLEDGED":
        break
call("MESSAGE", message={"data": base64.b64encode(bytes(range(256))).decode()})
for state in ["TASK_FINISHED", "TASK_FAILED", "TASK_RUNNING"]:
    update("never-" + state, state)
"#;

/// Goal: tasks that were given to an executor which is no host are lost, and run in another one; what it says of tasks
/// that it never got is no task's. Method: hosts that run a script, which is an impostor the first time.
#[test]
#[ignore = "needs a real Mesos"]
fn an_impostor_in_place_of_a_host_loses_no_task() {
    let cluster = RealCluster::start(Setup { agents: 1, resources: RESOURCES, ..Setup::default() });
    let script = cluster.folder().join("host");
    fs::write(&script, IMPOSTOR.replace("OFFERMILL", env!("CARGO_BIN_EXE_offermill"))).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let program = start(&cluster, "sleep 0.1", &["--host-program", script.to_str().unwrap()]);
    let ended = program.end();
    assert!(cluster.folder().join("host.first").exists());
    assert_each_ran_once(&cluster, &ended);
    let lost = results(&cluster).iter().filter(|line| line["state"] == "lost").count();
    assert!(lost >= 1, "{}", ended.told());
    let report = "executor never-TASK_RUNNING on agent ";
    let is_told = |event: &Value| event["why"].as_str().is_some_and(|why| why.starts_with(report));
    assert!(ended.named("call_failed").any(is_told), "{}", ended.told());
}
