//! The cores that a framework may expect.

use super::Fixture;
use crate::world::Setup;

/// Goal: the expected cores are the cap in whole executors; without a cap, those of as many executors as the limit
/// allows; zero if executors have no fixed size or nothing bounds them. Method: each combination of cap, limit and
/// size.
#[test]
fn caps_and_limits_say_what_may_be_expected() {
    let two_cores = Some(2000);
    for (core_cap, limit, executor_cores, expected) in [
        (Some(7000), None, two_cores, 6000),
        (Some(7000), Some(1), two_cores, 6000),
        (Some(7000), None, None, 7000),
        (None, Some(3), two_cores, 6000),
        (None, Some(3), None, 0),
        (None, None, two_cores, 0),
    ] {
        let setup = Setup { core_cap, limit, executor_cores, ..Setup::default() };
        let fixture = Fixture::new(&setup);
        assert_eq!(fixture.kernel.cores_expected().millis(), expected, "{setup:?}");
    }
}
