//! Tests of the framework id file.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;

fn folder() -> PathBuf {
    let name =
        format!("offermill-state_file-{}-{:?}", std::process::id(), std::thread::current().id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn executor(id: &str, agent: &str) -> RecoveredExecutor {
    RecoveredExecutor {
        executor: id.to_owned(),
        agent_id: agent.to_owned(),
        hostname: "host %0".to_owned(),
        resources: ExecutorResources {
            cores: MilliCpus::from_millis(1_500),
            memory: Mebibytes::new(1408),
            gpus: Gpus::new(1),
            port: id.len().is_multiple_of(2).then_some(31_000),
        },
        binding: Binding::Immediate,
        queue: None,
        queue_name: (!id.len().is_multiple_of(3)).then(|| format!("q{}", id.len())),
    }
}

/// An operation on a state file.
#[derive(Clone, Debug)]
enum Step {
    Identify(u8),
    Launch(Vec<(u8, String)>),
    End(u8, bool),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0_u8..3).prop_map(Step::Identify),
        4 => prop::collection::vec((0_u8..20, any::<String>()), 1..4).prop_map(Step::Launch),
        4 => (0_u8..20, any::<bool>()).prop_map(|(id, finished)| Step::End(id, finished)),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(
            FileFailurePersistence::Direct("tests/mesos/regressions/state_file.txt")
        )),
        ..ProptestConfig::default()
    })]

    /// Goal: the file is read back as it was written, whatever texts the cluster sends. Method: random histories with
    /// reopenings, compared with a plain map.
    #[test]
    fn what_is_written_is_read_back(steps in steps()) {
        let folder = folder();
        let path = folder.join("framework");
        let _none = std::fs::remove_file(&path);
        let mut state = FrameworkState::default();
        let mut state_file = StateFile::open(&path).unwrap();
        for step in steps.into_iter().chain([Step::Reopen]) {
            match step {
                Step::Identify(id) => {
                    let id = format!("id {id}");
                    state_file.identify(&id).unwrap();
                    if state.framework_id.as_ref() != Some(&id) {
                        let (executors, finished) = (BTreeMap::new(), state.finished);
                        state = FrameworkState { framework_id: Some(id), executors, finished };
                    }
                }
                Step::Launch(list) => {
                    let list: Vec<_> = list.iter().map(|(id, agent)| executor(&format!("e/{id}"), agent)).collect();
                    state_file.launch(&list).unwrap();
                    state.executors.extend(list.into_iter().map(|it| (it.executor.clone(), it)));
                }
                Step::End(id, finished) => {
                    let id = format!("e/{id}");
                    state_file.end(&id, finished).unwrap();
                    let known = state.executors.remove(&id).is_some();
                    state.finished += u64::from(known && finished);
                }
                Step::Reopen => {
                    drop(state_file);
                    state_file = StateFile::open(&path).unwrap();
                }
            }
            prop_assert_eq!(state_file.state(), &state);
        }
        drop(state_file);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Goal: no text makes the parser panic, and a truncated file is read up to its last complete line. Method: random
    /// bytes, and a valid file cut at each position.
    #[test]
    fn broken_files_are_errors_or_shorter(noise in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..400) {
        let _any = read(&noise);
        let mut text = format!("{HEAD}\nid f\n");
        let executors = [executor("a", "S0"), executor("bb", ""), executor("c", "S 1")];
        executors.iter().for_each(|it| write_line(&mut text, it));
        text.push_str("- a finished\n");
        let cut = cut.min(text.len());
        match read(&text.as_bytes()[..cut]) {
            Ok(state) => prop_assert!(state.executors.len() <= 3),
            Err(_) => prop_assert!(cut > 0 && cut <= HEAD.len(), "only a file without a whole line isn't ours"),
        }
    }
}

/// Goal: only one program can use the file at a time. Method: open it twice.
#[test]
fn two_programs_dont_share_it() {
    let folder = folder();
    let path = folder.join("framework");
    let first = StateFile::open(&path).unwrap();
    let error = StateFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("another process uses it"), "{error}");
    drop(first);
    StateFile::open(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Goal: a file of another format is rejected and not modified. Method: one such file.
#[test]
fn other_files_are_left_alone() {
    let folder = folder();
    let path = folder.join("notes");
    std::fs::write(&path, "buy milk\n").unwrap();
    let error = StateFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("it is no framework id file"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "buy milk\n");
    std::fs::write(&path, format!("{HEAD}\n+ a b\n")).unwrap();
    let error = StateFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("line 2 can't be read: \"+ a b\""), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Goal: a path that isn't a regular file is rejected at once, with an error that names it, and not modified. Method:
/// pipes and a folder in the place of each file that is opened, and a device; then a link to a file, which is accepted.
#[test]
fn only_files_are_opened() {
    let folder = folder();
    let path = folder.join("framework");
    for ending in ["", ".lock"] {
        let place = sibling(&path, ending);
        for make in ["mkfifo", "mkdir"] {
            assert!(std::process::Command::new(make).arg(&place).status().unwrap().success());
            let (opened, answer) = std::sync::mpsc::channel();
            let tried = path.clone();
            std::thread::spawn(move || opened.send(StateFile::open(&tried).map(drop)));
            let within = Duration::from_secs(20);
            let error = answer.recv_timeout(within).expect("an answer").unwrap_err().to_string();
            let why = format!("{} is not a regular file", place.display());
            assert!(error.contains(&why), "{make} {ending}: {error}");
            assert!(!place.is_file() && place.exists());
            let _pipe = std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir(&place));
        }
    }
    let error = StateFile::open(Path::new("/dev/null")).unwrap_err().to_string();
    assert!(error.contains("/dev/null is not a regular file"), "{error}");
    let link = folder.join("link");
    StateFile::open(&path).unwrap().identify("F").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(StateFile::open(&link).unwrap().state.framework_id.as_deref(), Some("F"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Goal: other users can't have this program write to files through links, nor open its lock; a lock that is held is
/// respected, whatever its mode. Method: links in the places of the file's lock and its former temporary file; a lock
/// file that others can open, held and not; and the modes of what is made.
#[test]
fn links_are_not_followed_and_locks_are_closed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let path = folder.join("framework");
    let lock = sibling(&path, ".lock");
    let precious = folder.join("precious");
    std::fs::write(&precious, "precious").unwrap();
    symlink(&precious, sibling(&path, ".new")).unwrap();
    symlink(&precious, &lock).unwrap();
    let refusal = StateFile::open(&path).unwrap_err().to_string();
    assert!(refusal.contains("it is a link, which is not followed"), "{refusal}");
    std::fs::remove_file(&lock).unwrap();
    std::fs::write(&lock, "").unwrap();
    std::fs::set_permissions(&lock, PermissionsExt::from_mode(0o644)).unwrap();
    let held = File::open(&lock).unwrap();
    held.lock().unwrap();
    let refusal = StateFile::open(&path).unwrap_err().to_string();
    assert!(refusal.contains("another process uses it"), "{refusal}");
    drop(held);
    StateFile::open(&path).unwrap().identify("F").unwrap();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    for made in [path, lock] {
        assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o600);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

mod as_root {
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::*;

    /// Goal: files and links of other users are refused. Method: the file, its lock, and a link in the file's place,
    /// given to another user, for which the test must run as root.
    #[test]
    #[ignore = "needs root"]
    fn other_users_files_are_refused() {
        let folder = folder();
        let path = folder.join("framework");
        StateFile::open(&path).unwrap().identify("F").unwrap();
        let by_others = |made: &Path| {
            let given = lchown(made, Some(64_002), None);
            assert!(given.is_ok(), "this test must run as root, to give a file away: {given:?}");
            let error = StateFile::open(&path).unwrap_err().to_string();
            assert!(error.contains("another user, whose id is 64002"), "{error}");
            lchown(made, Some(0), None).unwrap();
        };
        by_others(&path);
        by_others(&sibling(&path, ".lock"));
        let kept = folder.join("kept");
        std::fs::rename(&path, &kept).unwrap();
        symlink(&kept, &path).unwrap();
        by_others(&path);
        chown(&kept, Some(0), None).unwrap();
        StateFile::open(&path).unwrap().identify("G").unwrap();
        assert!(path.is_symlink() && std::fs::read_to_string(&kept).unwrap().contains("id G"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Goal: a failed write is repeated as soon as writing is possible, before anything new is written. Method: the folder
/// is missing when the id changes, and comes back.
#[test]
fn what_could_not_be_written_is_not_forgotten() {
    let folder = folder().join("deeper");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("framework");
    let mut state_file = StateFile::open(&path).unwrap();
    state_file.identify("old").unwrap();
    state_file.launch(&[executor("a", "S0")]).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    state_file.identify("new").unwrap_err();
    state_file.launch(&[executor("b", "S0")]).unwrap_err();
    std::fs::create_dir_all(&folder).unwrap();
    state_file.launch(&[executor("c", "S0")]).unwrap();
    drop(state_file);
    let state = StateFile::open(&path).unwrap().state;
    assert_eq!(state.framework_id.as_deref(), Some("new"));
    assert_eq!(state.executors.into_keys().collect::<Vec<_>>(), ["c"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Goal: files of earlier versions, which say nothing of queues, are read, and a line with too many fields isn't.
/// Method: an executor without a queue, one with, and one with two.
#[test]
fn files_without_queues_are_read() {
    let text =
        format!("{HEAD}\nid f\n+ a S0 host 2000 1408 0 -\n+ b S0 host 2000 1408 0 - et%20l\n");
    let state = read(text.as_bytes()).unwrap();
    let queues: Vec<_> = state.executors.values().map(|it| it.queue_name.as_deref()).collect();
    assert_eq!(queues, [None, Some("et l")]);
    assert!(read(format!("{text}+ c S0 host 2000 1408 0 - a b\n").as_bytes()).is_err());
}
