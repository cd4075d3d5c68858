//! Finds the sandbox of an executor in a work folder: `sandboxes/<run>/<agent>/<executor>/`.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use offermill::private_files::PrivateFolder;

use crate::model::executor::is_short_for;
use crate::output::sentence::list;
use crate::text::format::{count, shortened};

/// The sandbox of the executor with this name; or of the one of whose name it is a short form, in the latest run that
/// has such a one.
///
/// # Errors
/// With a sentence if there is none, or several.
pub(super) fn find_sandbox(
    work_dir: &Path,
    run: Option<&str>,
    executor: &str,
) -> Result<PrivateFolder, String> {
    let sandboxes = open_sandboxes(work_dir)?;
    let unreadable =
        |error: io::Error| format!("{} can't be read: {error}", sandboxes.path().display());
    let mut runs = sandboxes.names().map_err(unreadable)?;
    runs.sort_by_key(|run| Reverse(age_key(run)));
    if let Some(run) = run
        && !runs.iter().any(|known| known == run)
    {
        let known = match runs.is_empty() {
            true => "no run is there".to_owned(),
            false => format!("there are {}", list(&runs)),
        };
        let at = sandboxes.path().display();
        return Err(format!("there is no run {:?} in {at}: {known}", shortened(run)));
    }
    runs.retain(|known| run.is_none_or(|run| known == run));
    // Whole names are unique among all runs.
    let matches: [fn(&str, &str) -> bool; 2] = [|text, name| name == text, is_short_for];
    for is_it in matches {
        for run in &runs {
            let Ok(run) = sandboxes.existing_subfolder(run) else { continue };
            match &executors(&run, |name| is_it(executor, name))[..] {
                [] => {}
                [(agent, name)] => {
                    let agent = run.existing_subfolder(agent);
                    let sandbox = agent.and_then(|agent| agent.existing_subfolder(name));
                    return sandbox.map_err(|error| format!("{name} can't be read: {error}"));
                }
                [(_, first), (_, second), ..] => {
                    let (executor, at) = (shortened(executor), run.path().display());
                    return Err(format!("{executor:?} may be {first} or {second}, both in {at}"));
                }
            }
        }
    }
    Err(not_found(&sandboxes, &runs, executor))
}

/// The folder of all runs' sandboxes.
fn open_sandboxes(work_dir: &Path) -> Result<PrivateFolder, String> {
    let work = PrivateFolder::open_existing(work_dir);
    work.and_then(|work| work.existing_subfolder("sandboxes")).map_err(|error| {
        let at = work_dir.display();
        match error.kind() {
            io::ErrorKind::NotFound => format!(
                "no run has its sandboxes in {at}: give the run's --work-dir (executors on Mesos have theirs on \
                 their agents)"
            ),
            _ => format!("the sandboxes in {at} can't be read: {error}"),
        }
    })
}

/// The agents and names of a run's executors for which `is_it` returns true.
fn executors(run: &PrivateFolder, is_it: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for agent in run.names().unwrap_or_default() {
        // Not a folder, or removed meanwhile.
        let Ok(folder) = run.existing_subfolder(&agent) else { continue };
        let names = folder.names().unwrap_or_default().into_iter().filter(|name| is_it(name));
        found.extend(names.map(|name| (agent.clone(), name)));
    }
    found.sort_unstable();
    found
}

/// What sorts runs by their start: their ids are `local-<milliseconds since 1970>-<process>`.
fn age_key(run: &str) -> (u64, String) {
    let start = run.split('-').nth(1).and_then(|start| start.parse().ok());
    (start.unwrap_or(0), run.to_owned())
}

fn not_found(sandboxes: &PrivateFolder, runs: &[String], executor: &str) -> String {
    let latest = runs.iter().find_map(|run| sandboxes.existing_subfolder(run).ok());
    let mut names: Vec<String> =
        latest.iter().flat_map(|run| executors(run, |_| true)).map(|(_, name)| name).collect();
    names.sort_unstable();
    let known = match names.is_empty() {
        true => String::new(),
        false => format!("; the latest one has {}", list(&names)),
    };
    let executor = shortened(executor);
    let at = sandboxes.path().display();
    let runs = count(runs.len() as u64, "run");
    format!("no executor {executor:?} in the sandboxes of {runs} in {at}{known}")
}
