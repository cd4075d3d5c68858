//! Events that can't be decoded in full: their texts are those of agents and executors, which may write anything. The
//! master sends an update again after each subscription until it is acknowledged, so none may end the subscription.

use offermill::cluster::mesos::Encoding;
use offermill::engine::Notice;
use serde_json::{Value, json};

use super::master::FakeMaster;
use super::script::{Answer, Call, chunk, framed, offers, protobuf, sound, update};
use super::streams::task_of;
use super::{framework, mesos};
use crate::framework::Framework;

/// Stands for text that isn't Unicode.
const MARK: &[u8] = b"<SPOILT>";
const NOT_UTF8: &[u8] = b"\xff\xfe\xed\xa0\x80\xc3<>";
/// The length of a text that makes a record longer than the limit of whole events, in bytes.
const LONG: usize = 9 << 20;

struct Subscribed {
    fake: FakeMaster,
    framework: Framework,
    encoding: Encoding,
}

impl Subscribed {
    fn start(encoding: Encoding) -> Subscribed {
        let in_protobuf = encoding == Encoding::Protobuf;
        let fake = FakeMaster::new(move |call: &Call| match call.kind.as_str() {
            "SUBSCRIBE" if in_protobuf => Answer::subscribed_in_protobuf(call),
            _ => sound(call),
        });
        let mut mesos = mesos(&[fake.port()]);
        mesos.encoding = encoding;
        mesos.record_bytes_max = 64 << 20;
        let framework = framework(mesos, 1).unwrap();
        framework.id();
        Subscribed { fake, framework, encoding }
    }

    /// Sends an event whose marks are replaced by `spoilt`, which has the length of a mark in protobuf.
    fn send(&self, event: &Value, spoilt: &[u8]) {
        let mut record = match self.encoding {
            Encoding::Protobuf => protobuf(event),
            Encoding::Json => event.to_string().into_bytes(),
        };
        let is_mark = |bytes: &[u8]| bytes == MARK;
        // All marks precede the long text.
        while let Some(at) = record.windows(MARK.len()).take(4096).position(is_mark) {
            record.splice(at..at + MARK.len(), spoilt.iter().copied());
        }
        self.send_record(&record);
    }

    fn send_record(&self, record: &[u8]) {
        self.fake.send_bytes(&chunk(&framed(record)));
    }

    /// The message of the update to this state, once it has arrived.
    fn message(&self, wanted: &str) -> String {
        self.framework.notices.wait("update", |notice| match notice {
            Notice::Updated { state, message, .. } if state.as_str() == wanted => {
                Some(message.clone())
            }
            _ => None,
        })
    }

    fn reports(&self) -> usize {
        let is_report = |notice: &Notice| match notice {
            Notice::CallFailed { why } => why.contains("ignored"),
            _ => false,
        };
        self.framework.notices.count(is_report)
    }
}

/// An update with texts of executors and agents in several places.
fn spoilt_update(task: &str, state: &str, uuid: &str, text: &str) -> Value {
    let mark = String::from_utf8_lossy(MARK);
    let mut event = update(task, "S-1", state, Some(uuid));
    let status = &mut event["update"]["status"];
    status["message"] = json!(text);
    status["labels"] = json!({"labels": [{"key": mark, "value": mark}]});
    status["container_status"] = json!({"network_infos": [{"name": mark}]});
    event
}

/// Goal: an update is applied and acknowledged, whatever its texts are. Method: in both encodings, updates whose
/// message and labels aren't UTF-8, have lone surrogates, or are longer than a whole event may be; then the state, the
/// acknowledgement and the number of subscriptions.
#[test]
fn updates_with_any_text_are_applied() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let surrogate: &[u8] = match encoding {
            Encoding::Json => b"\\ud800<\\udfff\\ud83d",
            Encoding::Protobuf => NOT_UTF8,
        };
        let it = Subscribed::start(encoding);
        it.send(&offers("O-1", "S-1", 4), b"");
        let task = task_of(&it.fake.wait_for("ACCEPT", 0));
        let mark = format!("m{}n", String::from_utf8_lossy(MARK));
        let long = format!("{mark}{}", "x".repeat(LONG));
        for (number, (state, text, spoilt)) in [
            ("TASK_STARTING", &mark, NOT_UTF8),
            ("TASK_RUNNING", &mark, surrogate),
            ("TASK_UNREACHABLE", &long, surrogate),
            ("TASK_FAILED", &long, NOT_UTF8),
        ]
        .into_iter()
        .enumerate()
        {
            let uuid = ["AAAA", "AAAB", "AAAC", "AAAD"][number];
            it.send(&spoilt_update(&task, state, uuid, text), spoilt);
            let message = it.message(state);
            assert!(message.starts_with("m\u{fffd}"), "{message}");
            assert_eq!(message.ends_with(" bytes)"), text.len() > LONG, "{message}");
            let acknowledged = it.fake.wait_for("ACKNOWLEDGE", number);
            assert_eq!(acknowledged.body["acknowledge"]["uuid"], uuid);
        }
        assert_eq!(it.fake.calls_of("SUBSCRIBE").len(), 1);
        assert_eq!(it.reports(), 0);
    }
}

/// Goal: events that can't be decoded don't end the subscription, and are reported once a cause. Method: in both
/// encodings, a hundred records of the same kinds, some without any meaning and some too long; then an offer, which is
/// accepted.
#[test]
fn unreadable_events_are_ignored() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let it = Subscribed::start(encoding);
        for _ in 0..50 {
            it.send_record(b"{\"a\":");
            it.send_record(b"\xff\xff");
        }
        let agent = json!({"value": "S-1"});
        let long = "Q".repeat(LONG + 1024 - (LONG + 1024) % 4);
        it.send(
            &json!({"type": "MESSAGE", "message":
                {"agent_id": agent, "executor_id": {"value": "e"}, "data": long}}),
            b"",
        );
        it.send(&offers("O-1", "S-1", 4), b"");
        it.fake.wait_for("ACCEPT", 0);
        assert_eq!(it.fake.calls_of("SUBSCRIBE").len(), 1);
        assert!((1..=6).contains(&it.reports()), "{:#?}", it.framework.notices.all());
    }
}

/// Goal: in JSON, an offer whose host name isn't Unicode spoils no others, and is answered. Method: one with such a
/// host name and a usual one in the same event, with lone surrogates and with bytes that aren't UTF-8.
#[test]
fn offers_in_json_with_any_text_are_answered() {
    for spoilt in [NOT_UTF8, b"\\udc00"] {
        let it = Subscribed::start(Encoding::Json);
        let mut event = offers("O-1", "S-1", 4);
        let mut other = event["offers"]["offers"][0].clone();
        other["id"]["value"] = json!("O-2");
        other["agent_id"]["value"] = json!("S-2");
        other["hostname"] = json!(String::from_utf8_lossy(MARK));
        event["offers"]["offers"].as_array_mut().unwrap().push(other);
        it.send(&event, spoilt);
        it.fake.wait_for("ACCEPT", 0);
        it.fake.wait_for("DECLINE", 0);
        assert_eq!(it.fake.calls_of("SUBSCRIBE").len(), 1);
    }
}

/// Goal: in JSON, an offer that can't be decoded spoils no others: they are used, and it is declined and reported once
/// for its agent and cause. Method: events in which one offer has a number that is null, one that is no number of
/// ours, an attribute of the wrong type, or so long a text that the event can't be decoded as a whole, before or after
/// a usual offer of another agent.
#[test]
fn offers_in_json_that_cannot_be_decoded_are_declined() {
    let number =
        |value: &str| format!(r#"{{"name":"a","type":"SCALAR","scalar":{{"value":{value}}}}}"#);
    let long = format!(r#"{{"name":"{}","type":"TEXT","text":{{"value":"x"}}}}"#, "n".repeat(LONG));
    for (attribute, is_first) in [
        (number("null"), false),
        (number("1e999"), true),
        (number("{}"), false),
        (r#""rack""#.to_owned(), true),
        (long, false),
    ] {
        let it = Subscribed::start(Encoding::Json);
        let [good, bad] =
            [("O-1", "S-1", "{}"), ("O-2", "S-2", &*attribute)].map(|(id, agent, attribute)| {
                let mut offer = offers(id, agent, 4)["offers"]["offers"][0].clone();
                offer["attributes"] = json!(["<ATTRIBUTE>"]);
                offer
                    .to_string()
                    .replace(r#"["<ATTRIBUTE>"]"#, &format!("[{attribute}]"))
                    .replace("[{}]", "[]")
            });
        let both = if is_first { [&*bad, &good] } else { [&*good, &bad] }.join(",");
        let event = format!(r#"{{"type":"OFFERS","offers":{{"offers":[{both}]}}}}"#);
        it.send_record(event.as_bytes());
        let accept = it.fake.wait_for("ACCEPT", 0);
        assert_eq!(accept.body["accept"]["offer_ids"][0]["value"], "O-1");
        let again = bad.replace("O-2", "O-3");
        let again = format!(r#"{{"type":"OFFERS","offers":{{"offers":[{again}]}}}}"#);
        for (number, id) in ["O-2", "O-3"].into_iter().enumerate() {
            let decline = it.fake.wait_for("DECLINE", number);
            assert_eq!(decline.body["decline"]["offer_ids"], json!([{"value": id}]));
            assert!(decline.body["decline"]["filters"]["refuse_seconds"].as_f64() > Some(0.0));
            it.send_record(again.as_bytes());
        }
        let is_report = |notice: &Notice| match notice {
            Notice::Unreadable { agent_id, .. } => agent_id.as_deref() == Some("S-2"),
            _ => false,
        };
        assert_eq!(it.framework.notices.count(is_report), 1);
        assert_eq!(it.fake.calls_of("SUBSCRIBE").len(), 1);
    }
}

/// Goal: no offer is lost for ever because the event's offers can't be told apart: only a new subscription takes them
/// back. Method: in both encodings, such an event, and the number of subscriptions.
#[test]
fn offers_that_cannot_be_told_apart_end_the_subscription() {
    for (encoding, record) in [
        (Encoding::Json, &br#"{"type":"OFFERS","offers":{"offers":7}}"#[..]),
        (Encoding::Json, br#"{"type":"OFFERS","offers":{"offers":[{}{"id"}]}}"#),
        (
            Encoding::Json,
            br#"{"offers":{"offers":[{"id":{"value":"O-1"},"x":inf}]},"type":"OFFERS"}"#,
        ),
        (Encoding::Protobuf, &[8, 2, 26, 100, 1]),
    ] {
        let it = Subscribed::start(encoding);
        it.send_record(record);
        it.fake.wait_for("SUBSCRIBE", 1);
    }
}

/// Goal: an offer that is rescinded isn't used any more, even if the event can't be decoded: a new subscription voids
/// all offers. Inverse offers may be ignored. Method: in both encodings, such events; then the number of subscriptions.
#[test]
fn unreadable_rescinds_end_the_subscription() {
    for (encoding, record) in [
        (Encoding::Json, &br#"{"type":"RESCIND","rescind":{"offer_id":7}}"#[..]),
        (Encoding::Json, br#"{"type":"RESCIND","rescind":{"offer_id":{"value":"O-\ud800"}}}"#),
        (Encoding::Json, br#"{"type":"RESCIND"}"#),
        (Encoding::Protobuf, &[8, 3, 34, 100, 1]),
    ] {
        let it = Subscribed::start(encoding);
        it.send_record(br#"{"type":"INVERSE_OFFERS","inverse_offers":7}"#);
        it.send_record(record);
        it.fake.wait_for("SUBSCRIBE", 1);
    }
}

/// Goal: an offer is never accepted or declined with an id that isn't its own. Method: in JSON, offers without an id,
/// with an id that isn't text, and with a name of a field that isn't; then a usual one.
#[test]
fn offers_are_answered_with_their_own_ids() {
    let it = Subscribed::start(Encoding::Json);
    it.send_record(br#"{"type":"OFFERS","offers":{"offers":[{},{"agent_id":{"value":"S-1"}}]}}"#);
    let event = offers("O-1", "S-1", 4).to_string();
    it.send_record(event.replace("O-1", "O-\\ud800").as_bytes());
    it.send_record(
        br#"{"type":"OFFERS","offers":{"offers":[
            {"\ud800":1,"id":{"value":"O-2"},"agent_id":{"value":"S-2"},"resources":7}]}}"#,
    );
    let decline = it.fake.wait_for("DECLINE", 0);
    assert_eq!(decline.body["decline"]["offer_ids"], json!([{"value": "O-2"}]));
    it.send(&offers("O-3", "S-3", 4), b"");
    let accept = it.fake.wait_for("ACCEPT", 0);
    assert_eq!(accept.body["accept"]["offer_ids"], json!([{"value": "O-3"}]));
    assert_eq!(it.fake.calls_of("DECLINE").len(), 1);
    assert_eq!(it.fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: the memory for the offers of a JSON event is bounded, and many offers have one report. Method: an event with
/// more empty offers than may be decoded, which only a new subscription takes back; an offer with more empty resources
/// than that, which is declined.
#[test]
fn crafted_offers_are_not_decoded() {
    let it = Subscribed::start(Encoding::Json);
    let empty = "{},".repeat(1 << 20);
    let event = format!(
        r#"{{"type":"OFFERS","offers":{{"offers":[
            {{"id":{{"value":"O-1"}},"agent_id":{{"value":"S-1"}},"resources":[{empty}{{}}]}}]}}}}"#
    );
    it.send_record(event.as_bytes());
    let decline = it.fake.wait_for("DECLINE", 0);
    assert_eq!(decline.body["decline"]["offer_ids"], json!([{"value": "O-1"}]));
    it.send_record(
        format!(r#"{{"type":"OFFERS","offers":{{"offers":[{empty}{{}}]}}}}"#).as_bytes(),
    );
    it.fake.wait_for("SUBSCRIBE", 1);
}

/// Goal: an offer in protobuf that can't be read is declined, and reported once for its agent and cause. Method: offers
/// whose host name isn't UTF-8 or whose role is too long, each twice, with usual ones of another agent.
#[test]
fn offers_in_protobuf_that_cannot_be_read_are_declined() {
    let it = Subscribed::start(Encoding::Protobuf);
    let mark = String::from_utf8_lossy(MARK);
    for (number, (agent, place, text)) in [
        ("S-1", "hostname", json!(mark)),
        ("S-2", "allocation_info", json!({"role": "r".repeat(1025)})),
        ("S-1", "hostname", json!(mark)),
        ("S-2", "allocation_info", json!({"role": "r".repeat(1025)})),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("O-{number}");
        let mut event = offers(&id, agent, 4);
        event["offers"]["offers"][0][place] = text;
        it.send(&event, NOT_UTF8);
        let decline = it.fake.wait_for("DECLINE", number);
        assert_eq!(decline.body["decline"]["offer_ids"][0]["value"], id);
        assert!(decline.body["decline"]["filters"]["refuse_seconds"].as_f64() > Some(0.0));
    }
    it.send(&offers("O-4", "S-3", 4), b"");
    it.fake.wait_for("ACCEPT", 0);
    let all = it.framework.notices.all();
    let reports = all.iter().filter_map(|(_, notice)| match notice {
        Notice::Unreadable { offers, unanswered, agent_id, why, .. } => {
            Some((*offers, *unanswered, agent_id.as_deref().unwrap(), why.as_str()))
        }
        _ => None,
    });
    let reports: Vec<_> = reports.collect();
    let expected = [
        (1, 0, "S-1", "a text is not UTF-8"),
        (1, 0, "S-2", "an id, a name or an attribute is too long"),
    ];
    assert_eq!(reports, expected);
}

/// Goal: if the master's word that the framework is over isn't Unicode, it is still heard. Method: an ERROR with such a
/// message, in both encodings.
#[test]
fn errors_with_any_text_are_heard() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let it = Subscribed::start(encoding);
        let text = format!("over {}", String::from_utf8_lossy(MARK));
        it.send(&json!({"type": "ERROR", "error": {"message": text}}), NOT_UTF8);
        let why = it.framework.notices.wait("refusal", |notice| match notice {
            Notice::Refused { why } => Some(why.clone()),
            _ => None,
        });
        assert!(why.contains("over \u{fffd}"), "{why}");
    }
}
