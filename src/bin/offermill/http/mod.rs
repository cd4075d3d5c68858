//! The web page about a run, its metrics and its state, over HTTP: `--http`.
//!
//! ```text
//! client ─► server.rs ─► access.rs ─► routes.rs ─► reports.rs ─► the run: reads its ─► answer.rs ─► client
//! (many)    bounded, on  Host, token, a page, or    at most two   state (one inbox)     security
//!           a thread of  method       a report      of a kind                           headers
//!           its own                                 a second
//! ```
//!
//! Nothing here can change a run: only GET and HEAD are answered. The run waits for no client: it hands its state to
//! the server's thread, which writes. Clients that are slow or silent lose their connection, see `server.rs`.

mod access;
mod answer;
mod metrics;
mod reports;
mod routes;
mod server;

pub(crate) use reports::ReportRequest;
pub(crate) use server::{HttpServer, bind, serve};
