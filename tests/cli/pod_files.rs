//! What a run on Kubernetes stores beside pods, with a fake API server: files for executors, and who owns all of it.

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::support::{Ended, Folder, Run, finish, offermill};

const CONF: [&str; 4] = [
    "-c",
    "offermill.kubernetes.leaseDuration=3s",
    "-c",
    "spark.kubernetes.driver.requestTimeout=2s",
];

fn arguments<'a>(master: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let size = ["--num-executors", "1", "--executor-memory", "64m", "--container-image", "w:1"];
    let run = ["run", "--json", "--master", master, "--name", "etl"];
    [&run[..], &["--namespace", "jobs"], &size, &CONF, flags, &["--", "/bin/worker"]].concat()
}

fn clean(folder: &Folder, master: &str) -> Ended {
    let clean = ["clean", "--master", master, "--namespace", "jobs", "etl"];
    finish(folder, &[&clean[..], &CONF].concat())
}

/// Goal: executors find the files of this machine in a folder, and nothing of them is left. Method: a text and bytes
/// that are none; a run that ends, and one that is killed and cleaned.
#[test]
fn files_reach_executors() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    folder.write("a.txt", "ü\n");
    std::fs::write(folder.0.join("b"), b"\xff").unwrap();
    let flags = ["--files", "a.txt,b"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    run.event_named("running");
    let maps: Vec<Value> = server.state().config_maps.values().cloned().collect();
    let [map] = maps.as_slice() else { panic!("{maps:?}") };
    assert_eq!(
        (&map["data"], &map["binaryData"]),
        (&json!({ "a.txt": "ü\n" }), &json!({ "b": "/w==" }))
    );
    assert_eq!(map["metadata"]["ownerReferences"][0]["name"], "etl");
    let manifest = server.state().created[0].clone();
    let container = &manifest["spec"]["containers"][0];
    let name = map["metadata"]["name"].as_str().unwrap();
    assert_eq!(
        manifest["spec"]["volumes"],
        json!([{ "name": "files", "configMap": { "name": name } }])
    );
    let mount = json!([{ "name": "files", "mountPath": "/opt/offermill/files", "readOnly": true }]);
    assert_eq!(container["volumeMounts"], mount);
    let variable = json!({ "name": "OFFERMILL_FILES", "value": "/opt/offermill/files" });
    assert!(container["env"].as_array().unwrap().contains(&variable), "{container}");
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
    assert!(server.state().config_maps.is_empty());
    let more = [&flags[..], &["-c", "offermill.kubernetes.filesPath=/etc/x"]].concat();
    let mut run = Run::start(&folder, &arguments(&master, &more));
    run.event_named("running");
    let manifest = server.state().created[1].clone();
    assert_eq!(manifest["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/x");
    run.signal("KILL");
    run.end();
    assert_eq!(server.state().config_maps.len(), 1);
    let ended = clean(&folder, &master);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let state = server.state();
    assert!(state.config_maps.is_empty() && state.pods.is_empty() && state.leases.is_empty());
}

/// Goal: files that can't be given to executors are named, with nothing left behind. Method: each way.
#[test]
fn bad_files_are_named() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    folder.write("a", "text");
    folder.write("b c", "text");
    std::fs::create_dir(folder.0.join("d")).unwrap();
    folder.write("d/a", "other");
    folder.write("large", &"x".repeat(1 << 20));
    for (flags, message) in [
        (&["--files", "a,nowhere"][..], "--files: \"nowhere\" (No such file"),
        (&["--files", "a,d/a"], "--files has two files named \"a\""),
        (&["--files", "a,large"], "--files has more than 1048576 bytes"),
        (
            &["--files", "a", "-c", "spark.kubernetes.configMap.maxSize=3"],
            "--files has more than 3 bytes",
        ),
        (&["--files", "b c"], "--files is \"b c\", but must be 1 to 253 letters, digits"),
        (
            &["--files", "a", "-c", "offermill.kubernetes.filesPath=x"],
            "offermill.kubernetes.filesPath (--conf) is \"x\", but must be an absolute path",
        ),
        (
            &["--files", "a", "-c", "spark.kubernetes.executor.disableConfigMap=true"],
            "files are in a config map",
        ),
        (&["--files", "a", "--master", "local"], "--files needs Kubernetes"),
    ] {
        let flags = [flags, &["-c", "spark.executor.cores=1"]].concat();
        let ended = finish(&folder, &arguments(&master, &flags));
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(message), "{flags:?}: {}", ended.errors);
    }
    assert!(server.state().requests.is_empty());
    server.state().denied_rights = vec!["create configmaps"];
    let ended = finish(&folder, &arguments(&master, &["--files", "a"]));
    assert_eq!(ended.code, Some(4), "{}", ended.output);
    assert!(
        ended.output.contains("no right to create configmaps in namespace jobs"),
        "{}",
        ended.output
    );
    server.state().denied_rights.clear();
    server.state().failing = vec![("POST /api/v1/namespaces/jobs/configmaps", 403)];
    let ended = finish(&folder, &arguments(&master, &["--files", "a"]));
    assert_eq!(ended.code, Some(4), "{}", ended.output);
    assert!(
        ended.output.contains("the files for executors could not be stored"),
        "{}",
        ended.output
    );
    assert!(server.state().created.is_empty());
}

/// Goal: what a run in a pod has made is deleted with the pod. Method: the pod named by its setting, one that isn't
/// there, and one with the name of the host.
#[test]
fn the_own_pod_owns_all() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    let pod = json!({ "metadata": { "name": "me", "uid": "uid-me", "labels": {} }, "status": {} });
    server.state().pods.insert("me".to_owned(), pod);
    let owner = || server.state().leases["etl"]["metadata"]["ownerReferences"][0].clone();
    let mine = json!({ "apiVersion": "v1", "kind": "Pod", "name": "me", "uid": "uid-me" });
    let named = ["-c", "spark.kubernetes.driver.pod.name=me"];
    let mut run = Run::start(&folder, &arguments(&master, &named));
    run.event_named("running");
    assert_eq!(owner(), mine);
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
    let ended =
        finish(&folder, &arguments(&master, &["-c", "spark.kubernetes.driver.pod.name=you"]));
    assert_eq!(ended.code, Some(4), "{}", ended.output);
    assert!(ended.output.contains("pod you, which is to own the run's lease"), "{}", ended.output);
    for (hostname, expected) in [("me", mine), ("you", Value::Null)] {
        let mut command = offermill(&folder.0, &arguments(&master, &[]));
        command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").env("HOSTNAME", hostname);
        let mut run = Run::watch(command.spawn().unwrap());
        run.event_named("running");
        assert_eq!(owner(), expected);
        run.signal("INT");
        assert_eq!(run.end().code, Some(0));
    }
    assert!(server.state().leases.is_empty());
}

/// Goal: nobody waits for a server without being told, nor for long. Method: `clean` at an address where nobody
/// listens, and with a server that is silent.
#[test]
fn a_server_that_does_not_answer_is_waited_for_aloud() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    server.state().hangs = true;
    for (url, why) in
        [("http://127.0.0.1:1", "Connection refused"), (&server.url, "no answer so far")]
    {
        let ended = clean(&folder, &format!("k8s://{url}"));
        assert_eq!(ended.code, Some(4), "{}", ended.errors);
        let mut lines = ended.errors.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with("offermill: waiting up to 2s for the API server: "), "{first}");
        assert!(first.contains(why), "{first}");
        assert!(
            lines.next().unwrap().contains("the API server could not be reached"),
            "{}",
            ended.errors
        );
        assert_eq!(lines.next(), None);
    }
}

/// Goal: certificates that would be ignored are refused. Method: authorities for servers without TLS, of Kubernetes and
/// of a standalone cluster.
#[test]
fn authorities_without_tls_are_refused() {
    let folder = Folder::new();
    folder.write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
    let given = ["-c", "spark.kubernetes.authenticate.caCertFile=ca.pem"];
    let ended = finish(&folder, &arguments("k8s://http://127.0.0.1:1", &given));
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    let message = "caCertFile (--conf) is for servers with https://, and --master is \"k8s://http://127.0.0.1:1\"";
    assert!(ended.errors.contains(message), "{}", ended.errors);
    let worker = ["worker", "--master", "http://127.0.0.1:1", "--ca-file", "ca.pem"];
    let ended = finish(&folder, &worker);
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    let message = "--ca-file is for masters with https://, and --master is \"http://127.0.0.1:1\"";
    assert!(ended.errors.contains(message), "{}", ended.errors);
}
