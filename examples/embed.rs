//! Embeds the kernel in a framework of your own: four threads answer offers, and the caps hold.
//!
//! Run it with `cargo run --example embed`.

use std::time::{Duration, Instant};

use offermill::config::ExecutorCores;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Attribute, Config, Constraint, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate,
    TaskState, Timestamp,
};

fn main() -> Result<(), offermill::Error> {
    let config = Config::builder()
        .core_cap(Some(MilliCpus::from_cores(100)))
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(2)))
        .executor_memory(Mebibytes::new(1024))
        .constraint(Constraint::parse("zone:east,west")?)
        .build()?;
    let kernel = Kernel::new(config, IdScheme::unique("embed", 1)?);
    let started = Instant::now();
    let now = || Timestamp::ORIGIN.plus(started.elapsed());

    std::thread::scope(|scope| {
        for thread in 0..4 {
            let kernel = &kernel;
            scope.spawn(move || {
                let mut handler = kernel.handler();
                let mut decisions = Decisions::new();
                let resources = [Resource::scalar("cpus", 8.0), Resource::scalar("mem", 16_384.0)];
                let zone = [Attribute::text("zone", if thread < 3 { "east" } else { "north" })];
                for round in 0..1000 {
                    let id = format!("offer-{thread}-{round}");
                    let agent = format!("agent-{thread}");
                    let offers = [Offer::new(&id, &agent, "host", &resources, &zone)];
                    handler.resource_offers(&offers, now(), &mut decisions);
                    // Here a framework sends an ACCEPT for each of `decisions.accepts()` and a DECLINE for the rest,
                    // and later reports the executors' status updates:
                    for executor in decisions.accepts().flat_map(|accepted| accepted.executors) {
                        let name = kernel.executor_name(executor.id).to_string();
                        kernel.status_update(&StatusUpdate::new(&name, TaskState::Running), now());
                    }
                }
            });
        }
    });

    let totals = kernel.totals();
    let counts = kernel.offer_counts();
    println!("{} executors with {} cores", totals.executors, totals.cores);
    println!("{} of {} offers accepted; declined:", counts.accepted, counts.offers);
    for (reason, offers) in counts.declines().filter(|(_, offers)| *offers > 0) {
        println!("  {offers:>5} {}", reason.as_str());
    }
    let report = kernel.drain(Duration::ZERO);
    println!("drained: {}, {} executors to end", report.drained, report.executors.len());
    Ok(())
}
