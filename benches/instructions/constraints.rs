//! Asking a constraint, and having its answers remembered.

#[path = "../constraints/agents.rs"]
mod agents;

use std::hint::black_box;

use offermill::constraint::Memo;
use offermill::{Constraint, Offer};

use crate::{Scene, Size, counted};

pub(crate) const SCENES: [(&str, Scene); 4] = [
    ("constraints/entries asked", |size| asked(size, agents::ENTRIES)),
    ("constraints/entries remembered", |size| remembered(size, agents::ENTRIES)),
    ("constraints/expression asked", |size| asked(size, agents::EXPRESSION)),
    ("constraints/expression remembered", |size| remembered(size, agents::EXPRESSION)),
];

fn asked(size: Size, text: &str) -> u64 {
    played(size, text, |constraint, offer, _| constraint.check(offer).is_ok())
}

fn remembered(size: Size, text: &str) -> u64 {
    played(size, text, |constraint, offer, memo| constraint.check_with(memo, offer).is_ok())
}

fn played(
    size: Size,
    text: &str,
    holds: impl Fn(&Constraint, &Offer<'_>, &mut Memo) -> bool,
) -> u64 {
    let agents = agents::agents();
    let offer = |own| Offer::new("o", "a", "h", &[], own);
    let offers: Vec<Offer<'_>> = agents.iter().map(|own| offer(own)).collect();
    let constraint = Constraint::parse(text).expect("a constraint");
    let mut memos = vec![Memo::default(); offers.len()];
    let mut lap = || {
        let pairs = black_box(&offers[..]).iter().zip(&mut memos);
        pairs.filter_map(|(offer, memo)| holds(&constraint, offer, memo).then_some(())).count()
    };
    lap();
    (0..size.laps).map(|_| counted(&mut lap) as u64).sum()
}
