//! `offermill ctl`: sends a command to a running `offermill run` and prints the reply.

use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::geteuid;
use serde::de::IgnoredAny;

use crate::control::command::{HELP, MASTER_COMMANDS, WORDS};
use crate::control::socket::connect_until;
use crate::control::write::write_until;
use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_json, print_result, remark};
use crate::text::styled::StyledText;

/// The longest wait for a whole reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a reply: several times the status of 10 000 executors as JSON.
const REPLY_BYTES_MAX: usize = 64 << 20;

const EXAMPLES: &str = "\
Examples:
    offermill ctl /run/etl.sock status
    offermill ctl /run/etl.sock limit 20
    offermill ctl /run/etl.sock kill 17 18
    offermill ctl /run/etl.sock queues 'etl:max-cores=6; adhoc:guaranteed-cores=2'
    offermill ctl /run/master.sock drain 26b92b18-1-W0 5min

Exit codes:
    0  the run or the master executed the command; the reply is on standard output
    1  it refused the command; the reason is on standard error
    2  the command is not one line of text
    4  no reply came within 30 s: no run or master listens at the socket, or it is
       another user's, or it hangs. One that hangs may execute the command later
    5  standard output can't be written (a closed pipe is fine)";

/// The arguments of `offermill ctl`.
#[derive(Debug, Args)]
#[command(after_help = format!(
    "Commands to a run:\n{HELP}\n\nCommands to a master:\n{MASTER_COMMANDS}\n\n{EXAMPLES}"
))]
pub(crate) struct CtlArguments {
    /// The socket that was given to the run, or to offermill master, with --control
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

/// Sends the command and prints the reply.
pub(crate) fn send_command(arguments: &CtlArguments) -> ExitStatus {
    let CtlArguments { socket, command } = arguments;
    let line = command.join(" ");
    if line.contains('\n') || line.trim().is_empty() {
        remark("the command must be one line; \"help\" lists the commands");
        return ExitStatus::BadInput;
    }
    let reply = match exchange(socket, &line, Instant::now() + REPLY_TIMEOUT) {
        Ok(reply) => reply,
        Err(error) => {
            let hint = match is_command(socket) && !Path::new(socket).exists() {
                true => "; the socket comes before the command: offermill ctl SOCKET COMMAND",
                false => "",
            };
            remark(&format!("{}{hint}", no_reply(socket, &error)));
            return ExitStatus::Cluster;
        }
    };
    let reply = reply.trim_end();
    if let Some(why) = reply.strip_prefix("error: ") {
        remark(why);
        return ExitStatus::CommandRefused;
    }
    let reply = reply.strip_prefix("ok: ").unwrap_or(reply);
    let is_json = reply.starts_with('{') && serde_json::from_str::<IgnoredAny>(reply).is_ok();
    let printed = match is_json {
        true => print_json(&format!("{reply}\n")),
        false => print_result(&StyledText::lines(&format!("{reply}\n"))),
    };
    match printed {
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
        PrintOutcome::Failed => ExitStatus::OutputClosed,
    }
}

/// Why a socket gave no reply.
fn no_reply(socket: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "the run or master at {socket:?} can't be reached: {error}; only the user that started it can connect"
        ),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            format!("no run or master answers at {socket:?}: {error}")
        }
        _ => format!("no whole reply came from {socket:?}: {error}"),
    }
}

/// Whether a word begins a command, so that the socket before it was forgotten.
fn is_command(word: &str) -> bool {
    word != "or" && WORDS.split([',', ' ']).any(|known| known == word)
}

/// Sends the line and returns the whole reply. Closing the sending side tells the run that no other command follows.
fn exchange(socket: &str, line: &str, give_up: Instant) -> io::Result<String> {
    let mut run = connect_until(Path::new(socket), give_up)?;
    check_owner(owner(&run, socket)?, geteuid().as_raw())?;
    // A run with too many clients replies without reading, so a failed write is reported only without a reply.
    let written = write_until(&run, format!("{line}\n").as_bytes(), give_up);
    let _gone = run.shutdown(Shutdown::Write);
    let reply = read_reply(&mut run, give_up).map_err(|error| may_be_done(&error))?;
    if reply.is_empty() {
        written?;
        return Err(may_be_done(&io::Error::other("it closed the connection without a reply")));
    }
    if !is_whole(&reply) {
        let cut_off = io::Error::new(ErrorKind::UnexpectedEof, "its reply was cut off");
        return Err(may_be_done(&cut_off));
    }
    Ok(reply)
}

/// The error of a reply that didn't come, or not whole, after the command was sent.
fn may_be_done(error: &io::Error) -> io::Error {
    let why = format!("{error}; it may have executed the command, or may do so later");
    io::Error::new(error.kind(), why)
}

/// Whether a reply has its end: that of the line, or an empty line after several.
fn is_whole(reply: &str) -> bool {
    let is_one_line = ["ok: ", "error: ", "{"].iter().any(|head| reply.starts_with(head));
    reply.ends_with(if is_one_line { "\n" } else { "\n\n" })
}

/// Checks that the socket's owner is the user of this process: whoever else made it could claim to be the run.
fn check_owner(owner: u32, own: u32) -> io::Result<()> {
    if owner == own {
        return Ok(());
    }
    let why = format!("it belongs to the user with the id {owner}, and this process has {own}");
    // As with sudo.
    let advice = match own {
        0 => format!("; run this command as that user, as with sudo -u '#{owner}'"),
        _ => String::new(),
    };
    Err(io::Error::other(why + &advice))
}

/// The user who listens at the socket.
#[cfg(target_os = "linux")]
fn owner(run: &UnixStream, _: &str) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(run)?.uid.as_raw())
}

/// The user to whom the socket's file belongs.
#[cfg(not(target_os = "linux"))]
fn owner(_: &UnixStream, socket: &str) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(socket)?.uid())
}

/// Reads to the end of the connection.
///
/// # Errors
/// If the end has not come by `give_up`, or not within [`REPLY_BYTES_MAX`] bytes.
fn read_reply(run: &mut UnixStream, give_up: Instant) -> io::Result<String> {
    let mut reply = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "its reply took too long"));
        }
        run.set_read_timeout(Some(left))?;
        match run.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => reply.extend_from_slice(piece.get(..length).unwrap_or_default()),
            // A run that replies without reading resets the connection afterwards.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !reply.is_empty() => break,
            // The end of the timeout, or a signal.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if reply.len() > REPLY_BYTES_MAX {
            let why = format!("its reply is longer than {} MiB", REPLY_BYTES_MAX >> 20);
            return Err(io::Error::other(why));
        }
    }
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Goal: that nobody answers is told only if that is so. Method: errors of a socket that may not be used, of one
    /// that isn't there, and of one that says nothing.
    #[test]
    fn permission_is_named() {
        let denied = no_reply("s", &ErrorKind::PermissionDenied.into());
        assert!(denied.contains("can't be reached: permission denied; only the user"), "{denied}");
        let absent = no_reply("s", &ErrorKind::NotFound.into());
        assert!(absent.starts_with("no run or master answers at \"s\": "), "{absent}");
        let late = no_reply("s", &may_be_done(&io::Error::new(ErrorKind::TimedOut, "too long")));
        let told = "no whole reply came from \"s\": too long; it may have executed the command, or may do so later";
        assert_eq!(late, told);
    }

    /// Goal: a run that reads slowly is given up like one that replies slowly. Method: a long line of which 4 KiB are
    /// read each millisecond, so that all of it takes seconds; how much of it was sent.
    #[test]
    fn sending_has_a_deadline() {
        let path = std::env::temp_dir().join(format!("offermill-slow-{}", std::process::id()));
        let _former = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let reader = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let (mut sent, mut piece) = (0, [0; 4096]);
            while let Ok(length @ 1..) = client.read(&mut piece) {
                sent += length;
                std::thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        let line = "x".repeat(16 << 20);
        let give_up = Instant::now() + Duration::from_millis(50);
        let error = exchange(path.to_str().unwrap(), &line, give_up).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(reader.join().unwrap() < line.len());
        std::fs::remove_file(&path).unwrap();
    }

    /// Goal: a reply that trickles is given up. Method: a byte each 5 ms, without an end.
    #[test]
    fn a_reply_has_a_deadline() {
        let (mut run, mut peer) = UnixStream::pair().unwrap();
        let trickle = std::thread::spawn(move || {
            while peer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let give_up = Instant::now() + Duration::from_millis(100);
        assert_eq!(read_reply(&mut run, give_up).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(run);
        trickle.join().unwrap();
    }

    /// Goal: a run that accepts no connections is given up. Method: a socket whose backlog is full, and nobody accepts.
    #[test]
    fn connecting_has_a_deadline() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
        let path = std::env::temp_dir().join(format!("offermill-full-{}", std::process::id()));
        let _former = std::fs::remove_file(&path);
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 0).unwrap();
        let text = path.to_str().unwrap();
        // Linux accepts one more connection than the backlog has room for; other systems may accept more.
        let waiting: Vec<_> =
            (0..64).map_while(|_| connect_until(&path, Instant::now()).ok()).collect();
        assert!(waiting.len() < 64);
        let error = exchange(text, "status", Instant::now() + Duration::from_millis(50));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
        std::fs::remove_file(&path).unwrap();
    }

    /// Goal: a reply that was cut off is told apart from a whole one. Method: replies of each kind, cut at each place.
    #[test]
    fn replies_have_an_end() {
        for reply in ["ok: stopping\n", "error: no\n", "{\"a\":1}\n", "one\ntwo\n\n"] {
            assert!(is_whole(reply));
            for end in 0..reply.len() {
                assert!(!is_whole(&reply[..end]), "{:?}", &reply[..end]);
            }
        }
    }

    /// Goal: only sockets of this user are trusted. Method: the owner of a socket of this process; other users, among
    /// them root.
    #[test]
    fn sockets_of_others_are_refused() {
        let (run, _peer) = UnixStream::pair().unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(owner(&run, "").unwrap(), geteuid().as_raw());
        drop(run);
        assert!(check_owner(1000, 1000).is_ok());
        for (owner, own) in [(0, 1000), (1000, 0), (1001, 1000)] {
            let error = check_owner(owner, own).unwrap_err().to_string();
            assert_eq!(error.contains("sudo -u '#1000'"), own == 0, "{error}");
        }
    }
}
