//! Tests of call senders without a master.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::*;
use crate::cluster::http_client::TlsFiles;
use crate::cluster::mesos::MesosConfig;
use crate::engine::cluster_manager::Events;
use crate::mesos_v1::codec::Codec;
use crate::mesos_v1::messages::call;

#[derive(Default)]
struct Sink(std::sync::Mutex<Vec<Event>>);

impl Events for Sink {
    fn send(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// A call sender without a subscription, the sending end of its queue, and its events.
fn call_sender() -> (CallSender, mpsc::Sender<QueuedCall>, Arc<Sink>) {
    let config = MesosConfig::new("mesos://127.0.0.1:1".parse().unwrap(), "test");
    let codec = Codec::default();
    let (queue, inbox) = mpsc::channel(100);
    let sink = Arc::new(Sink::default());
    let sender = CallSender {
        caller: Caller::new(
            Arc::new(config.http_client(codec.content_type(), &TlsFiles::default()).unwrap()),
            codec,
        ),
        inbox,
        subscription: watch::channel(None).1,
        resubscribe: watch::channel(0).0,
        stopping: watch::channel(false).1,
        events: Arc::clone(&sink) as EventSink,
        state_file: SharedStateFile::open(&config).unwrap(),
        call_queue: CallQueue::new().0,
    };
    (sender, queue, sink)
}

fn decline(epoch: u64, offer: &str, seconds: u64) -> QueuedCall {
    let refuse = Duration::from_secs(seconds);
    QueuedCall { epoch, what: CallPayload::Decline { offers: vec![offer.to_owned()], refuse } }
}

/// Goal: neighbouring declines of one subscription and one duration are merged into one call, and no decline is lost or
/// reordered. Method: each kind of call that separates two declines.
#[test]
fn declines_are_merged() {
    let revive = || QueuedCall { epoch: 1, what: CallPayload::Plain(Box::new(calls::revive())) };
    let (mut sender, queue, _) = call_sender();
    for order in [
        decline(1, "b", 5),
        decline(1, "c", 9),
        decline(1, "d", 9),
        decline(2, "e", 9),
        revive(),
        decline(2, "f", 9),
    ] {
        queue.try_send(order).unwrap();
    }
    let (mut rows, mut next) = (Vec::new(), Some(decline(1, "a", 5)));
    while let Some(mut order) = next {
        let kept = sender.merge(&mut order);
        rows.push(match order.what {
            CallPayload::Decline { offers, .. } => format!("{} {}", order.epoch, offers.concat()),
            _ => "revive".to_owned(),
        });
        next = kept.or_else(|| sender.inbox.try_recv().ok());
    }
    assert_eq!(rows, ["1 ab", "1 cd", "2 e", "revive", "2 f"]);
}

/// Goal: a merged decline exceeds the maximum by at most one queued decline. Method: more offers than the maximum.
#[test]
fn merged_declines_are_bounded() {
    let (mut sender, queue, _) = call_sender();
    let half = || CallPayload::Decline {
        offers: vec!["o".to_owned(); DECLINED_MAX / 2 + 1],
        refuse: Duration::ZERO,
    };
    for _ in 0..3 {
        queue.try_send(QueuedCall { epoch: 1, what: half() }).unwrap();
    }
    let mut order = QueuedCall { epoch: 1, what: half() };
    assert!(sender.merge(&mut order).is_none());
    assert!(
        matches!(order.what, CallPayload::Decline { offers, .. } if offers.len() == DECLINED_MAX + 2)
    );
    assert_eq!(sender.inbox.len(), 2);
}

/// Goal: executors of a subscription that has ended are reported dropped, which frees their resources and doesn't count
/// as a failure of their agent; other calls are dropped. Method: one of each.
#[test]
fn calls_of_an_ended_subscription() {
    let (mut sender, _queue, sink) = call_sender();
    let accept = call::Accept { offer_ids: vec!["o".into()], ..call::Accept::default() };
    let call = Box::new(calls::accept(accept));
    let executors = vec!["e-0".to_owned(), "e-1".to_owned()];
    let accept = CallPayload::Accept { call, agent_id: "S0".to_owned(), executors };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        sender.send_queued(QueuedCall { epoch: 1, what: accept }).await;
        sender.send_queued(decline(1, "a", 5)).await;
        sender
            .send_queued(QueuedCall {
                epoch: 1,
                what: CallPayload::Plain(Box::new(calls::revive())),
            })
            .await;
    });
    let events = sink.0.lock().unwrap();
    let dropped: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Update(update) if update.state == TaskState::Dropped => {
                assert_eq!(update.reason, UpdateReason::InvalidOffers);
                assert_eq!((update.agent_id.as_deref(), &update.uuid), (Some("S0"), &None));
                Some(update.executor.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!((dropped, events.len()), (vec!["e-0", "e-1"], 2));
}
