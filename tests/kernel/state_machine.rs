//! Random histories: after each event the kernel and its reference must have answered the same and stand the same.
//!
//! `PROPTEST_CASES` sets the number of histories (default 256). A failure prints the shrunk history and writes its
//! seed to `regressions/state_machine.txt` beside this file; commit it.

pub(crate) mod steps;

use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::history::{Scene, Subject, corners};

struct KernelFollowsReference;

impl StateMachineTest for KernelFollowsReference {
    type SystemUnderTest = Subject;
    type Reference = Scene;

    fn init_test(scene: &Scene) -> Subject {
        Subject::new(scene)
    }

    fn apply(
        mut subject: Subject,
        scene: &Scene,
        step: <Scene as ReferenceStateMachine>::Transition,
    ) -> Subject {
        subject.apply(scene, &step.event);
        subject.expect_like(scene);
        corners::count(scene);
        subject
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(
            FileFailurePersistence::Direct("tests/kernel/regressions/state_machine.txt")
        )),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    fn play_histories(sequential 1..60 => KernelFollowsReference);
}

/// Goal: no history of events leads the kernel away from its documentation. Method: random settings and histories, bad
/// input and a clock that sometimes goes back included; the reference answers each event first. Each corner that
/// [`corners`] lists must have been reached.
#[test]
fn any_history_agrees_with_the_reference() {
    play_histories();
    corners::expect_reached(ProptestConfig::default().cases);
}
