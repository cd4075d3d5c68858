//! The word that says in which state an executor is.
//!
//! ```text
//!            commit          RUNNING                     end
//! Reserved ─────────► Launching ──► Running ─────────────────────────► Vacant
//!    │                    │            │  ▲                             ▲  ▲
//!    │ commit failed      │            │  │ seen again                  │  │
//!    ▼                    │            ▼  │                             │  │
//! Vacant                  └─────────► Unreachable ───────── end ────────┘  │
//!                                      │                                   │
//!                                      │ too long                          │
//!                                      ▼                                   │
//!                                     GivenUp ────── end, forgotten ───────┘
//! ```
//!
//! The resources of an executor that was given up were released already. An executor that was given up and is seen
//! again is running if the caps have room for it.
//!
//! | bits | field of the state word | |
//! |---|---|---|
//! | 16–63 | sequence | identifies the executor: a transition for an executor that has left its cell fails |
//! | 8–15 | absences | how often it became unreachable, modulo 256: a tick gives up the absence that it saw, no later one |
//! | 5–7 | refusals | how often it came back and there was no room, modulo 8: a return that began before a refusal fails |
//! | 5–7 | fate | in `Vacant`: how the last executor ended, until the cell is freed |
//! | 4 | doubtful | |
//! | 3 | asked to end | |
//! | 0–2 | stage | |
//!
//! Wrap-around: a tick takes a later absence for the one that it saw only if the executor became unreachable exactly
//! 256 times between two steps of that tick. A return during which others were refused succeeds wrongly only if these
//! were a multiple of eight between two of its steps. Then the executor is counted, and ends by the kills that the
//! refusals asked for.

use super::absence_clock::Absence;
use crate::status::Fate;

/// The stage of an executor's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CellStage {
    /// The cell is empty. The fate says how its last executor ended, until the cell is freed.
    Vacant,
    /// Planned, not yet admitted.
    Reserved,
    /// Admitted, not yet reported running.
    Launching,
    Running,
    /// Unreachable; its resources are counted.
    Unreachable,
    /// Unreachable for too long; its resources are not counted any more.
    GivenUp,
}

/// The fate with this number. No other numbers are written.
const fn fate_from_bits(bits: u64) -> Fate {
    match bits {
        0 => Fate::Finished,
        1 => Fate::Failed,
        2 => Fate::Killed,
        3 => Fate::Lost,
        4 => Fate::Unreachable,
        _ => Fate::Alive,
    }
}

impl CellStage {
    /// The stage with this number. No other numbers are written.
    const fn from_bits(bits: u64) -> CellStage {
        match bits {
            0 => CellStage::Vacant,
            1 => CellStage::Reserved,
            2 => CellStage::Launching,
            3 => CellStage::Running,
            4 => CellStage::Unreachable,
            _ => CellStage::GivenUp,
        }
    }

    /// Whether the executor's resources are counted in the shared sums.
    pub(crate) const fn counted(self) -> bool {
        is_among(self as u64, COUNTED)
    }

    /// Whether the executor is alive and reachable as far as the cluster reported.
    pub(crate) const fn is_reachable(self) -> bool {
        matches!(self, CellStage::Launching | CellStage::Running)
    }

    /// Whether there is an executor that updates can be about.
    pub(crate) const fn live(self) -> bool {
        is_among(self as u64, LIVE)
    }
}

/// The fields of the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellState {
    pub(crate) sequence: u64,
    pub(crate) stage: CellStage,
    pub(crate) fate: Fate,
    /// It was asked to end, so its end doesn't count as a failure.
    pub(crate) asked_to_end: bool,
    /// It may be lost: reconcile it.
    pub(crate) doubtful: bool,
    /// How often it became unreachable, modulo 256.
    pub(crate) absences: u8,
    /// How often it came back and there was no room, modulo 8.
    pub(crate) refusals: u8,
}

const SEQUENCE_SHIFT: u32 = 16;
/// The largest of the 48-bit sequence numbers: at ten million executors per second they last for 326 days.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX >> SEQUENCE_SHIFT;
const STAGE_MASK: u64 = 0x7;
const ASKED_TO_END: u64 = 1 << 3;
const DOUBTFUL: u64 = 1 << 4;
/// The fate of a vacant cell, otherwise the refusals.
const FATE_SHIFT: u32 = 5;
const FATE_MASK: u64 = 0x7;
const ABSENCES_SHIFT: u32 = 8;
impl CellState {
    /// Whether a cell in this state holds the executor with `sequence`, or may have held it. Numbers in a cell only
    /// grow.
    #[inline]
    pub(crate) fn may_follow(self, sequence: u64) -> bool {
        // An unused cell has the largest number.
        sequence <= self.sequence && self.sequence < SEQUENCE_MAX
    }

    pub(crate) const fn new(sequence: u64, stage: CellStage) -> CellState {
        CellState {
            sequence,
            stage,
            fate: Fate::Alive,
            asked_to_end: false,
            doubtful: false,
            absences: 0,
            refusals: 0,
        }
    }

    /// Whether the cell is empty and doesn't say any more how its last executor ended.
    pub(crate) fn is_freed(self) -> bool {
        self.stage == CellStage::Vacant && self.fate == Fate::Alive
    }

    /// The current absence if it is unreachable, otherwise the last one.
    pub(super) fn absence(self) -> Absence {
        Absence::new(self.sequence, self.absences)
    }

    pub(super) fn pack(self) -> u64 {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let vacant = self.stage == CellStage::Vacant;
        let fate = if vacant { self.fate as u64 } else { u64::from(self.refusals) & FATE_MASK };
        self.sequence << SEQUENCE_SHIFT
            | u64::from(self.absences) << ABSENCES_SHIFT
            | fate << FATE_SHIFT
            | flag(self.doubtful, DOUBTFUL)
            | flag(self.asked_to_end, ASKED_TO_END)
            | self.stage as u64
    }

    pub(super) fn unpack(word: u64) -> CellState {
        let stage = CellStage::from_bits(word & STAGE_MASK);
        let vacant = stage == CellStage::Vacant;
        let fate = word >> FATE_SHIFT & FATE_MASK;
        CellState {
            sequence: word >> SEQUENCE_SHIFT,
            stage,
            fate: if vacant { fate_from_bits(fate) } else { Fate::Alive },
            asked_to_end: word & ASKED_TO_END != 0,
            doubtful: word & DOUBTFUL != 0,
            absences: (word >> ABSENCES_SHIFT) as u8,
            refusals: if vacant { 0 } else { fate as u8 },
        }
    }
}

/// A set of stages: a bit for the number of each.
const fn stages(stages: &[CellStage]) -> u64 {
    let (mut set, mut n) = (0, 0);
    while n < stages.len() {
        set |= 1 << stages[n] as u64;
        n += 1;
    }
    set
}

const COUNTED: u64 = stages(&[CellStage::Launching, CellStage::Running, CellStage::Unreachable]);
const LIVE: u64 = COUNTED | stages(&[CellStage::GivenUp]);
const COUNTED_AS_UNREACHABLE: u64 = stages(&[CellStage::Unreachable, CellStage::GivenUp]);

/// Whether the stage of a state word is in the set.
#[inline]
const fn is_among(word: u64, stages: u64) -> bool {
    stages >> (word & STAGE_MASK) & 1 != 0
}

/// The word of an executor that ends, if it is the one with `sequence` and updates can be about it.
#[inline]
pub(super) fn ended_word(word: u64, sequence: u64, fate: Fate) -> Option<u64> {
    const KEPT: u64 = !(STAGE_MASK | DOUBTFUL | FATE_MASK << FATE_SHIFT);
    let ended = CellStage::Vacant as u64 | (fate as u64) << FATE_SHIFT;
    (word >> SEQUENCE_SHIFT == sequence && is_among(word, LIVE)).then_some(word & KEPT | ended)
}

/// The word of a vacant cell that doesn't say any more how its last executor ended.
#[inline]
pub(super) fn without_fate(word: u64) -> u64 {
    word & !(FATE_MASK << FATE_SHIFT) | (Fate::Alive as u64) << FATE_SHIFT
}

/// The state that a report saw an executor in. It isn't unpacked: reports compare it, and ask for little of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenState(pub(super) u64);

impl SeenState {
    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> SEQUENCE_SHIFT
    }

    #[inline]
    pub(crate) fn stage(self) -> CellStage {
        CellStage::from_bits(self.0 & STAGE_MASK)
    }

    /// See [`CellStage::live`].
    #[inline]
    pub(crate) fn is_live(self) -> bool {
        is_among(self.0, LIVE)
    }
}

/// The state that an executor ended in. It isn't unpacked: an end asks for little of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(pub(super) u64);

impl Before {
    /// See [`CellStage::counted`].
    #[inline]
    pub(crate) fn counted(self) -> bool {
        is_among(self.0, COUNTED)
    }

    /// Whether it was unreachable or given up, so that the count of unreachable executors has it.
    #[inline]
    pub(crate) fn counted_as_unreachable(self) -> bool {
        is_among(self.0, COUNTED_AS_UNREACHABLE)
    }

    /// See [`CellState::asked_to_end`].
    #[inline]
    pub(crate) fn asked_to_end(self) -> bool {
        self.0 & ASKED_TO_END != 0
    }
}

impl From<CellState> for Before {
    fn from(state: CellState) -> Before {
        Before(state.pack())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const STAGES: [CellStage; 6] = [
        CellStage::Vacant,
        CellStage::Reserved,
        CellStage::Launching,
        CellStage::Running,
        CellStage::Unreachable,
        CellStage::GivenUp,
    ];
    const FATES: [Fate; 6] =
        [Fate::Finished, Fate::Failed, Fate::Killed, Fate::Lost, Fate::Unreachable, Fate::Alive];

    /// States of all stages, fates and flags. Vacant cells have fates, others have refusals.
    fn states() -> impl Iterator<Item = CellState> {
        let kinds = STAGES.into_iter().flat_map(|stage| FATES.map(|fate| (stage, fate)));
        kinds.flat_map(|kind| (0..8).map(move |flags| (kind, flags))).map(
            |((stage, fate), flags)| {
                let vacant = stage == CellStage::Vacant;
                CellState {
                    sequence: SEQUENCE_MAX - flags,
                    stage,
                    fate: if vacant { fate } else { Fate::Alive },
                    asked_to_end: flags & 1 != 0,
                    doubtful: flags & 2 != 0,
                    absences: u8::MAX - flags as u8,
                    refusals: if vacant { 0 } else { flags as u8 },
                }
            },
        )
    }

    /// Goal: packing the state word loses nothing. Method: pack and unpack each combination.
    #[test]
    fn states_survive_packing() {
        for state in states() {
            assert_eq!(CellState::unpack(state.pack()), state);
        }
    }

    /// Goal: an end changes the packed word as it would change the fields, and what is asked of the word that it found
    /// is what the fields say. Method: end an executor in each state, with each fate.
    #[test]
    fn ends_change_the_fields_that_they_should() {
        for (state, fate) in states().flat_map(|state| FATES.map(|fate| (state, fate))) {
            assert_eq!(ended_word(state.pack(), state.sequence ^ 1, fate), None);
            let ended = ended_word(state.pack(), state.sequence, fate);
            let vacant =
                CellState { stage: CellStage::Vacant, fate, doubtful: false, refusals: 0, ..state };
            let expected = state.stage.live().then_some(vacant);
            assert_eq!(ended.map(CellState::unpack), expected, "{state:?}");
            let before = Before(state.pack());
            let is_given_up = state.stage == CellStage::GivenUp;
            let is_unreachable = state.stage == CellStage::Unreachable;
            let counted = state.stage.is_reachable() || is_unreachable;
            assert_eq!((before.counted(), state.stage.counted()), (counted, counted));
            assert_eq!(state.stage.live(), counted || is_given_up);
            assert_eq!(before.counted_as_unreachable(), is_unreachable || is_given_up);
            assert_eq!(before.asked_to_end(), state.asked_to_end);
        }
    }

    /// Goal: a cell that is freed doesn't say how its last executor ended, and says all else as before. Method: each
    /// fate.
    #[test]
    fn a_freed_cell_has_no_fate() {
        for fate in (0..6).map(fate_from_bits) {
            let ended = CellState { fate, absences: 3, ..CellState::new(7, CellStage::Vacant) };
            let freed = CellState { fate: Fate::Alive, ..ended };
            assert_eq!(without_fate(ended.pack()), freed.pack());
            assert!(freed.is_freed() && CellState::unpack(freed.pack()) == freed);
        }
    }
}
