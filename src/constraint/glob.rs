//! Glob matching: `*` matches any characters, `?` matches one, and a backslash escapes `*`, `?` or a backslash.

/// One part of a glob.
pub(super) enum GlobPart {
    Any,
    One,
    Letter(char),
}

/// Splits a glob into its parts.
pub(super) fn parts(glob: &str) -> impl Iterator<Item = GlobPart> {
    let mut rest = glob;
    std::iter::from_fn(move || {
        let (part, after) = first_part(rest)?;
        rest = after;
        Some(part)
    })
}

/// Splits the first part off a glob. Returns `None` if the glob is empty.
fn first_part(glob: &str) -> Option<(GlobPart, &str)> {
    let mut rest = glob.chars();
    let part = match rest.next()? {
        '*' => GlobPart::Any,
        '?' => GlobPart::One,
        '\\' if rest.as_str().starts_with(['*', '?', '\\']) => GlobPart::Letter(rest.next()?),
        letter => GlobPart::Letter(letter),
    };
    Some((part, rest.as_str()))
}

/// Whether `glob` matches the whole `text`. Backtracks to the last `*` only, which suffices: the last one can match
/// anything that an earlier one could.
pub(super) fn matches(glob: &str, text: &str) -> bool {
    let (mut glob, mut text) = (glob, text);
    // Where to continue after a mismatch: after the last `*`, which then takes one more character.
    let mut again: Option<(&str, &str)> = None;
    loop {
        let mut left = text.chars();
        let fits = match first_part(glob) {
            Some((GlobPart::Any, rest)) => {
                glob = rest;
                again = Some((rest, text));
                continue;
            }
            Some((GlobPart::One, rest)) => left.next().map(|_| rest),
            Some((GlobPart::Letter(letter), rest)) => {
                left.next().filter(|c| *c == letter).map(|_| rest)
            }
            None if text.is_empty() => return true,
            None => None,
        };
        if let Some(rest) = fits {
            (glob, text) = (rest, left.as_str());
            continue;
        }
        let Some((after_star, from)) = again else { return false };
        let mut shorter = from.chars();
        if shorter.next().is_none() {
            return false;
        }
        (glob, text) = (after_star, shorter.as_str());
        again = Some((after_star, text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::matches;

    /// A recursive matcher that follows the definition.
    fn naively(glob: &[char], text: &[char]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some(('\\', [literal @ ('*' | '?' | '\\'), others @ ..])), rest) => {
                rest.is_some_and(|(c, rest)| c == literal && naively(others, rest))
            }
            (Some(('*', others)), None) => naively(others, text),
            (Some(('*', others)), Some((_, rest))) => naively(others, text) || naively(glob, rest),
            (Some((wanted, others)), Some((c, rest))) => {
                (*wanted == '?' || wanted == c) && naively(others, rest)
            }
            (Some(_), None) => false,
        }
    }

    proptest! {
        /// Goal: globs match according to their definition. Method: compare random globs and texts of few characters
        /// with a recursive matcher.
        #[test]
        fn agrees_with_the_definition(glob in "[aé*?\\\\]{0,8}", text in "[aéb*\\\\]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&glob, &text), naively(&chars(&glob), &chars(&text)));
        }
    }

    /// Goal: no glob takes long. Method: match the worst allowed glob against a long text.
    #[test]
    fn the_worst_glob_ends() {
        let glob = format!("{}b", "*a".repeat(511));
        assert!(!matches(&glob, &"a".repeat(20_000)));
        let mut text = "a".repeat(20_000);
        text.push('b');
        assert!(matches(&glob, &text));
    }
}
