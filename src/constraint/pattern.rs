//! Regular expressions, with the crate's feature `regex`. Without it none can be made.

/// How many a constraint may have: each can take [`PROGRAM_BYTES_MAX`] twice.
pub(super) const PATTERNS_MAX: usize = 32;

/// A regular expression that all of a text has to match.
#[derive(Clone, Debug)]
pub(super) struct Pattern(imp::WholeRegex);

impl Pattern {
    /// Reads a regular expression in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub(super) fn new(text: &str) -> Result<Pattern, String> {
        imp::new(text).map(Pattern)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        imp::is_match(&self.0, text)
    }
}

#[cfg(feature = "regex")]
mod imp {
    use regex::{Regex, RegexBuilder};

    /// The most memory of a compiled expression, and of what matching with it keeps, in bytes.
    const PROGRAM_BYTES_MAX: usize = 256 * 1024;

    pub(super) type WholeRegex = Regex;

    pub(super) fn new(text: &str) -> Result<WholeRegex, String> {
        let build = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(PROGRAM_BYTES_MAX).dfa_size_limit(PROGRAM_BYTES_MAX).build()
        };
        // By itself first: `a)(b` would be valid between the parentheses.
        let whole = || {
            // In a pattern that ignores white space a comment may take the rest of the line.
            build(&format!("^(?:{text})$")).or_else(|_| build(&format!("^(?:{text}\n)$")))
        };
        match build(text).and_then(|_| whole()) {
            Ok(whole) => Ok(whole),
            Err(regex::Error::CompiledTooBig(_)) => Err("it takes too much memory".to_owned()),
            Err(error) => {
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                Err(last.strip_prefix("error: ").unwrap_or(last).to_owned())
            }
        }
    }

    pub(super) fn is_match(whole: &WholeRegex, text: &str) -> bool {
        whole.is_match(text)
    }
}

#[cfg(not(feature = "regex"))]
mod imp {
    pub(super) type WholeRegex = std::convert::Infallible;

    pub(super) fn new(_text: &str) -> Result<WholeRegex, String> {
        Err("this program was built without the feature `regex`; `like` takes * and ?".to_owned())
    }

    pub(super) fn is_match(whole: &WholeRegex, _text: &str) -> bool {
        match *whole {}
    }
}
