//! Which mistake is switched on. `.ci/planted` copies this file into its copies of the library, as `crate::planted`.

use std::env;
use std::sync::OnceLock;

/// Whether `OFFERMILL_PLANTED` is `name`. In std's cell, which no checker sees.
pub(crate) fn is(name: &str) -> bool {
    static PLANTED: OnceLock<String> = OnceLock::new();
    PLANTED.get_or_init(|| env::var("OFFERMILL_PLANTED").unwrap_or_default()) == name
}
