//! `offermill constraints`: what a constraint says, and what it says of an agent.

use std::fmt::Write;

use console::style;
use offermill::attributes::{self, Items, OwnedAttribute, lend};
use offermill::constraint::Verdict;
use offermill::{Constraint, Offer};

use crate::exit::Exit;
use crate::output::{Said, remark, say};
use crate::settings::flags::CheckArguments;
use crate::text::format::{count, printable};

/// `offermill constraints check`.
pub(crate) fn check(arguments: &CheckArguments) -> Exit {
    let constraint = Constraint::parse(&arguments.constraint);
    let attributes = attributes::parse(arguments.attributes.as_deref().unwrap_or_default());
    let (constraint, attributes) = match (constraint, attributes) {
        (Ok(constraint), Ok(attributes)) => (constraint, attributes),
        (constraint, attributes) => {
            // Both, so that neither mistake hides the other.
            let problems = [constraint.err(), attributes.err()];
            problems.iter().flatten().for_each(|problem| remark(&problem.to_string()));
            return Exit::BadInput;
        }
    };
    let (text, exit) = match about_agent(arguments) {
        false => (reading(&constraint), Exit::Done),
        true => {
            let verdict = of_agent(&constraint, arguments, &attributes);
            let exit = if verdict.met { Exit::Done } else { Exit::NoMatch };
            (told(&verdict), exit)
        }
    };
    match say(&text) {
        Said::Lost => Exit::OutputClosed,
        Said::Heard | Said::Unheard => exit,
    }
}

/// Whether anything is said of an agent.
fn about_agent(arguments: &CheckArguments) -> bool {
    let CheckArguments { constraint: _, attributes, hostname, region, zone } = arguments;
    [attributes, hostname, region, zone].into_iter().any(Option::is_some)
}

fn of_agent(
    constraint: &Constraint,
    arguments: &CheckArguments,
    attributes: &[OwnedAttribute],
) -> Verdict {
    let items = Items::of(attributes);
    let attributes = lend(attributes, &items);
    let hostname = arguments.hostname.as_deref().unwrap_or_default();
    let mut offer = Offer::new("", "", hostname, &[], &attributes);
    offer.region = arguments.region.as_deref();
    offer.zone = arguments.zone.as_deref();
    constraint.examine(&offer)
}

/// What was read, when there is no agent to hold it against: one that has nothing shows all
/// conditions.
fn reading(constraint: &Constraint) -> String {
    if constraint.is_none() {
        return "no constraint: every agent meets it\n".to_owned();
    }
    let conditions = constraint.examine(&Offer::new("", "", "", &[], &[])).findings;
    let conditions = count(conditions.len() as u64, "condition");
    format!("valid, {conditions}: {}\n", printable(&constraint.to_string()))
}

fn told(verdict: &Verdict) -> String {
    let mut text = String::new();
    for line in verdict.to_string().lines() {
        let _ = match line.split_once(' ') {
            Some(("holds", rest)) => writeln!(text, "{} {rest}", style("holds").green()),
            Some(("fails", rest)) => writeln!(text, "{} {rest}", style("fails").red()),
            _ if verdict.met => writeln!(text, "{}", style(line).green().bold()),
            _ => writeln!(text, "{}", style(line).red().bold()),
        };
    }
    text
}
