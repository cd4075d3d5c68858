//! Tests of what settings and messages show of secrets, and of the ways to give executors variables that nobody sees.

use std::os::unix::fs::PermissionsExt;

use crate::spark::run;
use crate::support::{Folder, offermill, small};

/// Secrets that no rule about names finds.
const CANARY: &str = "hUnter3-cAnary";

/// Goal: `--print-config` shows no value of a variable unless asked for, and never one that is known or matched to be a
/// secret. Method: variables whose values hold passwords in several forms; as a table, as JSON, and with the values.
#[test]
fn values_of_variables_are_not_shown() {
    let folder = Folder::new();
    let json = format!("CFG={{\"password\": \"{CANARY}\"}}");
    let pair = format!("DB=scott/{CANARY}@h");
    let sentence = format!("NOTE=password is {CANARY}");
    let named = format!("API_TOKEN={CANARY}");
    let again = format!("spark.app.name=etl-{CANARY}");
    let matched = format!("spark.executorEnv.INTERNAL={CANARY}x");
    let flags = [
        "--master",
        "local[1]",
        "--print-config",
        "--env",
        &json,
        "--env",
        &pair,
        "--env",
        &sentence,
        "--env",
        &named,
        "--env",
        "LANG=C",
        "-c",
        &again,
        "-c",
        &matched,
        "-c",
        "spark.redaction.regex=(?i)internal",
        "--",
        "true",
    ];
    for more in [&[][..], &["--json"], &["--show-values"], &["--show-values", "--json"]] {
        let ended = run(&folder, &[more, &flags[..]].concat(), &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        let text = ended.output + &ended.errors;
        assert!(!text.contains("cAnary"), "{more:?}: {text}");
        let line = text.lines().find(|line| line.contains("spark.executorEnv.LANG")).unwrap();
        assert_eq!(line.contains("set"), !more.contains(&"--show-values"), "{line}");
        assert!(text.contains("--env API_TOKEN=… can be read by everybody"), "{text}");
    }
}

/// Goal: complaints show no known secret, wherever it stands. Method: a secret in a file, and again in a setting that
/// is wrong, in one that contradicts another, and in the value of a variable.
#[test]
fn complaints_show_no_known_secret() {
    let folder = Folder::new();
    let file = folder.write("secret", CANARY);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let wrong = format!("{CANARY}g");
    let flags = [
        "--master",
        "mesos://127.0.0.1:1",
        "-c",
        "offermill.mesos.user=nobody",
        "--principal",
        "p",
        "--secret-file",
        "secret",
        "--executor-memory",
        &wrong,
        "--placement",
        CANARY,
        "--",
        "true",
    ];
    let ended = run(&folder, &flags, &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    assert_eq!(ended.errors.lines().count(), 2, "{}", ended.errors);
    assert!(!ended.errors.contains(CANARY), "{}", ended.errors);
    let ended = run(&folder, &["-c", "spark.redaction.regex=(", "--", "true"], &[]);
    assert!(ended.errors.contains("must be a regular expression"), "{}", ended.errors);
}

/// Goal: variables reach executors from the environment and from files, and flags take precedence. Method: an executor
/// prints them; then files that can't be used, whose content isn't shown.
#[test]
fn variables_come_from_the_environment_and_from_files() {
    let folder = Folder::new();
    let path =
        folder.write("variables", "# a comment\n\nA=a=1\nB=from file\nAPI_TOKEN=t\nFROM_ME\n");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let script = "echo $A, $B, $C, $API_TOKEN, $FROM_ME";
    let flags = [
        "--num-executors",
        "1",
        "--until-finished",
        "--env-file",
        "variables",
        "--env",
        "B",
        "--env",
        "C=flag",
    ];
    let start = |flags: &[&str]| {
        let mut command = offermill(&folder.0, &small(flags, &["sh", "-c", script]));
        let output = command.env("B", "mine").env("FROM_ME", "me").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(start(&flags), (Some(0), String::new()));
    assert_eq!(folder.outputs(), ["a=1, mine, flag, t, me\n"]);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let (_, errors) = start(&flags);
    assert!(errors.contains("\"variables\" has a secret in it and can be read by"), "{errors}");
    folder.write("wrong", &format!("A=1\n{CANARY}\n"));
    for (file, why) in [
        ("wrong", "--env-file \"wrong\", line 2 must be NAME=VALUE, or the NAME of a variable"),
        (
            "nowhere",
            "--env-file is \"nowhere\", but must be a file of variables that can be read (",
        ),
    ] {
        let (code, errors) = start(&["--env-file", file]);
        assert_eq!(code, Some(2));
        assert!(errors.contains(why) && !errors.contains(CANARY), "{errors}");
    }
}

/// Goal: a secret among executors' variables is remarked on if it is given by its Spark key, too: in `--conf`, and in a
/// properties file that others may read. Other variables are not. Method: one of each, in files of two modes.
#[test]
fn variables_by_their_keys_are_remarked_on() {
    let folder = Folder::new();
    let secret = format!("spark.executorEnv.DB_PASSWORD={CANARY}");
    let path = folder.write("spark.conf", &format!("{secret}\n"));
    let plain = folder.write("plain.conf", "spark.executorEnv.ZONE=east\n");
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
    let errors = |flags: &[&str]| {
        let all = [&["--master", "local[1]", "--print-config"], flags, &["--", "true"]].concat();
        let ended = run(&folder, &all, &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert!(!ended.errors.contains(CANARY), "{}", ended.errors);
        ended.errors
    };
    let told = errors(&["-c", &secret]);
    let remark = "spark.executorEnv.DB_PASSWORD (--conf) can be read by everybody who lists this machine's processes; \
                  use --env NAME or --env-file instead";
    assert!(told.contains(remark), "{told}");
    assert!(!errors(&["-c", "spark.executorEnv.ZONE=east"]).contains("can be read"));
    for (mode, is_remarked) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let told = errors(&["--properties-file", "spark.conf"]);
        let remark = "\"spark.conf\" has a secret in it and can be read by";
        assert_eq!(told.contains(remark), is_remarked, "{told}");
    }
    assert!(!errors(&["--properties-file", "plain.conf"]).contains("can be read"));
}
