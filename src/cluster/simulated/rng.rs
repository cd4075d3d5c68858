//! Chance, by number: the same seed gives the same rolls, on every machine and in every version.
//!
//! Splitmix64, because what a seed means must not change with a library's version.

#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// The dice of one purpose: those of different purposes don't disturb each other.
    pub(super) fn new(seed: u64, purpose: u64) -> Rng {
        let mut dice = Rng(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`; 0 if there are none.
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        // Without division: the upper half of the product.
        ((u128::from(self.next()) * u128::from(sides)) >> 64) as u64
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.roll(most.saturating_sub(least) + 1)
    }

    /// True in so many of a hundred cases. Rolls only if there is something to decide.
    pub(super) fn percent(&mut self, percent: u8) -> bool {
        match percent {
            0 => false,
            100.. => true,
            _ => self.roll(100) < u64::from(percent),
        }
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }

    /// A duration in the same unit as `mean`, as long as lives are that end at any moment with equal chance; at most
    /// ten times the mean.
    pub(super) fn lifetime(&mut self, mean: u64) -> u64 {
        /// The natural logarithm of 2, in 65536ths.
        const LN_2: u128 = 45_426;
        let halvings = u128::from(halvings(self.next()));
        let lived = (u128::from(mean) * halvings * LN_2) >> 32;
        u64::try_from(lived).unwrap_or(u64::MAX).min(mean.saturating_mul(10))
    }
}

/// How often 2⁶⁴ has to be halved to come to `number`, in 65536ths. In integers, for floating-point logarithms differ
/// between machines.
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

    /// Goal: a seed means the same for ever. Method: known rolls.
    #[test]
    fn rolls_are_for_ever() {
        let mut dice = Rng::new(7, 1);
        let rolls: Vec<u64> = (0..5).map(|_| dice.roll(1000)).collect();
        assert_eq!(rolls, [477, 896, 870, 332, 751]);
        assert!((0..1000).all(|_| (3..=5).contains(&dice.between(3, 5))));
        let total: u64 = (0..10_000).map(|_| dice.lifetime(1000)).sum();
        assert!((9_500_000..10_500_000).contains(&total), "{total}");
        assert_eq!(
            [1 << 63, 1 << 62, 3 << 62, u64::MAX].map(halvings),
            [65_536, 131_072, 27_200, 1]
        );
    }
}
