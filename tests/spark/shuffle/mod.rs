//! The registrar, and runs with one, against stand-ins of the shuffle service.

mod registering;
mod running;
mod service;
