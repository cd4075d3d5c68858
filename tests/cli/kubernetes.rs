//! Tests of runs on Kubernetes that need no API server: settings that are read, rejected or ignored with a remark, and
//! secrets.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Ended, Folder, offermill};

/// A secret that appears in no other text.
const CANARY: &str = "cAnAry-t0ken-9K";

/// Runs the binary without kubeconfig and service account.
fn run(folder: &Folder, arguments: &[&str]) -> Ended {
    let mut command: Command = offermill(&folder.0, arguments);
    command
        .env("KUBECONFIG", "/dev/null")
        .env("HOME", &folder.0)
        .env_remove("KUBERNETES_SERVICE_HOST");
    crate::support::Run::watch(command.spawn().unwrap()).end()
}

/// The arguments of a run on an API server that doesn't exist.
fn on_kubernetes<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let master = ["--master", "k8s://https://127.0.0.1:1", "--container-image", "w:1"];
    let size = ["--num-executors", "1", "-c", "offermill.kubernetes.connectTimeout=1s"];
    [&["run"], &master[..], &size, flags, &["--", "true"]].concat()
}

/// A folder with files of credentials.
fn folder() -> Folder {
    let folder = Folder::new();
    for (name, text, mode) in [
        ("token", CANARY, 0o600),
        ("open", CANARY, 0o622),
        ("certificate", "-----BEGIN CERTIFICATE-----", 0o644),
        ("empty", "", 0o600),
        ("deployment.yaml", "apiVersion: v1\nkind: Deployment\n", 0o644),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a}]}\n", 0o644),
    ] {
        let path = folder.write(name, text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    folder
}

const LOGIN: &str = "spark.kubernetes.authenticate";

/// Invalid settings for Kubernetes, with their messages.
const BAD: &[(&[&str], &str)] = &[
    (
        &["--master", "k8s:"],
        "--master is \"k8s:\", but must be k8s://https://HOST[:PORT], k8s://http",
    ),
    (
        &["--master", "k8s://ftp://h"],
        "but must be k8s://https://HOST[:PORT], k8s://http://HOST[:PORT] or",
    ),
    (&["--master", "k8s://u:p@h"], "or k8s:// alone for that of the kubeconfig"),
    (
        &["--namespace", "No_Such"],
        "--namespace is \"No_Such\", but must be lower-case letters, digits",
    ),
    (
        &["--name", "…"],
        "--name is \"…\", but must be a name with letters or digits of ASCII, of which",
    ),
    (
        &["--container-image", "", "-c", "spark.kubernetes.container.image="],
        "there is no image for executors' containers: give --container-image (spark.kubernetes.cont",
    ),
    (
        &["-c", "spark.kubernetes.container.image.pullPolicy=Often"],
        "spark.kubernetes.container.image.pullPolicy (--conf) is \"Often\", but must be Always, IfNot",
    ),
    (
        &["-c", "spark.kubernetes.executor.label.team=a b"],
        "label of pods is \"team=a b\", but must be a key and a value of at most 63",
    ),
    (
        &["-c", "spark.kubernetes.node.selector.a/b/c=x"],
        "node selector is \"a/b/c=x\", but must be a key and a value of at most 63",
    ),
    (
        &["-c", "spark.kubernetes.executor.annotation.a b=x"],
        "annotation is \"a b\", but must be a key of at most 63",
    ),
    (
        &["-c", "spark.kubernetes.executor.request.cores=2x"],
        "spark.kubernetes.executor.request.cores (--conf) is \"2x\", but must be a number of cores from",
    ),
    (
        &["-c", "spark.kubernetes.executor.limit.cores=0.0001"],
        "spark.kubernetes.executor.limit.cores (--conf) is \"0.0001\", but must be a number of cores",
    ),
    (
        &["-c", "spark.kubernetes.executor.secrets.db=relative"],
        "secret mount is \"db=relative\", but must be the name of a secret, and an absolute path",
    ),
    (
        &["-c", "spark.kubernetes.executor.secretKeyRef.PW=db"],
        "spark.kubernetes.executor.secretKeyRef.PW (--conf) is \"db\", but must be the name of a secret, \":\"",
    ),
    (
        &["-c", "offermill.kubernetes.tolerations=a:Never"],
        "offermill.kubernetes.tolerations (--conf) is \"a:Never\", but must be KEY[=VALUE][:EFFECT]",
    ),
    (
        &["-c", "spark.kubernetes.allocation.batch.size=0"],
        "spark.kubernetes.allocation.batch.size (--conf) is \"0\", but must be a whole number from 1",
    ),
    (
        &["-c", "spark.kubernetes.driver.requestTimeout=20s"],
        "spark.kubernetes.driver.requestTimeout (--conf) is \"20s\", but must be less than the lease du",
    ),
    (
        &["-c", "offermill.kubernetes.leaseDuration=1s"],
        "offermill.kubernetes.leaseDuration (--conf) is \"1s\", but must be 3 s to 1 year",
    ),
    (
        &["-c", "spark.kubernetes.executor.podTemplateFile=t.yaml"],
        "spark.kubernetes.executor.podTemplateFile (--conf) is \"t.yaml\", but must be a file with a template",
    ),
    (
        &["-c", "spark.kubernetes.executor.decommissionLabel=a b"],
        "spark.kubernetes.executor.decommissionLabel (--conf) is \"a b=\", but must be a key and a value of",
    ),
    (
        &["-c", "spark.kubernetes.executor.podTemplateFile=empty"],
        "spark.kubernetes.executor.podTemplateFile (--conf) is \"empty\", but must be a file with a pod",
    ),
    (
        &["-c", "spark.kubernetes.executor.podTemplateFile=deployment.yaml"],
        "but must be a file with a pod (its kind is \"Deployment\", not \"Pod\")",
    ),
    (
        &[
            "-c",
            "spark.kubernetes.executor.podTemplateFile=pod.yaml",
            "-c",
            "spark.kubernetes.executor.podTemplateContainerName=spark",
        ],
        "podTemplateFile (--conf) is \"pod.yaml\", but must be a file with a pod with a container named \"spark\"",
    ),
    (
        &["-c", "spark.kubernetes.executor.volumes.hostPath.x=/x"],
        "spark.kubernetes.executor.volumes.hostPath.x (--conf) must be followed by TYPE.NAME.KEY",
    ),
    (
        &["-c", "spark.kubernetes.executor.volumes.hostPath.x.mount.path=/x"],
        "volume x needs spark.kubernetes.executor.volumes.hostPath.x.options.path",
    ),
    (
        &["-c", "spark.kubernetes.executor.volumes.emptyDir.x.mount.readOnly=true"],
        "volume x needs spark.kubernetes.executor.volumes.emptyDir.x.mount.path",
    ),
    (
        &["-c", "spark.kubernetes.executor.volumes.iscsi.x.mount.path=/x"],
        "volumes.iscsi.x.mount.path (--conf) is of a type that isn't supported: hostPath, emptyDir, nfs, persi",
    ),
    (
        &[
            "-c",
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.x.options.claimName=OnDemand",
            "-c",
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.x.mount.path=/x",
        ],
        "volume x needs spark.kubernetes.executor.volumes.persistentVolumeClaim.x.options.sizeLimit",
    ),
    (
        &[
            "-c",
            "spark.kubernetes.executor.volumes.emptyDir.x.options.colour=red",
            "-c",
            "spark.kubernetes.executor.volumes.emptyDir.x.mount.path=/x",
        ],
        "volumes.emptyDir.x.options.colour (--conf) is no setting of such a volume",
    ),
    (
        &["-c", "spark.kubernetes.executor.volumes.emptyDir.x.mount.path=x"],
        "mount path of volume x is \"x\", but must be an absolute path in the container",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.caCertFile=nowhere"],
        "spark.kubernetes.authenticate.caCertFile (--conf) is \"nowhere\", but must be a file with certificates (",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.caCertFile=empty"],
        "but must be a file of certificates in PEM (it contains none)",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.oauthTokenFile=nowhere"],
        "spark.kubernetes.authenticate.oauthTokenFile (--conf) is \"nowhere\", but must be a file with a token (",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.oauthTokenFile=open"],
        "\"open\" has a secret in it and can be written by others; chmod go-rwx would do",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.clientCertFile=certificate"],
        "clientCertFile (--conf) is given alone; give spark.kubernetes.authenticate.clientKeyFile too",
    ),
    (
        &[
            "-c",
            "spark.kubernetes.authenticate.oauthTokenFile=token",
            "-c",
            "spark.kubernetes.authenticate.oauthToken=x",
        ],
        "oauthTokenFile (--conf) are both given; give one of them",
    ),
    (
        &[
            "-c",
            "spark.kubernetes.authenticate.oauthTokenFile=token",
            "--master",
            "k8s://http://127.0.0.1:1",
        ],
        "oauthTokenFile (--conf) would be sent unencrypted to k8s://http://127.0.0.1:1; use k8s://https",
    ),
    (
        &["-c", "spark.kubernetes.authenticate.oauthTokenFile=token", "--master", "k8s://"],
        "oauthTokenFile (--conf) is for the API server of --master k8s://https://HOST:PORT; the kubecon",
    ),
    (&["-c", "spark.mesos.gpus.max=2"], "on Kubernetes a pod must say how many it takes"),
    (
        &["-c", "spark.mesos.uris=http://h/x"],
        "spark.mesos.uris (--conf) needs Mesos, and --master is \"k8s://https://127.0.0.1:1\"",
    ),
];

/// Goal: invalid settings are reported with their names, and nothing is started. Method: a run for each.
#[test]
fn invalid_settings_are_rejected() {
    let folder = folder();
    for (flags, message) in BAD {
        let ended = run(&folder, &on_kubernetes(flags));
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(message), "{flags:?}: {}", ended.errors);
        assert_eq!(
            ended.errors.lines().filter(|line| !line.contains("can be read by")).count(),
            1,
            "{}",
            ended.errors
        );
        assert!(!ended.errors.contains(CANARY), "{}", ended.errors);
    }
    let master = ["run", "--master", "k8s://https://127.0.0.1:1", "--container-image", "w:1"];
    let ended = run(&folder, &[&master[..], &["--", "true"]].concat());
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.errors.contains("the number of executors is needed on Kubernetes"),
        "{}",
        ended.errors
    );
}

/// Goal: settings without effect on Kubernetes are named once, by reason; what Mesos needs is an error; and Spark's
/// settings for Kubernetes are ignored elsewhere. Method: keys of each kind, with `--print-config`.
#[test]
fn settings_without_effect_are_named_once() {
    let folder = folder();
    folder.write(
        "spark.conf",
        "spark.kubernetes.driver.limit.cores 1\nspark.kubernetes.executor.podNamePrefix y\n\
         spark.kubernetes.executor.deleteOnTermination false\nspark.kubernetes.executor.rollPolicy ID\n\
         spark.kubernetes.executor.rollInterval 60s\n\
         spark.kubernetes.executor.minTasksPerExecutorBeforeRolling 9\n\
         spark.kubernetes.allocation.batch.delay 1s\nspark.kubernetes.decommission.script z\n\
         spark.mesos.role etl\nspark.executor.memoryOverhead 1g\n",
    );
    let flags = ["--properties-file", "spark.conf", "--print-config"];
    let ended = run(&folder, &[&["run", "--master", "k8s://"], &flags[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(
        ended.errors,
        "offermill: ignored, as executors are ended without being decommissioned before: \
         spark.kubernetes.decommission.script\n\
         offermill: ignored, as pods are watched, and created as soon as they are wanted: \
         spark.kubernetes.allocation.batch.delay\n\
         offermill: ignored, as they are for drivers that Spark starts in the cluster: \
         spark.kubernetes.driver.limit.cores\n\
         offermill: ignored, as they aren't supported: \
         spark.kubernetes.executor.rollPolicy, spark.kubernetes.executor.rollInterval, \
         spark.kubernetes.executor.minTasksPerExecutorBeforeRolling\n\
         offermill: ignored, as they mean nothing on k8s://: spark.mesos.role (spark.conf, line 9)\n"
    );
    let ended = run(&folder, &[&["run", "--master", "local"], &flags[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let keys = "spark.kubernetes.allocation.batch.delay, spark.kubernetes.driver.limit.cores";
    assert!(ended.errors.contains("ignored, as they are for Kubernetes: "), "{}", ended.errors);
    assert!(
        !ended.errors.contains(keys) || ended.errors.contains("rollPolicy"),
        "{}",
        ended.errors
    );
    let overhead = "ignored, as on Mesos spark.mesos.executor.memoryOverhead counts: spark.executor.memoryOverhead";
    assert!(ended.errors.contains(overhead), "{}", ended.errors);
}

/// Goal: `--print-config` shows each setting and no secret, and Kubernetes' own defaults. Method: settings of each
/// kind, with a token among them.
#[test]
fn settings_are_shown_without_secrets() {
    let folder = folder();
    let path = folder.write(
        "spark.conf",
        &format!(
            "{LOGIN}.oauthToken {CANARY}\nspark.kubernetes.namespace jobs\n\
             spark.kubernetes.executor.label.team etl\nspark.kubernetes.executor.secretKeyRef.PW db:{CANARY}\n\
             spark.kubernetes.executor.container.image b\nspark.kubernetes.container.image a\n"
        ),
    );
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let flags = ["--properties-file", "spark.conf", "--print-config"];
    let ended = run(&folder, &[&["run", "--master", "k8s://https://h"], &flags[..]].concat());
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    assert!(!ended.output.contains(CANARY), "{}", ended.output);
    let lines: Vec<Vec<&str>> =
        ended.output.lines().map(|line| line.split_whitespace().collect()).collect();
    for (key, value) in [
        ("spark.kubernetes.authenticate.oauthToken", "set"),
        ("spark.kubernetes.executor.secretKeyRef.PW", "set"),
        ("spark.kubernetes.namespace", "jobs"),
        ("spark.kubernetes.executor.label.team", "etl"),
        ("spark.kubernetes.executor.container.image", "b"),
        ("spark.executor.cores", "1"),
        ("spark.scheduler.minRegisteredResourcesRatio", "0.8"),
        ("spark.kubernetes.allocation.batch.size", "16"),
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(&[key, value])),
            "{key}: {}",
            ended.output
        );
    }
}

/// Goal: an API server that can't be reached ends the run with 4, without the token in any output. Method: a port at
/// which nobody listens.
#[test]
fn an_unreachable_server_ends_the_run() {
    let folder = folder();
    let token = format!("{LOGIN}.oauthTokenFile=token");
    let ended = run(&folder, &on_kubernetes(&["--json", "-c", &token]));
    assert_eq!(ended.code, Some(4), "{}{}", ended.output, ended.errors);
    assert!(ended.output.contains("the API server could not be reached"), "{}", ended.output);
    assert!(!format!("{}{}", ended.output, ended.errors).contains(CANARY));
    let clean = [
        "clean",
        "--master",
        "k8s://https://127.0.0.1:1",
        "-c",
        "offermill.kubernetes.connectTimeout=1s",
    ];
    let ended = run(&folder, &[&clean[..], &["etl"]].concat());
    assert_eq!(ended.code, Some(4), "{}", ended.errors);
    assert!(ended.errors.contains("the API server could not be reached"), "{}", ended.errors);
    for (arguments, message) in [
        (
            &["clean", "etl"][..],
            "--master is \"local[*]\", but must be that of a Kubernetes cluster",
        ),
        (&["clean", "--master", "k8s://", "…"], "NAME is \"…\", but must be the name of a run"),
    ] {
        let ended = run(&folder, arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.errors);
        assert!(ended.errors.contains(message), "{}", ended.errors);
    }
}
