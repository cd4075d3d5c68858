//! A pseudo-random number generator: splitmix64.

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns a number below `sides`, which must not be 0.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * sides as u128) >> 64) as usize
    }

    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.roll(most - least + 1)
    }

    /// Returns `true` with this probability in percent.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }

    pub(crate) fn number(&mut self, from: &[f64]) -> f64 {
        from[self.roll(from.len())]
    }
}
