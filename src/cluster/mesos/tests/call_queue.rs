//! The doors of the lanes, without lanes.

use super::*;
use crate::cluster::mesos::calls;

fn acknowledge(outgoing: &CallQueue, executor: &str) -> Result<(), Unordered> {
    outgoing.acknowledge(1, executor, calls::acknowledge(executor, "S-1", b"uuid"))
}

/// Goal: a lane that is full and one that has ended are told apart. Method: one of each, of both kinds.
#[test]
fn full_is_not_closed() {
    let (outgoing, inboxes) = CallQueue::new();
    let revive = || What::Plain(Box::new(calls::revive()));
    for _ in 0..ORDERS_MAX {
        outgoing.order(1, revive()).unwrap();
        acknowledge(&outgoing, "e").unwrap();
    }
    assert_eq!(outgoing.order(1, revive()), Err(Unordered::Full));
    assert_eq!(acknowledge(&outgoing, "e"), Err(Unordered::Full));
    drop(inboxes);
    assert_eq!(outgoing.order(1, revive()), Err(Unordered::Closed));
    assert_eq!(acknowledge(&outgoing, "e"), Err(Unordered::Closed));
}

/// Goal: acknowledgements of one executor keep their order, and those of many use all lanes. Method: three of each of
/// many executors.
#[test]
fn one_executor_has_one_lane() {
    let (outgoing, mut inboxes) = CallQueue::new();
    for round in 0..3 {
        for executor in 0..100 {
            let (name, uuid) = (format!("e-{executor}"), [round]);
            let call = calls::acknowledge(&name, "S-1", &uuid);
            outgoing.acknowledge(1, &name, call).unwrap();
        }
    }
    let mut seen = 0;
    for inbox in &mut inboxes.acknowledgements {
        let mut rounds = std::collections::HashMap::<String, u8>::new();
        while let Ok(QueuedCall { what: What::Acknowledge { call, .. }, .. }) = inbox.try_recv() {
            let it = call.acknowledge.unwrap();
            let round = rounds.entry(it.task_id.value).or_default();
            assert_eq!(it.uuid, [*round]);
            *round += 1;
        }
        assert!(!rounds.is_empty() && rounds.values().all(|rounds| *rounds == 3), "{rounds:?}");
        seen += rounds.len();
    }
    assert_eq!(seen, 100);
}

/// Goal: whoever waits for room waits while too many acknowledgements wait, and no longer than until they are few;
/// those of a lane that has ended count no more. Method: fill, look, empty one lane after the other; and end them.
#[test]
fn reading_waits_for_acknowledgements() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (outgoing, mut inboxes) = CallQueue::new();
    let fill = |outgoing: &CallQueue| {
        for executor in 0..WAITING_HIGH {
            assert!(!outgoing.is_crowded(), "{executor}");
            acknowledge(outgoing, &format!("e-{executor}")).unwrap();
        }
        assert!(outgoing.is_crowded());
    };
    fill(&outgoing);
    let waiting = outgoing.clone();
    runtime.block_on(async move {
        let waits = tokio::spawn(async move { waiting.until_there_is_room().await });
        let mut taken = 0;
        'all: for inbox in &mut inboxes.acknowledgements {
            while let Ok(order) = inbox.try_recv() {
                tokio::task::yield_now().await;
                assert!(!waits.is_finished(), "{taken} were taken");
                drop(order);
                taken += 1;
                if taken == WAITING_HIGH - WAITING_LOW {
                    break 'all;
                }
            }
        }
        assert!(waits.await.unwrap());
    });
    assert!(!runtime.block_on(outgoing.until_there_is_room()));
    let (outgoing, inboxes) = CallQueue::new();
    fill(&outgoing);
    drop(inboxes);
    assert!(!runtime.block_on(outgoing.until_there_is_room()), "nothing waits any more");
}
