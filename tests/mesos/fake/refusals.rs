//! Servers that don't accept a subscription.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use serde_json::json;

use super::master::FakeMaster;
use super::script::{Answer, Then, sound, subscribed};
use super::{SUBSCRIBE_TIMEOUT, framework, mesos, refusal_of};

/// A port without a listener.
fn unused_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Asserts that the reported reason contains all of `words`.
#[track_caller]
fn assert_refused(ports: &[u16], words: &[&str]) {
    let begun = Instant::now();
    let why = refusal_of(mesos(ports));
    for word in words {
        assert!(why.to_lowercase().contains(&word.to_lowercase()), "{word:?} is not in: {why}");
    }
    assert!(!why.contains('\n') && why.len() < 1000, "no sentence: {why}");
    assert!(begun.elapsed() < SUBSCRIBE_TIMEOUT * 2, "it took {:?}", begun.elapsed());
}

/// Goal: without a master the error names the addresses that were tried. Method: two ports without listeners; the
/// operating system refuses connections.
#[test]
fn no_master() {
    let (first, second) = (unused_port(), unused_port());
    assert_refused(&[first, second], &[&first.to_string(), "refused"]);
}

/// Goal: the time until the first subscription is used to its end. Method: a master that begins to accept subscriptions
/// in the last moment, and one that never does.
#[test]
fn the_last_attempt_is_made_at_the_limit() {
    let begun = Instant::now();
    let starting = || Answer::status("503 Service Unavailable", "", "starting");
    let late = FakeMaster::new(move |call| match begun.elapsed() + Duration::from_millis(20) {
        passed if passed >= SUBSCRIBE_TIMEOUT => sound(call),
        _ => starting(),
    });
    let subscribed = framework(mesos(&[late.port()]), 0).unwrap();
    assert_eq!(subscribed.id(), "F-0001");
    let never = FakeMaster::new(move |_| starting());
    let begun = Instant::now();
    let why = refusal_of(mesos(&[never.port()]));
    assert!(why.contains("within 2 s"), "{why}");
    assert!(begun.elapsed() >= SUBSCRIBE_TIMEOUT, "given up after {:?}", begun.elapsed());
}

/// Goal: a server that accepts connections and doesn't answer is given up. Method: a listener that never answers (like
/// a stopped process, or a port behind a firewall that drops packets).
#[test]
fn a_server_that_does_not_answer() {
    let fake = FakeMaster::new(|_| Answer::none().then(Then::Silence(Duration::from_secs(30))));
    assert_refused(&[fake.port()], &[&fake.port().to_string(), "no answer"]);
}

/// Goal: a master that accepts the subscription and then sends nothing is given up in time. Method: the head of a
/// stream and no event.
#[test]
fn a_stream_without_events() {
    let fake = FakeMaster::new(|_| Answer::stream("s-1"));
    assert_refused(&[fake.port()], &[&fake.port().to_string(), "no event"]);
}

/// Goal: a web server is distinguished from a master. Method: a page with status 200, without a stream id, which every
/// answer to SUBSCRIBE has (`Master::Http::scheduler`).
#[test]
fn a_web_page() {
    let page = "<html><body>It works!</body></html>";
    let fake =
        FakeMaster::new(move |_| Answer::status("200 OK", "Content-Type: text/html\r\n", page));
    assert_refused(&[fake.port()], &["mesos"]);
}

/// Goal: the same for a page that doesn't exist. Method: 404, as any other web server answers.
#[test]
fn a_missing_page() {
    let fake = FakeMaster::new(|_| Answer::status("404 Not Found", "", "no such page"));
    assert_refused(&[fake.port()], &["404"]);
}

/// Goal: a server that doesn't speak HTTP is an error, not a crash. Method: an SSH server's greeting, then random
/// bytes, then a closed connection.
#[test]
fn a_server_without_http() {
    for bytes in [&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..], &[0xff, 0, 13, 10, 13, 10, 7], b""] {
        let bytes = bytes.to_vec();
        let fake = FakeMaster::new(move |_| Answer::bytes(bytes.clone()));
        assert_refused(&[fake.port()], &[&fake.port().to_string()]);
    }
}

/// Goal: a head without an end takes no memory. Method: endless header lines, with status 200.
#[test]
fn an_endless_head() {
    let fake = FakeMaster::new(|_| {
        Answer::bytes("HTTP/1.1 200 OK\r\n").then(Then::Flood(b"X-More: and more\r\n".to_vec()))
    });
    assert_refused(&[fake.port()], &[&fake.port().to_string()]);
    let tries = fake.calls().len();
    assert!(fake.flooded() < tries * (16 << 20), "{} bytes in {tries} tries", fake.flooded());
}

/// Goal: a wrong credential is reported as such, and not retried. Method: 401, as libprocess'
/// `BasicAuthenticatorProcess` answers; then 403, as `Master::Http::scheduler` does.
#[test]
fn wrong_credentials() {
    for (status, headers) in [
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=\"mesos-scheduler\"\r\n"),
        ("403 Forbidden", ""),
    ] {
        let fake = FakeMaster::new(move |_| Answer::status(status, headers, "not you"));
        assert_refused(&[fake.port()], &[&status[..3], "not you"]);
        assert!(fake.calls().len() <= 3, "{} tries", fake.calls().len());
    }
}

/// Goal: a role that isn't allowed is reported with the master's message, and the framework doesn't retry. Method: 200,
/// then an ERROR and the last chunk at once, as `Master::subscribe` does when `validateFramework` or the authorization
/// of roles fails (PROTOCOL 4).
#[test]
fn a_refused_role() {
    let why = "Not authorized to use role 'analytics'";
    let fake = FakeMaster::new(move |_| {
        Answer::stream("s-1").event(&json!({"type": "ERROR", "error": {"message": why}})).end()
    });
    assert_refused(&[fake.port()], &[why]);
    let tries = fake.calls().len();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(fake.calls().len(), tries, "it came again");
    assert_eq!(tries, 1);
}

/// Goal: a framework that was removed doesn't subscribe again with its id. Method: a sound subscription, then ERROR
/// "Framework has been removed", as `Master::failoverFramework` and `_subscribe` send it for a completed framework.
#[test]
fn a_framework_that_was_removed() {
    let fake = FakeMaster::new(sound);
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    fake.send(&json!({"type": "ERROR", "error": {"message": "Framework has been removed"}}));
    let why = framework.notices.wait("refusal", |notice| match notice {
        offermill::engine::Notice::Refused { why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("Framework has been removed"), "{why}");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1, "it came again");
}

/// Goal: the framework waits for a master that isn't ready yet. Method: 503 twice, as `Master::Http::scheduler` answers
/// until recovery has ended, then a subscription.
#[test]
fn a_master_that_recovers() {
    let fake = FakeMaster::new(|call| match call.number {
        0 | 1 => Answer::status("503 Service Unavailable", "", "Master has not finished recovery"),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 3);
}

/// Goal: a master that has just started is not mistaken for another server. Method: 404 twice, as libprocess answers
/// while the master's actor doesn't exist yet (observed with a real one), then a subscription.
#[test]
fn a_master_that_has_just_started() {
    let fake = FakeMaster::new(|call| match call.number {
        0 | 1 => Answer::status("404 Not Found", "", "404 Not Found."),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
}

/// Goal: a master that is down doesn't matter if another one leads. Method: a port without a listener, then a sound
/// master.
#[test]
fn the_second_master_is_used() {
    let fake = FakeMaster::new(sound);
    let framework = framework(mesos(&[unused_port(), fake.port()]), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
}

/// Goal: an invalid stream id isn't sent back. Method: none, one that is longer than the 128 bytes that Mesos'
/// documentation allows, and one with bytes that are invalid in a header. No Mesos sends these: its ids are UUIDs.
#[test]
fn invalid_stream_ids() {
    let long = "x".repeat(4096);
    for header in
        ["".to_owned(), format!("Mesos-Stream-Id: {long}\r\n"), "Mesos-Stream-Id: \r\n".to_owned()]
    {
        let fake = FakeMaster::new(move |call| match call.kind.as_str() {
            "SUBSCRIBE" => Answer::stream_with(&header).event(&subscribed(call, 15.0)),
            _ => Answer::status("202 Accepted", "", ""),
        });
        let why = refusal_of(mesos(&[fake.port()]));
        assert!(why.to_lowercase().contains("stream"), "{why}");
        assert!(!why.contains(&long[..200]), "{why}");
    }
}

/// Goal: subscriptions at a master that closes the stream at once are not repeated without waits. Method: each
/// subscription is ended right after its first event; few arrive in three seconds, because waits double.
#[test]
fn a_master_that_closes_streams_at_once() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "SUBSCRIBE" => Answer::stream("s-1").event(&subscribed(call, 15.0)).end(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    std::thread::sleep(Duration::from_secs(3));
    let tries = fake.calls_of("SUBSCRIBE").len();
    assert!((3..=10).contains(&tries), "{tries} subscriptions in three seconds");
}
