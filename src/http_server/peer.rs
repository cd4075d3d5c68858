//! Whose program is at the other end of a connection within this machine.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::private_files::effective_uid;

/// Whose program is at the other end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerUser {
    /// This program's user, or root.
    Own,
    /// Another user, or one that isn't known: the client is on another machine, or has gone.
    #[default]
    Other,
    /// This system doesn't tell.
    Untold,
}

/// Whose program has made a connection that was accepted.
///
/// A client's address and port say whose it is only while this end is open: then no other program can have them. So
/// this end is looked at last.
pub(super) fn peer_user(stream: &TcpStream) -> PeerUser {
    if !cfg!(target_os = "linux") {
        return PeerUser::Untold;
    }
    let ends = stream.peer_addr().and_then(|client| Ok((client, stream.local_addr()?)));
    let Ok((client, server)) = ends else { return PeerUser::Other };
    let user = match user_of(client, server) {
        Some(user) if user == 0 || user == effective_uid() => PeerUser::Own,
        // A kernel that doesn't tell of this end, which is open, tells of none.
        None if socket_of(server, client).is_none() => PeerUser::Untold,
        _ => PeerUser::Other,
    };
    if stream.peer_addr().is_ok() { user } else { PeerUser::Other }
}

/// The user whose program has a socket of this machine that is connected from `client` to `server`. `None` if there is
/// none, or if no program has it open any more: the user of such a socket may have become 0.
fn user_of(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let socket = socket_of(client, server)?;
    (socket.is_connected && socket.has_file).then_some(socket.user)
}

/// What the kernel says of a socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToldSocket {
    user: u32,
    is_connected: bool,
    /// Whether a program has it open.
    has_file: bool,
}

/// The socket of this machine with these addresses of its own and of the other end, in any state.
#[cfg(target_os = "linux")]
fn socket_of(own: SocketAddr, other: SocketAddr) -> Option<ToldSocket> {
    use rustix::net::netlink::SOCK_DIAG;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    };
    let kernel =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG));
    let kernel = kernel.ok()?;
    send(&kernel, &diag_request(own, other), SendFlags::empty()).ok()?;
    let mut answer = [0; 512];
    // The kernel answers before `send` returns.
    let (_, length) = recv(&kernel, &mut answer, RecvFlags::DONTWAIT).ok()?;
    socket_in_answer(answer.get(..length)?, own.port(), other.port())
}

#[cfg(not(target_os = "linux"))]
fn socket_of(_: SocketAddr, _: SocketAddr) -> Option<ToldSocket> {
    None
}

/// The type of the messages: `SOCK_DIAG_BY_FAMILY`.
#[cfg(target_os = "linux")]
const DIAG_BY_FAMILY: u16 = 20;

/// The question for one socket (sock_diag(7)): a `nlmsghdr` and an `inet_diag_req_v2`.
#[cfg(target_os = "linux")]
fn diag_request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    use std::net::IpAddr;
    const LENGTH: u32 = 16 + 56;
    const NLM_F_REQUEST: u16 = 1;
    const IPPROTO_TCP: u8 = 6;
    const NO_COOKIE: [u8; 8] = [0xff; 8];
    let address = |of: SocketAddr| match of.ip().to_canonical() {
        IpAddr::V4(address) => (2_u8, [&address.octets()[..], &[0; 12]].concat()),
        IpAddr::V6(address) => (10, address.octets().to_vec()),
    };
    let ((family, from), (_, to)) = (address(own), address(other));
    [
        &LENGTH.to_ne_bytes()[..],
        &DIAG_BY_FAMILY.to_ne_bytes(),
        &NLM_F_REQUEST.to_ne_bytes(),
        // A sequence number, and the port that the kernel chooses.
        &[0; 8],
        // Without extensions, and in any state.
        &[family, IPPROTO_TCP, 0, 0],
        &[0xff; 4],
        &own.port().to_be_bytes(),
        &other.port().to_be_bytes(),
        &from,
        &to,
        // Any interface.
        &[0; 4],
        &NO_COOKIE,
    ]
    .concat()
}

/// The states of a client's socket that is connected: `TCP_ESTABLISHED`, `TCP_FIN_WAIT1` and `TCP_FIN_WAIT2`.
#[cfg(target_os = "linux")]
const CONNECTED: [u8; 3] = [1, 4, 5];

/// The socket in an answer: a `nlmsghdr` and an `inet_diag_msg`. `None` if it is an error, or about another socket,
/// such as one that listens at the port.
#[cfg(target_os = "linux")]
fn socket_in_answer(answer: &[u8], own_port: u16, other_port: u16) -> Option<ToldSocket> {
    let two = |at: usize| answer.get(at..at + 2)?.try_into().ok();
    let four = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let is_socket = two(4).map(u16::from_ne_bytes)? == DIAG_BY_FAMILY;
    let ports = (two(20).map(u16::from_be_bytes)?, two(22).map(u16::from_be_bytes)?);
    let is_connected = CONNECTED.contains(answer.get(17)?);
    let (user, has_file) = (four(80)?, four(84)? != 0);
    let is_it = is_socket && ports == (own_port, other_port);
    is_it.then_some(ToldSocket { user, is_connected, has_file })
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// Goal: the user of a client is told as long as the client has its socket open, and never afterwards. Method:
    /// clients of both families that are open, half closed, and closed; ports that aren't connected.
    #[test]
    fn the_user_of_an_open_client_is_told() {
        let own = Some(effective_uid());
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Not every machine has the second family.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let server = listener.local_addr().unwrap();
            let client = TcpStream::connect(server).unwrap();
            let (accepted, from) = listener.accept().unwrap();
            assert_eq!(user_of(from, server), own, "{address}");
            assert_eq!(user_of(server, from), own, "{address}: the other direction");
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(user_of(from, server), own, "{address}: half closed");
            drop(client);
            assert_eq!(user_of(from, server), None, "{address}: closed");
            drop(accepted);
            assert_eq!(user_of(from, server), None, "{address}: closed by both");
            // A socket listens at this port, and none is connected from it.
            assert_eq!(user_of(server, from), None, "{address}");
        }
    }

    /// Goal: a client that reaches IPv4 through a socket of IPv6 is known, too. Method: an address that is mapped.
    #[test]
    fn the_user_of_a_mapped_client_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let Ok(_client) = TcpStream::connect(("::ffff:127.0.0.1", server.port())) else { return };
        let (_accepted, from) = listener.accept().unwrap();
        assert_eq!(user_of(from, server), Some(effective_uid()));
    }

    /// Goal: an answer that isn't one is about no socket. Method: an answer cut at each length; errors; another port;
    /// sockets without a file, and that aren't connected.
    #[test]
    fn other_answers_tell_of_nothing() {
        let told = |is_connected, has_file| Some(ToldSocket { user: 7, is_connected, has_file });
        let mut answer = vec![0; 88];
        answer[4..6].copy_from_slice(&DIAG_BY_FAMILY.to_ne_bytes());
        answer[17] = 1;
        answer[20..24].copy_from_slice(&[0, 1, 0, 2]);
        answer[80..84].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(socket_in_answer(&answer, 1, 2), told(true, false));
        answer[84] = 1;
        assert_eq!(socket_in_answer(&answer, 1, 2), told(true, true));
        assert_eq!(socket_in_answer(&answer, 2, 1), None);
        for length in 0..answer.len() {
            assert_eq!(socket_in_answer(&answer[..length], 1, 2), None, "{length}");
        }
        let other = |at: usize, byte: u8| {
            let mut answer = answer.clone();
            answer[at] = byte;
            socket_in_answer(&answer, 1, 2)
        };
        assert_eq!(other(4, 2), None, "an error");
        assert_eq!((other(17, 2), other(17, 5)), (told(false, true), told(true, true)));
    }

    /// Goal: a client that has hung up is another's, not one of whom the system tells nothing. Method: clients that
    /// close, with and without something unread, before their connection is looked at.
    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_is_gone_is_nobodys() {
        for is_reset in [false, true] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            assert_eq!(peer_user(&accepted), PeerUser::Own);
            if is_reset {
                accepted.writable().await.unwrap();
                assert_eq!(accepted.try_write(b"unread").unwrap(), 6);
            }
            drop(client);
            assert_eq!(peer_user(&accepted), PeerUser::Other, "{is_reset}");
        }
    }
}
