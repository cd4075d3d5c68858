//! Offers that are accepted, one executor each, and the updates that end the executors again.
//!
//! Both are done in turn, always with ten thousand executors alive, and timed apart: `accept` is a batch of offers,
//! `end` the terminal updates of as many executors, the oldest. More of updates is in the theme `updates`.

use criterion::Criterion;

use crate::measure::{self, By, Part};
use crate::scene::Scene;

const ACCEPT: (&str, Part) = ("accepted/accept", Part::Accepts);
const END: (&str, Part) = ("accepted/end", Part::Ends);

pub(crate) fn all(criterion: &mut Criterion) {
    measure::scene(criterion, Scene::Accepted, By::Batch, &[ACCEPT]);
    measure::scene(criterion, Scene::Accepted, By::Agents, &[ACCEPT, END]);
}
