//! Compares the answers of a replay with the expected answers, event by event.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use offermill::TaskState;

use super::differences::{calls_differ, order_differs, state_differs};
use super::fine_grained::is_fine_grained;
use crate::scenario::reader::{LineError, LineReader, NextLine, ScenarioFile};
use crate::scenario::{
    AnswerLine, CallKind, ClosingLine, EventKind, InitLine, ScenarioEvent, line,
};
use crate::text::format::count;

/// The result of comparing the answers to one scenario.
#[derive(Debug, Default)]
pub(super) struct ComparisonResult {
    /// The number of compared answers.
    pub(super) answers: u64,
    /// A sentence for each difference.
    pub(super) differences: Vec<String>,
    /// Why the rest of the scenario wasn't compared, if it wasn't.
    pub(super) ended_early: Option<EndedEarly>,
    /// The number of answers that are identical, byte by byte and at the same place.
    pub(super) identical: u64,
}

/// Why a comparison ended before its scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedEarly {
    /// Spark threw an exception, or received an update for a task that wasn't on that agent.
    SparkDefect,
    /// There are no more answers: the process that wrote them was killed.
    AnswersEnd,
    /// The scenario ends in the middle of a line, and there are answers to later events.
    ScenarioCut,
}

/// The answers to one event.
#[derive(Debug, Default)]
struct EventAnswers<'a> {
    calls: Vec<&'a CallKind>,
    closing: Option<&'a ClosingLine>,
    lines: Vec<String>,
}

impl EventAnswers<'_> {
    /// Describes the first of `count` lines that is another one than in `got`.
    fn first_other_line(&self, got: &EventAnswers<'_>, count: usize) -> Option<String> {
        let line = |lines: &[String], at: usize| {
            lines
                .get(at)
                .map_or_else(|| "no further line".to_owned(), |it| it.trim_end().to_owned())
        };
        let at = (0..count).find(|at| self.lines.get(*at) != got.lines.get(*at))?;
        Some(format!("expected {}, decided {}", line(&self.lines, at), line(&got.lines, at)))
    }

    /// Describes that no closing line is expected. `rest` is the number of events from here on, if no answers to later
    /// ones are expected.
    fn no_closing_line(&self, rest: Option<u64>) -> String {
        let rest = rest.map(|rest| count(rest, "further event"));
        match (self.lines.len(), rest) {
            (0, Some(rest)) => {
                format!("no answer was expected from here on; the scenario has {rest}")
            }
            (0, None) => "no answer was expected, but one was given".to_owned(),
            (calls, _) => {
                let calls = count(calls as u64, "call");
                format!("{calls} without a closing line, with \"after\", were expected")
            }
        }
    }
}

/// Reads a file of expected answers. Returns them, and the number of the last line if it is incomplete and was
/// therefore ignored.
pub(super) fn read(path: &Path) -> Result<(Vec<AnswerLine>, Option<u64>), LineError> {
    const EXPECTED: &str =
        "an answer: an object with \"init\", or with \"ev\" and \"call\" or \"after\"";
    let mut lines = LineReader::open(path)?;
    let mut answers = Vec::new();
    loop {
        match lines.next::<AnswerLine>(EXPECTED)? {
            NextLine::Value(answer @ AnswerLine::Init(_)) if answers.is_empty() => {
                answers.push(answer)
            }
            NextLine::Value(answer)
                if !answers.is_empty() && !matches!(answer, AnswerLine::Init(_)) =>
            {
                answers.push(answer)
            }
            NextLine::Value(_) => {
                return Err(
                    lines.error("\"init\" is not in the first line, expected it there".to_owned())
                );
            }
            NextLine::Incomplete | NextLine::End if answers.is_empty() => {
                return Err(lines.error(format!("no complete line, expected {EXPECTED}")));
            }
            NextLine::Incomplete => return Ok((answers, Some(lines.number()))),
            NextLine::End => return Ok((answers, None)),
        }
    }
}

/// How answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Byte by byte, for Offermill's own answers.
    Exact,
    /// By their meaning and in their order, up to the first defect, for Spark's answers.
    Ordered,
    /// By their meaning, up to the first defect, for Spark's answers.
    AnyOrder,
}

/// Compares answers to a scenario as they arrive.
pub(super) struct Comparer<'a> {
    scenario: &'a ScenarioFile,
    /// Whether Spark's backend is the fine-grained one, which finds tasks by their ids.
    is_fine_grained: bool,
    init: Option<&'a InitLine>,
    expected: BTreeMap<u64, EventAnswers<'a>>,
    strictness: Strictness,
    state: ExpectedState<'a>,
    result: ComparisonResult,
    /// The answers since the last event's end.
    decided: Vec<AnswerLine>,
    is_over: bool,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(
        scenario: &'a ScenarioFile,
        expected: &'a [AnswerLine],
        strictness: Strictness,
    ) -> Comparer<'a> {
        let (init, expected) = by_event(expected);
        Comparer {
            scenario,
            is_fine_grained: is_fine_grained(&scenario.head),
            init,
            expected,
            strictness,
            state: ExpectedState::default(),
            result: ComparisonResult { answers: 1, ..ComparisonResult::default() },
            decided: Vec::new(),
            is_over: false,
        }
    }

    /// Compares the next answer.
    pub(super) fn compare(&mut self, answer: AnswerLine) {
        if self.is_over {
            return;
        }
        match answer {
            AnswerLine::Init(got) => {
                let Some(want) = self.init else { return };
                self.result.compare_start(want, &got, self.is_exact());
                self.is_over = want.init != got.init || want.init == "error";
            }
            AnswerLine::Closing(closing) => {
                let number = closing.ev;
                self.decided.push(AnswerLine::Closing(closing));
                let decided = std::mem::take(&mut self.decided);
                self.compare_event(number, &decided);
            }
            call @ AnswerLine::Call(_) => self.decided.push(call),
        }
    }

    fn is_exact(&self) -> bool {
        self.strictness == Strictness::Exact
    }

    fn compare_event(&mut self, number: u64, decided: &[AnswerLine]) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(event) = self.scenario.events.get(at) else { return };
        let empty = EventAnswers::default();
        let (_, gotten) = by_event(decided);
        let got = gotten.get(&number).unwrap_or(&empty);
        let last = self.expected.keys().next_back().copied();
        let want = self.expected.get(&number).unwrap_or(&empty);
        let Some(closing) = want.closing else {
            let are_over = last.is_none_or(|last| last <= number);
            let difference = if are_over && self.is_exact() && !self.ended_in_order() {
                // The process was killed after it had written the events, before it wrote all answers.
                let difference = want.first_other_line(got, want.lines.len());
                self.end_early(EndedEarly::AnswersEnd);
                difference
            } else {
                self.is_over = are_over;
                let rest = (self.scenario.events.len() as u64).saturating_sub(number);
                Some(want.no_closing_line(are_over.then_some(rest)))
            };
            let place = place(number);
            self.result.differences.extend(difference.map(|what| format!("{place}: {what}")));
            return;
        };
        if !self.is_exact() && self.shows_defect(event, closing) {
            self.end_early(EndedEarly::SparkDefect);
            return;
        }
        self.state.apply(event, want);
        self.result.compare_event(number, want, got, self.strictness, self.state.at_limit);
        self.state.update_limit(closing);
    }

    /// Whether Spark's answers from this event on are consequences of a defect.
    fn shows_defect(&self, event: &ScenarioEvent, closing: &ClosingLine) -> bool {
        let is_misattributed = !self.is_fine_grained && self.state.is_misattributed(event);
        closing.error.is_some() || is_misattributed
    }

    /// Whether the scenario contains the orderly end of its run.
    fn ended_in_order(&self) -> bool {
        let mut events = self.scenario.events.iter().rev();
        self.scenario.incomplete_line.is_none() && events.any(|event| event.kind == EventKind::Stop)
    }

    fn end_early(&mut self, why: EndedEarly) {
        self.result.ended_early = Some(why);
        self.is_over = true;
    }

    /// Returns the result.
    pub(super) fn finish(mut self) -> ComparisonResult {
        let last = self.expected.keys().next_back().copied();
        if let (Some(last), false) = (last, self.is_over)
            && last >= self.scenario.events.len() as u64
        {
            let why = match self.scenario.incomplete_line {
                Some(line) => {
                    self.result.ended_early = Some(EndedEarly::ScenarioCut);
                    format!("the scenario ends in the middle of line {line}")
                }
                None => "the scenario has no such event".to_owned(),
            };
            let what = format!("answers are expected up to event {last}, but {why}");
            self.result.differences.push(what);
        }
        self.result
    }
}

/// Names an event by its number and its line. The head is line 1.
fn place(number: u64) -> String {
    format!("event {number} (line {})", number + 2)
}

impl ComparisonResult {
    /// Compares the first lines.
    fn compare_start(&mut self, want: &InitLine, got: &InitLine, exactly: bool) {
        let mut differ = |what: &str, want: String, got: String| {
            self.differences.push(format!("start: {what}: expected {want}, decided {got}"));
        };
        if want.init != got.init {
            let sentence = |init: &InitLine| match &init.error {
                Some(error) => format!("{} ({error})", init.init),
                None => init.init.clone(),
            };
            return differ("result", sentence(want), sentence(got));
        }
        if exactly && want != got {
            differ("settings", line(want).trim_end().to_owned(), line(got).trim_end().to_owned());
            return;
        }
        let text = |number: &Option<serde_json::Number>| {
            number.as_ref().map_or_else(|| "none".into(), ToString::to_string)
        };
        let memory = |init: &InitLine| {
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
            (
                "cores of an executor itself",
                format!("{:?}", want.mesos_executor_cores),
                format!("{:?}", got.mesos_executor_cores),
            ),
            ("cores of a task", format!("{:?}", want.task_cpus), format!("{:?}", got.task_cpus)),
        ] {
            if want != got {
                differ(what, want, got);
            }
        }
        self.identical += u64::from(line(want) == line(got));
    }

    fn compare_event(
        &mut self,
        number: u64,
        want: &EventAnswers<'_>,
        got: &EventAnswers<'_>,
        strictness: Strictness,
        at_limit: bool,
    ) {
        self.answers += want.lines.len() as u64;
        self.identical +=
            want.lines.iter().zip(&got.lines).filter(|(want, got)| want == got).count() as u64;
        let mut found = calls_differ(&want.calls, &got.calls, at_limit);
        if found.is_empty() && strictness == Strictness::Ordered {
            found.extend(order_differs(&want.calls, &got.calls));
        }
        match (want.closing, got.closing) {
            (Some(want), Some(got)) => found.extend(state_differs(want, got)),
            _ => found.push("no answer was given".to_owned()),
        }
        if found.is_empty() && strictness == Strictness::Exact {
            found.extend(want.first_other_line(got, want.lines.len().max(got.lines.len())));
        }
        let place = place(number);
        self.differences.extend(found.into_iter().map(|what| format!("{place}: {what}")));
    }
}

/// The state of the scheduler according to the expected answers.
#[derive(Debug, Default)]
struct ExpectedState<'a> {
    /// The agents of live tasks.
    live: HashMap<&'a str, &'a str>,
    /// Whether the next batch arrives at the executor limit.
    at_limit: bool,
}

impl<'a> ExpectedState<'a> {
    /// Whether the event is an update of a task that isn't on that agent.
    fn is_misattributed(&self, event: &ScenarioEvent) -> bool {
        let EventKind::Status(status) = &event.kind else { return false };
        self.live.get(&*status.task).copied() != status.agent.as_deref()
    }

    fn apply(&mut self, event: &'a ScenarioEvent, want: &EventAnswers<'a>) {
        if let EventKind::Status(status) = &event.kind
            && is_end(status.state.0)
        {
            self.live.remove(&*status.task);
        }
        for call in &want.calls {
            let CallKind::Accept(accept) = call else { continue };
            self.live.extend(accept.tasks.iter().map(|task| (&*task.id, &*task.agent)));
        }
    }

    fn update_limit(&mut self, closing: &ClosingLine) {
        let after = &closing.after;
        self.at_limit = after.limit.is_some_and(|limit| after.executors >= limit);
    }
}

/// Whether a task in this state has ended, for Spark.
fn is_end(state: TaskState) -> bool {
    use TaskState::{Killing, Running, Staging, Starting};
    !matches!(state, Staging | Starting | Running | Killing)
}

/// Returns the first line, and the answers by event.
fn by_event(answers: &[AnswerLine]) -> (Option<&InitLine>, BTreeMap<u64, EventAnswers<'_>>) {
    let mut init = None;
    let mut events = BTreeMap::<u64, EventAnswers<'_>>::new();
    for answer in answers {
        let ev = match answer {
            AnswerLine::Init(it) => {
                init = Some(it);
                continue;
            }
            AnswerLine::Call(call) => {
                let answered = events.entry(call.ev).or_default();
                answered.calls.push(&call.call);
                call.ev
            }
            AnswerLine::Closing(closing) => {
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
