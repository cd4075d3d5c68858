//! Tests of the registrar, and of runs with one, against fakes of the shuffle service.

mod registering;
mod running;
mod service;
