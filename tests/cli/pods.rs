//! Runs on Kubernetes with a fake API server, and `offermill clean`.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::eventually::eventually;
use crate::support::{Ended, Folder, Run, finish};

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of a run with executors of one core.
fn arguments<'a>(master: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let size = ["--executor-memory", "64m", "-c", "offermill.kubernetes.leaseDuration=3s"];
    let image = ["--container-image", "w:1", "-c", "spark.kubernetes.driver.requestTimeout=2s"];
    let all = [&["run", "--json", "--master", master][..], &size, &image, flags];
    [&all.concat()[..], &["--", "/bin/worker", "{{EXECUTOR_ID}}"]].concat()
}

fn master(server: &ApiServer) -> String {
    format!("k8s://{}", server.url)
}

fn clean(folder: &Folder, master: &str, flags: &[&str]) -> Ended {
    let lease = ["-c", "offermill.kubernetes.leaseDuration=3s"];
    let timeout = ["-c", "spark.kubernetes.driver.requestTimeout=2s"];
    finish(
        folder,
        &[&["clean", "--master", master, "--namespace", "jobs"], &lease[..], &timeout, flags]
            .concat(),
    )
}

/// The pods' names, without waiting.
fn pods(server: &ApiServer) -> Vec<String> {
    server.state().pods.keys().cloned().collect()
}

/// Waits until `count` executors run. Returns their names.
fn wait_running(run: &mut Run, count: usize) -> Vec<String> {
    (0..count).map(|_| text(&run.event_named("running")["executor"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Goal: a run goes to its end: pods have what the settings say, executors are told by their nodes, and nothing is
/// left. Method: two executors that finish.
#[test]
fn a_run_ends_and_leaves_nothing() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let flags = [
        "--num-executors",
        "2",
        "--until-finished",
        "--name",
        "My ETL",
        "--namespace",
        "jobs",
        "-c",
        "spark.kubernetes.executor.label.team=a",
        "-c",
        "spark.kubernetes.executor.limit.cores=1500m",
        "-c",
        "spark.kubernetes.executor.secrets.db=/etc/db",
        "-c",
        "spark.kubernetes.executor.secretKeyRef.PW=db:password",
        "--env",
        "A=$(B)",
    ];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    assert_eq!(run.event_named("registered")["framework_id"], "jobs/my-etl");
    let placed = run.event_named("placed");
    assert_eq!((&placed["host"], &placed["agent_id"]), (&json!(""), &json!("")));
    let bound = run.event_named("bound");
    assert_eq!((&bound["host"], &bound["agent_id"]), (&json!("n1"), &json!("n1")));
    let names = wait_running(&mut run, 2);
    for name in &names {
        assert!(name.starts_with("my-etl-"), "{name}");
        server.exit(&name.replace('.', "-"), 0);
    }
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(
        ended.errors.contains("on Kubernetes the run's name is \"my-etl\""),
        "{}",
        ended.errors
    );
    let summary = ended.events().pop().unwrap();
    assert_eq!(summary["agents"][0]["executors"]["finished"], 2, "{summary}");
    let manifest = server.state().created[0].clone();
    let container = &manifest["spec"]["containers"][0];
    assert_eq!(manifest["metadata"]["labels"]["team"], "a");
    assert_eq!(container["resources"]["limits"]["cpu"], "1500m");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/db");
    assert_eq!(manifest["spec"]["volumes"][0]["secret"]["secretName"], "db");
    let environment = container["env"].as_array().unwrap();
    let variable = |name: &str| environment.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(
        variable("PW")["valueFrom"]["secretKeyRef"],
        json!({ "name": "db", "key": "password" })
    );
    assert_eq!(variable("A")["value"], "$$(B)");
    assert_eq!(container["command"][0], "/bin/worker");
    assert!(pods(&server).is_empty() && server.state().leases.is_empty());
}

/// Goal: a signal ends executors and leaves nothing; a second run of the name is refused meanwhile. Method: both.
#[test]
fn a_signal_ends_executors() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let flags = ["--num-executors", "2", "--name", "etl"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    wait_running(&mut run, 2);
    let quick = ["-c", "offermill.kubernetes.connectTimeout=1s"];
    let second = finish(&folder, &arguments(&master, &[&flags[..], &quick].concat()));
    assert_eq!(second.code, Some(4), "{}", second.output);
    assert!(second.output.contains("another run named etl is active"), "{}", second.output);
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let causes: Vec<Value> = ended
        .events()
        .iter()
        .filter(|it| it["event"] == "ended")
        .map(|it| it["cause"].clone())
        .collect();
    assert_eq!(causes, [json!("requested"), json!("requested")]);
    assert!(pods(&server).is_empty() && server.state().leases.is_empty());
}

/// Goal: what a run has left that was killed stays until it is cleaned; a run that is alive isn't, unless by force.
/// Method: `clean` of a live run, dry and wet; SIGKILL; `clean` again, twice; then by force.
#[test]
fn what_a_killed_run_left_is_cleaned() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let flags = ["--num-executors", "2", "--name", "etl", "--namespace", "jobs"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    let names = wait_running(&mut run, 2);
    let ended = clean(&folder, &master, &["etl"]);
    assert_eq!(ended.code, Some(1), "{}", ended.errors);
    assert!(ended.errors.contains("jobs/etl is alive"), "{}", ended.errors);
    run.signal("KILL");
    run.end();
    let ended = clean(&folder, &master, &["--dry-run", "etl"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    assert!(ended.output.starts_with("jobs/etl has left 2 pods ("), "{}", ended.output);
    assert!(ended.output.contains(&names[0].replace('.', "-")), "{}", ended.output);
    assert_eq!(pods(&server).len(), 2, "a dry run deletes nothing");
    let ended = clean(&folder, &master, &["etl"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.output.starts_with("deleted 2 pods ("), "{}", ended.output);
    assert!(pods(&server).is_empty() && server.state().leases.is_empty());
    let ended = clean(&folder, &master, &["etl"]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "nothing is left of jobs/etl\n"));
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    wait_running(&mut run, 2);
    let ended = clean(&folder, &master, &["--force", "etl"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(pods(&server).is_empty() && server.state().leases.is_empty());
    let ended = run.end();
    assert_eq!(ended.code, Some(4), "{}", ended.output);
}

/// Goal: of a second signal, pods stay, and the message says how to delete them; the next run of the name takes them
/// over. Method: executors that ignore the first signal.
#[test]
fn a_second_signal_leaves_pods() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let flags = ["--num-executors", "1", "--name", "etl", "--namespace", "jobs"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    let names = wait_running(&mut run, 1);
    server.state().failing = vec![("DELETE", 500)];
    run.signal("INT");
    run.event_named("stopping");
    sleep(Duration::from_millis(400)); // or it would count as the same
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.output);
    let command = format!("offermill clean --master {master} --namespace jobs etl");
    assert!(ended.errors.contains(&command), "{}", ended.errors);
    server.state().failing.clear();
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    assert_eq!(text(&run.event_named("adopted")["executor"]), names[0]);
    wait_running(&mut run, 1);
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: rights, namespaces and servers that are missing are named in one sentence before anything is created. Method:
/// each; the run ends with 4.
#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new();
    let refused = |server: &ApiServer, message: &str| {
        let master = master(server);
        let flags = ["--num-executors", "1", "--name", "etl", "--namespace", "jobs"];
        let ended = finish(&folder, &arguments(&master, &flags));
        assert_eq!(ended.code, Some(4), "{}", ended.output);
        assert!(ended.output.contains(message), "{message}: {}", ended.output);
        assert!(server.state().leases.is_empty() && server.state().created.is_empty());
    };
    let server = ApiServer::start();
    server.state().denied_rights = vec!["create pods", "deletecollection pods", "update leases"];
    refused(
        &server,
        "no right to create, deletecollection pods, nor to update leases in namespace jobs",
    );
    let server = ApiServer::start();
    server.state().missing_namespace = Some("jobs");
    refused(&server, "there is no namespace jobs");
    let server = ApiServer::start();
    server.state().failing = vec![("GET /version", 401)];
    refused(&server, "the API server doesn't accept the user's token or certificate");
    let server = ApiServer::start();
    server.state().failing = vec![("GET /version", 404)];
    refused(&server, "there is no API server at this address");
}

/// Goal: what executors wait for is told: room on nodes in the scheduler's words, and a quota in the server's. Method:
/// a full cluster, of which a pod says so; and a quota of one pod.
#[test]
fn what_executors_wait_for_is_told() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    server.state().is_full = true;
    let master = master(&server);
    let mut run =
        Run::start(&folder, &arguments(&master, &["--num-executors", "2", "--name", "etl"]));
    for _ in 0..2 {
        let name = text(&run.event_named("placed")["executor"]).replace('.', "-");
        let is_there =
            || server.state().pods.contains_key(&name).then_some(()).ok_or(String::new());
        eventually(PATIENCE, "the pod", is_there);
        server.change(&name, |pod| {
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 Insufficient cpu.",
            }]);
        });
    }
    let waiting = run.event_named("waiting");
    let why = json!([{ "executors": 2, "why": "0/1 nodes are available: 1 Insufficient cpu." }]);
    assert_eq!(waiting["unstarted"], why, "{waiting}");
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));

    let server = ApiServer::start();
    server.state().quota = Some(1);
    let master = format!("k8s://{}", server.url);
    let mut run =
        Run::start(&folder, &arguments(&master, &["--num-executors", "2", "--name", "etl"]));
    let waiting = run.event(|event| event["event"] == "waiting" && !event["denied"].is_null());
    assert!(text(&waiting["denied"]).contains("exceeded quota: q"), "{waiting}");
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: pods have what a template and volumes say, and stay after their ends if they are to. Method: an executor that
/// finishes, with all of it; what is left is cleaned.
#[test]
fn pods_have_templates_and_volumes() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    folder.write(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {labels: {team: b, zone: c}}\nspec:\n  containers:\n  - \
         name: proxy\n    image: p:1\n  - name: main\n    securityContext: {runAsUser: 7}\n",
    );
    let volumes = "spark.kubernetes.executor.volumes";
    let settings = [
        "spark.kubernetes.executor.podTemplateFile=pod.yaml".to_owned(),
        "spark.kubernetes.executor.podTemplateContainerName=main".to_owned(),
        "spark.kubernetes.executor.label.team=a".to_owned(),
        "spark.kubernetes.executor.deleteOnTermination=false".to_owned(),
        format!("{volumes}.hostPath.data.options.path=/srv"),
        format!("{volumes}.hostPath.data.mount.path=/data"),
        format!("{volumes}.hostPath.data.mount.readOnly=true"),
        format!("{volumes}.emptyDir.tmp.mount.path=/scratch"),
        format!("{volumes}.emptyDir.tmp.options.sizeLimit=1Gi"),
        format!("{volumes}.persistentVolumeClaim.own.options.claimName=OnDemand"),
        format!("{volumes}.persistentVolumeClaim.own.options.storageClass=fast"),
        format!("{volumes}.persistentVolumeClaim.own.options.sizeLimit=10Gi"),
        format!("{volumes}.persistentVolumeClaim.own.mount.path=/own"),
    ];
    let flags =
        ["--num-executors", "1", "--until-finished", "--name", "etl", "--namespace", "jobs"];
    let settings = settings.iter().flat_map(|setting| ["-c", setting.as_str()]);
    let flags: Vec<&str> = flags.into_iter().chain(settings).collect();
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    let names = wait_running(&mut run, 1);
    let pod = names[0].replace('.', "-");
    server.exit(&pod, 0);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let manifest = server.state().created[0].clone();
    let labels = &manifest["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["zone"]), (&json!("a"), &json!("c")));
    let containers = &manifest["spec"]["containers"];
    assert_eq!(
        (&containers[0]["name"], &containers[1]["name"]),
        (&json!("executor"), &json!("proxy"))
    );
    assert_eq!(containers[0]["securityContext"]["runAsUser"], 7);
    assert_eq!(containers[0]["image"], "w:1");
    let expected = json!([
        { "name": "tmp", "emptyDir": { "sizeLimit": "1Gi" } },
        { "name": "data", "hostPath": { "path": "/srv" } },
        { "name": "own", "ephemeral": { "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": { "requests": { "storage": "10Gi" } },
        } } } },
    ]);
    assert_eq!(manifest["spec"]["volumes"], expected);
    let expected = json!([
        { "name": "tmp", "mountPath": "/scratch", "readOnly": false },
        { "name": "data", "mountPath": "/data", "readOnly": true },
        { "name": "own", "mountPath": "/own", "readOnly": false },
    ]);
    assert_eq!(containers[0]["volumeMounts"], expected);
    assert_eq!(pods(&server), [pod], "it stays");
    let cleaned = clean(&folder, &master, &["etl"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.errors);
    assert!(pods(&server).is_empty() && server.state().leases.is_empty());
}

/// Goal: executors for which a quota has no room don't fill the summary: they are counted. What they were to replace is
/// replaced once. Method: a quota that lets a failed executor be replaced only after some denials.
#[test]
fn denied_executors_are_counted() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let mut run =
        Run::start(&folder, &arguments(&master, &["--num-executors", "2", "--name", "etl"]));
    let names = wait_running(&mut run, 2);
    server.state().quota = Some(1);
    server.exit(&names[0].replace('.', "-"), 3);
    let failed = run.event(|event| event["event"] == "ended");
    assert_eq!(failed["state"], "failed", "{failed}");
    for _ in 0..2 {
        let denied = run.event(|event| event["event"] == "ended");
        assert_eq!((&denied["cause"], &denied["host"]), (&json!("dropped"), &json!("")));
    }
    server.state().quota = None;
    let third = wait_running(&mut run, 1);
    run.signal("INT");
    let ended = run.end();
    let summary = ended.events().pop().unwrap();
    let executors = summary["executors"].as_array().unwrap();
    let listed: Vec<String> = executors.iter().map(|it| text(&it["executor"])).collect();
    assert_eq!(listed.len(), 3, "{summary}");
    assert!(listed.contains(&third[0]), "{summary}");
    assert_eq!(summary["executors_replaced"], 1, "{summary}");
    assert!(summary["executors_denied"].as_u64().unwrap() >= 2, "{summary}");
}

/// Goal: commands and journals work as on other clusters. Method: a run that is told to grow and to end one executor,
/// and whose journal is replayed.
#[test]
fn commands_and_journals_work() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = master(&server);
    let flags = ["--num-executors", "1", "--name", "etl", "--control", "s", "--journal", "j"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    let names = wait_running(&mut run, 1);
    assert_eq!(finish(&folder, &["ctl", "s", "limit", "2"]).code, Some(0));
    wait_running(&mut run, 1);
    assert_eq!(finish(&folder, &["ctl", "s", "limit", "1"]).code, Some(0));
    assert_eq!(finish(&folder, &["ctl", "s", "kill", &names[0]]).code, Some(0));
    run.event_named("ended");
    let status = finish(&folder, &["ctl", "s", "status"]);
    assert!(status.output.contains("n1"), "{}", status.output);
    assert_eq!(finish(&folder, &["ctl", "s", "stop"]).code, Some(0));
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let replayed = finish(&folder, &["replay", "j", "--expect", "j.answers"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.output);
    assert!(pods(&server).is_empty());
}
