//! An argument list as a line for a shell.

use super::{Command, Prelude};
use crate::error::Error;

/// What has no meaning to any shell, wherever it stands.
const PLAIN: &str = "%+,-./:=@_";

impl Command {
    /// A line that makes `/bin/sh -c` become this command, with just these arguments: nothing in them means anything
    /// to the shell. The program begins after `exec`, so that none of the shell's own takes the place of the one
    /// meant, and signals reach it.
    ///
    /// # Errors
    /// When there is no program, its name begins with `-`, or something has a NUL or the end of a line in it.
    pub fn shell_line(&self) -> Result<String, Error> {
        self.line("exec ")
    }

    /// The same line without `exec`, to show what is started; for a command in any form.
    ///
    /// # Errors
    /// When there is no line: see [`Command::shell_line`].
    pub fn shown_line(&self) -> Result<String, Error> {
        self.line("")
    }

    fn line(&self, before_program: &str) -> Result<String, Error> {
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
        let Prelude { folder, library_path } = &self.prelude;
        let prelude = [folder, library_path].into_iter().flatten().map(|text| &**text);
        for text in self.argv.iter().map(String::as_str).chain(prelude) {
            if text.contains(['\0', '\n', '\r']) {
                return refused(text, "without NUL and ends of lines, to go through a shell");
            }
        }
        let mut line = String::new();
        if let Some(folder) = folder {
            // What begins with '-' would be an option.
            line.push_str(if folder.starts_with('-') { "cd ./" } else { "cd " });
            push_quoted(&mut line, folder);
            line.push_str("*; ");
        }
        if let Some(path) = library_path {
            line.push_str("LD_LIBRARY_PATH=");
            push_quoted(&mut line, path);
            line.push_str(":\"$LD_LIBRARY_PATH\" ");
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
        // A single quotation mark ends the quotation, stands by itself, and begins it again.
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

    /// Goal: lines are readable where they can be, and what can't be said is refused. Method: examples of each.
    #[test]
    fn lines_are_plain_where_they_can_be() {
        let shown = line(&["./run", "--n=1", "a b", "", "it's", "$HOME", "*", "~"]).unwrap();
        assert_eq!(shown, "exec ./run --n=1 'a b' '' 'it'\\''s' '$HOME' '*' '~'");
        for refused in [&[][..], &[""], &["-x"], &["a", "b\nc"], &["a", "b\rc"], &["a\0"]] {
            let error = line(refused).unwrap_err();
            assert!(error.is_setting() && error.to_string().starts_with("command is "), "{error}");
        }
    }

    /// Goal: through a shell a program gets its arguments unchanged. Method: random lists of everything that means
    /// something to shells, given to a program by way of `/bin/sh -c`, which prints them with NULs between.
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
            // A program called exactly so, of which every shell has one of its own with other ways.
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
