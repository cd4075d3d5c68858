//! The forms that data have with the feature `serde`.

use std::fmt::Debug;
use std::time::{Duration, UNIX_EPOCH};

use offermill::attributes::{OwnedAttribute, OwnedAttributeValue};
use offermill::config::{
    Compatibility, ExclusionRule, ExecutorCores, RefuseDurations, UnreachableRule,
};
use offermill::engine::Notice;
use offermill::engine::cluster_manager::{OwnedOffer, RecoveredExecutor, Update};
use offermill::resources::MilliCpus;
use offermill::{
    CapacitySums, Decisions, Explanation, Offer, OfferCounts, Outcome, Resource, Snapshot,
    StatusUpdate, TaskState, Timestamp,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kernel;
use crate::recorder::{offer, update};

/// Writes a value as JSON and reads it back.
#[track_caller]
fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value, "{json}");
    json
}

/// Goal: reports and data keep all that they have when they are written and read back, and have the documented form:
/// names in snake case, quantities as integers. Method: reports of a kernel with executors, declines and an exclusion;
/// data that managers, observers and settings have; some forms in full.
#[test]
fn data_are_written_and_read_back() {
    let kernel = kernel(Some(2));
    kernel.registered();
    let resources = [Resource::scalar("cpus", 9.0), Resource::scalar("mem", 999.0)];
    let small = [Resource::scalar("cpus", 0.5), Resource::scalar("mem", 999.0)];
    let offers =
        [Offer::new("o1", "S1", "h1", &small, &[]), Offer::new("o2", "S2", "h2", &resources, &[])];
    let mut decisions = Decisions::new();
    let now = Timestamp::from_millis(5);
    kernel.handler().resource_offers(&offers, now, &mut decisions);
    let json = there_and_back::<Snapshot>(&kernel.snapshot(now));
    assert_eq!(json["totals"], json!({"executors": 2, "cores": 2000, "closed": false}));
    let executor = &json["executors"][0];
    assert_eq!((&executor["phase"], &executor["placed_at"]), (&json!("launching"), &json!(5)));
    let resources = json!({"cores": 1000, "memory": 128, "gpus": 0, "port": null});
    assert_eq!(executor["resources"], resources);
    let json = there_and_back::<OfferCounts>(&kernel.offer_counts());
    assert_eq!(json["declined"], json!({"cpus": 1}));
    let json = there_and_back::<Explanation>(&kernel.explain(now));
    let nearest = &json["declined"][0]["nearest"];
    assert_eq!(nearest["reason"], json!({"cpus": {"asked": 1000, "offered": 500}}));
    let capacity = kernel.capacity(now);
    there_and_back::<CapacitySums>(&capacity.sums());
    let json = serde_json::to_value(&*capacity).unwrap();
    assert_eq!(json["sums"]["used"], json!({"cores": 2000, "memory": 256, "gpus": 0}));
    assert_eq!(
        (&json["version"], &json["time"], &json["exact"]),
        (&json!(1), &json!(5), &json!(true))
    );
    let agents = json["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["agent_id"] == "S2").unwrap();
    assert_eq!((&agent["offered_at"], &agent["excluded_until"]), (&json!(5), &Value::Null));
    assert_eq!(agent["roles"][0]["role"], json!("*"));
    assert_eq!(agent["roles"][0]["unreserved"], agent["offered"]);
    for executor in ["test-1-0.0", "test-1-1.1"] {
        let failed = StatusUpdate::new(executor, TaskState::Failed);
        there_and_back::<Outcome>(&kernel.status_update(&failed, now));
    }
    let json = there_and_back(&kernel.snapshot(now).agents);
    assert!(
        json.as_array().unwrap().iter().any(|agent| agent["excluded_until"].is_u64()),
        "{json}"
    );
    there_and_back(&kernel.drain(std::time::Duration::ZERO));
    there_and_back(&kernel.tick(now));

    there_and_back::<OwnedOffer>(&offer("o", "S", 2));
    there_and_back::<RecoveredExecutor>(&RecoveredExecutor::new("e", "S", "h", Default::default()));
    there_and_back::<Update>(&Update::new("e", TaskState::GoneByOperator).with_uuid(vec![1]));
    let notice = Notice::GivenUp { executor: "e".to_owned() };
    assert_eq!(there_and_back::<Notice>(&notice), json!({"given_up": {"executor": "e"}}));
    drop(update("e", TaskState::Running));
    there_and_back(&ExclusionRule::default());
    let any_role = Compatibility::OFFERMILL.with_any_role(true);
    assert_eq!(there_and_back(&any_role)["any_role"], json!(true));
    there_and_back(&RefuseDurations::default());
    there_and_back(&UnreachableRule::default());
    let cores = ExecutorCores::Fixed(MilliCpus::from_cores(2));
    assert_eq!(there_and_back(&cores), json!({"fixed": 2000}));
}

/// Goal: what JSON can't express is written so that it can be read back: attributes that are infinite, times before
/// 1970. Counts of a kind that a later version adds are skipped. Method: one of each, and texts that are no numbers.
#[test]
fn what_json_lacks_is_written_all_the_same() {
    let mut offer = offer("o", "S", 1);
    let value = |number| OwnedAttributeValue::Scalar(number);
    for (number, text) in
        [(f64::INFINITY, json!("inf")), (f64::NEG_INFINITY, json!("-inf")), (3.0, json!(3.0))]
    {
        offer.attributes = vec![OwnedAttribute { name: "tier".to_owned(), value: value(number) }];
        assert_eq!(there_and_back(&offer)["attributes"][0]["value"]["scalar"], text);
    }
    let nan = serde_json::to_value(value(f64::NAN)).unwrap();
    let read = serde_json::from_value(nan).unwrap();
    assert!(matches!(read, OwnedAttributeValue::Scalar(number) if number.is_nan()), "{read:?}");
    let read =
        |number: Value| serde_json::from_value::<OwnedAttributeValue>(json!({"scalar": number}));
    assert_eq!(read(json!(3)).unwrap(), value(3.0));
    assert!(read(json!("three")).is_err());

    let early = UNIX_EPOCH - Duration::from_secs(1);
    let update = Update::new("e", TaskState::Running).with_reported_at(early);
    assert_eq!(serde_json::to_value(update).unwrap()["reported_at"], json!(null));
    let late = UNIX_EPOCH + Duration::from_secs(1);
    there_and_back(&Update::new("e", TaskState::Running).with_reported_at(late));

    let declined = json!({"cpus": 2, "moon_phase": 1});
    let counts =
        json!({"batches": 1, "offers": 3, "accepted": 0, "executors": 0, "declined": declined});
    let counts: OfferCounts = serde_json::from_value(counts).unwrap();
    assert_eq!(there_and_back(&counts)["declined"], json!({"cpus": 2}));
}
