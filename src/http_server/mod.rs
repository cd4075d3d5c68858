//! What an HTTP server needs before anything of a request is read: connections and their bounds, TLS, and the check of
//! the name that a request is for. The page about a run and the standalone master are built on it.
//!
//! | file | content |
//! |---|---|
//! | `accept` | the loop that accepts connections, and the time that each part of a connection may take |
//! | `connections` | how many connections there are, and which of them give way to others |
//! | `host` | the names that requests may be for |
//! | `metrics_text` | figures in the text form of Prometheus |
//! | `open_files` | how many files may be open, and how many of them connections may take |
//! | `page` | what the pages of a run and of a master share, and the headers of all answers to browsers |
//! | `peer` | whose program is at the other end of a connection within this machine |
//! | `tls` | the server's certificate and key, and the certificates of clients |
//!
//! The command line uses this module, too. It is not a part of the documented interface.

mod accept;
mod connections;
mod host;
mod metrics_text;
mod open_files;
mod page;
mod peer;
mod tls;

pub use accept::{ServerLimits, accept};
pub use connections::{ClientConnection, ConnectionRank, ConnectionUse, WhenFull};
pub use host::{HostProblem, check_host, single_header};
pub use metrics_text::MetricsText;
pub use open_files::{connections_within_files, raise_open_files};
pub use page::{PAGE_CODE, PAGE_STYLE, protect};
pub use peer::PeerUser;
pub use tls::{ServerTls, server_tls};
pub use tokio_rustls::TlsAcceptor;
