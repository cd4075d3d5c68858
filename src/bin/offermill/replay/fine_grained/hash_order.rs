//! The order in which Scala 2.12 iterates over a mutable hash map. Spark launches tasks on agents, and gives up the
//! tasks of a lost executor, in this order.

/// The least length of a table.
const LEAST: usize = 16;
/// The number of bits set in [`LEAST`] − 1. Scala rotates hashes by it, whatever the table's length has become.
const ROTATION: u32 = 4;

/// The keys of a map from which nothing was ever removed, in Scala's order.
#[derive(Clone, Debug)]
pub(super) struct HashOrder<K> {
    /// The keys by their place in Scala's table; in each place, the last is the first that Scala visits.
    table: Vec<Vec<(i32, K)>>,
    size: usize,
}

impl<K: Clone + PartialEq> HashOrder<K> {
    pub(super) fn new() -> HashOrder<K> {
        HashOrder { table: vec![Vec::new(); LEAST], size: 0 }
    }

    /// Adds a key with its hash code in Java. Does nothing if it is there.
    pub(super) fn insert(&mut self, hash: i32, key: K) {
        let at = place(hash, self.table.len());
        if self.table[at].iter().any(|(_, other)| *other == key) {
            return;
        }
        self.table[at].push((hash, key));
        self.size += 1;
        // Scala's load factor is 75 %.
        if self.size > self.table.len() * 3 / 4 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let length = 2 * self.table.len();
        let old = std::mem::replace(&mut self.table, vec![Vec::new(); length]);
        for (hash, key) in visit(old) {
            self.table[place(hash, length)].push((hash, key));
        }
    }

    /// Returns the keys in Scala's order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.table.iter().rev().flat_map(|place| place.iter().rev()).map(|(_, key)| key)
    }
}

/// Returns what a table holds in Scala's order: from its end, and in each place what was added last first.
fn visit<K>(table: Vec<Vec<(i32, K)>>) -> impl Iterator<Item = (i32, K)> {
    table.into_iter().rev().flat_map(|place| place.into_iter().rev())
}

/// Returns the place of a hash code in a table whose length is a power of two: its highest bits, after they were mixed.
fn place(hash: i32, length: usize) -> usize {
    const FACTOR: u32 = 0x9e37_75cd;
    let mixed = (hash as u32).wrapping_mul(FACTOR).swap_bytes().wrapping_mul(FACTOR);
    let mixed = mixed.rotate_right(ROTATION);
    (mixed >> (u32::BITS - length.trailing_zeros())) as usize & (length - 1)
}

/// Returns Java's hash code of a text.
pub(super) fn hash_of_text(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// Returns Scala's hash code of a number.
pub(super) fn hash_of_number(number: i64) -> i32 {
    match i32::try_from(number) {
        Ok(number) => number,
        Err(_) => (number ^ (number >> 32)) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: keys are in the order of Scala 2.12. Method: two maps whose order its own `mutable.HashMap` printed, of
    /// which one has grown twice.
    #[test]
    fn keys_are_in_scalas_order() {
        let mut texts = HashOrder::new();
        for number in 1..=8 {
            let text = format!("a{number}");
            texts.insert(hash_of_text(&text), text);
        }
        let order: Vec<&str> = texts.keys().map(String::as_str).collect();
        assert_eq!(order, TEXTS);
        let mut numbers = HashOrder::new();
        for number in 0..30 {
            numbers.insert(hash_of_number(number), number);
        }
        assert_eq!(numbers.keys().copied().collect::<Vec<i64>>(), NUMBERS);
    }

    /// The keys `a1` to `a8`.
    const TEXTS: [&str; 8] = ["a7", "a1", "a3", "a6", "a5", "a8", "a2", "a4"];
    /// The keys 0 to 29.
    const NUMBERS: [i64; 30] = [
        23, 8, 17, 26, 11, 29, 2, 20, 5, 14, 4, 13, 22, 7, 16, 25, 10, 1, 28, 19, 27, 9, 18, 12, 3,
        21, 15, 6, 24, 0,
    ];
}
