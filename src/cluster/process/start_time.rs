//! When a process began: with it a process is told from a later one that was given its number.

use rustix::process::Pid;

/// When a process began, in ticks of the system's clock since its start: the 22nd field of `/proc/PID/stat`, of which
/// the second one ends with the last `)`. `None` if there is no such process, and on systems other than Linux.
#[cfg(target_os = "linux")]
pub(crate) fn start_time(process: Pid) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn start_time(_: Pid) -> Option<String> {
    None
}
