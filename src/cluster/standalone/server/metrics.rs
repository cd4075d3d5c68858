//! A master's figures in the text form of Prometheus (version 0.0.4).

use crate::cluster::standalone::master::{MasterReport, WorkerPresence};
use crate::cluster::standalone::protocol::WorkerResources;
use crate::http_server::MetricsText;

/// The type of the answer.
pub(super) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The figures as text, a family after the other. No label is a text of others.
pub(super) fn metrics_text(report: &MasterReport) -> String {
    let mut text = MetricsText::default();
    let counts = &report.counts;
    text.gauge("offermill_master_term", "The number of the leadership.", report.term);
    let recovering = u64::from(report.recovering);
    let help = "1 while workers and frameworks of the journal are waited for.";
    text.gauge("offermill_master_recovering", help, recovering);
    text.family("offermill_master_workers", "gauge", "Workers, by whether they are there.");
    for state in WorkerPresence::ALL {
        let number = report.workers.iter().filter(|it| it.state == state).count();
        text.sample("offermill_master_workers", &[("state", state.as_str())], number as f64);
    }
    text.family(
        "offermill_master_frameworks",
        "gauge",
        "Frameworks, by whether they are connected.",
    );
    for (state, is_connected) in [("connected", true), ("away", false)] {
        let number = report.frameworks.iter().filter(|it| it.connected == is_connected).count();
        text.sample("offermill_master_frameworks", &[("state", state)], number as f64);
    }
    let help = "Executors that haven't ended.";
    text.gauge("offermill_master_executors", help, counts.executors as u64);
    let help = "Offers that aren't answered.";
    text.gauge("offermill_master_offers", help, counts.offers as u64);
    let totals = &report.totals;
    let help = "Offers that were made.";
    text.counter("offermill_master_offers_made_total", help, totals.offers);
    let help = "Offers that frameworks declined.";
    text.counter("offermill_master_offers_declined_total", help, totals.offers_declined);
    let help = "Executors that were launched.";
    text.counter("offermill_master_executors_launched_total", help, totals.launched);
    let name = "offermill_master_executors_ended_total";
    text.family(name, "counter", "Executors that have ended, by how.");
    let ends = [
        ("finished", totals.finished),
        ("failed", totals.failed),
        ("killed", totals.killed),
        ("lost", totals.lost),
    ];
    for (state, number) in ends {
        text.sample(name, &[("state", state)], number as f64);
    }
    let there = report.workers.iter().filter(|it| it.state == WorkerPresence::Active);
    let there: Vec<_> = there.collect();
    for (kind, help, of) in RESOURCES {
        text.family(kind, "gauge", help);
        let parts = [
            ("total", there.iter().map(|it| of(&it.total)).sum()),
            ("used", there.iter().map(|it| of(&it.used)).sum()),
            ("offered", there.iter().map(|it| of(&it.offered)).sum::<f64>()),
        ];
        for (part, amount) in parts {
            text.sample(kind, &[("part", part)], amount);
        }
    }
    text.into_string()
}

/// A family of a resource: its name, its help, and its amount.
type ResourceFamily = (&'static str, &'static str, fn(&WorkerResources) -> f64);

const RESOURCES: [ResourceFamily; 3] = [
    ("offermill_master_cores", "Cores of active workers.", |it| it.cpus.as_f64()),
    ("offermill_master_memory_bytes", "Memory of active workers.", |it| {
        it.mem.as_f64() * 1_048_576.0
    }),
    ("offermill_master_gpus", "GPUs of active workers.", |it| it.gpus.as_f64()),
];
