//! Tests of `offermill master`, with `offermill run` as its framework and workers that these tests speak by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use offermill::mesos_v1::record_io::RecordReader;
use serde_json::{Value, json};

use crate::support::{Folder, Run, finish, small};

/// A timeout far beyond the duration of any test, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A master on a free port.
pub(crate) struct RunningMaster {
    pub(crate) run: Run,
    pub(crate) port: String,
    sentence: String,
}

impl RunningMaster {
    pub(crate) fn start(folder: &Folder, listen: &str, flags: &[&str]) -> RunningMaster {
        let master = ["master", "--listen", listen, "--state-dir", "master"];
        RunningMaster::watch(Run::start(folder, &[&master[..], flags].concat()))
    }

    /// Waits until a master listens.
    pub(crate) fn watch(run: Run) -> RunningMaster {
        RunningMaster::watch_for(run, "listens at")
    }

    /// Waits for the sentence of a master that ends with its address.
    pub(crate) fn watch_for(mut run: Run, words: &str) -> RunningMaster {
        let sentence = run.line(|line| line.contains(words));
        let sentence = sentence.split(": ").next().unwrap().to_owned();
        let port = sentence.rsplit(':').next().unwrap().to_owned();
        RunningMaster { run, port, sentence }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request on a connection of its own. Returns the status and the rest of the answer.
    pub(crate) fn ask(&self, request: &str) -> (u16, String) {
        let answer = self.whole_answer(request);
        let status = answer.split(' ').nth(1).unwrap_or_default().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Sends a request on a connection of its own. Returns the whole answer, which the connection's end ends.
    pub(crate) fn whole_answer(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _cut = stream.read_to_string(&mut answer);
        answer
    }

    pub(crate) fn state(&self) -> Value {
        let get = "GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let state: Value = serde_json::from_str(&self.ask(get).1).unwrap();
        state["counts"].clone()
    }

    /// The flags of a run on this master.
    fn flags(&self) -> [String; 4] {
        let master = format!("offermill://127.0.0.1:{}", self.port);
        let user = "offermill.mesos.user=nobody".to_owned();
        ["--master".to_owned(), master, "-c".to_owned(), user]
    }
}

/// A worker that the test speaks.
pub(crate) struct HandWorker {
    stream: BufReader<TcpStream>,
    records: RecordReader,
    updates: u32,
    /// What was heard before it was waited for.
    heard: Vec<Value>,
}

impl HandWorker {
    /// Connects, subscribes, and reads the head of the answer.
    pub(crate) fn connect(master: &RunningMaster, subscribe: &Value, header: &str) -> HandWorker {
        let mut worker = HandWorker::open(master, subscribe, header);
        assert_eq!(worker.status(), 200);
        worker
    }

    fn open(master: &RunningMaster, subscribe: &Value, header: &str) -> HandWorker {
        let mut stream = master.connect();
        let head = format!(
            "POST /api/v1/worker HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{header}\
             transfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let records = RecordReader::new(1 << 20);
        let mut worker =
            HandWorker { stream: BufReader::new(stream), records, updates: 0, heard: Vec::new() };
        worker.say(subscribe);
        worker
    }

    /// Reads the head of the answer, and returns its status.
    fn status(&mut self) -> u16 {
        let first = self.line();
        while !self.line().is_empty() {}
        first.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self, message: &Value) {
        let text = message.to_string();
        let record = format!("{}\n{text}", text.len());
        let chunk = format!("{:x}\r\n{record}\r\n", record.len());
        self.stream.get_mut().write_all(chunk.as_bytes()).unwrap();
    }

    /// The next message but heartbeats.
    fn hear(&mut self) -> Value {
        loop {
            if let Some(record) = self.records.next() {
                let message: Value = serde_json::from_slice(&record.unwrap()).unwrap();
                if message["type"] != "HEARTBEAT" {
                    return message;
                }
                continue;
            }
            let length = usize::from_str_radix(&self.line(), 16).unwrap();
            assert!(length > 0, "the master has ended the stream");
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            self.records.push(&chunk[..length]);
        }
    }

    /// The next message of this type. Others are kept for later: acknowledgements and launches may overtake each other.
    pub(crate) fn hear_a(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|message| message["type"] == kind) {
                return self.heard.remove(at);
            }
            let message = self.hear();
            self.heard.push(message);
        }
    }

    /// What was heard and not waited for.
    pub(crate) fn unasked(&self) -> &[Value] {
        &self.heard
    }

    /// Reports a state of the executor that was launched, and waits for the acknowledgement.
    pub(crate) fn report(&mut self, launch: &Value, state: &str) {
        let uuid = self.update(launch, state);
        let ack = self.hear_a("ACK");
        assert_eq!((&ack["executor"], &ack["uuid"]), (&launch["executor"], &json!(uuid)));
    }

    /// Reports a state of the executor that was launched. Returns the update's id.
    pub(crate) fn update(&mut self, launch: &Value, state: &str) -> String {
        self.updates += 1;
        let uuid = format!("{:032x}", self.updates);
        self.say(&json!({
            "type": "UPDATE", "framework": launch["framework"], "executor": launch["executor"],
            "uuid": uuid, "state": state, "timestamp": 1.5, "pid": 77,
        }));
        uuid
    }
}

/// A worker's first message, with two cores.
pub(crate) fn subscribe() -> Value {
    json!({
        "type": "SUBSCRIBE", "session": "s1", "hostname": "h1", "address": "h1",
        "resources": {"cpus": 2, "mem": 64, "ports": [[31000, 31009]]},
        "attributes": [{"name": "zone", "value": "east"}],
    })
}

pub(crate) fn start_run(
    folder: &Folder,
    master: &RunningMaster,
    flags: &[&str],
    command: &[&str],
) -> Run {
    let own = master.flags();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    Run::start(folder, &small(&[&["--json"], &own[..], flags].concat(), command))
}

/// Goal: an unchanged Mesos client gets executors from this master, and they end as they should. Method: two executors,
/// with a constraint on the worker's attribute; one finishes, one fails and is replaced.
#[test]
fn executors_run_on_a_worker() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    let subscribed = worker.hear_a("SUBSCRIBED");
    assert_eq!(subscribed["term"], 1);
    let flags = ["--num-executors", "2", "--until-finished", "--constraints", "zone:east"];
    let run = start_run(&folder, &master, &flags, &["echo", "{{EXECUTOR_ID}}"]);
    let (first, second) = (worker.hear_a("LAUNCH"), worker.hear_a("LAUNCH"));
    for (launch, sequence) in [(&first, 1), (&second, 2)] {
        assert_eq!((&launch["sequence"], &launch["term"]), (&json!(sequence), &json!(1)));
        assert_eq!(launch["resources"], json!({"cpus": 1.0, "mem": 16.0}));
        assert_eq!(launch["command"]["argv"][0], "echo");
        let variables = launch["command"]["environment"].as_array().unwrap();
        let id = variables.iter().find(|it| it[0] == "OFFERMILL_EXECUTOR_ID").unwrap();
        assert_eq!(id[1], launch["command"]["argv"][1]);
    }
    assert_eq!(master.state()["executors"], 2);
    worker.report(&first, "RUNNING");
    worker.report(&second, "RUNNING");
    worker.report(&first, "FAILED");
    let third = worker.hear_a("LAUNCH");
    worker.report(&third, "RUNNING");
    worker.report(&second, "FINISHED");
    worker.report(&third, "FINISHED");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
    let place = "/{agent_id}/{executor}\"";
    assert!(ended.output.contains(place), "where output is on workers:\n{}", ended.output);
    let state = master.state();
    assert_eq!((&state["executors"], &state["offers"]), (&json!(0), &json!(0)), "{state}");
    assert_eq!((&state["frameworks"], &state["workers"]), (&json!(0), &json!(1)), "{state}");
    master.run.signal("TERM");
    assert_eq!(master.run.end().code, Some(0));
}

/// Goal: what a run kills ends on its worker, within the grace period that the run asked for. Method: a run that is
/// stopped while its executor runs.
#[test]
fn a_stopped_run_kills_its_executors() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    worker.hear_a("SUBSCRIBED");
    let flags = ["--num-executors", "1"];
    let mut run = start_run(&folder, &master, &flags, &["sleep", "600"]);
    let launch = worker.hear_a("LAUNCH");
    worker.report(&launch, "RUNNING");
    run.event_named("running");
    run.signal("TERM");
    let kill = worker.hear_a("KILL");
    assert_eq!(kill["executor"], launch["executor"]);
    assert!(kill["grace"].as_u64().unwrap() > 0, "{kill}");
    worker.report(&launch, "KILLED");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
    assert_eq!(master.state()["executors"], 0);
}

/// Goal: a master that ends loses no executor and doubles none, and its end is no goodbye of its frameworks, even of
/// those that don't fail over. Method: see [`executor_outlives_master`]; killed, and stopped.
#[test]
fn executors_outlive_their_master() {
    executor_outlives_master("KILL", &["--failover-timeout", "1h"]);
    executor_outlives_master("TERM", &[]);
}

/// Ends the master by a signal while an executor runs, and starts it again at the same port with the same folder; the
/// worker comes back and lists what it has, with the tag of its launch.
fn executor_outlives_master(signal: &str, failover: &[&str]) {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    let id = worker.hear_a("SUBSCRIBED")["id"].clone();
    let flags = [&["--num-executors", "1", "--until-finished"], failover].concat();
    let mut run = start_run(&folder, &master, &flags, &["sleep", "600"]);
    let launch = worker.hear_a("LAUNCH");
    worker.report(&launch, "RUNNING");
    run.event_named("running");
    let port = master.port.clone();
    master.run.signal(signal);
    let _ended = master.run.end();
    let again = RunningMaster::start(&folder, &format!("127.0.0.1:{port}"), &[]);
    assert!(again.sentence.contains("term 2"), "{}", again.sentence);
    let mut back = subscribe();
    back["id"] = id.clone();
    back["term"] = json!(1);
    back["executors"] = json!([{
        "framework": launch["framework"], "executor": launch["executor"], "state": "RUNNING",
        "resources": launch["resources"], "tag": launch["tag"],
    }]);
    let mut worker = HandWorker::connect(&again, &back, "");
    worker.updates = 100;
    let subscribed = worker.hear_a("SUBSCRIBED");
    assert_eq!((&subscribed["id"], &subscribed["term"]), (&id, &json!(2)));
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    worker.report(&launch, "FINISHED");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
}

/// Goal: an operator drains a worker: it gets no offers any more, ends its executors, and is gone; what isn't a command
/// or a worker is refused, and changes nothing. Method: `offermill ctl` at the master's socket, a worker by hand with
/// an executor, and the state and metrics before and after.
#[test]
fn an_operator_drains_a_worker() {
    let folder = Folder::new();
    let control = ["--control", "master.sock"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &control);
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    let id = worker.hear_a("SUBSCRIBED")["id"].as_str().unwrap().to_owned();
    let run = start_run(&folder, &master, &["--num-executors", "1"], &["sleep", "600"]);
    let launch = worker.hear_a("LAUNCH");
    worker.report(&launch, "RUNNING");
    let ctl = |words: &[&str]| finish(&folder, &[&["ctl", "master.sock"], words].concat());
    let status = ctl(&["status"]).output;
    let line = format!("worker {id} on h1: active, 1 executor; used 1 of 2 cores and 16 of 64 MiB");
    // Whether the run still wants offers depends on the moment.
    assert!(status.contains(&line) && status.contains("1 executor with 1 core\n"), "{status}");
    let state: Value = serde_json::from_str(&ctl(&["status", "json"]).output).unwrap();
    assert_eq!(state["workers"][0]["used"]["cpus"], 1.0);
    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (status, text) = master.ask(metrics);
    assert_eq!(status, 200);
    for line in [
        "offermill_master_workers{state=\"active\"} 1",
        "offermill_master_executors 1",
        "offermill_master_cores{part=\"used\"} 1",
        "offermill_master_memory_bytes{part=\"total\"} 67108864",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing in\n{text}");
    }
    for (words, expected) in [
        (&["drain", "nobody"][..], "there is no worker \"nobody\""),
        (&["drain", &id, "soon"], "the grace period"),
        (&["drain", &id, "1000d"], "at most a year"),
        (&["limit", "3"], "there is no command"),
    ] {
        let refused = ctl(words);
        assert_eq!(refused.code, Some(1), "{words:?}: {}", refused.output);
        assert!(refused.errors.contains(expected), "{words:?}: {}", refused.errors);
    }
    assert!(ctl(&["help"]).output.contains("drain ID [GRACE]"));
    // Its executor runs on, and it isn't told to leave yet.
    assert_eq!(ctl(&["decommission", "nobody"]).code, Some(1));
    assert_eq!(ctl(&["decommission", &id]).code, Some(0));
    assert!(ctl(&["status"]).output.contains(&format!("worker {id} on h1: draining, 1 executor")));
    let drained = ctl(&["drain", &id, "7s"]);
    assert_eq!(drained.output, format!("the worker {id} drains\n"), "{}", drained.errors);
    assert_eq!(worker.hear_a("DRAIN")["grace"], 7000);
    worker.report(&launch, "KILLED");
    assert!(ctl(&["status"]).output.contains(&format!("worker {id} on h1: draining, 0 executors")));
    worker.say(&json!({"type": "LEAVE"}));
    while master.state()["workers"] != 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(ctl(&["drain", &id]).code, Some(1));
    drop(run);
    master.run.signal("TERM");
    assert_eq!(master.run.end().code, Some(0));
    assert!(!folder.0.join("master.sock").exists());
}

/// Goal: neither wrong nor missing credentials get anywhere, and right ones do. Method: a worker and a run with each.
#[test]
fn credentials_are_needed_once_there_are_any() {
    let folder = Folder::new();
    for (name, text) in
        [("principals", "etl s3cret\n"), ("tokens", "0123456789abcdef\n"), ("good", "s3cret")]
    {
        let path = folder.write(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let bad = folder.write("bad", "another");
    std::fs::set_permissions(bad, std::fs::Permissions::from_mode(0o600)).unwrap();
    let files = ["--principals-file", "principals", "--worker-tokens-file", "tokens"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &files);
    for header in ["", "authorization: Bearer 0123456789abcdeF\r\n", "authorization: Basic x\r\n"] {
        let mut refused = HandWorker::open(&master, &subscribe(), header);
        assert_eq!(refused.status(), 401, "{header}");
    }
    let header = "authorization: Bearer 0123456789abcdef\r\n";
    let mut worker = HandWorker::connect(&master, &subscribe(), header);
    worker.hear_a("SUBSCRIBED");
    let plain = "--allow-plain-secret";
    let secret =
        |file| ["--principal", "etl", "--secret-file", file, plain, "--num-executors", "1"];
    let refused = start_run(&folder, &master, &secret("bad"), &["true"]).end();
    assert_eq!(refused.code, Some(4), "{}\n{}", refused.output, refused.errors);
    let flags = [&secret("good")[..], &["--until-finished"]].concat();
    let run = start_run(&folder, &master, &flags, &["true"]);
    let launch = worker.hear_a("LAUNCH");
    worker.report(&launch, "FINISHED");
    assert_eq!(run.end().code, Some(0));
    assert_eq!(
        master.ask("GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").0,
        401
    );
}

/// Goal: a request that this master doesn't answer is refused with its name, and changes nothing. Method: requests by
/// hand.
#[test]
fn other_requests_are_refused() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let post = |path: &str, headers: &str, body: &str| {
        let length = body.len();
        master.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
             content-length: {length}\r\n\r\n{body}"
        ))
    };
    let json = "content-type: application/json\r\n";
    let scheduler = "/api/v1/scheduler";
    assert_eq!(post(scheduler, "", "{}").0, 415);
    assert_eq!(post(scheduler, json, "{").0, 400);
    let revive = r#"{"type":"REVIVE","framework_id":{"value":"f"}}"#;
    assert!(post(scheduler, json, revive).1.contains("stream ID"));
    let stream = format!("{json}mesos-stream-id: 1\r\n");
    assert!(post(scheduler, &stream, revive).1.contains("no framework is subscribed"));
    let page = format!("{json}origin: http://evil.example\r\n");
    assert_eq!(post(scheduler, &page, revive).0, 403);
    let heartbeat = r#"{"type":"HEARTBEAT"}"#;
    let record = format!("{}\n{heartbeat}", heartbeat.len());
    let (status, why) = post("/api/v1/worker", json, &record);
    assert_eq!((status, why.trim()), (400, "the first message isn't SUBSCRIBE"));
    assert_eq!(post("/api/v1/worker", json, "nonsense").0, 400);
    assert_eq!(post("/api/v1/operator", json, "{}").0, 404);
    assert_eq!(master.state()["frameworks"], 0);
    let get =
        |host: &str| format!("GET /state HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    for (host, expected) in [("evil.example", 421), ("127.0.0.1:5050", 200), ("[::1]:1", 200)] {
        assert_eq!(master.ask(&get(host)).0, expected, "{host}");
    }
}

/// Goal: bad input is refused before anything is served, with a sentence. Method: each kind.
#[test]
fn bad_input_is_refused() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let taken = format!("127.0.0.1:{}", master.port);
    folder.write("open", "etl s3cret\n");
    let path = folder.write("twice", "h1 0123456789abcdef\nh2 0123456789abcdef\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir(folder.0.join("damaged")).unwrap();
    folder.write("damaged/master.journal", "nonsense\n");
    std::fs::create_dir(folder.0.join("newer")).unwrap();
    let head = r#"{"offermill_master_journal":9,"cluster":"c","term":1}"#;
    folder.write("newer/master.journal", &format!("{head}\n"));
    for (flags, expected) in [
        (&["--listen", &taken, "--state-dir", "other"][..], "another program listens there"),
        (&["--listen", "0", "--state-dir", "master"], "another master uses it"),
        (&["--listen", "0.0.0.0:0", "--state-dir", "other"], "no TLS"),
        (&["--listen", "0.0.0.0:0", "--state-dir", "other"], "or --worker-ca-file"),
        (
            &["--worker-tokens-file", "twice", "--state-dir", "other"],
            "lines 1 and 2 have the same token",
        ),
        (&["--insecure=x", "--state-dir", "other"], "--insecure"),
        (&["--listen", "here", "--state-dir", "other"], "must be IP:PORT"),
        (&["--max-cores", "0", "--state-dir", "other"], "must be a number above 0"),
        (&["--max-cores", "inf", "--state-dir", "other"], "must be a number above 0"),
        (&["--principals-file", "open", "--state-dir", "other"], "other users may read"),
        (&["--worker-tokens-file", "nowhere", "--state-dir", "other"], "No such file"),
        (&["--listen", "0", "--state-dir", "damaged"], "line 1 of the journal"),
        (&["--listen", "0", "--state-dir", "damaged", "--standby"], "line 1 of the journal"),
        (
            &["--advertise", "a,b", "--state-dir", "other"],
            "--advertise is \"a,b\", but must be HOST:PORT",
        ),
        (&["--advertise", "a:b", "--state-dir", "other"], "must be HOST:PORT"),
        (&["--listen", "0", "--state-dir", "newer"], "is of version 9"),
    ] {
        let ended = finish(&folder, &[&["master"], flags].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {}{}", ended.output, ended.errors);
        assert!(ended.errors.contains(expected), "{flags:?}: {}", ended.errors);
    }
}
