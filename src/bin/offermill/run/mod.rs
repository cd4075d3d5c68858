//! `offermill run`: one run, from the arguments to the exit code. An event loop between the engine, signals, clients
//! and the renderer.
//!
//! Control commands are executed in `commands.rs`, dynamic allocation is in `dynamic_allocation.rs`. Only this folder
//! knows [`SessionMessage`]: other rooms send through closures.

mod commands;
mod dynamic_allocation;
mod finish;
mod gather;
mod inbox;
mod listeners;
mod named;
mod parent;
mod print_config;
mod queues;
mod registration;
mod reports;
mod shuffle;
mod start_engine;
mod status;
mod task_demand;
mod tasks;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use offermill::engine::{Clock, Engine, EngineOptions, Notice, Observer, Shutdown};
use offermill::resources::MilliCpus;
use offermill::spark::shuffle::ShuffleEvent;
use offermill::{DrainReport, Drained, Kernel, Timestamp};

use crate::control::ControlSockets;
use crate::control::request::ControlRequest;
use crate::exit::ExitStatus;
use crate::http::{HttpServer, ReportRequest};
use crate::model::call_failures::CallFailures;
use crate::model::cluster_use::ClusterUse;
use crate::model::end_reason::{EndReason, ParentEnd};
use crate::model::event::{RunEvent, TimedEvent};
use crate::model::executor::ExecutorState;
use crate::model::failures::FailureWindow;
use crate::model::history::RunHistory;
use crate::model::rate::Rate;
use crate::model::state::RunState;
use crate::model::target::AgentCounts;
use crate::model::waiting::StallWatch;
use crate::output::renderer::{NullRenderer, Renderer};
use crate::output::sentence::end_sentence;
use crate::output::view::RunView;
use crate::output::{choose_renderer, drain_remarks, remark, start_writer, write_remarks_aside};
use crate::run::dynamic_allocation::DynamicAllocation;
use crate::run::gather::{Gathered, Prepared, gather};
use crate::run::inbox::{Receiver, Sender, channel};
use crate::run::listeners::{Listeners, listen, shuffle_sender, signal_sender};
use crate::run::reports::StopProgress;
use crate::run::shuffle::ShuffleServices;
use crate::run::start_engine::start_engine;
use crate::run::tasks::TaskRun;
use crate::settings::RunSettings;
use crate::settings::flags::RunArguments;
use crate::signals;
use crate::text::format::count;
use crate::text::stdout::Writer;

/// How often the state is refreshed if no message comes.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time without progress that the end waits for the reader of standard output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for the reader of standard error.
const REMARKS_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for both if the run ends at once, or its parent has ended.
const AT_ONCE_TIMEOUT: Duration = Duration::from_millis(150);

/// A message to the session.
enum SessionMessage {
    /// A notice of the engine.
    Notice(Timestamp, Notice),
    /// An event of the shuffle service at a port.
    Shuffle { event: ShuffleEvent, port: u16 },
    /// A signal, by its name.
    Signal(&'static str),
    /// A client's request.
    Request(ControlRequest),
    /// A request of the web page or of metrics.
    Report(ReportRequest),
    /// The program that steers the run has ended.
    ParentEnded(ParentEnd),
    /// The engine has shut down.
    Drained(EngineEnd),
}

/// How the engine ended.
struct EngineEnd {
    /// The state at the shutdown timeout of each executor that lived when the kernel was closed.
    executors: Vec<Drained>,
    /// Whether the cluster manager has stopped. If not, its stop hangs.
    is_stopped: bool,
}

/// Forwards the engine's notices to the session.
struct NoticeForwarder(Sender<SessionMessage>);

impl Observer for NoticeForwarder {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        self.0.send_notice(SessionMessage::Notice(at, notice));
    }
}

/// `offermill run`.
pub(crate) fn run(arguments: &RunArguments) -> ExitStatus {
    if arguments.print_config {
        return print_config::print_config(arguments);
    }
    if arguments.steered {
        if let Err(why) = parent::check_input() {
            remark(&why);
            return ExitStatus::BadInput;
        }
        parent::remember();
        parent::leave_session();
    }
    let no_thread = |error: io::Error| {
        remark(&format!("the thread that writes the output can't be started: {error}"));
        ExitStatus::Cluster
    };
    if let Err(error) = write_remarks_aside() {
        return no_thread(error);
    }
    let exit = start_writer().map_or_else(no_thread, |output| prepare(arguments, output));
    let timeout = if parent::has_ended() { AT_ONCE_TIMEOUT } else { REMARKS_TIMEOUT };
    drain_remarks(timeout, || signals::second_has_arrived() || parent::is_overdue());
    exit
}

fn prepare(arguments: &RunArguments, output: Arc<Writer>) -> ExitStatus {
    let Gathered { remarks, prepared } = gather(arguments);
    remarks.iter().for_each(|text| remark(text));
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(problems) => {
            problems.iter().for_each(|problem| remark(problem));
            return ExitStatus::BadInput;
        }
    };
    let (sender, inbox) = channel();
    if let Err(error) = signals::listen(signal_sender(&sender)) {
        remark(&format!("signals can't be handled: {error}"));
        return ExitStatus::Cluster;
    }
    let listeners = match listen(arguments, &mut prepared.settings, &sender) {
        Ok(listeners) => listeners,
        Err(problem) => {
            remark(&problem);
            return ExitStatus::BadInput;
        }
    };
    start(prepared, listeners, output, (sender, &inbox))
}

fn start(
    prepared: Prepared,
    Listeners { sockets, http }: Listeners,
    output: Arc<Writer>,
    (sender, inbox): (Sender<SessionMessage>, &Receiver<SessionMessage>),
) -> ExitStatus {
    let Prepared { settings, manager, journal } = prepared;
    let mut renderer = choose_renderer(settings.output, Arc::clone(&output));
    // If standard output is gone, the event loop detects that soon.
    let _gone = renderer.show_start(&settings);
    let kernel = Kernel::new(settings.config.clone(), settings.ids.clone());
    let mut options = EngineOptions::default();
    options.kill_grace = settings.shutdown_timeout;
    options.finished_count_down = settings.until_finished.is_some();
    // The engine abandons the cluster's stop after three quarters of the slack.
    options.shutdown_slack = settings.target.stop_timeout * 4 / 3;
    let forwarder = Box::new(NoticeForwarder(sender.clone()));
    let started = start_engine(&settings, kernel.clone(), manager, journal, options, forwarder);
    let engine = match started {
        Ok(engine) => engine,
        Err(error) => {
            renderer.restore_terminal();
            let _gone = output.drain(OUTPUT_TIMEOUT, || is_abandoned(inbox));
            remark(&error.to_string());
            return if error.is_setting() { ExitStatus::BadInput } else { ExitStatus::Cluster };
        }
    };
    let mut run_state = RunState::new(
        engine.clock(),
        settings.target.on_exit,
        settings.exclusion.map_or(0, |rule| rule.failures),
        settings.config.unreachable().release_after,
    );
    run_state.local_address =
        settings.target.local_names.as_ref().map(|names| names.address.clone());
    run_state.first_host = settings.executors.tasks().map(|queue| queue.list().first_host());
    let session = Session {
        run_state,
        clock: engine.clock(),
        shuffle: ShuffleServices::new(settings.shuffle.clone(), shuffle_sender(&sender)),
        engine: Some(engine),
        failures: FailureWindow::new(settings.failures_window),
        sockets: Some(sockets),
        history: http.as_ref().map(|_| RunHistory::default()),
        _http: http,
        stopping: None,
        allocation: settings.allocation.clone().map(DynamicAllocation::new),
        tasks: TaskRun::of(&settings),
        registered: None,
        hosts: Vec::new(),
        stall_watch: StallWatch::new(settings.target.no_offers_hint.clone()),
        settings,
        kernel,
        renderer,
        output: Some(output),
        rate: Rate::default(),
        call_failures: CallFailures::new(),
        cluster_use: ClusterUse::default(),
        end_reason: None,
        late_refusal: None,
        sender,
    };
    session.run(inbox)
}

/// Whether a signal came, or nobody waits any more. Commands come too late: their clients learn that the run has ended.
fn is_abandoned(inbox: &Receiver<SessionMessage>) -> bool {
    let mut messages = std::iter::from_fn(|| inbox.try_recv());
    parent::is_overdue() || messages.any(|message| matches!(message, SessionMessage::Signal(_)))
}

struct Session {
    settings: RunSettings,
    kernel: Kernel,
    clock: Clock,
    /// `None` once its shutdown has begun.
    engine: Option<Engine>,
    /// `None` once the run ends at once.
    sockets: Option<ControlSockets>,
    /// Stops when it is dropped.
    _http: Option<HttpServer>,
    /// The samples for the page's plots; `None` without a page.
    history: Option<RunHistory>,
    /// How the stop began, once it has.
    stopping: Option<StopProgress>,
    /// `None` without dynamic allocation.
    allocation: Option<DynamicAllocation>,
    /// `None` without tasks.
    tasks: Option<TaskRun>,
    /// The cores that have registered with the framework's driver, if a client reported them.
    registered: Option<MilliCpus>,
    /// The hosts on which executors should start if possible, as clients reported last.
    hosts: Vec<String>,
    run_state: RunState,
    renderer: Box<dyn Renderer>,
    /// The writer of standard output; `None` once that is closed.
    output: Option<Arc<Writer>>,
    rate: Rate,
    stall_watch: StallWatch,
    call_failures: CallFailures,
    cluster_use: ClusterUse,
    failures: FailureWindow,
    shuffle: ShuffleServices,
    /// Why the run ends, once it stops.
    end_reason: Option<EndReason>,
    /// Why the cluster refused the framework, if it did so after the run had begun to stop.
    late_refusal: Option<String>,
    sender: Sender<SessionMessage>,
}

impl Session {
    fn run(mut self, inbox: &Receiver<SessionMessage>) -> ExitStatus {
        let mut refresh_at = Instant::now();
        loop {
            let wait = refresh_at.saturating_duration_since(Instant::now());
            match inbox.recv_timeout(wait) {
                Some(SessionMessage::Notice(at, notice)) => self.apply_notice(at, notice),
                Some(SessionMessage::Shuffle { event, port }) => {
                    self.publish(self.clock.now(), RunEvent::Shuffle { event, port });
                }
                Some(SessionMessage::Signal(_)) if self.end_reason.is_some() => {
                    return self.end_at_once(ExitStatus::AtOnce);
                }
                Some(SessionMessage::Signal(name)) => self.stop(EndReason::Signal(name)),
                Some(SessionMessage::ParentEnded(end)) => self.stop(EndReason::ParentEnded(end)),
                Some(SessionMessage::Request(request)) => self.handle_request(request),
                Some(SessionMessage::Report(request)) => self.report(request),
                Some(SessionMessage::Drained(end)) => return self.finish(&end, inbox),
                None => {}
            }
            if refresh_at <= Instant::now() {
                refresh_at = Instant::now() + REFRESH_INTERVAL;
                self.refresh();
            }
            if self.must_end_at_once() {
                return self.finish_without_engine(inbox);
            }
        }
    }

    fn apply_notice(&mut self, at: Timestamp, notice: Notice) {
        let agents = self.run_state.agents.len();
        let Some(event) = self.run_state.apply(at, notice) else { return };
        if self.run_state.agents.len() > agents {
            self.cluster_use.poll_new_agent(&self.kernel, self.clock.now());
        }
        self.shuffle.apply(&event);
        let end_reason = match &event {
            RunEvent::Refused { why } if self.end_reason.is_some() => {
                self.late_refusal.get_or_insert_with(|| why.clone());
                None
            }
            RunEvent::Refused { why } => Some(EndReason::Refused(why.clone())),
            RunEvent::Broken { why } => Some(EndReason::Broken(why.clone())),
            _ => None,
        };
        self.update_allocator(at, &event);
        let is_of_task = self.follow_tasks(at, &event);
        let is_exclusion = matches!(event, RunEvent::Excluded(_));
        let shown = match event {
            event if is_of_task || self.is_irrelevant(&event) => None,
            RunEvent::CallFailed { why, .. } => self.call_failures.record(at, why),
            event => Some(event),
        };
        if let Some(event) = shown {
            self.publish(at, event);
        }
        if let Some(reason) = end_reason {
            self.stop(reason);
        }
        self.stop_if_over(at, is_exclusion);
    }

    /// Stops the run if enough executors have finished, too many have failed, or no agent is left.
    fn stop_if_over(&mut self, at: Timestamp, is_exclusion: bool) {
        let finished = self.run_state.finished();
        let unstarted = self.tasks.as_ref().map_or(0, TaskRun::failed_unstarted);
        let failed = self.run_state.count(ExecutorState::Failed).saturating_sub(unstarted);
        let failed = self.failures.count(at, failed);
        if let Some(goal) = self.settings.until_finished
            && finished >= u64::from(goal)
        {
            self.stop(EndReason::AllFinished(goal));
        }
        if failed >= self.settings.failures_max {
            self.stop(EndReason::TooManyFailures(failed));
        }
        // On clusters that gain agents, another may come.
        let Some(AgentCounts { usable: agents, .. }) = self.settings.target.agents else { return };
        let none_left = self.run_state.excluded(at) >= agents;
        if none_left && is_exclusion && self.end_reason.is_none() {
            self.publish(at, RunEvent::AllExcluded { agents });
        }
        if none_left && self.settings.until_finished.is_some() && self.run_state.alive() == 0 {
            self.stop(EndReason::NoAgentLeft);
        }
    }

    /// Whether an event is about offers and irrelevant because the run stops.
    fn is_irrelevant(&self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Demand(_) | RunEvent::Overflow { .. } | RunEvent::Unreadable { .. } => {
                self.end_reason.is_some()
            }
            RunEvent::CallFailed { .. } => self.end_reason.is_some() && self.run_state.alive() == 0,
            _ => false,
        }
    }

    /// Shows an event.
    fn publish(&mut self, at: Timestamp, event: RunEvent) {
        if let Err(error) = self.renderer.show_event(&TimedEvent { at, event }) {
            self.drop_renderer(&error);
        }
    }

    /// Does what depends on the time, and refreshes the output.
    fn refresh(&mut self) {
        match self.find_parent_end() {
            Some(ParentEnd::OutputClosed) => self.drop_renderer(&io::ErrorKind::BrokenPipe.into()),
            Some(end) => self.stop(EndReason::ParentEnded(end)),
            None => {}
        }
        let counts = self.kernel.offer_counts();
        self.rate.record(Instant::now(), counts.offers);
        let now = self.clock.now();
        if let Some(event) = self.call_failures.poll(now) {
            self.publish(now, event);
        }
        let tasks_know_why = self.tasks.as_ref().is_some_and(TaskRun::know_why);
        if self.end_reason.is_none() && !tasks_know_why {
            let progress = self.run_state.progress(counts.executors);
            if let Some(stall) = self.stall_watch.poll(&self.kernel, progress, now) {
                self.publish(now, RunEvent::Stalled(stall));
            }
        }
        self.stop_if_unregistered(now);
        self.follow_load(now);
        self.refresh_tasks(now);
        self.cluster_use.poll(&self.kernel, now);
        self.record_history(now);
        let view = RunView {
            settings: &self.settings,
            run_state: &self.run_state,
            counts,
            offers_per_second: self.rate.per_second(),
            now,
            limit: self.kernel.executor_limit(),
            stall: self.stall_watch.stall.as_ref().filter(|_| self.end_reason.is_none()),
            tasks: self.tasks.as_ref().map(TaskRun::counts),
            is_stopping: self.end_reason.is_some(),
        };
        let written = self.output.as_ref().map_or(Ok(true), |output| output.is_idle());
        if let Err(error) = written.and_then(|_| self.renderer.refresh(&view)) {
            self.drop_renderer(&error);
        }
    }

    /// Handles a failure of standard output. A closed pipe stops the run; another failure, such as a full disk,
    /// doesn't.
    fn drop_renderer(&mut self, error: &io::Error) {
        self.renderer.restore_terminal();
        self.renderer = Box::new(NullRenderer);
        self.output = None;
        if error.kind() != io::ErrorKind::BrokenPipe {
            remark(&format!("standard output can't be written: {error}; the run continues"));
            return;
        }
        if self.settings.is_steered {
            parent::record_end();
            return self.stop(EndReason::ParentEnded(ParentEnd::OutputClosed));
        }
        let goal = u64::from(self.settings.until_finished.unwrap_or(0));
        let unfinished = goal.saturating_sub(self.run_state.finished());
        if unfinished > 0 && self.end_reason.is_none() {
            let executors = count(goal, "executor");
            remark(&format!(
                "standard output was closed, {unfinished} of {executors} had not finished"
            ));
        }
        self.stop(EndReason::OutputClosed { unfinished });
    }

    /// Begins to stop the run, unless that has begun.
    fn stop(&mut self, reason: EndReason) {
        let Some(engine) = self.engine.take() else { return };
        // A cluster that refuses this framework sends no updates, and a broken engine processes none.
        let timeout = match reason {
            EndReason::Refused(_) | EndReason::Broken(_) => Duration::ZERO,
            EndReason::ParentEnded(_) => {
                self.settings.shutdown_timeout.min(parent::EXECUTORS_TIMEOUT)
            }
            _ => self.settings.shutdown_timeout,
        };
        let living = self.run_state.living();
        let why = match reason {
            // An event with the whole reason was shown just before.
            EndReason::Refused(_) => "the cluster is not available".to_owned(),
            EndReason::Broken(_) => "internal error".to_owned(),
            _ => end_sentence(&reason),
        };
        let stopped = self.tasks.as_ref().map(TaskRun::stop).unwrap_or_default();
        let by_signal = matches!(reason, EndReason::Signal(_));
        self.end_reason = Some(reason);
        let at = self.clock.now();
        let executors = living.all();
        self.stopping = Some(StopProgress { why: why.clone(), at, timeout, executors });
        self.publish(at, RunEvent::Stopping { why, timeout, living, by_signal });
        self.publish_tasks(at, stopped);
        let sender = self.sender.clone();
        let shut_down = move || {
            let Shutdown { executors, unfinished, .. } = engine.shutdown(timeout);
            if !unfinished.is_empty() {
                remark(&format!("threads that hang and were abandoned: {}", unfinished.join(", ")));
            }
            let is_stopped = unfinished.iter().all(|thread| thread != "offermill-stop");
            // The session is there: it ends only after this message.
            let _sent = sender.send(SessionMessage::Drained(EngineEnd { executors, is_stopped }));
        };
        let thread = std::thread::Builder::new().name("offermill-shutdown".into());
        if thread.spawn(shut_down).is_err() {
            // The engine was dropped together with the closure, which shut it down.
            let DrainReport { executors, .. } = self.kernel.drain(Duration::ZERO);
            let end = EngineEnd { executors, is_stopped: true };
            let _sent = self.sender.send(SessionMessage::Drained(end));
        }
    }
}
