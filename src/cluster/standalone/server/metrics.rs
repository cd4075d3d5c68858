//! A master's figures in the text form of Prometheus (version 0.0.4).

use std::fmt::Write as _;

use crate::cluster::standalone::master::{MasterReport, WorkerPresence};
use crate::cluster::standalone::protocol::WorkerResources;

/// The type of the answer.
pub(super) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The figures as text, a family after the other. No label is a text of others.
pub(super) fn metrics_text(report: &MasterReport) -> String {
    let mut text = String::with_capacity(2048);
    let counts = &report.counts;
    gauge(&mut text, "offermill_master_term", "The number of the leadership.", report.term);
    let recovering = u64::from(report.recovering);
    let help = "1 while workers and frameworks of the journal are waited for.";
    gauge(&mut text, "offermill_master_recovering", help, recovering);
    family(&mut text, "offermill_master_workers", "gauge", "Workers, by whether they are there.");
    for state in WorkerPresence::ALL {
        let number = report.workers.iter().filter(|it| it.state == state).count();
        sample(&mut text, "offermill_master_workers", "state", state.as_str(), number as f64);
    }
    family(
        &mut text,
        "offermill_master_frameworks",
        "gauge",
        "Frameworks, by whether they are connected.",
    );
    for (state, is_connected) in [("connected", true), ("away", false)] {
        let number = report.frameworks.iter().filter(|it| it.connected == is_connected).count();
        sample(&mut text, "offermill_master_frameworks", "state", state, number as f64);
    }
    let help = "Executors that haven't ended.";
    gauge(&mut text, "offermill_master_executors", help, counts.executors as u64);
    let help = "Offers that aren't answered.";
    gauge(&mut text, "offermill_master_offers", help, counts.offers as u64);
    let totals = &report.totals;
    let help = "Offers that were made.";
    counter(&mut text, "offermill_master_offers_made_total", help, totals.offers);
    let help = "Offers that frameworks declined.";
    counter(&mut text, "offermill_master_offers_declined_total", help, totals.offers_declined);
    let help = "Executors that were launched.";
    counter(&mut text, "offermill_master_executors_launched_total", help, totals.launched);
    let name = "offermill_master_executors_ended_total";
    family(&mut text, name, "counter", "Executors that have ended, by how.");
    let ends = [
        ("finished", totals.finished),
        ("failed", totals.failed),
        ("killed", totals.killed),
        ("lost", totals.lost),
    ];
    for (state, number) in ends {
        sample(&mut text, name, "state", state, number as f64);
    }
    let there = report.workers.iter().filter(|it| it.state == WorkerPresence::Active);
    let there: Vec<_> = there.collect();
    for (kind, help, of) in RESOURCES {
        family(&mut text, kind, "gauge", help);
        let parts = [
            ("total", there.iter().map(|it| of(&it.total)).sum()),
            ("used", there.iter().map(|it| of(&it.used)).sum()),
            ("offered", there.iter().map(|it| of(&it.offered)).sum::<f64>()),
        ];
        for (part, amount) in parts {
            sample(&mut text, kind, "part", part, amount);
        }
    }
    text
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

// Writing to a string can't fail.
fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
}

fn counter(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "counter", help);
    let _ = writeln!(text, "{name} {value}");
}

fn sample(text: &mut String, name: &str, label: &str, of: &str, value: f64) {
    let _ = writeln!(text, "{name}{{{label}=\"{of}\"}} {value}");
}
