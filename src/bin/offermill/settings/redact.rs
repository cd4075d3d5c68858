//! Redaction of secrets in the values of settings, for `--print-config` and for messages.

use std::fmt;

use regex::Regex;

/// Names that contain one of these are taken for names of secrets.
const SECRET_PARTS: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "credential",
    "authorization",
    "authentication",
    "private",
    "accesskey",
];
/// And names of which a word ends with one of these: `API_KEY`, `apikey`, `accessKeyId`, but not `KEYMAP` or `AUTHOR`.
const SECRET_ENDS: [&str; 9] =
    ["pass", "pwd", "token", "tokens", "key", "keys", "auth", "creds", "bindpw"];
/// And names of which one of these is a whole word: `DB_PW`, `GITHUB_PAT`.
const SECRET_WORDS: [&str; 8] = ["pw", "psk", "jwt", "pat", "pin", "sig", "cookie", "bearer"];
/// And names of which a word begins with this, as in `TOKENVALUE`, unless it goes on like `tokenizer`.
const SECRET_BEGINNING: &str = "token";
/// Words after which a secret may follow without a sign between, as in `password is X`.
const SECRET_NOUNS: [&str; 11] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "keypass",
    "storepass",
    "pwd",
    "token",
    "credential",
    "credentials",
    "bearer",
];
/// Signs between a name and its value, and `%` for those of URLs: `%3D`, `%3A`.
const SIGNS: [char; 10] = ['=', ':', '(', '>', '|', '%', ' ', '\t', '\n', '\u{a0}'];
/// Shorter secrets are not looked for in texts: they would occur by chance.
const FOUND_BYTES_MIN: usize = 4;

/// The last words of the names of variables whose values are paths.
const PATH_ENDS: [&str; 5] = ["file", "path", "dir", "folder", "home"];

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

    /// The arguments of a command without secrets. The argument after an option such as `--password` is hidden, too.
    pub(crate) fn arguments(&self, arguments: &[String]) -> Vec<String> {
        let mut follows_name = false;
        let shown = arguments.iter().map(|argument| {
            let is_hidden = std::mem::take(&mut follows_name);
            follows_name = argument.starts_with('-')
                && !argument.contains(|c: char| "=:".contains(c) || c.is_whitespace())
                && self.hides_key(argument);
            if is_hidden { HIDDEN.to_owned() } else { self.value(argument) }
        });
        shown.collect()
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
    let secret = text.match_indices(SIGNS).find(|(at, sign)| {
        // A name may be quoted, as in JSON.
        let before = text.get(..*at).unwrap_or_default();
        let before =
            before.trim_end_matches(|c: char| matches!(c, '"' | '\'') || c.is_whitespace());
        let after = text.get(*at + sign.len()..);
        let name = before.rsplit(|c: char| c.is_whitespace() || ",;=&?\"':<(|".contains(c)).next();
        let name = name.unwrap_or_default();
        // As in `--password X` or `password is X`; and not as in `https://`.
        let is_named = match *sign {
            " " | "\t" | "\n" | "\u{a0}" => name.starts_with('-') || is_secret_noun(name),
            "%" => after.is_some_and(|after| {
                let code = after.get(..2).unwrap_or_default();
                ["3d", "3a"].iter().any(|sign| sign.eq_ignore_ascii_case(code))
            }),
            ":" => after.is_some_and(|after| !after.starts_with("//")),
            _ => true,
        };
        is_named && may_name_secret(name)
    });
    match secret {
        Some((at, sign)) => without_users(text.get(..at + sign.len()).unwrap_or_default()) + HIDDEN,
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
        let (url, rest) = part.split_at(end_of_url(&shown, part));
        let kept = match url.rsplit_once('@') {
            Some((user, host)) if user.contains(':') || !is_spark(&shown) => {
                format!("{HIDDEN}@{host}")
            }
            _ => url.to_owned(),
        };
        shown.push_str(&format!("://{kept}{}", without_passwords(rest)));
    }
    shown
}

/// Whether a text ends with the scheme of Spark's own URLs.
fn is_spark(text: &str) -> bool {
    let before = text.strip_suffix("spark");
    before
        .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || "+-.".contains(c)))
}

/// The length of a URL after its scheme, which `before` ends with: up to a blank, or up to the quotation mark before
/// the scheme. Not up to other signs, which a password may contain.
fn end_of_url(before: &str, part: &str) -> usize {
    let opened =
        before.trim_end_matches(|c: char| c.is_alphanumeric() || "+-.".contains(c)).chars().last();
    let is_end = |&(at, c): &(usize, char)| {
        let next = part.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        let is_closed = matches!(c, '"' | '\'')
            && opened == Some(c)
            && !next.is_some_and(char::is_alphanumeric);
        c.is_whitespace() || is_closed
    };
    part.char_indices().find(is_end).map_or(part.len(), |(at, _)| at)
}

/// Removes `USER/PASSWORD` and `USER:PASSWORD` before the last `@` of a word. A word ends at a blank only: a password
/// may contain other signs. Paths and digests of images aren't such pairs.
fn without_passwords(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let Some((user, host)) = word.rsplit_once('@') else { return word.to_owned() };
        let last = user.rsplit([',', ';', '=', '"', '\'']).next().unwrap_or_default();
        let is_path = !user.contains(':') && last.starts_with(['/', '.']);
        let is_pair = user.contains(['/', ':']) && !is_path;
        // `spark/_HOST@REALM` is a principal of Kerberos. Others look like passwords.
        let is_public = last.ends_with("/_HOST") || host.starts_with("sha256:");
        match is_pair && !is_public {
            true => format!("{HIDDEN}@{host}"),
            false => word.to_owned(),
        }
    });
    words.collect()
}

/// Whether a variable's value may be secret, by its name, and because it is more than a truth value or a path.
pub(crate) fn may_be_secret(name: &str, value: &str) -> bool {
    // A secret in base 64 may begin with a slash, too.
    let name_is_path = || {
        let name = name.to_ascii_lowercase();
        PATH_ENDS.iter().any(|end| name.ends_with(end))
    };
    let is_plain = value.is_empty()
        || matches!(value, "true" | "false" | "0" | "1")
        || (value.starts_with('/') && name_is_path());
    !is_plain && may_name_secret(name)
}

/// Whether a name is taken for the name of a secret.
pub(crate) fn may_name_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| lower.contains(part))
        || words(name).any(|word| {
            let rest = word.strip_prefix(SECRET_BEGINNING);
            SECRET_ENDS.iter().any(|end| word.ends_with(end))
                || SECRET_WORDS.contains(&word.as_str())
                || rest.is_some_and(|rest| !rest.starts_with("iz") && !rest.starts_with("is"))
        })
}

/// The words of a name, in lower case: what is between signs and digits, and what begins with a capital letter after a
/// small one.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphabetic() || (was_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
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
            ("spark/h1.example@EXAMPLE.ORG", "…@EXAMPLE.ORG"),
            ("scott/hunt.er2@ORCL.WORLD", "…@ORCL.WORLD"),
            ("spark://u:X@h", "spark://…@h"),
            ("pyspark://X@h", "pyspark://…@h"),
            ("-Ddb.pw=X", "-Ddb.pw=…"),
            ("password(X)", "password(…"),
            ("<password>X<", "<password>…"),
            ("password|X", "password|…"),
            ("password->X", "password->…"),
            ("?password%3DX", "?password%…"),
            ("password\u{a0}X", "password\u{a0}…"),
            ("keypass X", "keypass …"),
            ("Bearer X", "Bearer …"),
            ("http://h/?sig=X", "http://h/?sig=…"),
            ("100%3D", "100%3D"),
            ("KEYMAP=de", "KEYMAP=de"),
            ("/var/x@2/y", "/var/x@2/y"),
            ("zone:east;rack:r1", "zone:east;rack:r1"),
            ("scott/tiger@10.0.0.5", "…@10.0.0.5"),
            ("scott/tiger@ORCL", "…@ORCL"),
            ("scott/ti.ger@db", "…@db"),
            ("admin:pw@10.0.0.1", "…@10.0.0.1"),
            ("admin:pw@EXAMPLE.ORG", "…@EXAMPLE.ORG"),
            ("admin:p@ss@db", "…@db"),
            ("admin:p,w@db", "…@db"),
            ("/opt/x,scott/tiger@db", "…@db"),
            ("https://u:p'w@h", "https://…@h"),
            ("'https://u:p'w@h' x", "'https://…@h' x"),
            (r#"["https://u:p@h","v@w"]"#, r#"["https://…@h","v@w"]"#),
            ("DB_PASS2=X", "DB_PASS2=…"),
            ("TOKEN2=X", "TOKEN2=…"),
            ("--password\tX", "--password\t…"),
            ("principal=spark/_HOST@EXAMPLE.ORG", "principal=spark/_HOST@EXAMPLE.ORG"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    /// Goal: names of secrets are known by their words, and other names aren't taken for them. Method: names of each
    /// kind.
    #[test]
    fn names_of_secrets_are_known() {
        for name in ["API_KEY", "DB_PASS", "MYSQL_PWD", "AWS_CREDENTIALS", "AUTH"] {
            assert!(may_name_secret(name), "{name}");
        }
        for name in
            ["APIKEY", "PGPASSWORD", "accessKeyId", "Authorization", "tls.key.file", "AUTH_TOKENS"]
        {
            assert!(may_name_secret(name), "{name}");
        }
        for name in [
            "API_KEY1",
            "PASSCODE",
            "accesskeyid",
            "TOKENVALUE",
            "PASS2WORD",
            "key0",
            "DB_PW",
            "GITHUB_PAT",
            "ldap_bindpw",
        ] {
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
        let arguments = ["x", "--password", "X", "-DTOKEN=X", "--api-key", "X", "hunter2", "sh -c"]
            .map(str::to_owned);
        assert_eq!(
            redaction.arguments(&arguments),
            ["x", "--password", "…", "-DTOKEN=…", "--api-key", "…", "…", "sh -c"]
        );
        assert!(!redaction.set_expression("("));
    }
}
