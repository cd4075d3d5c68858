//! Acknowledgements of very many updates: several in flight at a time, in order, and none dropped.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use offermill::engine::Notice;

use super::master::FakeMaster;
use super::script::{Answer, Call, chunk, record, sound, update};
use super::{framework, mesos};

fn crowded(notice: &Notice) -> bool {
    matches!(notice, Notice::CallFailed { why } if why.contains("too many calls wait"))
}

fn acknowledged(call: &Call) -> (String, String) {
    let it = &call.body["acknowledge"];
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    (text(&it["task_id"]["value"]), text(&it["uuid"]))
}

/// Goal: a slow master is sent several acknowledgements at a time, and those of one task in order. Method: each is
/// answered when three more have arrived, or after a while; sixteen tasks have eight updates each.
#[test]
fn several_acknowledgements_at_a_time() {
    const TOGETHER: usize = 4;
    let (here, most) =
        (Arc::new((Mutex::new(0_usize), Condvar::new())), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let fake = FakeMaster::new(move |call| {
        if call.kind == "ACKNOWLEDGE" {
            let (count, changed) = &*here;
            let mut now = count.lock().unwrap();
            *now += 1;
            seen.fetch_max(*now, Ordering::SeqCst);
            changed.notify_all();
            let patience = Duration::from_millis(100);
            now = changed.wait_timeout_while(now, patience, |now| *now < TOGETHER).unwrap().0;
            *now -= 1;
        }
        sound(call)
    });
    let framework = framework(mesos(&[fake.port()]), 0).unwrap();
    framework.id();
    for round in 0..8 {
        for task in 0..16 {
            let uuid = format!("AAA{}", char::from(b'A' + round));
            fake.send(&update(&format!("t-{task}"), "S-1", "TASK_FINISHED", Some(&uuid)));
        }
    }
    fake.wait_for("ACKNOWLEDGE", 16 * 8 - 1);
    let mut orders = HashMap::<String, Vec<String>>::new();
    for (task, uuid) in fake.calls_of("ACKNOWLEDGE").iter().map(acknowledged) {
        orders.entry(task).or_default().push(uuid);
    }
    for (task, uuids) in orders {
        assert!(uuids.len() == 8 && uuids.is_sorted(), "{task}: {uuids:?}");
    }
    assert!(most.load(Ordering::SeqCst) >= TOGETHER, "{most:?} at a time");
}

/// Goal: if there are more updates than queued acknowledgements are allowed, all are acknowledged, however slow the
/// master is: the stream is not read in the meantime. Method: no acknowledgement is answered until 40 000 updates were
/// written or none has been read for a while.
#[test]
fn more_updates_than_the_queue_holds() {
    const UPDATES: usize = 40_000;
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (held, counted) = (Arc::clone(&gate), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&counted);
    let fake = FakeMaster::counting(move |call| {
        if call.kind == "ACKNOWLEDGE" {
            let (is_open, changed) = &*held;
            drop(changed.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
            count.fetch_add(1, Ordering::SeqCst);
        }
        sound(call)
    });
    let mut mesos = mesos(&[fake.port()]);
    mesos.call_timeout = Duration::from_secs(60);
    let framework = framework(mesos, 0).unwrap();
    framework.id();
    let mut stream = fake.newest_stream();
    let written = Arc::new(AtomicUsize::new(0));
    let progress = Arc::clone(&written);
    let writer = std::thread::spawn(move || {
        for hundred in 0..UPDATES / 100 {
            let updates = (0..100).map(|number| {
                let task = format!("unknown-{}", hundred * 100 + number);
                record(&update(&task, "S-1", "TASK_FINISHED", Some("AAAA")))
            });
            stream.write_all(&chunk(&updates.collect::<Vec<_>>().concat())).unwrap();
            progress.fetch_add(100, Ordering::SeqCst);
        }
    });
    let mut before = 0;
    while !writer.is_finished() {
        std::thread::sleep(Duration::from_secs(2));
        let now = written.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(framework.notices.count(crowded), 0, "acknowledgements were dropped");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    writer.join().unwrap();
    let mut patience = 60;
    while counted.load(Ordering::SeqCst) < UPDATES {
        std::thread::sleep(Duration::from_secs(1));
        patience -= 1;
        assert!(patience > 0, "{counted:?} of {UPDATES}");
    }
    assert_eq!(framework.notices.count(crowded), 0, "acknowledgements were dropped");
    let refused = |notice: &Notice| matches!(notice, Notice::Disconnected | Notice::Refused { .. });
    assert_eq!(framework.notices.count(refused), 0, "{:#?}", framework.notices.all());
}

/// Goal: a master that sends updates but answers no acknowledgement doesn't block the framework forever: it subscribes
/// again. Method: no answer to the acknowledgements of the first subscription.
#[test]
fn a_master_that_accepts_no_acknowledgement() {
    let first = super::script::stream_id(0);
    let fake = FakeMaster::counting(move |call| match call.kind.as_str() {
        "ACKNOWLEDGE" if call.message.header("mesos-stream-id") == Some(&*first) => Answer::none(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 0).unwrap();
    framework.id();
    let mut stream = fake.newest_stream();
    let updates =
        |number: usize| record(&update(&format!("s-{number}"), "S", "TASK_LOST", Some("AAAA")));
    let writer = std::thread::spawn(move || {
        let mut number = 0;
        loop {
            let bytes = (number..number + 100).map(updates).collect::<Vec<_>>().concat();
            number += 100;
            if stream.write_all(&chunk(&bytes)).is_err() {
                return;
            }
        }
    });
    fake.wait_for("SUBSCRIBE", 1);
    writer.join().unwrap();
}
