//! Permits: the offers of this manager. Each allows the creation of one pod, on any node.
//!
//! As many are open as executors are wanted, within these bounds:
//!
//! * Permits that are open and pods that are being created fit into a *window*. It begins at one, grows by one with
//!   each pod that was created, and shrinks to one when the server denies a pod. So creations run side by side when
//!   all goes well, and few are denied when a quota is full.
//! * After a denial no permit is opened for a while: 1 s, then twice as long each time, at most 60 s, until a pod was
//!   created. If one of the own pods ends, which frees what it used, the wait ends.
//! * Pods that wait for a node or start count towards a maximum, because schedulers slow down with each.
//! * Pods of a former run that are being deleted take the room of executors that are wanted, until they are gone.
//! * A permit that was answered isn't opened again at once: the number that is wanted is known only a moment later. One
//!   that was declined is opened again after the time that the decline names, when more is wanted, or with a revival.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long a permit that was accepted counts as wanted no more, unless the engine says what it wants before.
const ANSWERED_HOLD: Duration = Duration::from_secs(1);

/// The first wait after a denial.
const DENIED_FIRST: Duration = Duration::from_secs(1);

/// The longest wait after a denial.
const DENIED_LONGEST: Duration = Duration::from_secs(60);

/// The bounds on permits.
#[derive(Clone, Copy, Debug)]
pub(super) struct PermitLimits {
    /// The maximum number of open permits and creations in flight.
    pub(super) window_max: usize,
    /// The maximum number of pods that were created and don't run yet.
    pub(super) pending_max: usize,
}

/// The open permits, and when others may be opened.
#[derive(Debug)]
pub(super) struct Permits {
    limits: PermitLimits,
    /// The number of executors that are wanted.
    wanted: usize,
    /// How many of them must wait for pods that are being deleted.
    leaving: usize,
    is_suppressed: bool,
    open: HashSet<u64>,
    next: u64,
    window: usize,
    /// Until when permits that were answered aren't opened again: one time for each.
    held: Vec<Instant>,
    closed_until: Option<Instant>,
    pause: Duration,
}

impl Permits {
    pub(super) fn new(limits: PermitLimits) -> Permits {
        Permits {
            limits,
            wanted: 0,
            leaving: 0,
            is_suppressed: false,
            open: HashSet::new(),
            next: 0,
            window: 1,
            held: Vec::new(),
            closed_until: None,
            pause: Duration::ZERO,
        }
    }

    /// Sets how many executors are wanted. Returns the permits that are too many and aren't open any more.
    pub(super) fn request(&mut self, executors: u32) -> Vec<u64> {
        self.wanted = executors as usize;
        self.held.clear();
        let surplus = self.open.len().saturating_sub(self.wanted);
        let surplus: Vec<u64> = self.open.iter().copied().take(surplus).collect();
        surplus.iter().for_each(|id| {
            self.open.remove(id);
        });
        surplus
    }

    /// Sets how many pods of a former run are being deleted and still take room.
    pub(super) fn set_leaving(&mut self, pods: usize) {
        self.leaving = pods;
    }

    /// Opens the permits that may be opened now. `creating` and `pending` are the numbers of pods that are being
    /// created, and that were created and don't run yet.
    pub(super) fn open(&mut self, creating: usize, pending: usize, now: Instant) -> Vec<u64> {
        self.held.retain(|until| *until > now);
        if self.is_suppressed || self.closed_until.is_some_and(|until| until > now) {
            return Vec::new();
        }
        self.closed_until = None;
        let open = self.open.len();
        let wanted = self.wanted.saturating_sub(self.held.len() + self.leaving);
        let room = self.window.saturating_sub(creating);
        let pending_room = self.limits.pending_max.saturating_sub(creating + pending);
        let count = wanted.min(room).min(pending_room).saturating_sub(open);
        let opened: Vec<u64> = (self.next..).take(count).collect();
        self.next += count as u64;
        self.open.extend(&opened);
        opened
    }

    /// When permits may be opened that can't be now, if nothing else happens.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let held = self.held.iter().min().copied();
        if self.wanted == 0 || self.is_suppressed {
            return None;
        }
        match (self.closed_until, held) {
            (Some(closed), _) => Some(closed),
            (None, held) => held,
        }
    }

    /// Closes a permit that was accepted. False if it wasn't open.
    pub(super) fn accept(&mut self, id: u64, now: Instant) -> bool {
        let was_open = self.open.remove(&id);
        if was_open {
            self.held.push(now + ANSWERED_HOLD);
        }
        was_open
    }

    /// Closes a permit that was declined for some time.
    pub(super) fn decline(&mut self, id: u64, refuse: Duration, now: Instant) {
        if self.open.remove(&id) {
            let refuse = refuse.clamp(ANSWERED_HOLD, Duration::from_secs(24 * 3600));
            self.held.push(now + refuse);
        }
    }

    /// Opens no permits until [`Permits::revive`].
    pub(super) fn suppress(&mut self) {
        self.is_suppressed = true;
    }

    /// Opens permits again, those that were declined among them.
    pub(super) fn revive(&mut self) {
        self.is_suppressed = false;
        self.held.clear();
    }

    /// A pod was created.
    pub(super) fn created(&mut self) {
        self.window = (self.window + 1).min(self.limits.window_max);
        if self.closed_until.is_none() {
            self.pause = Duration::ZERO;
        }
    }

    /// The server has denied a pod. Returns the open permits, which aren't open any more. Denials of pods that were
    /// being created when the first came don't make the wait longer.
    pub(super) fn denied(&mut self, now: Instant) -> Vec<u64> {
        self.window = 1;
        if self.closed_until.is_none_or(|until| until <= now) {
            self.pause = (self.pause * 2).clamp(DENIED_FIRST, DENIED_LONGEST);
            self.closed_until = Some(now + self.pause);
        }
        self.void()
    }

    /// One of the own pods has ended.
    pub(super) fn ended(&mut self) {
        self.closed_until = None;
    }

    /// A new subscription begins: with permits, none of which was answered yet.
    pub(super) fn begin_subscription(&mut self) {
        self.revive();
        self.open.clear();
    }

    /// Closes all permits, and returns them.
    pub(super) fn void(&mut self) -> Vec<u64> {
        self.open.drain().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn permits() -> Permits {
        Permits::new(PermitLimits { window_max: 4, pending_max: 10 })
    }

    /// Goal: never more pods than wanted, than the window and than may be pending. Method: each bound in turn is the
    /// least.
    #[test]
    fn each_bound_holds() {
        let now = Instant::now();
        let mut permits = permits();
        assert!(permits.open(0, 0, now).is_empty(), "nothing is wanted");
        permits.request(9);
        assert_eq!(permits.open(0, 0, now), [0], "the window begins at one");
        assert!(permits.open(0, 0, now).is_empty(), "it is open");
        assert!(permits.accept(0, now) && !permits.accept(0, now));
        assert!(permits.open(1, 0, now).is_empty(), "it is being created");
        permits.created();
        assert_eq!(permits.open(0, 1, now).len(), 2);
        (0..9).for_each(|_| permits.created());
        assert_eq!(permits.open(0, 1, now).len(), 2, "four in all");
        assert_eq!(permits.request(1).len(), 3, "what isn't wanted any more");
        assert_eq!(permits.request(9).len(), 0);
        assert_eq!(permits.open(0, 8, now).len(), 1, "ten may be pending");
        assert!(permits.open(0, 9, now).is_empty());
        permits.void();
        permits.set_leaving(8);
        assert_eq!(permits.open(0, 0, now).len(), 1, "eight of nine are still there");
        permits.set_leaving(7);
        assert_eq!(permits.open(0, 0, now).len(), 1);
    }

    /// Goal: a denial that lasts is met by few requests. Method: five minutes in which each pod is denied, at once
    /// after its permit was opened; sixteen are in flight before.
    #[test]
    fn denials_are_few() {
        let start = Instant::now();
        let mut permits = permits();
        permits.request(100);
        let mut denials = 0;
        let mut now = start;
        while now < start + 300 * SECOND {
            for id in permits.open(0, 0, now) {
                permits.accept(id, now);
                permits.denied(now);
                denials += 1;
            }
            now = permits.next_at().unwrap().max(now + Duration::from_millis(1));
        }
        assert!((8..=10).contains(&denials), "{denials}");
        permits.ended();
        assert_eq!(permits.open(0, 0, now).len(), 1, "what an own pod frees is used at once");
        permits.created();
        permits.void();
        permits.denied(now);
        assert_eq!(permits.next_at(), Some(now + SECOND), "the wait begins anew");
        permits.denied(now);
        assert_eq!(permits.next_at(), Some(now + SECOND), "one burst, one wait");
    }

    /// Goal: declined permits come back when they should, and no request is lost although the engine says nothing when
    /// its number is the same as before. Method: the end of the time, a revival, a new request; an accepted one.
    #[test]
    fn answered_permits_come_back() {
        let now = Instant::now();
        let mut permits = permits();
        permits.request(1);
        let decline = |permits: &mut Permits, now| {
            let opened = permits.open(0, 0, now);
            permits.decline(opened[0], 60 * SECOND, now);
            assert!(permits.open(0, 0, now).is_empty());
        };
        decline(&mut permits, now);
        assert_eq!(permits.next_at(), Some(now + 60 * SECOND));
        decline(&mut permits, now + 60 * SECOND);
        permits.revive();
        decline(&mut permits, now + 61 * SECOND);
        permits.request(1);
        let now = now + 62 * SECOND;
        let opened = permits.open(0, 0, now);
        permits.accept(opened[0], now);
        assert!(permits.open(0, 0, now).is_empty());
        assert_eq!(permits.open(0, 0, now + ANSWERED_HOLD).len(), 1);
        permits.suppress();
        permits.void();
        assert!(permits.open(0, 0, now + 9 * SECOND).is_empty() && permits.next_at().is_none());
        permits.revive();
        assert_eq!(permits.open(0, 0, now + 9 * SECOND).len(), 1);
    }
}
