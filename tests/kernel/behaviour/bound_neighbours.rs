//! Executors that were bound late to different agents.

use offermill::{Bound, BoundAgent};

use super::Fixture;
use crate::world::{OfferData, Setup, at};

/// Goal: the loss of an agent puts only its own executors in doubt, though those that were bound late are searched for
/// on each agent. Method: executors bound to two agents, one of which has ended.
#[test]
fn a_loss_concerns_no_other_agents_executors() {
    let mut fixture = Fixture::new(&Setup::default());
    let mut start_on = |agent: &str| {
        let executor = fixture.offer(&[OfferData::late(1.0, 100.0)], 0)[0];
        let name = fixture.kernel.executor_name(executor).to_string();
        let bound = fixture.kernel.bind(&name, &BoundAgent::new(agent, "host"), at(1));
        assert_eq!(bound, Bound::Settled { executor, in_doubt: false });
        executor
    };
    let [here, ended, elsewhere] = ["S1", "S1", "S2"].map(&mut start_on);
    fixture.update(ended, offermill::TaskState::Finished, 2);
    let lost = |agent: &str| -> Vec<_> {
        fixture.kernel.agent_lost(agent, at(3)).into_iter().map(|target| target.id).collect()
    };
    assert_eq!(lost("S1"), [here]);
    assert_eq!(lost("S2"), [elsewhere]);
    assert_eq!(lost("S3"), []);
}
