//! Events that concern the framework's user alone.

use offermill::engine::Notice;
use serde_json::json;

use super::script::sound;
use super::streams::Running;

/// Goal: the observer receives messages of executors, and is told which executor process failed, whether or not the
/// kernel knows it. Method: a MESSAGE (`Master::executorMessage`) and a FAILURE with an executor
/// (`Master::exitedExecutor`), for the executor that runs and for a custom one.
#[test]
fn messages_and_failures_reach_the_observer() {
    let running = Running::start(sound);
    for executor in [running.task.as_str(), "custom"] {
        let [agent, whom] = ["S-1", executor].map(|id| json!({"value": id}));
        running.fake.send(&json!({"type": "MESSAGE", "message":
            {"agent_id": agent, "executor_id": whom, "data": "aGk="}}));
        running.fake.send(&json!({"type": "FAILURE", "failure":
            {"agent_id": agent, "executor_id": whom, "status": 256}}));
        let (from, agent_id, data) =
            running.framework.notices.wait("message", |notice| match notice {
                Notice::Message { executor: from, agent_id, data } if from == executor => {
                    Some((from.clone(), agent_id.clone(), data.clone()))
                }
                _ => None,
            });
        assert_eq!((&*from, &*agent_id, &*data), (executor, "S-1", &b"hi"[..]));
        running.framework.notices.wait("failure", |notice| match notice {
            Notice::ExecutorLost { executor: lost } if lost == executor => Some(()),
            _ => None,
        });
    }
}
