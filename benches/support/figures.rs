//! Benches that Criterion doesn't run: what they are asked for, and where their tables go.

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
    let Some(extent) = asked(theme, env::args().skip(1)) else { return };
    let table = table(extent);
    println!("{table}");
    if extent == Extent::Full {
        write(theme, &table);
    }
}

/// What the arguments ask of a theme: nothing, if they have a filter and it is about others.
fn asked(theme: &str, mut arguments: impl Iterator<Item = String>) -> Option<Extent> {
    let (mut bench, mut test) = (false, false);
    let mut filters = Vec::new();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--list" => return None,
            "--bench" => bench = true,
            "--test" => test = true,
            option if FLAGS.split(' ').any(|known| known == option) || option.contains('=') => {}
            option if option.starts_with('-') => drop(arguments.next()),
            _ => filters.push(argument),
        }
    }
    let about_this = |filter: &String| theme.contains(&**filter) || filter.starts_with(theme);
    // Without `--bench` it is `cargo test` that asks.
    let extent = if bench && !test { Extent::Full } else { Extent::Test };
    (filters.is_empty() || filters.iter().any(about_this)).then_some(extent)
}

/// Keeps a theme's table as `figures/THEME.md` in the target directory.
pub(crate) fn write(theme: &str, table: &str) {
    let program = env::current_exe().expect("a program's path");
    // TARGET/release/deps/PROGRAM
    let target = program.ancestors().nth(3).expect("a target directory");
    let folder = target.join("figures");
    fs::create_dir_all(&folder).expect("a folder for figures");
    fs::write(folder.join(format!("{theme}.md")), table).expect("a file of figures");
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
