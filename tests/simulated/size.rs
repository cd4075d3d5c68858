//! The memory that a large simulation takes.

use offermill::cluster::simulated::{Checks, Scenario, Severity, Simulation};

/// Goal: a hundred thousand executors on ten thousand agents take less than 128 MiB (94 MiB on 2026-11-23). Method:
/// count the allocated bytes until all executors are placed.
#[test]
fn a_hundred_thousand_executors_fit() {
    let duration = std::time::Duration::from_secs(60);
    let scenario = Scenario::sized(7, Severity::None, 10_000, 100_000, duration);
    let mut executors = 0;
    let allocated = allocation_counter::measure(|| {
        let mut simulation = Simulation::new(scenario, Checks::Off).unwrap();
        while executors < 100_000 {
            assert!(simulation.advance(10_000).unwrap(), "{executors} executors, and no more");
            executors = simulation.progress().executors;
        }
    });
    println!("{executors} executors: at most {} MiB", allocated.bytes_max >> 20);
    assert!(allocated.bytes_max < 128 << 20);
}
