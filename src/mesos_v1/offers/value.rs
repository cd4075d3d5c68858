//! Decoding of the values of resources and attributes: scalars, ranges, sets and texts. A message that occurs more than
//! once is merged.

use super::batch::OfferBatch;
use super::cursor::{self, Result, WireCursor, fixed64, known, sized, varint};
use crate::offer::DEFAULT_ROLE;
use crate::resources::PortRange;

/// `Value.Type`.
pub(super) const SCALAR: i32 = 0;
/// `Value.Type`.
pub(super) const RANGES: i32 = 1;
/// `Value.Type`.
pub(super) const SET: i32 = 2;
/// `Value.Type`.
pub(super) const TEXT: i32 = 3;

/// `value` of ids, names and texts; `role` of an allocation; `name` of a region or zone.
const TEXT_VALUE: u32 = sized(1);
const SCALAR_VALUE: u32 = fixed64(1);
const RANGE: u32 = sized(1);
const BEGIN: u32 = varint(1);
const END: u32 = varint(2);
const ITEM: u32 = sized(1);
const NANOSECONDS: u32 = varint(1);

/// Decodes a message whose first field is its text.
#[inline(always)]
pub(super) fn read_text<'a>(message: WireCursor<'a>, text: &mut Option<&'a str>) -> Result<()> {
    if let Some(only) = message.only_text() {
        *text = Some(cursor::text(only)?);
        return Ok(());
    }
    *text = read_any_text(message, *text)?;
    Ok(())
}

/// Decodes a role. The fast path is for the default role.
#[inline(always)]
pub(super) fn read_role<'a>(message: WireCursor<'a>, role: &mut Option<&'a str>) -> Result<()> {
    if message.only_text() == Some(DEFAULT_ROLE.as_bytes()) {
        *role = Some(DEFAULT_ROLE);
        return Ok(());
    }
    read_text(message, role)
}

/// Decodes a message with other fields, or without a text.
#[cold]
fn read_any_text<'a>(
    mut message: WireCursor<'a>,
    mut text: Option<&'a str>,
) -> Result<Option<&'a str>> {
    while let Some(key) = message.key()? {
        match key {
            TEXT_VALUE => text = Some(message.text()?),
            key => message.skip(key, known(&[TEXT_VALUE]))?,
        }
    }
    Ok(text)
}

#[inline(always)]
pub(super) fn read_scalar(mut message: WireCursor<'_>, scalar: &mut f64) -> Result<()> {
    if let Some(only) = message.only_double() {
        *scalar = only;
        return Ok(());
    }
    while let Some(key) = message.key()? {
        match key {
            SCALAR_VALUE => *scalar = message.double()?,
            key => message.skip(key, known(&[SCALAR_VALUE]))?,
        }
    }
    Ok(())
}

pub(super) fn read_ranges<'a>(
    mut message: WireCursor<'a>,
    batch: &mut OfferBatch<'a>,
) -> Result<()> {
    while let Some(key) = message.key()? {
        match key {
            RANGE => {
                let range = read_range(message.message()?)?;
                batch.count()?;
                batch.ranges.push(range);
            }
            key => message.skip(key, known(&[RANGE]))?,
        }
    }
    Ok(())
}

#[inline(always)]
fn read_range(mut message: WireCursor<'_>) -> Result<PortRange> {
    let mut range = PortRange::new(0, 0);
    while let Some(key) = message.key()? {
        match key {
            BEGIN => range.begin = message.varint()?,
            END => range.end = message.varint()?,
            key => message.skip(key, known(&[BEGIN, END]))?,
        }
    }
    Ok(range)
}

pub(super) fn read_set<'a>(mut message: WireCursor<'a>, batch: &mut OfferBatch<'a>) -> Result<()> {
    while let Some(key) = message.key()? {
        match key {
            ITEM => {
                let item = message.text()?;
                batch.count()?;
                batch.items.push(item);
            }
            key => message.skip(key, known(&[ITEM]))?,
        }
    }
    Ok(())
}

/// Decodes a time or a duration, in nanoseconds.
pub(super) fn read_nanoseconds(mut message: WireCursor<'_>, nanoseconds: &mut i64) -> Result<()> {
    while let Some(key) = message.key()? {
        match key {
            NANOSECONDS => *nanoseconds = message.varint()? as i64,
            key => message.skip(key, known(&[NANOSECONDS]))?,
        }
    }
    Ok(())
}
