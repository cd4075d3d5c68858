//! Which files are meant.

use std::fs;
use std::path::{Path, PathBuf};

/// A scenario, and the answers that are expected.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) scenario: PathBuf,
    pub(super) expected: Option<PathBuf>,
}

/// The scenarios in order, each with its expectation. `Err` says what is wrong.
pub(super) fn pairs(scenarios: &[PathBuf], expected: &[PathBuf]) -> Result<Vec<Pair>, String> {
    let alone = |scenario| Pair { scenario, expected: None };
    let mut pairs = Vec::new();
    // One folder of answers will do for all scenarios.
    let shared = expected.first().filter(|path| expected.len() == 1 && path.is_dir());
    if !expected.is_empty() && shared.is_none() && expected.len() != scenarios.len() {
        let (wanted, given) = (scenarios.len(), expected.len());
        return Err(format!(
            "--expect is given {given} times, expected {wanted}: one for each FILE"
        ));
    }
    for (number, path) in scenarios.iter().enumerate() {
        let expected = shared.or_else(|| expected.get(number));
        let files = if path.is_dir() { listed(path)? } else { vec![path.clone()] };
        match expected {
            None => pairs.extend(files.into_iter().map(alone)),
            Some(answers) if answers.is_dir() => {
                for scenario in files {
                    let Some(name) = scenario.file_name() else {
                        let scenario = scenario.display();
                        return Err(format!("{scenario} has no name to look for in --expect"));
                    };
                    let expected = Some(answers.join(name));
                    pairs.push(Pair { scenario, expected });
                }
            }
            Some(answers) if path.is_dir() => {
                let (path, answers) = (path.display(), answers.display());
                return Err(format!("--expect {answers} is no folder, expected one, as {path} is"));
            }
            Some(answers) => {
                pairs.push(Pair { scenario: path.clone(), expected: Some(answers.clone()) });
            }
        }
    }
    Ok(pairs)
}

/// The scenarios in a folder.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let complain = |why: &str| format!("{}: {why}, expected a folder of *.jsonl", folder.display());
    let entries = fs::read_dir(folder).map_err(|error| complain(&error.to_string()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: Result<Vec<PathBuf>, _> = paths.collect();
    let mut files: Vec<PathBuf> = paths
        .map_err(|error| complain(&error.to_string()))?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(complain("no scenario in it")),
        false => Ok(files),
    }
}
