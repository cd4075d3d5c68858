//! Offers that can't be read.

use offermill::engine::Notice;

use crate::Fixture;
use crate::recorder::{Call, Recorder, encoded};

/// Goal: offers that can't be read are declined, the others are answered, and each agent and cause is reported once.
/// Method: a batch with some, of which one has no id, and more of the same; the same for a manager without a reader.
#[test]
fn unreadable_offers_are_declined() {
    for without_reader in [false, true] {
        let cluster = if without_reader { Recorder::without_reader() } else { Recorder::default() };
        let fixture = Fixture::around(cluster, Some(1), |_| {});
        fixture.cluster.send(encoded(&["bad", "good S0 1", "worse S1 ", " S1"]));
        let bad = if without_reader { &["bad", "good", "worse"][..] } else { &["bad", "worse"] };
        let other = fixture.engine.kernel().config().refuse_durations().other;
        let expected: Vec<_> = bad.iter().map(|id| ((*id).to_owned(), other)).collect();
        assert_eq!(fixture.cluster.declined_when(bad.len()), expected);
        let report = |notice: &Notice| match notice {
            Notice::Unreadable { offers, unanswered, agent_id, why, .. } => {
                let agent_id = agent_id.clone().unwrap_or_default();
                Some((agent_id, why.clone(), *offers, *unanswered))
            }
            _ => None,
        };
        let expected = match without_reader {
            true => vec![("", "there is no reader for it", 4, 1)],
            false => vec![("", "it has no agent", 1, 0), ("S1", "it has no number", 2, 1)],
        };
        let text = |(agent, why, offers, unanswered): (&str, &str, usize, usize)| {
            (agent.to_owned(), why.to_owned(), offers, unanswered)
        };
        let expected: Vec<_> = expected.into_iter().map(text).collect();
        assert_eq!(fixture.notices.wait_for_many(expected.len(), report), expected);
        fixture.cluster.send(encoded(&["bad2", "worse2 S1 "]));
        fixture.cluster.send(encoded(&["worse3 S2 "]));
        fixture.cluster.declined_when(bad.len() + 3);
        let last = if without_reader { expected.len() } else { expected.len() + 1 };
        assert_eq!(fixture.notices.wait_for_many(last, report).len(), last);
        if !without_reader {
            fixture.cluster.wait_for(|call| match call {
                Call::Accept { offers, .. } if offers == &["good"] => Some(()),
                _ => None,
            });
        }
    }
}
