//! Scenarios that broke a rule once, shortened.

use crate::expect_sound;

/// Goal: a revive that is lost on its way doesn't starve the framework. Method: the seconds in which it is sent, with
/// calls lost. (It broke rule 9: room on an agent, executors wanted, and no offer ever.)
#[test]
fn a_lost_revive() {
    let text = "seed=7 agents=1 agent-cores=8 agent-mib=9216 executors=4 executor-millicores=500 executor-mib=2048 \
                exclude-after=1 exclude-for=60s release-after=300s lifetime=5s healed-at=30s shutdown-timeout=3s\n\
                14.421s messages-lost percent=37 lasts=6.464s";
    expect_sound(text.parse().unwrap());
}
