//! Offers that are declined: by the constraint, which takes a look at what is known of the agent; by the agent's
//! exclusion or for its size, which takes two; or by the cap, which takes none.

use criterion::Criterion;

use crate::measure::{self, By, Part};
use crate::scene::Scene;

pub(crate) fn all(criterion: &mut Criterion) {
    for scene in Scene::DECLINED {
        let name = format!("declined/{}", scene.name());
        measure::scene(criterion, scene, By::Batch, &[(&name, Part::Declines)]);
        if scene == Scene::Unmet {
            measure::scene(criterion, scene, By::Agents, &[(&name, Part::Declines)]);
        }
    }
}
