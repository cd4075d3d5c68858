//! What nobody should see of a setting's value, wherever it is shown: in `--print-config`, and in complaints.

/// Names with one of these in them are probably of something to be kept.
const WORDS: [&str; 8] = ["secret", "pass", "pwd", "token", "key", "credential", "auth", "private"];

/// A text without who somebody is in URLs, and without all that comes after a name that sounds like a secret: where the
/// secret ends can't be known.
pub(crate) fn without_secrets(text: &str) -> String {
    let secret = text.match_indices(['=', ':', ' ']).find(|(at, sign)| {
        let (before, after) = (text.get(..*at).unwrap_or_default(), text.get(*at + 1..));
        let name = before.rsplit([' ', ',', ';', '=', '&', '?', '"', '\'', ':']).next();
        let name = name.unwrap_or_default();
        // As in `--password X`; and not as in `https://`.
        let is_named = match *sign {
            " " => name.starts_with('-'),
            ":" => after.is_some_and(|after| !after.starts_with("//")),
            _ => true,
        };
        is_named && sounds_secret(name)
    });
    let (text, hidden) = match secret {
        Some((at, _)) => (text.get(..=at).unwrap_or_default(), "…"),
        None => (text, ""),
    };
    without_users(text) + hidden
}

/// A text without what stands before an `@` in URLs. Spark's own have names of endpoints there.
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

/// Whether the value of something with this name is probably one to be kept.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// The sentence, in which `value` is quoted, without the secrets of the value.
pub(crate) fn about(sentence: String, value: &str) -> String {
    let shown = without_secrets(value);
    if shown == value {
        return sentence;
    }
    // How much of the value the sentence has, and how it is written there, is left to who wrote it.
    const MUST: &str = "\", but must be ";
    match (sentence.split_once(" is \""), sentence.rsplit_once(MUST)) {
        (Some((name, _)), Some((_, allowed))) => {
            format!("{name} is {shown:?}, but must be {allowed}")
        }
        _ => "a value can't be had, and isn't shown, as it seems to hold a secret".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what sounds like a secret isn't shown, and all else is. Method: one of each kind of place.
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
            // Better too much than a password with a slash.
            ("ftp://v:q@i/b@c:d", "ftp://…@c:d"),
            ("/opt/spark:/opt/x", "/opt/spark:/opt/x"),
            ("zone:east;rack:r1", "zone:east;rack:r1"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
        for name in ["API_KEY", "DB_PASS", "MYSQL_PWD", "AWS_CREDENTIALS", "AUTH"] {
            assert!(sounds_secret(name), "{name}");
        }
    }

    /// Goal: a complaint keeps its reason and loses the secret. Method: a sentence with a value, and one of other form.
    #[test]
    fn complaints_keep_their_reasons() {
        let value = "-Dpassword=X -Xmx1g";
        let told = about(format!("options is {value:?}, but must be without -Xmx"), value);
        assert_eq!(told, "options is \"-Dpassword=…\", but must be without -Xmx");
        assert!(!about(format!("no {value} here"), value).contains('X'));
    }
}
