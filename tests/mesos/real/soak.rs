//! Memory under very many offers.

use std::fs;

use serde_json::Value;

use super::cluster::{RealCluster, Setup};
use super::program::Program;

/// The maximum growth of a run's memory between the two measurements, in KiB. If each offer left only 160 bytes behind,
/// the growth would exceed it.
const GROWTH_KIB_MAX: u64 = 12 * 1024;

/// The resident memory of a process, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Goal: memory doesn't grow with the number of declined offers. Method: a hundred agents and a master that offers all
/// of them again each 20 ms, because they are declined without a refusal: none meets the constraint, which is about a
/// number and which the master therefore can't check. Memory after 20 000 offers, and after 100 000 more.
#[test]
#[ignore = "needs a real Mesos"]
fn memory_stays_flat() {
    let cluster = RealCluster::start(Setup {
        agents: 100,
        per_process: 50,
        attributes: "zone:east;rack:r%d;tier:3",
        mesos_flags: &["allocation_interval=20ms"],
        fast: false,
        ..Setup::default()
    });
    let flags = [
        "--constraints",
        "tier:99",
        "--conf",
        "spark.mesos.rejectOfferDurationForUnmetConstraints=0s",
    ];
    let mut program = Program::start(&cluster, &flags, &["true"]);
    let seen = |event: &Value| event["offers"]["seen"].as_u64().unwrap_or_default();
    let mut memory_after = |offers: u64| {
        program.event("offers", |event| event["event"] == "totals" && seen(event) >= offers);
        resident(program.pid())
    };
    let (early, late) = (memory_after(20_000), memory_after(120_000));
    println!("memory: {early} KiB after 20 000 offers, {late} KiB after 120 000");
    assert!(late < early + GROWTH_KIB_MAX, "{early} KiB, then {late} KiB");
    program.interrupt();
}
