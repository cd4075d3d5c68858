//! Signal handling: SIGINT, SIGTERM and SIGHUP. The first signal asks for an orderly end, the second ends the process
//! at once.

use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::ExitStatus;

/// Signals that arrive within this time of the first count as the same one: some tools send each to the process and to
/// its group.
const SAME_WITHIN: Duration = Duration::from_millis(250);
/// After the second signal, how long the receiver has to write a last line and to remove its sockets before the process
/// exits.
const AT_ONCE_WITHIN: Duration = Duration::from_millis(500);

/// Set when the second signal arrives.
static SECOND: OnceLock<()> = OnceLock::new();

/// Whether the second signal has arrived, so that the process exits soon and nothing may be waited for.
pub(crate) fn second_has_arrived() -> bool {
    SECOND.get().is_some()
}

/// Starts a thread that calls `send` with the name of each signal.
///
/// # Errors
/// If no signal handler can be installed or no thread can be started.
pub(crate) fn listen(mut send: impl FnMut(&'static str) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(known())?;
    let listen = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                Some(first) if first.elapsed() < SAME_WITHIN => continue,
                Some(_) => {
                    let _only_once = SECOND.set(());
                    send(name(signal));
                    std::thread::sleep(AT_ONCE_WITHIN);
                    std::process::exit(i32::from(ExitStatus::AtOnce.code()));
                }
                None => {
                    first = Some(Instant::now());
                    send(name(signal));
                }
            }
        }
    };
    std::thread::Builder::new().name("offermill-signals".into()).spawn(listen)?;
    Ok(())
}

/// Has the signals that [`listen`] knows do nothing in this process, which is ended in another way. The processes that
/// it starts have the default actions.
///
/// # Errors
/// If no signal handler can be installed.
pub(crate) fn disregard() -> io::Result<()> {
    for signal in known() {
        // Not ignored, which a process that is started would inherit; a handler it doesn't.
        flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// The signals that ask a process to end. SIGHUP only if it isn't ignored.
fn known() -> Vec<i32> {
    let mut known = vec![SIGINT, SIGTERM];
    if !hangups_are_ignored() {
        known.push(SIGHUP);
    }
    known
}

fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "Ctrl-C",
        SIGTERM => "SIGTERM",
        _ => "SIGHUP",
    }
}

/// Returns whether SIGHUP is ignored, as `nohup` arranges for programs that must outlive their terminal.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (SIGHUP - 1) & 1 == 1
}
