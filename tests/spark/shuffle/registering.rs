//! Tests of the registrar with correct and with misbehaving services.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use offermill::spark::shuffle::{
    DriverMessage, Registrar, RegistrationState, Service, ShuffleEvent, ShuffleOptions,
};

use super::service::{FakeService, Manner, free_port, host};
use crate::eventually;

const INTERVAL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_millis(1_500);
const REGISTRATION: Duration = Duration::from_millis(500);
/// The time limit of each wait, far above what any step takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(port: u16) -> ShuffleOptions {
    let mut options = ShuffleOptions::new("app-1");
    options.port = port;
    options.heartbeat_interval = INTERVAL;
    options.heartbeat_timeout = TIMEOUT;
    options.registration_timeout = REGISTRATION;
    options
}

fn registrar(port: u16) -> (Registrar, Receiver<ShuffleEvent>) {
    let (sender, news) = channel();
    let tell = move |one| {
        let _ = sender.send(one);
    };
    (Registrar::start(options(port), tell).unwrap(), news)
}

fn next(news: &Receiver<ShuffleEvent>) -> ShuffleEvent {
    news.recv_timeout(PATIENCE).unwrap()
}

fn registered(number: u8, again: bool) -> ShuffleEvent {
    ShuffleEvent::Registered { host: host(number), again }
}

/// Waits for this number of heartbeats.
#[track_caller]
fn beats(service: &FakeService, count: usize) {
    eventually(PATIENCE, "heartbeats", || {
        let is_one = |message: &DriverMessage| matches!(message, DriverMessage::Heartbeat { .. });
        match service.heard().iter().filter(|heard| is_one(&heard.message)).count() {
            beats if beats >= count => Ok(()),
            beats => Err(format!("{beats} of {count}")),
        }
    });
}

/// Goal: each host's service receives one registration and then timely heartbeats, for any number of agents and
/// executors. Method: three hosts, two agents on one of them, several executors on each.
#[test]
fn each_host_is_registered_with_once() {
    let port = free_port();
    let services: Vec<FakeService> =
        (1..=3).map(|number| FakeService::start(number, port, Manner::Good)).collect();
    let (registrar, news) = registrar(port);
    for (agent, number) in [("S1", 1), ("S2", 2), ("S3", 3), ("S4", 3), ("S1", 1), ("S4", 3)] {
        registrar.running(agent, &host(number));
    }
    let mut told: Vec<ShuffleEvent> = (0..3).map(|_| next(&news)).collect();
    told.sort_by_key(|one| format!("{one:?}"));
    assert_eq!(told, [registered(1, false), registered(2, false), registered(3, false)]);
    for service in &services {
        beats(service, 8);
        let heard = service.heard();
        let app_id = || "app-1".to_owned();
        let first = DriverMessage::Register { app_id: app_id(), heartbeat_timeout: TIMEOUT };
        assert_eq!(heard[0].message, first);
        let beat = DriverMessage::Heartbeat { app_id: app_id() };
        assert!(heard[1..].iter().all(|heard| heard.message == beat), "{heard:?}");
        let took = heard[8].at - heard[1].at;
        assert!(took >= INTERVAL * 6, "7 heartbeats took {took:?}");
    }
    let state = RegistrationState::Registered;
    let all: Vec<Service> = (1..=3).map(|n| Service { host: host(n), state }).collect();
    assert_eq!(registrar.services(), all);
    registrar.stop();
    for service in &services {
        eventually(PATIENCE, "closed", || (service.closed() == 1).then_some(()).ok_or("no".into()));
    }
    assert_eq!(news.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

/// Goal: services that start late, or are restarted, are registered with when they are up; each change is reported
/// once. Method: no listener, then one, then none, then one.
#[test]
fn services_come_and_go() {
    let port = free_port();
    let (registrar, news) = registrar(port);
    registrar.running("S1", &host(1));
    let ShuffleEvent::Failing { why, is_refusal: false, .. } = next(&news) else {
        panic!("it can't be")
    };
    assert!(why.contains("refused"), "{why}");
    sleep(Duration::from_millis(700));
    assert_eq!(registrar.services()[0].state, RegistrationState::Failing);
    for _ in 0..2 {
        let service = FakeService::start(1, port, Manner::Good);
        assert_eq!(next(&news), registered(1, true));
        beats(&service, 5);
        assert_eq!(service.registrations(), 1);
        drop(service);
        assert!(matches!(next(&news), ShuffleEvent::Failing { .. }));
    }
    assert!(news.try_recv().is_err(), "told once");
}

/// Goal: each failure of a service is reported once, in a sentence, and the registration is retried until it succeeds.
/// Method: one service per kind of failure, which fails several attempts and then works.
#[test]
fn what_goes_wrong_is_told_once() {
    let wrong = [
        (Manner::Refuses, "java.lang.IllegalStateException: not here"),
        (Manner::Closes, ""),
        (Manner::Mute, "no answer in time"),
        (Manner::Garbage, "the service sent a frame with an invalid length"),
        (Manner::Boasts, "the service sent a frame with an invalid length"),
        (Manner::Confused, "the service sent an unexpected answer"),
        (Manner::Slow, "no answer in time"),
    ];
    for (manner, expected) in wrong {
        let port = free_port();
        let service = FakeService::start(1, port, manner);
        let (registrar, news) = registrar(port);
        registrar.running("S1", &host(1));
        let ShuffleEvent::Failing { why, is_refusal, host: name } = next(&news) else {
            panic!("{manner:?}")
        };
        assert_eq!((is_refusal, name), (manner == Manner::Refuses, host(1)));
        assert!(why == expected || manner == Manner::Closes, "{manner:?}: {why}");
        sleep(Duration::from_millis(900));
        assert!(manner == Manner::Closes || service.registrations() > 1, "{manner:?} not tried");
        assert!(service.registrations() < 8, "{manner:?} tried all the time");
        service.behave(Manner::Good);
        assert_eq!(next(&news), registered(1, true), "{manner:?}");
        beats(&service, 3);
    }
}

/// Goal: a service that accepts registrations and closes the connection causes neither many attempts nor many events.
/// Method: one that does so for a while and then stops.
#[test]
fn a_service_that_takes_and_closes_fails() {
    let port = free_port();
    let service = FakeService::start(1, port, Manner::TakesAndCloses);
    let (registrar, news) = registrar(port);
    registrar.running("S1", &host(1));
    assert_eq!(next(&news), registered(1, false));
    assert!(matches!(next(&news), ShuffleEvent::Failing { .. }));
    sleep(Duration::from_secs(2));
    let registrations = service.registrations();
    assert!((3..10).contains(&registrations), "{registrations} in 2 s");
    assert!(news.try_recv().is_err(), "told once");
    service.behave(Manner::Good);
    assert_eq!(next(&news), registered(1, true));
    // A connection that was opened before may still be closed.
    eventually(PATIENCE, "the service is registered with", || {
        let state = registrar.services()[0].state;
        (state == RegistrationState::Registered).then_some(()).ok_or(format!("{state:?}"))
    });
}

/// Goal: hosts that don't answer delay one that does by at most one registration timeout, and don't delay the stop.
/// Method: more mute hosts than calls at a time, known for long, then a good one; then the stop.
#[test]
fn mute_hosts_delay_no_other() {
    let port = free_port();
    let mute: Vec<FakeService> =
        (1..=40).map(|number| FakeService::start(number, port, Manner::Mute)).collect();
    let good = FakeService::start(99, port, Manner::Good);
    let (registrar, news) = registrar(port);
    for service in &mute {
        registrar.running(&service.host, &service.host);
    }
    for _ in &mute {
        assert!(matches!(next(&news), ShuffleEvent::Failing { .. }));
    }
    let began = Instant::now();
    registrar.running("S99", &good.host);
    assert_eq!(next(&news), registered(99, false));
    assert!(began.elapsed() < REGISTRATION * 3, "took {:?}", began.elapsed());
    let began = Instant::now();
    registrar.stop();
    assert!(began.elapsed() < REGISTRATION / 2, "took {:?}", began.elapsed());
}

/// Goal: a program that was suspended for longer than the timeout registers again, because the service has deleted its
/// files by then. Method: the event about a second service blocks the registrar's thread for that time.
#[test]
fn after_a_long_silence_it_registers_again() {
    let port = free_port();
    let services = [1, 2].map(|number| FakeService::start(number, port, Manner::Good));
    let (sender, news) = channel();
    let tell = move |one: ShuffleEvent| {
        if one == registered(2, false) {
            sleep(TIMEOUT + INTERVAL);
        }
        let _ = sender.send(one);
    };
    let registrar = Registrar::start(options(port), tell).unwrap();
    registrar.running("S1", &host(1));
    assert_eq!(next(&news), registered(1, false));
    beats(&services[0], 3);
    registrar.running("S2", &host(2));
    assert_eq!(next(&news), registered(2, false));
    let told = [next(&news), next(&news)];
    assert!([1, 2].iter().all(|number| told.contains(&registered(*number, true))), "{told:?}");
    services.iter().for_each(|service| assert_eq!(service.registrations(), 2));
}

/// Goal: on a host without agents, a service that listens still receives heartbeats, and one that doesn't is forgotten.
/// Method: agents on both are lost.
#[test]
fn lost_agents_are_let_go() {
    let port = free_port();
    let service = FakeService::start(1, port, Manner::Good);
    let (registrar, news) = registrar(port);
    registrar.running("S1", &host(1));
    registrar.running("S2", &host(2));
    let told = [next(&news), next(&news)];
    assert!(told.contains(&registered(1, false)), "{told:?}");
    ["S1", "S2", "S3"].iter().for_each(|agent| registrar.lost(agent));
    eventually(PATIENCE, "one is forgotten", || match registrar.services().as_slice() {
        [one] if one.host == host(1) => Ok(()),
        services => Err(format!("{services:?}")),
    });
    beats(&service, service.heard().len() + 3);
    drop(service);
    eventually(PATIENCE, "the other, too", || match registrar.services().as_slice() {
        [] => Ok(()),
        services => Err(format!("{services:?}")),
    });
    let service = FakeService::start(1, port, Manner::Good);
    registrar.running("S4", &host(1));
    assert_eq!(next(&news), registered(1, false));
    beats(&service, 1);
}

/// Goal: invalid options are refused. Method: one of each.
#[test]
fn senseless_options_are_refused() {
    let refused = |change: fn(&mut ShuffleOptions)| {
        let mut options = options(7337);
        change(&mut options);
        assert!(Registrar::start(options, |_| ()).unwrap_err().is_setting());
    };
    refused(|options| options.app_id.clear());
    refused(|options| options.app_id = "x".repeat(5_000));
    refused(|options| options.port = 0);
    refused(|options| options.heartbeat_interval = Duration::ZERO);
    refused(|options| options.heartbeat_interval = options.heartbeat_timeout);
    refused(|options| options.registration_timeout = Duration::ZERO);
}
