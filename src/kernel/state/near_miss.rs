//! Near misses: for each kind of reason, the declined offer that came nearest to being used, in numbers.
//!
//! Each handler has one cell per kind, which only it writes and any thread reads. The orderings are in
//! [`seqlock`](crate::kernel::state::seqlock); there are no other shared words here. A handler writes a cell rarely: if
//! an offer came nearer than the recorded one, or if the recorded one is [`WINDOW_MS`] old or of other settings. A cell
//! is allocated with the first miss of its kind.
//!
//! | words of a cell | content |
//! |---|---|
//! | 0 | the settings in force then: [`Policy::config_version`](crate::kernel::state::policy::Policy) |
//! | 1 | when, in milliseconds |
//! | 2–4 | the numbers of the reason |
//! | 5 and following | the agent's id: its length in bytes and whether it was truncated, then its beginning |
//! | the rest | the host name, likewise |
//!
//! The nearest miss for lack of cores, memory or GPUs is the one that offered most; for excluded or suspect agents, the
//! one that is available first; otherwise the last one.

use std::array;
use std::cmp::Reverse;
use std::time::Duration;

use crate::config::QueueId;
use crate::constraint::{Mismatch, Unmet};
use crate::sync::UntrackedOnceLock;

use super::seqlock::Seqlock;
use crate::kernel::reason::{Decline, Reason, ReasonKind};
use crate::offer::Offer;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// How long a miss stays the nearest while others follow it, in milliseconds; compared once per batch.
const WINDOW_MS: u64 = 10_000;
/// A miss as near as the recorded one replaces it if that is this old, in milliseconds.
const REFRESH_MS: u64 = 1_000;

const KINDS: usize = ReasonKind::ALL.len();
/// The words for a text and its length. Few under model checkers, for which each word is a step.
const TEXT_WORDS: usize = if cfg!(any(shuttle, all(loom, test))) { 2 } else { 9 };
/// The number of bytes that are kept of a text.
const TEXT_BYTES: usize = (TEXT_WORDS - 1) * 8;
/// Where the agent's id and the host name begin.
const ID_AT: usize = 5;
const HOSTNAME_AT: usize = ID_AT + TEXT_WORDS;
const WORDS: usize = HOSTNAME_AT + TEXT_WORDS;
/// Marks a text that was truncated, above its length.
const CUT: u64 = 1 << 32;

/// Where the number of a queue begins, above what it holds.
const QUEUE_SHIFT: u32 = 56;

/// The numbers of a reason.
type Numbers = [u64; 3];

/// A miss, decoded from its cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NearMiss {
    pub(crate) config_version: u64,
    pub(crate) at: Timestamp,
    /// When the last of those was recorded that it is the nearest of, in force then as it was.
    newest: Timestamp,
    pub(crate) reason: Reason,
    /// None if the reason doesn't concern the agent.
    pub(crate) agent_id: Option<Box<str>>,
    /// None also if the agent has no host name.
    pub(crate) hostname: Option<Box<str>>,
}

/// The batch to which misses belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchContext<'a> {
    pub(crate) offers: &'a [Offer<'a>],
    pub(crate) config_version: u64,
    pub(crate) now: Timestamp,
}

/// The cells of one handler.
#[derive(Debug)]
pub(crate) struct NearMisses([UntrackedOnceLock<Box<Seqlock<WORDS>>>; KINDS]);

impl Default for NearMisses {
    fn default() -> NearMisses {
        NearMisses(array::from_fn(|_| UntrackedOnceLock::new()))
    }
}

/// The cell of a miss.
#[cfg(all(counting, test))]
pub(crate) type MissCell = Seqlock<WORDS>;

impl NearMisses {
    #[cfg(all(counting, test))]
    pub(crate) fn cells(&self) -> impl Iterator<Item = &MissCell> {
        self.0.iter().filter_map(|cell| cell.get().map(|cell| &**cell))
    }

    /// Records the nearest of `declines`, which are all of one kind, if it is nearer than the recorded one. With
    /// `alike`, they are equal in their numbers, too. Only the handler that owns the cells calls this.
    pub(crate) fn record(
        &self,
        kind: ReasonKind,
        declines: &[Decline],
        alike: bool,
        batch: &BatchContext<'_>,
    ) {
        let Some(last) = declines.last() else { return };
        let nearest = if alike || !last.reason.is_measured() {
            last
        } else {
            declines.iter().max_by_key(|decline| nearness(&decline.reason)).unwrap_or(last)
        };
        let cell = self.0[kind as usize].get_or_init(Box::default);
        if replaces(cell, &nearest.reason, batch) {
            write(cell, nearest, batch);
        }
    }

    /// Whether the recorded miss of this kind is so new that the same one, under the same settings, doesn't replace it.
    /// Only the handler that owns the cells calls this, and it knows that numbers and settings are the same.
    #[inline]
    pub(crate) fn is_fresh(&self, kind: ReasonKind, now: Timestamp) -> bool {
        let cell = self.0[kind as usize].get();
        let Some([_, at]) = cell.and_then(|cell| cell.own()) else { return false };
        // If the clock was put back, it is replaced.
        now.as_millis().checked_sub(at).is_some_and(|age| age < REFRESH_MS)
    }

    /// Returns the miss of this kind.
    pub(crate) fn read(&self, kind: ReasonKind) -> Option<NearMiss> {
        let words = self.0[kind as usize].get()?.read()?;
        let [config_version, at, a, b, c, ..] = words;
        let at = Timestamp::from_millis(at);
        let reason = decode(kind, [a, b, c]);
        let [agent_id, hostname] = [ID_AT, HOSTNAME_AT].map(|from| get_text(&words[from..]));
        Some(NearMiss { config_version, at, newest: at, reason, agent_id, hostname })
    }
}

/// Whether a miss replaces the recorded one.
fn replaces(cell: &Seqlock<WORDS>, reason: &Reason, batch: &BatchContext<'_>) -> bool {
    let Some([config_version, at, a, b, c]) = cell.own() else { return true };
    let now = batch.now.as_millis();
    // If the clock was put back, a recorded miss lies in the future and is replaced.
    if config_version != batch.config_version || now < at || now - at >= WINDOW_MS {
        return true;
    }
    let age = now - at;
    if !reason.is_measured() {
        return age >= REFRESH_MS || reason.is_cap() && encode(reason) != [a, b, c];
    }
    let recorded = decode(reason.kind(), [a, b, c]);
    let near = nearness(reason);
    let recorded_near = nearness(&recorded);
    near > recorded_near
        || near == recorded_near && age >= REFRESH_MS
        || is_over(&recorded, batch.now)
}

#[cold]
fn write(cell: &Seqlock<WORDS>, miss: &Decline, batch: &BatchContext<'_>) {
    let [a, b, c] = encode(&miss.reason);
    let mut words = [0; WORDS];
    words[..ID_AT].copy_from_slice(&[batch.config_version, batch.now.as_millis(), a, b, c]);
    if let Some(offer) = batch.offers.get(miss.offer as usize)
        && is_about_an_agent(&miss.reason)
    {
        put_text(&mut words[ID_AT..HOSTNAME_AT], offer.agent_id);
        put_text(&mut words[HOSTNAME_AT..], offer.hostname);
    }
    cell.write(&words);
}

/// Writes the length of a text and its beginning.
fn put_text(words: &mut [u64], text: &str) {
    let mut length = text.len().min(TEXT_BYTES);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    let Some((head, words)) = words.split_first_mut() else { return };
    *head = length as u64 | if length < text.len() { CUT } else { 0 };
    for (word, bytes) in words.iter_mut().zip(text.as_bytes()[..length].chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
}

/// Reads what [`put_text`] wrote, with a mark if it was truncated; `None` if it is empty.
fn get_text(words: &[u64]) -> Option<Box<str>> {
    let (head, words) = words.split_first().filter(|(head, _)| **head > 0)?;
    let bytes: Vec<u8> =
        words.iter().take(TEXT_WORDS - 1).flat_map(|word| word.to_le_bytes()).collect();
    let kept = bytes.get(..(head & !CUT) as usize).unwrap_or(&bytes);
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if head & CUT != 0 {
        text.push('…');
    }
    Some(text.into())
}

/// Returns the nearest of several handlers' misses, among those under the latest settings that are less than
/// [`WINDOW_MS`] older than the newest. It says when that was, so that a handler that leaves takes nothing with it.
pub(crate) fn nearest(recorded: impl Iterator<Item = NearMiss>) -> Option<NearMiss> {
    let recorded: Vec<NearMiss> = recorded.collect();
    let config_version = recorded.iter().map(|recorded| recorded.config_version).max()?;
    let in_force = || recorded.iter().filter(|recorded| recorded.config_version == config_version);
    let newest = in_force().map(|recorded| recorded.newest).max()?;
    let window = Duration::from_millis(WINDOW_MS);
    let recent = in_force().filter(|recorded| newest.since(recorded.at) < window);
    // Of equally near ones the newest. The id makes the result independent of the order of handlers.
    recent
        .max_by_key(|recorded| {
            (nearness(&recorded.reason), recorded.at, Reverse(&recorded.agent_id))
        })
        .map(|nearest| NearMiss { newest, ..nearest.clone() })
}

/// How near a miss is, compared with others of its kind.
pub(crate) fn nearness(reason: &Reason) -> u64 {
    match reason {
        Reason::Cpus { offered, .. } => offered.millis(),
        Reason::Memory { offered, .. } => offered.get(),
        Reason::Gpus { offered, .. } => u64::from(offered.get()),
        Reason::AgentExcluded { until } | Reason::AgentSuspect { until } => {
            u64::MAX - until.as_millis()
        }
        _ => 0,
    }
}

/// Whether the exclusion, suspicion or wait has ended.
pub(crate) fn is_over(reason: &Reason, now: Timestamp) -> bool {
    match reason {
        Reason::AgentExcluded { until }
        | Reason::AgentSuspect { until }
        | Reason::Locality { until } => *until <= now,
        _ => false,
    }
}

fn is_about_an_agent(reason: &Reason) -> bool {
    !reason.is_cap() && !matches!(reason, Reason::Stopping | Reason::Disconnected)
}

fn encode(reason: &Reason) -> Numbers {
    match *reason {
        Reason::ExecutorLimit { limit } => [u64::from(limit), 0, 0],
        Reason::CoreCap { cap, acquired, asked } => [cap, acquired, asked].map(MilliCpus::millis),
        Reason::GpuCap { cap, acquired, asked } => {
            [cap, acquired, asked].map(|gpus| u64::from(gpus.get()))
        }
        Reason::AgentExcluded { until }
        | Reason::AgentSuspect { until }
        | Reason::Locality { until } => [until.as_millis(), 0, 0],
        Reason::AgentMaintenance { begins_in } => {
            [u64::try_from(begins_in.as_millis()).unwrap_or(u64::MAX), 0, 0]
        }
        Reason::Cpus { asked, offered } => [asked.millis(), offered.millis(), 0],
        Reason::Memory { asked, offered } => [asked.get(), offered.get(), 0],
        Reason::Gpus { asked, offered } => [u64::from(asked.get()), u64::from(offered.get()), 0],
        Reason::Port { port } => [u64::from(port), 0, 0],
        Reason::ConstraintUnmet(Unmet { condition, mismatch }) => {
            [u64::from(condition), mismatch as u64, 0]
        }
        // A queue's number is above what it holds.
        Reason::QueueCores { queue, most, held, asked } => [
            most.millis(),
            held.millis() | u64::from(queue.number()) << QUEUE_SHIFT,
            asked.millis(),
        ],
        Reason::QueueMemory { queue, most, held, asked } => {
            [most.get(), held.get() | u64::from(queue.number()) << QUEUE_SHIFT, asked.get()]
        }
        Reason::QueueGuarantees { queue } => [u64::from(queue.number()), 0, 0],
        Reason::Stopping
        | Reason::Disconnected
        | Reason::Malformed
        | Reason::AgentFull
        | Reason::Contended
        | Reason::NotPicked => [0; 3],
    }
}

fn decode_queue(kind: ReasonKind, [most, held, asked]: Numbers) -> Reason {
    let queue = QueueId::new((held >> QUEUE_SHIFT) as u8);
    let held = held & ((1 << QUEUE_SHIFT) - 1);
    if kind == ReasonKind::QueueCores {
        let [most, held, asked] = [most, held, asked].map(MilliCpus::from_millis);
        return Reason::QueueCores { queue, most, held, asked };
    }
    let [most, held, asked] = [most, held, asked].map(Mebibytes::new);
    Reason::QueueMemory { queue, most, held, asked }
}

/// Reverses [`encode`].
fn decode(kind: ReasonKind, numbers: Numbers) -> Reason {
    let [a, b, _] = numbers;
    let gpus = |number: u64| Gpus::new(u32::try_from(number).unwrap_or(u32::MAX));
    match kind {
        ReasonKind::Stopping => Reason::Stopping,
        ReasonKind::Disconnected => Reason::Disconnected,
        ReasonKind::Malformed => Reason::Malformed,
        ReasonKind::ConstraintUnmet | ReasonKind::ConstraintIncomparable => {
            let known = usize::try_from(b).ok().and_then(|number| Mismatch::ALL.get(number));
            let mismatch = known.copied().unwrap_or(Mismatch::Differs);
            let condition = u32::try_from(a).unwrap_or(u32::MAX);
            Reason::ConstraintUnmet(Unmet { condition, mismatch })
        }
        ReasonKind::ExecutorLimit => {
            Reason::ExecutorLimit { limit: u32::try_from(a).unwrap_or(u32::MAX) }
        }
        ReasonKind::CoreCap => {
            let [cap, acquired, asked] = numbers.map(MilliCpus::from_millis);
            Reason::CoreCap { cap, acquired, asked }
        }
        ReasonKind::GpuCap => {
            let [cap, acquired, asked] = numbers.map(gpus);
            Reason::GpuCap { cap, acquired, asked }
        }
        ReasonKind::AgentExcluded => Reason::AgentExcluded { until: Timestamp::from_millis(a) },
        ReasonKind::AgentSuspect => Reason::AgentSuspect { until: Timestamp::from_millis(a) },
        ReasonKind::AgentMaintenance => {
            Reason::AgentMaintenance { begins_in: Duration::from_millis(a) }
        }
        ReasonKind::AgentFull => Reason::AgentFull,
        ReasonKind::Cpus => {
            let [asked, offered] = [a, b].map(MilliCpus::from_millis);
            Reason::Cpus { asked, offered }
        }
        ReasonKind::Memory => {
            let [asked, offered] = [a, b].map(Mebibytes::new);
            Reason::Memory { asked, offered }
        }
        ReasonKind::Gpus => {
            let [asked, offered] = [a, b].map(gpus);
            Reason::Gpus { asked, offered }
        }
        ReasonKind::Port => Reason::Port { port: u16::try_from(a).unwrap_or(u16::MAX) },
        ReasonKind::Contended => Reason::Contended,
        ReasonKind::Locality => Reason::Locality { until: Timestamp::from_millis(a) },
        ReasonKind::NotPicked => Reason::NotPicked,
        ReasonKind::QueueCores | ReasonKind::QueueMemory => decode_queue(kind, numbers),
        ReasonKind::QueueGuarantees => Reason::QueueGuarantees { queue: QueueId::new(a as u8) },
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::limits;

    const REASONS: [Reason; 22] = [
        Reason::Stopping,
        Reason::Disconnected,
        Reason::Malformed,
        Reason::ConstraintUnmet(Unmet { condition: 7, mismatch: Mismatch::Excluded }),
        Reason::ConstraintUnmet(Unmet { condition: u32::MAX, mismatch: Mismatch::Incomparable }),
        Reason::ExecutorLimit { limit: 7 },
        Reason::CoreCap {
            cap: MilliCpus::from_millis(1),
            acquired: MilliCpus::from_millis(u64::MAX),
            asked: MilliCpus::from_millis(3),
        },
        Reason::GpuCap { cap: Gpus::new(1), acquired: Gpus::new(u32::MAX), asked: Gpus::new(3) },
        Reason::AgentExcluded { until: Timestamp::MAX },
        Reason::AgentSuspect { until: Timestamp::from_millis(5) },
        Reason::AgentMaintenance { begins_in: Duration::from_millis(77) },
        Reason::AgentFull,
        Reason::Cpus { asked: MilliCpus::from_millis(1), offered: MilliCpus::from_millis(2) },
        Reason::Memory { asked: Mebibytes::new(1), offered: Mebibytes::new(2) },
        Reason::Gpus { asked: Gpus::new(1), offered: Gpus::new(2) },
        Reason::Port { port: u16::MAX },
        Reason::Contended,
        Reason::Locality { until: Timestamp::from_millis(u64::MAX - 1) },
        Reason::NotPicked,
        Reason::QueueCores {
            queue: QueueId::new(63),
            most: MilliCpus::from_millis(1),
            held: limits::TOTAL_CORES_MAX,
            asked: MilliCpus::from_millis(3),
        },
        Reason::QueueMemory {
            queue: QueueId::new(u8::MAX),
            most: Mebibytes::new(1),
            held: limits::QUEUE_MEMORY_MAX,
            asked: Mebibytes::new(3),
        },
        Reason::QueueGuarantees { queue: QueueId::new(5) },
    ];

    fn record(
        near_misses: &NearMisses,
        agent: &str,
        reason: Reason,
        config_version: u64,
        now: u64,
    ) {
        let offers = [Offer::new("o", agent, "host", &[], &[])];
        let decline = Decline { offer: 0, reason, refuse: Duration::ZERO };
        let batch =
            BatchContext { offers: &offers, config_version, now: Timestamp::from_millis(now) };
        near_misses.record(decline.reason.kind(), &[decline], false, &batch);
    }

    /// Goal: what is recorded is what is read, for each kind. Method: record and read one of each.
    #[test]
    fn each_reason_reads_back() {
        let near_misses = NearMisses::default();
        for (reason, kind) in REASONS.into_iter().zip(ReasonKind::ALL) {
            assert_eq!((reason.kind(), near_misses.read(kind)), (kind, None));
            record(&near_misses, "S1", reason, 9, 1234);
            let agent_id = is_about_an_agent(&reason).then(|| "S1".into());
            let hostname = is_about_an_agent(&reason).then(|| "host".into());
            let at = Timestamp::from_millis(1234);
            assert_eq!(
                near_misses.read(kind),
                Some(NearMiss { config_version: 9, at, newest: at, reason, agent_id, hostname })
            );
        }
    }

    /// Goal: an id of any length is kept, or truncated between characters and marked. Method: lengths around the
    /// maximum, of characters of one to four bytes.
    #[test]
    fn long_ids_are_cut_between_letters() {
        for letter in ["a", "ä", "€", "🦀"] {
            for letters in 1..=TEXT_BYTES + 1 {
                let near_misses = NearMisses::default();
                let id = letter.repeat(letters);
                record(&near_misses, &id, Reason::AgentFull, 0, 0);
                let read =
                    near_misses.read(ReasonKind::AgentFull).and_then(|recorded| recorded.agent_id);
                let read = read.unwrap();
                if id.len() <= TEXT_BYTES {
                    assert_eq!(*read, *id);
                } else {
                    let kept = read.strip_suffix('…').unwrap();
                    assert!(
                        id.starts_with(kept) && kept.len() > TEXT_BYTES - letter.len(),
                        "{read}"
                    );
                }
            }
        }
    }

    /// Goal: the recorded miss is replaced when it should be and not otherwise. Method: a history, and what is recorded
    /// after each of its misses.
    #[test]
    fn the_nearest_stays_for_a_while() {
        let near_misses = NearMisses::default();
        let memory =
            |offered| Reason::Memory { asked: Mebibytes::new(9), offered: Mebibytes::new(offered) };
        for (offered, config_version, now, recorded) in [
            (3, 0, 0, (3, 0)),
            (2, 0, 100, (3, 0)),
            (3, 0, 999, (3, 0)),
            (4, 0, 1_000, (4, 1_000)),
            (4, 0, 2_000, (4, 2_000)),
            (3, 0, 11_999, (4, 2_000)),
            (3, 0, 12_000, (3, 12_000)),
            (1, 1, 12_001, (1, 12_001)),
        ] {
            record(&near_misses, "S1", memory(offered), config_version, now);
            let is = near_misses.read(ReasonKind::Memory).unwrap();
            assert_eq!(
                (is.reason, is.at.as_millis()),
                (memory(recorded.0), recorded.1),
                "at {now}"
            );
        }
        let excluded = |until| Reason::AgentExcluded { until: Timestamp::from_millis(until) };
        for (until, now, recorded) in
            [(500, 0, 500), (400, 1, 400), (600, 2, 400), (600, 400, 600), (700, 401, 600)]
        {
            record(&near_misses, "S1", excluded(until), 0, now);
            assert_eq!(
                near_misses.read(ReasonKind::AgentExcluded).unwrap().reason,
                excluded(recorded)
            );
        }
    }

    /// Goal: as much of a text is kept as is documented. Method: the longest id that is kept whole, and longer ones.
    #[test]
    fn sixty_four_bytes_are_kept() {
        for (letters, ends) in [(64, "x"), (65, "x…"), (80, "x…")] {
            let near_misses = NearMisses::default();
            record(&near_misses, &"x".repeat(letters), Reason::AgentFull, 0, 0);
            let read = near_misses.read(ReasonKind::AgentFull).unwrap();
            assert_eq!(read.agent_id.as_deref(), Some(&*format!("{}{ends}", "x".repeat(63))));
            assert_eq!(read.hostname.as_deref(), Some("host"));
        }
    }

    /// Goal: a miss that isn't measured is replaced by one as near only if it is old, or is a cap's with other numbers.
    /// Method: pairs of misses, how much later the second is, and whether it is recorded.
    #[test]
    fn caps_are_replaced_by_other_caps() {
        let cap = |numbers: [u64; 3]| {
            let [cap, acquired, asked] = numbers.map(MilliCpus::from_millis);
            Reason::CoreCap { cap, acquired, asked }
        };
        let unmet =
            |condition| Reason::ConstraintUnmet(Unmet { condition, mismatch: Mismatch::Differs });
        for (first, second, later, is_replaced) in [
            (cap([5, 6, 7]), cap([5, 6, 7]), 999, false),
            (cap([5, 6, 7]), cap([5, 6, 7]), 1_000, true),
            (cap([1, 6, 7]), cap([2, 6, 7]), 1, true),
            (cap([5, 1, 7]), cap([5, 2, 7]), 1, true),
            (cap([5, 6, 1]), cap([5, 6, 2]), 1, true),
            // Numbers that differ by the same bits.
            (cap([1, 1, 7]), cap([2, 2, 7]), 1, true),
            (cap([5, 1, 1]), cap([5, 2, 2]), 1, true),
            (cap([1, 6, 1]), cap([2, 6, 2]), 1, true),
            (unmet(1), unmet(2), 999, false),
            (unmet(1), unmet(2), 1_000, true),
            (unmet(1), unmet(1), 1_000, true),
        ] {
            let near_misses = NearMisses::default();
            let began = 1_700_000_000_000;
            record(&near_misses, "S1", first, 0, began);
            record(&near_misses, "S2", second, 0, began + later);
            let read = near_misses.read(first.kind()).unwrap();
            let (reason, at) = if is_replaced { (second, began + later) } else { (first, began) };
            assert_eq!((read.reason, read.at.as_millis()), (reason, at), "{first:?} {second:?}");
        }
    }

    /// Goal: with the times of a real clock, the nearest miss stays as long. Method: pairs of misses a while apart,
    /// and whether the second is recorded.
    #[test]
    fn the_nearest_stays_at_real_times() {
        let began = 1_700_000_000_000;
        let gpus = |offered| Reason::Gpus { asked: Gpus::new(9), offered: Gpus::new(offered) };
        let until = |after| Timestamp::from_millis(began + after);
        let excluded = |after| Reason::AgentExcluded { until: until(after) };
        let suspect = |after| Reason::AgentSuspect { until: until(after) };
        for (first, second, later, is_replaced) in [
            (gpus(3), gpus(2), 9_999, false),
            (gpus(3), gpus(2), 10_000, true),
            (gpus(3), gpus(4), 1, true),
            (excluded(60_001), excluded(60_000), 1, true),
            (excluded(60_000), excluded(60_001), 1_000, false),
            (suspect(60_001), suspect(60_000), 1, true),
            (suspect(60_000), suspect(60_001), 1_000, false),
        ] {
            let near_misses = NearMisses::default();
            record(&near_misses, "S1", first, 0, began);
            record(&near_misses, "S2", second, 0, began + later);
            let read = near_misses.read(first.kind()).unwrap().reason;
            assert_eq!(read, if is_replaced { second } else { first }, "{first:?} {second:?}");
        }
    }

    /// Goal: of several handlers' misses, one that is ten seconds older than the newest doesn't count. Method: two
    /// handlers, of which the first recorded the nearer one just within that time, and at its end.
    #[test]
    fn old_misses_of_other_handlers_do_not_count() {
        let gpus = |offered| Reason::Gpus { asked: Gpus::new(9), offered: Gpus::new(offered) };
        for (later, nearer) in [(9_999, gpus(3)), (10_000, gpus(2))] {
            let handlers = [NearMisses::default(), NearMisses::default()];
            record(&handlers[0], "S1", gpus(3), 0, 5);
            record(&handlers[1], "S2", gpus(2), 0, 5 + later);
            let read = handlers.iter().filter_map(|misses| misses.read(ReasonKind::Gpus));
            assert_eq!(nearest(read).unwrap().reason, nearer);
        }
    }
}
