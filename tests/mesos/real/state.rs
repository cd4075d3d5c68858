//! Parses a master's `/state`, in Mesos' form.

use std::collections::BTreeMap;

use serde_json::Value;

/// The state as the master reports it.
#[derive(Debug)]
pub(crate) struct State {
    state: Value,
    /// Whether the master remembers frameworks and tasks that have ended.
    has_past: bool,
}

/// A task as the master reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The id of its agent.
    pub(crate) agent_id: String,
    /// `TASK_RUNNING` and so on.
    pub(crate) state: String,
    /// Cores, in thousandths.
    pub(crate) cores_milli: u64,
    /// Memory, in MiB.
    pub(crate) memory_mib: u64,
}

/// Amounts of the resources that the tests compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) cores_milli: u64,
    pub(crate) memory_mib: u64,
}

/// What an agent has, and what is used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) all: Amounts,
    pub(crate) used: Amounts,
}

/// Agents' capacities by their ids.
pub(crate) type Capacities = BTreeMap<String, Capacity>;

/// Tasks by their ids.
pub(crate) type Tasks = BTreeMap<String, Task>;

impl State {
    /// The state of Mesos' master.
    pub(crate) fn of_mesos(state: Value) -> State {
        State { state, has_past: true }
    }

    /// The state of a standalone master, in Mesos' form.
    pub(crate) fn of_standalone(state: Value) -> State {
        State { state, has_past: false }
    }

    /// The number of agents that are registered and connected.
    pub(crate) fn active_agents(&self) -> usize {
        list(&self.state["slaves"]).filter(|agent| agent["active"] == true).count()
    }

    /// The id of the agent with this host name.
    pub(crate) fn agent_id(&self, hostname: &str) -> Option<&str> {
        list(&self.state["slaves"]).find(|agent| agent["hostname"] == hostname)?["id"].as_str()
    }

    /// What agents that are registered have.
    pub(crate) fn capacities(&self) -> Capacities {
        let capacity = |agent: &Value| {
            let all = amounts(&agent["resources"]);
            (text(agent, "id"), Capacity { all, used: amounts(&agent["used_resources"]) })
        };
        list(&self.state["slaves"]).map(capacity).collect()
    }

    /// The ids of registered frameworks, connected or not.
    pub(crate) fn frameworks(&self) -> Vec<&str> {
        list(&self.state["frameworks"]).filter_map(|framework| framework["id"].as_str()).collect()
    }

    /// A registered framework.
    pub(crate) fn framework(&self, id: &str) -> Option<&Value> {
        list(&self.state["frameworks"]).find(|framework| framework["id"] == id)
    }

    /// Whether a framework, which was registered before, is completed.
    pub(crate) fn is_over(&self, id: &str) -> bool {
        match self.has_past {
            true => self.completed_framework(id).is_some(),
            false => self.framework(id).is_none(),
        }
    }

    fn completed_framework(&self, id: &str) -> Option<&Value> {
        list(&self.state["completed_frameworks"]).find(|framework| framework["id"] == id)
    }

    /// The tasks of a framework that have not ended as far as the master knows, except those on unreachable agents.
    pub(crate) fn tasks(&self, framework: &str) -> Tasks {
        self.framework(framework).map(|framework| tasks(&framework["tasks"])).unwrap_or_default()
    }

    /// The tasks of a framework on unreachable agents.
    pub(crate) fn unreachable_tasks(&self, framework: &str) -> Tasks {
        let framework = self.framework(framework);
        framework.map(|framework| tasks(&framework["unreachable_tasks"])).unwrap_or_default()
    }

    /// The tasks of a framework, completed or not, that have ended. `None` if the master doesn't remember them.
    pub(crate) fn completed_tasks(&self, framework: &str) -> Option<Tasks> {
        let framework = self.framework(framework).or_else(|| self.completed_framework(framework));
        let ended = framework.map(|framework| tasks(&framework["completed_tasks"]));
        self.has_past.then(|| ended.unwrap_or_default())
    }

    /// Tasks of any framework that have not ended.
    pub(crate) fn all_tasks(&self) -> Tasks {
        let frameworks = list(&self.state["frameworks"]);
        frameworks.flat_map(|framework| tasks(&framework["tasks"])).collect()
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn amounts(resources: &Value) -> Amounts {
    let milli = |value: &Value| (value.as_f64().unwrap_or_default() * 1000.0).round() as u64;
    let (cores_milli, memory) = (milli(&resources["cpus"]), milli(&resources["mem"]));
    Amounts { cores_milli, memory_mib: memory / 1000 }
}

fn tasks(all: &Value) -> Tasks {
    let read = |task: &Value| {
        let Amounts { cores_milli, memory_mib } = amounts(&task["resources"]);
        let (agent_id, state) = (text(task, "slave_id"), text(task, "state"));
        let read = Task { agent_id, state, cores_milli, memory_mib };
        (text(task, "id"), read)
    };
    list(all).map(read).collect()
}
