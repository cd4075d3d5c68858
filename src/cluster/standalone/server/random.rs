//! Random numbers, for what nobody may guess.

use std::fs::File;
use std::io::{self, Read as _};

/// A random number of 128 bits, in hexadecimal digits.
pub(super) fn random_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
