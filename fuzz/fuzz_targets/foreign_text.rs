//! Text that a cluster chooses, on its way to people. Whatever it is, what is shown has no control characters and stays
//! as it is if it is shown twice; what is kept is bounded; and no sentence of the kernel about an agent with such names
//! breaks that. (The outputs of the command line are tested with random text in its unit tests.)
//!
//! Input: a text; the lines are also taken as the id, the host name and an attribute of an agent.

#![cfg_attr(fuzzing, no_main)]

use offermill::config::ExecutorCores;
use offermill::foreign_text::{Printable, cut, is_shown};
use offermill::limits::MESSAGE_BYTES_MAX;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Attribute, Config, Constraint, Decisions, Error, IdScheme, Kernel, Offer, Resource, Timestamp,
};

fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    shown(&text);
    for bytes_max in [0, 1, 20, 255, MESSAGE_BYTES_MAX] {
        let kept = cut(text.clone().into_owned(), bytes_max);
        // The mark has less than 40 bytes.
        assert!(kept.len() <= bytes_max.max(40));
        assert!(text.len() > bytes_max || kept == text);
    }
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    sentences(next(), next(), next());
}

/// Checks that a text is shown without control characters, and as it is if it has none.
fn shown(text: &str) {
    let shown = Printable(text).to_string();
    assert!(!shown.contains(char::is_control), "{shown:?}");
    assert!(!shown.contains(|c| matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}')));
    assert!(!shown.contains(['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{2800}', '\u{2028}']));
    assert!(shown.chars().all(is_shown), "{shown:?}");
    assert_eq!(Printable(&shown).to_string(), shown);
    let is_plain = |c: char| matches!(c, ' '..='~' | '\u{a1}'..='\u{ac}');
    assert!(shown == text || !text.chars().all(is_plain), "{text:?} {shown:?}");
}

/// Checks the sentences that the kernel makes of an agent's names.
fn sentences(agent_id: &str, hostname: &str, attribute: &str) {
    let zone = Constraint::parse("zone:east").expect("a constraint");
    for constraint in [Constraint::none(), zone] {
        let config = Config::builder()
            .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(4)))
            .executor_memory(Mebibytes::new(512))
            .constraint(constraint.clone());
        let ids = IdScheme::unique("fuzz", 1).expect("a name");
        let kernel = Kernel::new(config.build().expect("settings"), ids);
        let (resources, zone) =
            ([Resource::scalar("cpus", 1.0)], [Attribute::text("zone", attribute)]);
        let offers = [Offer::new("O", agent_id, hostname, &resources, &zone)];
        kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut Decisions::new());
        shown(&kernel.explain(Timestamp::ORIGIN).to_string());
        shown(&constraint.examine(&offers[0]).to_string());
    }
    shown(&Error::cluster(agent_id, hostname).to_string());
    if let Err(error) = Constraint::parse(attribute) {
        shown(&error.to_string());
    }
}

offermill_fuzz::harness!(check);
