//! Tests of `offermill ctl`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use serde_json::Value;

use crate::controlling::start;
use crate::support::{Folder, offermill};

/// Goal: `offermill ctl` sends a command and prints the reply. Method: check its output and exit codes.
#[test]
fn ctl_sends_a_command() {
    let folder = Folder::new();
    let (run, socket) = start(&folder, &["--num-executors", "1"]);
    let ctl = |words: &[&str]| {
        let all = [&["ctl", socket.to_str().unwrap()], words].concat();
        let ended = offermill(&folder.0, &all).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    };
    assert_eq!(ctl(&["limit", "2"]), (Some(0), "limit 1 -> 2\n".into(), String::new()));
    let (code, output, _) = ctl(&["status"]);
    assert!(code == Some(0) && output.contains("\nlimit       2\n"), "{output}");
    let (_, output, _) = ctl(&["status", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["limit"], 2);
    let (code, output, errors) = ctl(&["limit", "-3"]);
    assert_eq!((code, &*output), (Some(1), ""));
    assert!(errors.starts_with("offermill: after \"limit\" was expected"), "{errors}");
    assert_eq!(ctl(&["limit 2\nstop"]).0, Some(2));
    assert!(ctl(&["help"]).1.contains("kill NAME..."));
    assert_eq!(ctl(&["stop"]).1, "stopping\n");
    assert_eq!(run.end().code, Some(0));
    let (code, _, errors) = ctl(&["status"]);
    assert_eq!(code, Some(4));
    assert!(errors.starts_with("offermill: no run or master answers at"), "{errors}");
}

/// Goal: a forgotten socket is told. Method: a command in its place, and a socket that isn't there.
#[test]
fn a_forgotten_socket_is_told() {
    let folder = Folder::new();
    let hint = "the socket comes before the command: offermill ctl SOCKET COMMAND";
    for (words, is_forgotten) in
        [(["ctl", "load", "pending=3"], true), (["ctl", "or", "status"], false)]
    {
        let ended = offermill(&folder.0, &words).output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(
            (ended.status.code(), errors.contains(hint)),
            (Some(4), is_forgotten),
            "{errors}"
        );
    }
}

/// Goal: a reply that was cut off is no reply. Method: a listener in the place of a run, which sends replies of each
/// kind without their ends, and then whole ones.
#[test]
fn ctl_refuses_half_replies() {
    let folder = Folder::new();
    let socket = folder.0.join("control");
    let listener = UnixListener::bind(&socket).unwrap();
    for (reply, whole) in [
        ("ok: stop", "ok: stopping\n"),
        ("error: after", "error: after that\n"),
        ("limit       2\nexecutors   1\n", "limit       2\nexecutors   1\n\n"),
        ("{\"limit\":", "{\"limit\":2}\n"),
    ] {
        for (reply, code) in [(reply, 4), (whole, i32::from(whole.starts_with("error")))] {
            let mut ctl = offermill(&folder.0, &["ctl", socket.to_str().unwrap(), "status"]);
            let ctl = ctl.stdout(Stdio::piped()).stderr(Stdio::piped());
            let ctl = ctl.spawn().unwrap();
            let mut client = listener.accept().unwrap().0;
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            client.write_all(reply.as_bytes()).unwrap();
            drop(client);
            let ended = ctl.wait_with_output().unwrap();
            assert_eq!(ended.status.code(), Some(code), "{reply:?} {ended:?}");
        }
    }
}
