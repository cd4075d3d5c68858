//! Spark's executors in pods: what the entry point of Spark's images reads, as Spark's `BasicExecutorFeatureStep` sets
//! it.

use crate::launch::{EnvironmentVariable, LaunchContext};

/// The argument with which the entry point of Spark's images starts an executor.
pub(super) const EXECUTOR: &str = "executor";

/// The folder with Spark's configuration files in its images.
pub const CONF_DIR: &str = "/opt/spark/conf";

/// The environment of an executor: the variables from which the entry point makes its command line, except those that
/// only the pod knows. `java_options` are one line, as a setting has them.
pub(super) fn environment(
    context: &LaunchContext<'_>,
    (driver_url, app_id, cores): (&str, &str, &str),
    java_options: &str,
    class_path: Option<&str>,
) -> Vec<EnvironmentVariable> {
    let memory = format!("{}m", context.memory.get());
    let mut environment: Vec<EnvironmentVariable> = [
        ("SPARK_DRIVER_URL", driver_url),
        ("SPARK_EXECUTOR_CORES", cores),
        ("SPARK_EXECUTOR_MEMORY", &memory),
        ("SPARK_APPLICATION_ID", app_id),
        ("SPARK_CONF_DIR", CONF_DIR),
        ("SPARK_EXECUTOR_ID", context.executor),
        // Drivers have more than one profile of resources, this manager has the default one.
        ("SPARK_RESOURCE_PROFILE_ID", "0"),
    ]
    .map(|(name, value)| (name.into(), value.to_owned()))
    .into();
    environment.extend(class_path.map(|path| ("SPARK_CLASSPATH".into(), path.to_owned())));
    let options = split_options(java_options).into_iter().enumerate();
    environment.extend(options.map(|(at, option)| (format!("SPARK_JAVA_OPT_{at}").into(), option)));
    environment
}

/// Splits a line of options into words, as Spark does: blanks separate words, except in quotation marks; a backslash in
/// double ones escapes the next character. What isn't closed ends with the line.
fn split_options(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    word.extend(if c == '\\' { rest.next() } else { Some(c) });
                }
            }
            '\'' => word.get_or_insert_default().extend(rest.by_ref().take_while(|c| *c != '\'')),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: options reach Java as Spark would pass them. Method: lines that were compared with Spark's
    /// `splitCommandString`, each with a kind of quotation.
    #[test]
    fn options_are_split_as_spark_does() {
        for (line, words) in [
            ("", &[][..]),
            (" -Xss4m\t-Da=b ", &["-Xss4m", "-Da=b"]),
            ("-Da='b c' -Dd=\"e f\"", &["-Da=b c", "-Dd=e f"]),
            (r#"-Da="b\"c\\" '' "#, &[r#"-Da=b"c\"#, ""]),
            (r"-Da=b\ c", &[r"-Da=b\", "c"]),
            (r"-Da='b\' c", &[r"-Da=b\", "c"]),
            ("-Da=\"b c", &["-Da=b c"]),
            ("-Da='b c", &["-Da=b c"]),
            ("-Da=\"b\\", &["-Da=b"]),
        ] {
            assert_eq!(split_options(line), words, "{line}");
        }
    }
}
