//! The metrics of a run in the text form of Prometheus (version 0.0.4), read from the run's figures at each request.
//!
//! Written here rather than by a crate: what a crate such as `prometheus-client` adds are counters that a program
//! counts with, and these are the run's own, which would have to be copied into them.

use offermill::ResourceSums;
use offermill::http_server::MetricsText;

use crate::model::figures::RunFigures;
use crate::output::json::key;
use crate::text::format::{core_number, printable};

/// What tells the run from others.
pub(super) struct RunLabels {
    pub(super) name: String,
    pub(super) master: String,
}

/// The metrics as text, a family after the other.
pub(super) fn metrics_text(labels: &RunLabels, figures: &RunFigures) -> String {
    let mut text = MetricsText::default();
    let [name, master] = [&labels.name, &labels.master].map(|label| printable(label));
    let info = [("name", &*name), ("master", &*master), ("version", env!("CARGO_PKG_VERSION"))];
    text.family("offermill_run_info", "gauge", "The run: its name, its master, its program.");
    text.sample("offermill_run_info", &info, 1);
    text.gauge(
        "offermill_run_seconds",
        "How long the run has been running.",
        figures.ran.as_secs(),
    );
    let registered = u8::from(figures.is_registered);
    text.gauge("offermill_registered", "1 if the framework is subscribed.", registered);
    text.gauge("offermill_stopping", "1 if the run stops.", u8::from(figures.is_stopping));
    executors(&mut text, figures);
    offers(&mut text, figures);
    cluster(&mut text, figures);
    text.into_string()
}

fn executors(text: &mut MetricsText, figures: &RunFigures) {
    let (ended, alive): (Vec<_>, Vec<_>) =
        figures.executors.iter().partition(|(state, _)| state.is_end());
    text.family("offermill_executors", "gauge", "Executors that haven't ended, by state.");
    for (state, number) in alive {
        text.sample("offermill_executors", &[("state", &key(state.as_str()))], number);
    }
    let name = "offermill_executors_ended_total";
    text.family(name, "counter", "Executors that have ended, by how.");
    for (state, number) in ended {
        text.sample(name, &[("state", &key(state.as_str()))], number);
    }
    let RunFigures { replaced, wanted, .. } = figures;
    let placed = figures.offers.executors;
    text.counter("offermill_executors_placed_total", "Executors placed.", placed);
    text.counter("offermill_executors_replaced_total", "Executors that were replaced.", replaced);
    text.gauge("offermill_executors_wanted", "How many more executors are wanted.", wanted);
    if let Some(limit) = figures.limit {
        text.gauge("offermill_executor_limit", "The executor limit; absent: none.", limit);
    }
}

fn offers(text: &mut MetricsText, figures: &RunFigures) {
    let counts = &figures.offers;
    text.counter("offermill_offers_total", "Offers answered.", counts.offers);
    text.counter("offermill_offers_accepted_total", "Offers accepted.", counts.accepted);
    let name = "offermill_offers_declined_total";
    text.family(name, "counter", "Offers declined, by reason.");
    for (kind, offers) in counts.declines() {
        text.sample(name, &[("reason", &key(kind.as_str()))], offers);
    }
}

fn cluster(text: &mut MetricsText, figures: &RunFigures) {
    let sums = &figures.cluster;
    text.gauge("offermill_agents", "Agents known.", sums.agents);
    text.gauge("offermill_agents_excluded", "Agents excluded after failures.", figures.excluded);
    let kinds = [
        ("offered", sums.offered),
        ("used", sums.used),
        ("free", sums.free),
        ("withheld", sums.withheld),
    ];
    let mut family = |name: &str, help: &str, amount: fn(ResourceSums) -> f64| {
        text.family(name, "gauge", help);
        for (kind, sums) in kinds {
            text.sample(name, &[("kind", kind)], amount(sums));
        }
    };
    let how = "offered last, used by executors, free, or withheld as an agent is excluded or lost";
    family("offermill_cores", &format!("Cores: {how}."), |sums| core_number(sums.cores));
    family("offermill_memory_bytes", &format!("Memory: {how}."), |sums| {
        sums.memory.get() as f64 * 1_048_576.0
    });
    family("offermill_gpus", &format!("GPUs: {how}."), |sums| f64::from(sums.gpus.get()));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use offermill::{CapacitySums, OfferCounts};

    use super::*;
    use crate::model::executor::ExecutorState;

    /// Goal: metrics are well formed, whatever a run is called, and each family is described once and has samples.
    /// Method: a name with quotes, a line feed and a backslash; each line read back.
    #[test]
    fn metrics_are_well_formed() {
        let figures = RunFigures {
            ran: Duration::from_secs(7),
            executors: ExecutorState::ALL.map(|state| (state, state as u64)),
            replaced: 2,
            limit: Some(3),
            wanted: 1,
            offers: OfferCounts::default(),
            cluster: CapacitySums::default(),
            excluded: 1,
            is_registered: true,
            is_stopping: false,
        };
        let labels = RunLabels { name: "a\"b\nc\\".to_owned(), master: "local[*]".to_owned() };
        let text = metrics_text(&labels, &figures);
        assert!(text.contains("name=\"a\\\"b\\\\nc\\\\\",master=\"local[*]\""), "{text}");
        assert!(text.contains("\noffermill_executors{state=\"running\"} 1\n"), "{text}");
        assert!(text.contains("\noffermill_executors_ended_total{state=\"lost\"} 8\n"), "{text}");
        assert!(text.contains("\noffermill_executor_limit 3\n"), "{text}");
        let mut families = Vec::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                families.push(help.split(' ').next().unwrap());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(families.last() == Some(&name) && ["gauge", "counter"].contains(&kind));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                assert!(families.last() == Some(&name) && value.parse::<f64>().is_ok(), "{line}");
            }
        }
        let described = families.len();
        families.sort_unstable();
        families.dedup();
        assert!(described == families.len() && described > 15);
    }
}
