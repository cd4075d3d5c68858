//! Random drafts of scenarios for Spark's fine-grained backend.

use serde_json::{Value, json};

use super::drafts::{STATES, Writer, write};
use super::settings::{Theme, settings};
use crate::rng::Rng;

/// The themes that mean something to it.
const THEMES: [&Theme; 8] = [
    &Theme::Any,
    &Theme::Any,
    &Theme::Constraints,
    &Theme::Refusals,
    &Theme::Roles,
    &Theme::Command,
    &Theme::Failures,
    &Theme::SameAgent,
];
/// With forms that only Java's numbers have.
const EXECUTOR_CORES: &[&str] =
    &["0", "0.1", "0.3", "0.5", "1", "1.5", "2", "2.25", "1.5d", "+2F", " 5e-1 "];

/// Returns the lines of a draft, including its head.
pub(crate) fn draft(name: &str, seed: u64) -> Vec<String> {
    let mut rng = Rng(seed);
    let theme = *rng.pick(&THEMES);
    let mut conf = settings(theme, &mut rng);
    let mut set = |key: &str, value: &str| conf.insert(key.to_owned(), value.into());
    set("spark.mesos.coarse", "false");
    if rng.percent(70) {
        set("spark.mesos.mesosExecutor.cores", rng.pick(EXECUTOR_CORES));
    }
    if rng.percent(50) {
        set("spark.task.cpus", rng.pick(&["1", "2", "3", "4"]));
    }
    if rng.percent(30) {
        set("spark.task.maxFailures", rng.pick(&["1", "2", "3", "8"]));
    }
    write(name, seed, rng, theme, conf, |writer, _| event(writer))
}

/// Returns the next event: more tasks than the agents have room for, or fewer, as it happens.
fn event(writer: &mut Writer) -> Option<Value> {
    let any = writer.rng.below(100);
    Some(match writer.rng.below(100) {
        0..30 => json!({"offers": writer.batch()}),
        30..48 => json!({"tasks": writer.rng.between(1, 12)}),
        48..80 => {
            let state = writer.rng.pick(STATES);
            json!({"status": {"task": format!("?{any}"), "agent": "a1", "state": state}})
        }
        // One that has ended, or never was.
        80..83 => {
            let state = writer.rng.pick(STATES);
            json!({"status": {"task": format!("{}", any % 20), "agent": "a1", "state": state}})
        }
        83..86 => json!({"slave_lost": writer.random_agent().id}),
        86..89 => {
            let agent = writer.random_agent().id.clone();
            json!({"executor_lost": {"executor": agent, "agent": agent}})
        }
        89..92 => json!({"kill": [format!("?{any}")]}),
        92 => json!({"rescinded": format!("o{any}")}),
        93 => json!({"disconnected": true}),
        94 => json!({"reregistered": true}),
        95 => json!({"request_total": any}),
        96 => json!({"advance_ms": 1_000}),
        97 if any < 30 => json!({"error": "asked"}),
        98 if any < 30 => json!({"stop": true}),
        _ => return None,
    })
}
