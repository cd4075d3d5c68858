//! The house rules that a machine can check, over the files as they are.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Files that own atomics or the shim that names them. (`loom-tests` play with words of their own.)
const ATOMICS_ALLOWED: [&str; 2] = ["src/sync/", "loom-tests/"];

const COLUMNS_MAX: usize = 120;
const LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

fn sources(root: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in [
        "src",
        "counting-tests",
        "loom-tests",
        "benches",
        "tests",
        "examples",
        "fuzz/src",
        "fuzz/fuzz_targets",
    ] {
        sources(&root.join(folder), &mut paths);
    }
    assert!(paths.len() > 50, "looked in the wrong place");
    let named = paths.into_iter().map(|path| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        (name, fs::read_to_string(&path).unwrap())
    });
    named.collect()
}

/// Goal: a file stays one idea. Method: count its lines up to its unit tests.
#[test]
fn files_are_short() {
    for (name, text) in all_sources() {
        let lines = text.lines().take_while(|line| *line != "mod tests {").count();
        assert!(lines <= LINES_MAX, "{name} has {lines} lines; {LINES_MAX} is the most");
    }
}

/// Goal: a line can be read without scrolling. Method: count characters; rows of tables may be
/// longer.
#[test]
fn lines_are_short() {
    for (name, text) in all_sources() {
        for (line, number) in text.lines().zip(1..) {
            let table = line.trim_start().starts_with("//! |");
            let columns = line.chars().count();
            assert!(table || columns <= COLUMNS_MAX, "{name}:{number} has {columns} columns");
        }
    }
}

/// Goal: a function fits a screen. Method: from a line that starts one to the brace that closes at its indentation.
#[test]
fn functions_fit_a_screen() {
    for (name, text) in all_sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let indent = line.len() - code.len();
            let starts =
                code.split(' ').take(4).any(|word| word == "fn") && !code.starts_with("//");
            if !starts || code.ends_with(';') {
                continue;
            }
            let end = lines[start..]
                .iter()
                .position(|line| line.starts_with(&" ".repeat(indent)) && &line[indent..] == "}");
            let length = end.map_or(0, |end| end + 1);
            assert!(length <= FUNCTION_LINES_MAX, "{name}:{}: {length} lines", start + 1);
        }
    }
}

/// Goal: only the kernel shares memory without locks, and only through the shim that loom replaces. Method: look for
/// the standard library's atomics elsewhere, and for the shim outside the kernel.
#[test]
fn atomics_stay_in_the_kernel() {
    for (name, text) in all_sources().iter().filter(|(name, _)| name.starts_with("src/")) {
        let own = ATOMICS_ALLOWED.iter().any(|allowed| name.starts_with(allowed));
        assert!(own || !text.contains("sync::atomic"), "{name} uses atomics past the shim");
        let past = ["arc_swap::", "dashmap::"].iter().find(|path| text.contains(**path));
        assert!(own || past.is_none(), "{name} uses {past:?} past the shim");
        let kernel = name.starts_with("src/kernel/") || own;
        assert!(kernel || !text.contains("crate::sync::"), "{name} uses the kernel's shim");
    }
}

/// Goal: layers import downwards only. Method: what each layer must not name.
#[test]
fn layers_import_downwards() {
    let above = [
        ("src/resources/", &["crate::kernel", "crate::engine", "crate::cluster"][..]),
        ("src/allocation/", &["crate::kernel", "crate::engine", "crate::cluster", "crate::launch"]),
        ("src/constraint/", &["crate::kernel", "crate::engine", "crate::cluster"]),
        ("src/config/", &["crate::kernel", "crate::engine", "crate::cluster", "crate::launch"]),
        ("src/kernel/", &["crate::engine", "crate::cluster", "crate::launch"]),
        ("src/launch/", &["crate::engine", "crate::cluster", "crate::kernel"]),
        ("src/engine/", &["crate::cluster"]),
    ];
    for (name, text) in all_sources() {
        for (_, forbidden) in above.iter().filter(|(layer, _)| name.starts_with(layer)) {
            for path in *forbidden {
                assert!(!text.contains(path), "{name} reaches up to {path}");
            }
        }
    }
}

/// Goal: the library runs without a clock, threads or output of its own. Method: look for them in the kernel.
#[test]
fn the_kernel_has_no_clock_no_threads_and_no_output() {
    for (name, text) in all_sources().iter().filter(|(name, _)| name.starts_with("src/kernel/")) {
        let code: String = text.lines().take_while(|line| *line != "mod tests {").collect();
        for banned in
            ["Instant::now", "SystemTime", "thread::spawn", "println!", "std::fs", "std::io"]
        {
            assert!(!code.contains(banned), "{name} has {banned}");
        }
    }
}
