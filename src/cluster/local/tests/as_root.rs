//! Work folders that belong to another user. The tests give folders away, for which they must run as root: `cargo test`
//! leaves them out.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

use super::bench::{Folder, refusal};
use crate::private_files::effective_uid;

/// A user with no files on this machine.
const ATTACKER: u32 = 64_002;

/// Goal: a work folder, or a folder of sandboxes, that another user made, can write as a member of a group, or replaced
/// by a link is refused with a sentence that names it, and nothing is created in it. Method: each of them; the link
/// also with a slash behind it, and behind a link of this user.
#[test]
#[ignore = "needs root"]
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

    let open = ours("of-a-group");
    chown(&open, None, Some(ATTACKER)).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o770)).unwrap();
    let why = refusal(&open);
    assert!(why.contains("other users may write it: its mode is 0770"), "{why}");
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);

    let inner = ours("inner");
    let sandboxes = ours("inner/sandboxes");
    chown(&sandboxes, Some(ATTACKER), Some(ATTACKER)).unwrap();
    let why = format!("{}: {belongs}", sandboxes.display());
    assert!(refusal(&inner).contains(&why), "{}", refusal(&inner));

    let target = ours("target");
    let link = folder.0.join("link");
    symlink(&target, &link).unwrap();
    lchown(&link, Some(ATTACKER), Some(ATTACKER)).unwrap();
    let own = folder.0.join("own");
    symlink(&link, &own).unwrap();
    for path in [link.clone(), folder.0.join("link/"), own] {
        let why = refusal(&path);
        assert!(why.contains("it is a link of another user, whose id is 64002"), "{why}");
        assert!(why.contains(&link.display().to_string()), "{why}");
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}
