//! The messages of an OFFERS event with only those fields that the offer reader knows, for prost to decode.

#![allow(unreachable_pub)]

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub offers: Option<Offers>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Offers {
    #[prost(message, repeated, tag = "1")]
    pub offers: Vec<Offer>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Offer {
    #[prost(message, optional, tag = "1")]
    pub id: Option<Text>,
    #[prost(message, optional, tag = "3")]
    pub agent_id: Option<Text>,
    #[prost(string, optional, tag = "4")]
    pub hostname: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub resources: Vec<Resource>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "9")]
    pub unavailability: Option<Unavailability>,
    #[prost(message, optional, tag = "10")]
    pub allocation_info: Option<Text>,
    #[prost(message, optional, tag = "11")]
    pub domain: Option<Domain>,
}

/// Ids, texts, names of regions and zones, and roles.
#[derive(Clone, PartialEq, Message)]
pub struct Text {
    #[prost(string, optional, tag = "1")]
    pub value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Domain {
    #[prost(message, optional, tag = "1")]
    pub fault_domain: Option<FaultDomain>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FaultDomain {
    #[prost(message, optional, tag = "1")]
    pub region: Option<Text>,
    #[prost(message, optional, tag = "2")]
    pub zone: Option<Text>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Unavailability {
    #[prost(message, optional, tag = "1")]
    pub start: Option<Nanoseconds>,
    #[prost(message, optional, tag = "2")]
    pub duration: Option<Nanoseconds>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Nanoseconds {
    #[prost(int64, optional, tag = "1")]
    pub nanoseconds: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub kind: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub scalar: Option<Scalar>,
    #[prost(message, optional, tag = "4")]
    pub ranges: Option<Ranges>,
    #[prost(message, optional, tag = "5")]
    pub set: Option<Set>,
    #[prost(string, optional, tag = "6")]
    pub role: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub disk: Option<Anything>,
    #[prost(message, optional, tag = "8")]
    pub reservation: Option<ReservationInfo>,
    #[prost(message, optional, tag = "9")]
    pub revocable: Option<Anything>,
    #[prost(message, optional, tag = "10")]
    pub shared: Option<Anything>,
    #[prost(message, repeated, tag = "13")]
    pub reservations: Vec<ReservationInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub kind: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub scalar: Option<Scalar>,
    #[prost(message, optional, tag = "4")]
    pub ranges: Option<Ranges>,
    #[prost(message, optional, tag = "5")]
    pub text: Option<Text>,
    #[prost(message, optional, tag = "6")]
    pub set: Option<Set>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Scalar {
    #[prost(double, optional, tag = "1")]
    pub value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Ranges {
    #[prost(message, repeated, tag = "1")]
    pub range: Vec<Range>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Range {
    #[prost(uint64, optional, tag = "1")]
    pub begin: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub end: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Set {
    #[prost(string, repeated, tag = "1")]
    pub item: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReservationInfo {
    #[prost(string, optional, tag = "1")]
    pub principal: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub labels: Option<Labels>,
    #[prost(string, optional, tag = "3")]
    pub role: Option<String>,
    #[prost(int32, optional, tag = "4")]
    pub kind: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Labels {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Label {
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// A message of which all fields are unknown.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Anything {}
