//! The registrar against stand-ins of the shuffle service.

mod registering;
mod service;
