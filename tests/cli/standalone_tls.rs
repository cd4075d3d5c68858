//! Tests of the standalone cluster over TLS: a master with a certificate, workers and runs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{Folder, Run, finish, small};

pub(crate) const CERTIFICATES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
pub(crate) const TOKEN: &str = "0123456789abcdef";
/// The principal `etl` with the secret `s3cret`.
pub(crate) const ETL: &str = "authorization: Basic ZXRsOnMzY3JldA==\r\n";
/// A timeout far beyond the duration of any test, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the files of all: certificates, keys, credentials.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["authority.pem", "server.pem", "server-key.pem", "client.pem", "client-key.pem"] {
        let text = std::fs::read_to_string(format!("{CERTIFICATES}{name}")).unwrap();
        private(&folder, name, &text);
    }
    private(&folder, "principals", "etl s3cret\n");
    private(&folder, "tokens", &format!("{TOKEN}\n"));
    private(&folder, "token", TOKEN);
    private(&folder, "secret", "s3cret");
    folder
}

fn private(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Starts a master on all addresses, and returns its port.
pub(crate) fn start_master(folder: &Folder, flags: &[&str]) -> (Run, u16) {
    let tls = ["--certificate-file", "server.pem", "--key-file", "server-key.pem"];
    let files = ["--principals-file", "principals", "--worker-tokens-file", "tokens"];
    let master = ["master", "--listen", "0.0.0.0:0", "--state-dir", "master"];
    let mut run = Run::start(folder, &[&master[..], &tls, &files, flags].concat());
    let sentence = run.line(|line| line.contains("listens at https://"));
    let port = sentence.rsplit(':').next().unwrap().parse().unwrap();
    (run, port)
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request over TLS, with the client's certificate or without, and returns the whole answer.
pub(crate) fn ask(port: u16, has_certificate: bool, request: &str) -> String {
    let mut stream = StreamOwned::new(tls_client(has_certificate), connect(port));
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).unwrap();
    let _cut = stream.read_to_string(&mut answer);
    answer
}

/// A client that trusts the authority, with a certificate or without.
pub(crate) fn tls_client(has_certificate: bool) -> ClientConnection {
    let read = |name: &str| std::fs::read(format!("{CERTIFICATES}{name}")).unwrap();
    let certificate = |name: &str| CertificateDer::from_pem_slice(&read(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("authority.pem")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match has_certificate {
        false => config.with_no_client_auth(),
        true => {
            let key = PrivateKeyDer::from_pem_slice(&read("client-key.pem")).unwrap();
            config.with_client_auth_cert(vec![certificate("client.pem")], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

pub(crate) fn get_state(header: &str) -> String {
    format!("GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n")
}

/// The first message of a worker, by hand.
fn post_worker() -> String {
    let call = r#"{"type":"HEARTBEAT"}"#;
    let record = format!("{}\n{call}", call.len());
    let length = record.len();
    format!(
        "POST /api/v1/worker HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {TOKEN}\r\ncontent-length: {length}\r\n\r\n{record}"
    )
}

/// Goal: an executor runs over TLS and credentials, from a master that listens beyond loopback, and no secret needs a
/// flag that allows it in clear. Method: master, worker and run, the latter two by `offermill://` with the authority;
/// the worker's certificate is demanded.
#[test]
fn executors_run_over_tls() {
    let folder = folder();
    let (master, port) = start_master(&folder, &["--worker-ca-file", "authority.pem"]);
    let url = format!("offermill://localhost:{port}");
    let ca = ["--ca-file", "authority.pem"];
    let worker = ["worker", "--master", &url, "--token-file", "token", "--work-dir", "worker"];
    let size = ["--hostname", "h1", "--cores", "2", "--memory", "1g"];
    let shown = ["--client-certificate-file", "client.pem", "--client-key-file", "client-key.pem"];
    let worker = Run::start(&folder, &[&worker[..], &ca, &size, &shown].concat());
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = format!("offermill.mesos.user={}", String::from_utf8(user).unwrap().trim());
    let own = ["--master", &url, "-c", &user, "--principal", "etl", "--secret-file", "secret"];
    let count = ["--num-executors", "1", "--until-finished"];
    let run = Run::start(&folder, &small(&[&own[..], &ca, &count].concat(), &["true"])).end();
    assert_eq!(run.code, Some(0), "{}\n{}", run.output, run.errors);
    worker.signal("TERM");
    let ended = worker.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    master.signal("TERM");
    assert_eq!(master.end().code, Some(0));
}

/// Listens for one client, passes on what it and a server say to each other, and returns when both have hung up.
fn relay(to: Option<u16>) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let relayed = spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let Some(to) = to else {
            let mut bytes = vec![0; 4096];
            let length = client.read(&mut bytes).unwrap();
            bytes.truncate(length);
            return bytes;
        };
        let server = connect(to);
        let (mut from_server, mut to_client) =
            (server.try_clone().unwrap(), client.try_clone().unwrap());
        let back = spawn(move || {
            let _cut = std::io::copy(&mut from_server, &mut to_client);
            let _closed = to_client.shutdown(Shutdown::Both);
        });
        let _cut = std::io::copy(&mut client, &mut &server);
        let _closed = server.shutdown(Shutdown::Both);
        back.join().unwrap();
        Vec::new()
    });
    (port, relayed)
}

/// Goal: a program at the master's address that doesn't have its key gets neither a worker's token nor its obedience.
/// Method: a listener without TLS that keeps what it is sent, and a master whose certificate is of an authority that
/// the worker doesn't trust: the worker hangs up.
#[test]
fn no_token_is_sent_to_another_master() {
    let folder = folder();
    let worker = ["worker", "--token-file", "token", "--work-dir", "worker", "--hostname", "h1"];
    let (port, heard) = relay(None);
    let url = format!("https://localhost:{port}");
    let trusting = ["--master", &url, "--ca-file", "authority.pem"];
    let waiting = Run::start(&folder, &[&worker[..], &trusting].concat());
    let heard = String::from_utf8_lossy(&heard.join().unwrap()).into_owned();
    assert!(!heard.is_empty() && !heard.contains("Bearer") && !heard.contains(TOKEN), "{heard}");
    drop(waiting);

    let (_master, port) = start_master(&folder, &[]);
    let (relayed, hung_up) = relay(Some(port));
    let url = format!("https://localhost:{relayed}");
    let distrusting = ["--master", &url, "--ca-file", "client.pem", "--ca-file-only"];
    let waiting = Run::start(&folder, &[&worker[..], &distrusting].concat());
    hung_up.join().unwrap();
    let state = ask(port, false, &get_state(ETL));
    assert!(state.contains("\"workers\":0"), "{state}");
    drop(waiting);
}

/// Goal: without TLS nothing is answered, connections that stop in the handshake keep nobody out, and what TLS lets
/// through still needs its credentials. Method: a request in clear, a silent one and half a handshake, which stay open;
/// requests with and without credentials and certificate.
#[test]
fn hostile_clients_get_nothing_over_tls() {
    let folder = folder();
    let (_master, port) = start_master(&folder, &["--worker-ca-file", "authority.pem"]);
    let mut clear = connect(port);
    clear.write_all(get_state(ETL).as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _cut = clear.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("workers"));
    let silent = connect(port);
    let mut half = connect(port);
    half.write_all(&[22, 3, 1, 2, 0, 1, 0]).unwrap();
    let answer = ask(port, false, &get_state(ETL));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(ask(port, false, &get_state("")).starts_with("HTTP/1.1 401 "));
    let answer = ask(port, false, &post_worker());
    assert!(answer.contains("workers must show a certificate"), "{answer}");
    let answer = ask(port, true, &post_worker());
    assert!(answer.contains("the first message isn't SUBSCRIBE"), "{answer}");
    drop((silent, half));
}

/// Goal: what can't be used for TLS, or leaves something open, is refused before anything is served. Method: each kind.
#[test]
fn bad_tls_is_refused() {
    let folder = folder();
    private(&folder, "empty", "");
    folder
        .write("open-key.pem", &std::fs::read_to_string(folder.0.join("server-key.pem")).unwrap());
    let tls = ["--certificate-file", "server.pem", "--key-file", "server-key.pem"];
    let files = ["--principals-file", "principals", "--worker-tokens-file", "tokens"];
    let public = ["--listen", "0.0.0.0:0"];
    for (flags, expected) in [
        (public.to_vec(), "has no TLS and no principals and no worker tokens; give"),
        ([&public[..], &tls].concat(), "has no principals and no worker tokens; give"),
        ([&public[..], &files].concat(), "has no TLS; give"),
        ([&public[..], &tls, &files[..2]].concat(), "has no worker tokens; give"),
        (vec!["--certificate-file", "server.pem"], "--key-file"),
        (vec!["--worker-ca-file", "authority.pem"], "--certificate-file"),
        (vec!["--certificate-file", "empty", "--key-file", "server-key.pem"], "contains none"),
        (vec!["--certificate-file", "server.pem", "--key-file", "empty"], "contains none"),
        (vec!["--certificate-file", "server.pem", "--key-file", "client-key.pem"], "can't be used"),
        (vec!["--certificate-file", "server.pem", "--key-file", "open-key.pem"], "other users"),
        ([&tls[..], &["--worker-ca-file", "empty"]].concat(), "contains none"),
    ] {
        let ended = finish(&folder, &[&["master", "--state-dir", "other"], &flags[..]].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {}{}", ended.output, ended.errors);
        assert!(ended.errors.contains(expected), "{flags:?}: {}", ended.errors);
        assert!(!folder.0.join("other").exists(), "{flags:?}");
    }
    let mut insecure = Run::start(
        &folder,
        &["master", "--state-dir", "other", "--listen", "0.0.0.0:0", "--insecure"],
    );
    insecure.line(|line| line.contains("listens at 0.0.0.0:"));
    insecure.signal("TERM");
    let ended = insecure.end();
    assert!(ended.errors.contains("--insecure: who reaches 0.0.0.0:"), "{}", ended.errors);
}
