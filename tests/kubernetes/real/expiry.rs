//! What ends by itself while a run goes on: a connection of which nothing is heard any more, and a token.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use offermill::TaskState;
use offermill::cluster::kubernetes::{ApiServer, Secret};
use offermill::engine::cluster_manager::{ClusterManager, Event};

use super::rights::{account_token, further_token, grant};
use super::{PATIENCE, config, ctl, curl, file, url, wait_state};
use crate::eventually::eventually;
use crate::framework::Framework;

/// Passes bytes on between the manager and the API server, until it freezes those connections that there are then: they
/// stay open, and nothing is heard on them any more.
struct Proxy {
    url: String,
    /// Of each connection, whether it is frozen.
    connections: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
    /// The bytes that were held back.
    held: Arc<AtomicUsize>,
}

impl Proxy {
    fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = format!("https://{}", listener.local_addr().unwrap());
        let server = url().trim_start_matches("https://").to_owned();
        let proxy = Proxy { url: own, connections: Arc::default(), held: Arc::default() };
        let (connections, held) = (Arc::clone(&proxy.connections), Arc::clone(&proxy.held));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&server) else { continue };
                let is_frozen = Arc::new(AtomicBool::new(false));
                connections.lock().unwrap().push(Arc::clone(&is_frozen));
                let pairs = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
                for (from, to) in pairs {
                    let (is_frozen, held) = (Arc::clone(&is_frozen), Arc::clone(&held));
                    thread::spawn(move || pass_on(from, to, &is_frozen, &held));
                }
            }
        });
        proxy
    }

    fn freeze(&self) {
        let connections = self.connections.lock().unwrap();
        connections.iter().for_each(|it| it.store(true, Ordering::SeqCst));
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_frozen: &AtomicBool, held: &AtomicUsize) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if is_frozen.load(Ordering::SeqCst) {
            held.fetch_add(length, Ordering::SeqCst);
        } else if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // What is frozen has no end either.
    if !is_frozen.load(Ordering::SeqCst) {
        let _ended = to.shutdown(Shutdown::Both);
    }
}

/// How the API server is reached at this address as an administrator.
fn through(url: &str) -> ApiServer {
    let token = String::from_utf8(file("pki/token")).unwrap();
    ApiServer::Url {
        url: url.to_owned(),
        token: Some(Secret::new(token.trim())),
        token_file: None,
        authorities: Some(file("pki/ca.crt")),
        key_pair: None,
    }
}

/// Goal: a watch that is silent although its connection is open is noticed within 65 s, another takes its place, and
/// what it didn't show is found; nothing is lost or killed, and the lease is held all the while. Method: all
/// connections freeze that there are; an executor ends.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_watch_is_silent() {
    let proxy = Proxy::start();
    // Long enough for renewals that are sent on frozen connections, and end at their time.
    let config = config("silent").with_lease_duration(Duration::from_secs(30));
    let framework = Framework::start(config.with_api_server(through(&proxy.url)), 30);
    framework.launch(2);
    wait_state(&framework, "etl-30-0.0", TaskState::Running);
    wait_state(&framework, "etl-30-1.0", TaskState::Running);
    proxy.freeze();
    let frozen = Instant::now();
    ctl(&["exit", "etl-30-0-0", "0"]);
    wait_state(&framework, "etl-30-0.0", TaskState::Finished);
    let noticed = frozen.elapsed();
    println!("a silent watch was noticed after {noticed:.1?}");
    // The watch began before; a busy machine may take some seconds in addition.
    assert!(noticed < Duration::from_secs(75), "{noticed:?}");
    assert!(proxy.held.load(Ordering::SeqCst) > 0, "the watch would have shown it");
    let is_loss =
        |event: &Event| matches!(event, Event::CallFailed { why } if why.contains("lease"));
    assert!(!framework.events().iter().any(is_loss));
    framework.launch(1);
    wait_state(&framework, "etl-30-2.0", TaskState::Running);
    assert_eq!(framework.states("etl-30-1.0").last(), Some(&TaskState::Running));
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
}

/// The API server, with the token of this file.
fn by_file(path: &Path) -> ApiServer {
    ApiServer::Url {
        url: url(),
        token: None,
        token_file: Some(path.to_owned()),
        authorities: Some(file("pki/ca.crt")),
        key_pair: None,
    }
}

/// Goal: a token that has ended costs no request if the next one is in the file, although it was read a moment ago.
/// Method: an account with two tokens; the second takes the place of the first, which ends; then one executor is killed
/// and another launched.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_token_takes_the_place_of_another() {
    let account = "renewed";
    grant(account);
    let (secret, token) = account_token(account);
    let path = std::env::temp_dir().join(format!("offermill-renewed-{}", std::process::id()));
    std::fs::write(&path, token).unwrap();
    let framework = Framework::start(config("renewed").with_api_server(by_file(&path)), 32);
    framework.launch(1);
    wait_state(&framework, "etl-32-0.0", TaskState::Running);
    std::fs::write(&path, further_token(account)).unwrap();
    curl("DELETE", &format!("/api/v1/namespaces/default/secrets/{secret}"), None);
    // The server caches tokens for 10 s.
    thread::sleep(Duration::from_secs(11));
    framework.kill("etl-32-0.0");
    wait_state(&framework, "etl-32-0.0", TaskState::Killed);
    framework.launch(1);
    wait_state(&framework, "etl-32-1.0", TaskState::Running);
    let is_refusal =
        |event: &Event| matches!(event, Event::CallFailed { why } if why.contains("nauthorized"));
    assert!(!framework.events().iter().any(is_refusal), "{:?}", framework.events());
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
    std::fs::remove_file(path).unwrap();
}

/// Goal: a token that is no longer valid is said, costs no executor, and the next one in its file is used at once.
/// Method: the secret of a service account's token is deleted, which ends the token, until the lease has expired;
/// meanwhile an executor ends. The account's next token takes its place in the file.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_token_ends() {
    let account = "fleeting";
    grant(account);
    let (secret, token) = account_token(account);
    let path = std::env::temp_dir().join(format!("offermill-fleeting-{}", std::process::id()));
    std::fs::write(&path, token).unwrap();
    let framework = Framework::start(config("token").with_api_server(by_file(&path)), 31);
    framework.launch(2);
    wait_state(&framework, "etl-31-0.0", TaskState::Running);
    wait_state(&framework, "etl-31-1.0", TaskState::Running);
    curl("DELETE", &format!("/api/v1/namespaces/default/secrets/{secret}"), None);
    let is_refusal = |why: &str| why.contains("renewal") && why.contains("nauthorized");
    let is_said = |event: &Event| matches!(event, Event::CallFailed { why } if is_refusal(why));
    eventually(PATIENCE, "that the token isn't accepted", || {
        if framework.events().iter().any(is_said) { Ok(()) } else { Err(String::new()) }
    });
    ctl(&["exit", "etl-31-0-0", "0"]);
    let (_, token) = account_token(account);
    std::fs::write(&path, token).unwrap();
    wait_state(&framework, "etl-31-0.0", TaskState::Finished);
    framework.launch(1);
    wait_state(&framework, "etl-31-2.0", TaskState::Running);
    assert_eq!(framework.states("etl-31-1.0").last(), Some(&TaskState::Running));
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
    std::fs::remove_file(path).unwrap();
}
