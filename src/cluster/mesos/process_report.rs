//! What a Mesos task status says of the task's process: the process id in the container's status, and how it ended, in
//! the message of Mesos' own executors. Of a task in a host, process and folder are in labels; and so it is that a
//! worker of a standalone master had nothing left for an executor.

use crate::mesos_v1::host_labels::{EXHAUSTED_LABEL, FOLDER_LABEL, PID_LABEL};
use crate::mesos_v1::messages::TaskStatus;
use crate::mesos_v1::signals::SIGNALS;
use crate::status::{ProcessExit, ProcessReport};

/// What a status says of the process. `None` if it says nothing.
pub(super) fn process_report(status: &TaskStatus) -> Option<ProcessReport> {
    let exit = status.message.as_deref().and_then(exit_of);
    let report = match hosting_executor(status) {
        Some(_) => ProcessReport {
            pid: label(status, PID_LABEL).and_then(|pid| pid.parse().ok()),
            sandbox: label(status, FOLDER_LABEL).map(str::to_owned),
            exit,
            ..ProcessReport::default()
        },
        None => {
            let container = status.container_status.as_ref();
            let pid = container.and_then(|container| container.executor_pid);
            let is_agent_exhausted = label(status, EXHAUSTED_LABEL).is_some();
            ProcessReport { pid, exit, is_agent_exhausted, ..ProcessReport::default() }
        }
    };
    (report != ProcessReport::default()).then_some(report)
}

/// The executor of a task that runs in a host: agents give other executors of tasks the ids of their tasks, and an
/// anchor has the id of its host.
pub(super) fn hosting_executor(status: &TaskStatus) -> Option<&str> {
    let executor = status.executor_id.as_ref().map(|executor| executor.value.as_str());
    executor.filter(|executor| !executor.is_empty() && *executor != status.task_id.value)
}

fn label<'s>(status: &'s TaskStatus, key: &str) -> Option<&'s str> {
    let labels = status.labels.as_ref()?;
    labels.labels.iter().find(|label| label.key == key)?.value.as_deref()
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
    use crate::mesos_v1::messages::{ContainerStatus, Label, Labels};

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

    /// Goal: that an agent had nothing left for an executor is passed on. Method: a status with the label.
    #[test]
    fn exhausted_agents_are_passed_on() {
        let value = Some("true".to_owned());
        let labels = vec![Label { key: EXHAUSTED_LABEL.to_owned(), value }];
        let labels = Some(Labels { labels });
        let status = TaskStatus { labels, ..TaskStatus::default() };
        let expected = ProcessReport::default().with_agent_exhausted();
        assert_eq!(process_report(&status), Some(expected));
    }

    /// Goal: the process and the folder of a task in a host are passed on, and not the process of the host. Method: a
    /// status with labels and a container.
    #[test]
    fn labels_tell_of_hosted_tasks() {
        let label = |(key, value): (&str, &str)| Label {
            key: key.to_owned(),
            value: Some(value.to_owned()),
        };
        let labels = [(PID_LABEL, "72"), (FOLDER_LABEL, "/sandbox/tasks/t")].map(label).into();
        let container = ContainerStatus { executor_pid: Some(71), ..ContainerStatus::default() };
        let status = TaskStatus {
            executor_id: Some("h".into()),
            container_status: Some(container),
            labels: Some(Labels { labels }),
            ..TaskStatus::default()
        };
        let report = process_report(&status).unwrap();
        assert_eq!((report.pid, report.sandbox.as_deref()), (Some(72), Some("/sandbox/tasks/t")));
    }
}
