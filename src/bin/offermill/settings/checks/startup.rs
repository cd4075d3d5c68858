//! What Spark's executors need before they can ask their driver: settings as options of Java, secrets as variables.

use offermill::launch::Secret;

use crate::settings::draft::SettingsDraft;

/// The options of Java that set what executors need to start.
pub(crate) fn java_options(draft: &SettingsDraft) -> Vec<String> {
    let option = |key: &String, value: &str| quoted(&format!("-D{key}={value}"));
    draft.startup.iter().map(|(key, given)| option(key, given.text.trim())).collect()
}

/// The secrets that executors need to start, each with its variable: that of authentication, and the passwords for SSL,
/// each only if it is used.
pub(crate) fn secrets(draft: &SettingsDraft) -> impl Iterator<Item = (&'static str, &Secret)> {
    let has_ssl =
        draft.startup.get("spark.ssl.rpc.enabled").is_some_and(|it| it.text.trim() == "true");
    let authenticates = draft.spark.authenticate;
    let is_used = move |is_password: bool| if is_password { has_ssl } else { authenticates };
    let secrets = draft.spark.secrets.iter().map(|(variable, secret)| (*variable, secret));
    secrets.filter(move |(variable, _)| is_used(variable.contains("PASSWORD")))
}

/// An option as Spark's launcher reads it from a line of options: quoted if it has a character that is special there.
fn quoted(option: &str) -> String {
    let is_special = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    if !option.contains(is_special) {
        return option.to_owned();
    }
    let escaped = option.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: options with any characters are read back by Spark's launcher. Method: forms that were compared with its
    /// parser, in which a backslash escapes within double quotes.
    #[test]
    fn options_are_quoted_for_the_launcher() {
        for (option, line) in [
            ("-Dspark.rpc.x=7", "-Dspark.rpc.x=7"),
            ("-Dspark.ssl.x=a b", "\"-Dspark.ssl.x=a b\""),
            ("-Dspark.ssl.x=it's", "\"-Dspark.ssl.x=it's\""),
            ("-Dspark.ssl.x=\"\\", "\"-Dspark.ssl.x=\\\"\\\\\""),
        ] {
            assert_eq!(quoted(option), line);
        }
    }
}
