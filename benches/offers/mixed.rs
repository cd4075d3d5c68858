//! Offers as a busy cluster sends them: every other agent doesn't meet the constraint, and on each of the others an
//! executor is started, which ends again. The offers are timed, all of them.

use criterion::Criterion;

use crate::measure::{self, By, Part};
use crate::scene::Scene;

pub(crate) fn all(criterion: &mut Criterion) {
    for by in [By::Batch, By::Agents] {
        measure::scene(criterion, Scene::Mixed, by, &[("mixed/half unmet", Part::Accepts)]);
    }
}
