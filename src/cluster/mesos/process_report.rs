//! What a Mesos task status says of the task's process: the process id in the container's status, and how it ended, in
//! the message of Mesos' own executors.

use crate::mesos_v1::messages::TaskStatus;
use crate::mesos_v1::signals::SIGNALS;
use crate::status::{ProcessExit, ProcessReport};

/// What a status says of the process. `None` if it says nothing.
pub(super) fn process_report(status: &TaskStatus) -> Option<ProcessReport> {
    let pid = status.container_status.as_ref().and_then(|container| container.executor_pid);
    let exit = status.message.as_deref().and_then(exit_of);
    let report = ProcessReport { pid, exit, ..ProcessReport::default() };
    (report != ProcessReport::default()).then_some(report)
}

/// How the process ended, as in `Command exited with status 1` and `Command terminated with signal Killed`.
fn exit_of(message: &str) -> Option<ProcessExit> {
    let how = ["Command ", "Container "].iter().find_map(|head| message.strip_prefix(head))?;
    if let Some(code) = how.strip_prefix("exited with status ") {
        return number(code).map(ProcessExit::Code);
    }
    let signal = how.strip_prefix("terminated with signal ")?;
    let signal = signal.strip_suffix(" (core dumped)").unwrap_or(signal);
    let known = SIGNALS.iter().find(|(name, _)| *name == signal);
    known.map(|(_, number)| ProcessExit::Signal(*number))
}

/// The number of an exit status, from 0 to 255.
fn number(text: &str) -> Option<i32> {
    text.parse::<u8>().ok().map(i32::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos_v1::messages::ContainerStatus;

    /// Goal: messages of Mesos' executors say how a task ended, and others say nothing. Method: recorded forms, and
    /// near misses.
    #[test]
    fn messages_say_how_a_task_ended() {
        for (message, exit) in [
            ("Command exited with status 0", Some(ProcessExit::Code(0))),
            ("Command exited with status 143", Some(ProcessExit::Code(143))),
            ("Command terminated with signal Killed", Some(ProcessExit::Signal(9))),
            ("Command terminated with signal Aborted (core dumped)", Some(ProcessExit::Signal(6))),
            ("Container exited with status 1", Some(ProcessExit::Code(1))),
            ("Command exited with status 256", None),
            ("Command exited with status +1 or so", None),
            ("Command terminated with signal Boredom", None),
            ("Memory limit exceeded: Requested: 32MB Maximum Used: 32MB", None),
            ("", None),
        ] {
            let status = TaskStatus { message: Some(message.to_owned()), ..TaskStatus::default() };
            assert_eq!(process_report(&status).and_then(|it| it.exit), exit, "{message}");
        }
    }

    /// Goal: the process id is passed on, and a status that says nothing has no report. Method: with a container's
    /// status, and without.
    #[test]
    fn the_process_id_is_passed_on() {
        let container = ContainerStatus { executor_pid: Some(71), ..ContainerStatus::default() };
        let status = TaskStatus { container_status: Some(container), ..TaskStatus::default() };
        assert_eq!(process_report(&status), Some(ProcessReport::default().with_pid(71)));
        assert_eq!(process_report(&TaskStatus::default()), None);
    }
}
