//! The compiled form of both syntaxes: a list of conditions, and steps that determine which condition is evaluated
//! next.
//!
//! A step evaluates one condition and continues with one of two other steps, which always come later, or ends.
//! Therefore the evaluation of any expression needs no stack, takes at most as many steps as there are, and never
//! evaluates a condition that can't affect the result.

use super::condition::{Condition, PAIRS_SCANNED_MAX, mark};
use super::facts::{OfferFacts, Subject};
use super::mismatch::{Mismatch, Unmet};

/// Target of a step that ends the evaluation: the constraint is met.
pub(super) const MET: u32 = u32::MAX;
/// Target of a step that ends the evaluation: the constraint isn't met.
pub(super) const UNMET: u32 = u32::MAX - 1;

/// The maximum number of conditions in a constraint. The longest allowed text can't hold more.
const CONDITIONS_MAX: usize = 32 * 1024;

#[derive(Debug)]
pub(super) struct Program {
    /// Sorted by subject.
    conditions: Box<[Condition]>,
    /// In the order of evaluation; never empty.
    steps: Box<[Step]>,
}

/// A step of the evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) condition: u32,
    /// The next step if the condition holds (`then`) or doesn't (`otherwise`).
    pub(super) then: u32,
    pub(super) otherwise: u32,
}

impl Program {
    /// A program that requires all of `conditions`.
    pub(super) fn all_of(conditions: Vec<Condition>) -> Program {
        let last = conditions.len() as u32;
        let next = |after: u32| if after == last { MET } else { after };
        let steps = (0..last)
            .map(|condition| Step { condition, then: next(condition + 1), otherwise: UNMET })
            .collect();
        Program::new(conditions, steps)
    }

    /// Builds a program. Each step must lead to later steps only.
    pub(super) fn new(conditions: Vec<Condition>, mut steps: Box<[Step]>) -> Program {
        debug_assert!(conditions.len() <= CONDITIONS_MAX && !steps.is_empty());
        let mut order: Vec<u32> = (0..conditions.len() as u32).collect();
        let subject = |at: &u32| conditions.get(*at as usize).map(|condition| &condition.subject);
        order.sort_by(|a, b| subject(a).cmp(&subject(b)));
        let mut place = vec![0; conditions.len()];
        for (to, from) in (0u32..).zip(&order) {
            if let Some(place) = place.get_mut(*from as usize) {
                *place = to;
            }
        }
        for step in &mut steps {
            step.condition = place.get(step.condition as usize).copied().unwrap_or_default();
        }
        let mut sorted: Vec<Option<Condition>> = conditions.into_iter().map(Some).collect();
        let take = |from: u32| sorted.get_mut(from as usize).and_then(Option::take);
        Program { conditions: order.into_iter().filter_map(take).collect(), steps }
    }

    pub(super) fn condition(&self, at: u32) -> Option<&Condition> {
        self.conditions.get(at as usize)
    }

    /// Returns the conditions in the order in which they are first evaluated.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Condition> {
        let mut seen = vec![0_u64; self.conditions.len().div_ceil(64)];
        let fresh = move |step: &&Step| mark(&mut seen, step.condition as usize);
        self.steps.iter().filter(fresh).filter_map(|step| self.condition(step.condition))
    }

    /// Returns the steps in the order of evaluation.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the subject of each condition.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.conditions.iter().map(|condition| &condition.subject)
    }

    /// Evaluates the program for an agent. The error is the condition that decided that the agent doesn't meet it.
    pub(super) fn run(&self, facts: &OfferFacts<'_>) -> Result<(), Unmet> {
        let pairs = self.conditions.len().saturating_mul(facts.attributes.len());
        let decided = if pairs <= PAIRS_SCANNED_MAX {
            self.walk(|at| self.condition(at).is_some_and(|condition| condition.holds(facts)))
        } else {
            self.walk_marked(facts)
        };
        decided.map_err(|(condition, held)| {
            let failed = self.condition(condition).filter(|_| !held);
            let mismatch = failed.map_or(Mismatch::Excluded, |condition| condition.mismatch(facts));
            Unmet { condition, mismatch }
        })
    }

    /// Follows the steps. The error is the condition evaluated last, and whether it held.
    #[inline]
    fn walk(&self, holds: impl Fn(u32) -> bool) -> Result<(), (u32, bool)> {
        let mut at = 0;
        let mut last = (0, false);
        while let Some(step) = self.steps.get(at as usize) {
            let held = holds(step.condition);
            at = if held { step.then } else { step.otherwise };
            last = (step.condition, held);
        }
        if at == MET { Ok(()) } else { Err(last) }
    }

    /// Like `walk`, for many attributes or conditions: evaluates all conditions on attributes in one pass over the
    /// attributes.
    #[cold]
    fn walk_marked(&self, facts: &OfferFacts<'_>) -> Result<(), (u32, bool)> {
        let mut passed = [0_u64; CONDITIONS_MAX / 64];
        for attribute in facts.attributes {
            let name = |condition: &Condition| match &condition.subject {
                Subject::Attribute(name) => (**name).cmp(attribute.name),
                Subject::Hostname | Subject::Region | Subject::Zone => std::cmp::Ordering::Greater,
            };
            let first = self.conditions.partition_point(|condition| name(condition).is_lt());
            let rest = self.conditions.iter().enumerate().skip(first);
            for (at, condition) in rest.take_while(|(_, condition)| name(condition).is_eq()) {
                if condition.test.passes(&attribute.value) {
                    mark(&mut passed, at);
                }
            }
        }
        self.walk(|at| {
            let Some(condition) = self.condition(at) else { return false };
            match condition.subject {
                Subject::Attribute(_) => {
                    let word = passed.get(at as usize / 64).copied().unwrap_or_default();
                    (word >> (at % 64) & 1 == 1) != condition.negated
                }
                Subject::Hostname | Subject::Region | Subject::Zone => condition.holds(facts),
            }
        })
    }
}
