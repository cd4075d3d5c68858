//! `offermill constraints check`: checks the syntax of a constraint, and whether an agent meets it.

use clap::Args;
use console::Style;
use offermill::attributes::{self, Items, OwnedAttribute};
use offermill::constraint::Verdict;
use offermill::{Constraint, Offer};

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_result, remark};
use crate::settings::values::constraints::expression_hint;
use crate::text::format::count;
use crate::text::styled::StyledText;

const EXAMPLES: &str = "\
Spark's syntax is NAME:VALUE[,VALUE...][;...], where each part must hold; see
spark.mesos.constraints. Expressions begin with expr::, such as
    expr:: zone in {east, west} and (tier >= 3 or not rack like r1*)
with =, !=, <, <=, >, >=, in {a, b}, in [1-9], like (* and ?), matches (a regular
expression), and, or, not, parentheses, and @hostname, @region, @zone.

Examples:
    offermill constraints check 'zone:east,west;rack:'
    offermill constraints check 'zone:east;tier:2' --attributes 'zone:east;rack:r1;tier:3'
    offermill constraints check 'expr:: @hostname like db-* or ports in [8000-8080]' \\
        --hostname web-3 --attributes 'ports:[8000-9000]'

Exit codes:
    0  the constraint can be read; with an agent, the agent meets it
    1  the agent doesn't meet it
    2  the constraint or the attributes can't be read
    5  standard output can't be written (a closed pipe is fine)";

/// The flags of `offermill constraints check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    /// The constraint
    #[arg(value_name = "CONSTRAINT", allow_hyphen_values = true)]
    pub(crate) constraint: String,

    /// The agent's attributes, such as 'zone:east;rack:r1;tier:3;ports:[1-9];disk:{ssd,nvme}';
    /// names may repeat
    #[arg(long, value_name = "LINE")]
    pub(crate) attributes: Option<String>,

    /// The agent's host name
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,

    /// The region of the agent's fault domain
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    /// The zone of the agent's fault domain
    #[arg(long, value_name = "NAME")]
    pub(crate) zone: Option<String>,
}

/// `offermill constraints check`.
pub(crate) fn check(arguments: &CheckArguments) -> ExitStatus {
    if let Some(hint) = expression_hint(&arguments.constraint) {
        remark(hint);
    }
    let constraint = Constraint::parse(&arguments.constraint);
    let attributes = attributes::parse(arguments.attributes.as_deref().unwrap_or_default());
    let (constraint, attributes) = match (constraint, attributes) {
        (Ok(constraint), Ok(attributes)) => (constraint, attributes),
        (constraint, attributes) => {
            // Both are reported, so that neither error hides the other.
            let problems = [constraint.err(), attributes.err()];
            problems.iter().flatten().for_each(|problem| remark(&problem.to_string()));
            return ExitStatus::BadInput;
        }
    };
    let (text, exit) = match has_agent(arguments) {
        false => (StyledText::lines(&description(&constraint)), ExitStatus::Done),
        true => {
            let verdict = verdict_for_agent(&constraint, arguments, &attributes);
            let exit = if verdict.met { ExitStatus::Done } else { ExitStatus::NoMatch };
            (verdict_text(&verdict), exit)
        }
    };
    match print_result(&text) {
        PrintOutcome::Failed => ExitStatus::OutputClosed,
        PrintOutcome::Written | PrintOutcome::Closed => exit,
    }
}

/// Whether an agent was described.
fn has_agent(arguments: &CheckArguments) -> bool {
    let CheckArguments { constraint: _, attributes, hostname, region, zone } = arguments;
    [attributes, hostname, region, zone].into_iter().any(Option::is_some)
}

fn verdict_for_agent(
    constraint: &Constraint,
    arguments: &CheckArguments,
    attributes: &[OwnedAttribute],
) -> Verdict {
    let items = Items::of(attributes);
    let borrowed = attributes::borrow(attributes, &items);
    let hostname = arguments.hostname.as_deref().unwrap_or_default();
    let mut offer = Offer::new("", "", hostname, &[], &borrowed);
    offer.region = arguments.region.as_deref();
    offer.zone = arguments.zone.as_deref();
    constraint.examine(&offer)
}

/// Describes a constraint without an agent. An agent without attributes yields all conditions.
fn description(constraint: &Constraint) -> String {
    if constraint.is_none() {
        return "no constraint: every agent meets it\n".to_owned();
    }
    let findings = constraint.examine(&Offer::new("", "", "", &[], &[])).findings;
    let conditions = count(findings.len() as u64, "condition");
    format!("valid, {conditions}: {}\n", constraint)
}

/// The verdict in colour: a line for each condition, whose first word says whether it holds, then one for the result.
fn verdict_text(verdict: &Verdict) -> StyledText {
    let mut text = StyledText::new();
    let mut findings = verdict.findings.iter();
    for line in verdict.to_string().lines() {
        let colour = |is_met: bool| match is_met {
            true => Style::new().green(),
            false => Style::new().red(),
        };
        text.push_line(&match findings.next() {
            Some(finding) => {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                let word = StyledText::styled(word, &colour(finding.mismatch.is_none()));
                word.and(" ").and(rest)
            }
            None => StyledText::styled(line, &colour(verdict.met).bold()),
        });
    }
    text
}
