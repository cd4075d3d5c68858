//! Decoding of resources and attributes.

use super::batch::OfferBatch;
use super::cursor::{MalformedOffer, Result, WireCursor, known, sized, text, varint};
use super::reservation::{ReservationDraft, bounded_role, open};
use super::value::{self, read_ranges, read_scalar, read_set, read_text};
use crate::limits::ATTRIBUTE_BYTES_MAX;
use crate::offer::{
    Attribute, AttributeValue, DEFAULT_ROLE, Reservations, Resource, ResourceKind, Revocability,
    Value,
};
use crate::resources::Scalar;

/// The keys of `Resource`.
mod key {
    use super::*;

    pub(super) const NAME: u32 = sized(1);
    pub(super) const TYPE: u32 = varint(2);
    pub(super) const SCALAR: u32 = sized(3);
    pub(super) const RANGES: u32 = sized(4);
    pub(super) const SET: u32 = sized(5);
    pub(super) const ROLE: u32 = sized(6);
    pub(super) const DISK: u32 = sized(7);
    pub(super) const RESERVATION: u32 = sized(8);
    pub(super) const REVOCABLE: u32 = sized(9);
    pub(super) const SHARED: u32 = sized(10);
    /// Skipped.
    pub(super) const ALLOCATION_INFO: u32 = sized(11);
    pub(super) const RESERVATIONS: u32 = sized(13);
    pub(super) const KNOWN: u32 = known(&[
        NAME,
        TYPE,
        SCALAR,
        RANGES,
        SET,
        ROLE,
        DISK,
        RESERVATION,
        REVOCABLE,
        SHARED,
        RESERVATIONS,
    ]);
}

/// The keys of `Attribute`.
mod attribute {
    use super::*;

    pub(super) const NAME: u32 = sized(1);
    pub(super) const TYPE: u32 = varint(2);
    pub(super) const SCALAR: u32 = sized(3);
    pub(super) const RANGES: u32 = sized(4);
    pub(super) const TEXT: u32 = sized(5);
    pub(super) const SET: u32 = sized(6);
    pub(super) const KNOWN: u32 = known(&[NAME, TYPE, SCALAR, RANGES, TEXT, SET]);
}

/// The reservation fields of a resource, in both forms.
#[derive(Default)]
struct Reserved<'a> {
    role: Option<&'a str>,
    by: Option<ReservationDraft<'a>>,
    stack: Option<bumpalo::collections::Vec<'a, crate::offer::Reservation<'a>>>,
}

/// Decodes consecutive resources and adds them to the batch. `key` is the key of the first one, which was read already
/// and must be one byte.
#[inline(always)]
pub(super) fn read_resources<'a>(
    message: &mut WireCursor<'a>,
    key: u32,
    batch: &mut OfferBatch<'a>,
) -> Result<()> {
    if let Some(count) = batch.resources.recall(message) {
        return batch.count_all(count);
    }
    let (run, room, is_first) = (*message, batch.room(), batch.resources.is_empty());
    loop {
        let resource = message.message()?;
        if let Some(plain) = plain_resource(resource) {
            batch.count()?;
            batch.resources.push(plain);
        } else {
            read_resource(resource, batch)?;
        }
        if !message.strip(&[key as u8]) {
            break;
        }
    }
    if is_first {
        batch.resources.remember(run.until(message), room - batch.room());
    }
    Ok(())
}

/// Fast path for the usual scalar: a known name and a number, allocated but not reserved.
#[inline(always)]
fn plain_resource(mut message: WireCursor<'_>) -> Option<Resource<'static>> {
    let (name, kind) = if message.strip(b"\n\x04cpus\x10\0\x1a\x09\x09") {
        ("cpus", ResourceKind::Cpus)
    } else if message.strip(b"\n\x03mem\x10\0\x1a\x09\x09") {
        ("mem", ResourceKind::Memory)
    } else if message.strip(b"\n\x04disk\x10\0\x1a\x09\x09") {
        ("disk", ResourceKind::Other)
    } else {
        return None;
    };
    let value = Value::Scalar(Scalar::from_f64_lenient(message.double().ok()?));
    let (revocability, reservations) =
        (Revocability::NonRevocable, Reservations::PostRefinement(&[]));
    let is_plain = message.left() == 0 || message.is_only(key::ALLOCATION_INFO as u8);
    is_plain.then_some(Resource { name, kind, revocability, reservations, value })
}

/// Decodes a resource and adds it to the batch.
#[inline(never)]
fn read_resource<'a>(mut message: WireCursor<'a>, batch: &mut OfferBatch<'a>) -> Result<()> {
    batch.count()?;
    batch.begin_value();
    let (mut name, mut kind, mut scalar) = ("", value::SCALAR, 0.0);
    if message.strip(b"\n\x05ports\x10\x01") {
        (name, kind) = ("ports", value::RANGES);
    }
    let mut reserved = Reserved::default();
    let (mut revocable, mut shared, mut disk) = (false, false, false);
    while let Some(key) = message.key()? {
        match key {
            key::NAME => name = known_text(message.bytes()?)?,
            key::TYPE => kind = message.number()?,
            key::SCALAR => read_scalar(message.message()?, &mut scalar)?,
            key::RANGES => read_ranges(message.message()?, batch)?,
            key::SET => read_set(message.message()?, batch)?,
            key::ROLE => reserved.role = Some(bounded_role(known_text(message.bytes()?)?)?),
            key::RESERVATION => {
                let draft = reserved.by.get_or_insert_with(|| ReservationDraft::new(batch.arena));
                draft.read(message.message()?, batch)?;
            }
            key::RESERVATIONS => {
                batch.count()?;
                let mut draft = ReservationDraft::new(batch.arena);
                draft.read(message.message()?, batch)?;
                reserved.stack.get_or_insert_with(|| open(batch.arena)).push(draft.finish());
            }
            key::DISK => disk = message.message()?.skip_all().map(|()| true)?,
            key::REVOCABLE => revocable = message.message()?.skip_all().map(|()| true)?,
            key::SHARED => shared = message.message()?.skip_all().map(|()| true)?,
            key => message.skip(key, key::KNOWN)?,
        }
    }
    let value = match kind {
        value::SCALAR => Value::Scalar(Scalar::from_f64_lenient(scalar)),
        value::RANGES => Value::Ranges(batch.take_ranges()),
        value::SET => Value::Set(batch.take_items()),
        _ => Value::Set(&[]),
    };
    let revocability = match (disk, shared, revocable) {
        (true, _, _) => Revocability::Disk,
        (_, true, _) => Revocability::Shared,
        (_, _, true) => Revocability::Revocable,
        _ => Revocability::NonRevocable,
    };
    let resource = Resource::new(name, value).with_revocability(revocability);
    batch.resources.push(resource.with_reservations(reserved.finish(batch)));
    Ok(())
}

impl<'a> Reserved<'a> {
    /// Returns the reservations. A stack is the new form, and so is a resource without reservation fields.
    #[inline(always)]
    fn finish(self, batch: &OfferBatch<'a>) -> Reservations<'a> {
        match self {
            Reserved { stack: Some(stack), .. } => {
                Reservations::PostRefinement(stack.into_bump_slice())
            }
            Reserved { role: None, by: None, .. } => Reservations::PostRefinement(&[]),
            Reserved { role, by, .. } => {
                let by = by.map(|by| &*batch.arena.alloc(by.finish().by));
                Reservations::PreRefinement { role: role.unwrap_or(DEFAULT_ROLE), dynamic: by }
            }
        }
    }
}

/// Decodes a name that is probably one of a few known ones.
#[inline(always)]
fn known_text(bytes: &[u8]) -> Result<&str> {
    Ok(match bytes {
        b"cpus" => "cpus",
        b"mem" => "mem",
        b"disk" => "disk",
        b"gpus" => "gpus",
        b"ports" => "ports",
        b"*" => DEFAULT_ROLE,
        other => text(other)?,
    })
}

/// Decodes consecutive attributes and adds them to the batch. `key` is the key of the first one, which was read already
/// and must be one byte.
#[inline(always)]
pub(super) fn read_attributes<'a>(
    message: &mut WireCursor<'a>,
    key: u32,
    batch: &mut OfferBatch<'a>,
) -> Result<()> {
    if let Some(count) = batch.attributes.recall(message) {
        return batch.count_all(count);
    }
    let (run, room, is_first) = (*message, batch.room(), batch.attributes.is_empty());
    loop {
        let attribute = message.message()?;
        if let Some(plain) = plain_attribute(attribute, batch.attributes.guess())? {
            batch.count()?;
            batch.attributes.push(plain);
        } else {
            read_attribute(attribute, batch)?;
        }
        if !message.strip(&[key as u8]) {
            break;
        }
    }
    if is_first {
        batch.attributes.remember(run.until(message), room - batch.room());
    }
    Ok(())
}

/// Fast path for the usual attribute: a name and a short text or a number. If its texts equal those of `guess`, their
/// UTF-8 check is skipped.
#[inline(always)]
fn plain_attribute<'a>(
    message: WireCursor<'a>,
    guess: Option<&Attribute<'a>>,
) -> Result<Option<Attribute<'a>>> {
    let Some((name, kind, mut rest)) = message.name_and_type() else { return Ok(None) };
    let value = match i32::from(kind) {
        value::TEXT if rest.is_only(attribute::TEXT as u8) => {
            let Some(letters) = rest.past(2).only_text() else { return Ok(None) };
            AttributeValue::Text(match guess {
                Some(Attribute { value: AttributeValue::Text(text), .. })
                    if text.as_bytes() == letters =>
                {
                    text
                }
                _ => text(letters)?,
            })
        }
        value::SCALAR if rest.strip(b"\x1a\x09\x09") && rest.left() == 8 => {
            AttributeValue::Scalar(rest.double()?)
        }
        _ => return Ok(None),
    };
    let name = match guess {
        Some(guess) if guess.name.as_bytes() == name => guess.name,
        _ => text(name)?,
    };
    Ok(Some(Attribute { name, value }))
}

/// Decodes an attribute and adds it to the batch.
#[inline(never)]
fn read_attribute<'a>(mut message: WireCursor<'a>, batch: &mut OfferBatch<'a>) -> Result<()> {
    batch.count()?;
    batch.begin_value();
    let may_be_long = message.left() > ATTRIBUTE_BYTES_MAX;
    let (mut name, mut kind, mut scalar, mut text) = ("", value::SCALAR, 0.0, None);
    while let Some(key) = message.key()? {
        match key {
            attribute::NAME => name = message.text()?,
            attribute::TYPE => kind = message.number()?,
            attribute::SCALAR => read_scalar(message.message()?, &mut scalar)?,
            attribute::RANGES => read_ranges(message.message()?, batch)?,
            attribute::TEXT => read_text(message.message()?, &mut text)?,
            attribute::SET => read_set(message.message()?, batch)?,
            key => message.skip(key, attribute::KNOWN)?,
        }
    }
    let value = match kind {
        value::TEXT => AttributeValue::Text(text.unwrap_or_default()),
        value::SCALAR => AttributeValue::Scalar(scalar),
        value::RANGES => AttributeValue::Ranges(batch.take_ranges()),
        value::SET => AttributeValue::Set(batch.take_items()),
        _ => AttributeValue::Set(&[]),
    };
    if may_be_long && is_long(name, &value) {
        return Err(MalformedOffer::LongText);
    }
    batch.attributes.push(Attribute { name, value });
    Ok(())
}

#[cold]
fn is_long(name: &str, value: &AttributeValue<'_>) -> bool {
    let is_long = |text: &str| text.len() > ATTRIBUTE_BYTES_MAX;
    is_long(name)
        || match value {
            AttributeValue::Text(text) => is_long(text),
            AttributeValue::Set(items) => items.iter().any(|item| is_long(item)),
            AttributeValue::Scalar(_) | AttributeValue::Ranges(_) => false,
        }
}
