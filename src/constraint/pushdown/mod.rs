//! Offer constraints for the Mesos master: the part of a constraint that the master can check before it makes an offer.
//!
//! Since Mesos 1.11, a framework can restrict which agents' offers it receives: it sends groups of checks, and an agent
//! must pass all checks of at least one group. These checks can express less than a constraint. Therefore a
//! [`ConstraintPushdown`] only selects a superset of the agents that meet the constraint: every offer that meets the
//! constraint still arrives, and some offers that don't. The constraint itself is always checked as well.
//!
//! # Behaviour of the master, and the translation of a constraint
//!
//! If an agent has several attributes of one name, the master checks only the *first*. An attribute that isn't text
//! passes every text check. A regular expression (RE2) must match the whole text. An agent without the attribute passes
//! the negated text checks, and fails the other text checks.
//!
//! An unmodified agent accepts a repeated name in `--attributes` and offers both attributes (observed with a Mesos 1.11
//! agent and `zone:north;zone:east`), and no check can detect the second one. A constraint is satisfied if one of the
//! repeats satisfies it: that agent meets `zone = east`, but for the master its zone is `north`. So with
//! [`DuplicateAttributes::Allowed`] and with [`DuplicateAttributes::RuledOut`]:
//!
//! | condition                                  | attribute, if they are `Allowed` | if they are `RuledOut`           |
//! |--------------------------------------------|----------------------------------|----------------------------------|
//! | a name alone                               | `Exists`                         | the same                         |
//! | `zone:east,west`, `=`, `in {}`             | `Exists`                         | `TextEquals`, one group per value; `TextMatches` if these are too many |
//! | `like`                                     | `Exists`                         | `TextMatches`, or `TextEquals`   |
//! | `matches`                                  | `Exists`                         | `TextMatches` if RE2 certainly gives it the same meaning, otherwise `Exists` |
//! | `<` and so on, `in []`                     | `Exists`                         | the same                         |
//! | `not` before a name alone                  | `NotExists`                      | the same                         |
//! | `!=`, `not in {}`                          | `TextNotEquals` for each value   | the same                         |
//! | `not like`, `not matches`                  | `TextNotMatches`                 | the same                         |
//! | `not <` and so on, `not in []`             | nothing                          | the same                         |
//!
//! If names may repeat, anything stricter than `Exists` would be wrong. Negations apply to all repeats, and therefore
//! to the first. `@hostname`, `@region` and `@zone` are one text each and are checked like attributes without repeats.
//!
//! There are at most 64 groups with 256 checks in all. If there would be more, the checks are weakened, in the extreme
//! to those that all groups have in common. No RE2 expression exceeds what a master with default limits accepts.

mod groups;
mod re2;
#[cfg(test)]
mod tests;

use std::fmt;

use super::Constraint;
use super::condition::{Condition, Test, Values};
use super::facts::Subject;
use super::glob;
use super::program::{MET, Program, Step, UNMET};
use groups::{CheckGroup, CheckTable, Either, always, implies, is_always};
use re2::Re2Pattern;

/// The maximum number of values that are checked one by one.
const VALUES_MAX: usize = 256;

/// The maximum number of combinations of values for which no limit weakens a pushdown.
#[cfg(feature = "kubernetes")]
const EXACT_COMBINATIONS_MAX: usize = 36;

/// Whether an agent may have several attributes of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DuplicateAttributes {
    /// Repeated names are possible. Then the master isn't asked whether an attribute has a certain text, because it
    /// would hide agents that meet the constraint by their second attribute.
    #[default]
    Allowed,
    /// The operator of the cluster guarantees that no agent has repeated names. An agent that has them anyway may not
    /// be offered although it meets the constraint.
    RuledOut,
}

/// Checks for a master. Every agent that meets the constraint passes them. Returned by [`Constraint::pushdown`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintPushdown {
    groups: Vec<Vec<Check>>,
}

/// One check that a master applies to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The subject. If an agent has several attributes of the name, the first is checked.
    pub subject: Subject,
    /// The predicate that the subject must satisfy.
    pub predicate: Predicate,
}

/// The predicate of a check. Attributes that aren't text pass all four text predicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// The subject exists.
    Exists,
    /// The subject doesn't exist.
    NotExists,
    /// The subject exists and equals this text.
    TextEquals(Box<str>),
    /// The subject doesn't exist, or doesn't equal this text.
    TextNotEquals(Box<str>),
    /// The subject exists, and this RE2 regular expression matches all of it.
    TextMatches(Box<str>),
    /// The subject doesn't exist, or this RE2 regular expression doesn't match all of it.
    TextNotMatches(Box<str>),
}

impl Constraint {
    /// Returns the part of the constraint that a master can check.
    ///
    /// Every offer whose agent meets the constraint passes these checks if two conditions hold: the offer shows the
    /// agent's host name, region and zone as the master knows them, and `repeats` is correct for the agent.
    #[must_use]
    pub fn pushdown(&self, repeats: DuplicateAttributes) -> ConstraintPushdown {
        let Some(compiled) = &self.0 else { return ConstraintPushdown::default() };
        let mut translator = Translator { checks: CheckTable::default(), repeats };
        let groups = translator.program(&compiled.program);
        let check = |id: &groups::Id| translator.checks.get(*id).cloned();
        let group = |group: &CheckGroup| group.ids().iter().filter_map(check).collect();
        let groups: Vec<Vec<Check>> = groups.iter().map(group).collect();
        // Every agent passes a group without checks. Checks that no agent passes can't be expressed and aren't needed.
        let everything = groups.iter().any(Vec::is_empty);
        ConstraintPushdown { groups: if everything { Vec::new() } else { groups } }
    }
}

#[cfg(feature = "kubernetes")]
impl Constraint {
    /// Whether the [pushdown](Constraint::pushdown) for agents whose attributes are all text, without repeated names,
    /// is exact and has no regular expressions. May be false for a constraint with many values for which it is.
    pub(crate) fn is_exact_in_labels(&self) -> bool {
        let Some(compiled) = &self.0 else { return true };
        // No group is weakened if all combinations of values fit.
        let mut combinations: usize = 1;
        compiled.program.in_order().all(|condition| {
            let values = match &condition.test {
                Test::Entry(values) => values.texts.len(),
                Test::In(values) if !values.texts.is_empty() => values.texts.len(),
                Test::Present => 1,
                Test::In(_)
                | Test::Compared(..)
                | Test::Within(_)
                | Test::Like(_)
                | Test::Matches(..) => return false,
            };
            combinations = combinations.saturating_mul(values.max(1) + 1);
            combinations <= EXACT_COMBINATIONS_MAX
        })
    }
}

impl ConstraintPushdown {
    /// Returns the groups of checks. An agent must pass all checks of at least one group. No group is empty. If there
    /// are no groups, every agent passes.
    #[must_use]
    pub fn groups(&self) -> &[Vec<Check>] {
        &self.groups
    }

    /// Returns whether every agent passes.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Check {
    /// The size of the check's texts, in bytes.
    fn bytes(&self) -> usize {
        let name = match &self.subject {
            Subject::Attribute(name) => name.len(),
            Subject::Hostname | Subject::Region | Subject::Zone => 0,
        };
        let text = match &self.predicate {
            Predicate::Exists | Predicate::NotExists => 0,
            Predicate::TextEquals(text)
            | Predicate::TextNotEquals(text)
            | Predicate::TextMatches(text)
            | Predicate::TextNotMatches(text) => text.len(),
        };
        name + text
    }
}

/// The checks that follow if a condition holds, or if it doesn't: as exactly as possible, and weakened to one group.
struct Consequence {
    exact: Either,
    plain: CheckGroup,
}

struct Translator {
    checks: CheckTable,
    repeats: DuplicateAttributes,
}

impl Translator {
    /// Returns checks that are passed by every agent that meets the program. Works from the last step to the first,
    /// because the checks of a step depend on those of the steps that it leads to.
    fn program(&mut self, program: &Program) -> Either {
        let steps = program.steps();
        let mut first_use = vec![usize::MAX; steps.len()];
        for (at, step) in steps.iter().enumerate().rev() {
            for next in [step.then, step.otherwise] {
                if let Some(first) = first_use.get_mut(next as usize) {
                    *first = at;
                }
            }
        }
        let mut from: Vec<Either> = vec![Vec::new(); steps.len()];
        for (at, step) in steps.iter().enumerate().rev() {
            let Some(condition) = program.condition(step.condition) else { return always() };
            let groups = self.step(condition, step, &from);
            // Results that no earlier step needs are dropped.
            for next in [step.then, step.otherwise] {
                if first_use.get(next as usize) == Some(&at)
                    && let Some(done) = from.get_mut(next as usize)
                {
                    *done = Vec::new();
                }
            }
            if let Some(own) = from.get_mut(at) {
                *own = groups;
            }
        }
        from.first_mut().map_or_else(always, std::mem::take)
    }

    fn step(&mut self, condition: &Condition, step: &Step, from: &[Either]) -> Either {
        let known = |next: u32| match next {
            MET => always(),
            UNMET => Vec::new(),
            next => from.get(next as usize).cloned().unwrap_or_else(always),
        };
        let (mut then, mut otherwise) = (known(step.then), known(step.otherwise));
        if otherwise.is_empty() && groups::are_full(&then) {
            return then;
        }
        // If the checks of one branch imply those of the other, that branch needs no check of the condition itself: its
        // agents pass in either case. Groups of the other branch that imply one of that branch are then redundant.
        let nothing = || Consequence { exact: always(), plain: CheckGroup::default() };
        let (free, freed) = (implies(&otherwise, &then), implies(&then, &otherwise));
        let held = if freed { nothing() } else { self.of(condition, true) };
        let failed = if free { nothing() } else { self.of(condition, false) };
        if free {
            then.retain(|group| !implies(std::slice::from_ref(group), &otherwise));
        } else if freed {
            otherwise.retain(|group| !implies(std::slice::from_ref(group), &then));
        }
        let checks = &self.checks;
        let join = |held: &[CheckGroup], failed: &[CheckGroup]| {
            Some([checks.both(held, &then)?, checks.both(failed, &otherwise)?].concat())
        };
        let within_bounds = |groups: Either| checks.within_bounds(groups);
        let plain = join(&[held.plain], &[failed.plain]).unwrap_or_else(always);
        join(&held.exact, &failed.exact)
            .and_then(within_bounds)
            .or_else(|| within_bounds(plain.clone()))
            .or_else(|| within_bounds(vec![checks.common(&plain)]).filter(|it| !is_always(it)))
            .or_else(|| join(&always(), &always()).and_then(within_bounds))
            .unwrap_or_else(always)
    }

    fn of(&mut self, condition: &Condition, holds: bool) -> Consequence {
        if holds != condition.negated { self.some(condition) } else { self.none(condition) }
    }

    /// Returns checks that an agent passes if some value of the subject passes the test.
    fn some(&mut self, Condition { subject, test, .. }: &Condition) -> Consequence {
        let one = matches!(self.repeats, DuplicateAttributes::RuledOut)
            || !matches!(subject, Subject::Attribute(_));
        let exact = match test {
            _ if !one => vec![Predicate::Exists],
            Test::Entry(values) | Test::In(values) if !values.texts.is_empty() => {
                return self.one_of(subject, values);
            }
            Test::Like(glob) => vec![some_like(re2::of_glob(glob))],
            Test::Matches(regex, _) => vec![some_like(re2::of_regex(regex))],
            Test::Entry(_) | Test::Present | Test::In(_) | Test::Compared(..) | Test::Within(_) => {
                vec![Predicate::Exists]
            }
        };
        self.all_of(subject, exact)
    }

    /// Returns checks that an agent passes if the only value, if it is a text, is one of these.
    fn one_of(&mut self, subject: &Subject, values: &Values) -> Consequence {
        let plain = match re2::one_of(&values.texts) {
            Some(expression) => Predicate::TextMatches(expression.into()),
            None => Predicate::Exists,
        };
        let Consequence { exact, plain } = self.all_of(subject, vec![plain]);
        if values.texts.len() > VALUES_MAX {
            return Consequence { exact, plain };
        }
        let equal = values.texts.iter().map(|text| Predicate::TextEquals(text.clone()));
        Consequence { exact: equal.map(|it| self.group(subject, vec![it])).collect(), plain }
    }

    /// Returns checks that an agent passes if no value of the subject passes the test; then the first one doesn't
    /// either.
    fn none(&mut self, Condition { subject, test, .. }: &Condition) -> Consequence {
        let is_place = !matches!(subject, Subject::Attribute(_));
        // The master may treat an unknown host name, region or zone as the empty text.
        let unlike = |whole: Option<Re2Pattern>, likes_nothing: bool| {
            let whole = whole.filter(|_| !(is_place && likes_nothing));
            whole.map(none_like).into_iter().collect()
        };
        let exact = match test {
            Test::Entry(values) | Test::In(values) if !values.texts.is_empty() => {
                let texts = values.texts.iter().filter(|text| !(is_place && text.is_empty()));
                texts.take(VALUES_MAX).map(|text| Predicate::TextNotEquals(text.clone())).collect()
            }
            Test::Entry(_) | Test::Present if is_place => {
                let absent = self.group(subject, vec![Predicate::NotExists]);
                let empty = self.group(subject, vec![Predicate::TextEquals("".into())]);
                return Consequence { exact: vec![absent, empty], plain: CheckGroup::default() };
            }
            Test::Entry(_) | Test::Present => vec![Predicate::NotExists],
            Test::In(_) | Test::Compared(..) | Test::Within(_) => Vec::new(),
            Test::Like(glob) => unlike(re2::of_glob(glob), glob::matches(glob, "")),
            Test::Matches(regex, pattern) => unlike(re2::of_regex(regex), pattern.is_match("")),
        };
        self.all_of(subject, exact)
    }

    fn all_of(&mut self, subject: &Subject, predicates: Vec<Predicate>) -> Consequence {
        let plain = self.group(subject, predicates);
        Consequence { exact: vec![plain.clone()], plain }
    }

    fn group(&mut self, subject: &Subject, predicates: Vec<Predicate>) -> CheckGroup {
        let check = |predicate| self.checks.id(Check { subject: subject.clone(), predicate });
        let ids = predicates.into_iter().map(check).collect();
        self.checks.group(ids)
    }
}

fn some_like(whole: Option<Re2Pattern>) -> Predicate {
    match whole {
        Some(Re2Pattern::Literal(text)) => Predicate::TextEquals(text.into()),
        Some(Re2Pattern::Expression(text)) => Predicate::TextMatches(text.into()),
        Some(Re2Pattern::Any) | None => Predicate::Exists,
    }
}

fn none_like(whole: Re2Pattern) -> Predicate {
    match whole {
        Re2Pattern::Literal(text) => Predicate::TextNotEquals(text.into()),
        Re2Pattern::Expression(text) => Predicate::TextNotMatches(text.into()),
        Re2Pattern::Any => Predicate::TextNotMatches("\\C*".into()),
    }
}

impl fmt::Display for ConstraintPushdown {
    /// Writes all groups in one line, for display.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.groups.is_empty() {
            return f.write_str("everything");
        }
        for (index, group) in self.groups.iter().enumerate() {
            f.write_str(if index > 0 { " or " } else { "" })?;
            for (index, check) in group.iter().enumerate() {
                write!(f, "{}{check}", if index > 0 { " and " } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Attribute(name) => f.write_str(&super::quoted(name))?,
            Subject::Hostname => f.write_str("@hostname")?,
            Subject::Region => f.write_str("@region")?,
            Subject::Zone => f.write_str("@zone")?,
        }
        match &self.predicate {
            Predicate::Exists => f.write_str(" exists"),
            Predicate::NotExists => f.write_str(" doesn't exist"),
            Predicate::TextEquals(text) => write!(f, " is {}", super::quoted(text)),
            Predicate::TextNotEquals(text) => write!(f, " isn't {}", super::quoted(text)),
            Predicate::TextMatches(text) => write!(f, " matches {}", super::quoted(text)),
            Predicate::TextNotMatches(text) => write!(f, " doesn't match {}", super::quoted(text)),
        }
    }
}
