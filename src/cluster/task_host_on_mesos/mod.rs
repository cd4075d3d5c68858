//! Hosts of tasks on Mesos: the same program, tasks and sweeper as on local agents, behind the v1 executor API.
//!
//! ```text
//!  agent ── LAUNCH, KILL, SHUTDOWN ──► session ── requests ──► task loop ──► processes
//!    ▲  ◄── UPDATE, until ACKNOWLEDGED ──┤     ◄── reports ──┘
//!    └───── SUBSCRIBE, with what is not acknowledged: at first, and after a disconnection
//! ```
//!
//! The agent says in environment variables where it is and how long it may be away (`environment`). One thread speaks
//! with it (`session`, with `agent_calls` and `updates`), another one runs the tasks (`TaskLoop`). A task with the id
//! of the executor is the *anchor*: it stands for the host, has no process, and ends with it.
//!
//! | what happens | tasks | host |
//! |---|---|---|
//! | the agent restarts, and the framework checkpoints | go on; what becomes of them is reported afterwards | subscribes again |
//! | it is away for longer than its recovery timeout, or the framework doesn't checkpoint | killed | ends |
//! | KILL of the anchor, SHUTDOWN | asked to end, killed after the grace | ends with the last one, once the agent has acknowledged its updates |
//! | the agent sends nonsense or ERROR, or refuses a call for good | killed | ends; the sentence in its standard error says what it was |
//! | the host is killed | killed by the sweeper, and by the agent | the agent reports its tasks as failed with their executor |

mod agent_calls;
mod environment;
mod hosted_tasks;
mod session;
mod updates;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::task_host::{HostMessage, HostReport, ReportOutput, RunningTasks, Sweeper, TaskLoop};
use crate::private_files::PrivateFolder;
use agent_calls::Agent;
use environment::ExecutorEnvironment;
use session::AgentSession;

/// The folder of the tasks' folders, in the sandbox.
const TASKS_FOLDER: &str = "tasks";

/// Whether an agent of Mesos has started this process.
pub(super) fn is_executor() -> bool {
    std::env::var_os(environment::EXECUTOR_ID).is_some()
}

/// Runs tasks for the agent that has started this process.
///
/// # Errors
/// With a sentence: if the agent's environment makes no sense, or the host ends otherwise than it was asked to.
pub(super) fn run_on_mesos() -> Result<(), String> {
    let environment = ExecutorEnvironment::read(|name| std::env::var(name).ok())?;
    let sandbox = std::env::current_dir().and_then(|path| PrivateFolder::open_existing(&path));
    let sandbox = sandbox.map_err(|error| format!("the sandbox: {error}"))?;
    let in_sandbox = |error: io::Error| format!("the sandbox: {error}");
    // What was fetched into the sandbox, which tasks find in their own folders.
    let fetched = sandbox.names().map_err(in_sandbox)?.into_iter();
    let fetched = fetched.filter(|name| !["stdout", "stderr", TASKS_FOLDER].contains(&&**name));
    let fetched = fetched.map(|name| (name.clone(), sandbox.path().join(name))).collect();
    let folder = sandbox.subfolder(TASKS_FOLDER).map_err(in_sandbox)?;
    let mark = environment.mark();
    let held = File::options().write(true).open("/dev/null").map(OwnedFd::from);
    let sweeper = held.and_then(|held| Sweeper::start(&mark, held, &[]));
    let sweeper = sweeper.map_err(|error| format!("its sweeper: {error}"))?;
    let tasks = RunningTasks::new(folder, sweeper, mark).with_shared(fetched);
    let (sender, inbox) = channel();
    let (output, reports) = unbounded_channel();
    let agent = Arc::new(Agent::new(environment)?);
    let to_tasks = sender.clone();
    let speak = move || speak(agent, reports, to_tasks);
    let speaker = Builder::new().name("task-host-agent".into()).spawn(speak);
    let speaker = speaker.map_err(|error| format!("a thread: {error}"))?;
    TaskLoop::new(tasks, SessionOutput(output)).run(sender, &inbox)?;
    // The tasks have ended; this waits until the agent knows it.
    speaker.join().unwrap_or_else(|_| Err("the thread that speaks with the agent panicked".into()))
}

struct SessionOutput(UnboundedSender<HostReport>);

impl ReportOutput for SessionOutput {
    fn report(&mut self, report: HostReport) -> io::Result<()> {
        // A session that has ended says why, with the next message.
        let _ended = self.0.send(report);
        Ok(())
    }
}

/// Speaks with the agent to the end. Tasks are killed if that comes otherwise than the agent has asked for.
fn speak(
    agent: Arc<Agent>,
    reports: tokio::sync::mpsc::UnboundedReceiver<HostReport>,
    tasks: Sender<HostMessage>,
) -> Result<(), String> {
    let mut end = SpeakerEnd { tasks, ended: Err("the thread of the agent panicked".to_owned()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    end.ended = match runtime {
        Ok(runtime) => runtime.block_on(AgentSession::new(agent, reports, end.tasks.clone()).run()),
        Err(error) => Err(format!("no event loop: {error}")),
    };
    end.ended.clone()
}

/// Tells the task loop of an end that the agent hasn't asked for, also if that is a panic: without anybody who speaks
/// with the agent, the host would run for ever.
struct SpeakerEnd {
    tasks: Sender<HostMessage>,
    ended: Result<(), String>,
}

impl Drop for SpeakerEnd {
    fn drop(&mut self) {
        if let Err(why) = &self.ended {
            let _ended = self.tasks.send(HostMessage::Closed(why.clone()));
        }
    }
}
