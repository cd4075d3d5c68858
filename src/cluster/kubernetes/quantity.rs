//! Amounts of resources as Kubernetes writes them: `2`, `500m`, `1.5`, `64Mi`, `1e3`.

use crate::resources::{Mebibytes, MilliCpus};

/// Writes cores: `2`, or `1500m`.
pub(super) fn of_cores(cores: MilliCpus) -> String {
    match cores.millis() {
        milli if milli % 1000 == 0 => (milli / 1000).to_string(),
        milli => format!("{milli}m"),
    }
}

/// Writes memory in mebibytes.
pub(super) fn of_memory(memory: Mebibytes) -> String {
    format!("{}Mi", memory.get())
}

/// Whether an amount is larger than another. False if one of them can't be read.
pub(super) fn exceeds(amount: &str, limit: &str) -> bool {
    matches!((thousandths(amount), thousandths(limit)), (Some(amount), Some(limit)) if amount > limit)
}

/// Returns an amount in thousandths, rounded up.
fn thousandths(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() > 18 || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let factor: u128 = match suffix {
        "n" => return digits.checked_div(1_000_000 * 10u128.pow(fraction.len() as u32)),
        "u" => return digits.checked_div(1000 * 10u128.pow(fraction.len() as u32)),
        "m" => 1,
        "" => 1000,
        "k" => 1000 * 10u128.pow(3),
        "M" => 1000 * 10u128.pow(6),
        "G" => 1000 * 10u128.pow(9),
        "T" => 1000 * 10u128.pow(12),
        "P" => 1000 * 10u128.pow(15),
        "E" => 1000 * 10u128.pow(18),
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        "Pi" => 1000 << 50,
        "Ei" => 1000 << 60,
        _ => {
            let power: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            1000 * 10u128.checked_pow(power.min(18))?
        }
    };
    Some(digits.checked_mul(factor)?.div_ceil(10u128.pow(fraction.len() as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: amounts in any unit are compared as Kubernetes does. Method: equal amounts in different units, the next
    /// larger one, and texts that are none.
    #[test]
    fn amounts_are_compared_across_units() {
        for (one, other) in [
            ("2", "2000m"),
            ("1.5", "1500m"),
            ("1Gi", "1024Mi"),
            ("1e3", "1k"),
            ("1E", "1000P"),
            (".5", "500m"),
            ("0", "0m"),
        ] {
            assert_eq!(thousandths(one), thousandths(other), "{one} {other}");
            assert!(!exceeds(one, other) && !exceeds(other, one));
        }
        assert!(exceeds("1Gi", "1G") && exceeds("2001m", "2") && exceeds("1.0001", "1"));
        for odd in ["", "x", "1x", "-1", "1.2.3", "99999999999999999999", "Mi", "1e", "."] {
            assert_eq!(thousandths(odd), None, "{odd:?}");
            assert!(!exceeds(odd, "0") && !exceeds("1", odd));
        }
        assert_eq!(of_cores(MilliCpus::from_cores(2)), "2");
        assert_eq!(of_cores(MilliCpus::from_millis(1500)), "1500m");
        assert_eq!(of_memory(Mebibytes::new(1408)), "1408Mi");
    }
}
