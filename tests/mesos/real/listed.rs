//! The list of scenes that don't run on a standalone master.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The scenes of this folder.
fn scenes() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mesos/real");
    let mut scenes = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line == "#[ignore = \"needs a real Mesos\"]" {
                let name = lines.next().and_then(|line| line.strip_prefix("fn "));
                let (name, _) = name.and_then(|line| line.split_once('(')).unwrap();
                let module = path.file_stem().unwrap().to_str().unwrap();
                scenes.push(format!("{module}::{name}"));
            }
        }
    }
    scenes
}

/// Goal: each scene runs on a standalone master as well, or a reason is written why it doesn't. Method: the rows of the
/// table in `tests/standalone/README.md`, which `.ci/standalone` leaves out, against the scenes of this folder.
#[test]
fn scenes_that_do_not_run_on_a_standalone_master_have_reasons() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standalone/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split("` | ");
        let name = cells.next().filter(|name| name.contains("::"))?;
        Some((name.to_owned(), cells.next()?.to_owned()))
    };
    let rows: Vec<(String, String)> = readme.lines().filter_map(row).collect();
    let listed: BTreeMap<&String, &String> = rows.iter().map(|(name, why)| (name, why)).collect();
    assert_eq!(listed.len(), rows.len(), "a scene is listed twice");
    let scenes = scenes();
    assert!(scenes.len() > 25 && listed.len() < scenes.len() / 2, "{} scenes", scenes.len());
    for (name, why) in listed {
        assert!(scenes.contains(name), "{name} is listed, but there is no such scene");
        assert!(why.split(' ').count() >= 5, "{name} needs a reason: {why:?}");
    }
}
