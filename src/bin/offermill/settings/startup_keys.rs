//! Which of Spark's settings executors need before they can ask their driver for the rest, as in Spark's
//! `isExecutorStartupConf`. Secrets are not among them: they are passed on as variables.

/// The beginnings of their keys.
const BEGINNINGS: [&str; 5] =
    ["spark.auth", "spark.rpc", "spark.network", "spark.ssl", "spark.port."];
/// The end of the keys of ports.
const PORT: &str = ".port";
/// The beginning of the keys of drivers, whose ports mean nothing to executors.
const DRIVER: &str = "spark.driver.";
/// The key of the secret of authentication.
pub(crate) const AUTH_SECRET: &str = "spark.authenticate.secret";

/// Whether executors need this setting to start.
pub(crate) fn is_startup_key(key: &str) -> bool {
    let is_port = key.starts_with("spark.") && key.ends_with(PORT) && !key.starts_with(DRIVER);
    let is_secret = key == AUTH_SECRET || key.to_ascii_lowercase().contains("password");
    !is_secret && (is_port || BEGINNINGS.iter().any(|begin| key.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: executors get the settings that they need to start, and no secret among them. Method: keys of each kind.
    #[test]
    fn settings_for_the_start_are_recognized() {
        for key in [
            "spark.authenticate",
            "spark.authenticate.secret.file",
            "spark.rpc.message.maxSize",
            "spark.network.crypto.enabled",
            "spark.ssl.rpc.enabled",
            "spark.ssl.rpc.keyStore",
            "spark.port.maxRetries",
            "spark.blockManager.port",
        ] {
            assert!(is_startup_key(key), "{key}");
        }
        for key in [
            "spark.authenticate.secret",
            "spark.ssl.keyPassword",
            "spark.ssl.rpc.keyStorePassword",
            "spark.driver.port",
            "spark.driver.blockManager.port",
            "spark.executor.memory",
            "spark.report",
            "other.port",
        ] {
            assert!(!is_startup_key(key), "{key}");
        }
    }
}
