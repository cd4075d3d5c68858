//! Many workers and executors, which exist only on paper: the master is real, and each worker is a connection of this
//! test, as is the framework.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use offermill::cluster::standalone::protocol::{
    ExecutorUpdate, ReportedState, WORKER_PATH, WorkerCall, WorkerEvent, WorkerResources,
    WorkerSubscribe, decode_event, frame_call,
};
use offermill::mesos_v1::record_io::RecordReader;
use offermill::resources::Scalar;
use serde_json::{Value, json};

use super::drills::master_with_timeout;

const EXECUTORS_PER_WORKER: usize = 10;
/// A timeout far beyond the duration of the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request whose answer is a stream of records.
pub(crate) struct Stream {
    stream: BufReader<TcpStream>,
    records: RecordReader,
    /// The header of the answer that names the stream, if there is one.
    pub(crate) id: String,
}

impl Stream {
    /// Sends a request, with a body that doesn't end.
    pub(crate) fn open(address: &str, path: &str, first: &[u8]) -> Stream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut opened = Stream {
            stream: BufReader::new(stream),
            records: RecordReader::new(8 << 20),
            id: String::new(),
        };
        opened.say(first);
        opened
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend(bytes);
        chunk.extend(b"\r\n");
        self.stream.get_mut().write_all(&chunk).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the head of the answer.
    pub(crate) fn head(&mut self) {
        let status = self.line();
        assert!(status.contains(" 200 "), "{status}");
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some((name, id)) if name.eq_ignore_ascii_case("mesos-stream-id") => {
                    id.clone_into(&mut self.id);
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    fn record(&mut self) -> Vec<u8> {
        self.next_record().expect("the master has ended the stream")
    }

    /// The next record; `None` if the master has ended the stream.
    pub(crate) fn next_record(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(record.unwrap().to_vec());
            }
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            self.records.push(&chunk[..length]);
        }
    }

    /// The master's next message to a worker but heartbeats and acknowledgements.
    pub(crate) fn event(&mut self) -> WorkerEvent {
        loop {
            match decode_event(&self.record()).unwrap() {
                WorkerEvent::Heartbeat | WorkerEvent::Ack { .. } => {}
                event => return event,
            }
        }
    }

    /// The next event of a framework of this type.
    pub(crate) fn heard(&mut self, kind: &str) -> Value {
        loop {
            let event: Value = serde_json::from_slice(&self.record()).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }
}

fn worker(address: &str, i: usize) -> Stream {
    let subscribe = WorkerCall::Subscribe(Box::new(WorkerSubscribe {
        session: format!("s{i}"),
        hostname: format!("h{i}"),
        address: format!("h{i}"),
        resources: WorkerResources {
            cpus: Scalar::from_thousandths(16_000),
            mem: Scalar::from_thousandths(64_000_000),
            ..WorkerResources::default()
        },
        ..WorkerSubscribe::default()
    }));
    Stream::open(address, WORKER_PATH, &frame_call(&subscribe))
}

/// The resident memory of a process, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn accept(framework: &str, offer: &Value) -> Value {
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    let task = |i: usize| {
        let id = format!("{}-{i}", offer["agent_id"]["value"].as_str().unwrap());
        json!({
            "name": id, "task_id": {"value": id}, "agent_id": offer["agent_id"],
            "resources": [scalar("cpus", 1.0), scalar("mem", 1024.0)],
            "command": {"shell": true, "value": "exec sleep 100000"},
        })
    };
    let tasks: Vec<Value> = (0..EXECUTORS_PER_WORKER).map(task).collect();
    json!({
        "type": "ACCEPT", "framework_id": {"value": framework},
        "accept": {
            "offer_ids": [offer["id"]], "filters": {"refuse_seconds": 3600.0},
            "operations": [{"type": "LAUNCH", "launch": {"task_infos": tasks}}],
        },
    })
}

/// Posts a call on a connection that is kept.
pub(crate) fn post(connection: &mut BufReader<TcpStream>, stream_id: &str, call: &Value) {
    let body = call.to_string();
    let request = format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         mesos-stream-id: {stream_id}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    connection.read_line(&mut line).unwrap();
    assert!(line.contains(" 202 "), "{line}");
    while line.trim_end() != "" {
        line.clear();
        connection.read_line(&mut line).unwrap();
    }
}

/// Goal: one master is enough for many workers and executors. Method: connections that register as workers (200, or
/// `OFFERMILL_WORKERS`); a framework that accepts an offer of each, with ten executors; each worker is told exactly its
/// ten, and reports that they run, which the framework hears of each. It prints the times and the master's memory.
#[test]
#[ignore = "prints figures"]
fn workers_and_executors_on_paper() {
    let folder = tempfile::tempdir().unwrap();
    // These workers send no heartbeats.
    let (program, address) = master_with_timeout(&folder.path().join("master"), "1h");
    let workers_all = std::env::var("OFFERMILL_WORKERS");
    let workers_all: usize = workers_all.ok().map_or(200, |text| text.parse().unwrap());
    let began = Instant::now();
    let mut workers: Vec<Stream> = (0..workers_all).map(|i| worker(&address, i)).collect();
    for worker in &mut workers {
        worker.head();
        assert!(matches!(worker.event(), WorkerEvent::Subscribed { .. }));
    }
    let registered = began.elapsed();
    let idle = resident(program.0.id());
    let subscribe = json!({
        "type": "SUBSCRIBE",
        "subscribe": {"framework_info": {"user": "root", "name": "crowd", "failover_timeout": 3600.0}},
    });
    let record = subscribe.to_string();
    let mut events = Stream::open_once(&address, &record);
    events.head();
    let framework = events.heard("SUBSCRIBED")["subscribed"]["framework_id"]["value"].clone();
    let framework = framework.as_str().unwrap().to_owned();
    let began = Instant::now();
    let mut calls = BufReader::new(TcpStream::connect(&address).unwrap());
    let mut accepted = 0;
    while accepted < workers_all {
        let offers = events.heard("OFFERS");
        for offer in offers["offers"]["offers"].as_array().unwrap() {
            post(&mut calls, &events.id, &accept(&framework, offer));
            accepted += 1;
        }
    }
    for (i, worker) in workers.iter_mut().enumerate() {
        for j in 0..EXECUTORS_PER_WORKER {
            let WorkerEvent::Launch(launch) = worker.event() else { panic!("no launch") };
            let uuid = format!("{:032x}", i * EXECUTORS_PER_WORKER + j);
            let update = ExecutorUpdate::new(launch.key, uuid, ReportedState::Running, 1.0);
            let update = ExecutorUpdate { pid: Some(1), ..update };
            worker.say(&frame_call(&WorkerCall::Update(update)));
        }
    }
    let all = workers_all * EXECUTORS_PER_WORKER;
    let mut running = std::collections::BTreeSet::new();
    while running.len() < all {
        let status = events.heard("UPDATE")["update"]["status"].clone();
        assert_eq!(status["state"], "TASK_RUNNING", "{status}");
        running.insert(status["task_id"]["value"].to_string());
    }
    println!(
        "figures: {workers_all} workers have registered within {} ms (master {} MiB); {all} executors run after {} ms \
         (master {} MiB)",
        registered.as_millis(),
        idle / 1024,
        began.elapsed().as_millis(),
        resident(program.0.id()) / 1024
    );
}

impl Stream {
    /// Sends a request with this body.
    pub(crate) fn open_once(address: &str, body: &str) -> Stream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (stream, records) = (BufReader::new(stream), RecordReader::new(8 << 20));
        Stream { stream, records, id: String::new() }
    }
}
