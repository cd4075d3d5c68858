//! Tests of a standalone cluster whose connections are cut within a record of TLS.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::Duration;

use serde_json::json;
use tokio_rustls::rustls::StreamOwned;

use crate::eventually::eventually;
use crate::standalone::subscribe;
use crate::standalone_standby::{LoggedWorker, user};
use crate::standalone_tls::{
    ETL, TOKEN, ask, connect, folder, get_state, start_master, tls_client,
};
use crate::support::{Run, finish, process_of, small};

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A relay in front of a master that cuts connections when it is told to.
struct CuttingRelay {
    port: u16,
    cuts: Arc<[AtomicBool; 2]>,
}

/// To whom a record goes.
#[derive(Clone, Copy, Debug)]
enum Toward {
    Client,
    Master,
}

impl CuttingRelay {
    fn start(master: u16) -> CuttingRelay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::<[AtomicBool; 2]>::default();
        let own = Arc::clone(&cuts);
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", master)) else { continue };
                for (from, to, toward) in
                    [(&client, &server, Toward::Master), (&server, &client, Toward::Client)]
                {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cuts = Arc::clone(&own);
                    spawn(move || {
                        let _ended = pass_records(&from, &to, &cuts[toward as usize]);
                        let _closed = from.shutdown(Shutdown::Both);
                        let _closed = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        CuttingRelay { port, cuts }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}", self.port)
    }

    /// Cuts the connection that has the next record with data in this direction, in the middle of the record.
    fn cut(&self, toward: Toward) {
        self.cuts[toward as usize].store(true, Ordering::SeqCst);
    }

    fn was_cut(&self, toward: Toward) -> bool {
        !self.cuts[toward as usize].load(Ordering::SeqCst)
    }
}

/// Passes on whole records until one is to be cut: of that one, half.
fn pass_records(mut from: &TcpStream, mut to: &TcpStream, cut: &AtomicBool) -> std::io::Result<()> {
    loop {
        let mut record = vec![0; 5];
        from.read_exact(&mut record)?;
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        let is_data = record[0] == 23;
        record.resize(5 + length, 0);
        from.read_exact(&mut record[5..])?;
        if is_data && cut.swap(false, Ordering::SeqCst) {
            return to.write_all(&record[..5 + length / 2]);
        }
        to.write_all(&record)?;
    }
}

fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

fn await_state(port: u16, words: &[&str]) {
    eventually(PATIENCE, "the state", || match ask(port, false, &get_state(ETL)) {
        state if words.iter().all(|it| state.contains(it)) => Ok(()),
        state => Err(state),
    });
}

/// Goal: connections that are cut within a record of TLS cost no executor: workers and runs come back, and a call that
/// was cut is made again. Method: relays before a worker and a run, which cut the next record in each direction; the
/// run is stopped by a call that is cut.
#[test]
fn connections_are_cut_within_records() {
    let folder = folder();
    let (master, port) = start_master(&folder, &["--worker-timeout", "2s"]);
    let (of_worker, of_run) = (CuttingRelay::start(port), CuttingRelay::start(port));
    let files = ["--token-file", "token", "--ca-file", "authority.pem"];
    let worker = LoggedWorker::start_with(&folder, "w", &of_worker.url("https"), &files);
    let user = format!("offermill.mesos.user={}", user());
    let url = of_run.url("offermill");
    let own = ["--json", "--master", &url, "-c", &user, "--principal", "etl"];
    let files = ["--secret-file", "secret", "--ca-file", "authority.pem", "--control", "control"];
    let count_of = ["--num-executors", "1", "--failover-timeout", "1h"];
    let flags = [&own[..], &files, &count_of].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "600"]));
    let process = process_of(&run.event_named("running"));
    for (toward, times) in [(Toward::Client, 2), (Toward::Master, 3)] {
        of_worker.cut(toward);
        worker.wait_for_times("(term 1)", times);
        await_state(port, &["\"workers\":1,", "\"executors\":1,"]);
        assert!(is_alive(process), "{toward:?}");
    }
    of_run.cut(Toward::Client);
    run.event(|event| event["event"] == "registered" && event["again"] == true);
    await_state(port, &["\"connected\":true", "\"executors\":1,"]);
    assert!(is_alive(process));
    of_run.cut(Toward::Master);
    let stopped = finish(&folder, &["ctl", "control", "stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.errors);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
    assert!(of_run.was_cut(Toward::Master) && !is_alive(process));
    await_state(port, &["\"executors\":0,", "\"frameworks\":0,"]);
    worker.end();
    master.signal("TERM");
    assert_eq!(master.end().code, Some(0));
}

/// Sends the first bytes of a request's records over TLS, and cuts the connection.
fn send_part(port: u16, request: &str, part: impl FnOnce(usize) -> usize) {
    let (mut client, mut stream) = (tls_client(false), connect(port));
    client.complete_io(&mut stream).unwrap();
    client.writer().write_all(request.as_bytes()).unwrap();
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    stream.write_all(&records[..part(records.len())]).unwrap();
    let _closed = stream.shutdown(Shutdown::Both);
}

/// Goal: of a record of TLS that hasn't arrived as a whole, nothing is done. Method: the registrations of a worker and
/// of a framework, each in one record, cut after its head, within it, and before its last byte; then both as a whole.
#[test]
fn nothing_is_done_of_a_part_of_a_record() {
    let folder = folder();
    let (master, port) = start_master(&folder, &[]);
    let call = subscribe().to_string();
    let record = format!("{}\n{call}", call.len());
    let head = "HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let length = record.len();
    let worker = format!(
        "POST /api/v1/worker {head}authorization: Bearer {TOKEN}\r\ncontent-length: {length}\r\n\r\n{record}"
    );
    let info = json!({"user": "nobody", "name": "n"});
    let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}).to_string();
    let length = call.len();
    let framework =
        format!("POST /api/v1/scheduler {head}{ETL}content-length: {length}\r\n\r\n{call}");
    for request in [&worker, &framework] {
        for part in [|_| 0, |_| 5, |_| 6, |all| all / 2, |all| all - 1] as [fn(usize) -> usize; 5] {
            send_part(port, request, part);
        }
    }
    await_state(port, &["\"workers\":0,", "\"frameworks\":0,", "\"launched\":0"]);
    for request in [&worker, &framework] {
        let mut whole = StreamOwned::new(tls_client(false), connect(port));
        whole.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        whole.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    master.signal("TERM");
    let ended = master.end();
    // Each once: the parts have registered nobody, not even for a moment.
    let registered = |what: &str| {
        let lines = ended.errors.lines().filter(|line| line.contains(what));
        lines.filter(|line| line.contains("is registered")).count()
    };
    assert_eq!((registered(" worker "), registered(" framework ")), (1, 1), "{}", ended.errors);
}
