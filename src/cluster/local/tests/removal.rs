//! Folders of a cluster that are removed while it runs.

use std::fs;

use super::bench::Bench;
use crate::status::TaskState;

/// Goal: a cluster still starts executors after any of its folders was removed, and the folders are where they were.
/// Method: between executors each folder is removed, from the innermost to the work folder itself.
#[test]
fn folders_that_are_removed_are_made_again() {
    let bench = Bench::with("removed", "local-cluster[1,1,512]", |config| {
        let work_dir = config.work_dir.join("work");
        config.work_dir(work_dir)
    });
    let work_dir = bench.folder.0.join("work");
    let sandboxes = work_dir.join("sandboxes");
    let framework = sandboxes.join(&bench.framework_id);
    let first = bench.run("first", &["true"]);
    bench.update("first", TaskState::Finished);
    let agent = framework.join(&first.agent_id);
    let removals = [
        ("agent", &agent),
        ("framework", &framework),
        ("sandboxes", &sandboxes),
        ("work", &work_dir),
    ];
    for (name, removed) in removals {
        fs::remove_dir_all(removed).unwrap();
        bench.run(name, &["echo", name]);
        bench.update(name, TaskState::Finished);
        let output = fs::read_to_string(agent.join(name).join("stdout")).unwrap();
        assert_eq!(output, format!("{name}\n"));
    }
}

/// Goal: a folder of sandboxes that was removed is made again in the work folder of the start, even if that was
/// renamed. Method: the work folder is renamed, another one takes its place, and the sandboxes are removed from the
/// first.
#[cfg(target_os = "linux")]
#[test]
fn folders_are_made_again_in_the_work_folder_of_the_start() {
    let bench = Bench::with("removed-renamed", "local-cluster[1,1,512]", |config| {
        let work_dir = config.work_dir.join("work");
        config.work_dir(work_dir)
    });
    bench.run("first", &["true"]);
    bench.update("first", TaskState::Finished);
    let (work_dir, moved) = (bench.folder.0.join("work"), bench.folder.0.join("moved"));
    fs::rename(&work_dir, &moved).unwrap();
    fs::create_dir(&work_dir).unwrap();
    fs::remove_dir_all(moved.join("sandboxes")).unwrap();
    let offer = bench.run("second", &["echo", "second"]);
    bench.update("second", TaskState::Finished);
    let agent = moved.join("sandboxes").join(&bench.framework_id).join(&offer.agent_id);
    assert_eq!(fs::read_to_string(agent.join("second/stdout")).unwrap(), "second\n");
    assert_eq!(fs::read_dir(&work_dir).unwrap().count(), 0);
}
