//! Runs of the command line on the real control plane.

use std::process::Command;

use serde_json::Value;

use super::{ctl, curl, file, pods, url, variable};
use crate::program::{Ended, Folder, Run, offermill};

/// The binary with a kubeconfig of the control plane.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = offermill(&folder.0, arguments);
    command.env("KUBECONFIG", format!("{}/kubeconfig", variable("KUBERNETES_WORK_DIR")));
    command
}

/// The arguments of a run of this name with two small executors.
fn arguments<'a>(name: &'a str, image: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let size = ["--num-executors", "2", "--executor-memory", "64m", "--container-image", image];
    let lease = [
        "-c",
        "offermill.kubernetes.leaseDuration=4s",
        "-c",
        "spark.kubernetes.driver.requestTimeout=3s",
    ];
    let all = [&["run", "--json", "--name", name][..], &size, &lease, flags];
    [&all.concat()[..], &["--", "/opt/worker"]].concat()
}

fn start(folder: &Folder, arguments: &[&str]) -> Run {
    Run::watch(command(folder, arguments).spawn().unwrap())
}

fn finish(folder: &Folder, arguments: &[&str]) -> Ended {
    start(folder, arguments).end()
}

/// Waits until two executors run. Returns their pods.
fn wait_running(run: &mut Run) -> Vec<String> {
    let pod = |event: Value| event["executor"].as_str().unwrap().replace('.', "-");
    (0..2).map(|_| pod(run.event_named("running"))).collect()
}

/// Goal: each form of the master reaches the cluster, and runs end and leave nothing. Method: the kubeconfig, its
/// context, an address that it has, and an address with a token file and a CA file; executors that finish.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn runs_to_their_ends() {
    let folder = Folder::new();
    // With a line break at its end, as kubectl writes it.
    let token = String::from_utf8(file("pki/token")).unwrap();
    let path = folder.write("token", &format!("{}\n", token.trim()));
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let authority = format!(
        "spark.kubernetes.authenticate.caCertFile={}/pki/ca.crt",
        variable("KUBERNETES_WORK_DIR")
    );
    let token = "spark.kubernetes.authenticate.oauthTokenFile=token";
    let address = format!("k8s://{}", url());
    for (number, flags) in [
        &["--master", "k8s://"][..],
        &["--master", "k8s://", "-c", "spark.kubernetes.context=hollow"],
        &["--master", &address],
        &["--master", &address, "-c", token, "-c", &authority, "--namespace", "default"],
    ]
    .iter()
    .enumerate()
    {
        let name = format!("end-{number}");
        let flags = [*flags, &["--until-finished"]].concat();
        let mut run = start(&folder, &arguments(&name, "hollow/w:1", &flags));
        for pod in wait_running(&mut run) {
            ctl(&["exit", &pod, "0"]);
        }
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{flags:?}: {}{}", ended.output, ended.errors);
        assert!(pods(&name).is_empty());
    }
}

/// Goal: a signal ends executors; a second run of the name is refused meanwhile; what SIGKILL leaves is taken over by
/// the next run, and what it leaves is deleted by `clean`. Method: four runs of a name.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn ends_by_force_are_mended() {
    let folder = Folder::new();
    let master = ["--master", "k8s://"];
    let mut run = start(&folder, &arguments("forced", "hollow/w:1", &master));
    let first = wait_running(&mut run);
    let quick = [&master[..], &["-c", "offermill.kubernetes.connectTimeout=1s"]].concat();
    let second = finish(&folder, &arguments("forced", "hollow/w:1", &quick));
    assert_eq!(second.code, Some(4));
    assert!(second.output.contains("another run named forced is active"), "{}", second.output);
    let ended = finish(&folder, &["clean", "--master", "k8s://", "forced"]);
    assert_eq!(ended.code, Some(1), "{}", ended.errors);
    run.signal("KILL");
    run.end();
    let mut run = start(&folder, &arguments("forced", "hollow/w:1", &master));
    let mut adopted: Vec<String> = wait_running(&mut run);
    adopted.sort();
    let mut expected = first.clone();
    expected.sort();
    assert_eq!(adopted, expected);
    run.signal("KILL");
    run.end();
    assert_eq!(pods("forced").len(), 2);
    let ended = finish(&folder, &["clean", "--master", "k8s://", "forced"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.output.starts_with("deleted 2 pods ("), "{}", ended.output);
    super::wait_pods("forced", 0);
    let mut run = start(&folder, &arguments("forced", "hollow/w:1", &master));
    wait_running(&mut run);
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    super::wait_pods("forced", 0);
}

/// The owners of the objects of a kind, and how many there are, by a list of those of a run.
fn owners(kind: &str, run: &str) -> Vec<String> {
    let path = format!("/{kind}?labelSelector=offermill%2Frun%3D{run}");
    let list: Value = serde_json::from_str(&curl("GET", &path, None)).unwrap_or_default();
    let owner =
        |it: &Value| it["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or("").to_owned();
    list["items"].as_array().into_iter().flatten().map(owner).collect()
}

/// Goal: the real server takes the pods of Spark's executors, and a config map, and deletes all with the pod in which
/// the run is. Method: a run to its end; one that is killed, and whose own pod is deleted.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn executors_of_spark() {
    let folder = Folder::new();
    folder.write("log4j2.properties", "rootLogger.level = warn\n");
    let own =
        r#"{"metadata":{"name":"driver"},"spec":{"containers":[{"name":"a","image":"a/b:1"}]}}"#;
    curl("POST", "/api/v1/namespaces/default/pods", Some(own));
    let all = [
        "run",
        "--json",
        "--master",
        "k8s://",
        "--name",
        "spark",
        "--num-executors",
        "2",
        "--executor-memory",
        "64m",
        "--memory-overhead",
        "0",
        "--container-image",
        "hollow/spark:1",
        "-c",
        "offermill.kubernetes.leaseDuration=4s",
        "-c",
        "spark.kubernetes.driver.requestTimeout=3s",
        "-c",
        "spark.kubernetes.driver.pod.name=driver",
        "--until-finished",
        "--spark-app-id",
        "app-1",
        "--files",
        "log4j2.properties",
        "--spark-driver",
        "spark://CoarseGrainedScheduler@d:7078",
        "-c",
        "spark.kubernetes.executor.podNamePrefix=pi-1f",
    ];
    let maps = "api/v1/namespaces/default/configmaps";
    let leases = "apis/coordination.k8s.io/v1/namespaces/default/leases";
    let mut run = start(&folder, &all);
    assert_eq!(wait_running(&mut run).len(), 2);
    assert_eq!(pods("spark"), ["pi-1f-exec-0", "pi-1f-exec-1"]);
    assert_eq!(
        (owners(maps, "spark"), owners(leases, "spark")),
        (vec!["Lease".into()], vec!["Pod".into()])
    );
    for pod in pods("spark") {
        ctl(&["exit", &pod, "0"]);
    }
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    super::wait_pods("spark", 0);
    assert_eq!((owners(maps, "spark").len(), owners(leases, "spark").len()), (0, 0));
    let mut run = start(&folder, &all);
    wait_running(&mut run);
    run.signal("KILL");
    run.end();
    curl("DELETE", "/api/v1/namespaces/default/pods/driver", None);
    super::wait_pods("spark", 0);
    crate::eventually::eventually(super::PATIENCE, "all is deleted", || {
        let left = (owners(maps, "spark"), owners(leases, "spark"));
        if left.0.is_empty() && left.1.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// Goal: what executors wait for is told in the cluster's words. Method: an image that is missing, and pods that fit on
/// no node.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn what_executors_wait_for_is_told() {
    let folder = Folder::new();
    for (name, image, cores, why) in [
        ("imageless", "missing/w:1", "1", "ErrImagePull"),
        ("roomless", "hollow/w:1", "64", "Insufficient cpu"),
    ] {
        let flags = ["--master", "k8s://", "--executor-cores", cores, "--shutdown-timeout", "3s"];
        let mut run = start(&folder, &arguments(name, image, &flags));
        let is_told = |event: &Value| {
            event["event"] == "waiting" && event["unstarted"].to_string().contains(why)
        };
        run.event(is_told);
        run.signal("INT");
        let ended = run.end();
        // A node takes its time to delete a pod whose image is missing.
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.output);
        super::finish_deletion(name);
    }
}

/// Goal: what the user may not do is named before anything is created. Method: a service account without rights, then
/// with the rights of the guide's manifest but one, then with all; a namespace that doesn't exist, and a wrong token.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn missing_rights_are_named() {
    let folder = Folder::new();
    // Each attempt has a namespace of its own, without the rights of a former one.
    let own = format!("rights-{}", std::process::id());
    let own = own.as_str();
    curl("POST", "/api/v1/namespaces", Some(&format!(r#"{{"metadata":{{"name":"{own}"}}}}"#)));
    let accounts = format!("/api/v1/namespaces/{own}/serviceaccounts");
    curl("POST", &accounts, Some(r#"{"metadata":{"name":"robot"}}"#));
    let token = account_token(own);
    let path = folder.write("token", &token);
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let authority = format!(
        "spark.kubernetes.authenticate.caCertFile={}/pki/ca.crt",
        variable("KUBERNETES_WORK_DIR")
    );
    let address = format!("k8s://{}", url());
    let login = "spark.kubernetes.authenticate.oauthTokenFile=token";
    let flags = ["--master", &address, "--namespace", own, "-c", login, "-c", &authority];
    let arguments = |flags: &[&str]| -> Vec<String> {
        arguments("rights", "hollow/w:1", flags).into_iter().map(str::to_owned).collect()
    };
    let run = |flags: &[&str]| {
        let arguments = arguments(flags);
        start(&folder, &arguments.iter().map(String::as_str).collect::<Vec<&str>>())
    };
    let refused = |flags: &[&str], message: &str| {
        let ended = run(flags).end();
        assert_eq!(ended.code, Some(4), "{}", ended.output);
        assert!(ended.output.contains(message), "{message}: {}", ended.output);
    };
    let all = "no right to create, get, list, watch, delete, deletecollection pods, nor to create, get, update, \
               delete leases in namespace rights-";
    refused(&flags, all);
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{own}");
    let role = |verbs: &str| {
        format!(
            r#"{{"metadata":{{"name":"offermill"}},"rules":[
            {{"apiGroups":[""],"resources":["pods"],"verbs":[{verbs}]}},
            {{"apiGroups":["coordination.k8s.io"],"resources":["leases"],
            "verbs":["create","get","update","delete"]}}]}}"#
        )
    };
    let partly = role(r#""create","get","list","watch","delete""#);
    curl("POST", &format!("{roles}/roles"), Some(&partly));
    let binding = format!(
        r#"{{"metadata":{{"name":"offermill"}},
        "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"offermill"}},
        "subjects":[{{"kind":"ServiceAccount","name":"robot","namespace":"{own}"}}]}}"#
    );
    curl("POST", &format!("{roles}/rolebindings"), Some(&binding));
    crate::eventually::eventually(super::PATIENCE, "one right is missing", || {
        let ended = run(&flags).end();
        let is_told = ended.output.contains("no right to deletecollection pods in namespace");
        if is_told { Ok(()) } else { Err(ended.output) }
    });
    let wholly = role(r#""create","get","list","watch","delete","deletecollection""#);
    curl("PUT", &format!("{roles}/roles/offermill"), Some(&wholly));
    let mut allowed = run(&flags);
    wait_running(&mut allowed);
    allowed.signal("INT");
    let ended = allowed.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    folder.write("token", "wrong");
    refused(&flags, "the API server doesn't accept the user's token or certificate");
    let elsewhere = ["--master", "k8s://", "--namespace", "nowhere"];
    refused(&elsewhere, "there is no namespace nowhere");
}

/// The token of the service account in a namespace.
fn account_token(namespace: &str) -> String {
    crate::eventually::eventually(super::PATIENCE, "the account's token", || {
        let secrets = curl("GET", &format!("/api/v1/namespaces/{namespace}/secrets"), None);
        let list: Value = serde_json::from_str(&secrets).map_err(|error| error.to_string())?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let is_token = |it: &&Value| {
            it["metadata"]["annotations"]["kubernetes.io/service-account.name"] == "robot"
        };
        let token = items.iter().find(is_token).and_then(|it| it["data"]["token"].as_str());
        token.map(decoded).ok_or(secrets)
    })
}

/// Decodes base 64.
fn decoded(text: &str) -> String {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.chars().filter_map(|digit| DIGITS.find(digit));
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_usize, 0);
    for value in values {
        bits = bits << 6 | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
        bits &= (1 << count) - 1;
    }
    String::from_utf8(bytes).unwrap()
}
