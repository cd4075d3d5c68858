//! Offers in scenarios: their JSON form, and the conversion from and to the kernel's offers.

use std::fmt;
use std::time::Duration;

use bumpalo::Bump;
use offermill::attributes::{OwnedAttribute, OwnedAttributeValue};
use offermill::resources::{PortRange, Scalar};
use offermill::{
    Attribute, AttributeValue, Binding, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind,
    Reservations, ReservedBy, Resource, Revocability, Timestamp, Value,
};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfferLine {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) host: String,
    /// The role that the offer is allocated to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
    /// The time from the event to the agent's maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) maintenance_in_ms: Option<u64>,
    pub(crate) resources: Vec<ResourceLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attributes: Vec<AttributeLine>,
    /// Whether its executor is bound late, if there is no agent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) late: bool,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A resource of an offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceLine {
    pub(crate) name: String,
    /// The role that the resource is reserved for, in the pre-refinement form; `*` if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    /// The principal and labels of a dynamic reservation, in the pre-refinement form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reservation: Option<ReservedLine>,
    /// The stack of reservations, in the post-refinement form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reservations: Option<Vec<RefinedLine>>,
    #[serde(default, rename = "standing", skip_serializing_if = "Option::is_none")]
    pub(crate) revocability: Option<RevocabilityLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scalar: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ranges: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<Vec<String>>,
}

/// The principal and labels of a reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReservedLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<LabelLine>,
}

/// One reservation of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefinedLine {
    #[serde(rename = "type")]
    pub(crate) kind: KindLine,
    pub(crate) role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<LabelLine>,
}

/// A key, and its value if it has one.
pub(crate) type LabelLine = (String, Option<String>);

/// How a reservation was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindLine {
    Static,
    Dynamic,
}

/// Why a resource can't be used like an ordinary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RevocabilityLine {
    Revocable,
    Shared,
    Disk,
}

/// An attribute of the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeLine {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scalar: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ranges: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<Vec<String>>,
}

/// A number, written as text if it isn't finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => serializer.serialize_f64(number),
            number if number.is_nan() => serializer.serialize_str("NaN"),
            number if number > 0.0 => serializer.serialize_str("Infinity"),
            _ => serializer.serialize_str("-Infinity"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                match text {
                    "NaN" => Ok(Number(f64::NAN)),
                    "Infinity" => Ok(Number(f64::INFINITY)),
                    "-Infinity" => Ok(Number(f64::NEG_INFINITY)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Any)
    }
}

impl OfferLine {
    /// Returns a sentence about a field that is missing or contradicts another, if there is one.
    pub(crate) fn error(&self) -> Option<String> {
        let values = |count: usize, of: &str, allowed: &str| {
            (count != 1).then(|| format!("{of:?} has {count} values, expected one: {allowed}"))
        };
        for it in &self.resources {
            let given = [it.scalar.is_some(), it.ranges.is_some(), it.set.is_some()];
            let count = given.into_iter().filter(|given| *given).count();
            if let Some(error) = values(count, &it.name, "scalar, ranges or set") {
                return Some(format!("offer {:?}: the resource {error}", self.id));
            }
            if it.reservations.is_some() && (it.role.is_some() || it.reservation.is_some()) {
                return Some(format!(
                    "offer {:?}: the resource {:?} is reserved in two forms, expected role and reservation, or \
                     reservations",
                    self.id, it.name
                ));
            }
        }
        for it in &self.attributes {
            let given =
                [it.text.is_some(), it.scalar.is_some(), it.ranges.is_some(), it.set.is_some()];
            let count = given.into_iter().filter(|given| *given).count();
            if let Some(error) = values(count, &it.name, "text, scalar, ranges or set") {
                return Some(format!("offer {:?}: the attribute {error}", self.id));
            }
        }
        None
    }

    /// Returns the line of an offer.
    pub(crate) fn of(offer: &Offer<'_>) -> OfferLine {
        let own = |text: Option<&str>| text.map(str::to_owned);
        OfferLine {
            id: offer.id.to_owned(),
            agent: offer.agent_id.to_owned(),
            host: offer.hostname.to_owned(),
            role: (offer.role != DEFAULT_ROLE).then(|| offer.role.to_owned()),
            region: own(offer.region),
            zone: own(offer.zone),
            maintenance_in_ms: offer
                .maintenance_in
                .map(|it| Timestamp::ORIGIN.plus(it).as_millis()),
            resources: offer.resources.iter().map(ResourceLine::of).collect(),
            attributes: offer.attributes.iter().map(AttributeLine::of).collect(),
            late: offer.binding == Binding::Late,
        }
    }

    /// Returns the offer in the kernel's form. It borrows from the line and from the arena.
    fn to_offer<'a>(&'a self, arena: &'a Bump) -> Offer<'a> {
        let resources =
            arena.alloc_slice_fill_iter(self.resources.iter().map(|it| it.to_resource(arena)));
        let attributes =
            arena.alloc_slice_fill_iter(self.attributes.iter().map(|it| it.to_attribute(arena)));
        let mut offer = Offer::new(&self.id, &self.agent, &self.host, resources, attributes);
        offer.role = self.role.as_deref().unwrap_or(DEFAULT_ROLE);
        offer.region = self.region.as_deref();
        offer.zone = self.zone.as_deref();
        offer.maintenance_in = self.maintenance_in_ms.map(Duration::from_millis);
        offer.binding = if self.late { Binding::Late } else { Binding::Immediate };
        offer
    }
}

/// Returns offers in the kernel's form. They borrow from the lines and from the arena.
pub(crate) fn to_offers<'a>(offers: &'a [OfferLine], arena: &'a Bump) -> &'a [Offer<'a>] {
    arena.alloc_slice_fill_iter(offers.iter().map(|offer| offer.to_offer(arena)))
}

impl ResourceLine {
    pub(super) fn of(resource: &Resource<'_>) -> ResourceLine {
        let mut line = ResourceLine { name: resource.name.to_owned(), ..ResourceLine::default() };
        line.revocability = match resource.revocability {
            Revocability::Revocable => Some(RevocabilityLine::Revocable),
            Revocability::Shared => Some(RevocabilityLine::Shared),
            Revocability::Disk => Some(RevocabilityLine::Disk),
            _ => None,
        };
        match resource.reservations {
            Reservations::PreRefinement { role, dynamic } => {
                line.role = (role != DEFAULT_ROLE).then(|| role.to_owned());
                line.reservation = dynamic.map(|by| ReservedLine {
                    principal: by.principal.map(str::to_owned),
                    role: None,
                    labels: labels_of(by),
                });
            }
            Reservations::PostRefinement(stack) => {
                line.reservations = Some(stack.iter().map(RefinedLine::of).collect());
            }
        }
        match resource.value {
            Value::Scalar(scalar) => line.scalar = Some(Number(scalar.as_f64())),
            Value::Ranges(ranges) => line.ranges = Some(pairs(ranges)),
            Value::Set(items) => line.set = Some(owned(items)),
        }
        line
    }

    fn to_resource<'a>(&'a self, arena: &'a Bump) -> Resource<'a> {
        let value = if let Some(Number(number)) = self.scalar {
            Value::Scalar(Scalar::from_f64_lenient(number))
        } else if let Some(ranges) = &self.ranges {
            Value::Ranges(ranges_in(ranges, arena))
        } else {
            Value::Set(texts_in(self.set.as_deref().unwrap_or_default(), arena))
        };
        let revocability = match self.revocability {
            None => Revocability::NonRevocable,
            Some(RevocabilityLine::Revocable) => Revocability::Revocable,
            Some(RevocabilityLine::Shared) => Revocability::Shared,
            Some(RevocabilityLine::Disk) => Revocability::Disk,
        };
        let reservations = match &self.reservations {
            Some(stack) => Reservations::PostRefinement(
                arena.alloc_slice_fill_iter(stack.iter().map(|it| it.to_reservation(arena))),
            ),
            None => Reservations::PreRefinement {
                role: self.role.as_deref().unwrap_or(DEFAULT_ROLE),
                dynamic: self.reservation.as_ref().map(|by| {
                    let labels = labels_in(&by.labels, arena);
                    &*arena.alloc(ReservedBy { principal: by.principal.as_deref(), labels })
                }),
            },
        };
        Resource::new(&self.name, value)
            .with_revocability(revocability)
            .with_reservations(reservations)
    }
}

impl RefinedLine {
    fn of(reservation: &Reservation<'_>) -> RefinedLine {
        RefinedLine {
            kind: match reservation.kind {
                ReservationKind::Static => KindLine::Static,
                ReservationKind::Dynamic => KindLine::Dynamic,
            },
            role: reservation.role.to_owned(),
            principal: reservation.by.principal.map(str::to_owned),
            labels: labels_of(&reservation.by),
        }
    }

    fn to_reservation<'a>(&'a self, arena: &'a Bump) -> Reservation<'a> {
        let kind = match self.kind {
            KindLine::Static => ReservationKind::Static,
            KindLine::Dynamic => ReservationKind::Dynamic,
        };
        let labels = labels_in(&self.labels, arena);
        let by = ReservedBy { principal: self.principal.as_deref(), labels };
        Reservation { kind, role: &self.role, by }
    }
}

impl AttributeLine {
    /// Returns the line of an attribute that owns its parts.
    pub(crate) fn of_owned(attribute: &OwnedAttribute) -> AttributeLine {
        let mut line = AttributeLine { name: attribute.name.clone(), ..AttributeLine::default() };
        match &attribute.value {
            OwnedAttributeValue::Text(text) => line.text = Some(text.clone()),
            OwnedAttributeValue::Scalar(number) => line.scalar = Some(Number(*number)),
            OwnedAttributeValue::Ranges(ranges) => line.ranges = Some(pairs(ranges)),
            OwnedAttributeValue::Set(items) => line.set = Some(items.clone()),
        }
        line
    }

    /// Returns the attribute.
    pub(crate) fn to_owned_attribute(&self) -> OwnedAttribute {
        let value = if let Some(text) = &self.text {
            OwnedAttributeValue::Text(text.clone())
        } else if let Some(Number(number)) = self.scalar {
            OwnedAttributeValue::Scalar(number)
        } else if let Some(ranges) = &self.ranges {
            let range = |(begin, end): &(u64, u64)| PortRange::new(*begin, *end);
            OwnedAttributeValue::Ranges(ranges.iter().map(range).collect())
        } else {
            OwnedAttributeValue::Set(self.set.clone().unwrap_or_default())
        };
        OwnedAttribute { name: self.name.clone(), value }
    }

    fn of(attribute: &Attribute<'_>) -> AttributeLine {
        let mut line =
            AttributeLine { name: attribute.name.to_owned(), ..AttributeLine::default() };
        match attribute.value {
            AttributeValue::Text(text) => line.text = Some(text.to_owned()),
            AttributeValue::Scalar(number) => line.scalar = Some(Number(number)),
            AttributeValue::Ranges(ranges) => line.ranges = Some(pairs(ranges)),
            AttributeValue::Set(items) => line.set = Some(owned(items)),
        }
        line
    }

    fn to_attribute<'a>(&'a self, arena: &'a Bump) -> Attribute<'a> {
        let value = if let Some(text) = &self.text {
            AttributeValue::Text(text)
        } else if let Some(Number(number)) = self.scalar {
            AttributeValue::Scalar(number)
        } else if let Some(ranges) = &self.ranges {
            AttributeValue::Ranges(ranges_in(ranges, arena))
        } else {
            AttributeValue::Set(texts_in(self.set.as_deref().unwrap_or_default(), arena))
        };
        Attribute { name: &self.name, value }
    }
}

fn labels_of(by: &ReservedBy<'_>) -> Vec<LabelLine> {
    by.labels.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

fn labels_in<'a>(labels: &'a [LabelLine], arena: &'a Bump) -> &'a [Label<'a>] {
    arena.alloc_slice_fill_iter(labels.iter().map(|(key, value)| (key.as_str(), value.as_deref())))
}

fn ranges_in<'a>(ranges: &[(u64, u64)], arena: &'a Bump) -> &'a [PortRange] {
    arena.alloc_slice_fill_iter(ranges.iter().map(|(begin, end)| PortRange::new(*begin, *end)))
}

fn texts_in<'a>(texts: &'a [String], arena: &'a Bump) -> &'a [&'a str] {
    arena.alloc_slice_fill_iter(texts.iter().map(String::as_str))
}

fn pairs(ranges: &[PortRange]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.begin, range.end)).collect()
}

fn owned(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}
