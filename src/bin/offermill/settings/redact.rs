//! Redaction of secrets in the values of settings, for `--print-config` and for messages.

/// Names that contain one of these words are taken for names of secrets.
const SECRET_WORDS: [&str; 8] =
    ["secret", "pass", "pwd", "token", "key", "credential", "auth", "private"];

/// Removes the user part of URLs, and everything after the name of a secret, because the end of the secret is unknown.
pub(crate) fn without_secrets(text: &str) -> String {
    let secret = text.match_indices(['=', ':', ' ']).find(|(at, sign)| {
        let before = text.get(..*at).unwrap_or_default();
        let after = text.get(*at + 1..);
        let name = before.rsplit([' ', ',', ';', '=', '&', '?', '"', '\'', ':']).next();
        let name = name.unwrap_or_default();
        // As in `--password X`; and not as in `https://`.
        let is_named = match *sign {
            " " => name.starts_with('-'),
            ":" => after.is_some_and(|after| !after.starts_with("//")),
            _ => true,
        };
        is_named && may_name_secret(name)
    });
    match secret {
        Some((at, _)) => without_users(text.get(..=at).unwrap_or_default()) + "…",
        None => without_users(text),
    }
}

/// Removes what is before the `@` in URLs, except in URLs of Spark, in which it is the name of an endpoint.
fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([',', ' ', '"']).unwrap_or(part.len());
        let (url, rest) = part.split_at(end);
        let kept = match url.rsplit_once('@') {
            Some((_, host)) if !shown.ends_with("spark") => format!("…@{host}"),
            _ => url.to_owned(),
        };
        shown.push_str(&format!("://{kept}{rest}"));
    }
    shown
}

/// Whether a name is taken for the name of a secret.
pub(crate) fn may_name_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: secrets are hidden, and everything else is shown. Method: one text of each kind.
    #[test]
    fn secrets_are_left_out() {
        for (text, shown) in [
            ("-Xlog:gc -Dssl.keyStorePassword=X -Xmx1g", "-Xlog:gc -Dssl.keyStorePassword=…"),
            ("run --password X now", "run --password …"),
            ("https://u:p/w@h/x,http://y", "https://…@h/x,http://y"),
            ("https://TOKEN@h", "https://…@h"),
            ("http://h/x?pwd=X", "http://h/x?pwd=…"),
            ("a:b,token:X", "a:b,token:…"),
            ("spark://CoarseGrainedScheduler@h:1", "spark://CoarseGrainedScheduler@h:1"),
            ("-Dx=1 -XX:+Y", "-Dx=1 -XX:+Y"),
            ("env=A=b,env=API_TOKEN=c,env=D=e", "env=A=b,env=API_TOKEN=…"),
            // Too much is hidden rather than a part of a password with a slash.
            ("ftp://v:q@i/b@c:d", "ftp://…@c:d"),
            ("/opt/spark:/opt/x", "/opt/spark:/opt/x"),
            ("zone:east;rack:r1", "zone:east;rack:r1"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
        for name in ["API_KEY", "DB_PASS", "MYSQL_PWD", "AWS_CREDENTIALS", "AUTH"] {
            assert!(may_name_secret(name), "{name}");
        }
    }
}
