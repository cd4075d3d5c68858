//! What a task asks for, in the terms of the worker protocol, and what this master refuses.

use std::time::Duration;

use prost::Message as _;

use crate::cluster::standalone::protocol::{ExecutorCommand, LaunchHosting, WorkerResources};
use crate::mesos_v1::host_labels::HOST_LABEL;
use crate::mesos_v1::messages::{
    CommandInfo, ExecutorInfo, ExecutorType, KillPolicy, Resource, TaskInfo, ValueType,
    VariableType,
};
use crate::resources::{PortRange, PortSet, Scalar};

/// The time from a request to end until an executor is ended by force, if the framework names none.
const GRACE_DEFAULT: Duration = Duration::from_secs(3);

/// What a task asks for.
#[derive(Debug)]
pub(super) struct RequestedExecutor {
    pub(super) resources: WorkerResources,
    pub(super) command: ExecutorCommand,
    pub(super) hosting: LaunchHosting,
}

/// What a task asks for.
///
/// # Errors
/// With a sentence, if it isn't valid or asks for what workers don't do.
pub(super) fn read_task(task: &TaskInfo) -> Result<RequestedExecutor, String> {
    let host = task.executor.as_ref().filter(|executor| is_host(executor));
    for (is_asked, what) in [
        (task.executor.is_some() && host.is_none(), "a custom executor"),
        (task.container.is_some(), "a container"),
        (task.health_check.is_some(), "a health check"),
        (task.check.is_some(), "a check"),
        (task.max_completion_time.is_some(), "max_completion_time"),
        (!task.limits.is_empty(), "limits"),
    ] {
        if is_asked {
            return Err(format!("the task asks for {what}, which workers don't offer"));
        }
    }
    let mut resources = read_resources(&task.resources)?;
    let (command, hosting) = match host {
        None => {
            let command = task.command.as_ref().ok_or("the task has no command")?;
            (read_command(command)?, LaunchHosting::Alone)
        }
        Some(host) if host.executor_id.value == task.task_id.value => {
            if task.command.is_some() || host.container.is_some() {
                return Err("the host has a command beside its executor's, or a container".into());
            }
            if !host.resources.is_empty() {
                let own = read_resources(&host.resources)?;
                if resources.shares_ports_with(&own) {
                    return Err("the task asks for a port twice".to_owned());
                }
                resources = resources.plus(&own);
            }
            let command = host.command.as_ref().ok_or("the host has no command")?;
            (read_command(command)?, LaunchHosting::Host)
        }
        Some(host) => {
            let data = task.data.as_deref().filter(|_| task.command.is_none());
            let data = data.ok_or("a task in a host must have its command as data")?;
            let command = CommandInfo::decode(data)
                .map_err(|error| format!("the task's data is no command: {error}"))?;
            (read_command(&command)?, LaunchHosting::In(host.executor_id.value.clone()))
        }
    };
    command.check().map_err(|why| why.to_string())?;
    Ok(RequestedExecutor { resources, command, hosting })
}

/// Whether an executor is a host of tasks, and not another program with a protocol of its own.
fn is_host(executor: &ExecutorInfo) -> bool {
    let labels = executor.labels.iter().flat_map(|it| &it.labels);
    executor.r#type == Some(ExecutorType::Custom.into())
        && labels.into_iter().any(|label| label.key == HOST_LABEL)
}

/// A kill policy's grace period, in milliseconds.
pub(super) fn grace(policy: Option<&KillPolicy>) -> u64 {
    let asked = policy.and_then(|policy| policy.grace_period.as_ref());
    let asked = asked.and_then(|period| u64::try_from(period.nanoseconds).ok());
    let grace = asked.map_or(GRACE_DEFAULT, Duration::from_nanos);
    // A number of nanoseconds in 64 bits is at most 585 years; the protocol allows one.
    u64::try_from(grace.as_millis()).unwrap_or(u64::MAX).min(365 * 24 * 3600 * 1000)
}

fn read_resources(resources: &[Resource]) -> Result<WorkerResources, String> {
    let mut sum = WorkerResources::default();
    for resource in resources {
        let name = &resource.name;
        if resource.revocable.is_some() || resource.disk.is_some() || resource.shared.is_some() {
            return Err(format!("the task asks for {name} of a kind that isn't offered"));
        }
        let mut one = WorkerResources::default();
        let is_ranges = resource.r#type == i32::from(ValueType::Ranges);
        match (name.as_str(), &resource.scalar, &resource.ranges) {
            ("ports", _, Some(ranges)) if is_ranges => {
                let range = ranges.range.iter().map(|it| PortRange::new(it.begin, it.end));
                one.ports = PortSet::of(range);
            }
            (_, Some(scalar), _) if !is_ranges => {
                let amount = Scalar::from_f64(scalar.value)
                    .map_err(|why| format!("the task's amount of {name} is {why}"))?;
                match name.as_str() {
                    "cpus" => one.cpus = amount,
                    "mem" => one.mem = amount,
                    "disk" => one.disk = amount,
                    "gpus" => one.gpus = amount,
                    _ => return Err(format!("the task asks for {name}, which isn't offered")),
                }
            }
            _ => return Err(format!("the task asks for {name}, which isn't offered")),
        }
        if sum.shares_ports_with(&one) {
            return Err("the task asks for a port twice".to_owned());
        }
        sum = sum.plus(&one);
    }
    match sum.is_empty() {
        true => Err("the task asks for no resources".to_owned()),
        false => Ok(sum),
    }
}

fn read_command(command: &CommandInfo) -> Result<ExecutorCommand, String> {
    if !command.uris.is_empty() {
        return Err("the task asks for files (uris), which workers don't fetch".to_owned());
    }
    let value = command.value.clone().ok_or("the task's command has no value")?;
    let argv = if command.shell.unwrap_or(true) {
        vec!["/bin/sh".to_owned(), "-c".to_owned(), value]
    } else {
        // The first argument is the program's own name, which the value replaces.
        let rest = command.arguments.iter().skip(1).cloned();
        std::iter::once(value).chain(rest).collect()
    };
    let variables = command.environment.iter().flat_map(|it| &it.variables);
    let mut environment = Vec::new();
    for variable in variables {
        if variable.r#type == Some(i32::from(VariableType::Secret)) {
            return Err(format!(
                "the task's variable {} is a secret, which workers don't resolve",
                variable.name
            ));
        }
        environment.push((variable.name.clone(), variable.value.clone().unwrap_or_default()));
    }
    Ok(ExecutorCommand { argv, environment, user: command.user.clone() })
}
