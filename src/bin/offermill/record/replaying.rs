//! A journal, or any scenario, played with this program's own conduct.

use std::ops::ControlFlow::{self, Break, Continue};

use offermill::engine::journal::Player;
use offermill::{Kernel, Timestamp};

use super::lines;
use crate::scenario::{Answer, Event, What};

/// Plays `events` on a kernel that nothing was done with, and tells each line of the answers, the first included, until
/// it is told to break. An event without a moment comes when the one before did.
///
/// # Errors
/// With the position of an event whose moment is before that of the one before, or a day or more after it.
pub(crate) fn play(
    events: &[Event],
    kernel: Kernel,
    mut tell: impl FnMut(Answer) -> ControlFlow<()>,
) -> Result<(), (usize, String)> {
    if let Break(()) = tell(lines::init(&kernel.config())) {
        return Ok(());
    }
    let mut player = Player::new(kernel);
    let mut last = Timestamp::ORIGIN;
    for (number, event) in events.iter().enumerate() {
        let at = match (event.at_ms, &event.what) {
            (Some(at), _) => at,
            (None, What::AdvanceMs(ms)) => last.as_millis().saturating_add(*ms),
            (None, _) => last.as_millis(),
        };
        let at = Timestamp::from_millis(at);
        let misplaced = |error: offermill::Error| (number, format!("\"at_ms\": the {error}"));
        let ev = number as u64;
        while let Some(entry) = player.pass(at).map_err(misplaced)? {
            if let Break(()) = lines::answers(ev, &entry).into_iter().try_for_each(&mut tell) {
                return Ok(());
            }
        }
        let entry = player.play(at, lines::operation(&event.what)).map_err(misplaced)?;
        match lines::answers(ev, &entry).into_iter().try_for_each(&mut tell) {
            Break(()) => return Ok(()),
            Continue(()) => last = at,
        }
    }
    Ok(())
}
