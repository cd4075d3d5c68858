//! Work queues whose hosts fail before they run.

use std::collections::BTreeMap;

use offermill::cluster::simulated::Scenario;

use crate::{expect_sound, seeds};

/// Goal: whether a task has begun that is gone with its host is told from the host's end, and a task that hasn't waits
/// again, whatever is lost and in whatever order ends are reported. Method: hosts that fail at their start, and
/// executors that crash, while messages are lost, the connection breaks, and
/// one of two agents is cut off for more than a minute.
#[test]
fn hosts_that_fail_at_their_start_decide_about_their_tasks() {
    let mut corners = BTreeMap::new();
    for seed in 1..=seeds().min(60) {
        let mut text = format!(
            "seed={seed} agents=2 agent-cores=8 executors=12 executor-mib=512 tasks=1 hosts=1 work-queue=1 \
             exclude-after=200 lifetime=20s release-after=10s handlers=2 batch=3 healed-at=300s\n\
             1s launches-fail percent=60 lasts=290s\n\
             5s messages-lost percent=40 lasts=290s\n\
             6s answers-delayed percent=30 lasts=290s amount=2000"
        );
        for at in (20..300).step_by(20) {
            text += &format!("\n{at}s executors-crash percent=50");
            text += &format!("\n{}s connection-breaks lasts=3s", at + 9);
        }
        text += &format!("\n{}s agent-partitioned agent=0 lasts=90s", 100 + 3 * seed);
        for (corner, times) in expect_sound(text.parse::<Scenario>().unwrap()).report().corners {
            *corners.entry(corner).or_insert(0) += times;
        }
    }
    for (corner, times) in &corners {
        println!("corner: {times:>8} times {corner}");
    }
    for corner in ["the end of a task waits", "a task waits again"] {
        let times = corners.iter().find(|(text, _)| text.starts_with(corner)).map(|it| *it.1);
        assert!(times > Some(0), "never reached: {corner}");
    }
}
