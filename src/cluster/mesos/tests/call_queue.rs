//! Tests of call queues without call senders.

use super::*;
use crate::cluster::mesos::calls;

fn acknowledge(call_queue: &CallQueue, executor: &str) -> Result<(), EnqueueError> {
    call_queue.acknowledge(1, executor, calls::acknowledge(executor, "S-1", b"uuid"))
}

/// Goal: full queues and closed queues return different errors. Method: one of each, for both kinds of queue.
#[test]
fn full_is_not_closed() {
    let (call_queue, inboxes) = CallQueue::new();
    let revive = || CallPayload::Plain(Box::new(calls::revive()));
    for _ in 0..QUEUED_MAX {
        call_queue.enqueue(1, revive()).unwrap();
        acknowledge(&call_queue, "e").unwrap();
    }
    assert_eq!(call_queue.enqueue(1, revive()), Err(EnqueueError::Full));
    assert_eq!(acknowledge(&call_queue, "e"), Err(EnqueueError::Full));
    drop(inboxes);
    assert_eq!(call_queue.enqueue(1, revive()), Err(EnqueueError::Closed));
    assert_eq!(acknowledge(&call_queue, "e"), Err(EnqueueError::Closed));
}

/// Goal: acknowledgements of one executor keep their order, and those of many executors use all queues. Method: three
/// acknowledgements for each of many executors.
#[test]
fn one_executor_has_one_queue() {
    let (call_queue, mut inboxes) = CallQueue::new();
    for round in 0..3 {
        for executor in 0..100 {
            let (name, uuid) = (format!("e-{executor}"), [round]);
            let call = calls::acknowledge(&name, "S-1", &uuid);
            call_queue.acknowledge(1, &name, call).unwrap();
        }
    }
    let mut seen = 0;
    for inbox in &mut inboxes.acknowledgements {
        let mut rounds = std::collections::HashMap::<String, u8>::new();
        while let Ok(QueuedCall { what: CallPayload::Acknowledge { call, .. }, .. }) =
            inbox.try_recv()
        {
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

/// Goal: the subscriber waits while too many acknowledgements wait, and only until there are few; acknowledgements of a
/// queue that has ended no longer count. Method: fill the queues, check, empty one queue after the other; and end them.
#[test]
fn reading_waits_for_acknowledgements() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (call_queue, mut inboxes) = CallQueue::new();
    let fill = |call_queue: &CallQueue| {
        for executor in 0..WAITING_HIGH {
            assert!(!call_queue.is_crowded(), "{executor}");
            acknowledge(call_queue, &format!("e-{executor}")).unwrap();
        }
        assert!(call_queue.is_crowded());
    };
    fill(&call_queue);
    let waiting = call_queue.clone();
    runtime.block_on(async move {
        let waits = tokio::spawn(async move { waiting.wait_for_room().await });
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
    assert!(!runtime.block_on(call_queue.wait_for_room()));
    let (call_queue, inboxes) = CallQueue::new();
    fill(&call_queue);
    drop(inboxes);
    assert!(!runtime.block_on(call_queue.wait_for_room()), "nothing waits any more");
}
