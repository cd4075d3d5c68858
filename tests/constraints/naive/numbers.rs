//! Naive parsers of numbers, according to their grammars.

/// Parses a finite number: sign, digits with a point, exponent.
pub(crate) fn plain_number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = magnitude(unsigned)?;
    number.is_finite().then_some(if text.starts_with('-') { -number } else { number })
}

/// Parses a decimal number according to Java's grammar: white space, sign, digits with a point, exponent, suffix.
pub(crate) fn javas_number(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= '\u{20}');
    let (sign, rest) = match text.chars().next()? {
        '-' => (-1.0, &text[1..]),
        '+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match rest {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(sign * f64::INFINITY),
        "" => None,
        _ => {
            let suffixed = rest.ends_with(['d', 'D', 'f', 'F']);
            let digits = if suffixed { &rest[..rest.len() - 1] } else { rest };
            magnitude(digits).map(|number| sign * number)
        }
    }
}

fn magnitude(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let all_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + decimals.len() == 0 || !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if unsigned.is_empty() || !all_digits(unsigned) {
            return None;
        }
    }
    digits.parse::<f64>().ok()
}
