//! (stub)
use super::config::MesosConfig;
use super::wire::messages::*;
use crate::engine::seam::{Accept, Amount};
use crate::error::Error;
pub(super) fn launch(accept: &Accept<'_>, config: &MesosConfig) -> Result<Operation, Error> {
    let infos = accept
        .executors
        .iter()
        .map(|l| TaskInfo {
            name: format!("{} {}", config.name, l.executor),
            task_id: TaskId { value: l.executor.to_owned() },
            agent_id: AgentId { value: accept.agent_id.to_owned() },
            resources: l
                .pieces
                .iter()
                .map(|p| {
                    let mut r =
                        Resource { name: p.resource.name.to_owned(), ..Resource::default() };
                    match p.amount {
                        Amount::Scalar(s) => {
                            r.set_type(ValueType::Scalar);
                            r.scalar = Some(Scalar { value: s.thousandths() as f64 / 1000.0 });
                        }
                        Amount::Port(port) => {
                            r.set_type(ValueType::Ranges);
                            r.ranges = Some(Ranges {
                                range: vec![Range { begin: port.into(), end: port.into() }],
                            });
                        }
                    }
                    r
                })
                .collect(),
            command: Some(CommandInfo {
                shell: Some(false),
                value: l.command.argv.first().cloned(),
                arguments: l.command.argv.clone(),
                environment: Some(Environment {
                    variables: l
                        .command
                        .environment
                        .iter()
                        .map(|(k, v)| Variable {
                            name: k.clone(),
                            value: Some(v.clone()),
                            ..Variable::default()
                        })
                        .collect(),
                }),
                ..CommandInfo::default()
            }),
            ..TaskInfo::default()
        })
        .collect();
    Ok(Operation {
        r#type: Some(OperationType::Launch.into()),
        launch: Some(Launch { task_infos: infos }),
        ..Operation::default()
    })
}
