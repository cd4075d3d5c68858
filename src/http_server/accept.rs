//! The loop that accepts connections, and the time that each part of a connection may take.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connections::{ClientConnection, ConnectionRank, OpenConnections, WhenFull};
use super::peer::peer_user;

/// The pause after a failed `accept`, for example with too many open files and no connection that gives way.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What clients may do, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// The most connections that are open at a time. For a further one, the oldest of the lowest rank that isn't in use
    /// is closed; so it is if the system has no file for another one.
    pub connections_max: usize,
    /// What happens if all of them are in use.
    pub when_full: WhenFull,
    /// The longest time for a TLS handshake, and then for the first head of a connection.
    pub first_head_timeout: Duration,
    /// The longest time for the head of a further request, from the end of the request before.
    pub head_timeout: Duration,
    /// How long a connection that isn't in use stays open at least, and twice this at most, unless it is of the highest
    /// rank. `None` means until `head_timeout`.
    pub unused_timeout: Option<Duration>,
    /// The most bytes of a request's head.
    pub head_bytes_max: usize,
    /// The most headers of a request.
    pub headers_max: usize,
    /// How long a connection lasts after its first head, and how much longer the answer in progress may take then.
    /// `None` means as long as both sides want.
    pub lasts: Option<(Duration, Duration)>,
    /// How long a client may leave what was sent to it without an acknowledgement, or may read nothing of it. Then the
    /// connection ends; the system by itself waits for about 15 min for a machine that has vanished.
    pub unacknowledged_timeout: Duration,
    /// Whether the system is asked which user's program each connection belongs to.
    pub looks_up_users: bool,
}

/// Accepts connections for ever, and answers the requests on them by `respond`, which may note that a connection is in
/// use. `refused` is called for clients with which TLS fails.
///
/// Must be called in a `LocalSet`; each connection has a task of its own there.
pub async fn accept<F, A, B>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: ServerLimits,
    refused: impl Fn(SocketAddr, &io::Error) + Clone + 'static,
    respond: F,
) where
    F: Fn(Request<Incoming>, Rc<ClientConnection>) -> A + Clone + 'static,
    A: Future<Output = Response<B>> + 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut open = OpenConnections::new(limits.connections_max, limits.when_full);
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if !(has_no_file(&error) && open.free_file().await) {
                    sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        if open.make_room() {
            let client = Rc::new(ClientConnection::from(address));
            let refused = refused.clone();
            let refused = move |why: &io::Error| refused(address, why);
            let (tls, answering) = (tls.clone(), Rc::clone(&client));
            let served = serve_client(stream, tls, limits, answering, refused, respond.clone());
            open.add(client, spawn_local(served).abort_handle());
        }
    }
}

/// Whether this program or the system has too many open files.
fn has_no_file(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

async fn serve_client<F, A, B>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    limits: ServerLimits,
    client: Rc<ClientConnection>,
    refused: impl Fn(&io::Error),
    respond: F,
) where
    F: Fn(Request<Incoming>, Rc<ClientConnection>) -> A + 'static,
    A: Future<Output = Response<B>> + 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // Answers are small; a socket that was closed already is the client's.
    let _ = stream.set_nodelay(true);
    let unacknowledged = u32::try_from(limits.unacknowledged_timeout.as_millis());
    let _ = set_tcp_user_timeout(&stream, unacknowledged.unwrap_or(u32::MAX));
    if limits.looks_up_users {
        client.user.set(peer_user(&stream));
    }
    match tls {
        None => serve_stream(stream, limits, client, respond).await,
        Some(tls) => {
            let shaken = timeout(limits.first_head_timeout, tls.accept(stream)).await;
            match shaken {
                Ok(Ok(stream)) => {
                    let (_, session) = stream.get_ref();
                    client.has_certificate.set(session.peer_certificates().is_some());
                    serve_stream(stream, limits, client, respond).await;
                }
                Ok(Err(error)) => refused(&error),
                // It has said nothing.
                Err(_late) => {}
            }
        }
    }
}

/// Answers requests on a connection for as long as one lasts. Errors are the client's.
async fn serve_stream<S, F, A, B>(
    stream: S,
    limits: ServerLimits,
    client: Rc<ClientConnection>,
    respond: F,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    F: Fn(Request<Incoming>, Rc<ClientConnection>) -> A + 'static,
    A: Future<Output = Response<B>> + 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let heads = Cell::new(0_u64);
    let respond = service_fn(|request| {
        heads.set(heads.get().saturating_add(1));
        let answer = respond(request, Rc::clone(&client));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    http.max_buf_size(limits.head_bytes_max).max_headers(limits.headers_max);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), respond));
    let has_ended = timeout(limits.first_head_timeout, connection.as_mut()).await.is_ok();
    if has_ended || heads.get() == 0 {
        return;
    }
    let Some((lasts, last_answer)) = limits.lasts else {
        return until_unused(connection, limits, &client, &heads).await;
    };
    if timeout(lasts, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _cut_off = timeout(last_answer, connection).await;
    }
}

/// Waits until a connection ends, or wasn't in use for long enough to be closed.
async fn until_unused(
    mut connection: Pin<&mut impl Future>,
    limits: ServerLimits,
    client: &ClientConnection,
    heads: &Cell<u64>,
) {
    let Some(unused_timeout) = limits.unused_timeout else {
        connection.await;
        return;
    };
    loop {
        let (was_used, before) = (client.is_used(), heads.get());
        if timeout(unused_timeout, connection.as_mut()).await.is_ok() {
            return;
        }
        let was_used = was_used || client.is_used() || heads.get() != before;
        if !was_used && client.rank() < ConnectionRank::OfStream {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net;
    use std::task::{Context, Poll};

    use hyper::body::{Bytes, Frame};
    use tokio::runtime;
    use tokio::task::LocalSet;

    use super::*;

    const LIMITS: ServerLimits = ServerLimits {
        connections_max: 1,
        when_full: WhenFull::RefuseNew,
        first_head_timeout: Duration::from_millis(20),
        head_timeout: Duration::from_secs(900),
        unused_timeout: None,
        head_bytes_max: 16 << 10,
        headers_max: 64,
        lasts: None,
        unacknowledged_timeout: Duration::from_secs(60),
        looks_up_users: false,
    };

    /// Goal: a client that says nothing doesn't keep its connection. Method: a client that only reads, with a short
    /// timeout for the first head, far below that for further ones.
    #[test]
    fn a_silent_connection_is_closed() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let respond = async |_, _| Response::new(String::new());
            let served = serve_client(stream, None, LIMITS, Rc::default(), |_| {}, respond);
            timeout(Duration::from_secs(60), spawn_local(served)).await.unwrap().unwrap();
            assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        });
    }

    /// An answer without an end.
    struct Endless;

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1 << 16])))))
        }
    }

    /// Goal: a client that is gone without a word doesn't keep the connection on which it is answered. Method: one that
    /// acknowledges nothing more once its buffer is full, as a vanished machine does at once, with a short time for
    /// that, and an answer without an end.
    #[test]
    fn a_client_that_acknowledges_nothing_is_given_up() {
        let limits = ServerLimits { unacknowledged_timeout: Duration::from_millis(500), ..LIMITS };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let respond = async |_, _| Response::new(Endless);
            let served = serve_client(stream, None, limits, Rc::default(), |_| {}, respond);
            timeout(Duration::from_secs(60), spawn_local(served)).await.unwrap().unwrap();
        });
    }

    /// Goal: a connection is closed between requests, unless its client would take that for the end of a stream, and
    /// never while a request on it is answered. Method: an allowed request each, with a short time for connections that
    /// aren't in use; one that is held, or of the highest rank, is still open after many such times.
    #[test]
    fn an_unused_connection_is_closed() {
        let limits = ServerLimits {
            first_head_timeout: Duration::from_millis(300),
            unused_timeout: Some(Duration::from_millis(5)),
            ..LIMITS
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (rank, is_held) in [
            (ConnectionRank::Allowed, false),
            (ConnectionRank::Allowed, true),
            (ConnectionRank::OfStream, false),
        ] {
            LocalSet::new().block_on(&runtime, async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let mut client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let connection = Rc::new(ClientConnection::default());
                let held = is_held.then(|| connection.hold());
                let respond = move |_, client: Rc<ClientConnection>| {
                    client.raise(rank);
                    std::future::ready(Response::new(String::new()))
                };
                let served =
                    spawn_local(serve_client(stream, None, limits, connection, |_| {}, respond));
                let stays = is_held || rank == ConnectionRank::OfStream;
                let patience = Duration::from_secs(if stays { 1 } else { 60 });
                assert_eq!(timeout(patience, served).await.is_err(), stays);
                drop(held);
            });
        }
    }
}
