//! Tests of `offermill ctl` with listeners that only claim to be a run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::support::{Folder, finish};

/// Answers the first client at a socket with `reply`, and again and again if `is_endless`.
fn impostor(socket: &Path, reply: &'static str, is_endless: bool) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).unwrap();
        while (&client).write_all(reply.as_bytes()).is_ok() && is_endless {}
    })
}

/// Goal: whatever answers at a socket, `ctl` prints no control characters and reads a bounded reply; JSON stays the
/// same JSON. Method: listeners with hostile replies, one of which never ends.
#[test]
fn ctl_trusts_no_reply() {
    let folder = Folder::new();
    let mut number = 0;
    let mut ctl = |reply: &'static str, is_endless: bool| {
        number += 1;
        let name = format!("socket-{number}");
        let thread = impostor(&folder.0.join(&name), reply, is_endless);
        let ended = finish(&folder, &["ctl", &name, "status"]);
        thread.join().unwrap();
        (ended.code, ended.output, ended.errors)
    };
    const HOSTILE: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}";
    const SHOWN: &str = "\\u{1b}]0;PWNED\\u{7}\\u{1b}[2J\\r\\u{9b}31m\\u{202e}";
    let text = ["ok: ", HOSTILE, "\n"].concat().leak();
    assert_eq!(ctl(text, false), (Some(0), format!("{SHOWN}\n"), String::new()));
    let block = ["a\n", HOSTILE, "b\n\n"].concat().leak();
    assert_eq!(ctl(block, false), (Some(0), format!("a\n{SHOWN}b\n"), String::new()));
    let error = ["error: ", HOSTILE, "\n"].concat().leak();
    assert_eq!(ctl(error, false), (Some(1), String::new(), format!("offermill: {SHOWN}\n")));
    let object = "{\"host\":\"\u{202e}\"}\n";
    let shown = "{\"host\":\"\\u202e\"}\n".to_owned();
    assert_eq!(ctl(object, false), (Some(0), shown, String::new()));
    let endless = "ok: x".repeat(1000).leak();
    let (code, output, errors) = ctl(endless, true);
    assert_eq!((code, output.as_str()), (Some(4), ""));
    assert!(errors.contains("its reply is longer than 64 MiB"), "{errors}");
}
