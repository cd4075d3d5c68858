//! Shortened scenarios that once violated an invariant.

use crate::expect_sound;

/// Goal: a lost revive doesn't stop all offers. Method: the seconds in which it is sent, with calls lost. (It violated
/// invariant 9: room on an agent, executors wanted, and no offers.)
#[test]
fn a_lost_revive() {
    let text = "seed=7 agents=1 agent-cores=8 agent-mib=9216 executors=4 executor-millicores=500 executor-mib=2048 \
                exclude-after=1 exclude-for=60s release-after=300s lifetime=5s healed-at=30s\n\
                14.421s messages-lost percent=37 lasts=6.464s";
    expect_sound(text.parse().unwrap());
}

/// Goal: a forgotten executor doesn't run forever beside its replacement. Method: an agent that is cut off until its
/// executors are replaced, and that comes back under a new master, which sends no update about it. (It violated
/// invariant 29: more executors ran than the kernel counted.)
#[test]
fn a_forgotten_executor_that_came_back_without_a_word() {
    let text = "seed=3 agents=1 agent-cores=4 agent-mib=3072 executors=1 executor-millicores=0 executor-mib=256 \
                exclude-after=2 exclude-for=300s release-after=10s queue=10 batch=3 healed-at=241.027s \
                shutdown-timeout=0s\n\
                110.478s agent-partitioned agent=0 lasts=200s\n\
                240.027s master-fails-over lasts=3.21s";
    expect_sound(text.parse().unwrap());
}

/// Goal: no executor is reconciled by name before the call that launches it: the cluster would report it as gone, it
/// would be replaced, and both would run. Method: handlers whose calls are made up to 4 s after their batches are
/// committed, while executors come and go and all are reconciled. (It violated invariant 19: executors whose launch had
/// not been sent were reconciled.)
#[test]
fn a_question_that_overtakes_a_launch() {
    for seed in 1..=8 {
        let text = format!(
            "seed={seed} agents=4 agent-cores=8 executors=12 lifetime=3s handlers=2 batch=3 healed-at=60s\n\
             0s clock-jumps amount=870000\n\
             15s answers-delayed percent=100 lasts=30s amount=4000"
        );
        expect_sound(text.parse().unwrap());
    }
}
