//! Serde helpers for the JSON encoding of Mesos: enumerations by name, bytes as base64, unset fields omitted.
//!
//! The messages derive serde's traits. This module handles the fields that the derives can't: enumerations, which the
//! messages store as numbers, and bytes.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::ser::Serializer;

/// Stands for an unknown name. No enumeration has a value with this number.
pub const UNRECOGNIZED: i32 = -1;

/// An enumeration whose values have names.
pub trait Named: Copy + Into<i32> + TryFrom<i32> + 'static {
    /// The values with their names, in the order of their definition.
    const NAMES: &'static [(Self, &'static str)];

    /// Returns the value's name.
    fn name(self) -> &'static str {
        let number: i32 = self.into();
        Self::NAMES.iter().find(|(value, _)| (*value).into() == number).map_or("", |(_, name)| name)
    }

    /// Returns the value with this name, if there is one.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
    }
}

/// Defines an enumeration of numbered values with their names in JSON.
macro_rules! names {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$about:meta])* $value:ident = $number:literal, $text:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
        #[repr(i32)]
        pub enum $name {
            $($(#[$about])* $value = $number,)*
        }

        impl $crate::mesos_v1::json::Named for $name {
            const NAMES: &'static [($name, &'static str)] = &[$(($name::$value, $text),)*];
        }
    };
}
pub(crate) use names;

/// Serde adapter for a required enumeration.
pub(crate) struct EnumName<E>(PhantomData<E>);

impl<E: Named> EnumName<E> {
    pub(crate) fn serialize<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        match E::try_from(*number) {
            Ok(value) => serializer.serialize_str(value.name()),
            // An unknown value has no name, so its number is written. Readers that know the value accept its number as
            // well.
            Err(_) => serializer.serialize_i32(*number),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        deserializer.deserialize_any(EnumName::<E>(PhantomData))
    }
}

impl<'de, E: Named> Visitor<'de> for EnumName<E> {
    type Value = i32;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a name")
    }

    fn visit_str<X: Error>(self, name: &str) -> Result<i32, X> {
        Ok(E::from_name(name).map_or(UNRECOGNIZED, Into::into))
    }

    fn visit_i64<X: Error>(self, number: i64) -> Result<i32, X> {
        Ok(i32::try_from(number).unwrap_or(UNRECOGNIZED))
    }

    fn visit_u64<X: Error>(self, number: u64) -> Result<i32, X> {
        Ok(i32::try_from(number).unwrap_or(UNRECOGNIZED))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<i32, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(UNRECOGNIZED)
    }
}

/// Serde adapter for an optional enumeration.
pub(crate) struct OptionalName<E>(PhantomData<E>);

impl<E: Named> OptionalName<E> {
    pub(crate) fn serialize<S: Serializer>(
        number: &Option<i32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => EnumName::<E>::serialize(number, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<i32>, D::Error> {
        deserializer.deserialize_option(OptionalName::<E>(PhantomData))
    }
}

impl<'de, E: Named> Visitor<'de> for OptionalName<E> {
    type Value = Option<i32>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a name")
    }

    fn visit_none<X: Error>(self) -> Result<Option<i32>, X> {
        Ok(None)
    }

    fn visit_unit<X: Error>(self) -> Result<Option<i32>, X> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<i32>, D::Error> {
        EnumName::<E>::deserialize(deserializer).map(Some)
    }
}

/// Standard base64. Padding is written, and optional when reading.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Serde adapter for required bytes.
pub(crate) struct Base64;

impl Base64 {
    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_str(Base64)
    }
}

impl Visitor<'_> for Base64 {
    type Value = Vec<u8>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("bytes in base64")
    }

    fn visit_str<X: Error>(self, text: &str) -> Result<Vec<u8>, X> {
        BASE64.decode(text).map_err(|_| X::invalid_value(Unexpected::Other("another text"), &self))
    }
}

/// Serde adapter for optional bytes.
pub(crate) struct OptionalBase64;

impl OptionalBase64 {
    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => Base64::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        deserializer.deserialize_option(OptionalBase64)
    }
}

impl<'de> Visitor<'de> for OptionalBase64 {
    type Value = Option<Vec<u8>>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("bytes in base64")
    }

    fn visit_none<X: Error>(self) -> Result<Option<Vec<u8>>, X> {
        Ok(None)
    }

    fn visit_unit<X: Error>(self) -> Result<Option<Vec<u8>>, X> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        Base64::deserialize(deserializer).map(Some)
    }
}
