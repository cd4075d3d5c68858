//! When executors are wanted and none can be placed: when to say so, and how.

use std::time::Duration;

use offermill::{Declined, Explanation, Kernel, Miss, Reason, ReasonKind, Timestamp};

use crate::text::format::{age, grouped, printable};

/// It is worth a word when nothing was placed for so long.
const AFTER: Duration = Duration::from_secs(5);
/// The longest time from one word to the next.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// What is shown all the time is worked out anew so often.
const REFRESHED_EVERY: Duration = Duration::from_secs(1);
/// Where there are misses to tell of, it is no news that offers fail to come for less than this: what was refused is
/// offered again only when its refusal is over.
const SILENCE: Duration = Duration::from_secs(30);
/// So many reasons fit into a sentence.
const REASONS_MAX: usize = 3;

/// Watches whether the run waits.
#[derive(Debug)]
pub(crate) struct StallWatch {
    placed: u64,
    /// Since when nothing was placed though executors were wanted.
    since: Timestamp,
    pause: Duration,
    speak_at: Timestamp,
    said: Option<Gist>,
    /// What there is to know of the cluster when no offers come.
    silence: Option<&'static str>,
    /// Why, as of late, while the run waits.
    pub(crate) why: Option<Waits>,
}

/// Why the run waits, and what there is to know of the cluster when no offers come.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) explanation: Explanation,
    pub(crate) silence: Option<&'static str>,
}

/// What must change before it is worth another word: whose offers were nearest, and why they were declined.
type Gist = (u32, Vec<(Option<Box<str>>, Reason)>);

impl StallWatch {
    /// Not waiting.
    pub(crate) fn new(silence: Option<&'static str>) -> StallWatch {
        let (since, speak_at) = (Timestamp::ORIGIN, Timestamp::ORIGIN.plus(AFTER));
        let (said, why) = (None, None);
        StallWatch { placed: 0, since, pause: AFTER, speak_at, said, silence, why }
    }

    /// Looks how things stand. `placed` is how many executors were placed so far, and `alive` how many live. Returns
    /// what there is to say, if there is.
    pub(crate) fn look(
        &mut self,
        kernel: &Kernel,
        placed: u64,
        alive: u64,
        now: Timestamp,
    ) -> Option<Waits> {
        if placed != self.placed || kernel.wanted() == 0 {
            let anew = StallWatch::new(self.silence);
            *self = StallWatch { placed, since: now, speak_at: now.plus(AFTER), ..anew };
            return None;
        }
        let is_fresh = |it: &Waits| now.since(it.explanation.at) < REFRESHED_EVERY;
        if now.since(self.since) < AFTER || self.why.as_ref().is_some_and(is_fresh) {
            return None;
        }
        let explanation = kernel.explain(now);
        // Who wants as many as fit has them.
        if !explanation.is_bounded && alive > 0 {
            self.why = None;
            return None;
        }
        let why = Waits { explanation, silence: self.silence };
        self.why = Some(why.clone());
        if now < self.speak_at {
            return None;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.speak_at = now.plus(self.pause);
        let gist = Some(gist(&why.explanation));
        (gist != self.said).then(|| {
            self.said = gist;
            why
        })
    }
}

fn gist(explanation: &Explanation) -> Gist {
    let misses = explanation.declined.iter().filter_map(relevant);
    let misses = misses.map(|(_, miss)| (miss.agent_id.clone(), miss.reason));
    (explanation.wanted, misses.take(REASONS_MAX).collect())
}

/// The nearest miss, unless it is none of an agent's: a cap that was reached once is not what is waited for.
pub(crate) fn relevant(declined: &Declined) -> Option<(ReasonKind, &Miss)> {
    let miss = declined.nearest.as_ref().filter(|miss| miss.agent_id.is_some())?;
    Some((declined.kind, miss))
}

/// As in `waiting for 1 more executor: too few cores (agent-1: 0.5 of 1 cores)`.
pub(crate) fn sentence(waits: &Waits) -> String {
    let Waits { explanation, silence: hint } = waits;
    let misses = explanation.declined.iter().filter_map(relevant).take(REASONS_MAX);
    let mut why: Vec<String> =
        misses.map(|(kind, miss)| format!("{} ({})", kind.as_str(), about(miss))).collect();
    let silence = explanation.last_offers.map(|last| explanation.at.since(last));
    let silent = match silence {
        None => Some("no offers came yet".to_owned()),
        Some(silence) if silence >= if why.is_empty() { AFTER } else { SILENCE } => {
            Some(format!("no offers for {}", age(silence)))
        }
        Some(_) => None,
    };
    why.extend(silent.map(|silent| match hint.filter(|_| why.is_empty()) {
        Some(hint) => format!("{silent}; {hint}"),
        None => silent,
    }));
    let colon = if why.is_empty() { "" } else { ": " };
    printable(&format!("{}{colon}{}", explanation.headline(), why.join(", ")))
}

/// As in `38 too few cores, nearest agent-1: 0.5 of 1 cores, 2 s before the end`.
pub(crate) fn declined_sentence(declined: &Declined, end: Timestamp) -> String {
    let (offers, kind) = (grouped(declined.offers), declined.kind.as_str());
    let nearest = declined.nearest.as_ref().map(|miss| {
        let before = age(end.since(miss.at));
        let which = if miss.reason.is_measured() { "nearest" } else { "the last" };
        format!(", {which} {}, {before} before the end", about(miss))
    });
    printable(&format!("{offers} {kind}{}", nearest.unwrap_or_default()))
}

/// As in `agent-1: 0.5 of 1 cores`.
fn about(miss: &Miss) -> String {
    let (why, kind) = (miss.why(), miss.reason.kind().as_str());
    let colon = if why == kind { String::new() } else { format!(": {why}") };
    match (&miss.hostname, &miss.agent_id) {
        (Some(name), _) => format!("{name}{colon}"),
        (None, Some(id)) => format!("agent {id}{colon}"),
        (None, None) => why,
    }
}
