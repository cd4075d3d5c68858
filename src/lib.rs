//! Offermill: a scheduler kernel that is linked into a framework.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cluster;
pub mod config;
pub mod constraint;
pub mod engine;
mod error;
mod ids;
mod kernel;
pub mod launch;
mod offer;
pub mod resources;
mod status;
mod sync;
mod time;

pub use config::{Config, ConfigBuilder};
pub use constraint::Constraint;
pub use error::Error;
pub use ids::{ExecutorId, IdScheme};
pub use kernel::*;
pub use offer::{
    Attribute, AttributeValue, DEFAULT_ROLE, Offer, Reservation, Resource, ResourceKind, Value,
};
pub use status::{Fate, StatusUpdate, TaskState, UpdateReason};
pub use time::Timestamp;
