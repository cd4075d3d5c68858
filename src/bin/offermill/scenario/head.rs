//! The first line of a scenario.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The number of this format.
pub(crate) const FORMAT: u32 = 1;

/// What a scenario says before its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// For people: what it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) theme: String,
    /// For people: where chance came from when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// [`FORMAT`].
    pub(crate) format: u32,
    /// Whose way of deciding it was recorded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conduct: Option<Conducts>,
    /// How ids are written; plain numbers without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ids: Option<Ids>,
    /// Settings by their keys.
    #[serde(deserialize_with = "unique")]
    pub(crate) conf: BTreeMap<String, String>,
}

/// Ways of deciding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Conducts {
    /// This program's own.
    #[serde(rename = "offermill")]
    Offermill,
    /// That of Spark 3.5's Mesos backend.
    #[serde(rename = "spark-3.5")]
    Spark35,
}

/// Ids that begin with a prefix and an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ids {
    pub(crate) prefix: String,
    pub(crate) epoch: u64,
}

/// Reads a map in which no key comes twice.
pub(super) fn unique<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Unique<V>(std::marker::PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((key, value)) = map.next_entry::<String, V>()? {
                if all.insert(key.clone(), value).is_some() {
                    return Err(Error::custom(format_args!(
                        "the key {key:?} comes twice, expected each once"
                    )));
                }
            }
            Ok(all)
        }
    }

    deserializer.deserialize_map(Unique(std::marker::PhantomData))
}
