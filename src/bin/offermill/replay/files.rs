//! Finds the scenario files and the files of expected answers that the arguments name.

use std::fs;
use std::path::{Path, PathBuf};

use crate::text::format::count;

/// A scenario file, and the file of expected answers.
#[derive(Debug)]
pub(super) struct ReplayInput {
    pub(super) scenario: PathBuf,
    pub(super) expected: Option<PathBuf>,
}

/// Returns the scenarios in order, each with its expected answers.
///
/// # Errors
/// With a sentence about arguments that don't fit together, or a folder that can't be read.
pub(super) fn inputs(
    scenarios: &[PathBuf],
    expected: &[PathBuf],
) -> Result<Vec<ReplayInput>, String> {
    let alone = |scenario| ReplayInput { scenario, expected: None };
    let mut inputs = Vec::new();
    // One folder of answers can serve all scenarios.
    let shared = expected.first().filter(|path| expected.len() == 1 && path.is_dir());
    if !expected.is_empty() && shared.is_none() && expected.len() != scenarios.len() {
        return Err(format!(
            "--expect is given {}, expected {}: one for each FILE",
            count(expected.len() as u64, "time"),
            scenarios.len()
        ));
    }
    for (number, path) in scenarios.iter().enumerate() {
        let expected = shared.or_else(|| expected.get(number));
        let files = if path.is_dir() { list_folder(path)? } else { vec![path.clone()] };
        match expected {
            None => inputs.extend(files.into_iter().map(alone)),
            Some(answers) if answers.is_dir() => {
                for scenario in files {
                    let Some(name) = scenario.file_name() else {
                        let scenario = scenario.display();
                        return Err(format!("{scenario} has no file name to look up in --expect"));
                    };
                    let expected = Some(answers.join(name));
                    inputs.push(ReplayInput { scenario, expected });
                }
            }
            Some(answers) if path.is_dir() => {
                let answers = answers.display();
                let path = path.display();
                return Err(format!(
                    "--expect {answers} is not a folder, expected one since {path} is a folder"
                ));
            }
            Some(answers) => {
                inputs
                    .push(ReplayInput { scenario: path.clone(), expected: Some(answers.clone()) });
            }
        }
    }
    Ok(inputs)
}

/// Returns the scenarios in a folder, sorted by name.
fn list_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
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
