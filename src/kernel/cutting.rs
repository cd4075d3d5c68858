//! Cutting executors' resources from offers: exact pieces, reserved resources first.

use super::decision::{Amount, Piece};
use crate::offer::{Offer, ResourceKind};
use crate::resources::Scalar;

/// A place among the offers of one group, for one kind of scalar. Amounts are taken from reserved resources first, then
/// from unreserved ones, each in the order of the offers.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    kind: ResourceKind,
    reserved: bool,
    /// Position of the offer among the group's, and of the resource in it.
    offer: usize,
    resource: usize,
    /// What is left of that resource, in thousandths.
    left: u64,
}

impl Cursor {
    fn new(kind: ResourceKind) -> Cursor {
        Cursor { kind, reserved: true, offer: 0, resource: 0, left: 0 }
    }

    /// Moves to the next resource that something can be taken from. `false` at the end.
    fn advance(&mut self, batch: &[Offer<'_>], group: &[u32]) -> bool {
        loop {
            let Some(offer) = group.get(self.offer) else {
                if !self.reserved {
                    return false;
                }
                *self = Cursor { reserved: false, ..Cursor::new(self.kind) };
                continue;
            };
            match batch[*offer as usize].resources.get(self.resource) {
                None => {
                    self.offer += 1;
                    self.resource = 0;
                }
                Some(resource) => {
                    self.resource += 1;
                    match resource.takeable(self.kind) {
                        Some(scalar) if resource.is_reserved() == self.reserved => {
                            self.left = scalar.thousandths();
                            return true;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Takes `thousandths`.
    fn take(
        &mut self,
        batch: &[Offer<'_>],
        group: &[u32],
        mut thousandths: u64,
        pieces: &mut Vec<Piece>,
    ) {
        while thousandths > 0 {
            if self.left == 0 && !self.advance(batch, group) {
                debug_assert!(false, "a plan takes more than is offered");
                return;
            }
            let taken = self.left.min(thousandths);
            if taken > 0 {
                pieces.push(Piece {
                    offer: group[self.offer],
                    resource: self.resource as u32 - 1,
                    amount: Amount::Scalar(Scalar::from_thousandths(taken)),
                });
            }
            self.left -= taken;
            thousandths -= taken;
        }
    }
}

/// Cuts the executors of one group, one after the other.
#[derive(Debug)]
pub(crate) struct Cutter<'a> {
    batch: &'a [Offer<'a>],
    group: &'a [u32],
    cpus: Cursor,
    memory: Cursor,
    gpus: Cursor,
}

impl<'a> Cutter<'a> {
    /// `group` are the positions of its offers in `batch`.
    pub(crate) fn new(batch: &'a [Offer<'a>], group: &'a [u32]) -> Cutter<'a> {
        Cutter {
            batch,
            group,
            cpus: Cursor::new(ResourceKind::Cpus),
            memory: Cursor::new(ResourceKind::Memory),
            gpus: Cursor::new(ResourceKind::Gpus),
        }
    }

    /// Appends the pieces of one executor: so many thousandths of cores, MiB and GPUs, and a port.
    pub(crate) fn cut(
        &mut self,
        cpus: u64,
        memory: u64,
        gpus: u64,
        port: Option<u16>,
        pieces: &mut Vec<Piece>,
    ) {
        self.cpus.take(self.batch, self.group, cpus, pieces);
        self.memory.take(self.batch, self.group, memory, pieces);
        self.gpus.take(self.batch, self.group, gpus, pieces);
        if let Some(port) = port {
            pieces.extend(self.find_port(port));
        }
    }

    fn find_port(&self, port: u16) -> Option<Piece> {
        self.group.iter().find_map(|offer| {
            let resources = self.batch[*offer as usize].resources;
            let resource = resources.iter().position(|resource| resource.has_port(port))?;
            let resource = resource as u32;
            Some(Piece { offer: *offer, resource, amount: Amount::Port(port) })
        })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::offer::{Resource, Value};
    use proptest::prelude::*;

    fn resource(kind: u8, reserved: bool, thousandths: u64) -> Resource<'static> {
        let name = ["cpus", "mem", "disk"][usize::from(kind)];
        let scalar = Value::Scalar(Scalar::from_thousandths(thousandths));
        let resource = Resource::new(name, scalar);
        if reserved { resource.reserved_for("etl") } else { resource }
    }

    proptest! {
        /// Goal: executors get exactly what they take, from what is offered, reserved first. Method: random offers;
        /// sums against a naive count, and no unreserved piece while something reserved is left.
        #[test]
        fn pieces_add_up_and_prefer_reservations(
            offers in prop::collection::vec(
                prop::collection::vec((0u8..3, any::<bool>(), 0u64..5_000), 0..6), 1..4),
            executor in 1u64..3_000,
        ) {
            let resources: Vec<Vec<Resource<'_>>> = offers
                .iter()
                .map(|offer| offer.iter().map(|(kind, reserved, n)| resource(*kind, *reserved, *n)).collect())
                .collect();
            let batch: Vec<Offer<'_>> = resources.iter().map(|own| Offer::new("o", "a", "h", own, &[])).collect();
            let group: Vec<u32> = (0..batch.len() as u32).collect();
            let sum = |wanted: u8, only_reserved: bool| -> u64 {
                let all = offers.iter().flatten();
                all.filter(|(kind, reserved, _)| *kind == wanted && (*reserved || !only_reserved)).map(|r| r.2).sum()
            };
            let fit = (sum(0, false) / executor).min(sum(1, false) / executor);
            let mut cutter = Cutter::new(&batch, &group);
            let mut pieces = Vec::new();
            for number in 0..fit {
                let start = pieces.len();
                cutter.cut(executor, executor, 0, None, &mut pieces);
                let taken: u64 = pieces[start..].iter().map(thousandths).sum();
                prop_assert_eq!(taken, 2 * executor, "executor {}", number);
            }
            let mut left: Vec<Vec<u64>> =
                offers.iter().map(|offer| offer.iter().map(|r| r.2).collect()).collect();
            for piece in &pieces {
                let (offer, at) = (piece.offer as usize, piece.resource as usize);
                prop_assert!(left[offer][at] >= thousandths(piece));
                left[offer][at] -= thousandths(piece);
            }
            for kind in 0..2u8 {
                let of_kind = |piece: &&Piece| offers[piece.offer as usize][piece.resource as usize].0 == kind;
                let unreserved = |piece: &&Piece| !offers[piece.offer as usize][piece.resource as usize].1;
                if pieces.iter().filter(of_kind).any(|piece| unreserved(&piece)) {
                    let reserved: u64 = pieces.iter().filter(of_kind).filter(|p| !unreserved(p)).map(thousandths).sum();
                    prop_assert_eq!(reserved, sum(kind, true));
                }
            }
        }
    }

    fn thousandths(piece: &Piece) -> u64 {
        match piece.amount {
            Amount::Scalar(scalar) => scalar.thousandths(),
            Amount::Port(_) => 0,
        }
    }
}
