//! Tests of queues that are changed while their tasks run: `offermill ctl SOCKET queues`.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually::eventually;
use crate::support::{Folder, Run, offermill};

/// Far longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of tasks of one core and 16 MiB on two agents of four cores, which a test changes.
struct Changed {
    folder: Folder,
    run: Run,
}

/// A task that writes that it starts, waits until the file with its gate's name is there, and writes that it ends.
fn gated(id: &str, gate: &str, queue: &str) -> Value {
    let command = format!(
        "echo '+{id}' >>\"$FOLDER/moments\"; \
         while ! [ -e \"$FOLDER/{gate}\" ]; do sleep 0.02; done; \
         echo '-{id}' >>\"$FOLDER/moments\""
    );
    json!({ "id": id, "command": command, "queue": queue })
}

/// Such tasks, `PREFIX-N` for each number. Each has a gate of its own, `gate-N`.
fn gated_each(prefix: &str, numbers: Range<u32>, queue: &str) -> Vec<Value> {
    numbers.map(|n| gated(&format!("{prefix}-{n}"), &format!("gate-{n}"), queue)).collect()
}

/// Such tasks, `PREFIX-N` for each number. All have one gate, `gate-rest`.
fn gated_together(prefix: &str, numbers: Range<u32>, queue: &str) -> Vec<Value> {
    numbers.map(|n| gated(&format!("{prefix}-{n}"), "gate-rest", queue)).collect()
}

impl Changed {
    fn start(tasks: &[Value], flags: &[&str]) -> Changed {
        let folder = Folder::new();
        let lines: String = tasks.iter().map(|task| format!("{task}\n")).collect();
        folder.write("tasks", &lines);
        let variable = format!("FOLDER={}", folder.0.display());
        let own = ["run", "--master", "local-cluster[2,4,256]", "--task-memory", "16m"];
        let more = ["--tasks", "tasks", "--control", "control", "--json", "--env", &variable];
        let mut run = Run::start(&folder, &[&own[..], &more, flags].concat());
        run.event_named("registered");
        Changed { folder, run }
    }

    /// Sends a command about queues.
    fn ctl(&self, words: &[&str]) -> (Option<i32>, String) {
        self.folder.ctl(&[&["queues"], words].concat())
    }

    #[track_caller]
    fn change(&self, bounds: &str) -> String {
        let (code, text) = self.ctl(&[bounds]);
        assert_eq!(code, Some(0), "{text}");
        text
    }

    /// Waits until this many tasks of a queue run, and this many wait.
    #[track_caller]
    fn wait(&self, queue: &str, running: u64, waiting: u64) {
        eventually(PATIENCE, &format!("{running} run and {waiting} wait"), || {
            let queue = self.folder.queue(queue);
            let is_so = queue["running"] == running && queue["waiting"] == waiting;
            if is_so { Ok(()) } else { Err(queue.to_string()) }
        });
    }

    fn open(&self, gate: &str) {
        self.folder.write(gate, "");
    }

    fn moments(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.0.join("moments")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until tasks have started, by their own account: `PREFIX-N` for each number.
    #[track_caller]
    fn wait_started(&self, prefix: &str, numbers: Range<u32>) {
        eventually(PATIENCE, prefix, || {
            let moments = self.moments();
            let all = numbers.clone().all(|n| moments.contains(&format!("+{prefix}-{n}")));
            if all { Ok(()) } else { Err(format!("{moments:?}")) }
        });
    }

    /// Waits for the end, in which all tasks have succeeded. Returns the moments.
    fn end(self) -> Vec<String> {
        let moments: PathBuf = self.folder.0.join("moments");
        let ended = self.run.end();
        assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
        self.folder.assert_deserted();
        fs::read_to_string(moments).unwrap().lines().map(str::to_owned).collect()
    }
}

/// How many of these tasks run at a time at most, from this moment on.
fn most_at_once(moments: &[String], prefix: &str) -> i32 {
    let (mut count, mut most) = (0, 0);
    for moment in moments.iter().filter(|moment| moment[1..].starts_with(prefix)) {
        count += if moment.starts_with('+') { 1 } else { -1 };
        most = most.max(count);
    }
    most
}

/// Goal: a higher maximum starts what waits, a lower one ends nothing and holds what waits until less runs, with hosts
/// and without. Method: eight tasks of a queue with room for one, each of which waits for a gate; then room for three,
/// then for one again, while the three run; the gates are opened one by one. What is listed, and what tasks say of
/// their starts and ends.
#[test]
fn maxima_are_changed_while_tasks_run() {
    for hosts in [&[][..], &["--task-hosts"]] {
        let tasks = [gated_each("first", 0..3, "q"), gated_together("rest", 0..5, "q")].concat();
        let flags = [&["--queues", "q:max-cores=1;other"], hosts].concat();
        let mut changed = Changed::start(&tasks, &flags);
        changed.wait("q", 1, 7);
        assert_eq!(changed.change("q:max-cores=3"), "queue q: max-cores 1 -> 3\n");
        let event = changed.run.event_named("queues");
        let change = json!({ "queue": "q", "bound": "max-cores", "from": "1", "to": "3" });
        assert_eq!((&event["changes"], &event["why"]), (&json!([change]), &json!("by command")));
        changed.wait("q", 3, 5);
        changed.wait_started("first", 0..3);

        let reply = changed.change("q:max-cores=1");
        let more = "q takes more than that now: none of its tasks starts until it takes less";
        assert_eq!(reply, format!("queue q: max-cores 3 -> 1; {more}\n"));
        let queue = changed.folder.queue("q");
        assert_eq!((&queue["cores"], &queue["max_cores"]), (&json!(3.0), &json!(1.0)));
        let (_, listing) = changed.ctl(&[]);
        let line = listing.lines().find(|line| line.starts_with("q ")).unwrap();
        let expected = "q           3 of at most 1 core; 48 MiB; 3 tasks running, 5 waiting";
        assert_eq!(line, expected, "{listing}");
        for (gate, running, waiting) in [("gate-0", 2, 5), ("gate-1", 1, 5), ("gate-2", 1, 4)] {
            changed.open(gate);
            changed.wait("q", running, waiting);
        }
        changed.open("gate-rest");
        let moments = changed.end();
        assert_eq!(moments.len(), 16, "{moments:?}");
        assert_eq!((most_at_once(&moments, "first"), most_at_once(&moments, "rest")), (3, 1));
    }
}

/// Goal: a guarantee that is taken away starts what it has held up, and one that is given is kept from then on. Method:
/// four cores for all, of which three are kept for a queue whose task waits for one of the flood; then none, then two,
/// while the flood has three tasks more.
#[test]
fn guarantees_are_changed_while_tasks_run() {
    let mut tasks = gated_each("flood", 0..4, "default");
    let mut few = gated("few", "gate-few", "few");
    few["after"] = json!("flood-0");
    tasks.push(few);
    tasks.extend(gated_together("flood", 4..7, "default"));
    let flags = ["--total-executor-cores", "4", "--queues", "few:guaranteed-cores=3"];
    let changed = Changed::start(&tasks, &flags);
    changed.wait("default", 1, 6);
    // With all of the cores the last of the queue would wait for the flood, and this for the queue.
    let (code, text) = changed.ctl(&["few:guaranteed-cores=4"]);
    let why =
        "tasks, line 1: it takes 1 core; of --total-executor-cores, 4, 4 are kept for tasks that";
    assert!(code == Some(1) && text.contains(why), "{text}");
    let reply = changed.change("few:guaranteed-cores=none");
    assert_eq!(reply, "queue few: guaranteed-cores 3 -> none\n");
    changed.wait("default", 4, 3);
    changed.wait_started("flood", 0..4);
    changed.change("few:guaranteed-cores=2,max-mem=32m;default:max-mem=1g");
    // Two of the four run on. What is kept for the other queue, the rest of the flood can't have.
    changed.open("gate-1");
    changed.open("gate-2");
    changed.wait("default", 2, 3);
    changed.open("gate-3");
    changed.wait("default", 2, 2);
    // Once its last task has started, nothing is kept for the queue.
    changed.open("gate-0");
    changed.wait("few", 1, 0);
    changed.wait("default", 3, 0);
    changed.open("gate-few");
    changed.open("gate-rest");
    assert_eq!(changed.end().len(), 16);
}

/// Goal: a change that is wrong, or with which a task or a host would never start, is refused with a sentence, and
/// nothing of it is done, not even what is right beside. Method: one of each mistake, after a right one in the same
/// command; the listing before and after; a task that has succeeded and a queue that only it was in don't count.
#[test]
fn wrong_changes_change_nothing() {
    let mut large = gated("large", "gate", "q");
    large["cores"] = json!(2);
    let mut done = gated("done", "tasks", "over");
    done["cores"] = json!(3);
    let tasks = [done, large, gated("small", "gate", "q"), gated("own", "gate", "default")];
    let flags = ["--task-hosts", "--total-executor-cores", "6", "--queues", "over;q:max-cores=4;r"];
    let changed = Changed::start(&tasks, &flags);
    changed.wait("q", 2, 0);
    changed.wait("default", 1, 0);
    changed.wait("over", 0, 0);
    let before = changed.ctl(&[]);
    assert_eq!(before.0, Some(0));
    for (wrong, why) in [
        ("s:max-cores=1", "\"s\" is no queue of this run: default, over, q, r"),
        ("q", "\"q\" changes nothing; expected NAME:BOUND=VALUE with max-cores, max-mem, "),
        ("q:max-core=1", "\"max-core\" of the queue q is no bound; expected max-cores,"),
        (
            "q:max-cores=0",
            "max-cores of the queue q is \"0\", but must be a number of cores above 0",
        ),
        ("q:max-mem=0", "max-mem of the queue q is \"0\", but must be at least 1 MiB"),
        ("q:max-cores=1", "tasks, line 2: it takes 2 cores; the queue q has at most 1"),
        ("q:max-mem=8m", "tasks, line 2: it takes 16 MiB; the queue q has at most 8 MiB"),
        (
            "default:max-cores=1",
            "tasks, line 4: it with its host takes 1.1 cores; the queue default",
        ),
        ("default:max-cores=0.05", "a host takes 0.1 cores; the queue default has at most 0.05"),
        (
            "q:guaranteed-cores=5",
            "guarantee of cores of the queue q is \"5\", but must be at most 4",
        ),
        (
            "q:guaranteed-cores=3",
            "guaranteed cores of all queues is \"7\", but must be at most 6, ",
        ),
        ("q:guaranteed-mem=1g", "guaranteed-mem needs --total-task-memory, of which it is"),
        ("q:max-cores=3;q:max-mem=1g", "the queue \"q\" stands there twice"),
        ("q:guaranteed-cores=2", "the guarantees leave no room for a host of 0.1 cores"),
    ] {
        let right = if why.starts_with('"') { "r:max-cores=2" } else { "r:guaranteed-cores=4" };
        let (code, text) = changed.ctl(&[&format!("{right};{wrong}")]);
        assert_eq!(code, Some(1), "{wrong}: {text}");
        assert!(text.starts_with(&format!("offermill: {why}")), "{wrong}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(changed.ctl(&[]), before, "{wrong}");
    }
    // A task that is over never starts again, and none is in the other queue.
    assert_eq!(changed.change("over:max-cores=1; r:max-cores=0.1").lines().count(), 1);
    assert_eq!(changed.change("over:max-cores=1"), "the queues are as before\n");
    changed.open("gate");
    assert_eq!(changed.end().len(), 8);
}

/// Goal: runs without queues say so. Method: tasks without queues, and executors.
#[test]
fn runs_without_queues_have_none_to_change() {
    let changed = Changed::start(&[gated("a", "gate", "default")], &[]);
    for words in [&[][..], &["json"], &["default:max-cores=1"]] {
        let (code, text) = changed.ctl(words);
        let why = "offermill: this run has no queues; expected --queues at its start";
        assert!(code == Some(1) && text.starts_with(why), "{text}");
    }
    changed.open("gate");
    assert_eq!(changed.end().len(), 2);
    let folder = Folder::new();
    let (run, _) = crate::controlling::start(&folder, &["--num-executors", "1"]);
    let ended = offermill(&folder.0, &["ctl", "control", "queues"]).output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(text.starts_with("offermill: this run has no queues; expected --queues"), "{text}");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}
