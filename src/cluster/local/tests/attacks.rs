//! What another user does to a work folder, and that it redirects nothing. The tests play both users. Those in which
//! the owner of a folder matters are in `as_root`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use super::bench::{Bench, Folder, launch, refusal};
use crate::cluster::local::LocalConfig;
use crate::private_files::effective_uid;
use crate::status::TaskState;

const PRECIOUS: &str = "precious";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Goal: a work folder, or a folder of sandboxes, that others can write or that is replaced by a link is refused with a
/// sentence that names the folder, and nothing is created in it. Method: each of them.
#[test]
fn folders_that_others_can_write_are_refused() {
    let folder = Folder::new("open");
    let ours = |name: &str| {
        let path = folder.0.join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    for bits in [0o777, 0o1777] {
        let open = ours(&format!("{bits:o}"));
        fs::set_permissions(&open, Permissions::from_mode(bits)).unwrap();
        let why = format!("{}: other users may write it: its mode is {bits:04o}", open.display());
        assert!(refusal(&open).contains(&why), "{}", refusal(&open));
        assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    }
    let inner = ours("inner");
    let sandboxes = ours("inner/sandboxes");
    fs::set_permissions(&sandboxes, Permissions::from_mode(0o777)).unwrap();
    let why = format!("{}: other users may write it", sandboxes.display());
    assert!(refusal(&inner).contains(&why), "{}", refusal(&inner));
    assert!(refusal(&inner).contains("chmod go-w"), "{}", refusal(&inner));

    let target = ours("target");
    let linked = ours("linked");
    symlink(&target, linked.join("sandboxes")).unwrap();
    assert!(refusal(&linked).contains("it is a link or a file, not a folder"));
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
