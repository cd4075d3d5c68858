//! What of a constraint a Mesos master can check before it makes an offer.
//!
//! Since Mesos 1.11 a framework can tell the master which agents it has no use for: groups of checks, of which an
//! agent has to pass all of one group. They can say less than a constraint, and so a [`Superset`] of the agents that
//! meet it is all that the master is asked to leave: every offer that meets the constraint still comes, and some come
//! that don't. The constraint itself has the last word.
//!
//! # What the master does, and what that makes of a constraint
//!
//! Of several attributes of one name the master looks at the *first* only. An attribute that isn't text passes every
//! check of text. An expression (RE2) has to match all of a text. A check that text isn't so is passed by agents
//! without the attribute, too; one that it is so, is not.
//!
//! A stock agent accepts a name twice in `--attributes` and offers both (a Mesos 1.11 agent with
//! `zone:north;zone:east` was seen to), and no check can tell that there is a second one. To a constraint one of the
//! repeats suffices: that agent meets `zone = east`, but to the master it is `north` like any other. So:
//!
//! | condition                                  | attributes of a name, [`Repeats::Allowed`] | with [`Repeats::RuledOut`] |
//! |--------------------------------------------|----------------------------------|----------------------------------|
//! | a name alone                               | `Exists`                         | the same                         |
//! | `zone:east,west`, `=`, `in {}`             | `Exists`                         | `TextEquals`, a group a value; `TextMatches` if these get too many |
//! | `like`                                     | `Exists`                         | `TextMatches`, or `TextEquals`   |
//! | `matches`                                  | `Exists`                         | `TextMatches`, if RE2 surely reads it alike, else `Exists` |
//! | `<` and so on, `in []`                     | `Exists`                         | the same                         |
//! | `not` before a name alone                  | `NotExists`                      | the same                         |
//! | `!=`, `not in {}`                          | `TextNotEquals`, each value      | the same                         |
//! | `not like`, `not matches`                  | `TextNotMatches`                 | the same                         |
//! | `not <` and so on, `not in []`             | nothing                          | the same                         |
//!
//! With repeats, more than `Exists` would be wrong; negations are about all repeats, and so about the first.
//! `@hostname`, `@region` and `@zone` are one text each: they are checked as attributes without repeats are.
//!
//! There are at most 64 groups with 256 checks in all. What would be more is made less, down to what all groups have in
//! common; no expression goes beyond what a master with default limits takes.

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

/// More values than this aren't checked for inequality one by one.
const VALUES_MAX: usize = 256;

/// Whether one agent may have several attributes of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Repeats {
    /// It may, as far as anybody knows. Then checks of text can't be asked for: the master would hide agents that meet
    /// the constraint by their second attribute.
    #[default]
    Allowed,
    /// Whoever runs the cluster says that none has. An agent that has after all may not be offered although it meets
    /// the constraint.
    RuledOut,
}

/// Checks that every agent passes that meets a constraint. From [`Constraint::superset`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Superset {
    groups: Vec<Vec<Check>>,
}

/// One thing that a master checks of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// What it looks at: of attributes the first of the name.
    pub subject: Subject,
    /// What that has to be.
    pub predicate: Predicate,
}

/// What is checked. Attributes that aren't text pass all four checks of text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// It is there.
    Exists,
    /// It isn't.
    NotExists,
    /// It is there, and this text.
    TextEquals(Box<str>),
    /// It isn't this text.
    TextNotEquals(Box<str>),
    /// It is there, and all of it matches this expression of RE2's.
    TextMatches(Box<str>),
    /// This expression of RE2's doesn't match all of it.
    TextNotMatches(Box<str>),
}

impl Constraint {
    /// What a master can check of it.
    ///
    /// An offer of an agent that meets the constraint passes, under two conditions: it shows the agent as the master
    /// knows it, region and zone included, and `repeats` is true of the agent.
    #[must_use]
    pub fn superset(&self, repeats: Repeats) -> Superset {
        let Some(compiled) = &self.0 else { return Superset::default() };
        let mut translator = Translator { checks: CheckTable::default(), repeats };
        let groups = translator.program(&compiled.program);
        let check = |id: &groups::Id| translator.checks.get(*id).cloned();
        let group = |group: &CheckGroup| group.ids().iter().filter_map(check).collect();
        let groups: Vec<Vec<Check>> = groups.iter().map(group).collect();
        // A group without checks is passed by all. That no agent passes can't be said, and needn't.
        let everything = groups.iter().any(Vec::is_empty);
        Superset { groups: if everything { Vec::new() } else { groups } }
    }
}

impl Superset {
    /// The groups: an agent has to pass all checks of one of them. None of them is empty. If there are none, every
    /// agent passes.
    #[must_use]
    pub fn groups(&self) -> &[Vec<Check>] {
        &self.groups
    }

    /// Whether every agent passes.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Check {
    /// How long what it says is.
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

/// What follows when a condition holds, or when it doesn't: as exactly as it can be said, and in one group.
struct Consequence {
    exact: Either,
    plain: CheckGroup,
}

struct Translator {
    checks: CheckTable,
    repeats: Repeats,
}

impl Translator {
    /// What an agent passes that meets a program. From the last step to the first: what has to be passed from a step on
    /// is known when the steps before it ask.
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
            // What no earlier step asks for isn't kept.
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
        // If what is asked otherwise is asked anyway, it doesn't matter that the condition doesn't hold, and the other
        // way round. What passes without the condition needn't be asked with it again.
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

    /// That some value of the subject passes the test.
    fn some(&mut self, Condition { subject, test, .. }: &Condition) -> Consequence {
        let one =
            matches!(self.repeats, Repeats::RuledOut) || !matches!(subject, Subject::Attribute(_));
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

    /// That the one value, if it is a text, is one of these.
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

    /// That no value of the subject passes the test; the first then doesn't either.
    fn none(&mut self, Condition { subject, test, .. }: &Condition) -> Consequence {
        let is_place = !matches!(subject, Subject::Attribute(_));
        // A place that isn't known may be the empty text to the master.
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

impl fmt::Display for Superset {
    /// In one line, for people.
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
