//! Tasks as frameworks describe them.

use crate::mesos_v1::messages::{
    CommandInfo, Offer, Range, Ranges, Resource, Scalar as WireScalar, TaskInfo, ValueType,
};

/// A task of these cores and 100 MiB, on the agent of an offer.
pub(super) fn task_info(id: &str, offer: &Offer, cores: f64, port: Option<u64>) -> TaskInfo {
    let scalar = |name: &str, value: f64| Resource {
        name: name.to_owned(),
        r#type: ValueType::Scalar.into(),
        scalar: Some(WireScalar { value }),
        ..Resource::default()
    };
    let mut resources = vec![scalar("cpus", cores), scalar("mem", 100.0)];
    resources.extend(port.map(|port| Resource {
        name: "ports".to_owned(),
        r#type: ValueType::Ranges.into(),
        ranges: Some(Ranges { range: vec![Range { begin: port, end: port }] }),
        ..Resource::default()
    }));
    TaskInfo {
        task_id: id.into(),
        agent_id: offer.agent_id.clone(),
        resources,
        command: Some(CommandInfo { value: Some("true".to_owned()), ..CommandInfo::default() }),
        ..TaskInfo::default()
    }
}
