//! The clock of an absence: a word that says since when an executor is unreachable, or when it was given up.
//!
//! | bits | field | |
//! |---|---|---|
//! | 56–63 | sequence | the lower bits of the executor's sequence number |
//! | 48–55 | absence | which of its absences, modulo 256 |
//! | 0–47 | moment | in milliseconds; later times count as the last one that fits |
//!
//! Sequence and absence are the [`Absence`], which identifies what the clock measures. An executor's cell has two
//! clocks; both are used in the same steps. A thread that begins an absence, or gives an executor up,
//!
//! 1. reads the clock,
//! 2. reads the executor's state, which says whether there is anything to do, and which absence it is,
//! 3. replaces what it read in step 1, or starts again if the clock has changed since,
//! 4. changes the state if the absence is still the one of step 2; otherwise it starts again.
//!
//! So while an executor is unreachable, its clock is that of the current absence. A late thread, whose absence is over
//! or whose executor has left the cell, fails in step 3, because the thread that began a later absence has replaced the
//! clock since the late thread read it. The other case is a thread that replaces the clock after it was started for a
//! later absence and before that absence begins. In step 1 it read the later clock, so in step 2 it read a state at
//! least as new as the one that the clock's author saw; hence it is about the same absence. Of two moments for one
//! absence, the later one counts.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | update, tick | [`AbsenceClock::read`]: load, step 1 | Acquire | `start`: the state of step 2 is as new as its author saw |
//! | update, tick | [`AbsenceClock::start`]: compare-exchange, step 3 | Release | `read`; the change of state publishes it, too |
//! | tick | [`AbsenceClock::age`]: load | Relaxed | the state, read before with Acquire, says which absence it must be |
//!
//! A wrap-around is harmless in practice. In step 3 a thread mistakes the clock for the one of step 1 only if it was
//! replaced and has the same 64 bits again. That takes 256 absences of one executor, or another executor in the cell
//! whose number differs by a multiple of 256, in an absence of the same number; and in both cases the absence must
//! begin in the very millisecond that the clock showed before. In step 4 the state has the whole sequence number, so
//! that only exactly 256 absences of one executor between two steps of one thread go unnoticed.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

const ABSENCE_SHIFT: u32 = 48;
/// The last moment that fits, 8900 years after the origin, in milliseconds.
const MOMENT_MAX: u64 = (1 << ABSENCE_SHIFT) - 1;

/// Identifies an absence: its number and the lower bits of the executor's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence(u16);

impl Absence {
    pub(crate) const fn new(sequence: u64, absences: u8) -> Absence {
        Absence((sequence as u8 as u16) << 8 | absences as u16)
    }
}

/// The value of a clock that a thread has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading(u64);

impl ClockReading {
    const fn new(absence: Absence, moment: u64) -> ClockReading {
        ClockReading((absence.0 as u64) << ABSENCE_SHIFT | moment)
    }

    const fn absence(self) -> Absence {
        Absence((self.0 >> ABSENCE_SHIFT) as u16)
    }

    const fn moment(self) -> u64 {
        self.0 & MOMENT_MAX
    }
}

/// The clock's word.
#[derive(Debug)]
pub(crate) struct AbsenceClock(AtomicU64);

impl AbsenceClock {
    pub(crate) fn new() -> AbsenceClock {
        AbsenceClock(AtomicU64::new(0))
    }

    /// Step 1: reads the value that [`AbsenceClock::start`] has to find. The state must be read after it.
    pub(crate) fn read(&self) -> ClockReading {
        // Acquire: pairs with the Release of `start`.
        ClockReading(self.0.load(Ordering::Acquire))
    }

    /// Step 3: starts the clock for `absence`, unless it has changed since `read`. Returns whether it started.
    pub(crate) fn start(&self, read: ClockReading, absence: Absence, now: Timestamp) -> bool {
        let moment = now.as_millis().min(MOMENT_MAX);
        let earlier = if read.absence() == absence { read.moment() } else { 0 };
        let started = ClockReading::new(absence, moment.max(earlier));
        // Release: pairs with the Acquire of `read`. Relaxed on failure: the caller reads again.
        self.0.compare_exchange(read.0, started.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// How long ago the clock was started for `absence`. None if it is another absence's; then this one is over.
    pub(crate) fn age(&self, absence: Absence, now: Timestamp) -> Option<Duration> {
        // Relaxed: published by the state that the caller has read.
        let reading = ClockReading(self.0.load(Ordering::Relaxed));
        let age = now.as_millis().min(MOMENT_MAX).saturating_sub(reading.moment());
        (reading.absence() == absence).then_some(Duration::from_millis(age))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn started(absence: Absence, now: Timestamp) -> AbsenceClock {
        let clock = AbsenceClock::new();
        assert!(clock.start(clock.read(), absence, now));
        clock
    }

    /// Goal: packing loses nothing that fits. Method: the extremes of each field.
    #[test]
    fn readings_survive_packing() {
        for sequence in [0, 1, 0xff, u64::MAX] {
            for absences in [0, 1, 0xff] {
                for moment in [0, 1, MOMENT_MAX] {
                    let absence = Absence::new(sequence, absences);
                    let reading = ClockReading::new(absence, moment);
                    assert_eq!((reading.absence(), reading.moment()), (absence, moment));
                }
            }
        }
    }

    /// Goal: neighbouring absences differ, and they wrap as documented. Method: absences and executors that differ by
    /// one, and by 256.
    #[test]
    fn absences_differ_up_to_256() {
        let absence = Absence::new(7, 255);
        assert_ne!(absence, Absence::new(7, 255u8.wrapping_add(1)));
        assert_ne!(absence, Absence::new(8, 255));
        assert_ne!(Absence::new(7, 0), Absence::new(8, 0));
        assert_eq!(absence, Absence::new(7 + 256, 255));
    }

    /// Goal: a clock has no age for another absence. Method: ask for the ages of its neighbours.
    #[test]
    fn the_age_is_of_the_absence_that_was_asked_for() {
        let clock = started(Absence::new(7, 2), at(1000));
        assert_eq!(clock.age(Absence::new(7, 2), at(1500)), Some(Duration::from_millis(500)));
        assert_eq!(clock.age(Absence::new(7, 2), at(500)), Some(Duration::ZERO));
        assert_eq!(clock.age(Absence::new(7, 1), at(1500)), None);
        assert_eq!(clock.age(Absence::new(8, 2), at(1500)), None);
    }

    /// Goal: a late thread changes nothing; of two moments of one absence the later one counts; a new absence may begin
    /// at any moment, even an earlier one. Method: each in turn.
    #[test]
    fn a_clock_is_replaced_only_as_it_was_read() {
        let clock = started(Absence::new(7, 1), at(1000));
        let late = clock.read();
        assert!(clock.start(clock.read(), Absence::new(7, 2), at(2500)));
        assert!(!clock.start(late, Absence::new(7, 2), at(1000)));
        assert!(clock.start(clock.read(), Absence::new(7, 2), at(2000)));
        assert_eq!(clock.age(Absence::new(7, 2), at(3000)), Some(Duration::from_millis(500)));
        assert!(clock.start(clock.read(), Absence::new(8, 1), at(10)));
        assert_eq!(clock.age(Absence::new(8, 1), at(20)), Some(Duration::from_millis(10)));
    }

    /// Goal: moments that don't fit stop the clock and change no other field, so that nothing is given up early.
    /// Method: the end of time, and the last moment that fits.
    #[test]
    fn the_end_of_time_stands_still() {
        let absence = Absence::new(7, 1);
        for lost in [Timestamp::MAX, at(MOMENT_MAX + 1), at(MOMENT_MAX)] {
            let clock = started(absence, lost);
            assert_eq!(clock.age(absence, Timestamp::MAX), Some(Duration::ZERO));
            assert_eq!(clock.age(absence, at(0)), Some(Duration::ZERO));
        }
        let clock = started(absence, at(0));
        assert_eq!(clock.age(absence, Timestamp::MAX), Some(Duration::from_millis(MOMENT_MAX)));
    }
}
