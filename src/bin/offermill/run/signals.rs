//! Ctrl-C and its kin: the first asks the run to stop, the second ends it at once.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::run::Message;
use crate::run::inbox::Sender;

/// Signals within so long of the first are the same: some tools send each to the process and to its
/// group.
const SAME_WITHIN: Duration = Duration::from_millis(250);
/// How long the session may take to end at once, with a last word and its sockets removed.
const AT_ONCE_WITHIN: Duration = Duration::from_millis(500);

/// Starts a thread that tells the session of signals.
///
/// # Errors
/// When signals can't be handled, or there is no thread to be had.
pub(crate) fn listen(session: Sender<Message>) -> io::Result<()> {
    let mut known = vec![SIGINT, SIGTERM];
    if !hangups_are_ignored() {
        known.push(SIGHUP);
    }
    let mut signals = Signals::new(known)?;
    let listen = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                Some(first) if first.elapsed() < SAME_WITHIN => continue,
                Some(_) => {
                    let _gone = session.send(Message::Signal(name(signal)));
                    std::thread::sleep(AT_ONCE_WITHIN);
                    std::process::exit(i32::from(Exit::AtOnce.code()));
                }
                None => {
                    first = Some(Instant::now());
                    let _gone = session.send(Message::Signal(name(signal)));
                }
            }
        }
    };
    std::thread::Builder::new().name("offermill-signals".into()).spawn(listen)?;
    Ok(())
}

fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "Ctrl-C",
        SIGTERM => "SIGTERM",
        _ => "SIGHUP",
    }
}

/// Whether whoever started this program wants it to outlive its terminal, as `nohup` does.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (SIGHUP - 1) & 1 == 1
}
