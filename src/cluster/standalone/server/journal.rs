//! [`MasterJournal`]: what a master must know after a restart, in a file that one master holds at a time.
//!
//! The folder has three files: `master.lock`, which a master holds locked as long as it lives; `master.leader`, with
//! the address at which it is reached, for standbys; and `master.journal`. Its first line has the version, the cluster
//! and the term, all others are entries, as JSON. A master begins by writing it anew with a higher term, and syncs it
//! before it does anything else; what it appends is synced as well.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::random::random_id;
use crate::cluster::standalone::master::{
    LaunchKey, MasterSettings, RegistryEntry, StandaloneMaster,
};
use crate::private_files::{PrivateFolder, lock_with_retry, open_file, open_lock, replace};

/// The file with the leader's address.
const LEADER_FILE: &str = "master.leader";
/// The most bytes that are read of it.
const LEADER_BYTES_MAX: u64 = 512;
/// The version of the format.
const VERSION: u32 = 1;
/// A journal that is longer may be written anew while it is in use, in bytes.
const LONG_BYTES: u64 = 4 << 20;
/// How much longer a journal becomes before it is tried again to write it anew, in bytes.
const RETRY_BYTES: u64 = 1 << 20;
/// The longest journal that is written or read, in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// A journal that is open, and what was read from it.
#[derive(Debug)]
pub struct MasterJournal {
    cluster: String,
    term: u64,
    launch_key: LaunchKey,
    entries: Vec<RegistryEntry>,
    file: File,
    /// Its length when it was written last as a whole, in bytes.
    whole_bytes: u64,
    /// It isn't written anew before it is longer, in bytes, because that has failed.
    retry_bytes: u64,
    path: PathBuf,
    _lock: File,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct JournalHead {
    offermill_master_journal: u32,
    cluster: String,
    term: u64,
    /// The key of the tags of launches. A journal of an earlier master may have none.
    #[serde(default)]
    launch_key: Option<LaunchKey>,
}

/// Why a journal can't be used, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError(String);

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JournalError {}

impl MasterJournal {
    /// Opens the journal in a folder, which is made if it isn't there, and begins a new term.
    ///
    /// # Errors
    /// If another master holds it, if it is of another version or damaged before its last line, or if it can't be read
    /// or written.
    pub fn open(folder: &Path) -> Result<MasterJournal, JournalError> {
        let lock = lock_of(folder)?;
        lock_with_retry(&lock).map_err(|error| locked(folder, &error))?;
        MasterJournal::begin(folder, lock)
    }

    /// Opens the journal as [`open`](MasterJournal::open) does; `None` if another master holds it.
    ///
    /// # Errors
    /// As there, but not if another master holds it.
    pub fn try_open(folder: &Path) -> Result<Option<MasterJournal>, JournalError> {
        let lock = lock_of(folder)?;
        match lock.try_lock() {
            Ok(()) => MasterJournal::begin(folder, lock).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(error) => Err(locked(folder, &error)),
        }
    }

    /// Begins a new term in a folder whose lock this master has.
    fn begin(folder: &Path, lock: File) -> Result<MasterJournal, JournalError> {
        let failed = |error| unusable(folder, &error);
        let path = folder.join("master.journal");
        let (head, entries) = match open_file(&path) {
            Ok(file) => read(&path, file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let cluster: String = random_id().map_err(failed)?.chars().take(8).collect();
                (head(&cluster, 0, None), Vec::new())
            }
            Err(error) => return Err(failed(error)),
        };
        let JournalHead { cluster, term, launch_key, .. } = head;
        let launch_key = launch_key.map_or_else(new_launch_key, Ok).map_err(failed)?;
        let term = term.checked_add(1).ok_or_else(|| damaged(&path, 1))?;
        let entries = compact(&cluster, term, &launch_key, entries);
        let head = self::head(&cluster, term, Some(launch_key.clone()));
        let file = replace(&path, |file| write_all(file, &head, &entries));
        let file = file.map_err(|error| {
            JournalError(format!("the journal {} can't be written: {error}", path.display()))
        })?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let whole_bytes = file.metadata().map_err(failed)?.len();
        let retry_bytes = 0;
        Ok(MasterJournal {
            cluster,
            term,
            launch_key,
            entries,
            file,
            whole_bytes,
            retry_bytes,
            path,
            _lock: lock,
        })
    }

    /// Writes where this master is reached, `HOST:PORT`, for standbys.
    ///
    /// # Errors
    /// If that can't be written.
    pub fn name_leader(&mut self, address: &str) -> Result<(), JournalError> {
        let path = self.path.with_file_name(LEADER_FILE);
        let written = replace(&path, |file| file.write_all(format!("{address}\n").as_bytes()));
        written.map(drop).map_err(|error| {
            JournalError(format!("the file {} can't be written: {error}", path.display()))
        })
    }

    /// What the ids of this cluster begin with.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The number of this leadership.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The key of the tags of launches. It is the same for all leaderships of the cluster.
    pub(super) fn launch_key(&self) -> &LaunchKey {
        &self.launch_key
    }

    /// Takes the entries of former terms, oldest first.
    pub(super) fn take_entries(&mut self) -> Vec<RegistryEntry> {
        std::mem::take(&mut self.entries)
    }

    /// Appends an entry, and waits until it is on the disk.
    pub(super) fn append(&mut self, entry: &RegistryEntry) -> Result<(), JournalError> {
        let written = line(entry).and_then(|line| {
            if self.file.metadata()?.len().saturating_add(line.len() as u64) > BYTES_MAX {
                return Err(io::Error::other("it would be longer than 1 GiB"));
            }
            self.file.write_all(&line)?;
            self.file.sync_data()
        });
        written.map_err(|error| {
            JournalError(format!("the journal {} can't be written: {error}", self.path.display()))
        })
    }
}

impl MasterJournal {
    /// Whether most of it was taken back or repeated since it was written as a whole.
    pub(super) fn is_long(&self) -> bool {
        let bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
        bytes > LONG_BYTES.max(self.retry_bytes) && bytes / 4 > self.whole_bytes
    }

    /// Writes it anew with these entries, which say all. If that fails, for example because too many files are open,
    /// the former one is kept and appended to, and isn't long again before it has grown further. Returns why, if so.
    ///
    /// # Errors
    /// If the new one has taken the place of the former, but may not be on the disk.
    pub(super) fn rewrite(
        &mut self,
        entries: &[RegistryEntry],
    ) -> Result<Option<String>, JournalError> {
        let head = head(&self.cluster, self.term, Some(self.launch_key.clone()));
        let mut whole_bytes = 0;
        // Opened before, so that nothing is opened after the new file has taken its place.
        let folder = File::open(self.path.parent().unwrap_or(Path::new(".")));
        let written = folder.and_then(|folder| {
            let file = replace(&self.path, |file| {
                write_all(file, &head, entries)?;
                whole_bytes = file.metadata()?.len();
                Ok(())
            })?;
            Ok((folder, file))
        });
        let (folder, file) = match written {
            Ok(written) => written,
            Err(error) => {
                let bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
                self.retry_bytes = bytes.saturating_add(RETRY_BYTES);
                return Ok(Some(error.to_string()));
            }
        };
        self.file = file;
        self.whole_bytes = whole_bytes;
        self.retry_bytes = 0;
        folder.sync_all().map(|()| None).map_err(|error| {
            JournalError(format!("the journal {} can't be written: {error}", self.path.display()))
        })
    }
}

/// The address that a leader wrote last, if there is one that can be read.
pub(super) fn leader_of(folder: &Path) -> Option<String> {
    let file = open_file(&folder.join(LEADER_FILE)).ok()?;
    let mut line = String::new();
    file.take(LEADER_BYTES_MAX).read_to_string(&mut line).ok()?;
    let address = line.strip_suffix('\n')?;
    let is_address = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (!address.is_empty() && address.bytes().all(is_address)).then(|| address.to_owned())
}

/// The lock of a folder, which is made if it isn't there.
fn lock_of(folder: &Path) -> Result<File, JournalError> {
    let lock = PrivateFolder::open(folder).and_then(|_| open_lock(&folder.join("master.lock")));
    lock.map_err(|error| unusable(folder, &error))
}

fn unusable(folder: &Path, error: &io::Error) -> JournalError {
    JournalError(format!("the folder {} can't be used: {error}", folder.display()))
}

fn locked(folder: &Path, error: &TryLockError) -> JournalError {
    let why = match error {
        TryLockError::WouldBlock => "another master uses it".to_owned(),
        TryLockError::Error(error) => error.to_string(),
    };
    JournalError(format!("the folder {} is locked: {why}", folder.display()))
}

/// The entries that say the same, without those that were taken back.
fn compact(
    cluster: &str,
    term: u64,
    launch_key: &LaunchKey,
    entries: Vec<RegistryEntry>,
) -> Vec<RegistryEntry> {
    let settings = MasterSettings {
        cluster: cluster.to_owned(),
        term,
        launch_key: launch_key.clone(),
        max_cores: None,
        recovery_timeout: std::time::Duration::MAX,
        worker_timeout: std::time::Duration::MAX,
    };
    StandaloneMaster::new(settings, entries).journal_entries()
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn head(cluster: &str, term: u64, launch_key: Option<LaunchKey>) -> JournalHead {
    let cluster = cluster.to_owned();
    JournalHead { offermill_master_journal: VERSION, cluster, term, launch_key }
}

/// A new key, of random numbers.
fn new_launch_key() -> io::Result<LaunchKey> {
    LaunchKey::try_from(random_id()? + &random_id()?).map_err(io::Error::other)
}

fn write_all(file: &mut File, head: &JournalHead, entries: &[RegistryEntry]) -> io::Result<()> {
    let mut text = line(head)?;
    for entry in entries {
        text.extend(line(entry)?);
    }
    file.write_all(&text)?;
    file.sync_all()
}

/// Reads a journal. A last line without an end was being written when the master before ended: what it says wasn't
/// done.
fn read(path: &Path, file: File) -> Result<(JournalHead, Vec<RegistryEntry>), JournalError> {
    let failed = |why: &dyn fmt::Display| {
        JournalError(format!("the journal {} can't be read: {why}", path.display()))
    };
    if file.metadata().map_err(|error| failed(&error))?.len() > BYTES_MAX {
        return Err(failed(&"it is longer than 1 GiB"));
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).map_err(|error| failed(&error))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut lines = text.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n');
    let head = lines.next().unwrap_or_default();
    let head: JournalHead = serde_json::from_slice(head).map_err(|_| damaged(path, 1))?;
    if head.offermill_master_journal != VERSION {
        let version = head.offermill_master_journal;
        let why = format!("is of version {version}; this program reads version {VERSION}");
        return Err(JournalError(format!("the journal {} {why}", path.display())));
    }
    let entry = |(line, number): (&[u8], usize)| {
        serde_json::from_slice(line).map_err(|_| damaged(path, number))
    };
    let entries: Result<Vec<RegistryEntry>, JournalError> = lines.zip(2..).map(entry).collect();
    Ok((head, entries?))
}

fn damaged(path: &Path, number: usize) -> JournalError {
    JournalError(format!("line {number} of the journal {} can't be read", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mesos_v1::messages::FrameworkInfo;

    fn entries() -> Vec<RegistryEntry> {
        let info = Box::new(FrameworkInfo { name: "etl".to_owned(), ..FrameworkInfo::default() });
        let (id, address) = ("c-1-W0".to_owned(), "h".to_owned());
        vec![
            RegistryEntry::Framework { id: "c-1-F1".to_owned(), info: info.clone() },
            RegistryEntry::Framework { id: "c-1-F2".to_owned(), info },
            RegistryEntry::Worker { id, address, owner: None, drain: None },
            RegistryEntry::FrameworkGone { id: "c-1-F1".to_owned() },
        ]
    }

    /// Goal: terms rise, one master at a time has a journal, and what it wrote is read back without what was taken
    /// back. Method: open, append, open while it is open, and open again.
    #[test]
    fn terms_rise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        let cluster = journal.cluster().to_owned();
        let launch_key = journal.launch_key().clone();
        assert_eq!((journal.term(), cluster.len()), (1, 8));
        entries().iter().for_each(|entry| journal.append(entry).unwrap());
        let error = MasterJournal::open(&path).unwrap_err().to_string();
        assert!(error.contains("another master uses it"), "{error}");
        drop(journal);
        let mut journal = MasterJournal::open(&path).unwrap();
        assert_eq!((journal.term(), journal.cluster()), (2, cluster.as_str()));
        assert_eq!(journal.take_entries(), entries()[1..3]);
        assert_eq!(*journal.launch_key(), launch_key);
    }

    /// Goal: a journal that was cut anywhere has all that was written whole, or is refused as it is. Method: each
    /// length of one with a worker and frameworks: within the first line, which is never written in parts, nothing is
    /// changed; after it, the entries of the lines that are whole are read.
    #[test]
    fn a_journal_may_be_cut_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let mut journal = MasterJournal::open(&whole).unwrap();
        entries().iter().for_each(|entry| journal.append(entry).unwrap());
        let text = std::fs::read(whole.join("master.journal")).unwrap();
        let first = text.iter().position(|byte| *byte == b'\n').unwrap();
        for length in 0..=text.len() {
            let path = folder.path().join(format!("cut-{length}"));
            PrivateFolder::open(&path).unwrap();
            let file = path.join("master.journal");
            std::fs::write(&file, &text[..length]).unwrap();
            let opened = MasterJournal::open(&path);
            if length <= first {
                let error = opened.unwrap_err().to_string();
                assert!(error.starts_with("line 1 of the journal"), "{length}: {error}");
                assert_eq!(std::fs::read(&file).unwrap(), text[..length]);
                continue;
            }
            let lines = text[first + 1..length].iter().filter(|byte| **byte == b'\n').count();
            let (key, kept) = (journal.launch_key(), entries()[..lines].to_vec());
            let expected = compact(journal.cluster(), 2, key, kept);
            let mut opened = opened.unwrap();
            assert_eq!((opened.term(), opened.take_entries()), (2, expected), "{length}");
        }
    }

    /// Goal: a journal without a key gets one, which is kept; each cluster has its own. Method: a first line without
    /// it, opened twice, and another folder.
    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let head = r#"{"offermill_master_journal":1,"cluster":"c","term":4}"#;
        std::fs::write(folder.path().join("master.journal"), format!("{head}\n")).unwrap();
        let open = |path: &Path| MasterJournal::open(path).unwrap();
        let first = open(folder.path()).launch_key().clone();
        let again = open(folder.path());
        assert_eq!((again.launch_key(), again.term()), (&first, 6));
        let other = tempfile::tempdir().unwrap();
        assert_ne!(*open(other.path()).launch_key(), first);
    }

    /// Goal: frameworks that come and go don't make a journal ever longer. Method: appended until it is long, written
    /// anew, appended again; what is read afterwards.
    #[test]
    fn a_long_journal_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        let info = FrameworkInfo { name: "n".repeat(60_000), ..FrameworkInfo::default() };
        let (id, info) = ("c-1-F7".to_owned(), Box::new(info));
        let long = RegistryEntry::Framework { id: id.clone(), info };
        while !journal.is_long() {
            journal.append(&long).unwrap();
            journal.append(&RegistryEntry::FrameworkGone { id: id.clone() }).unwrap();
        }
        let kept = &entries()[1..3];
        journal.rewrite(kept).unwrap();
        assert!(!journal.is_long() && journal.file.metadata().unwrap().len() < 1000);
        journal.append(&RegistryEntry::WorkerGone { id: "c-1-W0".to_owned() }).unwrap();
        assert!(MasterJournal::open(&path).is_err(), "it is still locked");
        drop(journal);
        let mut journal = MasterJournal::open(&path).unwrap();
        assert_eq!((journal.term(), journal.take_entries()), (2, kept[..1].to_vec()));
    }

    /// Goal: a master goes on if its journal can't be written anew, and tries it again. Method: a journal that is long,
    /// whose folder has another name for a while; what is appended meanwhile is read back, and once the folder is back
    /// and the journal longer, it is written anew.
    #[test]
    fn a_failed_rewrite_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("state"), folder.path().join("moved"));
        let mut journal = MasterJournal::open(&path).unwrap();
        let info = FrameworkInfo { name: "n".repeat(60_000), ..FrameworkInfo::default() };
        let (id, info) = ("c-1-F7".to_owned(), Box::new(info));
        let long = RegistryEntry::Framework { id: id.clone(), info };
        let grow = |journal: &mut MasterJournal| {
            while !journal.is_long() {
                journal.append(&long).unwrap();
                journal.append(&RegistryEntry::FrameworkGone { id: id.clone() }).unwrap();
            }
        };
        grow(&mut journal);
        std::fs::rename(&path, &moved).unwrap();
        journal.rewrite(&[]).unwrap();
        assert!(!journal.is_long());
        journal.append(&entries()[1]).unwrap();
        drop(journal);
        std::fs::rename(&moved, &path).unwrap();
        let mut journal = MasterJournal::open(&path).unwrap();
        assert_eq!(journal.take_entries(), entries()[1..2]);
        grow(&mut journal);
        std::fs::rename(&path, &moved).unwrap();
        journal.rewrite(&entries()[1..2]).unwrap();
        std::fs::rename(&moved, &path).unwrap();
        let bytes = journal.file.metadata().unwrap().len();
        grow(&mut journal);
        assert!(journal.file.metadata().unwrap().len() > bytes + RETRY_BYTES);
        journal.rewrite(&entries()[1..2]).unwrap();
        assert!(journal.file.metadata().unwrap().len() < 1000);
        journal.append(&entries()[2]).unwrap();
        drop(journal);
        let mut journal = MasterJournal::open(&path).unwrap();
        assert_eq!(journal.take_entries(), entries()[1..3]);
    }

    /// Goal: who has no room on the disk learns which file can't be written. Method: a folder whose path is so long
    /// that the journal's own name is a usable one, but not that of the new file beside it.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().to_owned();
        let length = |path: &Path| path.as_os_str().len();
        while length(&path) < 3800 {
            path.push("n".repeat(200));
        }
        path.push("n".repeat(4074 - length(&path)));
        let error = MasterJournal::open(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("the journal ") && error.contains(" can't be written: "),
            "{error}"
        );
    }

    /// Goal: a journal that is too long is refused, not cut, and none is made. Method: one that a hole makes too long,
    /// and one that is about to be.
    #[test]
    fn a_long_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        let file = path.join("master.journal");
        let hole = File::options().write(true).open(&file).unwrap();
        hole.set_len(BYTES_MAX - 1).unwrap();
        let error = journal.append(&entries()[0]).unwrap_err().to_string();
        assert!(error.contains("longer than 1 GiB"), "{error}");
        drop(journal);
        hole.set_len(BYTES_MAX + 1).unwrap();
        let error = MasterJournal::open(&path).unwrap_err().to_string();
        assert!(error.contains("longer than 1 GiB"), "{error}");
        assert_eq!(std::fs::metadata(file).unwrap().len(), BYTES_MAX + 1);
    }

    /// Goal: a master that was killed while it wrote loses at most the entry that it wrote. Method: a journal that ends
    /// after each of its bytes; only one that lacks its first line, which is written with the file, is refused.
    #[test]
    fn a_cut_journal_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        entries().iter().for_each(|entry| journal.append(entry).unwrap());
        drop(journal);
        let whole = std::fs::read(path.join("master.journal")).unwrap();
        let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in 0..=whole.len() {
            std::fs::write(path.join("master.journal"), &whole[..end]).unwrap();
            let opened = MasterJournal::open(&path);
            if end < head {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("line 1 of the journal"), "{error}");
                continue;
            }
            let mut journal = opened.unwrap();
            let lines = whole[head..end].iter().filter(|byte| **byte == b'\n').count();
            let known =
                compact("c", 1, &journal.launch_key, entries().into_iter().take(lines).collect());
            assert_eq!((journal.term(), journal.take_entries()), (2, known), "{end}");
        }
    }
}
