//! Sums, multiples and text forms of quantities.
//!
//! Sums and multiples saturate at the type's largest value, as all of the kernel's sums do. There is no `Sub`, because
//! what becomes of a difference below zero is the caller's decision: `checked_sub` or `saturating_sub`.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;

use super::{Gpus, Mebibytes, MilliCpus, Scalar, ScalarError};

macro_rules! arithmetic {
    ($type:ident, $integer:ty, $max:expr, $of:expr, $get:ident) => {
        impl $type {
            /// Returns the sum, or none if it exceeds the type's largest value.
            #[must_use]
            pub fn checked_add(self, other: $type) -> Option<$type> {
                let sum = self.$get().checked_add(other.$get())?;
                (sum <= $max).then_some($of(sum))
            }

            /// Returns the difference, or none if `other` is more.
            #[must_use]
            pub fn checked_sub(self, other: $type) -> Option<$type> {
                self.$get().checked_sub(other.$get()).map($of)
            }

            /// Returns the difference, or zero if `other` is more.
            #[must_use]
            pub fn saturating_sub(self, other: $type) -> $type {
                $of(self.$get().saturating_sub(other.$get()))
            }
        }

        /// The sum, at most the type's largest value.
        impl Add for $type {
            type Output = $type;

            fn add(self, other: $type) -> $type {
                $of(self.$get().saturating_add(other.$get()).min($max))
            }
        }

        impl AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                *self = *self + other;
            }
        }

        /// The multiple, at most the type's largest value.
        impl Mul<$integer> for $type {
            type Output = $type;

            fn mul(self, times: $integer) -> $type {
                $of(self.$get().saturating_mul(times).min($max))
            }
        }

        impl Sum for $type {
            fn sum<I: Iterator<Item = $type>>(quantities: I) -> $type {
                quantities.fold($type::ZERO, Add::add)
            }
        }

        impl<'a> Sum<&'a $type> for $type {
            fn sum<I: Iterator<Item = &'a $type>>(quantities: I) -> $type {
                quantities.copied().sum()
            }
        }
    };
}

arithmetic!(Scalar, u64, Scalar::MAX.thousandths(), Scalar::from_thousandths, thousandths);
arithmetic!(MilliCpus, u64, u64::MAX, MilliCpus::from_millis, millis);
arithmetic!(Mebibytes, u64, u64::MAX, Mebibytes::new, get);
arithmetic!(Gpus, u32, u32::MAX, Gpus::new, get);

/// Rounds to three decimals, as [`Scalar::from_f64`] does.
impl TryFrom<f64> for Scalar {
    type Error = ScalarError;

    fn try_from(value: f64) -> Result<Scalar, ScalarError> {
        Scalar::from_f64(value)
    }
}

/// Rounds to thousandths of a core, as [`Scalar::from_f64`] does.
impl TryFrom<f64> for MilliCpus {
    type Error = ScalarError;

    fn try_from(cores: f64) -> Result<MilliCpus, ScalarError> {
        Scalar::from_f64(cores).map(MilliCpus::from)
    }
}

impl From<Scalar> for MilliCpus {
    fn from(cores: Scalar) -> MilliCpus {
        MilliCpus::from_millis(cores.thousandths())
    }
}

/// Fails if there are more cores than [`Scalar::MAX`].
impl TryFrom<MilliCpus> for Scalar {
    type Error = ScalarError;

    fn try_from(cores: MilliCpus) -> Result<Scalar, ScalarError> {
        let fits = cores.millis() <= Scalar::MAX.thousandths();
        if fits { Ok(Scalar::from_thousandths(cores.millis())) } else { Err(ScalarError::TooLarge) }
    }
}

/// Parses a decimal number with at most three decimals, such as `2` or `0.5`, as `Display` writes it.
impl FromStr for Scalar {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Scalar, ScalarError> {
        Scalar::try_from(MilliCpus::from_str(text)?)
    }
}

/// Parses cores with at most three decimals, such as `2` or `0.5`, as `Display` writes them.
impl FromStr for MilliCpus {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<MilliCpus, ScalarError> {
        let (whole, decimals) = match text.split_once('.') {
            Some((_, decimals)) if !(1..=3).contains(&decimals.len()) => {
                return Err(ScalarError::Malformed);
            }
            Some(parts) => parts,
            None => (text, "0"),
        };
        let rest = digits(decimals)? * 10_u64.pow(3 - decimals.len() as u32);
        let millis = digits(whole)?.checked_mul(1000).and_then(|whole| whole.checked_add(rest));
        millis.map(MilliCpus::from_millis).ok_or(ScalarError::TooLarge)
    }
}

/// Parses a number of MiB, such as `4096` or `4096 MiB`, as `Display` writes it. For sizes with other units see
/// [`config::text`](crate::config::text).
impl FromStr for Mebibytes {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Mebibytes, ScalarError> {
        digits(text.strip_suffix(" MiB").unwrap_or(text)).map(Mebibytes::new)
    }
}

/// Parses a whole number.
impl FromStr for Gpus {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Gpus, ScalarError> {
        u32::try_from(digits(text)?).map(Gpus::new).map_err(|_| ScalarError::TooLarge)
    }
}

/// The number that consists of these digits.
fn digits(text: &str) -> Result<u64, ScalarError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ScalarError::Malformed);
    }
    text.parse().map_err(|_| ScalarError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: sums and multiples saturate, differences below zero are zero or none. Method: the edges of each type.
    #[test]
    fn sums_end_at_the_largest_value() {
        let cores = [1_500, 500, 2_000].map(MilliCpus::from_millis);
        assert_eq!(cores.iter().sum::<MilliCpus>(), MilliCpus::from_cores(4));
        assert_eq!(cores.into_iter().sum::<MilliCpus>() * 3, MilliCpus::from_cores(12));
        let most = MilliCpus::from_millis(u64::MAX);
        assert_eq!((most + cores[0], most * 2), (most, most));
        assert_eq!((most.checked_add(cores[0]), cores[1].checked_sub(cores[0])), (None, None));
        assert_eq!(cores[1].saturating_sub(cores[0]), MilliCpus::ZERO);
        assert_eq!(cores[0].checked_sub(cores[1]), Some(MilliCpus::from_cores(1)));
        let mut scalar = Scalar::MAX;
        scalar += Scalar::from_thousandths(1);
        assert_eq!((scalar, scalar * 2), (Scalar::MAX, Scalar::MAX));
        assert_eq!(scalar.checked_add(Scalar::from_thousandths(1)), None);
        let gpus = Gpus::new(u32::MAX);
        assert_eq!((gpus + gpus, Gpus::new(2) * 3), (gpus, Gpus::new(6)));
        let memory = Mebibytes::new(3) + Mebibytes::new(4);
        assert_eq!(memory.checked_sub(Mebibytes::new(8)), None);
        assert_eq!(memory, Mebibytes::new(7));
    }

    /// Goal: what `Display` writes is parsed to the same quantity, and what is no quantity is an error. Method: edges
    /// of each type, then near misses.
    #[test]
    fn text_forms_are_read_back() {
        for millis in [0, 1, 10, 100, 999, 1_000, 1_005, 1_050, 123_456_789, u64::MAX] {
            let cores = MilliCpus::from_millis(millis);
            assert_eq!(cores.to_string().parse(), Ok(cores));
            let memory = Mebibytes::new(millis);
            assert_eq!(memory.to_string().parse(), Ok(memory));
        }
        assert_eq!("4096".parse(), Ok(Mebibytes::new(4096)));
        assert_eq!("7".parse(), Ok(Gpus::new(7)));
        assert_eq!("0.5".parse(), Ok(Scalar::from_thousandths(500)));
        assert_eq!("4294967296".parse::<Gpus>(), Err(ScalarError::TooLarge));
        assert_eq!("9007199254740.993".parse::<Scalar>(), Err(ScalarError::TooLarge));
        assert_eq!("18446744073709551616".parse::<Mebibytes>(), Err(ScalarError::TooLarge));
        assert_eq!("18446744073709552".parse::<MilliCpus>(), Err(ScalarError::TooLarge));
        for text in ["", ".", "1.", ".5", "1.0005", "-1", "+1", "1e3", " 1", "1 ", "1.5.0", "NaN"] {
            assert_eq!(text.parse::<MilliCpus>(), Err(ScalarError::Malformed), "{text:?}");
            assert_eq!(text.parse::<Gpus>(), Err(ScalarError::Malformed), "{text:?}");
        }
        assert_eq!("4 GiB".parse::<Mebibytes>(), Err(ScalarError::Malformed));
    }

    /// Goal: cores convert to and from the wire's numbers. Method: numbers that fit, and numbers that don't.
    #[test]
    fn cores_convert() {
        assert_eq!(MilliCpus::try_from(0.25), Ok(MilliCpus::from_millis(250)));
        assert_eq!(MilliCpus::try_from(-1.0), Err(ScalarError::Negative));
        assert_eq!(Scalar::try_from(f64::NAN), Err(ScalarError::NotFinite));
        assert_eq!(MilliCpus::from(Scalar::from_thousandths(7)), MilliCpus::from_millis(7));
        assert_eq!(Scalar::try_from(MilliCpus::from_cores(2)), Ok(Scalar::from_thousandths(2_000)));
        let most = MilliCpus::from_millis(u64::MAX);
        assert_eq!(Scalar::try_from(most), Err(ScalarError::TooLarge));
    }
}
