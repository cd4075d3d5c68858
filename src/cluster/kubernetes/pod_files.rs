//! [`PodFiles`]: files that executors find in a folder of their containers, by a config map of the run.
//!
//! The map's name follows from what is in it, so that pods which a former run has left keep what they began with. The
//! run's lease is its owner.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::names::{MANAGER, MANAGER_LABEL, RUN_LABEL, fnv_1a};
use crate::error::Error;

/// The most that the files of a run may have in all, in bytes: API servers refuse larger config maps.
pub const POD_FILES_BYTES_MAX: usize = 1 << 20;

/// The name of the volume in pods.
const VOLUME: &str = "files";

/// Files that executors find in a folder of their containers. They can't be changed while the run lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodFiles {
    /// The folder of the container. The image's content of it is hidden.
    pub folder: String,
    /// What is in each file, by its name: letters, digits, `-`, `_` and `.`, at most 253. All together may have
    /// [1 MiB](POD_FILES_BYTES_MAX). Without files there is no folder.
    pub contents: BTreeMap<String, Vec<u8>>,
}

impl PodFiles {
    /// No files, for this folder.
    #[must_use]
    pub fn new(folder: impl Into<String>) -> PodFiles {
        PodFiles { folder: folder.into(), contents: BTreeMap::new() }
    }

    /// The bytes of all files, with their names.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.contents.iter().map(|(name, text)| name.len() + text.len()).sum()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        // A name that begins with two dots is one of the volume's own.
        let is_name = |name: &&String| {
            (1..=253).contains(&name.len())
                && name.bytes().all(allowed)
                && name.as_str() != "."
                && !name.starts_with("..")
        };
        if let Some(name) = self.contents.keys().find(|name| !is_name(name)) {
            let allowed = "1 to 253 letters, digits, '-', '_' and '.', without two dots first";
            return Err(Error::setting("name of a file", name, allowed));
        }
        if !self.folder.starts_with('/') {
            let allowed = "an absolute path in the container";
            return Err(Error::setting("folder of files", &self.folder, allowed));
        }
        let bytes = self.bytes();
        if bytes > POD_FILES_BYTES_MAX {
            let allowed = format!("at most {POD_FILES_BYTES_MAX} bytes in all, with their names");
            return Err(Error::setting("files", format!("{bytes} bytes"), allowed));
        }
        Ok(())
    }

    /// The name of the config map of a run.
    fn name(&self, run: &str) -> String {
        // Of all that is in it, with the lengths, so that different files have different names.
        let parts = self.contents.iter().flat_map(|(name, text)| [name.as_bytes(), text]);
        let hash = fnv_1a(
            parts.flat_map(|part| part.len().to_le_bytes().into_iter().chain(part.iter().copied())),
        );
        format!("{run}-files-{hash:016x}")
    }

    /// The config map of a run with this lease: its name and uid.
    pub(super) fn config_map(&self, (run, uid): (&str, &str)) -> Value {
        let (mut data, mut binary) = (Map::new(), Map::new());
        for (name, bytes) in &self.contents {
            match str::from_utf8(bytes) {
                Ok(text) => data.insert(name.clone(), text.into()),
                Err(_) => binary.insert(name.clone(), STANDARD.encode(bytes).into()),
            };
        }
        let owner = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": run, "uid": uid,
        });
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name(run),
                "labels": { MANAGER_LABEL: MANAGER, RUN_LABEL: run },
                "ownerReferences": [owner],
            },
            "immutable": true,
            "data": data,
            "binaryData": binary,
        })
    }

    /// The volume of a pod of this run, if there are files.
    pub(super) fn volume(&self, run: &str) -> Option<Value> {
        let volume = || json!({ "name": VOLUME, "configMap": { "name": self.name(run) } });
        (!self.is_empty()).then(volume)
    }

    /// Its mount in the executor's container.
    pub(super) fn mount(&self) -> Option<Value> {
        let mount = || json!({ "name": VOLUME, "mountPath": self.folder, "readOnly": true });
        (!self.is_empty()).then(mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[(&str, &[u8])]) -> PodFiles {
        let contents = contents.iter().map(|(name, text)| ((*name).to_owned(), text.to_vec()));
        PodFiles { contents: contents.collect(), ..PodFiles::new("/files") }
    }

    /// Goal: files arrive as they are, and different ones have different names. Method: a text, bytes that are none,
    /// an empty file; files that differ in where one ends.
    #[test]
    fn files_become_a_config_map() {
        let map = files(&[("a.txt", b"\xc3\xbc\n"), ("b", b"\xff\x00"), ("c", b"")])
            .config_map(("etl", "u1"));
        assert_eq!(map["data"], json!({ "a.txt": "ü\n", "c": "" }));
        assert_eq!(map["binaryData"], json!({ "b": "/wA=" }));
        assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(map["metadata"]["labels"]["offermill/run"], "etl");
        let names = [
            files(&[("a", b"bc")]).name("etl"),
            files(&[("ab", b"c")]).name("etl"),
            files(&[("a", b"b"), ("c", b"")]).name("etl"),
        ];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        assert!(names[0].starts_with("etl-files-") && names[0].len() == 26, "{names:?}");
    }

    /// Goal: what an API server would refuse is refused before. Method: names and sizes at each border.
    #[test]
    fn files_are_checked() {
        assert!(files(&[("a.b_c-D", b""), (&"x".repeat(253), b"")]).check().is_ok());
        for name in ["", ".", "..", "..a", "a/b", "ü", "a b", &"x".repeat(254)] {
            assert!(files(&[(name, b"")]).check().is_err(), "{name:?}");
        }
        let largest = vec![b'x'; POD_FILES_BYTES_MAX - 1];
        assert!(files(&[("a", &largest)]).check().is_ok());
        assert!(files(&[("ab", &largest)]).check().is_err());
        assert!(PodFiles { folder: "x".into(), ..files(&[("a", b"")]) }.check().is_err());
        assert!(PodFiles::default().check().is_ok(), "without files the folder is nothing");
    }
}
