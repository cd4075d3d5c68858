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
    let user = user_of(client, server);
    match user {
        Some(user) if user == 0 || user == effective_uid() => match stream.peer_addr() {
            Ok(_) => PeerUser::Own,
            Err(_) => PeerUser::Other,
        },
        _ => PeerUser::Other,
    }
}

/// The user whose program has a socket of this machine that is connected from `client` to `server`. `None` if there is
/// none, or if no program has it open any more: the user of such a socket may have become 0.
#[cfg(target_os = "linux")]
fn user_of(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    use rustix::net::netlink::SOCK_DIAG;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    };
    let kernel =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG));
    let kernel = kernel.ok()?;
    send(&kernel, &diag_request(client, server), SendFlags::empty()).ok()?;
    let mut answer = [0; 512];
    // The kernel answers before `send` returns.
    let (_, length) = recv(&kernel, &mut answer, RecvFlags::DONTWAIT).ok()?;
    user_in_answer(answer.get(..length)?, client.port(), server.port())
}

#[cfg(not(target_os = "linux"))]
fn user_of(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

/// The type of the messages: `SOCK_DIAG_BY_FAMILY`.
#[cfg(target_os = "linux")]
const DIAG_BY_FAMILY: u16 = 20;

/// The question for one socket (sock_diag(7)): a `nlmsghdr` and an `inet_diag_req_v2`.
#[cfg(target_os = "linux")]
fn diag_request(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    use std::net::IpAddr;
    const LENGTH: u32 = 16 + 56;
    const NLM_F_REQUEST: u16 = 1;
    const IPPROTO_TCP: u8 = 6;
    const NO_COOKIE: [u8; 8] = [0xff; 8];
    let address = |of: SocketAddr| match of.ip().to_canonical() {
        IpAddr::V4(address) => (2_u8, [&address.octets()[..], &[0; 12]].concat()),
        IpAddr::V6(address) => (10, address.octets().to_vec()),
    };
    let ((family, from), (_, to)) = (address(client), address(server));
    [
        &LENGTH.to_ne_bytes()[..],
        &DIAG_BY_FAMILY.to_ne_bytes(),
        &NLM_F_REQUEST.to_ne_bytes(),
        // A sequence number, and the port that the kernel chooses.
        &[0; 8],
        // Without extensions, and in any state.
        &[family, IPPROTO_TCP, 0, 0],
        &[0xff; 4],
        &client.port().to_be_bytes(),
        &server.port().to_be_bytes(),
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

/// The user in an answer: a `nlmsghdr` and an `inet_diag_msg`. `None` if it is an error, or about another socket, such
/// as one that listens at the client's port; or if the socket isn't connected, or has no file any more.
#[cfg(target_os = "linux")]
fn user_in_answer(answer: &[u8], client_port: u16, server_port: u16) -> Option<u32> {
    let two = |at: usize| answer.get(at..at + 2)?.try_into().ok();
    let four = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let is_socket = two(4).map(u16::from_ne_bytes)? == DIAG_BY_FAMILY;
    let ports = (two(20).map(u16::from_be_bytes)?, two(22).map(u16::from_be_bytes)?);
    let is_connected = CONNECTED.contains(answer.get(17)?);
    let (user, file) = (four(80)?, four(84)?);
    let is_it = is_socket && is_connected && ports == (client_port, server_port);
    (is_it && file != 0).then_some(user)
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

    /// Goal: an answer that isn't one names nobody. Method: an answer cut at each length; errors; another port; a
    /// socket without a file.
    #[test]
    fn other_answers_name_nobody() {
        let mut answer = vec![0; 88];
        answer[4..6].copy_from_slice(&DIAG_BY_FAMILY.to_ne_bytes());
        answer[17] = 1;
        answer[20..24].copy_from_slice(&[0, 1, 0, 2]);
        answer[80..84].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(user_in_answer(&answer, 1, 2), None);
        answer[84] = 1;
        assert_eq!(user_in_answer(&answer, 1, 2), Some(7));
        assert_eq!(user_in_answer(&answer, 2, 1), None);
        for length in 0..answer.len() {
            assert_eq!(user_in_answer(&answer[..length], 1, 2), None, "{length}");
        }
        let other = |at: usize, byte: u8| {
            let mut answer = answer.clone();
            answer[at] = byte;
            user_in_answer(&answer, 1, 2)
        };
        // An error, and a socket that isn't connected yet.
        assert_eq!((other(4, 2), other(17, 2), other(17, 5)), (None, None, Some(7)));
    }
}
