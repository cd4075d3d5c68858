//! Tests of runs on Mesos that need no Mesos: settings that are read, rejected or ignored with a remark, and secrets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Output};

use crate::support::{Folder, Run, finish, offermill};

/// A secret that appears in no other text.
const CANARY: &str = "cAnAry-5ecret-7Q";
/// The beginning of "p:cAnAry-…" in base 64.
const ENCODED: &str = "cDpjQW5Bc";

/// The arguments of a run on a Mesos cluster whose first master doesn't exist.
fn on_mesos<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let master =
        ["--master", "mesos://127.0.0.1:1", "-c", "offermill.mesos.subscribeTimeout=100ms"];
    let user = ["-c", "offermill.mesos.user=nobody"];
    [&["run"], &master[..], &user, flags, &["--", "true"]].concat()
}

/// Invalid settings for Mesos, with their messages. `FOLDER` is the test's folder.
const BAD: &[(&[&str], &str)] = &[
    (
        &["--master", "mesos://"],
        "--master is \"mesos://\", but must be mesos://, offermill://, http:// or https://, then HOST[:PORT]",
    ),
    (&["--master", "mesos://a:x"], "--master is \"mesos://a:x\", but must be mesos://"),
    (&["--master", "mesos"], "--master is \"mesos\", but must be local, local[*], local[CORES]"),
    (
        &["--master", "mesos"],
        "each; or mesos://, offermill://, http:// or https://, then HOST[:PORT]",
    ),
    (&["--master", "mesos://zk://a:2181/mesos"], "commas between; ZooKeeper is not supported"),
    (&["--role", "a b"], "--role is \"a b\", but must be a path of names with \"/\" between"),
    (&["-c", "spark.mesos.role=.."], "spark.mesos.role (--conf) is \"..\", but must be a path"),
    (&["--principal", "a:b"], "--principal is \"a:b\", but must be a name without \":\""),
    (
        &["--secret-file", "secret"],
        "--secret-file is given without a principal; give \
         --principal (spark.mesos.principal) too",
    ),
    (
        &["--principal", "p", "--secret-file", "nowhere"],
        "--secret-file must be a file with a secret (No such file",
    ),
    (
        &["--principal", "p", "--secret-file", "."],
        "--secret-file is \".\", but must be a file with a secret (",
    ),
    (&["--principal", "p", "--secret-file", "empty"], "--secret-file must not be empty"),
    (
        &["-c", "offermill.mesos.caFileOnly=true"],
        "offermill.mesos.caFileOnly (--conf) is \"true\", but must be false, or there must be a CA file too",
    ),
    (
        &["--master", "https://127.0.0.1:1", "-c", "offermill.mesos.caFile=empty"],
        "offermill.mesos.caFile (--conf) is \"empty\", but must be a file of certificates in PEM (it contains none)",
    ),
    (
        &["--principal", "p", "--secret-file", "secret"],
        "--secret-file would be sent unencrypted to mesos://127.0.0.1:1; use \
         https://, or give --allow-plain-secret",
    ),
    (
        &["-c", "spark.mesos.principal.file=nowhere"],
        "spark.mesos.principal.file (--conf) is \"nowhere\", but must be a file with a principal (",
    ),
    (
        &["--allow-plain-secret=perhaps"],
        "--allow-plain-secret is \"perhaps\", but must be true or false",
    ),
    (&["--checkpoint=1"], "--checkpoint is \"1\", but must be true or false"),
    (&["--failover-timeout", "soon"], "--failover-timeout is \"soon\", but must be a whole number"),
    (
        &["--failover-timeout", "-1"],
        "--failover-timeout is \"-1\", but must be from 0 to 2147483647",
    ),
    (&["--failover-timeout", "NaN"], "--failover-timeout is \"NaN\", but must be from 0 to"),
    (&["--failover-timeout", "1e99"], "--failover-timeout is \"1e99\", but must be from 0 to"),
    (
        &["--framework-id-file", "nowhere/id"],
        "--framework-id-file is \"nowhere/id\", but must be a file, existing or not, in an existing \
         folder (nowhere: No such file",
    ),
    (
        &["--framework-id-file", "secret"],
        "framework id file secret: it is no framework id file: its first line is not \"offermill",
    ),
    (&["--framework-id-file", "."], "in an existing folder (this is a folder)"),
    (&["--framework-id-file", "pipe"], "in an existing folder (this is not a regular file)"),
    (&["--framework-id-file", "/dev/null"], "in an existing folder (this is not a regular file)"),
    (
        &["-c", "offermill.mesos.caFile=nowhere"],
        "offermill.mesos.caFile (--conf) is \"nowhere\", but must be a file with certificates (",
    ),
    (
        &["-c", "offermill.mesos.clientCertificateFile=secret"],
        "offermill.mesos.clientCertificateFile (--conf) is given alone; give offermill.mesos.clientKeyFile too",
    ),
    (
        &["-c", "offermill.mesos.clientKeyFile=secret"],
        "is given alone; give offermill.mesos.clientCertificateFile too",
    ),
    (
        &[
            "-c",
            "offermill.mesos.clientCertificateFile=secret",
            "-c",
            "offermill.mesos.clientKeyFile=nowhere",
        ],
        "offermill.mesos.clientKeyFile (--conf) is \"nowhere\", but must be a file with a private key (",
    ),
    (
        &[
            "-c",
            "offermill.mesos.clientCertificateFile=secret",
            "-c",
            "offermill.mesos.clientKeyFile=secret",
        ],
        "offermill.mesos.clientCertificateFile (--conf) is \"secret\", but must be for masters at https://",
    ),
    (
        &["-c", "offermill.mesos.encoding=xml"],
        "offermill.mesos.encoding (--conf) is \"xml\", but must be protobuf or json",
    ),
    (
        &["-c", "offermill.mesos.subscribeTimeout=0"],
        "offermill.mesos.subscribeTimeout (--conf) is \"0\", but must be more than 0",
    ),
    (
        &["-c", "spark.mesos.containerizer=podman"],
        "spark.mesos.containerizer (--conf) is \"podman\", but must be docker or mesos",
    ),
    (
        &["-c", "spark.mesos.executor.docker.parameters=a=b"],
        "spark.mesos.executor.docker.parameters (--conf) are for docker run; give --container-image",
    ),
    (
        &["-c", "spark.mesos.executor.docker.portmaps=80:80"],
        "spark.mesos.executor.docker.portmaps (--conf) need a network of their own; give --cont",
    ),
    (
        &["-c", "spark.mesos.task.labels=x"],
        "spark.mesos.task.labels (--conf) is \"x\", but must be KEY:VALUE",
    ),
    (&["-c", "spark.mesos.uris=a b"], "spark.mesos.uris (--conf) is \"a b\", but must be a URI"),
    (
        &["-c", "offermill.command.form=sh"],
        "offermill.command.form (--conf) is \"sh\", but must be argv or shell",
    ),
];

/// Goal: settings that local agents don't support and executors depend on are rejected there, not ignored. Method: each
/// such setting; then a shell command, which local agents support.
#[test]
fn local_agents_have_no_containers() {
    let folder = Folder::new();
    let run = |flags: &[&str], command: &[&str]| {
        let master = ["--master", "local[1]", "--num-executors", "1", "--until-finished"];
        let size = ["--executor-memory", "16m", "--memory-overhead", "0"];
        finish(&folder, &[&["run"], &master[..], &size, flags, &["--"], command].concat())
    };
    let ended = run(&["--container-image", "debian"], &["true"]);
    assert_eq!(ended.code, Some(2));
    let sentence =
        "offermill: --container-image needs Mesos or Kubernetes, and --master is \"local[1]\"\n";
    assert_eq!(ended.errors, sentence);
    for setting in [
        "spark.mesos.executor.docker.volumes=/a",
        "spark.mesos.executor.docker.portmaps=80:80",
        "spark.mesos.executor.docker.parameters=a=b",
        "spark.mesos.network.name=n",
        "spark.mesos.uris=/a",
    ] {
        let ended = run(&["-c", setting], &["true"]);
        assert_eq!(ended.code, Some(2), "{setting}");
        assert!(
            ended.errors.contains(" (--conf) needs Mesos, and --master is"),
            "{}",
            ended.errors
        );
    }
    let ended = run(&["-c", "offermill.command.form=shell"], &["echo", "it's", "$HOME  *"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(folder.outputs(), ["it's $HOME  *\n"]);
    let ended = run(&["-c", "offermill.command.form=shell"], &["echo", "a\nb"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.errors.contains("the command is \"a\\nb\", but must be without NUL"),
        "{}",
        ended.errors
    );
}

/// Goal: an invalid setting is rejected in a sentence with its name, its value and the allowed values, and nothing is
/// started. Method: one setting of each kind.
#[test]
fn bad_settings_are_refused() {
    let folder = Folder::new();
    folder.write("empty", "\n");
    folder.write("secret", "x\n");
    let pipe = Command::new("mkfifo").arg(folder.0.join("pipe")).status();
    assert!(pipe.unwrap().success());
    for (flags, sentence) in BAD {
        let ended = finish(&folder, &on_mesos(flags));
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(sentence), "{flags:?}: {}", ended.errors);
        assert_eq!(ended.output, "", "{flags:?}");
        let lines = ended.errors.lines().filter(|line| !line.contains("chmod")).count();
        assert_eq!(lines, 1, "{flags:?}: {}", ended.errors);
    }
}

/// Goal: certificates and keys that come through pipes are read once: a pipe has its text only once. Method: a program
/// that writes each of the three files into a pipe once, and a run with these pipes, which finds no master.
#[test]
fn certificates_may_come_through_pipes() {
    let folder = Folder::new();
    let files = [
        ("caFile", include_str!("../mesos/fake/certificates/authority.pem")),
        ("clientCertificateFile", include_str!("../mesos/fake/certificates/client.pem")),
        ("clientKeyFile", include_str!("../mesos/fake/certificates/client-key.pem")),
    ];
    for (name, text) in files {
        let pipe = folder.0.join(name);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::thread::spawn(move || std::fs::write(pipe, text));
    }
    let settings = files.map(|(name, _)| format!("offermill.mesos.{name}={name}"));
    let conf = settings.iter().flat_map(|setting| ["-c", setting.as_str()]);
    let master = ["--master", "https://127.0.0.1:1"];
    let flags: Vec<&str> = master.into_iter().chain(conf).collect();
    let ended = finish(&folder, &on_mesos(&flags));
    assert_eq!(ended.code, Some(4), "{}", ended.errors);
    assert!(ended.output.contains("no master of https://127.0.0.1:1"), "{}", ended.output);
}

/// Goal: items of containers' lists that can't be parsed are removed with a remark, as in Spark. Method: one in each
/// list; a second error shows that the first doesn't stop the checks.
#[test]
fn unreadable_items_of_containers_are_left_out() {
    let folder = Folder::new();
    let lists = ["volumes=/a,/b:/c:rx", "portmaps=80,", "parameters=x,k=v"]
        .map(|list| format!("spark.mesos.executor.docker.{list}"));
    let conf = lists.iter().flat_map(|list| ["-c", list.as_str()]);
    let flags: Vec<&str> = conf.chain(["--container-image", "i", "--print-config"]).collect();
    let ended = finish(&folder, &on_mesos(&flags));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    for told in [
        "docker.volumes (--conf): volume is \"/b:/c:rx\", but must be [HOST_PATH:]CONTAINER_PATH",
        "docker.portmaps (--conf): port mapping is \"80\", but must be HOST_PORT:",
        "docker.parameters (--conf): container parameter is \"x\", but must be KEY=VALUE; it is left out",
    ] {
        assert!(ended.errors.contains(told), "{}", ended.errors);
    }
    assert_eq!(ended.errors.lines().count(), 3, "{}", ended.errors);
}

/// Goal: settings that don't apply to the cluster are named in one remark and don't stop the run. Method: settings of
/// each kind of cluster on the other.
#[test]
fn settings_of_the_other_kind_are_named() {
    let folder = Folder::new();
    let local = ["--master", "local-cluster[1,1,64]", "--num-executors", "1", "--until-finished"];
    let strange = ["--role", "a b", "--principal", "p", "--checkpoint", "--secret-file", "nowhere"];
    let size = ["--executor-memory", "16m", "--memory-overhead", "0"];
    let ended = finish(&folder, &[&["run"], &local[..], &strange, &size, &["--", "true"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let remark = "offermill: ignored, as they mean nothing on local-cluster[1,1,64]: --role, \
                  --principal, --secret-file, --checkpoint\n";
    assert_eq!(ended.errors, remark);
    let strange = ["--work-dir", "/nowhere", "--agent-attributes", "x", "--role", "a b"];
    let ended = finish(&folder, &on_mesos(&strange));
    let remark = "offermill: ignored, as they mean nothing on mesos://127.0.0.1:1: \
                  --agent-attributes, --work-dir\n";
    assert!(ended.errors.contains(remark), "{}", ended.errors);
}

/// Goal: flags override keys, and keys override variables, including the two ways to set a principal and a secret.
/// Method: a bad value in a lower layer is ignored, and one in the highest is rejected.
#[test]
fn the_highest_principal_counts() {
    let folder = Folder::new();
    folder.write("bad", "a:b\n");
    let run = |flags: &[&str], variables: &[(&str, &str)]| -> String {
        let mut command = offermill(&folder.0, &on_mesos(flags));
        let ended = command.envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(ended.stderr).unwrap()
    };
    let (variable, file) = ("SPARK_MESOS_PRINCIPAL", "SPARK_MESOS_PRINCIPAL_FILE");
    let is_refused = |errors: String| errors.contains("is \"a:b\", but must be a name");
    assert!(is_refused(run(&[], &[(variable, "a:b")])));
    assert!(is_refused(run(&[], &[(file, "bad")])));
    assert!(is_refused(run(&["-c", "spark.mesos.principal.file=bad"], &[(variable, "p")])));
    assert!(!is_refused(run(&["-c", "spark.mesos.principal=p"], &[(variable, "a:b")])));
    assert!(!is_refused(run(&["-c", "spark.mesos.principal=p"], &[(file, "bad")])));
    let both = ["-c", "spark.mesos.principal.file=bad", "--principal", "p"];
    assert!(!is_refused(run(&both, &[])));
}

/// Goal: a secret appears in no output, however it was set and whatever else is wrong. Method: set a conspicuous secret
/// in all ways, beside valid and invalid settings, in each output format; search for it and for its encoded form.
#[test]
fn secrets_are_not_shown() {
    let folder = Folder::new();
    folder.write("secret", &format!("{CANARY}\n"));
    folder.write("conf", &format!("spark.mesos.principal p\nspark.mesos.secret {CANARY}\n"));
    let conf = format!("spark.mesos.secret={CANARY}");
    let typo = format!("spark.mesos.secret {CANARY}");
    let misspelt = format!("spark.mesos.secrte={CANARY}");
    let ours = format!("offermill.mesos.secret={CANARY}");
    let ways: [&[&str]; 9] = [
        &["--secret-file", "secret"],
        &["--properties-file", "conf"],
        &["-c", &conf],
        &["-c", &typo],
        &["-c", &misspelt],
        &["-c", &ours],
        // The secret itself where a file name is expected.
        &["--secret-file", CANARY],
        &["--secret-file", "secret", "--allow-plain-secret", "--failover-timeout", "x"],
        &[],
    ];
    for way in ways {
        for more in [
            &["--principal", "p", "--allow-plain-secret"][..],
            &["--principal", "p", "--allow-plain-secret", "--json"],
            &["--principal", "p"],
            &["--master", "mesos"],
            &["--master", "local[1]", "--executor-memory", "x"],
            &[],
        ] {
            let arguments = on_mesos(&[way, more].concat());
            let mut command = offermill(&folder.0, &arguments);
            command.env("SPARK_MESOS_SECRET", CANARY);
            let Output { stdout, stderr, .. } = command.output().unwrap();
            let output = String::from_utf8([stdout, stderr].concat()).unwrap();
            for canary in [CANARY, ENCODED] {
                assert!(!output.contains(canary), "{arguments:?}: {output}");
            }
        }
    }
}

/// Goal: the user is warned if others can read the secret, and a secret that they can write isn't used. Method: a file
/// of its own and a properties file with different permissions, and an argument.
#[test]
fn open_secrets_are_remarked_on() {
    let folder = Folder::new();
    let file = folder.write("secret", "x");
    let conf = folder.write("conf", "spark.mesos.secret x\n");
    let open = "has a secret in it and can be";
    let run = |flags: &[&str]| finish(&folder, &on_mesos(&[flags, &["--principal", "p"]].concat()));
    let by_all = Some("can be read by everybody; chmod go-rwx would do");
    let by_group = Some("can be read by its group; chmod go-rwx would do");
    let written = Some("can be written by others; chmod go-rwx would do");
    let found = std::fs::metadata(&file).unwrap();
    // A group with the id of its user is the user's alone.
    let of_group = |told| if found.gid() == found.uid() { None } else { told };
    for (mode, told) in [
        (0o644, by_all),
        (0o640, of_group(by_group)),
        (0o600, None),
        (0o400, None),
        (0o620, of_group(written)),
        (0o602, written),
    ] {
        for path in [&file, &conf] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        for flags in [["--secret-file", "secret"], ["--properties-file", "conf"]] {
            let ended = run(&[&flags[..], &["--allow-plain-secret"]].concat());
            assert_eq!(ended.errors.contains(open), told.is_some(), "{flags:?} {mode:o}");
            assert!(ended.errors.contains(told.unwrap_or_default()), "{}", ended.errors);
            let code = if told == written { 2 } else { 4 };
            assert_eq!(ended.code, Some(code), "{flags:?} {mode:o}: {}", ended.errors);
        }
    }
    let errors = run(&["-c", "spark.mesos.secret=x"]).errors;
    assert!(
        errors.contains("(--conf) can be read by everybody who lists this machine's processes")
    );
}

/// A port without a listener.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Goal: if no master can be reached, a run says so in one sentence and ends soon with its own exit code, without
/// repeating lines. Method: a port without a listener, with lines and with JSON.
#[test]
fn without_a_master_the_run_ends() {
    let folder = Folder::new();
    let master = format!("mesos://127.0.0.1:{}", free_port());
    let flags = ["--master", &master, "-c", "offermill.mesos.subscribeTimeout=1s"];
    let ended = finish(&folder, &on_mesos(&flags));
    assert_eq!(ended.code, Some(4), "{}", ended.output);
    let sentence =
        format!("the cluster is not available: no master of {master} could be subscribed to");
    assert!(ended.output.contains(&sentence), "{}", ended.output);
    assert!(ended.output.contains("Connection refused"), "{}", ended.output);
    assert!(ended.output.lines().count() < 12, "{}", ended.output);
    let ended = finish(&folder, &on_mesos(&[&flags[..], &["--json"]].concat()));
    let events = ended.events();
    assert!(events.iter().any(|event| event["event"] == "refused"), "{}", ended.output);
    assert_eq!(events.last().unwrap()["exit_code"], 4);
}

/// Goal: a run that can't reach its master says so when it says why it waits, and can be stopped. Method: Ctrl-C after
/// that, long before it gives up.
#[test]
fn a_run_that_connects_can_be_stopped() {
    let folder = Folder::new();
    let master = format!("mesos://127.0.0.1:{}", free_port());
    let flags = ["--master", &master, "-c", "offermill.mesos.subscribeTimeout=1h"];
    let mut run = Run::start(&folder, &on_mesos(&flags));
    run.line(|line| line.contains("subscribing at") && line.contains("Connection refused"));
    let waiting = run.line(|line| line.contains("waiting for "));
    let why = ": not registered with a master yet: subscribing at 127.0.0.1:";
    assert!(waiting.contains(why) && waiting.contains("Connection refused"), "{waiting}");
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert!(ended.output.contains("stopped by Ctrl-C (exit code 0)"), "{}", ended.output);
}

/// Goal: a master that rejects the secret ends the run, and the secret isn't printed, whatever the master sends.
/// Method: a master that returns everything it received.
#[test]
fn an_indiscreet_master_is_not_repeated() {
    let folder = Folder::new();
    folder.write("secret", CANARY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let master = format!("mesos://{}", listener.local_addr().unwrap());
    let said = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8192];
        let bytes = stream.read(&mut request).unwrap();
        let said = String::from_utf8_lossy(&request[..bytes]).into_owned() + CANARY;
        let head = format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\n\r\n", said.len());
        stream.write_all((head + &said).as_bytes()).unwrap();
        said
    });
    let who = ["--principal", "p", "--secret-file", "secret", "--allow-plain-secret"];
    let flags = [&["--master", &master][..], &who].concat();
    let ended = finish(&folder, &on_mesos(&flags));
    assert_eq!(ended.code, Some(4), "{}", ended.output);
    let sentence = "it doesn't accept the principal and secret";
    assert!(ended.output.contains(sentence), "{}", ended.output);
    assert!(said.join().unwrap().contains(ENCODED), "it was not sent");
    for canary in [CANARY, ENCODED] {
        assert!(!(ended.output.clone() + &ended.errors).contains(canary), "{}", ended.output);
    }
}
