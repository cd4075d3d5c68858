//! Compares what was decided with what was expected.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use offermill::TaskState;

use super::differences::{calls_differ, state_differs};
use crate::scenario::reader::{Fault, Lines, Next, Scenario};
use crate::scenario::{Answer, Call, Closing, Event, Init, What, line};

/// How a comparison went.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// How many answers were compared.
    pub(super) answers: u64,
    /// One sentence each.
    pub(super) differences: Vec<String>,
    /// Why the rest wasn't compared, if so.
    pub(super) cut: Option<Cut>,
    /// How many of the answers are the same to the byte, and at the same place.
    pub(super) alike: u64,
}

/// Why a comparison ended before its scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Spark threw an exception, or was told of a task that didn't live there.
    Nonsense,
    /// There are no more answers: whoever wrote them was killed.
    NoMore,
}

/// Answers of one event.
#[derive(Debug, Default)]
struct Answered<'a> {
    calls: Vec<&'a Call>,
    closing: Option<&'a Closing>,
    lines: Vec<String>,
}

/// Reads expected answers.
pub(super) fn read(path: &Path) -> Result<Vec<Answer>, Fault> {
    const EXPECTED: &str =
        "an answer: an object with \"init\", or with \"ev\" and \"call\" or \"after\"";
    let mut lines = Lines::open(path)?;
    let mut answers = Vec::new();
    loop {
        match lines.next::<Answer>(EXPECTED)? {
            Next::Value(answer @ Answer::Init(_)) if answers.is_empty() => answers.push(answer),
            Next::Value(answer) if !answers.is_empty() && !matches!(answer, Answer::Init(_)) => {
                answers.push(answer)
            }
            Next::Value(_) => {
                return Err(lines
                    .fault("\"init\" is out of place, expected it in the first line".to_owned()));
            }
            Next::Cut | Next::End if answers.is_empty() => {
                return Err(lines.fault(format!("no whole line, expected {EXPECTED}")));
            }
            Next::Cut | Next::End => return Ok(answers),
        }
    }
}

/// Compares answers to a scenario, as they come. Our own are compared exactly; Spark's in what they mean, and only as
/// far as it knew what it did.
pub(super) struct Comparer<'a> {
    scenario: &'a Scenario,
    init: Option<&'a Init>,
    expected: BTreeMap<u64, Answered<'a>>,
    exactly: bool,
    truth: Truth<'a>,
    comparison: Comparison,
    /// What was decided since the last event's end.
    decided: Vec<Answer>,
    is_over: bool,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        expected: &'a [Answer],
        exactly: bool,
    ) -> Comparer<'a> {
        let (init, expected) = split(expected);
        Comparer {
            scenario,
            init,
            expected,
            exactly,
            truth: Truth::default(),
            comparison: Comparison { answers: 1, ..Comparison::default() },
            decided: Vec::new(),
            is_over: false,
        }
    }

    /// Takes the next answer.
    pub(super) fn take(&mut self, answer: Answer) {
        if self.is_over {
            return;
        }
        match answer {
            Answer::Init(got) => {
                let Some(want) = self.init else { return };
                self.comparison.start(want, &got, self.exactly);
                self.is_over = want.init != got.init || want.init == "error";
            }
            Answer::Closing(closing) => {
                let number = closing.ev;
                self.decided.push(Answer::Closing(closing));
                let decided = std::mem::take(&mut self.decided);
                self.event(number, &decided);
            }
            call @ Answer::Call(_) => self.decided.push(call),
        }
    }

    fn event(&mut self, number: u64, decided: &[Answer]) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(event) = self.scenario.events.get(at) else { return };
        let nothing = Answered::default();
        let (_, gotten) = split(decided);
        let got = gotten.get(&number).unwrap_or(&nothing);
        let last = self.expected.keys().next_back().copied();
        let want = self.expected.get(&number).unwrap_or(&nothing);
        let Some(closing) = want.closing else {
            let is_short = self.exactly && last.is_none_or(|last| last <= number);
            if is_short && !self.ended_in_order() {
                // Whoever wrote them was killed, and wrote the events first.
                self.cut(Cut::NoMore);
            } else {
                let what = "no answer was expected, and one was given";
                self.comparison.differences.push(format!("{}: {what}", place(number)));
            }
            return;
        };
        if !self.exactly && self.truth.is_doubtful(event, closing) {
            self.cut(Cut::Nonsense);
            return;
        }
        self.truth.take_in(event, want);
        self.comparison.event(number, want, got, self.exactly, self.truth.at_limit);
        self.truth.remember(closing);
    }

    fn ended_in_order(&self) -> bool {
        let mut events = self.scenario.events.iter().rev();
        self.scenario.cut.is_none() && events.any(|event| event.what == What::Stop)
    }

    fn cut(&mut self, why: Cut) {
        self.comparison.cut = Some(why);
        self.is_over = true;
    }

    /// How it went.
    pub(super) fn end(mut self) -> Comparison {
        let last = self.expected.keys().next_back().copied();
        if let (Some(last), None, false) = (last, self.scenario.cut, self.is_over)
            && last >= self.scenario.events.len() as u64
        {
            let what =
                format!("answers are expected up to event {last}, but the scenario has no such");
            self.comparison.differences.push(what);
        }
        self.comparison
    }
}

/// Where an event stands: the head is line 1.
fn place(number: u64) -> String {
    format!("event {number} (line {})", number + 2)
}

impl Comparison {
    /// How the start went.
    fn start(&mut self, want: &Init, got: &Init, exactly: bool) {
        let mut differ = |what: &str, want: String, got: String| {
            self.differences.push(format!("start: {what}: expected {want}, decided {got}"));
        };
        if want.init != got.init {
            let told = |init: &Init| match &init.error {
                Some(error) => format!("{} ({error})", init.init),
                None => init.init.clone(),
            };
            return differ("how it went", told(want), told(got));
        }
        if exactly && want != got {
            differ("settings", line(want).trim_end().to_owned(), line(got).trim_end().to_owned());
            return;
        }
        let text = |number: &Option<serde_json::Number>| {
            number.as_ref().map_or_else(|| "none".into(), ToString::to_string)
        };
        let memory = |init: &Init| {
            init.executor_memory.map_or_else(|| "none".to_owned(), |memory| format!("{memory} MiB"))
        };
        for (what, want, got) in [
            ("memory of an executor", memory(want), memory(got)),
            ("core cap", text(&want.max_cores), text(&got.max_cores)),
            (
                "refusal for the constraint, in s",
                text(&want.reject_unmet_constraints_s),
                text(&got.reject_unmet_constraints_s),
            ),
            (
                "refusal for the core cap, in s",
                text(&want.reject_max_cores_s),
                text(&got.reject_max_cores_s),
            ),
        ] {
            if want != got {
                differ(what, want, got);
            }
        }
        self.alike += u64::from(line(want) == line(got));
    }

    fn event(
        &mut self,
        number: u64,
        want: &Answered<'_>,
        got: &Answered<'_>,
        exactly: bool,
        at_limit: bool,
    ) {
        self.answers += want.lines.len() as u64;
        self.alike +=
            want.lines.iter().zip(&got.lines).filter(|(want, got)| want == got).count() as u64;
        let mut found = calls_differ(&want.calls, &got.calls, at_limit);
        match (want.closing, got.closing) {
            (Some(want), Some(got)) => found.extend(state_differs(want, got)),
            _ => found.push("no answer was given".to_owned()),
        }
        if found.is_empty() && exactly {
            let pairs = want.lines.iter().zip(&got.lines).find(|(want, got)| want != got);
            if let Some((want, got)) = pairs {
                found.push(format!("expected {}, decided {}", want.trim_end(), got.trim_end()));
            }
        }
        let place = place(number);
        self.differences.extend(found.into_iter().map(|what| format!("{place}: {what}")));
    }
}

/// What was true according to the expected answers.
#[derive(Debug, Default)]
struct Truth<'a> {
    live: HashMap<&'a str, &'a str>,
    at_limit: bool,
}

impl<'a> Truth<'a> {
    /// Whether the answers from here on prove nothing.
    fn is_doubtful(&self, event: &Event, closing: &Closing) -> bool {
        if closing.error.is_some() {
            return true;
        }
        let What::Status(status) = &event.what else { return false };
        self.live.get(&*status.task).copied() != status.agent.as_deref()
    }

    fn take_in(&mut self, event: &'a Event, want: &Answered<'a>) {
        if let What::Status(status) = &event.what
            && is_end(status.state.0)
        {
            self.live.remove(&*status.task);
        }
        for call in &want.calls {
            let Call::Accept(accept) = call else { continue };
            self.live.extend(accept.tasks.iter().map(|task| (&*task.id, &*task.agent)));
        }
    }

    /// Whether the next batch comes at the executor limit.
    fn remember(&mut self, closing: &Closing) {
        let after = &closing.after;
        self.at_limit = after.limit.is_some_and(|limit| after.executors >= limit);
    }
}

/// Whether Spark takes a state for a task's end.
fn is_end(state: TaskState) -> bool {
    use TaskState::{Killing, Running, Staging, Starting};
    !matches!(state, Staging | Starting | Running | Killing)
}

/// The start and the answers by event.
fn split(answers: &[Answer]) -> (Option<&Init>, BTreeMap<u64, Answered<'_>>) {
    let (mut init, mut events) = (None, BTreeMap::<u64, Answered<'_>>::new());
    for answer in answers {
        let ev = match answer {
            Answer::Init(it) => {
                init = Some(it);
                continue;
            }
            Answer::Call(call) => {
                let answered = events.entry(call.ev).or_default();
                answered.calls.push(&call.call);
                call.ev
            }
            Answer::Closing(closing) => {
                events.entry(closing.ev).or_default().closing = Some(closing);
                closing.ev
            }
        };
        if let Some(answered) = events.get_mut(&ev) {
            answered.lines.push(line(answer));
        }
    }
    (init, events)
}
