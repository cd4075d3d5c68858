//! [`Remainder`]: what is left of offers after pieces were taken from them.

use std::collections::{BTreeMap, BTreeSet, btree_map};

use super::piece::{Amount, Piece};
use crate::offer::{Offer, Value};
use crate::resources::{PortRange, PortSet, Scalar};

/// Offers from which pieces are taken, and what is left of them.
///
/// Created by [`Accepted::left`](crate::Accepted::left), or by a host that takes further pieces itself. For each
/// resource, whatever its role, reservations and revocability, the pieces and the rest add up to what was offered.
///
/// ```
/// use offermill::resources::Scalar;
/// use offermill::{Amount, Left, Offer, Piece, Remainder, Resource};
///
/// let resources = [Resource::scalar("cpus", 4.0)];
/// let offers = [Offer::new("o", "S1", "host", &resources, &[])];
/// let mut remainder = Remainder::of(&offers, [0]);
/// let amount = Amount::Scalar(Scalar::from_thousandths(1_500));
/// assert!(remainder.subtract(&Piece::new(0, 0, amount)));
/// assert_eq!(remainder.left(0, 0), Some(Left::Scalar(Scalar::from_thousandths(2_500))));
/// ```
#[derive(Clone, Debug)]
pub struct Remainder<'a> {
    /// By the position of the offer.
    offers: BTreeMap<u32, &'a Offer<'a>>,
    /// What was taken, by the positions of offer and resource.
    taken: BTreeMap<(u32, u32), Subtracted>,
}

#[derive(Clone, Debug)]
enum Subtracted {
    Thousandths(u64),
    Ports {
        /// What was offered.
        offered: PortSet,
        taken: BTreeSet<u16>,
    },
}

/// What is left of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left<'a> {
    /// A quantity, perhaps zero.
    Scalar(Scalar),
    /// The ports that were not taken, perhaps none.
    Ports(PortSet),
    /// All items: items of sets are never taken.
    Set(&'a [&'a str]),
}

impl<'a> Remainder<'a> {
    /// The whole offers at `positions` of `batch`. Positions outside the batch are ignored.
    #[must_use]
    pub fn of(batch: &'a [Offer<'a>], positions: impl IntoIterator<Item = u32>) -> Remainder<'a> {
        let at = |position: u32| Some((position, batch.get(position as usize)?));
        let offers = positions.into_iter().filter_map(at).collect();
        Remainder { offers, taken: BTreeMap::new() }
    }

    fn value(&self, offer: u32, resource: u32) -> Option<Value<'a>> {
        Some(self.offers.get(&offer)?.resources.get(resource as usize)?.value)
    }

    /// Subtracts `piece`. If less than that is left, returns `false` and changes nothing.
    ///
    /// O(log n) in the pieces subtracted before. The first port of a resource sorts its intervals.
    #[must_use]
    pub fn subtract(&mut self, piece: &Piece) -> bool {
        let place = (piece.offer, piece.resource);
        match (self.value(place.0, place.1), piece.amount) {
            (Some(Value::Scalar(offered)), Amount::Scalar(wanted)) => {
                let none = || Subtracted::Thousandths(0);
                let Subtracted::Thousandths(taken) = self.taken.entry(place).or_insert_with(none)
                else {
                    return false;
                };
                let enough = offered.thousandths() - *taken >= wanted.thousandths();
                *taken += if enough { wanted.thousandths() } else { 0 };
                enough
            }
            (Some(Value::Ranges(ranges)), Amount::Port(port)) => {
                let none = || Subtracted::Ports {
                    offered: PortSet::of(ranges.iter().copied()),
                    taken: BTreeSet::new(),
                };
                let Subtracted::Ports { offered, taken } =
                    self.taken.entry(place).or_insert_with(none)
                else {
                    return false;
                };
                offered.contains(u64::from(port)) && taken.insert(port)
            }
            _ => false,
        }
    }

    /// What is left of the resource at position `resource` of the offer at position `offer` of the batch.
    #[must_use]
    pub fn left(&self, offer: u32, resource: u32) -> Option<Left<'a>> {
        let taken = self.taken.get(&(offer, resource));
        Some(match (self.value(offer, resource)?, taken) {
            (Value::Scalar(scalar), Some(Subtracted::Thousandths(taken))) => {
                Left::Scalar(Scalar::from_thousandths(scalar.thousandths() - taken))
            }
            (Value::Scalar(scalar), _) => Left::Scalar(scalar),
            (Value::Ranges(_), Some(Subtracted::Ports { offered, taken })) => {
                let single = |port: &u16| PortRange::new((*port).into(), (*port).into());
                Left::Ports(offered.without(&PortSet::of(taken.iter().map(single))))
            }
            (Value::Ranges(ranges), _) => Left::Ports(PortSet::of(ranges.iter().copied())),
            (Value::Set(items), _) => Left::Set(items),
        })
    }

    /// What is left of each resource, in order, with the positions of its offer and of the resource in the offer.
    pub fn iter(&self) -> LeftResources<'a, '_> {
        LeftResources { remainder: self, offers: self.offers.keys(), offer: None, resource: 0 }
    }
}

impl<'a, 'r> IntoIterator for &'r Remainder<'a> {
    type Item = (u32, u32, Left<'a>);
    type IntoIter = LeftResources<'a, 'r>;

    fn into_iter(self) -> LeftResources<'a, 'r> {
        self.iter()
    }
}

/// What is left of each resource: see [`Remainder::iter`].
#[derive(Clone, Debug)]
pub struct LeftResources<'a, 'r> {
    remainder: &'r Remainder<'a>,
    /// The positions of the offers that follow.
    offers: btree_map::Keys<'r, u32, &'a Offer<'a>>,
    /// The position of the present offer.
    offer: Option<u32>,
    /// The position of its next resource.
    resource: u32,
}

impl<'a> Iterator for LeftResources<'a, '_> {
    type Item = (u32, u32, Left<'a>);

    fn next(&mut self) -> Option<(u32, u32, Left<'a>)> {
        loop {
            if let Some(offer) = self.offer
                && let Some(left) = self.remainder.left(offer, self.resource)
            {
                let resource = self.resource;
                self.resource += 1;
                return Some((offer, resource, left));
            }
            self.offer = Some(*self.offers.next()?);
            self.resource = 0;
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::offer::Resource;

    /// Goal: nothing is subtracted that isn't there, and nothing twice. Method: one of each mistake.
    #[test]
    fn only_what_is_there_is_taken() {
        let ranges = [PortRange::new(5, 7), PortRange::new(7, 9)];
        let resources = [
            Resource::scalar("cpus", 2.0),
            Resource::ranges("ports", &ranges),
            Resource::new("disks", Value::Set(&["a"])),
        ];
        let offers = [Offer::new("o", "S1", "h", &resources, &[])];
        let mut remainder = Remainder::of(&offers, [0, 1]);
        let scalar = |thousandths| Amount::Scalar(Scalar::from_thousandths(thousandths));
        let steps = [
            (0, 0, scalar(1_500), true),
            (0, 0, scalar(501), false),
            (0, 0, Amount::Port(7), false),
            (0, 0, scalar(500), true),
            (0, 1, Amount::Port(7), true),
            (0, 1, Amount::Port(7), false),
            (0, 1, Amount::Port(4), false),
            (0, 1, scalar(1), false),
            (0, 2, scalar(1), false),
            (0, 3, scalar(1), false),
            (1, 0, scalar(1), false),
        ];
        for (offer, resource, amount, taken) in steps {
            let piece = Piece { offer, resource, amount };
            assert_eq!(remainder.subtract(&piece), taken, "{piece:?}");
        }
        let ports = PortSet::of([PortRange::new(5, 6), PortRange::new(8, 9)]);
        let left: Vec<_> = remainder.iter().collect();
        let expected = [Left::Scalar(Scalar::ZERO), Left::Ports(ports), Left::Set(&["a"])];
        assert_eq!(left, [0, 1, 2].map(|at| (0, at, expected[at as usize].clone())));
    }

    /// Goal: any number of intervals and pieces is handled fast. Method: subtract 32 768 ports from 100 000 intervals,
    /// and 50 000 slivers of cores; quadratic work would take minutes.
    #[test]
    fn many_intervals_and_pieces_are_no_trouble() {
        let ranges: Vec<PortRange> =
            (0..100_000).map(|begin| PortRange::new(begin, begin + begin % 2)).collect();
        let resources = [Resource::ranges("ports", &ranges), Resource::scalar("cpus", 50.0)];
        let offers = [Offer::new("o", "S1", "h", &resources, &[])];
        let mut remainder = Remainder::of(&offers, [0]);
        for port in (0..100_000).step_by(2).filter_map(|port| u16::try_from(port).ok()) {
            assert!(remainder.subtract(&Piece {
                offer: 0,
                resource: 0,
                amount: Amount::Port(port)
            }));
        }
        let sliver = Amount::Scalar(Scalar::from_thousandths(1));
        for _ in 0..50_000 {
            assert!(remainder.subtract(&Piece { offer: 0, resource: 1, amount: sliver }));
        }
        assert_eq!(remainder.left(0, 1), Some(Left::Scalar(Scalar::ZERO)));
        let Some(Left::Ports(left)) = remainder.left(0, 0) else { panic!("ports") };
        assert_eq!(left.count(), 100_001 - 32_768);
        assert_eq!(left.ranges().len(), 32_768);
    }
}
