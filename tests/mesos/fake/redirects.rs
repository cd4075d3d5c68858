//! Masters that redirect to another leader.
//!
//! They behave like `Master::Http::redirect`: 307, with a `Location` that begins with `//`, the leader's name and port,
//! and the path of the request; 503 "No leader elected" without a leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use super::master::FakeMaster;
use super::script::{Answer, sound};
use super::{framework, mesos, refusal_of};

fn redirect(location: &str) -> Answer {
    Answer::status("307 Temporary Redirect", &format!("Location: {location}\r\n"), "")
}

/// Goal: a redirection to a configured master is followed, and calls go to the subscribed master. Method: two masters,
/// of which the first redirects to the second, in each form of a location.
#[test]
fn configured_masters_are_followed() {
    for scheme in ["", "http:"] {
        let leader = FakeMaster::new(sound);
        let location = format!("{scheme}//127.0.0.1:{}/api/v1/scheduler", leader.port());
        let other = FakeMaster::new(move |_| redirect(&location));
        let framework = framework(mesos(&[other.port(), leader.port()]), 1).unwrap();
        assert_eq!(framework.id(), "F-0001");
        drop(framework.engine);
        leader.wait_for("TEARDOWN", 0);
        assert!(other.calls().iter().all(|call| call.kind == "SUBSCRIBE"), "{:#?}", other.calls());
    }
}

/// Goal: redirections to servers that aren't configured are not followed, and the error names the target. Method: the
/// only master redirects to another one, which gets no call.
#[test]
fn other_servers_are_not_followed() {
    let stranger = FakeMaster::new(sound);
    let location = format!("//127.0.0.1:{}/api/v1/scheduler", stranger.port());
    let master = FakeMaster::new(move |_| redirect(&location));
    let why = refusal_of(mesos(&[master.port()]));
    assert!(why.contains(&stranger.port().to_string()), "{why}");
    assert_eq!(stranger.calls().len(), 0, "it was followed");
}

/// Goal: a redirection doesn't change the scheme. Method: a redirection to the same master over TLS.
#[test]
fn the_scheme_is_kept() {
    let port = Arc::new(AtomicU16::new(0));
    let own = Arc::clone(&port);
    let master = FakeMaster::new(move |_| {
        redirect(&format!("https://127.0.0.1:{}/api/v1/scheduler", own.load(Ordering::SeqCst)))
    });
    port.store(master.port(), Ordering::SeqCst);
    let why = refusal_of(mesos(&[master.port()]));
    assert!(why.contains("https") || why.contains("redirect") || why.contains("307"), "{why}");
}

/// Goal: masters that redirect to each other don't keep a framework busy. Method: two of them; few enough calls arrive
/// in two seconds that there must have been waits between.
#[test]
fn masters_that_redirect_to_each_other() {
    let second_port = Arc::new(AtomicU16::new(0));
    let target = Arc::clone(&second_port);
    let first = FakeMaster::new(move |_| {
        redirect(&format!("//127.0.0.1:{}/api/v1/scheduler", target.load(Ordering::SeqCst)))
    });
    let back = format!("//127.0.0.1:{}/api/v1/scheduler", first.port());
    let second = FakeMaster::new(move |_| redirect(&back));
    second_port.store(second.port(), Ordering::SeqCst);
    let why = refusal_of(mesos(&[first.port(), second.port()]));
    let calls = first.calls().len() + second.calls().len();
    assert!(calls <= 60, "{calls} calls: {why}");
    assert!(!why.is_empty());
}

/// Goal: a redirection to an invalid location is an error, not a crash. Method: locations that name no master.
#[test]
fn invalid_locations_are_errors() {
    for location in
        ["", "//", "///", "//:5050/x", "//host:99999/", "/api/v1/scheduler", "//[::1/x", "ftp://a/"]
    {
        let master = FakeMaster::new(move |_| redirect(location));
        let mut mesos = mesos(&[master.port()]);
        mesos.subscribe_timeout = Duration::from_millis(600);
        assert!(!refusal_of(mesos).is_empty(), "{location}");
    }
}

/// Goal: after a change of leader the framework finds the new one, and keeps its id. Method: a subscription at the
/// first; then it is closed, and the first redirects to the second.
#[test]
fn the_next_leader_is_found() {
    let second = FakeMaster::new(sound);
    let location = format!("//127.0.0.1:{}/api/v1/scheduler", second.port());
    let first = FakeMaster::new(move |call| match call.number {
        0 => sound(call),
        _ => redirect(&location),
    });
    let framework = framework(mesos(&[first.port(), second.port()]), 1).unwrap();
    framework.id();
    first.cut_stream();
    let call = second.wait_for("SUBSCRIBE", 0);
    assert_eq!(call.body["framework_id"]["value"], "F-0001");
    assert_eq!(call.body["subscribe"]["framework_info"]["id"]["value"], "F-0001");
}
