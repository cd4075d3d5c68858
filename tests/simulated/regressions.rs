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

/// Goal: the checker doesn't expect an executor to be reconciled while its batch is open, nor at once afterwards.
/// Method: a launch that is 4 s late, during which the clock jumps by an hour. (The checker reported invariant 19: the
/// launch was in doubt at once, and its batch was closed just before the check.)
#[test]
fn a_clock_that_jumps_while_a_launch_is_late() {
    let text = "seed=5514 agents=2 agent-cores=5 agent-mib=4096 executors=2 executor-millicores=0 executor-mib=1536 \
                overhead-mib=100 core-cap-millicores=5000 exclude-after=3 exclude-for=300s release-after=60s \
                handlers=1 queue=2 batch=3 lifetime=5s healed-at=30s shutdown-timeout=0s\n\
                0.336s answers-delayed percent=73 lasts=52.485s amount=4184\n\
                0.994s agent-partitioned lasts=20s\n\
                17.112s core-cap-changes amount=9500\n\
                22.34s clock-jumps amount=3600000";
    expect_sound(text.parse().unwrap());
}

/// Goal: the checker expects the loss of an agent that was never met to be remembered as long as agents are. Method:
/// agents that die before the cluster has chosen them for an executor. (The checker reported invariant 25.)
#[test]
fn an_agent_that_is_lost_before_it_is_met() {
    let text = "seed=213 agents=3 agent-cores=4 agent-mib=1024 executors=1 executor-millicores=3000 executor-mib=768 \
                overhead-mib=0 binds-late=1 exclude-after=1 exclude-for=10s release-after=300s handlers=1 \
                queue=10000 batch=3 lifetime=120s healed-at=400s shutdown-timeout=0s\n\
                248.902s agent-dies lasts=200s amount=1\n\
                369.703s messages-lost percent=92 lasts=15.971s\n\
                374.45s agent-dies agent=2 lasts=1s amount=1";
    expect_sound(text.parse().unwrap());
}
