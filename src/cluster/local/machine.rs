//! What this machine has.

use std::fs;
use std::thread::available_parallelism;

use crate::resources::Mebibytes;

/// What is left to the system and to the program itself.
const RESERVED: u64 = 1024;
/// What an agent has at least, however small the machine.
const LEAST: u64 = 512;
/// What a machine is taken to have that doesn't tell.
const PRESUMED: u64 = 4096;

/// The cores that this process may use.
pub(super) fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The memory that an agent on this machine may offer: all but 1 GiB, and no less than 512 MiB.
pub(super) fn offerable_memory() -> Mebibytes {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    Mebibytes::new(total.unwrap_or(PRESUMED).saturating_sub(RESERVED).max(LEAST))
}

/// The machine's memory in MiB, by the text of `/proc/meminfo`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024)
}

/// The machine's name.
pub(super) fn hostname() -> String {
    let told = ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
        .or_else(|| std::env::var("HOSTNAME").ok());
    match told.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: memory is read where the system tells it, and never invented from what it doesn't.
    /// Method: a real excerpt, then texts of other shapes.
    #[test]
    fn memory_is_read_from_meminfo() {
        assert_eq!(total_memory("MemTotal:       24682416 kB\nMemFree: 1 kB\n"), Some(24_103));
        for other in ["", "MemTotal:", "MemTotal: many kB", "MemTotal: 12", "MemFree: 12 kB"] {
            assert_eq!(total_memory(other), None, "{other:?}");
        }
        assert!(offerable_memory().get() >= LEAST);
        assert!(cores() >= 1);
        assert!(!hostname().is_empty());
    }
}
