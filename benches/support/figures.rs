//! Benches that Criterion doesn't run: what they are asked for, and where their tables go.

use std::path::PathBuf;
use std::{env, fs};

/// How a bench is to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Only so far that one sees that it runs; nothing is written.
    Test,
    /// In full.
    Full,
}

/// Criterion's options that have no value: what follows any other one isn't a filter.
const FLAGS: &str = "--exact --ignored --include-ignored --nocapture --show-output --noplot \
                     --verbose --quiet --quick --discard-baseline -v -n";

/// Runs a theme, if the command line asks for it as it would ask Criterion: prints its Markdown table, and keeps it for
/// `benches/figures`.
pub(crate) fn run(theme: &str, table: impl FnOnce(Extent) -> String) {
    let Some(extent) = asked(theme) else { return };
    let table = table(extent);
    println!("{table}");
    if extent == Extent::Full {
        write(theme, &table);
    }
}

/// How far the command line asks benches to run. Without `--bench` it is `cargo test` that asks.
pub(crate) fn extent() -> Extent {
    let has = |wanted: &str| env::args().skip(1).any(|argument| argument == wanted);
    if has("--bench") && !has("--test") { Extent::Full } else { Extent::Test }
}

/// What the command line asks of a theme: nothing, if it has a filter that is about others.
fn asked(theme: &str) -> Option<Extent> {
    let mut arguments = env::args().skip(1);
    let mut filters = Vec::new();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--list" => return None,
            "--bench" | "--test" => {}
            option if FLAGS.split(' ').any(|known| known == option) || option.contains('=') => {}
            option if option.starts_with('-') => drop(arguments.next()),
            _ => filters.push(argument),
        }
    }
    let about_this = |filter: &String| theme.contains(&**filter) || filter.starts_with(theme);
    (filters.is_empty() || filters.iter().any(about_this)).then(extent)
}

/// Keeps a theme's table as `figures/THEME.md` in the target directory.
pub(crate) fn write(theme: &str, table: &str) {
    let folder = folder();
    fs::create_dir_all(&folder).expect("a folder for figures");
    fs::write(folder.join(format!("{theme}.md")), table).expect("a file of figures");
}

/// Where what is kept for `benches/figures` lies.
pub(crate) fn folder() -> PathBuf {
    let program = env::current_exe().expect("a program's path");
    // TARGET/release/deps/PROGRAM
    program.ancestors().nth(3).expect("a target directory").join("figures")
}

/// Writes a Markdown table: the first row is its head.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (row, at) in rows.iter().zip(0..) {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
        if at == 0 {
            text.push_str(&format!("|{}\n", "---|".repeat(row.len())));
        }
    }
    text
}
