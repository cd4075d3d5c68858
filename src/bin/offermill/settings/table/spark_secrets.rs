//! The options whose values are secrets of Spark's executors. Executors get them as variables.

use offermill::Error;

use crate::settings::draft::SettingsDraft;
use crate::settings::sources::Sourced;
use crate::settings::startup_keys::AUTH_SECRET;
use crate::settings::table::row::OptionRow;

/// What the values of all are.
const VALUE: &str = "text, for properties files";
const AUTH: &str = "_SPARK_AUTH_SECRET";
const KEY: &str = "_SPARK_SSL_RPC_KEY_PASSWORD";
const PRIVATE_KEY: &str = "_SPARK_SSL_RPC_PRIVATE_KEY_PASSWORD";
const KEY_STORE: &str = "_SPARK_SSL_RPC_KEY_STORE_PASSWORD";
const TRUST_STORE: &str = "_SPARK_SSL_RPC_TRUST_STORE_PASSWORD";

/// The secret of authentication, and the passwords for SSL. What is set for RPC alone comes after what is set for all,
/// and takes precedence.
pub(super) const SPARK_SECRET_ROWS: &[OptionRow] = &[
    OptionRow::spark(AUTH_SECRET, VALUE)
        .variable(AUTH)
        .secret()
        .read(|draft, given| keep(draft, given, AUTH)),
    OptionRow::spark("spark.ssl.keyPassword", VALUE)
        .secret()
        .read(|draft, given| keep(draft, given, KEY)),
    OptionRow::spark("spark.ssl.rpc.keyPassword", VALUE)
        .variable(KEY)
        .secret()
        .read(|draft, given| keep(draft, given, KEY)),
    OptionRow::spark("spark.ssl.privateKeyPassword", VALUE)
        .secret()
        .read(|draft, given| keep(draft, given, PRIVATE_KEY)),
    OptionRow::spark("spark.ssl.rpc.privateKeyPassword", VALUE)
        .variable(PRIVATE_KEY)
        .secret()
        .read(|draft, given| keep(draft, given, PRIVATE_KEY)),
    OptionRow::spark("spark.ssl.keyStorePassword", VALUE)
        .secret()
        .read(|draft, given| keep(draft, given, KEY_STORE)),
    OptionRow::spark("spark.ssl.rpc.keyStorePassword", VALUE)
        .variable(KEY_STORE)
        .secret()
        .read(|draft, given| keep(draft, given, KEY_STORE)),
    OptionRow::spark("spark.ssl.trustStorePassword", VALUE)
        .secret()
        .read(|draft, given| keep(draft, given, TRUST_STORE)),
    OptionRow::spark("spark.ssl.rpc.trustStorePassword", VALUE)
        .variable(TRUST_STORE)
        .secret()
        .read(|draft, given| keep(draft, given, TRUST_STORE)),
];

/// Keeps a secret for the variable that passes it on.
fn keep(draft: &mut SettingsDraft, given: &Sourced, variable: &'static str) -> Result<(), Error> {
    if let Some(secret) = given.secret.clone().filter(|secret| !secret.is_empty()) {
        draft.spark.secrets.insert(variable, secret);
    }
    Ok(())
}
