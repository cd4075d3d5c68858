//! Decoding of one offer.

use std::ops::Range;

use super::batch::OfferBatch;
use super::cursor::{MalformedOffer, Result, WireCursor, known, sized};
use super::resource::{read_attributes, read_resources};
use super::unavailability::Unavailability;
use super::value::{read_nanoseconds, read_role, read_text};
use crate::limits::{FOREIGN_ID_BYTES_MAX, HOSTNAME_BYTES_MAX};
use crate::offer::{Binding, Offer};

const ID: u32 = sized(1);
/// Skipped.
const FRAMEWORK_ID: u32 = sized(2);
const AGENT_ID: u32 = sized(3);
const HOSTNAME: u32 = sized(4);
pub(super) const RESOURCES: u32 = sized(5);
pub(super) const ATTRIBUTES: u32 = sized(7);
const UNAVAILABILITY: u32 = sized(9);
const ALLOCATION_INFO: u32 = sized(10);
const DOMAIN: u32 = sized(11);
const KNOWN: u32 = known(&[
    ID,
    AGENT_ID,
    HOSTNAME,
    RESOURCES,
    ATTRIBUTES,
    UNAVAILABILITY,
    ALLOCATION_INFO,
    DOMAIN,
]);

/// `DomainInfo.fault_domain`.
const FAULT_DOMAIN: u32 = sized(1);
const REGION: u32 = sized(1);
const ZONE: u32 = sized(2);

/// `Unavailability.start`.
const START: u32 = sized(1);
const DURATION: u32 = sized(2);

/// The nesting depth of an offer: it is in an `Offers` message, which is in an `Event`.
pub(super) const ABOVE: u8 = 2;

/// The fields of an offer, except its resources and attributes.
#[derive(Default)]
struct OfferDraft<'a> {
    id: Option<&'a str>,
    agent_id: Option<&'a str>,
    hostname: &'a str,
    role: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
    unavailability: Option<Unavailability>,
}

/// Decodes an offer and adds it to the batch.
pub(super) fn read_offer<'a>(
    bytes: &'a [u8],
    default_role: &'a str,
    batch: &mut OfferBatch<'a>,
) -> Result<()> {
    let mut draft = OfferDraft::default();
    let mut message = WireCursor::new(bytes, ABOVE);
    // Texts of a usual head have less than 128 bytes.
    let mut is_usual = false;
    if let Some((head, length)) = read_head(bytes) {
        is_usual = true;
        (draft.id, draft.agent_id, draft.hostname) =
            (Some(head.id), Some(head.agent_id), head.hostname);
        message = message.past(length);
    }
    while let Some(key) = message.key()? {
        match key {
            ID | AGENT_ID | HOSTNAME => {
                is_usual = false;
                match key {
                    ID => read_text(message.message()?, &mut draft.id)?,
                    AGENT_ID => read_text(message.message()?, &mut draft.agent_id)?,
                    _ => draft.hostname = message.text()?,
                }
            }
            RESOURCES => read_resources(&mut message, RESOURCES, batch)?,
            ATTRIBUTES => read_attributes(&mut message, ATTRIBUTES, batch)?,
            ALLOCATION_INFO => read_role(message.message()?, &mut draft.role)?,
            UNAVAILABILITY => {
                let unavailability = draft.unavailability.get_or_insert_default();
                read_unavailability(message.message()?, unavailability)?;
            }
            DOMAIN => read_domain(message.message()?, &mut draft)?,
            key => message.skip(key, KNOWN)?,
        }
    }
    let id = draft.id.filter(|id| !id.is_empty()).ok_or(MalformedOffer::NoId)?;
    let agent_id = draft.agent_id.filter(|id| !id.is_empty()).ok_or(MalformedOffer::NoAgent)?;
    let names = [draft.role, draft.region, draft.zone].map(|name| name.map_or(0, str::len));
    let is_long_name = names.into_iter().any(|length| length > FOREIGN_ID_BYTES_MAX);
    if is_long_name || !is_usual && is_long(id, agent_id, draft.hostname) {
        return Err(MalformedOffer::LongText);
    }
    if let Some(away) = draft.unavailability {
        batch.unavailable.push((batch.offers.len(), away));
    }
    batch.end(Offer {
        id,
        agent_id,
        hostname: draft.hostname,
        role: draft.role.unwrap_or(default_role),
        resources: &[],
        attributes: &[],
        region: draft.region,
        zone: draft.zone,
        maintenance_in: None,
        binding: Binding::Immediate,
    });
    Ok(())
}

/// Reads only the agent's id, of an offer that can't be decoded. `None` if that isn't possible.
#[cold]
pub(super) fn agent_id(bytes: &[u8]) -> Option<&str> {
    let mut message = WireCursor::new(bytes, ABOVE);
    let mut id = None;
    while let Some(key) = message.key().ok()? {
        if key == AGENT_ID {
            read_text(message.message().ok()?, &mut id).ok()?;
            return id.filter(|id| !id.is_empty());
        }
        message.skip(key, 0).ok()?;
    }
    None
}

#[cold]
fn is_long(id: &str, agent_id: &str, hostname: &str) -> bool {
    id.len().max(agent_id.len()) > FOREIGN_ID_BYTES_MAX || hostname.len() > HOSTNAME_BYTES_MAX
}

/// The first fields of an offer.
struct OfferHead<'a> {
    id: &'a str,
    agent_id: &'a str,
    hostname: &'a str,
}

/// Decodes the usual beginning of an offer: the ids of the offer, the framework and the agent, and the host name, all
/// short. Also returns its length.
///
/// Keys and short lengths are ASCII, so one UTF-8 check covers the whole beginning.
#[inline(always)]
fn read_head(bytes: &[u8]) -> Option<(OfferHead<'_>, usize)> {
    let (id, framework_id_at) = boxed_text(bytes, 0, ID)?;
    let (_, agent_id_at) = boxed_text(bytes, framework_id_at, FRAMEWORK_ID)?;
    let (agent_id, hostname_at) = boxed_text(bytes, agent_id_at, AGENT_ID)?;
    let (key, length) = (*bytes.get(hostname_at)?, *bytes.get(hostname_at + 1)?);
    if u32::from(key) != HOSTNAME || length >= 0x80 {
        return None;
    }
    let hostname = hostname_at + 2..hostname_at + 2 + usize::from(length);
    let end = hostname.end;
    let text = simdutf8::basic::from_utf8(bytes.get(..end)?).ok()?;
    let (before, hostname) = text.split_at_checked(hostname.start)?;
    let (id, agent_id) = (part(before, id)?, part(before, agent_id)?);
    Some((OfferHead { id, agent_id, hostname }, end))
}

/// A part of a text. As `get`, which isn't inlined.
#[inline(always)]
fn part(text: &str, range: Range<usize>) -> Option<&str> {
    let (until, _) = text.split_at_checked(range.end)?;
    until.split_at_checked(range.start).map(|(_, part)| part)
}

/// If the message at `at` has the key `key` and consists of one short text, returns the text's range and its end.
#[inline(always)]
fn boxed_text(bytes: &[u8], at: usize, key: u32) -> Option<(Range<usize>, usize)> {
    let &[first, outer, 0x0a, inner] = bytes.get(at..)?.first_chunk()? else { return None };
    let is_plain = u32::from(first) == key && outer < 0x80 && inner.checked_add(2) == Some(outer);
    let end = at + 4 + usize::from(inner);
    is_plain.then_some((at + 4..end, end))
}

#[cold]
fn read_unavailability(
    mut message: WireCursor<'_>,
    unavailability: &mut Unavailability,
) -> Result<()> {
    while let Some(key) = message.key()? {
        match key {
            START => read_nanoseconds(message.message()?, &mut unavailability.start_ns)?,
            DURATION => {
                let duration = unavailability.duration_ns.get_or_insert_default();
                read_nanoseconds(message.message()?, duration)?;
            }
            key => message.skip(key, known(&[START, DURATION]))?,
        }
    }
    Ok(())
}

fn read_domain<'a>(mut message: WireCursor<'a>, draft: &mut OfferDraft<'a>) -> Result<()> {
    while let Some(key) = message.key()? {
        if key != FAULT_DOMAIN {
            message.skip(key, known(&[FAULT_DOMAIN]))?;
            continue;
        }
        let mut domain = message.message()?;
        while let Some(key) = domain.key()? {
            match key {
                REGION => read_text(domain.message()?, &mut draft.region)?,
                ZONE => read_text(domain.message()?, &mut draft.zone)?,
                key => domain.skip(key, known(&[REGION, ZONE]))?,
            }
        }
    }
    Ok(())
}
