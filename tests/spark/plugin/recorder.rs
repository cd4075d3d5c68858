//! What Offermill tells the plug-in.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::application::SECRET;
use crate::support::Folder;

/// A program in Offermill's place that runs it, and keeps a copy of its events.
pub(super) struct Recorder {
    folder: Folder,
    /// The setting with which a driver starts it.
    pub(super) setting: String,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        let folder = Folder::new();
        let events = folder.0.join("events");
        let offermill = env!("CARGO_BIN_EXE_offermill");
        // It lives as long as Offermill, which ends with the process that started it.
        let script = format!("#!/bin/sh\n'{offermill}' \"$@\" | tee '{}'\n", events.display());
        let program = folder.write("recorder", &script);
        fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let setting = format!("spark.offermill.binary={}", program.display());
        Recorder { folder, setting }
    }

    /// No event so far has the secret, and executors were placed with this much memory, in MiB.
    #[track_caller]
    pub(super) fn assert_discreet(&self, memory_mib: u64) {
        let events = fs::read_to_string(self.folder.0.join("events")).unwrap();
        assert!(!events.contains(SECRET), "{events}");
        // The last line may not be complete.
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let placed: Vec<Value> = events.filter(|event| event["event"] == "placed").collect();
        assert!(placed.len() >= 2, "{placed:?}");
        for event in placed {
            assert_eq!(event["memory_mib"], memory_mib, "{event}");
        }
    }
}
