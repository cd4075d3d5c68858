//! Parsing and printing of numbers in both constraint syntaxes.

use std::fmt;

/// Parses a number as Java's `Double.parseDouble` does, except for the hexadecimal form.
pub(super) fn java_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let magnitude = match unsigned {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        // Rust's parser accepts other spellings of these two, so only digits are passed to it.
        _ if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            unsigned.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(unsigned).parse().ok()?
        }
        _ => return None,
    };
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// Parses a whole number with an optional sign as Java's `Long.parseLong` does, but up to `u64::MAX`. Returns `None`
/// for negative numbers, which ranges can't contain.
pub(super) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = digits_only(digits)?;
    (number == 0 || !text.starts_with('-')).then_some(number)
}

/// Parses a whole number without a sign.
pub(super) fn digits_only(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses a finite decimal number with optional sign, fraction and exponent, such as `-1.5e3`.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    begins.then(|| text.parse::<f64>().ok())?.filter(|number| number.is_finite())
}

/// Prints the shortest text that [`decimal`] parses as the same number.
pub(super) struct Shortest(pub(super) f64);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}
