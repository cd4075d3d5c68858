//! Bodies of requests: whole ones, and open ones that grow while their connection lasts.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// All of it; nothing once it was sent.
    Whole(Option<Bytes>),
    /// A first part, and what is received, until the sender is dropped.
    #[cfg(feature = "standalone")]
    Open { first: Option<Bytes>, rest: tokio::sync::mpsc::Receiver<Bytes> },
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> RequestBody {
        RequestBody::Whole(Some(Bytes::from(bytes)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            RequestBody::Whole(bytes) => Poll::Ready(bytes.take()),
            #[cfg(feature = "standalone")]
            RequestBody::Open { first, rest } => match first.take() {
                Some(first) => Poll::Ready(Some(first)),
                None => rest.poll_recv(_context),
            },
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, RequestBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            #[cfg(feature = "standalone")]
            RequestBody::Open { .. } => SizeHint::default(),
        }
    }
}
