//! One run, from checked settings to the exit code: an event loop between the engine, signals and
//! the face.
//!
//! What clients tell it to do is in `session/steering.rs`, how it follows a load in `session/allocating.rs`.

mod allocating;
pub(crate) mod inbox;
pub(crate) mod shuffle;
mod status;
mod steering;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use offermill::engine::cluster_manager::ClusterManager;
use offermill::engine::{Clock, Engine, EngineOptions, Notice, Observer, Shutdown};
use offermill::resources::MilliCpus;
use offermill::spark::shuffle::News;
use offermill::{DrainReport, Fate, Kernel, Timestamp};

use crate::control::{self, Doors, Request};
use crate::exit::Exit;
use crate::model::call_failures::CallFailures;
use crate::model::end_reason::Ending;
use crate::model::event::{Happening, RunEvent};
use crate::model::executor::State;
use crate::model::failures::Failures;
use crate::model::rate::Rate;
use crate::model::state::RunState;
use crate::model::waiting::StallWatch;
use crate::output::summary::Summary;
use crate::output::{
    Faceless, Renderer, View, choose, drain_remarks, output, remark, write_remarks_aside,
};
use crate::record::{self, JournalFiles};
use crate::run::inbox::{Receiver, Sender, channel};
use crate::run::shuffle::Shuffle;
use crate::settings::flags::RunArguments;
use crate::settings::{Gathered, Settings, gather};
use crate::signals;
use crate::target::Agents;
use crate::text::format::count;
use crate::text::stdout::Writer;
use allocating::Allocating;

/// How often the face is given a look at things when nothing happens.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The end waits for a reader that has taken nothing of the output for so long; for a slow one it waits.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// And so long for one of remarks.
const REMARKS_READ_WITHIN: Duration = Duration::from_secs(2);
/// Where the end doesn't wait, what can be written in no time is.
const AT_ONCE_WITHIN: Duration = Duration::from_millis(150);

/// RunEvent the session is told.
pub(crate) enum Message {
    /// By the engine.
    Notice(Timestamp, Notice),
    /// By the registrar, of the shuffle services at this port.
    Shuffle { news: News, port: u16 },
    /// A signal came.
    Signal(&'static str),
    /// By a client.
    Command(Request),
    /// The engine has shut down.
    Drained(DrainReport),
}

/// Passes the engine's notices on.
struct Watcher(Sender<Message>);

impl Observer for Watcher {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        self.0.notice(Message::Notice(at, notice));
    }
}

/// `offermill run`.
pub(crate) fn run(arguments: &RunArguments) -> Exit {
    let no_thread = |error: io::Error| {
        remark(&format!("output needs a thread more: {error}"));
        Exit::Cluster
    };
    if let Err(error) = write_remarks_aside() {
        return no_thread(error);
    }
    let exit = output().map_or_else(no_thread, |output| prepare(arguments, output));
    drain_remarks(REMARKS_READ_WITHIN);
    exit
}

fn prepare(arguments: &RunArguments, output: Arc<Writer>) -> Exit {
    let Gathered { mut draft, settings } = gather(arguments);
    // Last of all, so that no file is left if a setting is wrong.
    let checked = settings.and_then(|(settings, manager)| {
        let journal = record::open(arguments.journal.as_deref(), &mut draft, &settings)?;
        Some((settings, manager, journal))
    });
    draft.remarks.iter().for_each(|text| remark(text));
    let Some((settings, manager, journal)) = checked else {
        draft.problems.iter().for_each(|problem| remark(problem));
        return Exit::BadInput;
    };
    let (sender, inbox) = channel();
    let session = sender.clone();
    let send = move |signal| drop(session.send(Message::Signal(signal)));
    if let Err(error) = signals::listen(send) {
        remark(&format!("signals can't be handled: {error}"));
        return Exit::Cluster;
    }
    let doors = match control::open(&arguments.control, &sender) {
        Ok(doors) => doors,
        Err(problem) => {
            remark(&problem);
            return Exit::BadInput;
        }
    };
    start(settings, manager, journal, doors, output, (sender, &inbox))
}

fn start(
    settings: Settings,
    manager: Arc<dyn ClusterManager>,
    journal: Option<JournalFiles>,
    doors: Doors,
    output: Arc<Writer>,
    (sender, inbox): (Sender<Message>, &Receiver<Message>),
) -> Exit {
    let mut face = choose(settings.output, Arc::clone(&output));
    // A face that can't be shown finds out again soon, in the loop.
    let _gone = face.begin(&settings, SystemTime::now());
    let kernel = Kernel::new(settings.config.clone(), settings.ids.clone());
    let launcher = Arc::new(settings.executors.clone());
    let mut options = EngineOptions::default();
    options.kill_grace = settings.shutdown_timeout;
    options.finished_count_down = settings.until_finished.is_some();
    // The stop is left alone when three quarters of the slack are over.
    options.shutdown_slack = settings.site.stop_within * 4 / 3;
    let watcher = Box::new(Watcher(sender.clone()));
    let started = match journal {
        Some(journal) => {
            let (kernel, journal) = (kernel.clone(), Box::new(journal));
            Engine::start_with_journal(kernel, manager, launcher, options, watcher, journal)
        }
        None => Engine::start(kernel.clone(), manager, launcher, options, watcher),
    };
    let engine = match started {
        Ok(engine) => engine,
        Err(error) => {
            face.leave();
            let _gone = output.drain(READ_WITHIN, || is_asked_to_end(inbox));
            remark(&error.to_string());
            return if error.is_setting() { Exit::BadInput } else { Exit::Cluster };
        }
    };
    let failures = settings.exclusion.map_or(0, |rule| rule.failures);
    let waiting = StallWatch::new(settings.site.silence);
    let session = Session {
        roster: RunState::new(engine.clock(), settings.site.leavings, failures),
        clock: engine.clock(),
        shuffle: Shuffle::new(settings.shuffle.clone(), sender.clone()),
        engine: Some(engine),
        failures: Failures::new(settings.failures_window),
        doors: Some(doors),
        allocating: settings.allocation.clone().map(Allocating::new),
        registered: None,
        hosts: Vec::new(),
        settings,
        kernel,
        face,
        output: Some(output),
        rate: Rate::default(),
        waiting,
        storm: CallFailures::new(),
        ending: None,
        sender,
    };
    session.run(inbox)
}

/// Whether a signal came. Commands are too late: their clients are told that the run has ended.
fn is_asked_to_end(inbox: &Receiver<Message>) -> bool {
    std::iter::from_fn(|| inbox.try_recv()).any(|message| matches!(message, Message::Signal(_)))
}

struct Session {
    settings: Settings,
    kernel: Kernel,
    clock: Clock,
    /// Until it is told to shut down.
    engine: Option<Engine>,
    /// Until the end.
    doors: Option<Doors>,
    /// With dynamic allocation.
    allocating: Option<Allocating>,
    /// How many cores have registered with the framework's driver, if a client tells.
    registered: Option<MilliCpus>,
    /// Where executors had better start, as clients told last.
    hosts: Vec<String>,
    roster: RunState,
    face: Box<dyn Renderer>,
    /// Where the face shows it; until that is lost.
    output: Option<Arc<Writer>>,
    rate: Rate,
    waiting: StallWatch,
    storm: CallFailures,
    failures: Failures,
    shuffle: Shuffle,
    ending: Option<Ending>,
    sender: Sender<Message>,
}

impl Session {
    fn run(mut self, inbox: &Receiver<Message>) -> Exit {
        let mut look_at = Instant::now();
        loop {
            let wait = look_at.saturating_duration_since(Instant::now());
            match inbox.recv_timeout(wait) {
                Some(Message::Notice(at, notice)) => self.notice(at, notice),
                Some(Message::Shuffle { news, port }) => {
                    self.tell(self.clock.now(), RunEvent::Shuffle { news, port });
                }
                Some(Message::Signal(_)) if self.ending.is_some() => return self.end_at_once(),
                Some(Message::Signal(name)) => self.stop(Ending::Asked(name)),
                Some(Message::Command(request)) => self.command(request),
                Some(Message::Drained(report)) => return self.end(&report, inbox),
                None => {}
            }
            if look_at <= Instant::now() {
                look_at = Instant::now() + LOOK_EVERY;
                self.look();
            }
        }
    }

    fn notice(&mut self, at: Timestamp, notice: Notice) {
        let Some(what) = self.roster.take(at, notice) else { return };
        self.shuffle.heard(&what);
        let hopeless = match &what {
            RunEvent::Refused { why } => Some(Ending::Refused(why.clone())),
            RunEvent::Broken { why } => Some(Ending::Broken(why.clone())),
            _ => None,
        };
        self.note_executor(at, &what);
        let is_exclusion = matches!(what, RunEvent::Excluded(_));
        let what = (!self.is_noise(&what)).then_some(what);
        let what = what.and_then(|what| match what {
            RunEvent::CallFailed { why, .. } => self.storm.failed(at, why),
            what => Some(what),
        });
        if let Some(what) = what {
            self.tell(at, what);
        }
        if let Some(ending) = hopeless {
            self.stop(ending);
        }
        let finished = self.roster.finished();
        let failed = self.failures.count(at, self.roster.count(State::Failed));
        if let Some(goal) = self.settings.until_finished
            && finished >= u64::from(goal)
        {
            self.stop(Ending::AllFinished(goal));
        }
        if failed >= self.settings.failures_max {
            self.stop(Ending::TooManyFailures(failed));
        }
        // Where agents come and go, another may come.
        let Some(Agents { usable: agents, .. }) = self.settings.site.agents else { return };
        let none_left = self.roster.excluded(at) >= agents;
        if none_left && is_exclusion && self.ending.is_none() {
            self.tell(at, RunEvent::AllExcluded { agents });
        }
        if none_left && self.settings.until_finished.is_some() && self.roster.alive() == 0 {
            self.stop(Ending::NoAgentLeft);
        }
    }

    /// Whether it is about offers that nobody wants any more.
    fn is_noise(&self, what: &RunEvent) -> bool {
        match what {
            RunEvent::Demand(_) | RunEvent::Overflow { .. } => self.ending.is_some(),
            RunEvent::CallFailed { .. } => self.ending.is_some() && self.roster.alive() == 0,
            _ => false,
        }
    }

    fn tell(&mut self, at: Timestamp, what: RunEvent) {
        if let Err(error) = self.face.happened(&Happening { at, what }) {
            self.lose_face(&error);
        }
    }

    fn look(&mut self) {
        let counts = self.kernel.offer_counts();
        self.rate.note(Instant::now(), counts.offers);
        let now = self.clock.now();
        if let Some(what) = self.storm.look(now) {
            self.tell(now, what);
        }
        if self.ending.is_none()
            && let Some(waits) =
                self.waiting.look(&self.kernel, counts.executors, self.roster.alive(), now)
        {
            self.tell(now, RunEvent::StallWatch(waits));
        }
        self.follow_load(now);
        let view = View {
            settings: &self.settings,
            roster: &self.roster,
            counts,
            offers_per_second: self.rate.per_second(),
            now,
            limit: self.kernel.executor_limit(),
            waiting: self.waiting.why.as_ref().filter(|_| self.ending.is_none()),
            stopping: self.ending.is_some(),
        };
        let written = self.output.as_ref().map_or(Ok(true), |output| output.is_idle());
        if let Err(error) = written.and_then(|_| self.face.pass(&view)) {
            self.lose_face(&error);
        }
    }

    /// Standard output is gone. If it was closed, whoever read it has seen enough; a full disk, say,
    /// is no reason to stop.
    fn lose_face(&mut self, error: &io::Error) {
        self.face.leave();
        self.face = Box::new(Faceless);
        self.output = None;
        if error.kind() != io::ErrorKind::BrokenPipe {
            remark(&format!("standard output can't be written: {error}; the run goes on"));
            return;
        }
        let goal = u64::from(self.settings.until_finished.unwrap_or(0));
        let unfinished = goal.saturating_sub(self.roster.finished());
        if unfinished > 0 && self.ending.is_none() {
            let executors = count(goal, "executor");
            remark(&format!(
                "standard output was closed, {unfinished} of {executors} had not finished"
            ));
        }
        self.stop(Ending::OutputClosed { unfinished });
    }

    /// Begins to stop, unless that has begun.
    fn stop(&mut self, ending: Ending) {
        let Some(engine) = self.engine.take() else { return };
        // Nothing more is heard of a cluster that refuses this framework, or by an engine that is broken.
        let timeout = match ending {
            Ending::Refused(_) | Ending::Broken(_) => Duration::ZERO,
            _ => self.settings.shutdown_timeout,
        };
        let executors = usize::try_from(self.roster.alive()).unwrap_or(usize::MAX);
        let why = match ending {
            // The reason was told in full just now.
            Ending::Refused(_) => "the cluster can't be had".to_owned(),
            Ending::Broken(_) => "internal error".to_owned(),
            _ => ending.sentence(),
        };
        let by_signal = matches!(ending, Ending::Asked(_));
        self.ending = Some(ending);
        self.tell(self.clock.now(), RunEvent::Stopping { why, timeout, executors, by_signal });
        let sender = self.sender.clone();
        let shut_down = move || {
            let Shutdown { drained, executors, unfinished, .. } = engine.shutdown(timeout);
            if !unfinished.is_empty() {
                remark(&format!(
                    "threads that hang and were left alone: {}",
                    unfinished.join(", ")
                ));
            }
            let report = DrainReport { drained, executors };
            // The session waits for this.
            let _waiting = sender.send(Message::Drained(report));
        };
        let thread = std::thread::Builder::new().name("offermill-shutdown".into());
        if thread.spawn(shut_down).is_err() {
            // The engine was dropped with the closure, which ended it.
            let report = self.kernel.drain(Duration::ZERO);
            let _waiting = self.sender.send(Message::Drained(report));
        }
    }

    fn end(mut self, report: &DrainReport, inbox: &Receiver<Message>) -> Exit {
        let is_left = |fate: Fate| matches!(fate, Fate::Alive | Fate::Unreachable);
        let left: Vec<String> = report
            .executors
            .iter()
            .filter(|drained| is_left(drained.fate))
            .map(|drained| self.kernel.executor_name(drained.executor.id).to_string())
            .collect();
        if let Some(what) = self.storm.rest() {
            self.tell(self.clock.now(), what);
        }
        let ending = self.ending.take().unwrap_or(Ending::Asked("nobody"));
        let remains = self.settings.site.remains.why();
        let leavings = self.settings.site.leavings;
        let is_kept = remains.is_some() && leavings.are_kept();
        let exit = ending.exit(left.is_empty() && !is_kept);
        let mut sentence = ending.sentence();
        let is_refused = matches!(ending, Ending::Refused(_) | Ending::Broken(_));
        let is_heard = self.roster.is_connected && !is_refused && remains.is_none();
        let late = leavings.late(is_heard);
        if !left.is_empty() {
            let executors = count(left.len() as u64, "executor");
            sentence.push_str(&format!("; {executors} {}", late.sentence));
        }
        if let Some(why) = remains {
            sentence.push_str(&format!("; {}", leavings.framework(why)));
        }
        let (now, shuffle) = (self.clock.now(), self.shuffle.json());
        self.shuffle.stop();
        let summary = Summary {
            name: &self.settings.name,
            ending: sentence,
            exit,
            ran: now.since(Timestamp::ORIGIN),
            roster: &self.roster,
            left: left.iter().map(String::as_str).collect(),
            left_state: late.state,
            counts: self.kernel.offer_counts(),
            waiting: self.waiting.why.as_ref(),
            declined: self.kernel.explain(now).declined,
            sandboxes: &self.settings.site.sandboxes,
            shuffle,
        };
        let shown = self.face.end(&summary);
        // If it was lost before, that was told.
        let Some(output) = &self.output else { return exit };
        let read = shown.and_then(|()| output.drain(READ_WITHIN, || is_asked_to_end(inbox)));
        match read.map_err(|error| (error.kind(), error)) {
            // Whoever closed the pipe has seen enough.
            Ok(()) | Err((io::ErrorKind::BrokenPipe, _)) => {}
            Err((io::ErrorKind::TimedOut, _)) => {
                remark("standard output wasn't read to its end, which is left out");
            }
            Err((_, error)) => remark(&format!("standard output can't be written: {error}")),
        }
        exit
    }

    /// Leaves; the wardens end what still runs.
    fn end_at_once(mut self) -> Exit {
        self.face.leave();
        // RunEvent follows leaves no time for it.
        drop(self.doors.take());
        remark(&self.settings.site.leavings.at_once());
        let _unread = self.output.map(|output| output.drain(AT_ONCE_WITHIN, || false));
        drain_remarks(AT_ONCE_WITHIN);
        std::process::exit(i32::from(Exit::AtOnce.code()))
    }
}
