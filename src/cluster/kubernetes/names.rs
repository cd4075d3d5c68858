//! Names: of runs and pods, and the keys of the labels that this manager reads and writes.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

/// The label with the name of the program that an object belongs to.
pub(super) const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";

/// This program's name in that label.
pub(super) const MANAGER: &str = "offermill";

/// The label with the run's name. Lists and watches select by it.
pub(super) const RUN_LABEL: &str = "offermill/run";

/// The label with the id of the program that created the pod, by which it knows its own.
pub(super) const CREATOR_LABEL: &str = "offermill/creator";

/// The label with the executor's id.
pub(super) const EXECUTOR_LABEL: &str = "offermill/executor";

/// The label of pods whose ends were applied and that stay. Lists and watches leave them out.
pub(super) const ACKNOWLEDGED_LABEL: &str = "offermill/acknowledged";

/// The maximum number of bytes of a pod's name. A pod's name is its host name and the value of a label, too: 63 bytes,
/// of which controllers that derive names take up to 11.
pub(super) const POD_NAME_BYTES_MAX: usize = 52;

/// The maximum number of bytes of a run's name: with the longest usual start time and numbers, ids fit into a pod's
/// name.
pub(super) const RUN_NAME_BYTES_MAX: usize = 24;

/// The maximum number of bytes of the prefix of numbered pods: with `-exec-` and a number of 10 digits a name has 63,
/// and is the host name, too.
pub(super) const POD_PREFIX_BYTES_MAX: usize = 47;

/// An id of this program that no other has.
pub(super) fn creator() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The hasher's keys are random.
    let random = RandomState::new().hash_one(std::process::id());
    format!("{:x}-{random:016x}", now.as_micros())
}

/// Makes the name of a run of any text: letters in lower case, and `-` for each run of other signs. A longer text than
/// a [name](super::KubernetesConfig::name) may be is cut, and gets a number at its end that depends on all of it, so
/// that texts with the same beginning have different names. `None` if the text has no letter or digit of ASCII.
///
/// ```
/// use offermill::cluster::kubernetes::run_name;
///
/// assert_eq!(run_name("Spark Pi (2)").as_deref(), Some("spark-pi-2"));
/// assert_eq!(run_name("…"), None);
/// ```
#[must_use]
pub fn run_name(text: &str) -> Option<String> {
    let name = dashed(text);
    if name.len() <= RUN_NAME_BYTES_MAX {
        return (!name.is_empty()).then_some(name);
    }
    let hash = fnv_1a(text.bytes());
    // 24 bits of it.
    let suffix = format!("-{:06x}", (hash >> 40) & 0xff_ffff);
    let kept = name.get(..RUN_NAME_BYTES_MAX - suffix.len()).unwrap_or_default();
    Some(format!("{}{suffix}", kept.trim_end_matches('-')))
}

/// Returns the words of a text, in lower case and with `-` between them. What isn't a letter or digit of ASCII
/// separates words.
#[must_use]
pub fn dashed(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join("-")
}

/// The FNV-1a hash of these bytes. It is the same in each release of this program.
pub(super) fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// How pods are named after their executors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PodNames {
    /// By the id, with `-` for `.`, which isn't allowed in host names. Ids of one
    /// [scheme](crate::IdScheme::unique) have one dot each, so no two get the same name.
    #[default]
    OfId,
    /// By a prefix, `-exec-`, and the id, which is a number, as Spark names them.
    Numbered { prefix: String },
}

impl PodNames {
    /// The pod's name for an executor. `None` if its id can't be a name, or isn't a number although it must be.
    pub(super) fn name(&self, executor: &str) -> Option<String> {
        match self {
            PodNames::OfId => {
                let name = executor.replace('.', "-");
                (executor.matches('.').count() <= 1 && is_name(&name)).then_some(name)
            }
            PodNames::Numbered { prefix } => {
                let is_number =
                    executor.parse().is_ok_and(|number: u32| number.to_string() == executor);
                is_number.then(|| format!("{prefix}-exec-{executor}"))
            }
        }
    }
}

/// Whether a text can name a pod that is a host, too: lower-case letters, digits and `-`, the latter neither first nor
/// last, and at most [`POD_NAME_BYTES_MAX`] bytes.
pub(super) fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let bytes = text.as_bytes();
    bytes.len() <= POD_NAME_BYTES_MAX
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| allowed(*byte))
}

/// Whether a text can be the value of a label: empty, or at most 63 letters, digits, `-`, `_` and `.`, with a letter or
/// digit at both ends.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_word(text)
}

/// Whether a text can be the key of a label: a name like a value that isn't empty, perhaps after a domain and `/`.
pub(super) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_word(text),
        Some((domain, name)) => is_domain(domain) && is_label_word(name),
    }
}

fn is_label_word(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(allowed)
}

/// Whether a text can name a variable of an environment: letters, digits, `_`, `-` and `.`, no digit first.
pub(super) fn is_variable(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.bytes().all(allowed) && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Whether a text is a domain in Kubernetes' sense, as the names of nodes are: words of lower-case letters, digits and
/// `-` with dots between them, at most 253 bytes.
pub(super) fn is_domain(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_word = |word: &str| {
        let bytes = word.as_bytes();
        is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(|byte| allowed(*byte))
    };
    text.len() <= 253 && text.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names of pods are valid, distinct for distinct ids of a scheme, and no id becomes a name that the server
    /// refuses. Method: usual ids and ids with each kind of fault.
    #[test]
    fn ids_become_names_or_are_refused() {
        let pod_name = |executor: &str| PodNames::OfId.name(executor);
        assert_eq!(pod_name("etl-s44we8-17.4").as_deref(), Some("etl-s44we8-17-4"));
        assert_eq!(pod_name("0").as_deref(), Some("0"));
        let long = format!("{}-s44we8-4000000000.4194302", "x".repeat(RUN_NAME_BYTES_MAX));
        assert!(pod_name(&long).is_some(), "{} bytes", long.len());
        for id in ["", "Etl-1-0.0", "etl_1", "-a", "a-", "a.b.c", "é", "a b", &"x".repeat(53)] {
            assert_eq!(pod_name(id), None, "{id:?}");
        }
        let numbered = PodNames::Numbered { prefix: "pi-1f".to_owned() };
        assert_eq!(numbered.name("12").as_deref(), Some("pi-1f-exec-12"));
        for id in ["", "etl-1-0.0", "07", "+1", "-1", "4294967296"] {
            assert_eq!(numbered.name(id), None, "{id:?}");
        }
        let longest = PodNames::Numbered { prefix: "x".repeat(POD_PREFIX_BYTES_MAX) };
        assert_eq!(longest.name(&u32::MAX.to_string()).map(|name| name.len()), Some(63));
    }

    /// Goal: any name that a run was given becomes a valid one, the same each time, and different ones stay different.
    /// Method: valid names, names with other signs, and long ones that differ at their ends.
    #[test]
    fn texts_become_names_of_runs() {
        for (text, name) in
            [("etl", "etl"), ("etl-2", "etl-2"), ("My App: v1.5!", "my-app-v1-5"), ("-x-", "x")]
        {
            assert_eq!(run_name(text).as_deref(), Some(name));
        }
        assert_eq!(run_name("日本"), None);
        assert_eq!(run_name(""), None);
        let long = ["a", "b"].map(|end| run_name(&format!("customers of north europe {end}")));
        assert_ne!(long[0], long[1]);
        assert_eq!(long[0].as_deref(), Some("customers-of-nort-3cd28f"));
        for name in long.into_iter().flatten().chain(run_name(&"x-".repeat(99))) {
            assert!(is_name(&name) && name.len() <= RUN_NAME_BYTES_MAX, "{name}");
        }
    }

    /// Goal: what isn't a label of any node is known. Method: keys and values at each border of what is allowed.
    #[test]
    fn labels_are_checked() {
        let long = "x".repeat(63);
        for key in ["zone", "topology.kubernetes.io/zone", "a/b", "A_b.c-1", &long] {
            assert!(is_label_key(key), "{key:?}");
        }
        let longer = "x".repeat(64);
        for key in ["", "/a", "a/", "a/b/c", "A/b", "-a", "a.", "a b", "ü", &longer] {
            assert!(!is_label_key(key), "{key:?}");
        }
        assert!(is_label_value("") && is_label_value("East_1.a") && is_label_value(&long));
        assert!(!is_label_value("a b") && !is_label_value(".a") && !is_label_value(&longer));
        assert!(is_domain("node-1.example") && !is_domain("Node") && !is_domain("a..b"));
        assert!(!is_domain(&"x.".repeat(127)) && !is_domain(""));
    }
}
