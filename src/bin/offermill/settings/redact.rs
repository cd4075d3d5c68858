//! Redaction of secrets in the values of settings, for `--print-config` and for messages.

use std::fmt;

use regex::Regex;

/// Names that contain one of these are taken for names of secrets.
const SECRET_PARTS: [&str; 8] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "authentication",
    "private",
];
/// And names of which a word ends with one of these: `API_KEY`, `apikey`, `accessKeyId`, but not `KEYMAP` or `AUTHOR`.
const SECRET_ENDS: [&str; 8] = ["pass", "pwd", "token", "tokens", "key", "keys", "auth", "creds"];
/// Words after which a secret may follow without a sign between, as in `password is X`.
const SECRET_NOUNS: [&str; 8] =
    ["secret", "password", "passwd", "passphrase", "pwd", "token", "credential", "credentials"];
/// Shorter secrets are not looked for in texts: they would occur by chance.
const FOUND_BYTES_MIN: usize = 4;

/// What is hidden in texts: what follows the name of a secret, what the user's expression matches, and known secrets.
#[derive(Clone, Default)]
pub(crate) struct Redaction {
    /// `spark.redaction.regex`: keys and values that it matches are hidden.
    expression: Option<Regex>,
    /// The texts of known secrets.
    known: Vec<String>,
}

impl Redaction {
    /// Hides keys and values that `expression` matches, too. Returns whether it is a regular expression.
    pub(crate) fn set_expression(&mut self, expression: &str) -> bool {
        let parsed = Regex::new(expression).ok();
        let is_valid = parsed.is_some();
        self.expression = parsed;
        is_valid
    }

    /// Hides this text wherever it occurs.
    pub(crate) fn add_secret(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= FOUND_BYTES_MIN && !self.known.iter().any(|known| known == secret) {
            self.known.push(secret.to_owned());
            // A secret that contains another one is looked for first.
            self.known.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// Whether the values of a key are hidden.
    pub(crate) fn hides_key(&self, key: &str) -> bool {
        may_name_secret(key) || self.matches(key)
    }

    /// The value of a setting without secrets.
    pub(crate) fn value(&self, text: &str) -> String {
        if self.matches(text) { HIDDEN.to_owned() } else { without_secrets(&self.sentence(text)) }
    }

    /// A sentence without known secrets.
    pub(crate) fn sentence(&self, text: &str) -> String {
        self.known.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// Whether the user's expression matches a key or a value.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.expression.as_ref().is_some_and(|expression| expression.is_match(text))
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

/// Stands for what is hidden.
const HIDDEN: &str = "…";

/// Removes the user part of URLs and of `USER/PASSWORD@HOST`, and everything after the name of a secret, because the
/// end of the secret is unknown.
pub(crate) fn without_secrets(text: &str) -> String {
    let secret = text.match_indices(['=', ':', ' ']).find(|(at, sign)| {
        // A name may be quoted, as in JSON.
        let before = text.get(..*at).unwrap_or_default().trim_end_matches(['"', '\'', ' ']);
        let after = text.get(*at + 1..);
        let name = before.rsplit([' ', ',', ';', '=', '&', '?', '"', '\'', ':']).next();
        let name = name.unwrap_or_default();
        // As in `--password X` or `password is X`; and not as in `https://`.
        let is_named = match *sign {
            " " => name.starts_with('-') || is_secret_noun(name),
            ":" => after.is_some_and(|after| !after.starts_with("//")),
            _ => true,
        };
        is_named && may_name_secret(name)
    });
    match secret {
        Some((at, _)) => without_users(text.get(..=at).unwrap_or_default()) + HIDDEN,
        None => without_users(text),
    }
}

fn is_secret_noun(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    SECRET_NOUNS.contains(&word.as_str())
}

/// Removes what is before the `@` in URLs, except in URLs of Spark, in which it is the name of an endpoint; and the
/// user and password of databases, as in `scott/tiger@db`.
fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = without_passwords(parts.next().unwrap_or_default());
    for part in parts {
        // Not at a comma, which a password may contain.
        let end = part.find([' ', '"', '\'']).unwrap_or(part.len());
        let (url, rest) = part.split_at(end);
        let kept = match url.rsplit_once('@') {
            Some((_, host)) if !shown.ends_with("spark") => format!("{HIDDEN}@{host}"),
            _ => url.to_owned(),
        };
        shown.push_str(&format!("://{kept}{}", without_passwords(rest)));
    }
    shown
}

/// Removes `USER/PASSWORD` and `USER:PASSWORD` before an `@`. Paths and digests of images have none, nor have Kerberos
/// principals, whose realms are capital letters.
fn without_passwords(text: &str) -> String {
    let words = text.split_inclusive([' ', ',', ';', '"', '\'']).map(|word| {
        let Some((user, host)) = word.split_once('@') else { return word.to_owned() };
        let is_pair = user.matches('/').count() == 1 || user.contains(':');
        let is_path = user.starts_with(['/', '.']);
        let is_principal = !host.is_empty() && !host.chars().any(|c| c.is_lowercase() || c == ':');
        match is_pair && !is_path && !is_principal && !host.starts_with("sha256:") {
            true => format!("{HIDDEN}@{host}"),
            false => word.to_owned(),
        }
    });
    words.collect()
}

/// Whether a name is taken for the name of a secret.
pub(crate) fn may_name_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| lower.contains(part))
        || words(name).any(|word| SECRET_ENDS.iter().any(|end| word.ends_with(end)))
}

/// The words of a name, in lower case: what is between signs, and what begins with a capital letter after a small one.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (was_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        was_small = letter.is_lowercase();
    }
    words.into_iter()
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
            (r#"{"password": "hunter3"}"#, r#"{"password":…"#),
            (r#"{"a": 1, 'api_token' : 'X'}"#, r#"{"a": 1, 'api_token' :…"#),
            ("the password is hunter4", "the password …"),
            ("pass the salt", "pass the salt"),
            ("scott/tiger@db:1521/x", "…@db:1521/x"),
            ("image/name@sha256:0a", "image/name@sha256:0a"),
            ("https://u:p,w@h", "https://…@h"),
            ("admin:pw@db", "…@db"),
            ("scott/tiger@db https://h scott/tiger@db", "…@db https://h …@db"),
            ("spark/h1.example@EXAMPLE.ORG", "spark/h1.example@EXAMPLE.ORG"),
            ("KEYMAP=de", "KEYMAP=de"),
            ("/var/x@2/y", "/var/x@2/y"),
            ("zone:east;rack:r1", "zone:east;rack:r1"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
        for name in ["API_KEY", "DB_PASS", "MYSQL_PWD", "AWS_CREDENTIALS", "AUTH"] {
            assert!(may_name_secret(name), "{name}");
        }
        for name in
            ["APIKEY", "PGPASSWORD", "accessKeyId", "Authorization", "tls.key.file", "AUTH_TOKENS"]
        {
            assert!(may_name_secret(name), "{name}");
        }
        for name in ["KEYMAP", "TOKENIZERS_PARALLELISM", "GIT_AUTHOR_NAME", "keyboard", "passage"] {
            assert!(!may_name_secret(name), "{name}");
        }
    }

    /// Goal: known secrets are hidden wherever they occur, and what the user's expression matches. Method: a secret in
    /// the middle of a sentence and one that contains another; keys and values for an expression.
    #[test]
    fn known_secrets_and_matches_are_left_out() {
        let mut redaction = Redaction::default();
        assert!(redaction.set_expression("(?i)internal|hunti"));
        ["hunter2", "hunter2hunter2", "abc", " s3cr\n"]
            .iter()
            .for_each(|it| redaction.add_secret(it));
        assert_eq!(redaction.sentence("abc hunter2hunter2 and s3cr."), "abc … and ….");
        assert!(redaction.hides_key("INTERNAL_NAME") && !redaction.hides_key("LANG"));
        assert_eq!([redaction.value("go hunting"), redaction.value("go")], ["…", "go"]);
        assert!(!format!("{redaction:?}").contains("hunter2"));
        assert!(!redaction.set_expression("("));
    }
}
