//! What both model checkers use: the map, built from the checker's own lock, and no prefetching.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::PoisonError;

use super::RwLock;

/// Models have no caches.
pub(crate) fn prefetch<T>(_place: &T) {}

/// More than one, so that threads with different keys don't seem to wait for each other.
const SHARDS: usize = 4;

/// The hasher has no random seed: a replayed schedule must find the same shards.
type Shard<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Replaces `DashMap`.
pub(crate) struct Map<K: Eq + Hash, V> {
    shards: [RwLock<Shard<K, V>>; SHARDS],
}

impl<K: Eq + Hash, V> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash, V: Copy> Map<K, V> {
    pub(crate) fn new() -> Map<K, V> {
        Map { shards: std::array::from_fn(|_| RwLock::new(Shard::default())) }
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &RwLock<Shard<K, V>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        &self.shards[hash as usize % SHARDS]
    }

    fn read<R>(shard: &RwLock<Shard<K, V>>, reader: impl FnOnce(&Shard<K, V>) -> R) -> R {
        reader(&shard.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(shard: &RwLock<Shard<K, V>>, work: impl FnOnce(&mut Shard<K, V>) -> R) -> R {
        work(&mut shard.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        Self::read(self.shard(key), |shard| shard.get(key).copied())
    }

    pub(crate) fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        Self::write(self.shard(&key), |shard| *shard.entry(key).or_insert_with(make))
    }

    pub(crate) fn remove_value<Q: Eq + Hash + ?Sized>(&self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
        V: PartialEq,
    {
        Self::write(self.shard(key), |shard| {
            if shard.get(key) == Some(value) {
                shard.remove(key);
            }
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| Self::read(shard, |shard| shard.len())).sum()
    }
}
