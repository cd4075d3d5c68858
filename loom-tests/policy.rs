//! The policy: concurrent handlers and setters.

use super::scenes::{NOW, config, kernel, offer, offer_to, one_given_up, update};
use super::{explore, race};
use crate::kernel::state::admission::AdmissionState;
use crate::resources::MilliCpus;
use crate::{Handler, Kernel, LimitRule, StatusUpdate, TaskState};

const CORE: MilliCpus = MilliCpus::from_cores(1);

/// A batch, answered by `answer` through a handler that knows the policy already, while `set` publishes a policy that
/// leaves no room.
fn batch_and_setter(answer: fn(&Kernel, &mut Handler), set: fn(&Kernel)) {
    let kernel = kernel(config());
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = kernel.handler();
    let ((), after_setting) = race(
        move || answer(&here, &mut handler),
        move || {
            set(&there);
            there.totals().executors
        },
    );
    assert_eq!(kernel.totals().executors, after_setting, "placed under a policy not in force");
}

fn place_one(_: &Kernel, handler: &mut Handler) {
    offer_to(handler, "S0", 1);
}

/// The policy is loaded before the word.
fn place_by_an_old_policy(kernel: &Kernel, _: &mut Handler) {
    let core = &*kernel.0;
    let policy = core.policy.load();
    let admission = core.admission.load();
    if policy.headroom(admission).is_ok() {
        let _ = core.admission.commit(admission, 1, CORE);
    }
}

fn close_the_limit(kernel: &Kernel) {
    kernel.set_executor_limit(Some(0)).unwrap();
}

fn close_the_core_cap(kernel: &Kernel) {
    kernel.reconfigure(config().core_cap(Some(CORE)).executor_limit(Some(0)).build().unwrap());
}

/// Goal: once `set_executor_limit` has returned, nothing is placed under the old limit. Method: a concurrent batch; the
/// count after the setter bounds that at the end.
#[test]
fn a_limit_holds_once_it_is_set() {
    explore("policy/launch-limit", None, || batch_and_setter(place_one, close_the_limit));
}

/// Mutant: a handler that loads the policy before the word.
#[test]
#[ignore = "mutant"]
fn mutant_policy_before_the_word() {
    explore("mutant policy/launch-limit", None, || {
        batch_and_setter(place_by_an_old_policy, close_the_limit);
    });
}

/// Goal: once `reconfigure` has returned, nothing is placed under the old settings. Method: as for the limit.
#[test]
fn settings_hold_once_they_are_set() {
    explore("policy/launch-config", None, || batch_and_setter(place_one, close_the_core_cap));
}

/// Mutant: a handler that loads the policy before the word.
#[test]
#[ignore = "mutant"]
fn mutant_settings_before_the_word() {
    explore("mutant policy/launch-config", None, || {
        batch_and_setter(place_by_an_old_policy, close_the_core_cap);
    });
}

/// As many changes as there are versions under loom. The last one leaves no room.
fn change_through_all_versions(kernel: &Kernel) {
    for limit in [9, 8, 7, 0] {
        kernel.set_executor_limit(Some(limit)).unwrap();
    }
}

/// Answers as a handler does, but without pinning the version.
fn place_without_a_pin(kernel: &Kernel, _: &mut Handler) {
    let core = &*kernel.0;
    let admission = core.admission.load();
    if core.policy.load().headroom(admission).is_ok() {
        let _ = core.admission.commit(admission, 1, CORE);
    }
}

/// Goal: a reused version doesn't let a batch commit. Method: as for the limit, with so many changes during the batch
/// that the version would be reused if it could.
#[test]
fn a_version_does_not_come_back_during_a_batch() {
    explore("policy/launch-versions", Some(2), || {
        batch_and_setter(place_one, change_through_all_versions);
    });
}

/// Mutant: a commit with a version that isn't pinned.
#[test]
#[ignore = "mutant"]
fn mutant_version_not_pinned() {
    explore("mutant policy/launch-versions", Some(2), || {
        batch_and_setter(place_without_a_pin, change_through_all_versions);
    });
}

/// More handlers than pins that stay set. One answers a batch whose pin doesn't stay set, while versions are used up.
fn batch_of_one_of_many(answer: fn(&Kernel, &mut Handler)) {
    let kernel = kernel(config());
    let mut idle: Vec<Handler> = (0..3).map(|_| kernel.handler()).collect();
    for (handler, limit) in idle.iter_mut().zip([9, 8, 7]) {
        offer_to(handler, "S0", 0);
        kernel.set_executor_limit(Some(limit)).unwrap();
    }
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = idle.remove(2);
    let ((), after_setting) = race(
        move || answer(&here, &mut handler),
        move || {
            for limit in [6, 5, 0] {
                there.set_executor_limit(Some(limit)).unwrap();
            }
            there.totals().executors
        },
    );
    assert_eq!(kernel.totals().executors, after_setting, "placed under a policy not in force");
}

/// Goal: the same for a handler whose pin is cleared after its batches, because there are too many handlers. Method:
/// two idle handlers pin half of loom's versions; a third answers a batch, during which all others are used up.
#[test]
fn a_setter_waits_for_a_version() {
    explore("policy/launch-crowd", Some(2), || batch_of_one_of_many(place_one));
}

/// Mutant: a commit with a version that isn't pinned.
#[test]
#[ignore = "mutant"]
fn mutant_version_not_pinned_with_many_handlers() {
    explore("mutant policy/launch-crowd", Some(2), || batch_of_one_of_many(place_without_a_pin));
}

/// An executor that was given up returns by `come_back`, while versions are used up; in the end there is no room.
fn return_and_setter(come_back: fn(&Kernel, &str)) {
    let (kernel, executor) = one_given_up(config());
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((), after_setting) = race(
        move || come_back(&here, &executor),
        move || {
            change_through_all_versions(&there);
            there.totals().executors
        },
    );
    assert_eq!(kernel.totals().executors, after_setting, "taken back under a policy not in force");
}

/// Goal: the same for executors that return after they were given up. Method: a return, and so many changes of the
/// limit that versions are reused.
#[test]
fn a_version_does_not_come_back_during_a_return() {
    explore("policy/return-versions", Some(2), || {
        return_and_setter(|kernel, executor| drop(update(kernel, executor, TaskState::Running)));
    });
}

/// Mutant: a commit while the policy is not frozen.
#[test]
#[ignore = "mutant"]
fn mutant_policy_not_kept() {
    explore("mutant policy/return-versions", Some(2), || {
        return_and_setter(|kernel, _| {
            let core = &*kernel.0;
            let admission = core.admission.load();
            if core.policy.load().has_room_for(admission, CORE) {
                let _ = core.admission.commit(admission, 1, CORE);
            }
        });
    });
}

/// `set` changes the limit while another thread loads the word and then the policy.
fn setter_and_look(set: fn(&Kernel)) {
    let kernel = kernel(config());
    let before: AdmissionState = kernel.0.admission.load();
    let (here, there) = (kernel.clone(), kernel.clone());
    race(
        move || set(&here),
        move || {
            let admission = there.0.admission.load();
            let limit = there.executor_limit();
            assert!(
                admission.same_version(before) || limit == Some(3),
                "an old policy, a new version"
            );
        },
    );
}

/// Goal: a thread that sees the new version sees the new policy. Method: a setter and a reader at once.
#[test]
fn a_policy_is_as_new_as_its_version() {
    explore("policy/set-load", None, || {
        setter_and_look(|kernel| kernel.set_executor_limit(Some(3)).unwrap());
    });
}

/// Mutant: the version changes before the policy is published.
#[test]
#[ignore = "mutant"]
fn mutant_version_before_the_policy() {
    explore("mutant policy/set-load", None, || {
        setter_and_look(|kernel| {
            kernel.0.admission.bump_version();
            kernel.set_executor_limit(Some(3)).unwrap();
        });
    });
}

/// Goal: of two concurrent changes none is lost. Method: a limit, and settings with another limit; whichever comes
/// last, the settings are in force, and a batch follows them.
#[test]
fn two_setters_lose_no_change() {
    explore("policy/set-set", None, || {
        let kernel = kernel(config());
        let settings = config().core_cap(Some(CORE)).executor_limit(Some(5)).build().unwrap();
        let (here, there) = (kernel.clone(), kernel.clone());
        race(
            move || here.set_executor_limit(Some(3)).unwrap(),
            move || there.reconfigure(settings),
        );
        assert_eq!(kernel.config().core_cap(), Some(CORE), "the settings were lost");
        assert!(matches!(kernel.executor_limit(), Some(3 | 5)));
        assert_eq!(offer_to(&mut kernel.handler(), "S0", 2).len(), 1, "the core cap is one");
    });
}

/// Ends an executor as finished, which lowers the limit.
fn finish_one(kernel: &Kernel, executor: &str) {
    let finished = StatusUpdate::new(executor, TaskState::Finished);
    kernel.status_update_with(&finished, LimitRule::CountDown, NOW);
}

/// Goal: a limit that is set while an executor finishes is not lost: it is set before the count and lowered, or after
/// it and kept. Method: both at once.
#[test]
fn a_count_loses_no_limit() {
    explore("policy/count-set", None, || {
        let kernel = kernel(config().executor_limit(Some(5)));
        let executor = offer(&kernel, 1).remove(0);
        let (here, there) = (kernel.clone(), kernel.clone());
        race(
            move || finish_one(&here, &executor),
            move || there.set_executor_limit(Some(3)).unwrap(),
        );
        let limit = kernel.executor_limit();
        assert!(matches!(limit, Some(2 | 3)), "{limit:?}: the limit that was set is lost");
    });
}

/// Goal: executors that finish at once are each counted, and a duplicate isn't. Method: two threads report two
/// executors, both of them the first one.
#[test]
fn counts_lose_no_count() {
    explore("policy/count-count", Some(3), || {
        let kernel = kernel(config().executor_limit(Some(5)));
        let executors = offer(&kernel, 2);
        let (one, other) = (executors[0].clone(), executors);
        let (here, there) = (kernel.clone(), kernel.clone());
        race(
            move || finish_one(&here, &one),
            move || other.iter().for_each(|executor| finish_one(&there, executor)),
        );
        assert_eq!(kernel.executor_limit(), Some(3));
        assert_eq!(kernel.totals().executors, 0);
    });
}

/// Goal: an executor that finishes is not replaced. Method: it finishes at the limit while a batch is answered.
#[test]
fn the_finished_are_not_replaced() {
    explore("policy/count-launch", Some(3), || {
        let kernel = kernel(config().executor_limit(Some(1)));
        let executor = offer(&kernel, 1).remove(0);
        let here = kernel.clone();
        let mut handler = kernel.handler();
        let ((), placed) =
            race(move || finish_one(&here, &executor), move || offer_to(&mut handler, "S0", 1));
        assert_eq!(placed, [], "the executor that finished was replaced");
        assert_eq!(kernel.executor_limit(), Some(0));
    });
}
