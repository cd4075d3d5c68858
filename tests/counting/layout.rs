//! Which words share a line: words that each batch reads must not lie on lines that others write.

use super::scenes::{Scene, Size, config};
use crate::IdScheme;
use crate::kernel::lines::{LINE, SharedWord, WordAddresses};

/// Goal: the words that all threads write have lines of their own, even pairs of lines, which the processor may fetch
/// together. Method: no named word lies within the same aligned 128 bytes as one of another kind.
#[test]
fn shared_words_have_lines_of_their_own() {
    let mut scene = Scene::with_ids(config(), IdScheme::plain());
    scene.warm_up(Size::of(40, 2));
    let lines = WordAddresses::of(&scene.kernel, &[&scene.handler]);
    let pair = |address: usize| address / (2 * LINE);
    let alone = [
        SharedWord::Admission,
        SharedWord::Released,
        SharedWord::Sequence,
        SharedWord::Demand,
        SharedWord::Gpus,
        SharedWord::Unreachable,
        SharedWord::Stack,
        SharedWord::UnknownUpdates,
        SharedWord::Timers,
        SharedWord::LocalityClock,
        SharedWord::Grown,
    ];
    let others = alone.iter().copied().chain([
        SharedWord::Policy,
        SharedWord::Settings,
        SharedWord::Maps,
        SharedWord::AgentSlab,
        SharedWord::PageSlab,
        SharedWord::Numbers,
        SharedWord::Agent,
        SharedWord::Executor,
        SharedWord::Own(0),
    ]);
    let others: Vec<SharedWord> = others.collect();
    for word in alone {
        for place in lines.places(word) {
            for other in &others {
                for there in lines.places(*other).filter(|there| *there != place) {
                    let apart = pair(there.end - 1) < pair(place.start)
                        || pair(there.start) > pair(place.end - 1);
                    assert!(apart, "{word:?} shares a line with {other:?}");
                }
            }
        }
    }
}

/// Goal: a cell is a line. Method: each starts at the beginning of a line, and no two in the same.
#[test]
fn cells_are_lines() {
    let mut scene = Scene::new(config());
    scene.warm_up(Size::of(40, 2));
    let lines = WordAddresses::of(&scene.kernel, &[]);
    for word in [SharedWord::Agent, SharedWord::Executor] {
        let places: Vec<_> = lines.places(word).collect();
        assert!(places.len() >= 40);
        assert!(places.iter().all(|place| place.start % LINE == 0 && place.len() == LINE));
    }
}
