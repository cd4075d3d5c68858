//! What both are shown: settings, offers, and what happens before the clock runs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use offermill::resources::MilliCpus;
use offermill::{AttributeValue, Config, DEFAULT_ROLE, Offer, Resource, Value};
use serde_json::json;

use crate::support::fleet::{Batch, Fleet};
use crate::support::{self, EXECUTOR_CORES, MET, UNMET};

/// More than an agent has.
const TOO_MANY_CORES: MilliCpus = MilliCpus::from_cores(8);

/// How offers are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ConstraintUnmet,
    TooSmall,
    CapReached,
    AgentsExcluded,
    Accepted,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::ConstraintUnmet,
        Kind::TooSmall,
        Kind::CapReached,
        Kind::AgentsExcluded,
        Kind::Accepted,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::ConstraintUnmet => "declined: constraint unmet",
            Kind::TooSmall => "declined: too small",
            Kind::CapReached => "declined: cap reached",
            Kind::AgentsExcluded => "declined: agents excluded",
            Kind::Accepted => "accepted: an executor each",
        }
    }

    fn constraint(self) -> &'static str {
        if self == Kind::ConstraintUnmet { UNMET } else { MET }
    }

    fn executor_cores(self) -> MilliCpus {
        if self == Kind::TooSmall { TOO_MANY_CORES } else { EXECUTOR_CORES }
    }

    fn cap(self) -> Option<MilliCpus> {
        (self == Kind::CapReached).then_some(EXECUTOR_CORES)
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scene {
    pub(crate) kind: Kind,
    pub(crate) agents: usize,
    pub(crate) batch: usize,
}

impl Scene {
    /// Batches of 1 to 1000 offers of 10 000 agents for each kind; then 100 to 50 000 agents in batches of 100.
    pub(crate) fn all() -> impl Iterator<Item = Scene> {
        let scene = |kind, agents, batch| Scene { kind, agents, batch };
        let batches = Kind::ALL
            .into_iter()
            .flat_map(move |kind| [1, 10, 100, 1000].map(|batch| scene(kind, 10_000, batch)));
        let sizes = [Kind::ConstraintUnmet, Kind::Accepted]
            .into_iter()
            .flat_map(move |kind| [100, 1_000, 50_000].map(|agents| scene(kind, agents, 100)));
        batches.chain(sizes)
    }

    /// One of each kind, over in a moment.
    pub(crate) fn small() -> impl Iterator<Item = Scene> {
        Kind::ALL.into_iter().map(|kind| Scene { kind, agents: 20, batch: 10 })
    }

    pub(crate) fn name(&self) -> String {
        format!("{}, {} agents, batches of {}", self.kind.name(), self.agents, self.batch)
    }

    pub(crate) fn fleet(&self) -> Fleet {
        Fleet::new(self.agents, self.batch)
    }

    pub(crate) fn config(&self) -> Config {
        let Scene { kind, .. } = self;
        support::config_of(kind.executor_cores(), kind.constraint(), kind.cap())
    }

    /// How often all agents offer before the clock runs, and whether what is launched then fails. Spark excludes an
    /// agent after its second failure.
    pub(crate) fn rounds_before(&self) -> (usize, bool) {
        if self.kind == Kind::AgentsExcluded { (2, true) } else { (1, false) }
    }

    /// The number of batches between two looks at the clock: some thousand offers.
    pub(crate) fn lap(&self) -> usize {
        (2_000 / self.batch).max(2)
    }

    /// Writes the scene for `TimeSpark.scala`: a line of settings, then one for each offer.
    pub(crate) fn write(&self, folder: &Path) {
        let path = folder.join(format!("{}.jsonl", self.name()));
        let mut file = BufWriter::new(File::create(&path).expect("a file for the scene"));
        let Fleet { met, stream } = self.fleet();
        let (rounds, fail) = self.rounds_before();
        let mut conf = json!({
            "spark.app.name": "peer",
            "spark.mesos.executor.home": "/opt/spark",
            "spark.mesos.role": "etl",
            "spark.mesos.constraints": self.kind.constraint(),
            "spark.executor.cores": whole(self.kind.executor_cores()),
            "spark.executor.memory": "1g",
        });
        if let Some(cap) = self.kind.cap() {
            conf["spark.cores.max"] = whole(cap).into();
        }
        let head = json!({
            "name": self.name(),
            "conf": conf,
            "batch": self.batch,
            "lap": self.lap(),
            "rounds_before": rounds,
            "fail": fail,
            // The first half of the offers is how agents are met.
            "met": met.len() * self.batch.min(self.agents),
        });
        writeln!(file, "{head}").expect("a written line");
        let write = |batches: &[Batch], file: &mut BufWriter<File>| {
            for offer in batches.iter().copied().flatten() {
                writeln!(file, "{}", described(offer)).expect("a written line");
            }
        };
        write(&met, &mut file);
        write(&stream, &mut file);
        file.flush().expect("a written scene");
    }
}

fn whole(cores: MilliCpus) -> String {
    (cores.millis() / 1_000).to_string()
}

/// An offer in the format of `tests/support/spark/traces/README.md`.
fn described(offer: &Offer<'_>) -> serde_json::Value {
    let resources: Vec<_> = offer.resources.iter().map(resource).collect();
    let attributes: Vec<_> = offer
        .attributes
        .iter()
        .map(|attribute| match &attribute.value {
            AttributeValue::Text(text) => json!({ "name": attribute.name, "text": text }),
            AttributeValue::Scalar(scalar) => json!({ "name": attribute.name, "scalar": scalar }),
            other => unreachable!("no agent of the fleet has {other:?}"),
        })
        .collect();
    json!({
        "id": offer.id,
        "agent": offer.agent_id,
        "host": offer.hostname,
        "resources": resources,
        "attributes": attributes,
    })
}

fn resource(resource: &Resource<'_>) -> serde_json::Value {
    let mut line = match &resource.value {
        Value::Scalar(scalar) => json!({ "name": resource.name, "scalar": scalar.as_f64() }),
        Value::Ranges(ranges) => {
            let ranges: Vec<_> =
                ranges.iter().map(|range| json!([range.begin, range.end])).collect();
            json!({ "name": resource.name, "ranges": ranges })
        }
        other => unreachable!("no agent of the fleet has {other:?}"),
    };
    if resource.role() != DEFAULT_ROLE {
        line["role"] = resource.role().into();
    }
    line
}
