//! The environment variables of executors that flags set: `--env` and `--env-file`.

use std::env;
use std::io::Read;
use std::path::Path;

use offermill::private_files::{FileAccess, open_input};

use crate::settings::file_access::report_file_access;
use crate::settings::flags::RunArguments;
use crate::settings::redact::may_be_secret;
use crate::settings::sources::{SettingSource, Sourced, Sources};

/// The most bytes of a file of variables.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a variable must be.
const ALLOWED: &str =
    "NAME=VALUE, or the NAME of a variable that is set in this program's environment";

impl Sources {
    /// Adds the variables of `--env-file`, and then those of `--env`, which take precedence.
    pub(super) fn add_variables(&mut self, arguments: &RunArguments) {
        for path in &arguments.env_file {
            self.add_variable_file(path);
        }
        for (text, number) in arguments.env.iter().zip(1..) {
            match variable(text) {
                Some((name, value)) => {
                    if text.contains('=') && may_be_secret(&name, &value) {
                        self.remarks.push(format!(
                            "--env {name}=… can be read by everybody who lists this machine's processes; \
                             --env {name} takes the value from the environment, and --env-file from a file"
                        ));
                    }
                    self.add_variable(&name, &value, "--env");
                }
                // Its text isn't shown, as it may be a value: `--env $NAME` instead of `--env NAME`.
                None => {
                    let which = match arguments.env.len() {
                        1 => "--env".to_owned(),
                        all => format!("--env number {number} of {all}"),
                    };
                    self.problems.push(format!("{which} must be {ALLOWED}"));
                }
            }
        }
    }

    /// Adds the variables of a file: one on each line, without quotation marks. Messages don't show the lines, which
    /// may contain secrets.
    fn add_variable_file(&mut self, path: &str) {
        let mut text = String::new();
        let read = open_input(Path::new(path)).and_then(|file| {
            let file_access = FileAccess::of(&file)?;
            file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map(|_| file_access)
        });
        let file_access = match read {
            Ok(file_access) if text.len() as u64 <= FILE_BYTES_MAX => file_access,
            Ok(_) => {
                let why = format!("it is larger than {FILE_BYTES_MAX} bytes");
                return self.reject_file(path, &why);
            }
            Err(error) => return self.reject_file(path, &error.to_string()),
        };
        let mut has_secret = false;
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match variable(line) {
                Some((name, value)) => {
                    has_secret |= line.contains('=') && may_be_secret(&name, &value);
                    self.add_variable(&name, &value, "--env-file");
                }
                None => {
                    let place = format!("--env-file {path:?}, line {number}");
                    self.problems.push(format!("{place} must be {ALLOWED}"));
                }
            }
        }
        if has_secret {
            report_file_access(file_access, path, &mut self.remarks, &mut self.problems);
        }
    }

    fn reject_file(&mut self, path: &str, why: &str) {
        let allowed = format!("a file of variables that can be read ({why})");
        self.problems.push(format!("--env-file is {path:?}, but must be {allowed}"));
    }

    fn add_variable(&mut self, name: &str, value: &str, flag: &str) {
        let key = format!("spark.executorEnv.{name}");
        let given = Sourced::new(flag.to_owned(), &key, value, SettingSource::Flag).at(flag);
        self.replace(&key, given);
    }
}

/// The name and the value of a variable. Without a value it is this program's own.
fn variable(text: &str) -> Option<(String, String)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (text.trim_end(), env::var(text.trim_end()).ok()?),
    };
    (!name.is_empty()).then(|| (name.to_owned(), value))
}
