//! Tests of settings: precedence of their sources, and rejection of invalid ones.

use crate::support::{Folder, finish, small};

/// Goal: a flag overrides `--conf`, which overrides the file, which overrides the default; unknown keys are named once.
/// Method: one setting in each source, printed by an executor.
#[test]
fn layers_count_in_order() {
    let folder = Folder::new();
    let file = "spark.executor.memory 21m\nspark.executor.cores=2\nspark.app.name: from-file\n\
                spark.executorEnv.A file\nspark.executorEnv.B file\nspark.executorEnv.C file\n\
                spark.mesos.executor.memoryOverhead 0\nspark.ui.port 4040\n\
                other.tool 1\n";
    let path = folder.write("spark.conf", file);
    let path = path.to_str().unwrap();
    let script = "echo {{EXECUTOR_ID}} $OFFERMILL_MEMORY_MB $OFFERMILL_CORES $A $B $C";
    let ended = finish(
        &folder,
        &[
            "run",
            "--master",
            "local-cluster[1,4,1024]",
            "--num-executors",
            "1",
            "--until-finished",
            "--properties-file",
            path,
            "--conf",
            "spark.executor.memory=22m",
            "--conf",
            "spark.executorEnv.B=conf",
            "--conf",
            "spark.executorEnv.C=conf",
            "--conf",
            "spark.ui.port=1",
            "-c",
            "spark.x=1",
            "-c",
            "spark.executor.core=1",
            "--executor-memory",
            "23m",
            "--env",
            "C=flag",
            "--",
            "sh",
            "-c",
            script,
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let output = folder.outputs().concat();
    let words: Vec<&str> = output.split_whitespace().collect();
    assert!(words[0].starts_with("from-file-"), "{output}");
    assert_eq!(words[1..], ["23", "2", "file", "conf", "flag"]);
    assert_eq!(
        ended.errors,
        "offermill: ignored, as they mean nothing here: spark.ui.port, other.tool, spark.x, \
         spark.executor.core (is spark.executor.cores meant?)\n"
    );
}

/// Invalid settings, with their messages.
const BAD: &[(&[&str], &str)] = &[
    (&["--master", "yarn"], "--master is \"yarn\", but must be local, local[*]"),
    (
        &["--executor-memory", "12q"],
        "--executor-memory is \"12q\", but must be a whole number and one of b, k, m",
    ),
    (&["--memory-overhead", "1.5g"], "--memory-overhead is \"1.5g\", but must be"),
    (
        &["--executor-cores", "0"],
        "--executor-cores is \"0\", but must be a number of cores above 0",
    ),
    (&["--total-executor-cores", "-1"], "--total-executor-cores is \"-1\", but must be"),
    (
        &["--executor-cores", "2", "--total-executor-cores", "1"],
        "--total-executor-cores is \"1\", but must be at least the 2 cores of one executor",
    ),
    (
        &["-c", "spark.cores.max=1", "-c", "spark.executor.cores=2"],
        "spark.cores.max (--conf) is \"1\", but must be at least the 2 cores of one executor",
    ),
    (
        &["--num-executors", "many"],
        "--num-executors is \"many\", but must be a whole number from 0",
    ),
    (
        &["--num-executors", "0", "--until-finished"],
        "--num-executors is \"0\", but must be at least 1, as",
    ),
    (
        &["--until-finished"],
        "--until-finished needs to know how many executors there are to be: give --num",
    ),
    (&["--constraints", "zone"], "--constraints: bad constraint: `zone` has no ':'"),
    (
        &["--constraints", "zone:east"],
        "--constraints is \"zone:east\", but must be met by some agent of",
    ),
    (&["--agent-attributes", "zone"], "--agent-attributes is \"zone\", but must be NAME:VALUE"),
    (
        &["--shutdown-timeout", "soon"],
        "--shutdown-timeout is \"soon\", but must be a whole number and one of us, ms",
    ),
    (
        &["--exclude-after", "0"],
        "--exclude-after is \"0\", but must be a whole number from 1 to 255",
    ),
    (&["--exclude-for", "0s"], "--exclude-for is \"0s\", but must be more than 0, or forever"),
    (&["--max-executor-failures", "0"], "--max-executor-failures is \"0\", but must be"),
    (&["--placement", "best"], "--placement is \"best\", but must be round-robin or consolidate"),
    (&["--name", "a/b"], "--name is \"a/b\", but must be 1 to 190 bytes without '/'"),
    (&["--env", "X"], "--env is \"X\", but must be NAME=VALUE"),
    (&["--conf", "x"], "--conf is \"x\", but must be KEY=VALUE"),
    (&["--num-executors", "0"], "--num-executors is \"0\", but must be at least 1, as nothing"),
    (
        &["--executor-memory", "999999g"],
        "--executor-memory is \"999999g\" (1023998976 MiB), which with 0 MiB of overhead makes",
    ),
    (
        &["-c", "offermill.placment=x"],
        "offermill.placment (--conf) is not a setting; is offermill.placement meant?",
    ),
    (
        &["-c", "spork.executor.memory=1g"],
        "spork.executor.memory (--conf) is not a setting; is spark.executor.memory meant?",
    ),
    (&["-c", "memory=1g"], "memory (--conf) is not a setting; see --help"),
    (
        &["-c", "spark.blockManager.port=80"],
        "spark.blockManager.port (--conf) is \"80\", but must be a whole number from 1024",
    ),
    (
        &["-c", "spark.mesos.rejectOfferDuration=9999d"],
        "spark.mesos.rejectOfferDuration (--conf) is \"9999d\", but must be at most 365d",
    ),
    (
        &["--properties-file", "/nowhere/x"],
        "--properties-file is \"/nowhere/x\", but must be a file",
    ),
    (
        &["--work-dir", "/dev/null"],
        "--work-dir is \"/dev/null\", but must be a folder in which sandboxes can be created",
    ),
    (&["--bad-flag"], "unexpected argument '--bad-flag'"),
];

/// Goal: an invalid setting is rejected in a sentence with its name, its value and the allowed values; nothing is
/// started and nothing is left on disk. Method: one setting of each kind.
#[test]
fn bad_settings_are_refused() {
    for (flags, sentence) in BAD {
        let folder = Folder::new();
        let all = ["run", "--executor-memory", "64m", "--memory-overhead", "0"];
        let ended = finish(&folder, &[&all[..], flags, &["--", "true"]].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(sentence), "{flags:?}: {}", ended.errors);
        assert_eq!(ended.output, "", "{flags:?}");
        assert!(!folder.0.join("sandboxes").exists(), "{flags:?}");
    }
}

/// Goal: an executor that fits on no agent is rejected before the start, with the numbers. Method: too much memory and
/// too many cores.
#[test]
fn executors_that_fit_nowhere_are_refused() {
    let folder = Folder::new();
    let master = ["run", "--master", "local-cluster[3,2,1024]"];
    let ended = finish(&folder, &[&master[..], &["--", "true"]].concat());
    let sentence = "--executor-memory is 1024 MiB, which with 384 MiB of overhead makes 1408 MiB, \
                    but an agent of \
                    local-cluster[3,2,1024] has 1024 MiB: so it must be at most 640m";
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains(sentence), "{}", ended.errors);
    let fitting = ["--executor-memory", "640m", "--num-executors", "1", "--until-finished"];
    let ended = finish(&folder, &[&master[..], &fitting, &["--", "true"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let ended = finish(
        &folder,
        &[&master[..], &fitting, &["--executor-cores", "3", "--", "true"]].concat(),
    );
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.errors.contains("--executor-cores is \"3\", but must be at most 2"),
        "{}",
        ended.errors
    );
}

/// Goal: a command that can't be executed is rejected before the start. Method: one that doesn't exist, a file without
/// permission, a folder, and none; then a relative path that is valid in the current folder and not in the sandbox.
#[test]
fn commands_are_looked_up() {
    let folder = Folder::new();
    folder.write("plain.txt", "");
    for (command, why) in [
        ("no-such-command", "no such file in PATH"),
        ("./no-such-file", "No such file or directory"),
        ("./plain.txt", "it has no permission to be executed"),
        ("/", "this is a folder"),
    ] {
        let ended = finish(&folder, &small(&[], &[command]));
        let sentence = format!(
            "the command is {command:?}, but must be a program that can be executed ({why}"
        );
        assert_eq!(ended.code, Some(2));
        assert!(ended.errors.contains(&sentence), "{}", ended.errors);
    }
    assert_eq!(finish(&folder, &small(&[], &[])).code, Some(2));
    std::os::unix::fs::symlink("/bin/echo", folder.0.join("here")).unwrap();
    let ended = finish(
        &folder,
        &small(&["--num-executors", "1", "--until-finished"], &["./here", "hello"]),
    );
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(folder.outputs(), ["hello\n"]);
}

/// Goal: all errors are reported together. Method: four errors.
#[test]
fn mistakes_are_collected() {
    let folder = Folder::new();
    let flags = ["--executor-memory", "x", "--placement", "y", "--exclude-for", "z"];
    let ended = finish(&folder, &[&["run"], &flags[..], &["--", "no-such-command"]].concat());
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.errors.lines().count(), 4, "{}", ended.errors);
}
