//! Tests of the queues of tasks: `offermill run --tasks FILE --queues QUEUES`.

use std::collections::HashMap;
use std::fs;

use crate::support::{Ended, Folder, finish};

/// Four cores on two agents, and tasks of one core and 16 MiB.
const RUN: [&str; 7] =
    ["run", "--master", "local-cluster[2,2,64]", "--task-memory", "16m", "--tasks", "tasks"];

/// Tasks find in `MOMENTS` where they write when they start and end.
fn run_in_queues(folder: &Folder, tasks: &str, more: &[&str]) -> Ended {
    folder.write("tasks", tasks);
    let moments = format!("MOMENTS={}", folder.0.join("moments").display());
    finish(folder, &[&RUN[..], &["--env", &moments], more].concat())
}

/// A line of a task.
fn task(id: &str, command: &str, queue: &str, after: &[&str]) -> String {
    let command = format!("echo '+{id}' >>\"$MOMENTS\"; {command}; echo '-{id}' >>\"$MOMENTS\"");
    let task = serde_json::json!({ "id": id, "command": command, "queue": queue, "after": after });
    format!("{task}\n")
}

/// When a task started or ended, by its own account.
struct Moment {
    id: String,
    is_start: bool,
}

/// All starts and ends in their order.
fn moments(folder: &Folder) -> Vec<Moment> {
    let text = fs::read_to_string(folder.0.join("moments")).unwrap();
    let moment = |line: &str| Moment { id: line[1..].to_owned(), is_start: line.starts_with('+') };
    text.lines().map(moment).collect()
}

/// How many tasks, whose ids begin so, are in flight after each moment.
fn in_flight(moments: &[Moment], prefix: &str) -> Vec<u32> {
    let mut count = 0;
    let change = |moment: &Moment| {
        if moment.id.starts_with(prefix) {
            count = if moment.is_start { count + 1 } else { count - 1 };
        }
        count
    };
    moments.iter().map(change).collect()
}

/// Goal: the tasks of a queue never take more than its maximum, and those of other queues behind them aren't held up.
/// Method: ten tasks of a queue with one core, then ten of a queue without bounds; the intervals of all.
#[test]
fn a_maximum_holds_over_the_whole_run() {
    let folder = Folder::new();
    let tasks: String = (0..10)
        .map(|n| task(&format!("slow-{n}"), "sleep 0.05", "slow", &[]))
        .chain((0..10).map(|n| task(&format!("other-{n}"), "sleep 0.05", "other", &[])))
        .collect();
    let ended = run_in_queues(&folder, &tasks, &["--queues", "slow:max-cores=1,max-mem=1g;other"]);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let moments = moments(&folder);
    assert_eq!(moments.len(), 40);
    assert_eq!(in_flight(&moments, "slow").iter().max(), Some(&1));
    let place = |id: &str| moments.iter().position(|moment| moment.id == id).unwrap();
    assert!(place("other-0") < place("slow-1"), "it waited for a queue that is full");
    folder.assert_deserted();
}

/// Goal: what is guaranteed to a queue is left to it while it has tasks that are yet to start, whatever floods the
/// cluster; then others use it. Method: many tasks before five that wait for each other; then four more.
#[test]
fn a_guarantee_holds_while_another_queue_floods() {
    let folder = Folder::new();
    let mut tasks: String =
        (0..24).map(|n| task(&format!("flood-{n}"), "sleep 0.1", "default", &[])).collect();
    tasks.push_str(&task("few-0", "true", "few", &[]));
    for n in 1..5 {
        let before = format!("few-{}", n - 1);
        tasks.push_str(&task(&format!("few-{n}"), "true", "few", &[&before]));
    }
    let last: Vec<String> =
        (0..4).map(|n| task(&format!("last-{n}"), "sleep 2", "default", &["few-4"])).collect();
    // The first lines have precedence: these four start together once they may.
    let tasks = last.concat() + &tasks;
    let flags = ["--total-executor-cores", "4", "--queues", "few:guaranteed-cores=1"];
    let ended = run_in_queues(&folder, &tasks, &flags);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let moments = moments(&folder);
    let place = moments.iter().position(|it| it.id == "few-4" && it.is_start).unwrap();
    let counts = in_flight(&moments, "flood");
    assert_eq!(counts[..place].iter().max(), Some(&3), "one core is kept");
    assert_eq!(in_flight(&moments, "last").iter().max(), Some(&4), "it isn't kept any more");
    folder.assert_deserted();
}

/// Goal: a file of settings can say the queues, and `--print-config` shows them. Method: a file; a run without tasks.
#[test]
fn settings_files_have_queues() {
    let folder = Folder::new();
    folder.write("settings", "offermill.queues  etl:max-cores=1; adhoc\n");
    let tasks = task("a", "true", "etl", &[]) + &task("b", "true", "adhoc", &["a"]);
    let settings = ["--properties-file", "settings"];
    let ended = run_in_queues(&folder, &tasks, &settings);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let shown = run_in_queues(&folder, &tasks, &[&settings[..], &["--print-config"]].concat());
    assert!(shown.output.contains("etl:max-cores=1; adhoc"), "{}", shown.output);
    let without = finish(&folder, &[&["run"][..], &settings, &["--", "true"]].concat());
    let why = "offermill.queues (settings, line 1): expected --executor-queue with one of them";
    assert_eq!(without.code, Some(2), "{}", without.errors);
    assert!(without.errors.contains(why), "{}", without.errors);
}

/// Goal: wrong queues are refused with one sentence before anything starts. Method: one of each mistake, in the setting
/// and in a task.
#[test]
fn wrong_queues_are_refused() {
    let folder = Folder::new();
    let cases: HashMap<&[&str], &str> = HashMap::from([
        (&["--queues", "q:max-core=1"][..], "--queues: \"max-core\" of the queue q is no bound; "),
        (
            &["--queues", "q:max-cores"],
            "--queues: \"max-cores\" of the queue q must be BOUND=VALUE",
        ),
        (
            &["--queues", "q:max-cores=x"],
            "--queues: max-cores of the queue q is \"x\", but must be",
        ),
        (&["--queues", ""], "--queues: it names no queue"),
        (&["--queues", "q;q"], "--queues: the queue \"q\" stands there twice"),
        (&["--queues", "q r"], "--queues: queue name is \"q r\", but must be 1 to 64 letters"),
        (
            &["--queues", "q:guaranteed-cores=1"],
            "--queues: guaranteed-cores needs --total-executor-cores",
        ),
        (
            &["-c", "offermill.queues=q;q"],
            "offermill.queues (--conf): the queue \"q\" stands there",
        ),
        (
            &["--queues", "r"],
            "tasks, line 1: it is of the queue \"q\", which is none of --queues: default, r",
        ),
        (
            &["--queues", "q:max-mem=8m"],
            "tasks, line 1: it takes 16 MiB; the queue q has at most 8 MiB",
        ),
        (&[], "tasks, line 1: it is of the queue \"q\", but there are no --queues"),
        (
            &["--queues", "q:guaranteed-mem=1g"],
            "--queues: guaranteed-mem needs --total-task-memory, of which it is",
        ),
        (
            &["--queues", "q:guaranteed-mem=1g", "--total-task-memory", "1000m"],
            "guaranteed memory of all queues is \"1024 MiB\", but must be at most 1000 MiB, the memory",
        ),
        (
            &["--queues", "q", "--total-task-memory", "x"],
            "--total-task-memory is \"x\", but must be",
        ),
        (
            &["--queues", "q", "--total-task-memory", "0"],
            "--total-task-memory is \"0\", but must be at least 1 MiB",
        ),
        (
            &["--queues", "q", "--total-task-memory", "8m"],
            "tasks, line 1: it takes 16 MiB; --total-task-memory is 8 MiB",
        ),
        (
            &["--queues", "q", "--total-task-memory", "40m", "--task-hosts"],
            "tasks, line 1: it with its host takes 48 MiB; --total-task-memory is 40 MiB",
        ),
        (
            &["--queues", "q;default:max-cores=0.05", "--task-hosts"],
            "--queues: a host takes 0.1 cores; the queue default has at most 0.05",
        ),
    ]);
    for (flags, expected) in cases {
        let ended = run_in_queues(&folder, &task("a", "true", "q", &[]), flags);
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(expected), "{flags:?}: {}", ended.errors);
        let sentences = ended.errors.lines().filter(|line| line.starts_with("offermill: ")).count();
        assert_eq!(sentences, 1, "{flags:?}: {}", ended.errors);
        assert!(!folder.0.join("tasks.results").exists(), "{flags:?}");
    }
}

/// Goal: a task that can never start is refused, with queues and without. Method: the second of two takes more cores
/// than all may have.
#[test]
fn a_task_of_more_cores_than_all_may_have_is_refused() {
    let folder = Folder::new();
    let larger = |cores| task("a", "true", "default", &[]).replacen('{', cores, 1);
    let tasks = larger("{\"cores\":0.1,") + &larger("{\"cores\":1,").replace("\"a\"", "\"b\"");
    for queues in [&[][..], &["--queues", "q"]] {
        let flags = [&["--total-executor-cores", "0.5"], queues].concat();
        let ended = run_in_queues(&folder, &tasks, &flags);
        assert_eq!(ended.code, Some(2), "{}", ended.errors);
        let expected = "tasks, line 2: it takes 1 core; --total-executor-cores is 0.5";
        assert!(ended.errors.contains(expected), "{}", ended.errors);
    }
}

/// Goal: a task that would wait for what is kept for a task that waits for it is refused. Method: two
/// cores for all, both of which are kept for the queue of the second task.
#[test]
fn tasks_that_wait_for_each_other_by_a_guarantee_are_refused() {
    let folder = Folder::new();
    let tasks = task("a", "true", "default", &[]) + &task("b", "true", "q", &["a"]);
    let flags = ["--total-executor-cores", "2", "--queues", "q:guaranteed-cores=2"];
    let ended = run_in_queues(&folder, &tasks, &flags);
    let why =
        "tasks, line 1: it takes 1 core; of --total-executor-cores, 2, 2 are kept for tasks that";
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    assert!(ended.errors.contains(why), "{}", ended.errors);
}

/// Goal: memory is kept for a queue as cores are. Method: 64 MiB for all tasks, of which 32 are kept for a queue whose
/// tasks wait for each other, while others of 16 MiB flood the run.
#[test]
fn memory_is_guaranteed() {
    let folder = Folder::new();
    let mut tasks: String =
        (0..12).map(|n| task(&format!("flood-{n}"), "sleep 0.1", "default", &[])).collect();
    tasks.push_str(&task("few-0", "true", "few", &[]));
    for n in 1..4 {
        let before = format!("few-{}", n - 1);
        tasks.push_str(&task(&format!("few-{n}"), "true", "few", &[&before]));
    }
    let flags = ["--queues", "few:guaranteed-mem=32m", "--total-task-memory", "64m"];
    let ended = run_in_queues(&folder, &tasks, &flags);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let moments = moments(&folder);
    let place = moments.iter().position(|it| it.id == "few-3" && it.is_start).unwrap();
    assert_eq!(in_flight(&moments, "flood")[..place].iter().max(), Some(&2), "half is kept");
    folder.assert_deserted();
}

/// Goal: queues bound tasks in hosts as they do others; hosts count in the default queue. Method: ten tasks of a queue
/// with one core in hosts, beside ten of another one, and of the default queue, which has room for two hosts and a
/// task.
#[test]
fn queues_bound_tasks_in_hosts() {
    let folder = Folder::new();
    let tasks: String = (0..10)
        .flat_map(|n| [("slow", "slow"), ("other", "other"), ("own", "default")].map(|it| (n, it)))
        .map(|(n, (id, queue))| {
            let line = task(&format!("{id}-{n}"), "sleep 0.05", queue, &[]);
            line.replacen('{', "{\"cores\":0.5,", 1)
        })
        .collect();
    let queues = "slow:max-cores=0.5;other;default:max-cores=0.7";
    let ended = run_in_queues(&folder, &tasks, &["--task-hosts", "--queues", queues]);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let moments = moments(&folder);
    assert_eq!(moments.len(), 60);
    for queue in ["slow", "own"] {
        assert_eq!(in_flight(&moments, queue).iter().max(), Some(&1), "{queue}");
    }
    folder.assert_deserted();
}

/// Goal: a queue of hosts that isn't there, or has no room for them, is refused. Method: one of each mistake.
#[test]
fn wrong_queues_of_hosts_are_refused() {
    let folder = Folder::new();
    for (flags, expected) in [
        (
            &["--queues", "q;h:max-cores=0.05", "--task-hosts", "--host-queue", "h"][..],
            "--queues: a host takes 0.1 cores; the queue h has at most 0.05",
        ),
        (
            &["--queues", "q:max-cores=1", "--task-hosts", "--host-queue", "q"],
            "tasks, line 1: it with its host takes 1.1 cores; the queue q has at most 1",
        ),
        (
            &["--queues", "q", "--task-hosts", "--host-queue", "r"],
            "--host-queue is none of the queues: default, q",
        ),
        (
            &["--task-hosts", "--host-queue", "q"],
            "--host-queue names one of --queues, which aren't given",
        ),
        (
            &["--queues", "q", "--host-queue", "q"],
            "--host-queue is for hosts: it needs --task-hosts",
        ),
    ] {
        let ended = run_in_queues(&folder, &task("a", "true", "q", &[]), flags);
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(expected), "{flags:?}: {}", ended.errors);
    }
}

/// Goal: hosts count in the queue that is named for them, not in the default one. Method: hosts in a queue of their own
/// with room for one, and tasks of the default queue, which has room for one task alone; two agents.
#[test]
fn hosts_have_a_queue() {
    let folder = Folder::new();
    let tasks: String =
        (0..6).map(|n| task(&format!("t-{n}"), "sleep 0.05", "default", &[])).collect();
    let queues = "hosts:max-cores=0.1,max-mem=32m;default:max-cores=1";
    let flags = ["--task-hosts", "--queues", queues, "--host-queue", "hosts", "--json"];
    let ended = run_in_queues(&folder, &tasks, &flags);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let moments = moments(&folder);
    assert_eq!((moments.len(), in_flight(&moments, "t").into_iter().max()), (12, Some(1)));
    let hosts: std::collections::HashSet<String> = ended
        .events()
        .iter()
        .filter(|event| event["event"] == "task")
        .map(|event| event["host"].to_string())
        .collect();
    assert_eq!(hosts.len(), 1, "there is room for one host: {hosts:?}");
    folder.assert_deserted();
}

/// Goal: a task that its queue never has room for beside its host is refused, with its line. Method: a task of one core
/// in the default queue, which has one.
#[test]
fn tasks_need_room_beside_their_host() {
    let folder = Folder::new();
    let flags = ["--task-hosts", "--queues", "default:max-cores=1"];
    let ended = run_in_queues(&folder, &task("a", "true", "default", &[]), &flags);
    let why = "tasks, line 1: it with its host takes 1.1 cores; the queue default has at most 1";
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    assert!(ended.errors.contains(why), "{}", ended.errors);
}
