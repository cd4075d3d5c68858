//! Units of resources: scalars in thousandths, cores, memory, GPUs. All are integers; [`Scalar`] converts from `f64`.

use std::fmt;

/// A quantity in thousandths, the fixed-point format in which Mesos computes scalars.
///
/// Mesos rounds every scalar to three decimals (`llround(value * 1000)` in its `values.cpp`), and so does this type.
/// Sums and differences are exact and never leave fragments such as 1e-17 cpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scalar(u64);

impl Scalar {
    /// Zero.
    pub const ZERO: Scalar = Scalar(0);
    /// The largest scalar: 2⁵³ thousandths, the last integer up to which an `f64` is exact.
    pub const MAX: Scalar = Scalar(1 << 53);

    /// Creates a quantity of `thousandths`/1000, clamped to [`Scalar::MAX`].
    #[must_use]
    pub const fn from_thousandths(thousandths: u64) -> Scalar {
        if thousandths > Self::MAX.0 { Self::MAX } else { Scalar(thousandths) }
    }

    /// Rounds a wire value to three decimals, half away from zero.
    ///
    /// # Errors
    /// Fails if `value` is NaN, infinite, negative, or more than [`Scalar::MAX`].
    pub fn from_f64(value: f64) -> Result<Scalar, ScalarError> {
        let thousandths = value * 1000.0;
        if !(0.0..=Self::MAX.0 as f64).contains(&thousandths) {
            return Self::from_odd_f64(value);
        }
        // Up to 2⁵³ the difference between an `f64` and its whole part is exact; `round` would be a library call.
        let whole = thousandths as u64;
        Ok(Scalar(whole + u64::from(thousandths - whole as f64 >= 0.5)))
    }

    /// Handles values out of range before rounding. A negative value that rounds to zero is zero.
    #[cold]
    fn from_odd_f64(value: f64) -> Result<Scalar, ScalarError> {
        if !value.is_finite() {
            return Err(ScalarError::NotFinite);
        }
        if value > 0.0 {
            return Err(ScalarError::TooLarge);
        }
        if (value * 1000.0).round() < 0.0 {
            return Err(ScalarError::Negative);
        }
        Ok(Self::ZERO)
    }

    /// Like [`Scalar::from_f64`], but total, for offers that must be answered whatever they contain: an invalid value
    /// becomes zero, and a value that is too large becomes [`Scalar::MAX`].
    #[must_use]
    pub fn from_f64_lenient(value: f64) -> Scalar {
        match Self::from_f64(value) {
            Ok(scalar) => scalar,
            Err(ScalarError::TooLarge) => Self::MAX,
            Err(_) => Self::ZERO,
        }
    }

    /// Returns the quantity in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Returns the quantity as an `f64` for the wire.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_thousandths(f, self.0)
    }
}

/// Why a number is not a valid quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScalarError {
    /// NaN or infinite.
    NotFinite,
    /// Less than zero.
    Negative,
    /// More than [`Scalar::MAX`], or than the type holds.
    TooLarge,
    /// Not the text of a number.
    Malformed,
}

impl fmt::Display for ScalarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScalarError::NotFinite => "not a finite number",
            ScalarError::Negative => "less than zero",
            ScalarError::TooLarge => "too large",
            ScalarError::Malformed => "not a number",
        })
    }
}

impl std::error::Error for ScalarError {}

/// Processor time, in thousandths of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MilliCpus(u64);

impl MilliCpus {
    /// No cores.
    pub const ZERO: MilliCpus = MilliCpus(0);

    /// Creates a number of cores from thousandths of a core.
    #[must_use]
    pub const fn from_millis(thousandths: u64) -> MilliCpus {
        MilliCpus(thousandths)
    }

    /// Creates a number of whole cores; saturates.
    #[must_use]
    pub const fn from_cores(cores: u64) -> MilliCpus {
        MilliCpus(cores.saturating_mul(1000))
    }

    /// Returns thousandths of a core.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns the whole cores, rounded down.
    #[must_use]
    pub const fn whole_cores(self) -> u64 {
        self.0 / 1000
    }
}

impl fmt::Display for MilliCpus {
    /// Prints cores as `2` or `0.5`; with `{:#}` as `2 cores`, `0.5 cores` or `1 core`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_thousandths(f, self.0)?;
        match (f.alternate(), self.0) {
            (false, _) => Ok(()),
            (true, 1000) => f.write_str(" core"),
            (true, _) => f.write_str(" cores"),
        }
    }
}

/// Memory, in MiB (2²⁰ bytes; Mesos calls them MB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mebibytes(u64);

impl Mebibytes {
    /// No memory.
    pub const ZERO: Mebibytes = Mebibytes(0);

    /// Creates a size of `mebibytes` MiB.
    #[must_use]
    pub const fn new(mebibytes: u64) -> Mebibytes {
        Mebibytes(mebibytes)
    }

    /// Returns the size in MiB.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0)
    }
}

/// Whole GPUs: Mesos knows no fractions of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gpus(u32);

impl Gpus {
    /// No GPU.
    pub const ZERO: Gpus = Gpus(0);

    /// `gpus` GPUs.
    #[must_use]
    pub const fn new(gpus: u32) -> Gpus {
        Gpus(gpus)
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Gpus {
    /// Prints GPUs as `2`; with `{:#}` as `2 GPUs` or `1 GPU`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.alternate(), self.0) {
            (false, _) => self.0.fmt(f),
            (true, 1) => f.write_str("1 GPU"),
            (true, _) => write!(f, "{} GPUs", self.0),
        }
    }
}

fn write_thousandths(f: &mut fmt::Formatter<'_>, thousandths: u64) -> fmt::Result {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    if rest == 0 {
        return write!(f, "{whole}");
    }
    let digits = format_args!("{rest:03}").to_string();
    write!(f, "{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a wire's numbers become quantities as Mesos rounds them, and what is no quantity is refused.
    /// Method: the edges of each rule.
    #[test]
    fn scalars_round_to_three_decimals_and_refuse_the_rest() {
        assert_eq!(Scalar::from_f64(0.1 + 0.2), Ok(Scalar::from_thousandths(300)));
        assert_eq!(Scalar::from_f64(0.0005), Ok(Scalar::from_thousandths(1)));
        assert_eq!(Scalar::from_f64(-0.0), Ok(Scalar::ZERO));
        assert_eq!(Scalar::from_f64(-0.0001), Ok(Scalar::ZERO));
        assert_eq!(Scalar::from_f64(-0.001), Err(ScalarError::Negative));
        assert_eq!(Scalar::from_f64(f64::NAN), Err(ScalarError::NotFinite));
        assert_eq!(Scalar::from_f64(f64::INFINITY), Err(ScalarError::NotFinite));
        assert_eq!(Scalar::from_f64(1e300), Err(ScalarError::TooLarge));
        assert_eq!(Scalar::from_f64_lenient(f64::NAN), Scalar::ZERO);
        assert_eq!(Scalar::from_f64_lenient(-4.0), Scalar::ZERO);
        assert_eq!(Scalar::from_f64_lenient(1e300), Scalar::MAX);
    }

    /// Goal: amounts name their unit where that is asked for, in the singular for one. Method: none, a part, one, two.
    #[test]
    fn amounts_name_their_units() {
        let cores = [0, 500, 1000, 2000].map(MilliCpus::from_millis);
        let texts = cores.map(|cores| format!("{cores} {cores:#}"));
        assert_eq!(texts, ["0 0 cores", "0.5 0.5 cores", "1 1 core", "2 2 cores"]);
        let texts = [0, 1, 2].map(|gpus| format!("{0} {0:#}", Gpus::new(gpus)));
        assert_eq!(texts, ["0 0 GPUs", "1 1 GPU", "2 2 GPUs"]);
    }

    /// Goal: rounding without a library rounds as one with it. Method: numbers near thousandths and halves of them, and
    /// any bits at all.
    #[test]
    fn rounding_is_exact() {
        let mut bits = 1_u64;
        for number in 0..200_000_u64 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number | 1);
            let near = (number as f64 + 0.5) / 1000.0;
            let wide = (bits >> 11) as f64 / 1000.0;
            let any = [f64::from_bits(bits), near, near.next_up(), near.next_down(), wide];
            for value in any.into_iter().chain([number as f64 / 1000.0]) {
                let rounded = (value * 1000.0).round();
                let expected = match rounded {
                    _ if !value.is_finite() => Err(ScalarError::NotFinite),
                    _ if rounded < 0.0 => Err(ScalarError::Negative),
                    _ if rounded > Scalar::MAX.0 as f64 => Err(ScalarError::TooLarge),
                    _ => Ok(Scalar(rounded as u64)),
                };
                assert_eq!(Scalar::from_f64(value), expected, "{value}");
            }
        }
    }

    /// Goal: quantities print as people write them. Method: one of each kind.
    #[test]
    fn cores_print_without_trailing_zeros() {
        assert_eq!(MilliCpus::from_cores(2).to_string(), "2");
        assert_eq!(MilliCpus::from_millis(500).to_string(), "0.5");
        assert_eq!(MilliCpus::from_millis(1_005).to_string(), "1.005");
    }
}
