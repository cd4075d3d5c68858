//! The rules for the sources that a machine can check: sizes, layers, circles of imports, names.

#![allow(clippy::unwrap_used, clippy::panic)]

mod circles;
mod modules;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use modules::{Import, Modules};

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
    for folder in
        ["src", "loom-tests", "benches", "tests", "examples", "fuzz/src", "fuzz/fuzz_targets"]
    {
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
            let table = ["//! |", "/// |"].iter().any(|row| line.trim_start().starts_with(row));
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
            if !starts || code.ends_with([';', '}']) {
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

/// The library's rooms, from the ground up: each may import only from those before it.
const LAYERS: [&str; 23] = [
    "error",
    "private_files",
    "pem_files",
    "http_server",
    "backoff",
    "time",
    "ids",
    "status",
    "resources",
    "limits",
    "foreign_text",
    "offer",
    "constraint",
    "config",
    "sync",
    "kernel",
    "allocation",
    "launch",
    "spark",
    "engine",
    "mesos_v1",
    "cluster",
    "lib",
];

/// The roots of the two crates in `src`.
const ROOTS: [&str; 2] = ["src/lib.rs", "src/bin/offermill/main.rs"];

/// The messages of Mesos bear the names of its protocol, and each build has a shim of `src/sync` of its own.
const NAMED_BY_OTHERS: [&str; 2] = ["src/mesos_v1/messages/", "src/sync/"];

/// The library, and the command line.
static CRATES: LazyLock<[Modules; 2]> =
    LazyLock::new(|| ROOTS.map(|root| Modules::read(Path::new(env!("CARGO_MANIFEST_DIR")), root)));

/// A file's module as a path: `src/kernel/mod.rs` is `src/kernel`.
fn module(file: &str) -> &str {
    let path = file.trim_end_matches(".rs");
    ["/mod", "/main"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

fn is_above(parent: &str, child: &str) -> bool {
    module(child).strip_prefix(module(parent)).is_some_and(|rest| rest.starts_with('/'))
}

fn list(imports: &[&Import]) -> String {
    imports
        .iter()
        .map(|Import { from, to, name }| format!("\n  {from} imports {name} of {to}"))
        .collect()
}

/// Goal: layers import downwards only. Method: the imports between the rooms of the library, held against their order.
#[test]
fn layers_import_downwards() {
    let layer = |file: &str| {
        let room =
            file.trim_start_matches("src/").split('/').next().unwrap().trim_end_matches(".rs");
        let place = LAYERS.iter().position(|layer| *layer == room);
        place.unwrap_or_else(|| panic!("{file}: '{room}' is no layer; see LAYERS"))
    };
    let imports = CRATES[0].imports();
    let up: Vec<&Import> =
        imports.iter().filter(|import| layer(&import.from) < layer(&import.to)).collect();
    assert!(up.is_empty(), "{} imports reach up:{}", up.len(), list(&up));
}

/// Goal: a file can be understood with those beneath it. Method: look for files that import each other, directly or
/// through others. A module and those within it may.
#[test]
fn files_form_no_circle() {
    let mut found = String::new();
    for modules in &*CRATES {
        let imports = modules.imports();
        let apart: Vec<&Import> = imports
            .iter()
            .filter(|Import { from, to, .. }| !is_above(from, to) && !is_above(to, from))
            .collect();
        let arrows =
            apart.iter().map(|import| (import.from.as_str(), import.to.as_str())).collect();
        for circle in circles::find(&arrows) {
            let within = |import: &&&Import| {
                circle.contains(import.from.as_str()) && circle.contains(import.to.as_str())
            };
            let imports: Vec<&Import> = apart.iter().filter(within).copied().collect();
            found += &format!("\n{} files in a circle:{}", circle.len(), list(&imports));
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Goal: a folder can be understood with those beneath it. Method: look, in each folder, for folders in it that import
/// each other, directly or through other folders.
#[test]
fn folders_form_no_circle() {
    let mut found = String::new();
    for modules in &*CRATES {
        let imports = modules.imports();
        let mut neighbours: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for Import { from, to, .. } in &imports {
            if let Some((parent, from, to)) = where_they_part(from, to) {
                neighbours.entry(parent).or_default().insert((from, to));
            }
        }
        for (parent, arrows) in &neighbours {
            for circle in circles::find(arrows) {
                let within = |import: &&Import| {
                    where_they_part(&import.from, &import.to).is_some_and(|(within, from, to)| {
                        within == *parent && circle.contains(from) && circle.contains(to)
                    })
                };
                let imports: Vec<&Import> = imports.iter().filter(within).collect();
                found +=
                    &format!("\nfolders of {parent} in a circle: {circle:?}{}", list(&imports));
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// The folder that two files share, and the folders within it in which each lies. None if one lies in it itself.
fn where_they_part<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let shared = from.split('/').zip(to.split('/')).take_while(|(from, to)| from == to);
    let start: usize = shared.map(|(part, _)| part.len() + 1).sum();
    let folder = |file: &'a str| file[start..].split_once('/').map(|(folder, _)| folder);
    Some((from[..start].trim_end_matches('/'), folder(from)?, folder(to)?))
}

/// Goal: one name, one meaning. Method: the names of all types and traits, command line and library together.
#[test]
fn no_type_name_stands_twice() {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, file) in CRATES.iter().flat_map(Modules::types) {
        if !NAMED_BY_OTHERS.iter().any(|folder| file.starts_with(folder)) {
            files.entry(name).or_default().push(file);
        }
    }
    let twice: Vec<_> = files.iter().filter(|(_, files)| files.len() > 1).collect();
    let list: String =
        twice.iter().map(|(name, files)| format!("\n  {name}: {}", files.join(", "))).collect();
    assert!(
        twice.is_empty(),
        "{} names have more meanings than one; rename the less public:{list}",
        twice.len()
    );
}

/// Goal: the front page of the documentation names only what there is. Method: each path in backticks is a file, a
/// folder or a module of `src`, or the name of a loom model or a shuttle scene; each test name is a function.
#[test]
fn the_front_page_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page: String = fs::read_to_string(root.join("src/lib.rs"))
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| format!("{line}\n"))
        .collect();
    let sources = all_sources();
    let written = |text: &str, folders: &[&str]| {
        let inside = |name: &str| folders.iter().any(|folder| name.starts_with(folder));
        sources.iter().any(|(name, source)| inside(name) && source.contains(text))
    };
    let quoted = references::quoted(&page);
    assert!(quoted.len() > 100, "the front page was not read: {} names", quoted.len());
    for word in quoted {
        let exists = if references::is_path(&word) {
            root.join(&word).exists()
                || root.join("src").join(&word).exists()
                || root.join("src").join(format!("{word}.rs")).exists()
                || written(&format!("\"{word}\""), &["loom-tests/", "tests/shuttle/"])
        } else {
            !references::is_test_name(&word)
                || written(&format!("fn {word}("), &["src/", "tests/", "loom-tests/"])
        };
        assert!(exists, "src/lib.rs names `{word}`, which isn't there");
    }
}

/// Goal: what the thread sanitizer is told to overlook is still there under that name; otherwise its false alarm comes
/// back after hours of other checks. Method: the type that each line names is defined in the module that it names.
#[test]
fn what_the_sanitizer_overlooks_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("tests/sanitizer/suppressions.txt")).unwrap();
    let paths = list.lines().filter_map(|line| {
        line.strip_prefix("race:")?.split_once("<offermill::")?.1.split_once('>').map(|it| it.0)
    });
    let paths: Vec<&str> = paths.collect();
    assert!(!paths.is_empty(), "no types were found in it");
    for path in paths {
        let (module, name) = path.rsplit_once("::").expect("a type in a module");
        let file = format!("src/{}.rs", module.replace("::", "/"));
        let source = fs::read_to_string(root.join(&file)).unwrap_or_default();
        assert!(source.contains(&format!("struct {name} {{")), "{file} doesn't define {name}");
    }
}

/// Goal: the library runs without a clock, threads or output of its own. Method: look for them in the kernel's code;
/// examples in its documentation may have them.
#[test]
fn the_kernel_has_no_clock_no_threads_and_no_output() {
    for (name, text) in all_sources().iter().filter(|(name, _)| name.starts_with("src/kernel/")) {
        let lines = text.lines().take_while(|line| *line != "mod tests {");
        let code: String = lines.filter(|line| !line.trim_start().starts_with("///")).collect();
        for banned in
            ["Instant::now", "SystemTime", "thread::spawn", "println!", "std::fs", "std::io"]
        {
            assert!(!code.contains(banned), "{name} has {banned}");
        }
    }
}
