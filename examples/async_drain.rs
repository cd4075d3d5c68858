//! Ends a framework whose host is asynchronous: executors are asked to end, and a task waits for that without a thread of
//! its own, for at most a second.
//!
//! Run it with `cargo run --example async_drain`.

use std::time::Duration;

use offermill::{
    Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate, TaskState, Timestamp,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), offermill::Error> {
    let kernel = Kernel::new(Config::builder().build()?, IdScheme::unique("async", 1)?);
    let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 4096.0)];
    let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    let mut decisions = Decisions::new();
    kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
    println!("{} executors", decisions.executors());

    // Another task reports the executors' ends, as a cluster does after it was told to kill them.
    let targets = kernel.close();
    let to_kill = kernel.kill_executors(targets.iter().map(|target| target.id));
    let cluster = kernel.clone();
    tokio::spawn(async move {
        for target in to_kill {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let name = cluster.executor_name(target.id).to_string();
            let update = StatusUpdate::new(&name, TaskState::Killed);
            cluster.status_update(&update, Timestamp::from_millis(10));
        }
    });

    let report = match tokio::time::timeout(Duration::from_secs(1), kernel.drained()).await {
        Ok(report) => report,
        // The timeout has passed: report what is left.
        Err(_) => kernel.drain(Duration::ZERO),
    };
    println!("drained: {}", report.drained);
    for drained in report.executors {
        let name = kernel.executor_name(drained.executor.id);
        println!("  {name} on {}: {}", drained.executor.agent_id, drained.fate.as_str());
    }
    Ok(())
}
