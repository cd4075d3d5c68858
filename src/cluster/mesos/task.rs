//! Converts executors into Mesos tasks, and builds the ACCEPT call that launches them.

mod setup;
#[cfg(test)]
mod tests;

use super::calls;
use super::config::MesosConfig;
use crate::engine::cluster_manager::{Accept, Amount, Launch, TakenResource};
use crate::error::Error;
use crate::foreign_text::id_problem;
use crate::launch::{Command, CommandForm, ContainerKind, EnvironmentVariable, Setup};
use crate::mesos_v1::messages::{
    AllocationInfo, CommandInfo, Environment, Label, Labels, Launch as LaunchTasks, Operation,
    OperationType, Range, Ranges, ReservationInfo, ReservationType, Resource, RevocableInfo,
    Scalar, TaskInfo, ValueType, Variable, call,
};
use crate::offer::{
    DEFAULT_ROLE, ReservationKind, Reservations, ReservedBy, Resource as Offered, Revocability,
};

/// Checks that the executors of `accept` may be sent.
///
/// # Errors
/// If an id contains white space or control characters, or if secrets would go over the network unencrypted although
/// that isn't allowed.
pub(super) fn check(config: &MesosConfig, accept: &Accept<'_>) -> Result<(), Error> {
    let offers = accept.offers.iter().map(|offer| ("an offer's id", offer.id));
    for (what, id) in offers.chain([("the agent's id", accept.agent_id)]) {
        if let Some(why) = id_problem(what, id) {
            return Err(Error::cluster("ACCEPT", &why));
        }
    }
    if config.may_send_secrets() {
        return Ok(());
    }
    let setups = accept.executors.iter().filter_map(|launch| launch.command.setup.as_deref());
    if setups.into_iter().any(Setup::has_secret_values) {
        let allowed = "sent over https://, as they would be sent in clear (or allow that)";
        return Err(Error::setting("secrets for executors", "set", allowed));
    }
    Ok(())
}

/// Builds the call that launches the executors of `accept` in one operation. `framework` is the framework's name.
///
/// # Errors
/// If an executor can't be expressed as a task: its command is empty or can't be passed through a shell, or its
/// container has ports but no network that supports them. Then no part of the call may be sent.
pub(super) fn accept(framework: &str, accept: &Accept<'_>) -> Result<call::Accept, Error> {
    // All offers of an accept have the same role.
    let role = accept.offers.first().map_or(DEFAULT_ROLE, |offer| offer.role);
    let task = |launch: &Launch<'_>| task(framework, accept.agent_id, role, launch);
    let task_infos = accept.executors.iter().map(task).collect::<Result<Vec<_>, Error>>()?;
    let launch = Operation {
        r#type: Some(OperationType::Launch.into()),
        launch: Some(LaunchTasks { task_infos }),
        ..Operation::default()
    };
    Ok(call::Accept {
        offer_ids: accept.offers.iter().map(|offer| offer.id.into()).collect(),
        operations: vec![launch],
        filters: Some(calls::filters(accept.refuse)),
    })
}

fn task(
    framework: &str,
    agent_id: &str,
    role: &str,
    launch: &Launch<'_>,
) -> Result<TaskInfo, Error> {
    let Launch { executor, pieces, command, .. } = launch;
    command.hosting.refuse("Mesos")?;
    let mut task = TaskInfo {
        name: format!("{framework} {executor}"),
        task_id: (*executor).into(),
        agent_id: agent_id.into(),
        resources: pieces.iter().map(|piece| resource(piece, role)).collect(),
        command: Some(command_info(command)?),
        ..TaskInfo::default()
    };
    if let Some(setup) = &command.setup {
        setup::add(setup, &mut task)?;
    }
    Ok(task)
}

/// Converts a taken resource, with the reservations and the revocability of the offered one.
fn resource(TakenResource { resource, amount }: &TakenResource<'_>, role: &str) -> Resource {
    let allocation_info = Some(AllocationInfo { role: Some(role.to_owned()) });
    let mut piece =
        Resource { name: resource.name.to_owned(), allocation_info, ..Resource::default() };
    match *amount {
        Amount::Scalar(quantity) => {
            piece.r#type = ValueType::Scalar.into();
            piece.scalar = Some(Scalar { value: quantity.as_f64() });
        }
        Amount::Port(port) => {
            let range = Range { begin: port.into(), end: port.into() };
            piece.r#type = ValueType::Ranges.into();
            piece.ranges = Some(Ranges { range: vec![range] });
        }
    }
    reserve(&mut piece, resource);
    piece.revocable =
        (resource.revocability == Revocability::Revocable).then_some(RevocableInfo {});
    piece
}

/// Adds the reservations of the offered resource, in the form in which they were offered.
fn reserve(piece: &mut Resource, resource: &Offered<'_>) {
    match resource.reservations {
        Reservations::PreRefinement { role, dynamic } => {
            piece.role = (role != DEFAULT_ROLE).then(|| role.to_owned());
            piece.reservation = dynamic.map(reserved_by);
        }
        Reservations::PostRefinement(stack) => {
            let one = |reservation: &crate::offer::Reservation<'_>| {
                let kind = match reservation.kind {
                    ReservationKind::Static => ReservationType::Static,
                    ReservationKind::Dynamic => ReservationType::Dynamic,
                };
                ReservationInfo {
                    r#type: Some(kind.into()),
                    role: Some(reservation.role.to_owned()),
                    ..reserved_by(&reservation.by)
                }
            };
            piece.reservations = stack.iter().map(one).collect();
        }
    }
}

fn reserved_by(by: &ReservedBy<'_>) -> ReservationInfo {
    let label = |(key, value): &crate::offer::Label<'_>| Label {
        key: (*key).to_owned(),
        value: value.map(str::to_owned),
    };
    let labels: Vec<Label> = by.labels.iter().map(label).collect();
    ReservationInfo {
        principal: by.principal.map(str::to_owned),
        labels: (!labels.is_empty()).then_some(Labels { labels }),
        ..ReservationInfo::default()
    }
}

/// Builds the command: a path and the arguments of `execvp`, of which the first is the program's name. Docker appends
/// the arguments to the path, so the path is left out for Docker; an image's own entry point gets all arguments.
fn command_info(command: &Command) -> Result<CommandInfo, Error> {
    let Some(program) = command.argv.first() else {
        return Err(Error::setting("command", "", "a program and its arguments"));
    };
    let container = command.setup.as_ref().and_then(|setup| setup.container.as_ref());
    let docker = container.is_some_and(|it| matches!(it.kind, ContainerKind::Docker { .. }));
    let (shell, value, arguments) = match command.form {
        CommandForm::Shell => (true, Some(command.shell_line()?), Vec::new()),
        CommandForm::Argv | CommandForm::EntryPoint if docker => {
            (false, None, command.argv.clone())
        }
        CommandForm::EntryPoint => {
            let allowed = "one of a Docker container: others have no entry point";
            return Err(Error::setting("command for an entry point", "", allowed));
        }
        CommandForm::Argv => (false, Some(program.clone()), command.argv.clone()),
    };
    let variable = |(name, value): &EnvironmentVariable| Variable {
        name: name.to_string(),
        value: Some(value.clone()),
        ..Variable::default()
    };
    let variables: Vec<Variable> = command.environment.iter().map(variable).collect();
    Ok(CommandInfo {
        shell: Some(shell),
        value,
        arguments,
        environment: (!variables.is_empty()).then_some(Environment { variables }),
        ..CommandInfo::default()
    })
}
