//! Offer constraints and offer filters, by which the master doesn't offer agents that the constraint excludes, or less
//! than an executor needs.
//!
//! A master refuses a subscription, with an ERROR event, if it doesn't accept a regular expression in one of the
//! constraints. The expressions here fit its default limits; at a master with lower limits the subscription is made
//! without constraints.

use std::collections::BTreeMap;

use super::config::MinOfferResources;
use crate::constraint::{Check, ConstraintPushdown, Predicate as Asked, Subject};
use crate::mesos_v1::messages::{
    AttributeConstraint, ConstraintGroup, Exists, MinAllocatableResources, NotExists,
    OfferConstraints, OfferFilters, Predicate, Pseudoattribute, ResourceQuantities,
    RoleConstraints, Scalar, Selector, TextEquals, TextMatches, TextNotEquals, TextNotMatches,
};
use crate::resources::Scalar as Thousandths;

/// Returns the same constraints for each role. `None` if every agent passes.
#[must_use]
pub(super) fn offer_constraints(
    pushdown: &ConstraintPushdown,
    roles: &[String],
) -> Option<OfferConstraints> {
    if pushdown.is_everything() {
        return None;
    }
    let group = |checks: &Vec<Check>| {
        let attribute_constraints = checks.iter().map(attribute_constraint).collect();
        ConstraintGroup { attribute_constraints }
    };
    let groups: Vec<ConstraintGroup> = pushdown.groups().iter().map(group).collect();
    let of_role = |role: &String| (role.clone(), RoleConstraints { groups: groups.clone() });
    Some(OfferConstraints { role_constraints: roles.iter().map(of_role).collect() })
}

/// Returns the same filter for each role: the minimum resources of an offer. Empty if there is no minimum; then the
/// cluster's own minimum applies.
#[must_use]
pub(super) fn offer_filters(
    min_resources: &MinOfferResources,
    roles: &[String],
) -> BTreeMap<String, OfferFilters> {
    let MinOfferResources { cores, memory, gpus } = min_resources;
    let mebibytes = memory.get().saturating_mul(1000);
    let quantities: BTreeMap<String, Scalar> =
        [("cpus", cores.millis()), ("mem", mebibytes), ("gpus", u64::from(gpus.get()) * 1000)]
            .into_iter()
            .filter(|(_, thousandths)| *thousandths > 0)
            .map(|(name, thousandths)| {
                let value = Thousandths::from_thousandths(thousandths).as_f64();
                (name.to_owned(), Scalar { value })
            })
            .collect();
    if quantities.is_empty() {
        return BTreeMap::new();
    }
    let allocatable =
        MinAllocatableResources { quantities: vec![ResourceQuantities { quantities }] };
    let filters = OfferFilters { min_allocatable_resources: Some(allocatable) };
    roles.iter().map(|role| (role.clone(), filters.clone())).collect()
}

fn attribute_constraint(Check { subject, predicate }: &Check) -> AttributeConstraint {
    let place = |place: Pseudoattribute| Selector {
        attribute_name: None,
        pseudoattribute_type: Some(place.into()),
    };
    let selector = match subject {
        Subject::Attribute(name) => {
            Selector { attribute_name: Some(name.to_string()), pseudoattribute_type: None }
        }
        Subject::Hostname => place(Pseudoattribute::Hostname),
        Subject::Region => place(Pseudoattribute::Region),
        Subject::Zone => place(Pseudoattribute::Zone),
    };
    let mut asked = Predicate::default();
    match predicate {
        Asked::Exists => asked.exists = Some(Exists {}),
        Asked::NotExists => asked.not_exists = Some(NotExists {}),
        Asked::TextEquals(text) => asked.text_equals = Some(TextEquals { value: text.to_string() }),
        Asked::TextNotEquals(text) => {
            asked.text_not_equals = Some(TextNotEquals { value: text.to_string() });
        }
        Asked::TextMatches(regex) => {
            asked.text_matches = Some(TextMatches { regex: regex.to_string() });
        }
        Asked::TextNotMatches(regex) => {
            asked.text_not_matches = Some(TextNotMatches { regex: regex.to_string() });
        }
    }
    AttributeConstraint { selector, predicate: asked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;
    use crate::constraint::DuplicateAttributes;
    use crate::resources::{Gpus, Mebibytes, MilliCpus};

    fn json(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap()
    }

    /// Goal: a pushdown is converted into exactly its checks. Method: a constraint with every kind of check,
    /// compared with Mesos' JSON, for two roles; and one that every agent passes.
    #[test]
    fn a_pushdown_becomes_constraints() {
        let text = "expr:: (zone = a or gpu) and rack like r* and not old and @hostname != h and not @zone like 'z?'";
        let pushdown = Constraint::parse(text).unwrap().pushdown(DuplicateAttributes::RuledOut);
        let roles = ["*".to_owned(), "eng".to_owned()];
        let constraints = offer_constraints(&pushdown, &roles).unwrap();
        let group = |first: &str| {
            let named = |name: &str| format!(r#""selector": {{"attribute_name": "{name}"}}"#);
            let place = |name: &str| format!(r#""selector": {{"pseudoattribute_type": "{name}"}}"#);
            let mut all = [
                first.to_owned(),
                format!(
                    r#"{{{}, "predicate": {{"text_matches": {{"regex": "r\\C*"}}}}}}"#,
                    named("rack")
                ),
                format!(r#"{{{}, "predicate": {{"not_exists": {{}}}}}}"#, named("old")),
                format!(
                    r#"{{{}, "predicate": {{"text_not_equals": {{"value": "h"}}}}}}"#,
                    place("HOSTNAME")
                ),
                format!(
                    r#"{{{}, "predicate": {{"text_not_matches": {{"regex": "z(?s:.)"}}}}}}"#,
                    place("ZONE")
                ),
            ];
            all.sort();
            all
        };
        let zone = r#"{"selector": {"attribute_name": "zone"}, "predicate": {"text_equals": {"value": "a"}}}"#;
        let gpu = r#"{"selector": {"attribute_name": "gpu"}, "predicate": {"exists": {}}}"#;
        let wanted = [zone, gpu].map(|first| group(first).map(|check| json(&check)).to_vec());
        assert_eq!(constraints.role_constraints.len(), 2);
        for role in constraints.role_constraints.values() {
            assert_eq!(role.groups.len(), 2);
            for (group, wanted) in role.groups.iter().zip(&wanted) {
                let checks = group.attribute_constraints.iter();
                let checks: Vec<_> = checks.map(|it| serde_json::to_value(it).unwrap()).collect();
                assert_eq!(checks.len(), wanted.len());
                assert!(wanted.iter().all(|check| checks.contains(check)), "{checks:?}");
            }
        }
        assert_eq!(offer_constraints(&ConstraintPushdown::default(), &roles), None);
    }

    /// Goal: the filter excludes offers that are too small. Method: an executor's resources, in the units of the wire;
    /// and none.
    #[test]
    fn minimum_resources_become_a_filter() {
        let min_resources = MinOfferResources {
            cores: MilliCpus::from_millis(1500),
            memory: Mebibytes::new(896),
            gpus: Gpus::new(1),
        };
        let filters = offer_filters(&min_resources, &["a".to_owned(), "b".to_owned()]);
        let wanted = json(
            r#"{"min_allocatable_resources": {"quantities": [{"quantities":
                {"cpus": {"value": 1.5}, "gpus": {"value": 1.0}, "mem": {"value": 896.0}}}]}}"#,
        );
        assert_eq!(filters.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(serde_json::to_value(&filters["b"]).unwrap(), wanted);
        assert!(offer_filters(&MinOfferResources::default(), &["a".to_owned()]).is_empty());
    }
}
