//! Answers two offers and applies a status update: the program at the beginning of README.md.

use offermill::{Attribute, Config, Constraint, Decisions, IdScheme, Kernel, Offer, Resource};
use offermill::{StatusUpdate, TaskState, Timestamp, config::ExecutorCores, resources::MilliCpus};
fn main() -> Result<(), offermill::Error> {
    let cores = ExecutorCores::Fixed(MilliCpus::from_cores(2));
    let constraint = Constraint::parse("zone:east,west")?;
    let config = Config::builder().executor_cores(cores).constraint(constraint).build()?;
    let kernel = Kernel::new(config, IdScheme::unique("etl", 1)?);
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new()); // one each per thread
    let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 8192.0)];
    let [east, north] = ["east", "north"].map(|zone| [Attribute::text("zone", zone)]);
    let first = Offer::new("O1", "S1", "host-1", &resources, &east);
    let offers = [first, Offer::new("O2", "S2", "host-2", &resources, &north)];
    handler.resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
    for executor in decisions.accepts().flat_map(|accepted| accepted.executors) {
        println!("start {} with {}", kernel.executor_name(executor.id), executor.resources.memory);
    }
    for decline in decisions.declines() {
        println!("decline {}: {}", offers[decline.offer as usize].id, decline.reason);
    }
    kernel.status_update(&StatusUpdate::new("etl-1-0.0", TaskState::Finished), Timestamp::ORIGIN);
    println!("{} executor is left", kernel.totals().executors);
    Ok(())
}
