//! [`LaunchKey`]: by which a master knows again what it, or a master before it, launched on a worker.
//!
//! Executors aren't in the journal: after a master's start its workers tell them. A worker that told those of another
//! would take them over. So each launch has a tag, which its worker tells with the executor: when it was launched, and
//! an authentication code (HMAC) of that, the worker, the framework and the executor, by a key that the journal has.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384;
use tokio_rustls::rustls::crypto::tls13::OkmBlock;

use crate::cluster::standalone::protocol::ExecutorKey;
use crate::launch::Secret;

/// The hexadecimal digits of a key, and of an authentication code.
const DIGITS: usize = 64;

/// The key of the tags of a cluster: 256 bits. Its `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaunchKey(String);

/// When an executor was launched. Of two, the later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaunchOrder {
    /// The master's term.
    pub(super) term: u64,
    /// A number of that master.
    pub(super) number: u64,
}

impl LaunchKey {
    /// The tag of an executor that is launched on a worker.
    pub(super) fn tag(&self, worker: &str, key: &ExecutorKey, order: LaunchOrder) -> String {
        let LaunchOrder { term, number } = order;
        format!("{term:x}-{number:x}-{}", self.code(worker, key, order).unwrap_or_default())
    }

    /// When an executor was launched on this worker; `None` if the tag doesn't say that it was.
    pub(super) fn read(&self, worker: &str, key: &ExecutorKey, tag: &str) -> Option<LaunchOrder> {
        let mut parts = tag.splitn(3, '-');
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let order = LaunchOrder { term: number(parts.next()?)?, number: number(parts.next()?)? };
        let right = Secret::new(self.code(worker, key, order)?);
        right.is_same(parts.next()?).then_some(order)
    }

    /// The authentication code, in hexadecimal digits. The implementation is that of TLS.
    fn code(&self, worker: &str, key: &ExecutorKey, order: LaunchOrder) -> Option<String> {
        let suite = TLS13_AES_256_GCM_SHA384.tls13()?;
        let ExecutorKey { framework, executor } = key;
        // With their lengths, so that different names don't give the same text.
        let named = [worker, framework, executor].map(|name| format!(" {}:{name}", name.len()));
        let text = format!("{} {}{}", order.term, order.number, named.concat());
        let code =
            suite.hkdf_provider.hmac_sign(&OkmBlock::new(self.0.as_bytes()), text.as_bytes());
        Some(code.as_ref().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for LaunchKey {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<LaunchKey, &'static str> {
        let is_key = digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
        is_key.then_some(LaunchKey(digits)).ok_or("a launch key must be 64 hexadecimal digits")
    }
}

impl From<LaunchKey> for String {
    fn from(key: LaunchKey) -> String {
        key.0
    }
}

impl fmt::Debug for LaunchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaunchKey(hidden)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Goal: a tag is valid for one worker and one executor, under one key, and can't be changed. Method: the tag of a
    /// launch, read for others, with another key, and changed or cut at each byte.
    #[test]
    fn a_tag_is_valid_for_one_launch() {
        let launch_key = LaunchKey::try_from("0f".repeat(32)).unwrap();
        let (key, order) = (ExecutorKey::new("f", "ab"), LaunchOrder { term: 3, number: 77 });
        let tag = launch_key.tag("w", &key, order);
        assert_eq!(launch_key.read("w", &key, &tag), Some(order));
        for other in [ExecutorKey::new("g", "ab"), ExecutorKey::new("fa", "b")] {
            assert_eq!(launch_key.read("w", &other, &tag), None, "{other:?}");
        }
        assert_eq!(launch_key.read("v", &key, &tag), None);
        let another = LaunchKey::try_from("0e".repeat(32)).unwrap();
        assert_eq!(another.read("w", &key, &tag), None);
        for at in 0..tag.len() {
            assert_eq!(launch_key.read("w", &key, &tag[..at]), None, "{at}");
            let changed = format!("{}{}{}", &tag[..at], '7', &tag[at + 1..]);
            let is_same = changed == tag;
            assert_eq!(launch_key.read("w", &key, &changed).is_some(), is_same, "{changed}");
        }
    }

    /// Goal: the key isn't shown, and what isn't one is refused. Method: `Debug`, and texts.
    #[test]
    fn a_key_is_hidden() {
        let key = LaunchKey::try_from("0f".repeat(32)).unwrap();
        assert!(!format!("{key:?}").contains("0f"));
        for text in ["", "0f", &"0g".repeat(32), &"0f".repeat(33)] {
            assert!(LaunchKey::try_from((*text).to_owned()).is_err(), "{text}");
        }
    }
}
