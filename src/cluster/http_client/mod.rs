//! An HTTP client for masters, which other masters may stand in for: addresses, connections over TCP or TLS, calls one
//! at a time, and streams of records.

mod http;
mod masters;
mod record_stream;
mod request_body;
mod tls;

pub(crate) use http::{Authorization, Connection, Http, SharedHttp, is_other_leader};
pub use masters::{Master, Masters};
pub(crate) use record_stream::{RecordStream, StreamItem};
#[cfg(feature = "standalone")]
pub(crate) use request_body::RequestBody;
pub use tls::ClientCertificate;
pub(crate) use tls::{TlsFiles, TlsOptions};
