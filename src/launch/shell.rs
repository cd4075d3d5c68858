//! Conversion of a command's argument list to a quoted shell line.

use super::{Command, ShellPrologue};
use crate::error::Error;

/// Characters, besides ASCII letters and digits, that have no special meaning to a shell in any position.
const PLAIN: &str = "%+,-./:=@_";

impl Command {
    /// Returns a line with which `/bin/sh -c` executes this command with exactly these arguments. All arguments are
    /// quoted, so the shell interprets none of them. The program follows `exec`, so that no shell builtin of the same
    /// name runs in its place, and so that signals reach the program.
    ///
    /// # Errors
    /// If the program is missing or empty, if its name begins with `-`, or if any text contains a NUL or a line break.
    pub fn shell_line(&self) -> Result<String, Error> {
        // An empty entry of the path would be the current folder.
        self.line("\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\" ", "exec ")
    }

    /// Returns the line for display, as Spark writes it: without `exec`, and with an entry for `LD_LIBRARY_PATH` even
    /// if that is empty. Works for a command in any form.
    ///
    /// # Errors
    /// As for [`Command::shell_line`].
    pub fn shown_line(&self) -> Result<String, Error> {
        self.line(":\"$LD_LIBRARY_PATH\" ", "")
    }

    fn line(&self, after_library_path: &str, before_program: &str) -> Result<String, Error> {
        let refused = |argument: &str, allowed| Err(Error::setting("command", argument, allowed));
        match self.argv.first() {
            None => return refused("", "a program and its arguments"),
            Some(program) if program.is_empty() => {
                return refused("", "a program and its arguments");
            }
            Some(program) if program.starts_with('-') => {
                return refused(program, "one that doesn't begin with '-', to go through a shell");
            }
            Some(_) => {}
        }
        let ShellPrologue { folder, library_path } = &self.prologue;
        let prologue = [folder, library_path].into_iter().flatten().map(|text| &**text);
        for text in self.argv.iter().map(String::as_str).chain(prologue) {
            if text.contains(['\0', '\n', '\r']) {
                return refused(text, "without NUL and line breaks, since a shell runs it");
            }
        }
        let mut line = String::new();
        if let Some(folder) = folder {
            // A name that begins with '-' would be parsed as an option.
            line.push_str(if folder.starts_with('-') { "cd ./" } else { "cd " });
            push_quoted(&mut line, folder);
            line.push_str("*; ");
        }
        if let Some(path) = library_path {
            line.push_str("LD_LIBRARY_PATH=");
            push_quoted(&mut line, path);
            line.push_str(after_library_path);
        }
        line.push_str(before_program);
        for (index, argument) in self.argv.iter().enumerate() {
            line.push_str(if index > 0 { " " } else { "" });
            push_quoted(&mut line, argument);
        }
        Ok(line)
    }
}

fn push_quoted(line: &mut String, argument: &str) {
    let plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        line.push_str(argument);
        return;
    }
    line.push('\'');
    for (index, part) in argument.split('\'').enumerate() {
        // A quotation mark is written outside of the quotation: close it, escape the mark, open it again.
        line.push_str(if index > 0 { "'\\''" } else { "" });
        line.push_str(part);
    }
    line.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(argv: &[&str]) -> Result<String, Error> {
        let argv = argv.iter().map(|argument| (*argument).to_owned()).collect();
        Command { argv, ..Command::default() }.shell_line()
    }

    /// Goal: lines are not quoted where it isn't necessary, and invalid commands are refused. Method: examples of each.
    #[test]
    fn lines_are_plain_where_they_can_be() {
        let shown = line(&["./run", "--n=1", "a b", "", "it's", "$HOME", "*", "~"]).unwrap();
        assert_eq!(shown, "exec ./run --n=1 'a b' '' 'it'\\''s' '$HOME' '*' '~'");
        for refused in [&[][..], &[""], &["-x"], &["a", "b\nc"], &["a", "b\rc"], &["a\0"]] {
            let error = line(refused).unwrap_err();
            assert!(error.is_setting() && error.to_string().starts_with("command is "), "{error}");
        }
    }

    /// Goal: a program that a shell starts receives its arguments unchanged. Method: `/bin/sh -c` starts a program that
    /// prints its arguments separated by NULs, with random lists of all characters that are special to shells.
    #[cfg(unix)]
    #[test]
    fn arguments_come_through_a_shell_unchanged() {
        use proptest::prelude::*;
        use proptest::test_runner::{Config, TestRunner};
        let argument = prop_oneof![
            "[-a~$`'\"\\\\;&|<>(){}\\[\\]*?!#=%^ \té\u{1}\u{7f}]{0,8}",
            prop::sample::select(vec![
                "'",
                "''",
                "$(id)",
                "`id`",
                "\\",
                "'; exit 3; '",
                "-n",
                "é ü",
                "~root",
                "a=b"
            ])
            .prop_map(str::to_owned),
            "[^\0\n\r]{0,20}",
        ];
        let mut runner = TestRunner::new(Config::with_cases(60));
        let arguments = prop::collection::vec(argument, 0..12);
        let result = runner.run(&arguments, |arguments| {
            // Exactly this name: every shell has a builtin `printf`, which behaves differently.
            let mut argv = vec!["printf".to_owned(), "%s\\000".to_owned()];
            argv.extend(arguments.iter().cloned());
            let line = Command { argv, ..Command::default() }.shell_line().unwrap();
            let output =
                std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
            prop_assert!(output.status.success(), "{}: {:?}", line, output);
            // Without arguments it prints the format once.
            let wanted = if arguments.is_empty() { vec![String::new()] } else { arguments };
            let wanted: String = wanted.iter().flat_map(|argument| [argument, "\0"]).collect();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{}", line);
            Ok(())
        });
        result.unwrap();
    }
}
