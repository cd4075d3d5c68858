//! Decoding of reservations: the role and principal that a resource is reserved for.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::batch::OfferBatch;
use super::cursor::{MalformedOffer, Result, WireCursor, known, sized, varint};
use crate::limits::FOREIGN_ID_BYTES_MAX;
use crate::offer::{Label, Reservation, ReservationKind, ReservedBy};

const PRINCIPAL: u32 = sized(1);
const LABELS: u32 = sized(2);
const ROLE: u32 = sized(3);
const TYPE: u32 = varint(4);
const KNOWN: u32 = known(&[PRINCIPAL, LABELS, ROLE, TYPE]);

/// `Labels.labels`.
const LABEL: u32 = sized(1);
const LABEL_KEY: u32 = sized(1);
const LABEL_VALUE: u32 = sized(2);

/// `ReservationInfo.Type`.
const TYPE_STATIC: i32 = 1;

/// A reservation that is being decoded. A message that occurs more than once is merged.
pub(super) struct ReservationDraft<'a> {
    kind: i32,
    role: &'a str,
    principal: Option<&'a str>,
    labels: Vec<'a, Label<'a>>,
}

pub(super) fn open<T>(arena: &Bump) -> Vec<'_, T> {
    Vec::new_in(arena)
}

impl<'a> ReservationDraft<'a> {
    pub(super) fn new(arena: &'a Bump) -> ReservationDraft<'a> {
        ReservationDraft { kind: 0, role: "", principal: None, labels: open(arena) }
    }

    pub(super) fn read(
        &mut self,
        mut message: WireCursor<'a>,
        batch: &mut OfferBatch<'a>,
    ) -> Result<()> {
        while let Some(key) = message.key()? {
            match key {
                PRINCIPAL => self.principal = Some(message.text()?),
                LABELS => self.read_labels(message.message()?, batch)?,
                ROLE => self.role = bounded_role(message.text()?)?,
                TYPE => self.kind = message.number()?,
                key => message.skip(key, KNOWN)?,
            }
        }
        Ok(())
    }

    fn read_labels(
        &mut self,
        mut message: WireCursor<'a>,
        batch: &mut OfferBatch<'a>,
    ) -> Result<()> {
        while let Some(key) = message.key()? {
            if key == LABEL {
                batch.count()?;
                self.labels.push(read_label(message.message()?)?);
            } else {
                message.skip(key, known(&[LABEL]))?;
            }
        }
        Ok(())
    }

    /// Returns the reservation. Without a type it is dynamic, as reservations outside of a stack always are.
    pub(super) fn finish(self) -> Reservation<'a> {
        let kind = match self.kind {
            TYPE_STATIC => ReservationKind::Static,
            _ => ReservationKind::Dynamic,
        };
        let by = ReservedBy { principal: self.principal, labels: self.labels.into_bump_slice() };
        Reservation { kind, role: self.role, by }
    }
}

/// Fails if the name of a role is too long.
pub(super) fn bounded_role(role: &str) -> Result<&str> {
    if role.len() > FOREIGN_ID_BYTES_MAX { Err(MalformedOffer::LongText) } else { Ok(role) }
}

fn read_label(mut message: WireCursor<'_>) -> Result<Label<'_>> {
    let (mut name, mut value) = ("", None);
    while let Some(key) = message.key()? {
        match key {
            LABEL_KEY => name = message.text()?,
            LABEL_VALUE => value = Some(message.text()?),
            key => message.skip(key, known(&[LABEL_KEY, LABEL_VALUE]))?,
        }
    }
    Ok((name, value))
}
