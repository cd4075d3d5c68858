//! Writes to a peer that may read slowly, with a deadline.

use std::io::{ErrorKind, Result, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The maximum number of bytes that are written at a time.
const PIECE_BYTES: usize = 4096;

/// Writes all bytes, however slowly they are read.
///
/// # Errors
/// If that isn't done by `give_up`.
pub(super) fn write_until(mut peer: &UnixStream, mut bytes: &[u8], give_up: Instant) -> Result<()> {
    while !bytes.is_empty() {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        peer.set_write_timeout(Some(left))?;
        // The timeout begins again whenever a long write makes progress.
        match peer.write(bytes.get(..PIECE_BYTES).unwrap_or(bytes)) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    use super::*;

    /// Goal: a client that reads slowly is given up after the time for a reply. Method: a client that reads a byte now
    /// and then of a reply that is larger than the socket's buffer.
    #[test]
    fn replies_have_a_deadline() {
        let (client, run) = UnixStream::pair().unwrap();
        let reader = spawn(move || {
            let mut client = &client;
            let mut piece = [0; 512];
            while client.read(&mut piece).is_ok_and(|length| length > 0) {
                sleep(Duration::from_millis(1));
            }
        });
        let give_up = Instant::now() + Duration::from_millis(100);
        let error = write_until(&run, &vec![0; 64 << 20], give_up).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
        drop(run);
        reader.join().unwrap();
    }
}
