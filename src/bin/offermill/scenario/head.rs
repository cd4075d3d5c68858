//! The head of a scenario: its first line, with the settings.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The version of the format.
pub(crate) const FORMAT: u32 = 1;

/// The first line of a scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioHead {
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// The subject, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) theme: String,
    /// The seed that the scenario was generated from, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// The version of the format: [`FORMAT`].
    pub(crate) format: u32,
    /// The scheduler whose decisions were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "conduct")]
    pub(crate) compatibility: Option<CompatibilityLine>,
    /// How executor ids are formed; without it they are plain numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ids: Option<IdsLine>,
    /// The settings, by key.
    #[serde(deserialize_with = "unique")]
    pub(crate) conf: BTreeMap<String, String>,
}

/// A scheduler whose decisions can be recorded and replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CompatibilityLine {
    /// Offermill.
    #[serde(rename = "offermill")]
    Offermill,
    /// Spark 3.5's backend for Mesos.
    #[serde(rename = "spark-3.5")]
    Spark35,
}

/// The prefix and the epoch of executor ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdsLine {
    pub(crate) prefix: String,
    pub(crate) epoch: u64,
}

/// Reads a map, and rejects duplicate keys.
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
                        "the key {key:?} occurs twice, expected each once"
                    )));
                }
            }
            Ok(all)
        }
    }

    deserializer.deserialize_map(Unique(std::marker::PhantomData))
}

/// A JSON value of which no object, at any depth, has a key twice.
pub(super) struct UniqueKeys(pub(super) Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueKeys, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(UniqueKeys)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueKeys(value)) = sequence.next_element()? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        let all: BTreeMap<String, UniqueKeys> = unique(MapAccessDeserializer::new(map))?;
        Ok(Value::Object(all.into_iter().map(|(key, UniqueKeys(value))| (key, value)).collect()))
    }
}
