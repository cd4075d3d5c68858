//! The example, as a test.
#![allow(clippy::unwrap_used)]

/// Goal: all tasks finish, each that fails is started again, and no other. Method: 150 tasks, of which one fails once.
#[test]
fn each_task_finishes_once() {
    assert_eq!(super::run(150).unwrap(), 151);
}
