//! [`EventBody`]: a body that is whole, or to which records are added as they come.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::http_server::ConnectionUse;

/// The most bytes that wait for a client that reads slowly.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// The body of an answer.
pub(super) struct EventBody {
    whole: Option<Bytes>,
    records: Option<(UnboundedReceiver<Bytes>, Rc<Cell<usize>>)>,
    /// Called when the client or the server has ended the stream.
    ended: Option<Box<dyn FnOnce()>>,
    /// Keeps the client's connection in use.
    held: Option<ConnectionUse>,
}

/// The end of a stream at which records are added. The stream ends when it is dropped.
#[derive(Debug)]
pub(super) struct RecordSender {
    records: UnboundedSender<Bytes>,
    waiting: Rc<Cell<usize>>,
}

/// A stream of records, and the end at which they are added. `ended` is called once nobody reads it any more.
pub(super) fn record_stream(ended: impl FnOnce() + 'static) -> (RecordSender, EventBody) {
    let (sender, receiver) = unbounded_channel();
    let waiting = Rc::new(Cell::new(0));
    let sender = RecordSender { records: sender, waiting: Rc::clone(&waiting) };
    let body = EventBody {
        records: Some((receiver, waiting)),
        ended: Some(Box::new(ended)),
        whole: None,
        held: None,
    };
    (sender, body)
}

impl RecordSender {
    /// Adds a record with its frame. Returns whether the client reads fast enough.
    pub(super) fn send(&self, frame: Vec<u8>) -> bool {
        let waiting = self.waiting.get() + frame.len();
        self.waiting.set(waiting);
        waiting <= WAITING_BYTES_MAX && self.records.send(Bytes::from(frame)).is_ok()
    }
}

impl EventBody {
    /// A body that is there already.
    pub(super) fn whole(bytes: Bytes) -> EventBody {
        EventBody { whole: Some(bytes), records: None, ended: None, held: None }
    }

    /// Keeps the client's connection in use until the body was sent.
    pub(super) fn hold(&mut self, held: ConnectionUse) {
        self.held = Some(held);
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(whole) = self.whole.take() {
            return Poll::Ready(Some(Ok(Frame::data(whole))));
        }
        let Some((records, waiting)) = &mut self.records else { return Poll::Ready(None) };
        let next = records.poll_recv(context);
        if let Poll::Ready(Some(record)) = &next {
            waiting.set(waiting.get().saturating_sub(record.len()));
        }
        next.map(|record| record.map(|record| Ok(Frame::data(record))))
    }

    /// So that a whole body has a length, and only a stream is sent in chunks.
    fn size_hint(&self) -> SizeHint {
        match (&self.whole, &self.records) {
            (_, Some(_)) => SizeHint::default(),
            (whole, None) => SizeHint::with_exact(whole.as_ref().map_or(0, |it| it.len() as u64)),
        }
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended();
        }
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").finish_non_exhaustive()
    }
}
