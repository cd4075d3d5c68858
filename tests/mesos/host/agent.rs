//! An agent of Mesos that a test speaks for, and a host of tasks that it has started: `offermill task-host`.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use offermill::mesos_v1::messages::executor::{
    Acknowledged, Call, CallType, Event, EventType, Kill, Launch, Subscribed,
};
use offermill::mesos_v1::messages::{
    Capability, CapabilityType, CommandInfo, FrameworkInfo, TaskInfo, TaskState, TaskStatus,
};
use prost::Message as _;
use tempfile::TempDir;

use crate::http::Message;

/// The longest wait for a call, and for the end of a host.
const PATIENCE: Duration = Duration::from_secs(60);
/// The id of hosts, and of their anchors.
pub(crate) const HOST: &str = "h-1";

/// An agent: calls arrive here. Those with updates are answered at once, by a status that can be set.
#[derive(Debug)]
pub(crate) struct FakeAgent {
    port: u16,
    /// Calls of subscriptions, with where their answers go.
    subscriptions: Receiver<(Call, TcpStream)>,
    /// All other calls.
    calls: Receiver<Call>,
    status: Arc<Mutex<&'static str>>,
}

/// A subscription that was answered.
#[derive(Debug)]
pub(crate) struct AgentStream {
    pub(crate) call: Call,
    stream: TcpStream,
}

/// A host of tasks. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct HostProcess {
    child: Child,
    sandbox: TempDir,
}

impl FakeAgent {
    pub(crate) fn start() -> FakeAgent {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (subscribed, subscriptions) = channel();
        let (called, calls) = channel();
        let status = Arc::new(Mutex::new("202 Accepted"));
        let answers = Arc::clone(&status);
        spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (subscribed, called) = (subscribed.clone(), called.clone());
                let answers = Arc::clone(&answers);
                spawn(move || serve(&connection, &subscribed, &called, &answers));
            }
        });
        FakeAgent { port, subscriptions, calls, status }
    }

    /// Answers all other calls than subscriptions by this status from now on.
    pub(crate) fn answer(&self, status: &'static str) {
        *self.status.lock().unwrap() = status;
    }

    /// Waits for a subscription, and answers it by these bytes.
    pub(crate) fn subscription(&self, answer: &[u8]) -> AgentStream {
        let (call, mut stream) = self.subscriptions.recv_timeout(PATIENCE).unwrap();
        stream.write_all(answer).unwrap();
        AgentStream { call, stream }
    }

    /// Waits for a subscription, and accepts it.
    pub(crate) fn accept(&self) -> AgentStream {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\
                     Transfer-Encoding: chunked\r\n\r\n";
        let mut stream = self.subscription(head);
        let killing = Capability { r#type: Some(CapabilityType::TaskKillingState.into()) };
        let framework_info =
            FrameworkInfo { capabilities: vec![killing], ..FrameworkInfo::default() };
        let subscribed = Some(Subscribed { framework_info });
        stream.send(EventType::Subscribed, Event { subscribed, ..Event::default() });
        stream
    }

    /// Waits for a call that is no subscription.
    pub(crate) fn call(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).unwrap()
    }

    /// Waits for the next update of this task, which must be of this state.
    #[track_caller]
    pub(crate) fn update(&self, task: &str, state: TaskState) -> TaskStatus {
        loop {
            let status = self.call().update.expect("an update").status;
            if status.task_id.value == task {
                assert_eq!(status.state(), state, "{status:?}");
                return status;
            }
        }
    }
}

/// Answers the calls of a connection, until one subscribes.
fn serve(
    connection: &TcpStream,
    subscribed: &Sender<(Call, TcpStream)>,
    called: &Sender<Call>,
    status: &Mutex<&'static str>,
) {
    let mut input = BufReader::new(connection);
    while let Ok(Some(request)) = Message::read_request(&mut input) {
        assert_eq!(request.start, "POST /slave(1)/api/v1/executor HTTP/1.1");
        assert_eq!(request.header("authorization"), Some("Bearer the-token"));
        let call = Call::decode(&*request.body).unwrap();
        if call.r#type() == CallType::Subscribe {
            let _ended = subscribed.send((call, connection.try_clone().unwrap()));
            return;
        }
        // Before the test can change it because of this call.
        let answer = format!("HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n", status.lock().unwrap());
        let _ended = called.send(call);
        let mut output = connection;
        if output.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

impl AgentStream {
    /// Sends an event of this type.
    pub(crate) fn send(&mut self, kind: EventType, event: Event) {
        let event = Event { r#type: Some(kind.into()), ..event };
        let event = event.encode_to_vec();
        self.send_bytes(&[format!("{}\n", event.len()).as_bytes(), &event].concat());
    }

    /// Sends a chunk with these bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.stream.write_all(&chunk).unwrap();
    }

    pub(crate) fn launch(&mut self, task: TaskInfo) {
        self.send(EventType::Launch, Event { launch: Some(Launch { task }), ..Event::default() });
    }

    pub(crate) fn kill(&mut self, task: &str) {
        let kill = Some(Kill { task_id: task.into(), kill_policy: None });
        self.send(EventType::Kill, Event { kill, ..Event::default() });
    }

    /// Waits for the next update of this task, which must be of this state, and acknowledges it.
    #[track_caller]
    pub(crate) fn expect(&mut self, agent: &FakeAgent, task: &str, state: TaskState) -> TaskStatus {
        let status = agent.update(task, state);
        self.acknowledge(&status);
        status
    }

    pub(crate) fn acknowledge(&mut self, status: &TaskStatus) {
        let (task_id, uuid) = (status.task_id.clone(), status.uuid.clone().unwrap());
        let acknowledged = Some(Acknowledged { task_id, uuid });
        self.send(EventType::Acknowledged, Event { acknowledged, ..Event::default() });
    }

    /// Ends the stream, as an agent does that ends.
    pub(crate) fn cut(self) {
        self.cut_in_place();
    }

    /// The same, of a stream that is kept.
    pub(crate) fn cut_in_place(&self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    /// The ids of the tasks, and of the tasks of updates, that the subscription carried.
    pub(crate) fn carried(&self) -> (Vec<&str>, Vec<(&str, TaskState)>) {
        let carried = self.call.subscribe.as_ref().unwrap();
        let tasks = carried.unacknowledged_tasks.iter().map(|task| task.task_id.value.as_str());
        let updates = carried.unacknowledged_updates.iter();
        let updates =
            updates.map(|it| (it.status.task_id.value.as_str(), it.status.state())).collect();
        (tasks.collect(), updates)
    }
}

/// A task that runs a line of shell.
pub(crate) fn shell(id: &str, line: &str) -> TaskInfo {
    let command = CommandInfo { value: Some(line.to_owned()), ..CommandInfo::default() };
    let data = Some(command.encode_to_vec());
    TaskInfo { task_id: id.into(), data, ..TaskInfo::default() }
}

impl HostProcess {
    /// Starts a host of this agent, whose environment has these variables besides.
    pub(crate) fn start(agent: &FakeAgent, variables: &[(&str, &str)]) -> HostProcess {
        HostProcess::start_by(&[], agent, variables)
    }

    /// Starts it by another program, which is at the head of its command.
    pub(crate) fn start_by(
        starter: &[&str],
        agent: &FakeAgent,
        variables: &[(&str, &str)],
    ) -> HostProcess {
        let sandbox = TempDir::new().unwrap();
        fs::write(sandbox.path().join("fetched"), "from a URI").unwrap();
        let address = format!("slave(1)@127.0.0.1:{}", agent.port);
        let argv: Vec<&str> =
            starter.iter().copied().chain([env!("CARGO_BIN_EXE_offermill"), "task-host"]).collect();
        let child = Command::new(argv[0])
            .args(&argv[1..])
            .env("MESOS_FRAMEWORK_ID", "F-1")
            .env("MESOS_EXECUTOR_ID", HOST)
            .env("MESOS_SLAVE_PID", address)
            .env("MESOS_DIRECTORY", sandbox.path())
            .env("MESOS_CHECKPOINT", "1")
            .env("MESOS_SUBSCRIPTION_BACKOFF_MAX", "100ms")
            .env("MESOS_EXECUTOR_AUTHENTICATION_TOKEN", "the-token")
            .envs(variables.iter().copied())
            .current_dir(sandbox.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        HostProcess { child, sandbox }
    }

    /// What a task has printed.
    pub(crate) fn output(&self, task: &str) -> String {
        fs::read_to_string(self.sandbox.path().join("tasks").join(task).join("stdout")).unwrap()
    }

    /// Whether a task has a folder, which is made before it begins.
    pub(crate) fn has_begun(&self, task: &str) -> bool {
        self.sandbox.path().join("tasks").join(task).exists()
    }

    /// Waits for its end. Returns its exit code, and what it has said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let give_up = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > give_up => panic!("the host doesn't end"),
                None => sleep(Duration::from_millis(10)),
            }
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
