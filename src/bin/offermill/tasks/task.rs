//! A task as its line in the file says it.

use offermill::config::QueueId;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ResourceSums, Task};

/// The begin of a fingerprint that has the lengths of texts.
const FINGERPRINT_VERSION: &str = "2-";

/// A task of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskSpec {
    /// Its id; of a plain command the number of its line.
    pub(crate) id: String,
    /// The number of its line, from 1.
    pub(crate) line: u64,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) gpus: Gpus,
    /// How many times it is started again after it has failed.
    pub(crate) retries: u32,
    /// The ids of the tasks that must have succeeded before it starts.
    pub(crate) after: Vec<String>,
    /// The queue that it names.
    pub(crate) queue_name: Option<String>,
    /// The same queue by number, once that is known.
    pub(crate) queue: QueueId,
    /// Variables of its environment.
    pub(crate) env: Vec<(String, String)>,
}

/// What tasks have that don't say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskDefaults {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) retries: u32,
}

impl TaskSpec {
    /// What it takes.
    pub(crate) fn sums(&self) -> ResourceSums {
        ResourceSums { cores: self.cores, memory: self.memory, gpus: self.gpus }
    }

    /// As the kernel places it, if it is at this position of the file's tasks.
    pub(crate) fn at(&self, position: u32) -> Task {
        let TaskSpec { cores, memory, gpus, queue, .. } = *self;
        Task { gpus, queue, ..Task::new(position.into(), cores, memory) }
    }

    /// A text that differs if what the task does differs: its command and its variables.
    pub(crate) fn fingerprint(&self) -> String {
        let length = |length: usize| (length as u64).to_le_bytes();
        let texts =
            self.texts().flat_map(|text| length(text.len()).into_iter().chain(text.bytes()));
        // Lengths tell texts apart, and the number of arguments tells arguments from variables.
        format!(
            "{FINGERPRINT_VERSION}{:016x}",
            fnv1a(length(self.argv.len()).into_iter().chain(texts))
        )
    }

    /// Whether a results file has this as the fingerprint of a task that does the same. Texts of the first version had
    /// no lengths.
    pub(crate) fn has_fingerprint(&self, former: &str) -> bool {
        if former.starts_with(FINGERPRINT_VERSION) {
            return former == self.fingerprint();
        }
        former == format!("{:016x}", fnv1a(self.texts().flat_map(|text| text.bytes().chain([0]))))
    }

    /// The arguments, and the names and values of the variables.
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.argv.iter().chain(self.env.iter().flat_map(|(name, value)| [name, value]))
    }
}

/// The hash FNV-1a.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::parse::parse_line;

    /// Goal: tasks that do different things have different fingerprints, and a results file of the first version counts
    /// as before. Method: commands and variables of the same texts, cut at other places; a fingerprint of the first
    /// version, that of the task and another.
    #[test]
    fn what_differs_has_another_fingerprint() {
        let defaults =
            TaskDefaults { cores: MilliCpus::from_cores(1), memory: Mebibytes::new(1), retries: 0 };
        let task = |text: &str| parse_line(text.as_bytes(), 1, &defaults).unwrap().unwrap();
        let tasks = [
            r#"{"command": ["sh", "-c", "exit 0", "A", "1"]}"#,
            r#"{"command": ["sh", "-c", "exit 0"], "env": {"A": "1"}}"#,
            r#"{"command": ["sh", "-c", "exit 0"]}"#,
            r#"{"command": ["sh", "-c", "exit 0A", "1"]}"#,
            r#"{"command": ["sh", "-c", "exit 0", "A1"]}"#,
        ]
        .map(task);
        for (number, one) in tasks.iter().enumerate() {
            for (other, same) in tasks.iter().zip(0..).map(|(it, other)| (it, other == number)) {
                assert_eq!(one.has_fingerprint(&other.fingerprint()), same, "{one:?}, {other:?}");
            }
        }
        let first = task("true");
        assert!(first.has_fingerprint("23dccfee0e844785"), "{first:?}");
        assert!(!first.has_fingerprint("0123456789abcdef") && !first.has_fingerprint(""));
    }
}
