//! Random drafts of scenarios. The player of a draft chooses the task that an event is about.

use serde_json::{Map, Value, json};

use super::settings::{Theme, settings};
use crate::rng::Rng;

pub(super) const STATES: &[&str] = &[
    "TASK_STAGING",
    "TASK_STARTING",
    "TASK_RUNNING",
    "TASK_RUNNING",
    "TASK_RUNNING",
    "TASK_KILLING",
    "TASK_FINISHED",
    "TASK_FAILED",
    "TASK_KILLED",
    "TASK_LOST",
    "TASK_ERROR",
    "TASK_DROPPED",
    "TASK_GONE",
    "TASK_GONE_BY_OPERATOR",
    "TASK_UNKNOWN",
    "TASK_UNREACHABLE",
];
const CPUS: &[f64] = &[0.0, 0.5, 0.999, 1.0, 1.001, 2.0, 2.5, 3.0, 4.0, 7.9, 8.0, 16.0];
const ROLES_CPUS: &[f64] = &[0.0, 0.5, 0.999, 1.0, 2.0, 2.5, 3.0, 4.0, 7.9, 16.0];
const MEMORY: &[f64] =
    &[0.0, 100.0, 896.0, 895.999, 1408.0, 1400.0, 2432.0, 2816.0, 4000.5, 8192.0, 20_000.0];
/// Whole numbers, as in Mesos.
const GPUS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0];

pub(super) struct Agent {
    pub(super) id: String,
    host: String,
    attributes: Vec<Value>,
}

pub(super) struct Writer {
    theme: Theme,
    pub(super) rng: Rng,
    agents: Vec<Agent>,
    offers: usize,
    is_stopped: bool,
}

/// Returns the lines of a draft for the coarse-grained backend, including its head.
pub(crate) fn draft(name: &str, seed: u64) -> Vec<String> {
    let mut rng = Rng(seed);
    let theme = *rng.pick(&Theme::ALL);
    let conf = settings(theme, &mut rng);
    write(name, seed, rng, theme, conf, Writer::event)
}

/// Returns the lines of a draft with these settings and events of this kind.
pub(super) fn write(
    name: &str,
    seed: u64,
    mut rng: Rng,
    theme: Theme,
    conf: Map<String, Value>,
    event: impl Fn(&mut Writer, usize) -> Option<Value>,
) -> Vec<String> {
    let has_attributes = conf.contains_key("spark.mesos.constraints");
    let count = rng.between(1, 8);
    let agents = (1..=count).map(|number| Agent {
        id: format!("a{number}"),
        // Sometimes two agents have the same host.
        host: format!("host{}.example", if rng.percent(5) { 1 } else { number }),
        attributes: if has_attributes { attributes(&mut rng) } else { Vec::new() },
    });
    let agents = agents.collect();
    let mut writer = Writer { theme, rng, agents, offers: 0, is_stopped: false };
    let head = json!({
        "name": name, "theme": format!("{theme:?}"), "seed": seed, "format": 1, "conf": conf,
    });
    let mut lines = vec![head, json!({"registered": {"framework_id": "20171002-1234-fw-0042"}})];
    for _ in 0..writer.rng.between(15, 60) {
        let next = event(&mut writer, lines.len());
        lines.extend(next);
    }
    if theme == Theme::Stop && !writer.is_stopped {
        lines.push(json!({"stop": true}));
    }
    lines.iter().map(Value::to_string).collect()
}

fn attributes(rng: &mut Rng) -> Vec<Value> {
    let mut attributes = Vec::new();
    let zones = ["a", "b", "c"];
    if rng.percent(80) {
        attributes.push(json!({"name": "zone", "text": rng.pick(&zones)}));
    }
    if rng.percent(60) {
        attributes.push(json!({"name": "rack", "text": rng.pick(&["r1", "r2"])}));
    }
    if rng.percent(60) {
        let tier = rng.number(&[1.0, 2.0, 2.5, 5.0, 10.0]);
        attributes.push(json!({"name": "tier", "scalar": tier}));
    }
    if rng.percent(30) {
        let sets = [&["ssd"][..], &["ssd", "nvme"], &["hdd"], &["hdd", "nvme", "ssd"]];
        attributes.push(json!({"name": "disk", "set": rng.pick(&sets)}));
    }
    if rng.percent(30) {
        attributes.push(json!({"name": "ports", "ranges": [[8000, 8100]]}));
    }
    attributes
}

impl Writer {
    fn event(&mut self, so_far: usize) -> Option<Value> {
        let is_dynamic = self.theme.is_dynamic();
        let any = self.rng.below(100);
        Some(match self.rng.below(100) {
            0..40 => json!({"offers": self.batch()}),
            40..75 => {
                let fails = self.theme == Theme::Failures && self.rng.percent(40);
                let state = if fails { "TASK_FAILED" } else { self.rng.pick(STATES) };
                json!({"status": {"task": format!("?{any}"), "agent": "a1", "state": state}})
            }
            75..82 if is_dynamic => {
                let total = self.rng.below(9);
                if self.theme == Theme::Locality || any < 30 {
                    json!({"request_total": total, "local": self.local()})
                } else {
                    json!({"request_total": total})
                }
            }
            82..85 => json!({"kill": [format!("?{any}")]}),
            85..88 => json!({"advance_ms": self.rng.pick(&[&1_000, &500_000, &3_600_001])}),
            88..90 => json!({"slave_lost": self.random_agent().id}),
            90..92 => json!({"rescinded": format!("o{any}")}),
            92 => json!({"disconnected": true}),
            93 => json!({"reregistered": true}),
            94..96 => json!({"executor_registered": {"cores": self.rng.between(1, 4)}}),
            96.. if self.is_stopped && any < 50 => json!({"await_stop": true}),
            96.. if self.theme == Theme::Stop && so_far > 10 => {
                self.is_stopped = true;
                json!({"stop": true})
            }
            _ => return None,
        })
    }

    pub(super) fn random_agent(&mut self) -> &Agent {
        let at = self.rng.below(self.agents.len());
        &self.agents[at]
    }

    /// Tasks with preferred hosts.
    fn local(&mut self) -> Value {
        let mut local = serde_json::Map::new();
        for _ in 0..self.rng.below(4) {
            let tasks = self.rng.between(1, 5);
            local.insert(self.random_agent().host.clone(), tasks.into());
        }
        local.into()
    }

    pub(super) fn batch(&mut self) -> Vec<Value> {
        let mut left: Vec<usize> = (0..self.agents.len()).collect();
        let mut chosen = Vec::new();
        for _ in 0..self.rng.below(left.len() + 1) {
            chosen.push(left.swap_remove(self.rng.below(left.len())));
        }
        if self.theme == Theme::SameAgent {
            let more = self.rng.below(4);
            chosen.extend((0..more).map(|_| self.rng.below(self.agents.len())));
        }
        chosen.into_iter().map(|agent| self.offer(agent)).collect()
    }

    fn offer(&mut self, agent: usize) -> Value {
        self.offers += 1;
        let mut roles = vec!["*"];
        if self.theme == Theme::Roles && self.rng.percent(70) {
            let mixes = [&["r1"][..], &["r1", "*"], &["*", "r1"], &["r2", "*", "r1"], &["*", "r2"]];
            roles = self.rng.pick(&mixes).to_vec();
        }
        let mut resources = Vec::new();
        for role in roles {
            self.resources(role, &mut resources);
        }
        let Agent { id, host, attributes } = &self.agents[agent];
        let mut offer = json!({
            "id": format!("o{}", self.offers), "agent": id, "host": host, "resources": resources,
        });
        if !attributes.is_empty() {
            offer["attributes"] = attributes.clone().into();
        }
        offer
    }

    fn resources(&mut self, role: &str, resources: &mut Vec<Value>) {
        let is_dynamic = role != "*" && self.rng.percent(60);
        let mut put = |name: &str, kind: &str, value: Value| {
            let mut resource = json!({"name": name, kind: value});
            if role != "*" {
                resource["role"] = role.into();
            }
            if is_dynamic {
                resource["reservation"] = json!({"principal": "spark"});
            }
            resources.push(resource);
        };
        let rng = &mut self.rng;
        if rng.percent(95) {
            // Spark adds the amounts of several roles as doubles, and computes less than 2 cores for 1.001 and 0.999.
            let cpus = if self.theme == Theme::Roles { ROLES_CPUS } else { CPUS };
            put("cpus", "scalar", rng.number(cpus).into());
        }
        if rng.percent(95) {
            put("mem", "scalar", rng.number(MEMORY).into());
        }
        if rng.percent(if self.theme == Theme::Gpus { 90 } else { 10 }) {
            put("gpus", "scalar", rng.number(GPUS).into());
        }
        if rng.percent(30) {
            put("disk", "scalar", 10_000.into());
        }
        if rng.percent(70) {
            let ranges = [json!([[31_000, 32_000]]), json!([[30_000, 30_100], [31_005, 31_010]])];
            put("ports", "ranges", ranges[rng.below(2)].clone());
        }
    }
}
