//! Hosts of tasks on Mesos, `offermill task-host`, against an agent that the tests speak for: faults that a real one
//! doesn't have on request.

mod agent;

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::{AgentStream, FakeAgent, HOST, HostProcess, shell};
use offermill::mesos_v1::messages::executor::{Error, Event, EventType, FrameworkMessage};
use offermill::mesos_v1::messages::{Reason, TaskInfo, TaskState};

/// A host whose anchor runs, which the agent has acknowledged.
fn running_host(variables: &[(&str, &str)]) -> (FakeAgent, HostProcess, AgentStream) {
    running_host_by(&[], variables)
}

/// The same, started by another program.
fn running_host_by(
    starter: &[&str],
    variables: &[(&str, &str)],
) -> (FakeAgent, HostProcess, AgentStream) {
    let agent = FakeAgent::start();
    let host = HostProcess::start_by(starter, &agent, variables);
    let mut stream = agent.accept();
    assert_eq!(stream.carried(), (vec![], vec![]));
    stream.launch(TaskInfo { task_id: HOST.into(), ..TaskInfo::default() });
    stream.expect(&agent, HOST, TaskState::Running);
    (agent, host, stream)
}

/// Starts a task that runs until it is killed, and returns the number of its process.
fn long_task(agent: &FakeAgent, stream: &mut AgentStream, id: &str) -> u32 {
    stream.launch(shell(id, "exec sleep 600"));
    let running = stream.expect(agent, id, TaskState::Running);
    let labels = running.labels.unwrap().labels;
    let pid = labels.iter().find(|label| label.key == "offermill.pid").unwrap();
    pid.value.as_ref().unwrap().parse().unwrap()
}

/// Waits until a process has ended.
fn wait_for_end(pid: u32) {
    let give_up = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let found = Command::new("kill").args(["-0", &pid.to_string()]).output().unwrap();
        found.status.success()
    };
    while is_there() {
        assert!(Instant::now() < give_up, "process {pid} doesn't end");
        sleep(Duration::from_millis(20));
    }
}

/// Goal: tasks run as they would without a host, and each end is reported with its cause; a message is answered by what
/// runs; the host ends with its anchor. Method: a task that prints what it finds, one that fails, one that is killed,
/// one that isn't a command, and one that the host's end takes with it.
#[test]
fn tasks_run_in_a_host() {
    let (agent, host, mut stream) = running_host(&[]);
    let look = "cat fetched; echo; pwd -P; echo ${MESOS_EXECUTOR_AUTHENTICATION_TOKEN:-none}";
    stream.launch(shell("good", look));
    let running = stream.expect(&agent, "good", TaskState::Running);
    assert_eq!(running.executor_id.unwrap().value, HOST);
    let finished = stream.expect(&agent, "good", TaskState::Finished);
    assert_eq!(finished.message.as_deref(), Some("Command exited with status 0"));
    let output = host.output("good");
    let lines: Vec<&str> = output.lines().collect();
    assert!(matches!(lines[..], ["from a URI", folder, "none"] if folder.ends_with("/tasks/good")));
    stream.launch(shell("bad", "exit 7"));
    stream.expect(&agent, "bad", TaskState::Running);
    let failed = stream.expect(&agent, "bad", TaskState::Failed);
    assert_eq!(failed.message.as_deref(), Some("Command exited with status 7"));
    assert_eq!(failed.reason, None);
    stream.launch(TaskInfo { task_id: "nonsense".into(), ..TaskInfo::default() });
    stream.expect(&agent, "nonsense", TaskState::Error);

    let pid = long_task(&agent, &mut stream, "long");
    let message = Some(FrameworkMessage { data: b"?".to_vec() });
    stream.send(EventType::Message, Event { message, ..Event::default() });
    let answer = String::from_utf8(agent.call().message.unwrap().data).unwrap();
    assert!(answer.contains("\"long\"") && answer.contains(&pid.to_string()), "{answer}");
    stream.kill("long");
    stream.expect(&agent, "long", TaskState::Killing);
    stream.expect(&agent, "long", TaskState::Killed);
    stream.kill("unknown");

    let last = long_task(&agent, &mut stream, "last");
    stream.kill(HOST);
    let lost = stream.expect(&agent, "last", TaskState::Failed);
    assert_eq!(lost.reason(), Reason::ExecutorTerminated);
    wait_for_end(last);
    agent.update(HOST, TaskState::Killed);
    // The host waits until that is acknowledged.
    let mut again = reconnect(&agent, stream);
    assert_eq!(again.carried(), (vec![], vec![(HOST, TaskState::Killed)]));
    let carried = again.call.subscribe.clone().unwrap().unacknowledged_updates;
    again.acknowledge(&carried[0].status);
    assert_eq!(host.end().0, Some(0));
}

/// Goal: no task begins before the agent is known to have heard of its host: if the host were killed before, the
/// framework would believe that nothing of the task had run. What is killed until then is reported, and never begins.
/// Method: an agent that launches tasks, kills one and is away before it acknowledges the anchor's update.
#[test]
fn tasks_wait_until_the_agent_knows_their_host() {
    let agent = FakeAgent::start();
    let host = HostProcess::start(&agent, &[]);
    let mut stream = agent.accept();
    stream.launch(TaskInfo { task_id: HOST.into(), ..TaskInfo::default() });
    stream.launch(shell("killed", "exec sleep 600"));
    stream.launch(shell("good", "true"));
    stream.kill("killed");
    agent.update(HOST, TaskState::Running);
    agent.update("killed", TaskState::Killed);
    let mut stream = reconnect(&agent, stream);
    let (tasks, updates) = stream.carried();
    assert_eq!(tasks, [HOST, "killed", "good"]);
    assert_eq!(updates, [(HOST, TaskState::Running), ("killed", TaskState::Killed)]);
    sleep(Duration::from_millis(500));
    assert!(!host.has_begun("killed") && !host.has_begun("good"));
    let carried = stream.call.subscribe.clone().unwrap().unacknowledged_updates;
    carried.iter().for_each(|update| stream.acknowledge(&update.status));
    stream.expect(&agent, "good", TaskState::Running);
    stream.expect(&agent, "good", TaskState::Finished);
    assert!(host.has_begun("good") && !host.has_begun("killed"));
    stream.kill(HOST);
    stream.expect(&agent, HOST, TaskState::Killed);
    assert_eq!(host.end().0, Some(0));
}

/// Ends a subscription, and waits for the next one.
fn reconnect(agent: &FakeAgent, stream: AgentStream) -> AgentStream {
    stream.cut();
    agent.accept()
}

/// Goal: tasks go on while their agent is away; what becomes of them meanwhile is reported once it is back, and what it
/// has acknowledged isn't repeated. Method: a stream that ends, an answer that the agent isn't ready, and updates of
/// which some are acknowledged.
#[test]
fn a_host_outlives_the_agents_restart() {
    let (agent, host, mut stream) = running_host(&[]);
    stream.launch(shell("known", "exec sleep 600"));
    stream.expect(&agent, "known", TaskState::Running);
    stream.launch(shell("ends", "sleep 1; exit 4"));
    agent.update("ends", TaskState::Running);
    stream.cut();
    for answer in ["503 Service Unavailable", "404 Not Found", "403 Forbidden"] {
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
        agent.subscription(answer.as_bytes());
    }
    sleep(Duration::from_millis(1500));
    let mut stream = agent.accept();
    while stream.carried().1.len() < 2 {
        // The task had not ended yet.
        stream = reconnect(&agent, stream);
    }
    let states = vec![("ends", TaskState::Running), ("ends", TaskState::Failed)];
    assert_eq!(stream.carried(), (vec!["ends"], states));
    for update in stream.call.subscribe.clone().unwrap().unacknowledged_updates {
        stream.acknowledge(&update.status);
    }
    stream.send(EventType::Shutdown, Event::default());
    stream.expect(&agent, "known", TaskState::Failed);
    stream.expect(&agent, HOST, TaskState::Killed);
    assert_eq!(host.end().0, Some(0));
}

/// Goal: an update that isn't acknowledged, or that the agent can't take now, is sent again, and none overtakes it.
/// Method: an agent that answers 503 to an update, and then forgets to acknowledge it.
#[test]
fn updates_are_sent_until_they_are_acknowledged() {
    let (agent, _host, mut stream) = running_host(&[]);
    agent.answer("503 Service Unavailable");
    stream.launch(shell("t", "true"));
    let first = agent.update("t", TaskState::Running);
    assert_eq!(agent.update("t", TaskState::Running), first);
    agent.answer("202 Accepted");
    let mut next = agent.call().update.unwrap().status;
    while next == first {
        next = agent.call().update.unwrap().status;
    }
    assert_eq!(next.state(), TaskState::Finished);
    // Ten seconds later, as with Mesos' own executors.
    assert_eq!(agent.update("t", TaskState::Running), first);
    assert_eq!(agent.update("t", TaskState::Finished), next);
}

/// Goal: a host that can't go on ends its tasks and itself, and says why. Method: nonsense in several places, ERROR, a
/// refused call, an agent that stays away, one that never answers, and one whose framework doesn't checkpoint.
#[test]
fn a_host_that_cannot_go_on_ends_its_tasks() {
    type Fault = fn(&FakeAgent, &mut AgentStream);
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let short = [("MESOS_RECOVERY_TIMEOUT", "1secs")];
    let plain = [("MESOS_CHECKPOINT", "0")];
    let cases: [(Variables<'_>, Fault, &str); 7] = [
        (&[], |_, stream| stream.send_bytes(b"3\n\xff\xff\xff"), "the agent sent nonsense"),
        (&short, |_, stream| stream.send_bytes(b"many\n"), "the agent sent an invalid record"),
        (
            &[],
            |_, stream| stream.send(EventType::Launch, Event::default()),
            "the agent sent LAUNCH without its content",
        ),
        (
            &[],
            |_, stream| {
                let error = Some(Error { message: "what was\nthat?".to_owned() });
                stream.send(EventType::Error, Event { error, ..Event::default() });
            },
            "the agent sent ERROR: what was",
        ),
        (
            &[],
            |agent, stream| {
                agent.answer("400 Bad Request");
                stream.launch(shell("t", "true"));
            },
            "the agent refused a call: 400 Bad Request",
        ),
        (&short, |_, stream| stream.cut_in_place(), "hasn't come back within 1 s"),
        (&plain, |_, stream| stream.cut_in_place(), "the framework doesn't checkpoint"),
    ];
    for (variables, fault, sentence) in cases {
        let (agent, host, mut stream) = running_host(variables);
        let pid = long_task(&agent, &mut stream, "long");
        fault(&agent, &mut stream);
        // An agent that is away takes no subscription.
        let (code, said) = host.end();
        assert!(said.contains(sentence), "{sentence}: {said}");
        assert_eq!(code, Some(2), "{said}");
        wait_for_end(pid);
    }
}

/// Goal: a host that its agent refuses, or whose first event is another one, doesn't run. Method: such answers.
#[test]
fn a_host_that_is_refused_ends() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (answer, sentence) in [
        (
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nwrong".to_owned(),
            "400 Bad Request: wrong",
        ),
        (
            format!("{head}4\r\n2\n\x08\x07\r\n"),
            "the agent's first event is SHUTDOWN, not SUBSCRIBED",
        ),
        (format!("{head}4\r\n2\nab\r\n"), "the agent sent nonsense"),
    ] {
        let agent = FakeAgent::start();
        let host = HostProcess::start(&agent, &[]);
        let _stream = agent.subscription(answer.as_bytes());
        let (code, said) = host.end();
        assert!(code == Some(2) && said.contains(sentence), "{sentence}: {said}");
    }
    let agent = FakeAgent::start();
    let (code, said) = HostProcess::start(&agent, &[("MESOS_SLAVE_PID", "nobody")]).end();
    assert!(code == Some(2) && said.contains("names no agent"), "{said}");
}

/// Goal: a host whose standard error can't be written, since its disk is full, goes on, and ends when it must. Method:
/// one whose agent never comes, with a standard error that is always full.
#[test]
#[cfg(target_os = "linux")]
fn a_host_outlives_a_full_disk() {
    let sandbox = tempfile::TempDir::new().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut host = Command::new(env!("CARGO_BIN_EXE_offermill"))
        .arg("task-host")
        .env("MESOS_FRAMEWORK_ID", "F-1")
        .env("MESOS_EXECUTOR_ID", "h-1")
        .env("MESOS_SLAVE_PID", "slave(1)@127.0.0.1:1")
        .env("MESOS_DIRECTORY", sandbox.path())
        .env("MESOS_CHECKPOINT", "1")
        .env("MESOS_SUBSCRIPTION_BACKOFF_MAX", "100ms")
        .env("MESOS_RECOVERY_TIMEOUT", "1secs")
        .current_dir(sandbox.path())
        .stdin(std::process::Stdio::null())
        .stderr(full)
        .spawn()
        .unwrap();
    let give_up = Instant::now() + Duration::from_secs(20);
    while host.try_wait().unwrap().is_none() {
        if Instant::now() > give_up {
            host.kill().unwrap();
            host.wait().unwrap();
            panic!("the host neither speaks with its agent nor ends");
        }
        sleep(Duration::from_millis(20));
    }
}

/// Goal: a host that is the first process of a container reaps what its tasks leave. Method: such a host, a task that
/// leaves a process in its group, and one that ends once it sees no process that waits to be reaped.
#[test]
#[ignore = "needs root"]
fn as_root_a_host_reaps_what_tasks_leave() {
    let container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let (agent, _host, mut stream) = running_host_by(&container, &[]);
    stream.launch(shell("leaves", "sleep 1000 & exit 0"));
    stream.expect(&agent, "leaves", TaskState::Running);
    stream.expect(&agent, "leaves", TaskState::Finished);
    let looks = "while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.05; done";
    stream.launch(shell("looks", looks));
    stream.expect(&agent, "looks", TaskState::Running);
    stream.expect(&agent, "looks", TaskState::Finished);
}
