//! This machine's cores, memory and host name.

use std::fs;
use std::thread::available_parallelism;

use crate::resources::Mebibytes;

/// Memory that is never offered, but left to the system and to this program, in MiB.
const RESERVED_MIB: u64 = 1024;
/// The minimum memory that an agent offers, even on a small machine, in MiB.
const OFFERED_MIB_MIN: u64 = 512;
/// The memory that is assumed if the system doesn't report it, in MiB.
const ASSUMED_MIB: u64 = 4096;

/// Returns the number of cores that this process may use.
pub(crate) fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Returns the memory that an agent on this machine may offer: all but 1 GiB, and at least 512 MiB.
pub(crate) fn offerable_memory() -> Mebibytes {
    offerable_of(total_mebibytes().unwrap_or(ASSUMED_MIB))
}

/// Returns the same, or `None` if the system doesn't report its memory.
#[cfg(feature = "standalone")]
pub(crate) fn known_offerable_memory() -> Option<Mebibytes> {
    total_mebibytes().map(offerable_of)
}

fn offerable_of(total: u64) -> Mebibytes {
    Mebibytes::new(total.saturating_sub(RESERVED_MIB).max(OFFERED_MIB_MIN))
}

fn total_mebibytes() -> Option<u64> {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text))
}

/// Parses the machine's total memory, in MiB, from the text of `/proc/meminfo`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024)
}

/// Returns the machine's host name.
pub(crate) fn hostname() -> String {
    let found = ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
        .or_else(|| std::env::var("HOSTNAME").ok());
    match found.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: memory is parsed if the system reports it, and malformed text is rejected. Method: a real excerpt, then
    /// malformed texts.
    #[test]
    fn memory_is_read_from_meminfo() {
        assert_eq!(total_memory("MemTotal:       24682416 kB\nMemFree: 1 kB\n"), Some(24_103));
        for other in ["", "MemTotal:", "MemTotal: many kB", "MemTotal: 12", "MemFree: 12 kB"] {
            assert_eq!(total_memory(other), None, "{other:?}");
        }
        assert_eq!(offerable_of(24_103).get(), 23_079);
        assert_eq!(offerable_of(1100).get(), OFFERED_MIB_MIN);
        assert!(offerable_memory().get() >= OFFERED_MIB_MIN);
        assert!(cores() >= 1);
        assert!(!hostname().is_empty());
    }
}
