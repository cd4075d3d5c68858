//! What the cluster has, as text and as JSON.

use std::time::SystemTime;

use offermill::resources::Gpus;
use offermill::{AgentResources, ClusterCapacity, ResourceSums, Timestamp};
use serde_json::{Value, json};

use crate::model::cluster_use::ClusterUse;
use crate::text::clock::rfc3339;
use crate::text::format::{core_number, count};

/// The most agents that are listed.
const AGENTS_LISTED_MAX: usize = 1_000;

/// As in `2 agents offered 6 cores, 8192 MiB; used 4 cores, 128 MiB; free 2 cores, 8064 MiB; an agent has up to 3
/// cores, 4096 MiB, free and used together`.
pub(crate) fn capacity_sentence(capacity: &ClusterCapacity) -> String {
    let sums = capacity.sums();
    if sums.agents == 0 {
        return "no agent is known".to_owned();
    }
    let agents = count(sums.agents as u64, "agent");
    let mut parts = vec![
        format!("{agents} offered {}", amounts(sums.offered)),
        format!("used {}", amounts(sums.used)),
        format!("free {}", amounts(sums.free)),
    ];
    if sums.withheld != ResourceSums::NONE {
        parts.push(format!("withheld {}", amounts(sums.withheld)));
    }
    let largest = amounts(capacity.largest_agent());
    parts.push(format!("an agent has up to {largest}, free and used together"));
    parts.join("; ")
}

/// As in `2 agents offered 6 cores, 8192 MiB; at most 4 cores, 128 MiB used at a time`. None if none offered anything.
pub(crate) fn use_sentence(cluster_use: &ClusterUse, used_most: ResourceSums) -> Option<String> {
    let ClusterUse { agents, offered, .. } = cluster_use;
    (*agents > 0).then(|| {
        let agents = count(*agents as u64, "agent");
        let (offered, used) = (amounts(*offered), amounts(used_most));
        format!("{agents} offered {offered}; at most {used} used at a time")
    })
}

/// As in `4 cores, 8192 MiB, 2 GPUs`; GPUs are left out if there are none.
fn amounts(sums: ResourceSums) -> String {
    let ResourceSums { cores, memory, gpus } = sums;
    let gpus = match gpus {
        Gpus::ZERO => String::new(),
        gpus => format!(", {gpus:#}"),
    };
    format!("{cores:#}, {memory}{gpus}")
}

/// The object of what the cluster has.
pub(crate) fn capacity_object(capacity: &ClusterCapacity) -> Value {
    let sums = capacity.sums();
    json!({
        "at_ms": capacity.time().as_millis(),
        "exact": capacity.exact(),
        "agents": sums.agents,
        "offered": amounts_object(sums.offered),
        "used": amounts_object(sums.used),
        "free": amounts_object(sums.free),
        "withheld": amounts_object(sums.withheld),
        "largest_agent": amounts_object(capacity.largest_agent()),
    })
}

/// The objects of agents: first of those that are excluded or lost, then of those with executors, then of the others.
/// At most [`AGENTS_LISTED_MAX`].
pub(crate) fn agent_objects(
    capacity: &ClusterCapacity,
    time_of: impl Fn(Timestamp) -> Option<SystemTime>,
) -> Vec<Value> {
    let rank = |agent: &AgentResources<'_>| match agent {
        agent if agent.excluded_until().or(agent.suspect_until()).is_some() => 0,
        agent => 1 + usize::from(agent.executors() == 0),
    };
    let mut ranked: [Vec<AgentResources<'_>>; 3] = Default::default();
    for agent in capacity.agents() {
        let group = &mut ranked[rank(&agent)];
        if group.len() < AGENTS_LISTED_MAX {
            group.push(agent);
        }
    }
    let listed = ranked.into_iter().flatten().take(AGENTS_LISTED_MAX);
    let time = |until: Option<Timestamp>| until.and_then(&time_of).map(rfc3339);
    let object = |agent: AgentResources<'_>| {
        json!({
            "agent_id": agent.agent_id(),
            "host": agent.hostname(),
            "executors": agent.executors(),
            "offered": amounts_object(agent.offered()),
            "used": amounts_object(agent.used()),
            "free": amounts_object(agent.free()),
            "excluded": agent.excluded_until().is_some(),
            "excluded_until": time(agent.excluded_until()),
            "lost": agent.suspect_until().is_some(),
            "lost_until": time(agent.suspect_until()),
        })
    };
    listed.map(object).collect()
}

/// The object of what the cluster offered during a run.
pub(crate) fn use_object(cluster_use: &ClusterUse, used_most: ResourceSums) -> Value {
    json!({
        "agents": cluster_use.agents,
        "offered_max": amounts_object(cluster_use.offered),
        "used_max": amounts_object(used_most),
    })
}

fn amounts_object(sums: ResourceSums) -> Value {
    let ResourceSums { cores, memory, gpus } = sums;
    json!({ "cores": core_number(cores), "memory_mib": memory.get(), "gpus": gpus.get() })
}

#[cfg(test)]
mod tests {
    use offermill::config::{ExclusionRule, ExecutorCores};
    use offermill::resources::{Mebibytes, MilliCpus};
    use offermill::{
        Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate, TaskState,
    };

    use super::*;

    /// Goal: the sentence and the object have what the picture has, each amount at its place. Method: three agents, one
    /// of which has a GPU, one executor, and one that fails and excludes its agent.
    #[test]
    fn a_capacity_reads_well() {
        let config = Config::builder()
            .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
            .executor_memory(Mebibytes::new(512))
            .memory_overhead(Some(Mebibytes::ZERO))
            .exclusion(Some(ExclusionRule { failures: 1, ..ExclusionRule::default() }))
            .executor_limit(Some(2));
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
        let at = Timestamp::from_millis;
        assert_eq!(capacity_sentence(&kernel.capacity(at(0))), "no agent is known");
        let resources = [4.0, 2.5, 0.5]
            .map(|cores| [Resource::scalar("cpus", cores), Resource::scalar("mem", 1024.0)]);
        let mut offers = ["S1", "S2", "S3"].map(|id| Offer::new("O", id, id, &resources[0], &[]));
        offers[1].resources = &resources[1];
        offers[2].resources = &resources[2];
        let gpus = [resources[0][0], resources[0][1], Resource::scalar("gpus", 1.0)];
        offers[0].resources = &gpus;
        kernel.handler().resource_offers(&offers, at(1_000), &mut Decisions::new());
        let snapshot = kernel.snapshot(at(1_000));
        let on = |agent: &str| {
            let view = snapshot.executors.iter().find(|view| &*view.agent_id == agent).unwrap();
            kernel.executor_name(view.id).to_string()
        };
        kernel.status_update(&StatusUpdate::new(&on("S2"), TaskState::Failed), at(1_500));
        let capacity = kernel.capacity(at(2_000));
        assert_eq!(
            capacity_sentence(&capacity),
            "3 agents offered 7 cores, 3072 MiB, 1 GPU; used 1 core, 512 MiB; free 3.5 cores, 1536 MiB, 1 GPU; \
             withheld 2.5 cores, 1024 MiB; an agent has up to 4 cores, 1024 MiB, 1 GPU, free and \
             used together"
        );
        let amounts = |cores: f64, memory: u64, gpus: u64| {
            let kinds =
                [("cores", json!(cores)), ("memory_mib", json!(memory)), ("gpus", json!(gpus))];
            Value::from_iter(kinds)
        };
        let expected = json!({
            "at_ms": 2000, "exact": true, "agents": 3,
            "offered": amounts(7.0, 3072, 1), "used": amounts(1.0, 512, 0),
            "free": amounts(3.5, 1536, 1), "withheld": amounts(2.5, 1024, 0),
            "largest_agent": amounts(4.0, 1024, 1),
        });
        assert_eq!(capacity_object(&capacity), expected);
        let agents = agent_objects(&capacity, |_| None);
        let of = |key: &str| -> Value { agents.iter().map(|agent| agent[key].clone()).collect() };
        assert_eq!(of("host"), json!(["S2", "S1", "S3"]), "excluded, with an executor, others");
        assert_eq!(of("executors"), json!([0, 1, 0]));
        assert_eq!(of("excluded"), json!([true, false, false]));
        assert_eq!(agents[0]["free"], amounts(2.5, 1024, 0));
        assert_eq!(agents[1]["used"], amounts(1.0, 512, 0));
    }
}
