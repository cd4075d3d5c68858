//! The secret is sent to the configured masters, and appears nowhere else.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::mesos::{Credential, MesosCluster, MesosConfig, Secret};
use offermill::engine::Notice;
use offermill::launch::{CommandTemplate, SecretSource, Setup};

use super::master::FakeMaster;
use super::script::{Answer, Call, offers, sound};
use super::{framework, mesos, refusal_of};
use crate::framework::{Framework, small_executors};

const PRINCIPAL: &str = "scene-principal";
const CANARY: &str = "canary-7hJx2-secret";
/// `scene-principal:canary-7hJx2-secret` in base64, as it is sent.
const CANARY_ON_THE_WIRE: &str = "c2NlbmUtcHJpbmNpcGFsOmNhbmFyeS03aEp4Mi1zZWNyZXQ=";

/// The canary alone in base64, as a message in JSON has it.
const CANARY_IN_BASE64: &str = "Y2FuYXJ5LTdoSngyLXNlY3JldA==";

fn with_secret(ports: &[u16]) -> MesosConfig {
    let mut mesos = mesos(ports);
    let secret = Some(Secret::new(CANARY));
    mesos.credential = Some(Credential { principal: PRINCIPAL.to_owned(), secret });
    mesos.secret_over_plain_http = true;
    mesos
}

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    for canary in [CANARY, CANARY_ON_THE_WIRE, "canary-7hJx2"] {
        assert!(!text.contains(canary), "the secret is in {what}: {text}");
    }
}

/// Goal: the secret is sent with every call, and displayed nowhere. Method: a sound master, and the debug output of the
/// settings, the cluster, the engine and its notices.
#[test]
fn secrets_are_sent_and_not_shown() {
    let fake = FakeMaster::new(sound);
    let mesos = with_secret(&[fake.port()]);
    assert_clean("the settings", &format!("{mesos:?} {mesos:#?}"));
    let cluster = Arc::new(MesosCluster::new(mesos.clone()).unwrap());
    assert_clean("the cluster", &format!("{cluster:?} {cluster:#?}"));
    let framework = framework(mesos, 1).unwrap();
    framework.id();
    assert_clean("the engine", &format!("{framework:?} {framework:#?}"));
    let notices = framework.notices.clone();
    drop(framework);
    fake.wait_for("TEARDOWN", 0);
    assert_clean("the notices", &format!("{:?}", notices.all()));
    for call in fake.calls() {
        let expected = format!("Basic {CANARY_ON_THE_WIRE}");
        assert_eq!(call.message.header("authorization"), Some(expected.as_str()), "{}", call.kind);
        assert_clean("a call's body", &call.body.to_string());
    }
    let subscribe = &fake.calls_of("SUBSCRIBE")[0];
    assert_eq!(subscribe.body["subscribe"]["framework_info"]["principal"], PRINCIPAL);
    assert_clean("the arguments", &std::fs::read_to_string("/proc/self/cmdline").unwrap());
}

/// Goal: secrets of executors need encryption, or the user's word, in the library as on the command line. Method: an
/// executor with a secret variable and one with a secret file, with and without leave; the calls that arrive.
#[test]
fn secrets_of_executors_need_encryption() {
    for (is_allowed, is_file) in [(false, false), (false, true), (true, false)] {
        let fake = FakeMaster::new(sound);
        let mut mesos = mesos(&[fake.port()]);
        mesos.secret_over_plain_http = is_allowed;
        let mut setup = Setup::default();
        let secrets = match is_file {
            true => &mut setup.secret_files,
            false => &mut setup.secret_variables,
        };
        secrets.push(("place".to_owned(), SecretSource::Value(Secret::new(CANARY))));
        let command = CommandTemplate::new(vec!["true".to_owned()]).setup(setup);
        let config = small_executors(1).build().unwrap();
        let framework = Framework::launching(mesos, config, command).unwrap();
        framework.id();
        fake.send(&offers("O-1", "S-1", 4));
        if is_allowed {
            let accept = fake.wait_for("ACCEPT", 0).body.to_string();
            assert!(accept.contains(CANARY_IN_BASE64), "{accept}");
            continue;
        }
        framework.notices.wait("reason", |notice| match notice {
            Notice::Updated { message, .. } => message.contains("in clear").then_some(()),
            _ => None,
        });
        fake.wait_for("DECLINE", 0);
        for call in fake.calls() {
            assert!(call.kind != "ACCEPT", "{call:?}");
            assert_clean("a call", &call.body.to_string());
            assert!(!call.body.to_string().contains(CANARY_IN_BASE64));
        }
    }
}

/// Goal: a server can't make a framework display its secret. Method: servers that send back the head of the call, as
/// some do to help with debugging, with each status, in the body and in headers.
#[test]
fn a_server_that_repeats_the_secret() {
    let repeat = |call: &Call| call.message.header("authorization").unwrap_or_default().to_owned();
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "500 Oops", "200 OK"] {
        let fake = FakeMaster::new(move |call| {
            let text = format!("you sent {} and {CANARY}", repeat(call));
            Answer::status(status, &format!("X-Echo: {}\r\n", repeat(call)), &text)
        });
        assert_clean(status, &refusal_of(with_secret(&[fake.port()])));
    }
    // The beginning of an answer is read, up to the middle of the secret.
    for (length, text) in [(4096, CANARY), (4096, CANARY_ON_THE_WIRE)] {
        let fake = FakeMaster::new(move |_| {
            let text = format!("{}{text}", " ".repeat(length - text.len() + 3));
            Answer::status("403 Forbidden", "", &text)
        });
        let shown = refusal_of(with_secret(&[fake.port()]));
        assert_clean("a long answer", &shown);
        assert!(!shown.contains(&text[..text.len() - 3]), "{shown}");
    }
    let fake = FakeMaster::new(move |call| {
        let place = format!("Location: //{CANARY}.example:5050/{}\r\n", repeat(call));
        Answer::status("307 Temporary Redirect", &place, "")
    });
    assert_clean("a redirect", &refusal_of(with_secret(&[fake.port()])));
}

/// Goal: the same for a server that sends it back in an invalid event. Method: a text in place of an object.
#[test]
fn a_record_that_repeats_the_secret() {
    let bad = serde_json::json!({"type": "SUBSCRIBED", "subscribed": CANARY});
    let fake = FakeMaster::new(move |_| Answer::stream("s-1").event(&bad));
    assert_clean("the error", &refusal_of(with_secret(&[fake.port()])));
}

/// Goal: a server that isn't configured never gets the secret. Method: a redirection to another server.
#[test]
fn other_servers_get_no_secret() {
    let stranger = FakeMaster::new(sound);
    let location = format!("//127.0.0.1:{}/api/v1/scheduler", stranger.port());
    let master = FakeMaster::new(move |_| {
        Answer::status("307 Temporary Redirect", &format!("Location: {location}\r\n"), "")
    });
    assert_clean("the error", &refusal_of(with_secret(&[master.port()])));
    assert_eq!(stranger.calls().len(), 0);
}

/// Goal: a secret isn't sent unencrypted unless that is allowed. Method: the same settings without the permission; no
/// call is made.
#[test]
fn secrets_are_not_sent_in_clear_by_default() {
    let fake = FakeMaster::new(sound);
    let mut mesos = with_secret(&[fake.port()]);
    mesos.secret_over_plain_http = false;
    let why = refusal_of(mesos);
    assert!(why.contains("https"), "{why}");
    assert_clean("the error", &why);
    assert_eq!(fake.calls().len(), 0);
}

/// Goal: the command line doesn't display the secret either. Method: a run with a secret file against a master that
/// refuses it and sends it back; its arguments, its output, its errors, and whether its memory can be dumped.
#[test]
fn the_command_line_shows_no_secret() {
    let fake = FakeMaster::new(|call| {
        let authorization = call.message.header("authorization").unwrap_or_default();
        let text = format!("no: {authorization}");
        // Leaves time to read the arguments.
        std::thread::sleep(Duration::from_millis(300));
        Answer::status("401 Unauthorized", "", &text)
    });
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("secret-{}", std::process::id()));
    std::fs::write(&file, format!("{CANARY}\n")).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_offermill"));
    program.args(["run", "--json", "--principal", PRINCIPAL, "--num-executors", "1"]);
    program.arg("--secret-file").arg(&file).arg("--allow-plain-secret");
    program.args(["-c", "offermill.mesos.user=nobody"]);
    program.args(["--master", &format!("mesos://127.0.0.1:{}", fake.port()), "--", "true"]);
    let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    fake.wait_for("SUBSCRIBE", 0);
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
    assert_clean("the arguments", &arguments);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");
    let environment = std::fs::metadata(format!("/proc/{}/environ", child.id())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&environment), 0);
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    assert_clean("the output", &text);
    assert!(text.contains("401"), "{text}");
    assert_eq!(output.status.code(), Some(4), "{text}");
    let sent = fake.calls()[0].message.header("authorization").unwrap_or_default().to_owned();
    assert_eq!(sent, format!("Basic {CANARY_ON_THE_WIRE}"));
}
