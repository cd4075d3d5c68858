//! Corner cases that histories must reach, and counters of how often they do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Answer, Bound, Change, Event, Expected, GangPicks, Known, Life, Scene, Whom};
use offermill::{ReasonKind, Timestamp};

/// An event at most this far from a deadline counts as being at the deadline.
const CLOSE: Duration = Duration::from_secs(1);
/// Agents are forgotten after this time.
pub(crate) const LONG: Duration = Duration::from_secs(900);

macro_rules! corners {
    ($($corner:ident = $text:literal,)+) => {
        /// A corner case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Corner {
            $($corner,)+
        }

        /// The descriptions, in the order of [`Corner`].
        const TEXTS: &[&str] = &[$($text,)+];
    };
}

corners! {
    BackAtRelease = "back within 1 s of the moment when it is given up",
    BackAtForget = "back within 1 s of the moment when it is forgotten",
    BackAfterGivenUp = "back after it was given up",
    UnreachableAgain = "unreachable again after it came back",
    GivenUpAfterReturn = "given up after it came back once",
    ForgottenAfterReturn = "forgotten after it came back once",
    TickAtDeadline = "a tick at the very moment of a deadline, or 1 ms before",
    JumpOver15Minutes = "time jumps over 15 min",
    AgentsForgotten = "agents are forgotten while executors live on others",
    MayBeForgotten = "offers while an agent may or may not have been forgotten",
    AdoptedBeside = "adopted beside executors of this run",
    AdoptionRefused = "a former executor there is no room for",
    AdoptedReported = "an update about an adopted executor",
    AdoptedAged = "an adopted executor is given up or forgotten",
    StormDuringAnswer = "300 changes of the limit between a batch and the moment when its answers have left",
    StormBetweenBatches = "300 changes of the limit between two batches",
    SecondDriverNow = "a second driver at the same moment",
    SecondDriverBehind = "a second driver at an older moment",
    SecondDriverTicks = "a driver ages executors beside another",
    BoundLate = "an executor is bound late",
    BoundWhileAway = "an executor is bound that is unreachable or was given up",
    BoundInDoubt = "an executor is bound to an agent that was reported lost",
    BoundElsewhere = "an executor is found on another agent than its own",
    UnwelcomeExcluded = "an executor is found on an excluded agent",
    UnwelcomeUnmet = "an executor is found on an agent that doesn't meet the constraint",
    UnwelcomeAgain = "an unwelcome executor is found again",
    BoundTooLate = "an executor is found that has ended unbound",
    EndedUnbound = "an executor ends or is forgotten before it is bound",
    TasksPlaced = "tasks are placed beside executors",
    GangLeftOut = "a gang is left out, and a pick after it is placed",
    PicksCutOff = "a cap cuts off picks after one that is placed",
    TaskBound = "a task is bound late",
    TaskAged = "a task is given up or forgotten",
    BoundFailureExcludes = "the failure of an executor that was bound late excludes its agent",
}

static REACHED: [AtomicU64; TEXTS.len()] = [const { AtomicU64::new(0) }; TEXTS.len()];

/// Counts the corner cases that the scene's last event reached.
#[allow(dead_code)]
pub(crate) fn count(scene: &Scene) {
    for corner in &scene.corners {
        REACHED[*corner as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Prints how often each corner case was reached. If there were at least 4000 histories, fails if one was never
/// reached.
#[allow(dead_code)]
pub(crate) fn expect_reached(histories: u32) {
    let reached = || TEXTS.iter().zip(&REACHED);
    for (text, count) in reached() {
        println!("corner: {:>8} times {text}", count.load(Ordering::Relaxed));
    }
    let missed: Vec<&str> = reached()
        .filter(|(_, count)| count.load(Ordering::Relaxed) == 0)
        .map(|(text, _)| *text)
        .collect();
    assert!(histories < 4_000 || missed.is_empty(), "never reached: {missed:?}");
}

/// The state of the scene before an event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    deadline: Option<Timestamp>,
    given_up: bool,
    placed: usize,
    agents: usize,
    perhaps: usize,
}

impl Scene {
    pub(super) fn before(&self, event: &Event) -> Before {
        let mut before = Before {
            placed: self.model.living().count(),
            agents: self.model.agents.len(),
            perhaps: self.perhaps_forgotten(),
            ..Before::default()
        };
        match event {
            Event::Update { whom: Whom::Number(number), .. } => {
                before.deadline = self.deadline(*number);
                let life = self.model.life(*number);
                before.given_up = life.live() && !life.counted();
            }
            Event::Tick | Event::Drivers { .. } => {
                let mut deadlines = self.model.living().filter_map(|number| self.deadline(number));
                before.deadline = deadlines.find(|deadline| {
                    let ahead = deadline.as_millis().checked_sub(self.now.as_millis());
                    ahead.is_some_and(|ahead| ahead <= 1)
                });
            }
            _ => {}
        }
        before
    }

    fn perhaps_forgotten(&self) -> usize {
        let agents = self.model.agents.values();
        agents.filter(|agent| agent.known == Known::Perhaps).count()
    }

    pub(super) fn note_corners(&mut self, event: &Event, before: Before) {
        let now = self.now;
        let mut reached = std::mem::take(&mut self.corners);
        let mut note = |corner: Corner, it: bool| reached.extend(it.then_some(corner));
        match (event, &self.expected) {
            (Event::Update { whom: Whom::Number(number), .. }, Expected::Effect(effect)) => {
                let executor = &mut self.model.executors[*number as usize];
                let back = matches!(effect.change, Change::Returned | Change::Readmitted);
                let close = before
                    .deadline
                    .is_some_and(|it| it.since(now) <= CLOSE && now.since(it) <= CLOSE);
                note(Corner::BackAtRelease, back && close && !before.given_up);
                note(Corner::BackAtForget, back && close && before.given_up);
                note(Corner::BackAfterGivenUp, back && before.given_up);
                let gone = effect.change == Change::Unreachable;
                note(Corner::UnreachableAgain, gone && executor.returned);
                note(Corner::AdoptedReported, executor.adopted);
                let ended = matches!(effect.change, Change::Ended(_));
                note(Corner::EndedUnbound, ended && executor.agent.is_empty());
                note(Corner::BoundFailureExcludes, executor.late && effect.excluded.is_some());
                executor.returned |= back;
            }
            (Event::Tick, Expected::Aged(given_up, forgotten)) => {
                let came_back = |number: &u64| self.model.executors[*number as usize].returned;
                let adopted = |number: &u64| self.model.executors[*number as usize].adopted;
                note(Corner::TickAtDeadline, before.deadline.is_some());
                note(Corner::GivenUpAfterReturn, given_up.iter().any(came_back));
                note(Corner::ForgottenAfterReturn, forgotten.iter().any(came_back));
                note(Corner::AdoptedAged, given_up.union(forgotten).any(adopted));
                let is_task = |number: &u64| self.model.executors[*number as usize].tag.is_some();
                note(Corner::TaskAged, given_up.union(forgotten).any(is_task));
                let fewer = self.model.agents.len() < before.agents;
                note(Corner::AgentsForgotten, fewer && self.model.living().count() > 0);
            }
            (Event::Drivers { behind }, Expected::Driven(aged, _)) => {
                note(Corner::SecondDriverNow, *behind == 0);
                note(Corner::SecondDriverBehind, *behind > 0);
                note(Corner::TickAtDeadline, before.deadline.is_some());
                let ages =
                    aged.iter().any(|(up, forgotten)| !(up.is_empty() && forgotten.is_empty()));
                note(Corner::SecondDriverTicks, ages);
                let mut all = aged.iter().flat_map(|(up, forgotten)| up.union(forgotten));
                let adopted = |number: &u64| self.model.executors[*number as usize].adopted;
                note(Corner::AdoptedAged, all.any(adopted));
            }
            (Event::Bind { whom: Whom::Number(number), agent, .. }, Expected::Bound(bound)) => {
                self.note_bound(*number, agent, bound, note);
            }
            (Event::Offers { .. }, _) => note(Corner::MayBeForgotten, before.perhaps > 0),
            (Event::Tasks { gangs, .. }, Expected::Answer(answer)) => {
                self.note_tasks(gangs, answer, note);
            }
            (Event::Adopt(_), Expected::Adopted(Some(adopted))) => {
                note(
                    Corner::AdoptedBeside,
                    before.placed > 0 && adopted.iter().any(Option::is_some),
                );
                note(Corner::AdoptionRefused, adopted.contains(&None));
            }
            (Event::Storm(_), _) => note(Corner::StormBetweenBatches, true),
            (Event::Sent { handler }, _) => {
                note(Corner::StormDuringAnswer, self.storms_said[*handler] < self.storms);
            }
            _ => {}
        }
        self.corners = reached;
    }

    /// Notes the corner cases of picking tasks.
    fn note_tasks(&self, gangs: &[GangPicks], answer: &Answer, mut note: impl FnMut(Corner, bool)) {
        let is_coarse = |number| self.model.executors[number as usize].tag.is_none();
        let has_placed = !answer.accepts.is_empty();
        note(Corner::TasksPlaced, has_placed && self.model.living().any(is_coarse));
        let unplaced = |at: u32| answer.unplaced.iter().any(|(pick, ..)| *pick == at);
        let mut first = 0;
        let mut left_out = false;
        for gang in gangs {
            note(Corner::GangLeftOut, left_out && !unplaced(first));
            left_out |= gang.len() > 1 && unplaced(first);
            first += gang.len() as u32;
        }
        let is_cut = answer.unplaced.iter().any(|(_, _, reason)| reason.is_cap());
        note(Corner::PicksCutOff, is_cut && has_placed);
    }

    /// Notes the corner cases of binding an executor.
    fn note_bound(
        &self,
        number: u64,
        agent: &str,
        bound: &Bound,
        mut note: impl FnMut(Corner, bool),
    ) {
        let executor = &self.model.executors[number as usize];
        let is_away = !executor.life.counted() || executor.life == Life::Unreachable;
        let is_bound = matches!(bound, Bound::Settled { .. });
        let unwelcome = match bound {
            Bound::Unwelcome(why) => Some(why.map(|why| why.kind())),
            _ => None,
        };
        note(Corner::BoundLate, is_bound);
        note(Corner::TaskBound, is_bound && executor.tag.is_some());
        note(Corner::BoundWhileAway, is_bound && is_away);
        note(Corner::BoundInDoubt, *bound == Bound::Settled { in_doubt: true });
        note(Corner::BoundElsewhere, matches!(bound, Bound::Elsewhere(_)));
        note(Corner::UnwelcomeExcluded, unwelcome == Some(Some(ReasonKind::AgentExcluded)));
        note(Corner::UnwelcomeUnmet, unwelcome == Some(Some(ReasonKind::ConstraintUnmet)));
        note(Corner::UnwelcomeAgain, unwelcome == Some(None));
        let has_ended = !executor.life.live() && executor.agent.is_empty();
        note(Corner::BoundTooLate, has_ended && !agent.is_empty());
    }
}
