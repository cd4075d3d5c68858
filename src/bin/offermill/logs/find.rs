//! Finds the sandbox of an executor or a task in a work folder: `sandboxes/<run>/<agent>/<executor>/`.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::Path;

use offermill::private_files::PrivateFolder;

use crate::model::executor::is_short_for;
use crate::output::sentence::list;
use crate::tasks::attempt_index::read_attempts;
use crate::text::format::{count, shortened};

/// The sandbox that a text names. First of all it is an executor's whole name, which is unique among all runs. Else
/// the latest run decides that has a task with this id, or an executor of whose name this is a short form; in a run of
/// tasks ids come first, and a number alone is always an id.
///
/// # Errors
/// With a sentence if there is none, or several.
pub(super) fn find_sandbox(
    work_dir: &Path,
    run: Option<&str>,
    text: &str,
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
    let folders = || runs.iter().filter_map(|run| sandboxes.existing_subfolder(run).ok());
    for run in folders() {
        if let Some(sandbox) = in_run(&run, text, |name| name == text)? {
            return Ok(sandbox);
        }
    }
    for run in folders() {
        let mut latest = None;
        let attempts = read_attempts(&run, |attempt| {
            if attempt.id == text {
                latest = Some(attempt.executor);
            }
        });
        let is_of_tasks = attempts.map_err(|error| {
            format!("the index of tasks in {} can't be read: {error}", run.path().display())
        })?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let sandbox = match latest {
            Some(executor) => {
                let sandbox = in_run(&run, text, |name| name == executor)?;
                Some(sandbox.ok_or_else(|| without_sandbox(&run, text, &executor))?)
            }
            None if is_of_tasks && is_number => None,
            None => in_run(&run, text, |name| is_short_for(text, name))?,
        };
        if let Some(sandbox) = sandbox {
            return Ok(sandbox);
        }
    }
    let runs: Vec<PrivateFolder> = folders().collect();
    Err(not_found(&sandboxes, &runs, text))
}

/// The sandbox of the one executor of a run for whose name `is_it` returns true; `None` if there is none.
///
/// # Errors
/// With a sentence if there are several, or if it can't be read.
fn in_run(
    run: &PrivateFolder,
    text: &str,
    is_it: impl Fn(&str) -> bool,
) -> Result<Option<PrivateFolder>, String> {
    match &executors(run, is_it)[..] {
        [] => Ok(None),
        [(agent, name)] => {
            let agent = run.existing_subfolder(agent);
            let sandbox = agent.and_then(|agent| agent.existing_subfolder(name));
            sandbox.map(Some).map_err(|error| format!("{name} can't be read: {error}"))
        }
        [(_, first), (_, second), ..] => {
            let (text, at) = (shortened(text), run.path().display());
            Err(format!("{text:?} may be {first} or {second}, both in {at}"))
        }
    }
}

/// Why a task whose attempt was placed has no sandbox.
fn without_sandbox(run: &PrivateFolder, id: &str, executor: &str) -> String {
    let at = run.path().display();
    format!(
        "task {} was placed as {executor}, which has no sandbox in {at}: it hasn't started there, or was removed",
        shortened(id)
    )
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

fn not_found(sandboxes: &PrivateFolder, runs: &[PrivateFolder], text: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let latest = runs.first();
    let is_of_tasks = latest.is_some_and(|run| {
        // An unreadable index was reported before.
        let read = read_attempts(run, |attempt| {
            if seen.insert(attempt.id.clone()) {
                ids.push(attempt.id);
            }
        });
        read.unwrap_or(false)
    });
    let mut names: Vec<String> =
        latest.iter().flat_map(|run| executors(run, |_| true)).map(|(_, name)| name).collect();
    names.sort_unstable();
    let (what, known) = match is_of_tasks {
        true => ("no task or executor", ids),
        false => ("no executor", names),
    };
    let known = match (known.is_empty(), is_of_tasks) {
        (true, _) => String::new(),
        (false, true) => format!("; in the latest one these tasks have started: {}", list(&known)),
        (false, false) => format!("; the latest one has {}", list(&known)),
    };
    let text = shortened(text);
    let at = sandboxes.path().display();
    let runs = count(runs.len() as u64, "run");
    format!("{what} {text:?} in the sandboxes of {runs} in {at}{known}")
}
