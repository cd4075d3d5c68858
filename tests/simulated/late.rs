//! Clusters that choose the agents of executors.

use offermill::cluster::simulated::{Scenario, Severity};

/// Goal: the text of a scenario says that the cluster chooses the agents. Method: there and back.
#[test]
fn a_scenario_says_that_agents_are_chosen_late() {
    let scenario = Scenario::generate(7, Severity::Mild).with_late_binding();
    assert!(scenario.to_string().contains(" binds-late=1 "), "{scenario}");
    assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), scenario);
}
