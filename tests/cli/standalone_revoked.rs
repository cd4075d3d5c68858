//! Tests of credentials that are taken away, or aren't those of a stream: on each call, and with open connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use offermill::mesos_v1::record_io::RecordReader;
use serde_json::{Value, json};

use crate::eventually::eventually;
use crate::standalone::{HandWorker, RunningMaster, subscribe};
use crate::standalone_standby::{LoggedWorker, user};
use crate::standalone_tls::{self, CERTIFICATES, ask, get_state, start_master};
use crate::support::{Folder, Run, process_of, small};

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
const CREDENTIALS: [&str; 4] =
    ["--principals-file", "principals", "--worker-tokens-file", "tokens"];
const JSON: &str = "content-type: application/json\r\n";
/// Of the principals `etl` and `other` with the secret `s3cret`, and of `etl` with the one that was taken away.
const ETL: &str = "authorization: Basic ZXRsOnMzY3JldA==\r\n";
const OTHER: &str = "authorization: Basic b3RoZXI6czNjcmV0\r\n";
const REVOKED: &str = "authorization: Basic ZXRsOm9sZC1zM2NyZXQ=\r\n";
/// Of the worker `w1`, and of one whose token was taken away.
const W1: &str = "authorization: Bearer 0123456789abcdef\r\n";
const REVOKED_WORKER: &str = "authorization: Bearer fedcba9876543210\r\n";

fn private(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A framework that the test speaks.
struct HandFramework {
    stream: BufReader<TcpStream>,
    records: RecordReader,
    stream_id: String,
    id: Value,
}

impl HandFramework {
    fn subscribe(master: &RunningMaster) -> HandFramework {
        let info = json!({"user": "nobody", "name": "etl", "failover_timeout": 3600.0});
        let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}});
        let mut stream = BufReader::new(master.connect());
        let request = request("/api/v1/scheduler", &[ETL, JSON], &call.to_string());
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let headers = stream.by_ref().lines().map(Result::unwrap);
        let headers: Vec<String> = headers.take_while(|line| !line.is_empty()).collect();
        let id = headers.iter().find_map(|line| line.strip_prefix("mesos-stream-id: "));
        let stream_id = id.unwrap().to_owned();
        let records = RecordReader::new(1 << 20);
        let mut framework = HandFramework { stream, records, stream_id, id: Value::Null };
        framework.id = framework.hear_a("SUBSCRIBED")["subscribed"]["framework_id"].clone();
        framework
    }

    /// The next event of this type. Those before it are dropped.
    fn hear_a(&mut self, kind: &str) -> Value {
        loop {
            while let Some(record) = self.records.next() {
                let event: Value = serde_json::from_slice(&record.unwrap()).unwrap();
                if event["type"] == kind {
                    return event;
                }
            }
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            self.records.push(&chunk[..length]);
        }
    }

    /// Waits for an update, and acknowledges it.
    fn acknowledge(&mut self, master: &RunningMaster) {
        let status = self.hear_a("UPDATE")["update"]["status"].clone();
        let (task, agent, uuid) = (&status["task_id"], &status["agent_id"], &status["uuid"]);
        let call = json!({
            "type": "ACKNOWLEDGE", "framework_id": self.id,
            "acknowledge": {"task_id": task, "agent_id": agent, "uuid": uuid},
        });
        assert_eq!(self.call(master, ETL, &call).0, 202);
    }

    /// Sends a call on a connection of its own. Returns the status and the rest of the answer.
    fn call(&self, master: &RunningMaster, credentials: &str, call: &Value) -> (u16, String) {
        let stream_id = format!("mesos-stream-id: {}\r\n", self.stream_id);
        let headers = [credentials, JSON, stream_id.as_str()];
        master.ask(&request("/api/v1/scheduler", &headers, &call.to_string()))
    }
}

fn request(path: &str, headers: &[&str], body: &str) -> String {
    let (headers, length) = (headers.concat(), body.len());
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn accept(offer: &Value, task: &str) -> Value {
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    let task = json!({
        "name": "t", "task_id": {"value": task}, "agent_id": offer["agent_id"],
        "resources": [scalar("cpus", 1.0), scalar("mem", 16.0)],
        "command": {"shell": true, "value": "exec sleep 600"},
    });
    json!({
        "offer_ids": [offer["id"]], "filters": {"refuse_seconds": 1.0},
        "operations": [{"type": "LAUNCH", "launch": {"task_infos": [task]}}],
    })
}

/// All that a framework can call: it would launch a second task, kill the first, and be gone in the end.
fn all_calls(framework: &Value, offer: &Value) -> Vec<Value> {
    let task = json!({"value": "t1"});
    let of = |kind: &str, part: &str, what: Value| {
        let mut call = json!({"type": kind, "framework_id": framework});
        if !part.is_empty() {
            call[part] = what;
        }
        call
    };
    let info = json!({"id": framework, "user": "nobody", "name": "renamed"});
    let update = json!({"task_id": task, "agent_id": offer["agent_id"], "uuid": "MDEyMw=="});
    vec![
        of("ACCEPT", "accept", accept(offer, "t2")),
        of("DECLINE", "decline", json!({"offer_ids": [offer["id"]]})),
        of("REVIVE", "", Value::Null),
        of("SUPPRESS", "", Value::Null),
        of("KILL", "kill", json!({"task_id": task})),
        of("RECONCILE", "reconcile", json!({"tasks": []})),
        of("ACKNOWLEDGE", "acknowledge", update),
        of("REQUEST", "request", json!({"requests": []})),
        of("UPDATE_FRAMEWORK", "update_framework", json!({"framework_info": info})),
        of("TEARDOWN", "", Value::Null),
    ]
}

/// Goal: a call with other credentials than those of its stream is refused, whichever call it is, and nothing is done
/// of it. Method: a framework with an open offer and an executor; each call without credentials, with those that were
/// taken away, a worker's, and another principal's; so its end by an operator, and a worker's registration; then the
/// worker hears nothing but the framework's own kill.
#[test]
fn calls_with_other_credentials_change_nothing() {
    let folder = Folder::new();
    private(&folder, "principals", "etl s3cret\nother s3cret\n");
    private(&folder, "tokens", "w1 0123456789abcdef\nw2 0123456789abcdee\n");
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &CREDENTIALS);
    let mut worker = HandWorker::connect(&master, &subscribe(), W1);
    let worker_id = worker.hear_a("SUBSCRIBED")["id"].clone();
    let mut framework = HandFramework::subscribe(&master);
    let offer = framework.hear_a("OFFERS")["offers"]["offers"][0].clone();
    let launch =
        json!({"type": "ACCEPT", "framework_id": framework.id, "accept": accept(&offer, "t1")});
    assert_eq!(framework.call(&master, ETL, &launch).0, 202);
    let launch = worker.hear_a("LAUNCH");
    worker.update(&launch, "RUNNING");
    framework.acknowledge(&master);
    worker.hear_a("ACK");
    let offer = framework.hear_a("OFFERS")["offers"]["offers"][0].clone();
    for (credentials, expected) in [("", 401), (REVOKED, 401), (W1, 401), (OTHER, 403)] {
        for call in all_calls(&framework.id, &offer) {
            let (status, why) = framework.call(&master, credentials, &call);
            assert_eq!(status, expected, "{credentials:?} {call}: {why}");
        }
        let id = framework.id["value"].as_str().unwrap();
        let end = request("/master/teardown", &[credentials], &format!("frameworkId={id}"));
        // Of another principal's frameworks nothing is told.
        let expected = if credentials == OTHER { 400 } else { 401 };
        assert_eq!(master.ask(&end).0, expected, "{credentials:?}");
    }
    let mut again = subscribe();
    again["id"] = worker_id;
    let call = again.to_string();
    let record = format!("{}\n{call}", call.len());
    for credentials in ["", REVOKED_WORKER, ETL, REVOKED] {
        let registration = request("/api/v1/worker", &[credentials, JSON], &record);
        assert_eq!(master.ask(&registration).0, 401, "{credentials:?}");
    }
    let w2 = "authorization: Bearer 0123456789abcdee\r\n";
    let refused = HandWorker::connect(&master, &again, w2).hear_a("REFUSED");
    assert!(refused["why"].as_str().unwrap().contains("with another token"), "{refused}");
    let kill =
        json!({"type": "KILL", "framework_id": framework.id, "kill": {"task_id": {"value": "t1"}}});
    assert_eq!(framework.call(&master, ETL, &kill).0, 202);
    worker.hear_a("KILL");
    assert!(worker.unasked().is_empty(), "{:?}", worker.unasked());
    worker.update(&launch, "KILLED");
    framework.acknowledge(&master);
    worker.hear_a("ACK");
    await_counts(&master, &[("workers", 1), ("frameworks", 1), ("executors", 0)]);
    let framework = report(&master)["frameworks"][0].clone();
    let as_before = framework["connected"] == true && framework["suppressed"] == false;
    assert!(as_before && framework["name"] == "etl", "{framework}");
}

/// All that the master knows.
fn report(master: &RunningMaster) -> Value {
    let get = format!("GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{ETL}\r\n");
    let (status, text) = master.ask(&get);
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn await_counts(master: &RunningMaster, expected: &[(&str, u64)]) {
    eventually(PATIENCE, "the counts", || match report(master)["counts"].clone() {
        counts if expected.iter().all(|(name, count)| counts[name] == *count) => Ok(()),
        counts => Err(counts.to_string()),
    });
}

fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Ends a master, and starts another at its port with these credentials.
fn restart(folder: &Folder, master: RunningMaster, files: [(&str, &str); 2]) -> RunningMaster {
    let listen = format!("127.0.0.1:{}", master.port);
    master.run.signal("TERM");
    assert_eq!(master.run.end().code, Some(0));
    files.iter().for_each(|(name, text)| private(folder, name, text));
    let flags = [&CREDENTIALS[..], &["--recovery-timeout", "1s"]].concat();
    RunningMaster::start(folder, &listen, &flags)
}

/// Goal: credentials that are taken away end nothing at once, and let nobody in any more: a worker keeps its executors,
/// and is back with its token; a run ends, and its executors once its time is over. Method: a worker and a run; masters
/// that start without the token, with it, and then without the principal's secret.
#[test]
fn revoked_credentials_let_nobody_back() {
    let folder = Folder::new();
    let (principals, tokens) = ("etl s3cret\n", "w1 0123456789abcdef\n");
    private(&folder, "principals", &format!("{principals}watcher s3cret\n"));
    private(&folder, "tokens", tokens);
    private(&folder, "token", "0123456789abcdef");
    private(&folder, "secret", "s3cret");
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &CREDENTIALS);
    let url = format!("http://127.0.0.1:{}", master.port);
    let worker = LoggedWorker::start_with(&folder, "w", &url, &["--token-file", "token"]);
    let url = format!("offermill://127.0.0.1:{}", master.port);
    let user = format!("offermill.mesos.user={}", user());
    let own = ["--json", "--master", &url, "-c", &user, "--allow-plain-secret"];
    let flags = ["--principal", "etl", "--secret-file", "secret", "--num-executors", "1"];
    let flags = [&own[..], &flags, &["--failover-timeout", "2s"]].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "600"]));
    let process = process_of(&run.event_named("running"));

    let master =
        restart(&folder, master, [("principals", principals), ("tokens", "w2 0123456789abcdee\n")]);
    worker.wait_for("it doesn't accept the token");
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    await_counts(&master, &[("workers", 0), ("frameworks", 1)]);
    assert!(is_alive(process));

    let master = restart(&folder, master, [("principals", principals), ("tokens", tokens)]);
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    worker.wait_for("(term 3)");
    await_counts(&master, &[("workers", 1), ("frameworks", 1), ("executors", 1)]);
    assert!(is_alive(process));

    let master =
        restart(&folder, master, [("principals", "etl other-secret\n"), ("tokens", tokens)]);
    let ended = run.end();
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.output, ended.errors);
    eventually(PATIENCE, "the end of the executor", || match is_alive(process) {
        false => Ok(()),
        true => Err("it lives".to_owned()),
    });
    worker.end();
    master.run.signal("TERM");
    assert_eq!(master.run.end().code, Some(0));
}

/// Goal: a worker with a certificate that has expired isn't registered, and the master's log says why. Method: a worker
/// whose certificate is of the authority that the master trusts, and was valid in the past; its token is right.
#[test]
fn an_expired_certificate_lets_nobody_in() {
    let folder = standalone_tls::folder();
    let (master, port) = start_master(
        &folder,
        &["--worker-ca-file", &format!("{CERTIFICATES}expired-authority.pem")],
    );
    let url = format!("https://localhost:{port}");
    private(
        &folder,
        "expired-key.pem",
        &std::fs::read_to_string(format!("{CERTIFICATES}expired-key.pem")).unwrap(),
    );
    let own = [
        "--client-certificate-file",
        &format!("{CERTIFICATES}expired.pem"),
        "--client-key-file",
        "expired-key.pem",
    ];
    let flags = [&["--ca-file", "authority.pem", "--token-file", "token"][..], &own].concat();
    let worker = LoggedWorker::start_with(&folder, "w", &url, &flags);
    // Whether the reason arrives before the end of the connection depends on the moment.
    worker.wait_for("not registered at localhost:");
    let state = ask(port, false, &get_state(standalone_tls::ETL));
    assert!(state.contains("\"workers\":0,"), "{state}");
    worker.end();
    master.signal("TERM");
    let ended = master.end();
    assert!(ended.errors.contains("expired"), "{}", ended.errors);
    assert!(!ended.errors.contains("is registered"), "{}", ended.errors);
}
