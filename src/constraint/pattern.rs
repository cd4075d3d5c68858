//! Regular expressions of the `matches` condition. Without the crate feature `regex`, none can be compiled.

/// The maximum number of regular expressions in a constraint. Each can take up to twice `PROGRAM_BYTES_MAX` bytes of
/// memory.
pub(super) const PATTERNS_MAX: usize = 32;

/// A regular expression that must match a whole text.
#[derive(Clone, Debug)]
pub(super) struct Pattern(imp::WholeRegex);

impl Pattern {
    /// Compiles a regular expression in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// Returns a short description of the problem.
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

    /// The maximum memory of a compiled expression, and of the cache that matching with it keeps, in bytes each.
    const PROGRAM_BYTES_MAX: usize = 256 * 1024;

    pub(super) type WholeRegex = Regex;

    pub(super) fn new(text: &str) -> Result<WholeRegex, String> {
        let build = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(PROGRAM_BYTES_MAX).dfa_size_limit(PROGRAM_BYTES_MAX).build()
        };
        // Compile it by itself first: `a)(b` would be valid between the parentheses.
        let whole = || {
            // In a pattern that ignores white space (`(?x)`), a comment extends to the end of the line, so the second
            // attempt adds a line break.
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
