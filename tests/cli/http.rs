//! Tests of the web page about a run, its metrics and its state: `offermill run --http`.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::controlling::Client;
use crate::support::{Ended, Folder, Run, finish, small};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef-secret";

/// A run with a page, and its port.
struct PageRun {
    run: Run,
    port: u16,
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl PageRun {
    /// Starts a run with `flags` whose page is on a free port of loopback.
    fn start(folder: &Folder, flags: &[&str]) -> PageRun {
        let page = ["--json", "--http", "127.0.0.1:0", "--master", "local-cluster[2,4,128]"];
        PageRun::start_with(folder, &[&page[..], flags].concat(), &["sleep", "600"])
    }

    fn start_with(folder: &Folder, flags: &[&str], command: &[&str]) -> PageRun {
        let mut run = Run::start(folder, &small(flags, command));
        let started = run.event_named("started");
        let url = started["page"].as_str().unwrap();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        PageRun { run, port }
    }

    fn connect(&self) -> TcpStream {
        connect(self.port)
    }

    /// Sends a request as it is, and reads to the end of the connection.
    fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        // A server that refuses the head of a request may have closed the connection before its end.
        let _closed = stream.write_all(request.as_bytes());
        read_answer(stream)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(&request("GET", path, headers))
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.get("/state", &[]).body).unwrap()
    }

    /// Waits for a state.
    fn wait_for(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let state = self.state();
            if is_it(&state) {
                return state;
            }
            assert!(Instant::now() < give_up, "{state}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Ends the run, as it must end whatever clients do.
    fn end(self) -> Ended {
        self.run.signal("TERM");
        let ended = self.run.end();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        ended
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

fn read_answer(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // A server that refuses a body may reset the connection after its answer.
    let _reset = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// Whether the other side closes the connection. Waits for that.
fn is_closed(mut stream: &TcpStream) -> bool {
    let mut rest = [0; 1024];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn token_file(folder: &Folder, token: &str, mode: u32) -> PathBuf {
    let path = folder.write("token", token);
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

/// Goal: the page, its assets, the state, the history, the metrics and the health of a run are served, each with the
/// headers that keep a browser from running or showing anything else; the state is that of `ctl status json`. Method:
/// a run with two executors; each path by GET and by HEAD; the keys of both states.
#[test]
fn a_run_is_served() {
    let folder = Folder::new();
    let page = PageRun::start(&folder, &["--num-executors", "2", "--control", "control"]);
    let state = page.wait_for(|state| state["executors"]["running"] == 2);
    for (path, kind, part) in [
        ("/", "text/html", "<!DOCTYPE html>"),
        ("/page.css", "text/css", "prefers-color-scheme: dark"),
        ("/page.js", "text/javascript", "use strict"),
        ("/run.js", "text/javascript", "use strict"),
        ("/state", "application/json", "\"living\""),
        ("/history", "application/json", "\"offers_per_second\""),
        ("/metrics", "text/plain; version=0.0.4", "offermill_executors{state=\"running\"} 2\n"),
        ("/health", "application/json", "\"state\":\"running\""),
        ("/nothing", "text/plain", "nothing is at this path"),
    ] {
        let status = if path == "/nothing" { 404 } else { 200 };
        let got = page.get(path, &[]);
        assert!(got.status == status && got.body.contains(part), "{path}: {}", got.body);
        let head = page.send(&request("HEAD", path, &[]));
        assert!(head.status == status && head.body.is_empty(), "{path}: {}", head.body);
        for head in [got.head, head.head] {
            for line in [
                &*format!("content-type: {kind}"),
                "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
                "frame-ancestors 'none'",
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "cross-origin-resource-policy: same-origin",
                "cache-control: no-store",
            ] {
                assert!(head.contains(line), "{path} lacks {line}: {head}");
            }
        }
    }
    let by_socket = Client::new(&folder.0.join("control")).status();
    let keys =
        |state: &Value| -> Vec<String> { state.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&state), keys(&by_socket));
    assert_eq!(state["living"], by_socket["living"]);
    assert_eq!(state["offers"]["executors"], 2, "{state}");
    let agents = state["agents"].as_array().unwrap();
    let free: f64 = agents.iter().map(|agent| agent["free"]["cores"].as_f64().unwrap()).sum();
    assert_eq!((agents.len(), free), (2, 6.0), "{state}");
    page.end();
}

/// Goal: the pages of a run and of a master need nothing from elsewhere, and run nothing but their own code. Method:
/// their sources have no address but the names of SVG, no inline code or style, and put no text in as HTML.
#[test]
fn the_pages_are_self_contained() {
    let mut sources = Vec::new();
    for folder in
        ["http_server/page", "bin/offermill/http/assets", "cluster/standalone/server/assets"]
    {
        let folder = format!("{}/src/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if ["html", "css", "js"].iter().any(|it| path.extension().is_some_and(|of| of == *it)) {
                sources.push((fs::read_to_string(&path).unwrap(), path));
            }
        }
    }
    assert_eq!(sources.len(), 6);
    for (text, path) in sources {
        let path = path.display();
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!text.contains(outside), "{path}: {outside}");
        }
        for inline in ["<style", "style=", "onclick", "onload", "<script>"] {
            assert!(!text.contains(inline), "{path}: {inline}");
        }
        for unsafe_use in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
        {
            assert!(!text.contains(unsafe_use), "{path}: {unsafe_use}");
        }
    }
}

/// Goal: declines with the nearest miss, exclusions with their end, and the drain are in the state. Method: executors
/// that fail on two agents exclude one; a run that wants more cores than agents have left; a run that is stopped while
/// its executor ignores SIGTERM.
#[test]
fn a_state_says_why() {
    let folder = Folder::new();
    let flags = ["--num-executors", "1", "--executor-cores", "3", "--until-finished"];
    let script = "trap '' TERM; echo up; while :; do sleep 0.1; done";
    let page = ["--json", "--http", "127.0.0.1:0", "--master", "local-cluster[1,4,128]"];
    let page = PageRun::start_with(
        &folder,
        &[&page[..], &flags, &["--shutdown-timeout", "5s"]].concat(),
        &["sh", "-c", script],
    );
    page.wait_for(|state| {
        state["executors"]["running"] == 1 && !folder.outputs().concat().is_empty()
    });
    page.run.signal("TERM");
    let state = page.wait_for(|state| state["state"] == "stopping");
    assert_eq!(state["stopping"]["why"], "stopped by SIGTERM", "{state}");
    assert_eq!(state["stopping"]["timeout_ms"], 5_000, "{state}");
    assert_eq!(state["stopping"]["executors"], 1, "{state}");
    assert!(page.get("/metrics", &[]).body.contains("\noffermill_stopping 1\n"));
    assert_eq!(page.get("/health", &[]).status, 200);
    assert_eq!(page.run.end().code, Some(3));

    let folder = Folder::new();
    let script = "case $OFFERMILL_AGENT_ID in *S0) exit 7;; *) sleep 600;; esac";
    let page = ["--json", "--http", "0", "--master", "local-cluster[2,4,128]"];
    let flags = ["--num-executors", "2", "--executor-cores", "3", "--exclude-after", "1"];
    let page = PageRun::start_with(&folder, &[&page[..], &flags].concat(), &["sh", "-c", script]);
    let state = page.wait_for(|state| {
        let misses = state["nearest_misses"].as_array().unwrap();
        let is_excluded =
            state["exclusions"] != json!([]) && state["agents"][0]["excluded"] == true;
        is_excluded && misses.iter().any(|it| it["reason"] == "too_few_cores")
    });
    let exclusion = &state["exclusions"][0];
    assert_eq!((&exclusion["host"], &exclusion["failures"]), (&json!("agent-0"), &json!(1)));
    assert!(exclusion["until"].as_str().unwrap() > state["time"].as_str().unwrap(), "{state}");
    assert_eq!(state["agents"][0]["excluded"], true, "{state}");
    assert_eq!(state["agents"][0]["host"], "agent-0", "{state}");
    let misses = state["nearest_misses"].as_array().unwrap();
    let miss = misses.iter().find(|it| it["reason"] == "too_few_cores").unwrap();
    assert_eq!((&miss["host"], &miss["why"]), (&json!("agent-1"), &json!("1 of 3 cores")));
    let metrics = page.get("/metrics", &[]).body;
    assert!(metrics.contains("\noffermill_agents_excluded 1\n"), "{metrics}");
    assert!(!metrics.contains("declined_total{reason=\"too_few_cores\"} 0\n"), "{metrics}");
    page.end();
}

/// Goal: requests that are malformed, that could change something, or that come from another site are refused, and the
/// page and the run go on. Method: requests that are none, or too long; bodies, also without an end; other methods,
/// origins and names.
#[test]
fn bad_requests_are_refused() {
    let folder = Folder::new();
    let page = PageRun::start(&folder, &["--num-executors", "2"]);
    page.wait_for(|state| state["executors"]["running"] == 2);
    for malformed in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost localhost\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n".to_owned(),
        "GET / HTTP/1.0\r\n\r\n".to_owned(),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(64 << 10)),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(65)),
        request("GET", "http://localhost/state", &[]),
        request("CONNECT", "localhost:22", &[]),
    ] {
        let status = page.send(&malformed).status;
        assert!(status == 0 || (400..=431).contains(&status), "{status}: {malformed:.60?}");
    }
    for (method, headers, body, status) in [
        ("GET", [("Content-Length", "4")], "body", 413),
        ("GET", [("Content-Length", "9999999999")], "body", 413),
        ("POST", [("Transfer-Encoding", "chunked")], "4\r\nbody\r\n", 413),
        ("POST", [("Content-Length", "0")], "", 405),
        ("DELETE", [("Accept", "*/*")], "", 405),
        ("GET", [("Origin", "http://evil.example")], "", 403),
    ] {
        let answer = page.send(&(request(method, "/state", &headers) + body));
        assert_eq!(answer.status, status, "{method} {headers:?}");
    }
    let foreign = page.send("GET /state HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!((foreign.status, foreign.body.contains("demo")), (421, false));
    assert_eq!(page.state()["executors"]["running"], 2);
    let ended = page.end();
    assert!(!ended.errors.contains("panick"), "{}", ended.errors);
}

/// Goal: clients that are slow, silent or many hold neither the page nor the run nor its end. Method: one that sends a
/// request byte by byte is cut off; one that never reads its answers, and two hundred that say nothing, of which the
/// first give way. Meanwhile and then others are answered, and the run ends as always.
#[test]
fn hostile_clients_hold_nothing() {
    let folder = Folder::new();
    let page = PageRun::start(&folder, &["--num-executors", "2"]);
    page.wait_for(|state| state["executors"]["running"] == 2);
    let mut deaf = page.connect();
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let state = request("GET", "/page.js", &[]).replace("close", "keep-alive");
    while deaf.write_all(state.as_bytes()).is_ok() {}
    let mut trickling = page.connect();
    let mut sent = request("GET", "/state", &[]).into_bytes().into_iter().cycle();
    trickling.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ").unwrap();
    trickling.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let give_up = Instant::now() + PATIENCE;
    while let Err(error) = trickling.read_exact(&mut [0]) {
        if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            break;
        }
        assert!(Instant::now() < give_up, "a trickling client isn't cut off");
        let byte = sent.find(u8::is_ascii_alphabetic).unwrap();
        if trickling.write_all(&[byte]).is_err() {
            break;
        }
    }
    let silent: Vec<TcpStream> = (0..200).map(|_| page.connect()).collect();
    assert_eq!(page.get("/health", &[]).status, 200);
    assert!(silent[..100].iter().all(is_closed));
    assert_eq!(page.state()["executors"]["running"], 2);
    let ended = page.end();
    assert!(!ended.errors.contains("panick"), "{}", ended.errors);
    drop((silent, deaf));
}

/// Goal: many clients that ask at once are all answered, and cost the run little. Method: forty threads ask ten times
/// each for the state.
#[test]
fn many_clients_are_answered() {
    let folder = Folder::new();
    let page = PageRun::start(&folder, &["--num-executors", "2"]);
    page.wait_for(|state| state["executors"]["running"] == 2);
    let port = page.port;
    let client = move || {
        for _ in 0..10 {
            let mut stream = connect(port);
            stream.write_all(request("GET", "/state", &[]).as_bytes()).unwrap();
            assert_eq!(read_answer(stream).status, 200);
        }
    };
    let clients: Vec<_> = (0..40).map(|_| spawn(client)).collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    page.end();
}

/// Goal: settings of the page that can't be used end the run at once with a sentence and code 2, and nothing starts.
/// Method: a port in use; texts that are no address; addresses beyond loopback without a token, or without encryption;
/// files that are no token or can be read by others; a certificate without a key.
#[test]
fn bad_settings_are_refused() {
    let folder = Folder::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let path = |file: PathBuf| file.to_str().unwrap().to_owned();
    let open = path(token_file(&folder, TOKEN, 0o644));
    let private = folder.write("private", &format!("{TOKEN}\n"));
    fs::set_permissions(&private, Permissions::from_mode(0o600)).unwrap();
    let private = path(private);
    let short = folder.write("short", "short\n");
    fs::set_permissions(&short, Permissions::from_mode(0o600)).unwrap();
    let short = path(short);
    let certificate = "offermill.http.certificateFile=x.pem";
    for (flags, sentence) in [
        (vec!["--http", &*taken], "but another program listens there"),
        (vec!["--http", "example.org:80"], "must be IP:PORT, or a port, such as 127.0.0.1:4040"),
        (vec!["--http", "192.0.2.1:1", "--http-token-file", &private], "unencrypted"),
        (vec!["--http", "0.0.0.0:0"], "or there must be a token too: --http-token-file"),
        (vec!["--http", "0.0.0.0:0", "--http-token-file", &open], "it can be read by others"),
        (vec!["--http", "0", "--http-token-file", &short], "16 to 1024 letters, digits"),
        (vec!["--http", "0", "--http-token-file", "/nothing"], "must be a file with a token"),
        (vec!["--http", "0", "-c", certificate], "give offermill.http.keyFile too"),
        (
            vec![
                "--http",
                "192.0.2.1:1",
                "--http-token-file",
                &private,
                "-c",
                "offermill.http.tokenOverHttp=true",
            ],
            "but this program can't listen there",
        ),
    ] {
        let ended = finish(&folder, &small(&flags, &["true"]));
        assert_eq!((ended.code, &*ended.output), (Some(2), ""), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(sentence), "{flags:?}: {}", ended.errors);
        assert_eq!(ended.errors.lines().count(), 1, "{flags:?}: {}", ended.errors);
        assert!(!ended.errors.contains(TOKEN), "{}", ended.errors);
    }
    let mut runs = fs::read_dir(folder.0.join("sandboxes")).into_iter().flatten();
    assert!(runs.next().is_none(), "a run has started");
}

/// Goal: with a token nothing is answered without it, a browser that brings it once keeps a cookie that isn't the
/// token, and the token is shown nowhere. Method: requests with and without; what the run prints, the settings that it
/// prints, and all answers.
#[test]
fn a_token_guards_the_page() {
    let folder = Folder::new();
    let file = token_file(&folder, &format!("{TOKEN}\n"), 0o600);
    let flags = ["--num-executors", "1", "--http-token-file", file.to_str().unwrap()];
    let page = PageRun::start(&folder, &flags);
    for path in ["/", "/page.js", "/state", "/history", "/metrics", "/health", "/nothing"] {
        let answer = page.get(path, &[]);
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
    }
    let wrong = format!("Bearer {}", TOKEN.replace('0', "1"));
    assert_eq!(page.get("/state", &[("Authorization", &wrong)]).status, 401);
    assert_eq!(page.get("/?token=wrong", &[]).status, 401);
    let right = format!("Bearer {TOKEN}");
    let bearer = page.get("/state", &[("Authorization", &right)]);
    assert_eq!(bearer.status, 200);
    let brought = page.get(&format!("/?token={TOKEN}"), &[]);
    assert!(brought.status == 303 && brought.head.contains("\r\nlocation: /\r\n"));
    let cookie = brought.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let with_cookie = page.get("/state", &[("Cookie", cookie)]);
    assert_eq!(with_cookie.status, 200);
    let ended = page.end();
    let printed = small(&[&flags[..], &["--http", "0", "--print-config"]].concat(), &["true"]);
    let config = finish(&folder, &printed);
    assert_eq!(config.code, Some(0), "{}", config.errors);
    for text in [
        ended.output,
        ended.errors,
        config.output,
        config.errors,
        bearer.head + &bearer.body,
        brought.head.clone() + &brought.body,
        with_cookie.head + &with_cookie.body,
    ] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

/// Goal: with a certificate the page is served over TLS alone, and beyond loopback too. Method: a client that trusts
/// the certificate's authority; one that speaks no TLS; another machine's view: the address of all interfaces.
#[test]
fn a_page_is_served_over_tls() {
    let folder = Folder::new();
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
    let certificate = format!("offermill.http.certificateFile={certificates}server.pem");
    let key = folder.write("key.pem", "");
    fs::copy(format!("{certificates}server-key.pem"), &key).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let key = format!("offermill.http.keyFile={}", key.display());
    let token = token_file(&folder, TOKEN, 0o600);
    let page = ["--json", "--http", "0.0.0.0:0", "--master", "local[1]", "--num-executors", "1"];
    let tls = ["-c", &certificate, "-c", &key, "--http-token-file", token.to_str().unwrap()];
    let page = PageRun::start_with(&folder, &[&page[..], &tls].concat(), &["sleep", "600"]);
    let authority = fs::read(format!("{certificates}authority.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, page.connect());
    let bearer = format!("Bearer {TOKEN}");
    let health = request("GET", "/health", &[("Authorization", &bearer)]);
    stream.write_all(health.as_bytes()).unwrap();
    let answer = read_answer(stream);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!page.send(&health).body.contains("registered"));
    page.end();
}
