//! Replays a journal, or any scenario, with Offermill's own behaviour.

use std::ops::ControlFlow::{self, Break, Continue};

use offermill::engine::journal::Player;
use offermill::{Kernel, Timestamp};

use super::convert;
use crate::scenario::{AnswerLine, EventKind, ScenarioEvent};

/// Plays `events` on a new kernel and passes each line of the answers to `send`, beginning with the first, until `send`
/// breaks. An event without a time has the time of the previous one.
///
/// # Errors
/// With the position of an event whose time is before the previous event's, or a day or more after it.
pub(crate) fn play(
    events: &[ScenarioEvent],
    kernel: Kernel,
    mut send: impl FnMut(AnswerLine) -> ControlFlow<()>,
) -> Result<(), (usize, String)> {
    if let Break(()) = send(convert::init(&kernel.config())) {
        return Ok(());
    }
    let mut player = Player::new(kernel);
    let mut last = Timestamp::ORIGIN;
    for (number, event) in events.iter().enumerate() {
        let at = match (event.at_ms, &event.kind) {
            (Some(at), _) => at,
            (None, EventKind::AdvanceMs(ms)) => last.as_millis().saturating_add(*ms),
            (None, _) => last.as_millis(),
        };
        let at = Timestamp::from_millis(at);
        let misplaced = |error: offermill::Error| (number, format!("\"at_ms\": the {error}"));
        let ev = number as u64;
        while let Some(entry) = player.advance(at).map_err(misplaced)? {
            if let Break(()) = convert::answers(ev, &entry).into_iter().try_for_each(&mut send) {
                return Ok(());
            }
        }
        let entry = player.play(at, convert::operation(&event.kind)).map_err(misplaced)?;
        match convert::answers(ev, &entry).into_iter().try_for_each(&mut send) {
            Break(()) => return Ok(()),
            Continue(()) => last = at,
        }
    }
    Ok(())
}
