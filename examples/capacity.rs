//! An autoscaler's view of the cluster: what it has, where it is free, and how many agents more are needed.
//!
//! Run it with `cargo run --example capacity`.

use offermill::config::ExecutorCores;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Attribute, Config, Decisions, IdScheme, Kernel, Offer, Resource, ResourceSums, Timestamp,
};

fn main() -> Result<(), offermill::Error> {
    let cores = MilliCpus::from_cores(4);
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(cores))
        .executor_memory(Mebibytes::new(7168))
        .executor_limit(Some(20))
        .build()?;
    let memory = config.memory_taken();
    let kernel = Kernel::new(config, IdScheme::unique("etl", 1)?);

    // Three agents offer what they have. The last one has memory for one executor only.
    let resources = [(16.0, 65_536.0), (16.0, 65_536.0), (14.0, 10_240.0)]
        .map(|(cpus, memory)| [Resource::scalar("cpus", cpus), Resource::scalar("mem", memory)]);
    let [east, west] = ["east", "west"].map(|zone| [Attribute::text("zone", zone)]);
    let offers = [
        Offer::new("O1", "S1", "host-1", &resources[0], &east),
        Offer::new("O2", "S2", "host-2", &resources[1], &west).with_role("eng"),
        Offer::new("O3", "S3", "host-3", &resources[2], &west),
    ];
    let now = Timestamp::from_millis(1_000);
    kernel.handler().resource_offers(&offers, now, &mut Decisions::new());

    let capacity = kernel.capacity(now);
    let show = |what: &str, of: ResourceSums| println!("{what}: {} cores, {}", of.cores, of.memory);
    let sums = capacity.sums();
    println!("{} agents, {} executors", sums.agents, capacity.totals().executors);
    show("offered", sums.offered);
    show("used", sums.used);
    show("free", sums.free);
    for (role, offer) in capacity.by_role() {
        show(&format!("offered to role {role}"), offer.unreserved);
    }
    for (zone, sums) in capacity.by_attribute("zone") {
        show(&format!("free in zone {zone}"), sums.free);
    }
    if let Some(agent) = capacity.largest_free() {
        show(&format!("most free cores on one agent: {}", agent.agent_id()), agent.free());
    }

    // As many agents as the largest holds the executors that are wanted.
    let largest = capacity.largest_agent();
    let by_memory = largest.memory.get() / memory.get();
    let executors_each = (largest.cores.millis() / cores.millis()).min(by_memory);
    let wanted = u64::from(kernel.wanted());
    match executors_each {
        0 => println!("no agent is large enough for an executor"),
        each => println!("{wanted} executors wanted: {} agents more", wanted.div_ceil(each)),
    }
    Ok(())
}
