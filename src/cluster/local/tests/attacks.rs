//! What another user does to a work folder, and that it redirects nothing. The tests play both users, and change the
//! owner of a folder where that matters, for which they must run as root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::bench::{Bench, Folder, launch};
use crate::cluster::local::{LocalCluster, LocalConfig};
use crate::engine::cluster_manager::{ClusterManager, Event, Events};
use crate::private_files::effective_uid;
use crate::status::TaskState;

/// A user with no files on this machine.
const ATTACKER: u32 = 64_002;
const PRECIOUS: &str = "precious";

struct Deaf;

impl Events for Deaf {
    fn send(&self, _event: Event) {}
}

/// Why a cluster doesn't start with this work folder.
fn refusal(work_dir: &Path) -> String {
    let config = LocalConfig::new("local-cluster[1,1,512]".parse().unwrap()).work_dir(work_dir);
    let cluster = LocalCluster::new(config).unwrap();
    let error = cluster.start(Arc::new(Deaf)).unwrap_err();
    assert!(error.is_setting(), "{error}");
    error.to_string()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Goal: a work folder, or a folder of sandboxes, that another user made, can write, or replaced by a link is refused
/// with a sentence, and nothing is created in it. Method: each of them.
#[test]
fn folders_of_others_are_refused() {
    assert_eq!(effective_uid(), 0, "this test must run as root, to give folders to another user");
    let folder = Folder::new("attacked");
    let ours = |name: &str| {
        let path = folder.0.join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let foreign = ours("foreign");
    chown(&foreign, Some(ATTACKER), Some(ATTACKER)).unwrap();
    let belongs = "it belongs to another user, whose id is 64002";
    assert!(refusal(&foreign).contains(belongs), "{}", refusal(&foreign));

    for (name, bits) in [("open", 0o777), ("sticky", 0o1777), ("of-a-group", 0o770)] {
        let open = ours(name);
        chown(&open, None, Some(ATTACKER)).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(bits)).unwrap();
        let why = refusal(&open);
        assert!(
            why.contains(&format!("other users may write it: its mode is {bits:04o}")),
            "{why}"
        );
        assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    }

    let inner = ours("inner");
    let sandboxes = inner.join("sandboxes");
    fs::create_dir(&sandboxes).unwrap();
    chown(&sandboxes, Some(ATTACKER), Some(ATTACKER)).unwrap();
    assert!(refusal(&inner).contains(belongs), "{}", refusal(&inner));

    let target = ours("target");
    let linked = ours("linked");
    symlink(&target, linked.join("sandboxes")).unwrap();
    assert!(refusal(&linked).contains("it is a link or a file, not a folder"));
    let link = folder.0.join("link");
    symlink(&target, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(ATTACKER), Some(ATTACKER)).unwrap();
    assert!(refusal(&link).contains("it is a link, and it belongs to another user"));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

/// Goal: other users can neither read nor write what is made. Method: the modes of all folders and files after an
/// executor has run in a new work folder, and the name of the default one.
#[test]
fn what_is_made_is_private() {
    let bench = Bench::with("private", "local-cluster[1,1,512]", |config| {
        let work_dir = config.work_dir.join("made");
        config.work_dir(work_dir)
    });
    let offer = bench.run("one", &["true"]);
    bench.update("one", TaskState::Finished);
    let mut folder = bench.folder.0.join("made");
    for name in ["sandboxes", &bench.framework_id, &offer.agent_id, "one"] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        folder.push(name);
    }
    assert_eq!(mode(&folder), 0o700);
    assert_eq!((mode(&folder.join("stdout")), mode(&folder.join("stderr"))), (0o600, 0o600));
    let default = LocalConfig::new("local".parse().unwrap()).work_dir;
    assert!(default.ends_with(format!("offermill-{}", effective_uid())), "{}", default.display());
}

/// Goal: whoever can rename the work folder during a run redirects neither an executor nor its output. Method: after
/// the first executor has started, the folder is renamed, and a tree takes its place in which the second executor's
/// output file is a link to a file of the user's.
#[test]
fn a_work_folder_that_is_renamed_is_still_used() {
    let bench = Bench::new("renamed", "local-cluster[1,2,512]");
    let work_dir = bench.folder.0.clone();
    let moved = Folder(work_dir.with_extension("moved"));
    let aside = Folder::new("renamed-aside");
    let precious = aside.0.join("file");
    fs::write(&precious, PRECIOUS).unwrap();
    let offer = bench.run_until_ready("first", "echo ready; sleep 1000");

    fs::rename(&work_dir, &moved.0).unwrap();
    let agent = Path::new("sandboxes").join(&bench.framework_id).join(&offer.agent_id);
    let planted = work_dir.join(&agent).join("second");
    fs::create_dir_all(&planted).unwrap();
    symlink(&precious, planted.join("stdout")).unwrap();
    fs::write(planted.join("marker"), "").unwrap();

    bench.run("second", &["sh", "-c", "pwd -P; ls"]);
    bench.update("second", TaskState::Finished);
    assert_eq!(fs::read_to_string(&precious).unwrap(), PRECIOUS);
    let real = moved.0.join(&agent).join("second");
    let output = fs::read_to_string(real.join("stdout")).unwrap();
    assert_eq!(output, format!("{}\nstderr\nstdout\n", real.display()));
}

/// Goal: output files that exist are not opened, whatever they are. Method: in the sandbox of a future executor, a link
/// to a file, a pipe, and a file; the executors fail with a sentence.
#[test]
fn output_files_that_exist_are_not_opened() {
    let bench = Bench::new("planted", "local-cluster[1,3,512]");
    let offer = bench.offer();
    let precious = bench.folder.0.join("file");
    fs::write(&precious, PRECIOUS).unwrap();
    let names = ["link", "pipe", "file"];
    let outputs = names.map(|name| {
        let sandbox = bench.sandbox(&offer, name);
        fs::create_dir_all(&sandbox).unwrap();
        sandbox.join("stdout")
    });
    symlink(&precious, &outputs[0]).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&outputs[1]).status().unwrap().success());
    fs::write(&outputs[2], PRECIOUS).unwrap();
    let launches = names.map(|name| launch(name, &["echo", "overwritten"]));
    bench.accept(&offer, &launches, Duration::ZERO);
    for name in names {
        let failed = bench.update(name, TaskState::Failed);
        assert!(failed.message.contains("File exists"), "{}", failed.message);
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), PRECIOUS);
    assert_eq!(fs::read_to_string(&outputs[2]).unwrap(), PRECIOUS);
}
