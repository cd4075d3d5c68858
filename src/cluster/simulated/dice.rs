//! Chance, by number: the same seed gives the same rolls, on every machine and in every version.
//!
//! Splitmix64, because what a seed means must not change with a library's version.

#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The dice of one purpose: those of different purposes don't disturb each other.
    pub(super) fn new(seed: u64, purpose: u64) -> Dice {
        let mut dice = Dice(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
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
        // Uniform in (0, 1]: 53 bits and one.
        let part = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        ((-part.ln() * mean as f64) as u64).min(mean.saturating_mul(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a seed means the same for ever. Method: known rolls.
    #[test]
    fn rolls_are_for_ever() {
        let mut dice = Dice::new(7, 1);
        let rolls: Vec<u64> = (0..5).map(|_| dice.roll(1000)).collect();
        assert_eq!(rolls, Vec::<u64>::new(), "fill in");
        assert!((0..1000).all(|_| (3..=5).contains(&dice.between(3, 5))));
        let total: u64 = (0..10_000).map(|_| dice.lifetime(1000)).sum();
        assert!((9_500_000..10_500_000).contains(&total), "{total}");
    }
}
