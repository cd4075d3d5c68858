//! Tests of settings: precedence of their sources, and rejection of invalid ones.

use crate::support::{Folder, Run, finish, small};

/// Goal: a value of `--conf` that another one overrides is checked, too. Method: invalid values that a flag, a later
/// `--conf` or `--env` overrides, in a run that ends well; valid ones, and one in a file.
#[test]
fn overridden_values_are_checked() {
    let folder = Folder::new();
    folder.write("spark.conf", "spark.executor.cores=many\n=x\n=y\n");
    let flags = [
        ["--conf", "spark.executor.cores=many"],
        ["--conf", "spark.mesos.extra.cores=-1"],
        ["--conf", "spark.mesos.extra.cores=0"],
        ["--conf", "spark.executor.memory=99m"],
        ["--conf", "spark.executor.instances=0x1"],
        ["--properties-file", "spark.conf"],
        ["--num-executors", "1"],
        ["--master", "local-cluster[1,1,64]"],
    ];
    let flags = [&flags.concat()[..], &["--until-finished"]].concat();
    let ended = finish(&folder, &small(&flags, &["true"]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let overridden = "; another value overrides it";
    let lines: Vec<&str> = ended.errors.lines().collect();
    let [keyless, first, second, third] = lines[..] else { panic!("{lines:?}") };
    let told = [first, second, third].concat();
    for key in ["spark.executor.cores", "spark.mesos.extra.cores", "spark.executor.instances"] {
        assert!(told.contains(&format!("offermill: {key} (--conf) is \"")), "{told}");
    }
    assert_eq!(told.matches(overridden).count(), 3, "{told}");
    assert_eq!(keyless, "offermill: ignored: line 3 of \"spark.conf\" has a value without a key");
}

/// Goal: a run may begin without executors if a command can add some. Method: with and without a control socket.
#[test]
fn a_run_may_begin_without_executors() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[1,1,64]", "--num-executors", "0"];
    let ended = finish(&folder, &small(&flags, &["true"]));
    assert_eq!(ended.code, Some(2));
    let told = "--num-executors is \"0\", but must be at least 1, as nothing could raise it later; --control accepts \
                commands that do";
    assert!(ended.errors.contains(told), "{}", ended.errors);
    let control = ["--control", "socket", "--json"];
    let ended =
        finish(&folder, &small(&[&flags[..], &control, &["--until-finished"]].concat(), &["true"]));
    assert!(ended.errors.contains("at least 1 with --until-finished"), "{}", ended.errors);
    let mut run = Run::start(&folder, &small(&[&flags[..], &control].concat(), &["sleep", "1000"]));
    run.event_named("started");
    let answer = finish(&folder, &["ctl", "socket", "limit", "1"]);
    assert_eq!((answer.code, &*answer.output), (Some(0), "limit 0 -> 1\n"), "{}", answer.errors);
    run.event_named("running");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: messages name what is wrong and nothing else. Method: a number that can't be read beside `--until-finished`; a
/// name that is too long for a message; ports out of range.
#[test]
fn messages_are_about_the_mistake() {
    let folder = Folder::new();
    let problems = |flags: &[&str]| finish(&folder, &small(flags, &["true"])).errors;
    let errors = problems(&["--num-executors", "x", "--until-finished"]);
    assert!(errors.contains("--num-executors is \"x\"") && errors.lines().count() == 1, "{errors}");
    let errors = problems(&["--total-executor-cores", "x", "--until-finished"]);
    assert!(!errors.contains("--until-finished"), "{errors}");
    for name in ["x".repeat(5000), "é ".repeat(5000)] {
        let errors = problems(&["--name", &name]);
        assert!(errors.contains("…\", but must be"), "{errors}");
        assert!(errors.len() < 1000, "{} bytes", errors.len());
    }
    for flags in [
        "--master mesos://h:99999",
        "--master http://h:0",
        "--master mesos://h --spark-driver spark://a@h:99999 -c spark.mesos.executor.home=/x",
        "--conf spark.blockManager.port=99999",
        "--conf spark.driver.port=99999",
    ] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let errors = finish(&folder, &[&["run"], &flags[..]].concat()).errors;
        assert!(errors.contains(" to 65535"), "{errors}");
    }
}

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
        "--num-executors is \"0\", but must be at least 1 with --until-finished",
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
    (&["--env", "X"], "offermill: --env must be NAME=VALUE, or the NAME of a variable that is set"),
    (&["--env", "A=1", "--env", "X"], "--env number 2 of 2 must be NAME=VALUE, or the NAME"),
    (&["--env", "PATH=x"], "(no such file in the PATH that is given to executors)"),
    (&["--shutdown-timeout", "2.5s"], "for a fraction take a smaller unit: 2500ms, not 2.5s"),
    (&["--executor-memory", "2.5g"], "for a fraction take a smaller unit: 2560m, not 2.5g"),
    (
        &["--master", "spark://h:7077"],
        "--master is \"spark://h:7077\", but must be local, local[*]",
    ),
    (&["--conf", "x"], "--conf is \"x\", but must be KEY=VALUE"),
    (
        &["--conf", "spark.ssl.keyPassword: hunter3"],
        "--conf is \"spark.ssl.keyPassword…\", but must be KEY=VALUE",
    ),
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
        "spark.blockManager.port (--conf) is \"80\", but must be 0 or a whole number from 1024 to 65535",
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
    (&["--shutdown-timeout", "-1s"], "--shutdown-timeout is \"-1s\", but must not be negative"),
    (&["--exclude-for", "soon"], ", or forever"),
    (&["--exclude-after", "300"], "must be a whole number from 1 to 255, or never"),
    (
        &["--master", "mesos://127.0.0.1:1", "-c", "offermill.unreachableTimeout=soon"],
        "unreachableTimeout (--conf) is \"soon\", but must be a whole number and one of us, ms, s",
    ),
    (&["-c", "spark.blockManager.port=80"], "must be 0 or a whole number from 1024 to 65535"),
    (&["-c", "spark.executor.failuresValidityInterval=soon"], ", or forever"),
    (&["-c", "spark.dynamicAllocation.cachedExecutorIdleTimeout=soon"], ", or never"),
];

/// Goal: a word that `--print-config` shows for a setting is accepted as its value. Method: the settings that have such
/// a word.
#[test]
fn words_that_are_shown_are_accepted() {
    let folder = Folder::new();
    for (key, word) in [
        ("spark.dynamicAllocation.cachedExecutorIdleTimeout", "never"),
        ("spark.dynamicAllocation.shuffleTracking.timeout", "never"),
        ("spark.executor.failuresValidityInterval", "forever"),
    ] {
        let shown = finish(&folder, &["run", "--print-config", "--", "true"]);
        let line = shown.output.lines().find(|line| line.contains(key)).unwrap_or_default();
        assert!(line.contains(word), "{line:?}");
        let setting = format!("{key}={word}");
        let ended = finish(&folder, &["run", "--print-config", "-c", &setting, "--", "true"]);
        assert_eq!(ended.code, Some(0), "{key}: {}", ended.errors);
    }
}

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

/// Goal: a socket that is given twice is said to be this run's own, not another process's. Method: the same path twice.
#[test]
fn a_socket_that_is_given_twice_is_told() {
    let flags = ["--num-executors", "1", "--control", "twice", "--control", "twice"];
    let ended = finish(&Folder::new(), &small(&flags, &["true"]));
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    let told = "--control is \"twice\", but is given twice: this run listens there already";
    assert!(ended.errors.contains(told), "{}", ended.errors);
}

/// Goal: a command without `--` before it is told where it belongs; a wrong flag isn't told that. Method: the messages.
#[test]
fn a_command_without_its_separator_gets_a_tip() {
    let folder = Folder::new();
    let tip = "tip: the executors' command comes after `--`";
    for (words, has_tip) in [
        (&["run", "--num-executors", "1", "sleep", "60"][..], true),
        (&["run", "--bad-flag"], false),
        (&["run", "x", "--", "true"], false),
    ] {
        let ended = finish(&folder, words);
        assert_eq!(ended.code, Some(2));
        assert_eq!(ended.errors.contains(tip), has_tip, "{words:?}: {}", ended.errors);
    }
}

/// Goal: a text that looks like a placeholder and stays as it is gets a remark. Method: one with a slip, one that
/// nobody knows, a port without a port, and two that are no names.
#[test]
fn unknown_placeholders_are_remarked_on() {
    let folder = Folder::new();
    let command = ["echo", "{{EXECUTORID}} {{X}}", "{{PORT}}{{HOSTNAME}}", "{{}} {{a b}}"];
    let ended = finish(&folder, &small(&["--num-executors", "1", "--until-finished"], &command));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let stays = "in the command stays as it is: it";
    let told = [
        format!(
            "offermill: {{{{EXECUTORID}}}} {stays} is no placeholder; is {{{{EXECUTOR_ID}}}} meant?"
        ),
        format!("offermill: {{{{PORT}}}} {stays} has no value without a fixed port"),
        format!("offermill: {{{{X}}}} {stays} is no placeholder"),
    ];
    assert_eq!(ended.errors.lines().collect::<Vec<_>>(), told);
    assert!(folder.outputs()[0].starts_with("{{EXECUTORID}} {{X}} {{PORT}}"));
}

/// Goal: messages about a properties file name the line. Method: a bad value, an unknown setting of Offermill, and a
/// value without a key.
#[test]
fn properties_files_are_quoted_by_line() {
    let folder = Folder::new();
    folder.write("p", "# a\n=v\nspark.executor.cores x\n\nofferm\\\n  ill.bla 7\n");
    let ended = finish(&folder, &["run", "--properties-file", "p", "--", "true"]);
    assert_eq!(ended.code, Some(2));
    for told in [
        "ignored: line 2 of \"p\" has a value without a key",
        "spark.executor.cores (p, line 3) is \"x\", but must be",
        "offermill.bla (p, line 5) is not a setting",
    ] {
        assert!(ended.errors.contains(told), "{}", ended.errors);
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
