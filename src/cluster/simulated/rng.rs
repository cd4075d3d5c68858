//! Random numbers from a seed: the same seed gives the same numbers on every machine and in every version.
//!
//! The generator is Splitmix64, implemented here so that a library's new version can't change what a seed means.

#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// A stream of random numbers. Streams of one seed are independent of each other.
    pub(super) fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // Without division: the upper half of the product.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns `true` with a probability of `percent` %. Draws a number only if the result isn't certain.
    pub(super) fn percent(&mut self, percent: u8) -> bool {
        match percent {
            0 => false,
            100.. => true,
            _ => self.below(100) < u64::from(percent),
        }
    }

    /// A random element.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// An exponentially distributed duration with this mean, in the mean's unit, and at most ten times the mean.
    pub(super) fn lifetime(&mut self, mean: u64) -> u64 {
        /// The natural logarithm of 2, in 65536ths.
        const LN_2: u128 = 45_426;
        let halvings = u128::from(halvings(self.next()));
        let lived = (u128::from(mean) * halvings * LN_2) >> 32;
        u64::try_from(lived).unwrap_or(u64::MAX).min(mean.saturating_mul(10))
    }
}

/// How often 2⁶⁴ must be halved to reach `number`, in 65536ths. Computed in integers, because floating-point logarithms
/// differ between machines.
fn halvings(number: u64) -> u64 {
    let number = number.max(1);
    let zeros = number.leading_zeros();
    // From 1 to 2, in units of 2⁻³¹; each squaring doubles the logarithm, whose next bit is then whole.
    let mut part = (number << zeros) >> 32;
    let mut fraction = 0;
    for bit in (0..16).rev() {
        part = (part * part) >> 31;
        if part >= 1 << 32 {
            part >>= 1;
            fraction |= 1 << bit;
        }
    }
    (u64::from(zeros + 1) << 16) - fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a seed always gives the same numbers. Method: known numbers.
    #[test]
    fn numbers_stay_the_same() {
        let mut rng = Rng::new(7, 1);
        let numbers: Vec<u64> = (0..5).map(|_| rng.below(1000)).collect();
        assert_eq!(numbers, [477, 896, 870, 332, 751]);
        assert!((0..1000).all(|_| (3..=5).contains(&rng.between(3, 5))));
        let total: u64 = (0..10_000).map(|_| rng.lifetime(1000)).sum();
        assert!((9_500_000..10_500_000).contains(&total), "{total}");
        assert_eq!(
            [1 << 63, 1 << 62, 3 << 62, u64::MAX].map(halvings),
            [65_536, 131_072, 27_200, 1]
        );
    }
}
