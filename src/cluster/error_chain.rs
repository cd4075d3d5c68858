//! Errors of other crates as one line.

use std::error::Error;

/// Appends what caused an error to its text, unless the text says it already.
pub(super) fn with_causes(mut text: String, error: &(dyn Error + 'static)) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    text
}
