//! The facts of an agent that constraints examine: its attributes, host name, region and zone.

use crate::offer::{Attribute, AttributeValue, Offer};

/// An agent's attributes, and its host name, region and zone if they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferFacts<'a> {
    pub(super) attributes: &'a [Attribute<'a>],
    hostname: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
}

/// The subject of a condition. Conditions are sorted by subject: first attributes by name, then the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The attributes of this name.
    Attribute(Box<str>),
    /// The agent's host name.
    Hostname,
    /// The region of the agent's fault domain.
    Region,
    /// The zone of the agent's fault domain.
    Zone,
}

impl<'a> OfferFacts<'a> {
    pub(super) const fn of_attributes(attributes: &'a [Attribute<'a>]) -> OfferFacts<'a> {
        OfferFacts { attributes, hostname: None, region: None, zone: None }
    }

    pub(super) fn of_offer(offer: &Offer<'a>) -> OfferFacts<'a> {
        let hostname = Some(offer.hostname).filter(|name| !name.is_empty());
        let Offer { attributes, region, zone, .. } = *offer;
        OfferFacts { attributes, hostname, region, zone }
    }

    /// Returns the attributes sorted by name; attributes of one name keep their order.
    pub(super) fn sorted_attributes(&self) -> Vec<Attribute<'a>> {
        let mut sorted = self.attributes.to_vec();
        sorted.sort_by_key(|attribute| attribute.name);
        sorted
    }

    /// Returns the same facts with only the attributes of `subject`, which are looked up in `sorted`, the sorted list
    /// of all attributes.
    pub(super) fn about<'s>(&self, subject: &Subject, sorted: &'s [Attribute<'a>]) -> OfferFacts<'s>
    where
        'a: 's,
    {
        let OfferFacts { hostname, region, zone, .. } = *self;
        let attributes = match subject {
            Subject::Attribute(name) => {
                let first = sorted.partition_point(|attribute| *attribute.name < **name);
                let rest = sorted.get(first..).unwrap_or_default();
                rest.get(..rest.partition_point(|attribute| *attribute.name == **name))
            }
            Subject::Hostname | Subject::Region | Subject::Zone => None,
        };
        OfferFacts { attributes: attributes.unwrap_or_default(), hostname, region, zone }
    }

    /// Returns host name, region and zone, which aren't attributes.
    pub(super) const fn place(&self) -> [Option<&'a str>; 3] {
        [self.hostname, self.region, self.zone]
    }

    /// Returns all values of a subject: one for each attribute of the name.
    pub(super) fn values(&self, subject: &Subject) -> impl Iterator<Item = AttributeValue<'a>> {
        let (name, text) = match subject {
            Subject::Attribute(name) => (Some(&**name), None),
            Subject::Hostname => (None, self.hostname),
            Subject::Region => (None, self.region),
            Subject::Zone => (None, self.zone),
        };
        let attributes = if name.is_some() { self.attributes } else { &[] };
        let named =
            move |attribute: &&Attribute<'a>| name.is_some_and(|name| same(attribute.name, name));
        let values = attributes.iter().filter(named).map(|attribute| attribute.value);
        values.chain(text.map(AttributeValue::Text))
    }
}

/// String equality that compares the first and last bytes first: names and values mostly differ there, and comparing
/// the rest is a function call.
#[inline]
pub(super) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len() && a.first() == b.first() && a.last() == b.last() && a == b
}
