//! Tests of the conversion into Mesos tasks: compared with what was taken of the offers, and with a recorded request.

use std::time::Duration;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::engine::cluster_manager::ResourceProfileId;
use crate::launch::{
    Container, Network, PortMapping, Protocol, Secret, SecretSource, Setup, Uri, Volume,
};
use crate::mesos_v1::messages::Call;
use crate::offer::{Offer, Reservation, Value};
use crate::resources::{
    ExecutorResources, Gpus, Mebibytes, MilliCpus, PortRange, Scalar as Thousandths,
};

fn launch<'a>(executor: &'a str, argv: &[&str], pieces: Vec<TakenResource<'a>>) -> Launch<'a> {
    let argv = argv.iter().map(|argument| (*argument).to_owned()).collect();
    Launch {
        executor,
        profile: ResourceProfileId::default(),
        resources: ExecutorResources {
            cores: MilliCpus::from_millis(100),
            memory: Mebibytes::new(32),
            gpus: Gpus::ZERO,
            port: None,
        },
        pieces,
        command: Command { argv, ..Command::default() },
        queue: None,
    }
}

fn call_of(offers: &[&Offer<'_>], executors: &[Launch<'_>]) -> Result<call::Accept, Error> {
    let refuse = Duration::from_millis(1500);
    accept(
        "etl",
        &HostExecutors::default(),
        &Accept { epoch: 1, agent_id: "S2", offers, executors, refuse },
    )
}

fn task_of(launch: Launch<'_>) -> TaskInfo {
    let offer = Offer::new("O1", "S2", "h", &[], &[]);
    let mut call = call_of(&[&offer], &[launch]).unwrap();
    call.operations.remove(0).launch.unwrap().task_infos.remove(0)
}

/// Goal: the call has the form of one that a real master accepted. Method: the recorded call, decoded, against the
/// built one for the same task, without the fields that only the built one has: the role, and the command as a list.
#[test]
fn calls_are_like_a_recorded_one() {
    let file = "tests/support/mesos/captures/main-protobuf/002-accept-launch.request.pb";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let recorded = Call::decode(&*bytes).unwrap().accept.unwrap();
    let wanted = &recorded.operations[0].launch.as_ref().unwrap().task_infos[0];
    let resources = [Offered::scalar("cpus", 8.0), Offered::scalar("mem", 16384.0)];
    let id = recorded.offer_ids[0].value.clone();
    let offer = Offer::new(&id, &wanted.agent_id.value, "h", &resources, &[]);
    let amounts = [100, 32_000].map(|it| Amount::Scalar(Thousandths::from_thousandths(it)));
    let taken = |(resource, amount)| TakenResource { resource, amount };
    let pieces = resources.iter().zip(amounts).map(taken).collect();
    let mut executor = launch("finishes", &["sh", "-c", "sleep 2; echo hi"], pieces);
    executor.command.form = CommandForm::Shell;
    let asked = Accept {
        epoch: 1,
        agent_id: &wanted.agent_id.value,
        offers: &[&offer],
        executors: &[executor],
        refuse: Duration::ZERO,
    };
    let mut ours = accept("etl", &HostExecutors::default(), &asked).unwrap();
    let task = &mut ours.operations[0].launch.as_mut().unwrap().task_infos[0];
    assert_eq!(task.name, "etl finishes");
    task.name.clone_from(&wanted.name);
    for resource in &mut task.resources {
        let role = resource.allocation_info.take().and_then(|it| it.role);
        assert_eq!(role.as_deref(), Some("*"));
    }
    let command = task.command.as_mut().unwrap();
    assert_eq!(command.value.as_deref(), Some("exec sh -c 'sleep 2; echo hi'"));
    command.value = Some("sleep 2; echo hi".to_owned());
    assert_eq!(ours, recorded);
}

/// Goal: commands have the form that the containerizer expects. Method: each form, and commands that can't be
/// expressed.
#[test]
fn commands_come_in_the_form_of_the_containerizer() {
    let argv = ["run", "--x", "a b"];
    let plain = task_of(launch("e", &argv, Vec::new())).command.unwrap();
    assert_eq!((plain.shell, plain.value.as_deref()), (Some(false), Some("run")));
    assert_eq!(plain.arguments, argv);

    let kind =
        ContainerKind::Docker { image: "i".into(), force_pull: false, parameters: Vec::new() };
    let mut docker = launch("e", &argv, Vec::new());
    docker.command.environment.push(("K".into(), "v".into()));
    let setup = Setup { container: Some(Container::new(kind)), ..Setup::default() };
    docker.command.setup = Some(Arc::new(setup));
    let mut shell = docker.clone();
    let docker = task_of(docker).command.unwrap();
    assert_eq!((docker.shell, docker.value), (Some(false), None));
    assert_eq!(docker.arguments, argv);
    let variable = &docker.environment.unwrap().variables[0];
    assert_eq!((&*variable.name, variable.value.as_deref()), ("K", Some("v")));

    shell.command.form = CommandForm::Shell;
    let line = task_of(shell.clone()).command.unwrap();
    assert_eq!((line.shell, line.value.as_deref()), (Some(true), Some("exec run --x 'a b'")));
    assert!(line.arguments.is_empty());

    shell.command.argv.push("\n".into());
    let offer = Offer::new("O1", "S2", "h", &[], &[]);
    assert!(call_of(&[&offer], &[shell]).unwrap_err().is_setting());
    assert!(call_of(&[&offer], &[launch("e", &[], Vec::new())]).unwrap_err().is_setting());
}

fn setup() -> Setup {
    let mut uri = Uri::new("http://h/a.tgz");
    (uri.cache, uri.output_file) = (true, Some("b".into()));
    Setup {
        uris: vec![uri],
        labels: vec![("team".into(), Some("etl".into())), ("bare".into(), None)],
        kill_grace: Some(Duration::from_millis(2500)),
        user: Some("nobody".into()),
        ..Setup::default()
    }
}

fn with_container(kind: ContainerKind, networks: usize) -> Setup {
    let mut container = Container::new(kind);
    let volume = Volume { host: Some("/h".into()), container: "/c".into(), read_only: true };
    container.volumes.push(volume);
    container.port_mappings.push(PortMapping {
        host: 80,
        container: 8080,
        protocol: Protocol::Udp,
    });
    let network = Network { name: "net".into(), labels: vec![("a".into(), Some("b".into()))] };
    container.networks = vec![network; networks];
    Setup { container: Some(container), ..setup() }
}

fn json_of(setup: Setup) -> serde_json::Value {
    let mut launch = launch("e", &["run"], Vec::new());
    launch.command.setup = Some(Arc::new(setup));
    serde_json::to_value(task_of(launch)).unwrap()
}

/// Goal: the shared setup is converted completely. Method: setups with all fields, for both kinds of container,
/// compared with Mesos' JSON.
#[test]
fn setups_are_told_whole() {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let task = json_of(setup());
    let uri = r#"[{"value": "http://h/a.tgz", "executable": false, "extract": true, "cache": true,
        "output_file": "b"}]"#;
    assert_eq!(task["command"]["uris"], json(uri));
    assert_eq!(task["command"]["user"], "nobody");
    let labels = r#"{"labels": [{"key": "team", "value": "etl"}, {"key": "bare"}]}"#;
    assert_eq!(task["labels"], json(labels));
    assert_eq!(task["kill_policy"], json(r#"{"grace_period": {"nanoseconds": 2500000000}}"#));
    assert_eq!(task["container"], serde_json::Value::Null);

    let docker = |networks| {
        let parameters = vec![("env".into(), "A=b".into())];
        let kind = ContainerKind::Docker { image: "i:1".into(), force_pull: true, parameters };
        json_of(with_container(kind, networks))["container"].take()
    };
    let volumes = r#""volumes": [{"mode": "RO", "container_path": "/c", "host_path": "/h"}]"#;
    let ports =
        r#""port_mappings": [{"host_port": 80, "container_port": 8080, "protocol": "udp"}]"#;
    let labels = r#""labels": {"labels": [{"key": "a", "value": "b"}]}"#;
    let wanted = |network: &str, infos: &str| {
        json(&format!(
            r#"{{"type": "DOCKER", {volumes}, "docker": {{"image": "i:1", "network": "{network}", {ports},
            "parameters": [{{"key": "env", "value": "A=b"}}], "force_pull_image": true}}{infos}}}"#
        ))
    };
    assert_eq!(docker(0), wanted("BRIDGE", ""));
    let infos = format!(r#", "network_infos": [{{"name": "net", {labels}}}]"#);
    assert_eq!(docker(1), wanted("USER", &infos));

    let kind = ContainerKind::Mesos { image: Some("i:1".into()), force_pull: true };
    let wanted = format!(
        r#"{{"type": "MESOS", {volumes}, "mesos": {{"image": {{"type": "DOCKER", "docker": {{"name": "i:1"}},
        "cached": false}}}}, "network_infos": [{{"name": "net", {labels}, {ports}}}]}}"#
    );
    assert_eq!(json_of(with_container(kind.clone(), 1))["container"], json(&wanted));

    let mut launch = launch("e", &["run"], Vec::new());
    launch.command.setup = Some(Arc::new(with_container(kind, 0)));
    let offer = Offer::new("O1", "S2", "h", &[], &[]);
    let error = call_of(&[&offer], &[launch]).unwrap_err().to_string();
    assert!(error.starts_with("port mapping is \"set\", but must be left out"), "{error}");
}

/// Goal: secrets are sent to Mesos as secrets, and don't appear in any debug output. Method: a value and a reference,
/// each as a variable and as a file, with and without a container; and Docker, which doesn't support them.
#[test]
fn secrets_are_told_as_secrets() {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let value = SecretSource::Value(Secret::new("hunter2"));
    let reference = SecretSource::Reference("/store/key".into());
    let setup = Setup {
        secret_variables: vec![("A".into(), value.clone()), ("B".into(), reference.clone())],
        secret_files: vec![("etc/a".into(), value), ("/b".into(), reference)],
        ..Setup::default()
    };
    assert!(!format!("{setup:?}").contains("hunter2"));
    let task = json_of(setup.clone());
    let kept = r#"{"type": "VALUE", "value": {"data": "aHVudGVyMg=="}}"#;
    let named = r#"{"type": "REFERENCE", "reference": {"name": "/store/key"}}"#;
    let variables = format!(
        r#"[{{"name": "A", "type": "SECRET", "secret": {kept}}}, {{"name": "B", "type": "SECRET", "secret": {named}}}]"#
    );
    assert_eq!(task["command"]["environment"]["variables"], json(&variables));
    let volume = |path: &str, secret: &str| {
        let source = format!(r#"{{"type": "SECRET", "secret": {secret}}}"#);
        format!(r#"{{"mode": "RO", "container_path": "{path}", "source": {source}}}"#)
    };
    let volumes = format!("[{}, {}]", volume("etc/a", kept), volume("/b", named));
    let container = &task["container"];
    assert_eq!((&container["type"], &container["volumes"]), (&"MESOS".into(), &json(&volumes)));

    let with_secrets = |kind, files| {
        let Setup { secret_variables, secret_files, .. } = setup.clone();
        let secret_files = if files { secret_files } else { Vec::new() };
        Setup { secret_variables, secret_files, ..with_container(kind, 1) }
    };
    let image = || "i:1".to_owned();
    let kind = ContainerKind::Mesos { image: Some(image()), force_pull: false };
    let task = json_of(with_secrets(kind, true));
    assert_eq!(task["container"]["volumes"].as_array().map(Vec::len), Some(3));
    for files in [false, true] {
        let parameters = Vec::new();
        let kind = ContainerKind::Docker { image: image(), force_pull: false, parameters };
        let mut launch = launch("e", &["run"], Vec::new());
        launch.command.setup = Some(Arc::new(with_secrets(kind, files)));
        let offer = Offer::new("O1", "S2", "h", &[], &[]);
        let error = call_of(&[&offer], &[launch]).unwrap_err().to_string();
        assert!(
            error.starts_with("secret for executors is \"set\", but must be left out"),
            "{error}"
        );
    }
}

/// A resource of an offer: name, whether it is revocable, its reservation roles, whether the reservations are refined,
/// and the amount.
type Piece = (&'static str, bool, Option<Vec<String>>, bool, u64);

fn piece() -> impl Strategy<Value = Piece> {
    let name = prop::sample::select(vec!["cpus", "mem", "gpus", "ports"]);
    let roles = prop::option::of(vec("[a-c]{1,3}", 0..3));
    (name, any::<bool>(), roles, any::<bool>(), 1_u64..5_000_000)
}

const BY: ReservedBy<'static> =
    ReservedBy { principal: Some("me"), labels: &[("k", Some("v")), ("l", None)] };
const ALL_PORTS: [PortRange; 1] = [PortRange::new(0, 65_535)];

fn stack((_, _, roles, _, _): &Piece) -> Vec<Reservation<'_>> {
    let kind = ReservationKind::Dynamic;
    roles.iter().flatten().map(|role| Reservation { kind, role, by: BY }).collect()
}

/// The resource as it is offered.
fn offered<'a>(piece: &'a Piece, stack: &'a [Reservation<'a>]) -> Offered<'a> {
    let (name, revocable, roles, dynamic, amount) = piece;
    let resource = match *name {
        "ports" => Offered::new(name, Value::Ranges(&ALL_PORTS)),
        name => Offered::scalar(name, *amount as f64),
    };
    let resource = match roles.as_deref() {
        None | Some([]) => resource,
        Some([role]) if *dynamic => resource.reserved_by(role, &BY),
        Some([role]) => resource.reserved_for(role),
        Some(_) => resource.with_reservations(Reservations::PostRefinement(stack)),
    };
    resource.with_revocability(if *revocable {
        Revocability::Revocable
    } else {
        Revocability::NonRevocable
    })
}

/// The taken amount, also as a number.
fn amount((name, _, _, _, amount): &Piece) -> (Amount, u64) {
    match *name {
        "ports" => (Amount::Port((amount % 65_536) as u16), amount % 65_536),
        _ => (Amount::Scalar(Thousandths::from_thousandths(*amount)), *amount),
    }
}

/// The same number, computed from the message.
fn counted(resource: &Resource) -> Option<u64> {
    match (&resource.scalar, &resource.ranges) {
        (Some(scalar), None) => Some(Thousandths::from_f64(scalar.value).ok()?.thousandths()),
        (None, Some(ranges)) => match &*ranges.range {
            [Range { begin, end }] if begin == end => Some(*begin),
            _ => None,
        },
        _ => None,
    }
}

/// All properties of a resource except its amount: role, reservations, the principal of a pre-refinement reservation,
/// and whether it is revocable.
type Kept = (Option<String>, Vec<(i32, String)>, Option<String>, bool);

fn kept(resource: &Resource) -> Kept {
    let stack = resource.reservations.iter();
    let stack = stack.map(|it| (it.r#type.unwrap_or(-1), it.role.clone().unwrap_or_default()));
    let principal = resource.reservation.as_ref().and_then(|it| it.principal.clone());
    (resource.role.clone(), stack.collect(), principal, resource.revocable.is_some())
}

fn to_keep(resource: &Offered<'_>) -> Kept {
    let revocable = resource.revocability == Revocability::Revocable;
    match resource.reservations {
        Reservations::PreRefinement { role, dynamic } => {
            let principal = dynamic.and_then(|by| by.principal).map(str::to_owned);
            let role = Some(role).filter(|role| *role != "*").map(str::to_owned);
            (role, Vec::new(), principal, revocable)
        }
        Reservations::PostRefinement(stack) => {
            let dynamic = ReservationType::Dynamic.into();
            let stack = stack.iter().map(|it| (dynamic, it.role.to_owned()));
            (None, stack.collect(), None, revocable)
        }
    }
}

proptest! {
    /// Goal: tasks take exactly what was taken of the offers, to the thousandth, with the properties that were offered.
    /// Method: random pieces of resources with both forms of reservation, distributed over a few executors; the tasks'
    /// amounts are added up by name, and each piece is compared with the resource from which it was taken.
    #[test]
    fn tasks_take_what_was_taken(pieces in vec(piece(), 1..12), executors in 1_usize..4) {
        let stacks: Vec<Vec<Reservation<'_>>> = pieces.iter().map(stack).collect();
        let resources = pieces.iter().zip(&stacks).map(|(piece, stack)| offered(piece, stack));
        let resources: Vec<Offered<'_>> = resources.collect();
        let mut launches: Vec<Launch<'_>> =
            (0..executors).map(|_| launch("e-1.0", &["run"], Vec::new())).collect();
        let mut wanted: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        for (index, (resource, piece)) in resources.iter().zip(&pieces).enumerate() {
            let (amount, counted) = amount(piece);
            launches[index % executors].pieces.push(TakenResource { resource, amount });
            *wanted.entry((index % executors, piece.0)).or_default() += counted;
        }
        let offer = |id, resources| Offer::new(id, "S2", "h", resources, &[]).with_role("eng");
        let (first, second) = (offer("O1", &*resources), offer("O2", &[]));
        let call = call_of(&[&first, &second], &launches).unwrap();
        prop_assert_eq!(call.offer_ids, [Into::into("O1"), Into::into("O2")]);
        prop_assert_eq!(call.filters.unwrap().refuse_seconds, Some(1.5));
        prop_assert_eq!(call.operations.len(), 1);
        let tasks = &call.operations[0].launch.as_ref().unwrap().task_infos;
        prop_assert_eq!(tasks.len(), executors);
        let mut found: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        for (at, (task, launch)) in tasks.iter().zip(&launches).enumerate() {
            prop_assert_eq!((&*task.name, &*task.agent_id.value), ("etl e-1.0", "S2"));
            prop_assert_eq!(task.resources.len(), launch.pieces.len());
            for (resource, taken) in task.resources.iter().zip(&launch.pieces) {
                let number = counted(resource);
                prop_assert!(number.is_some(), "{:?}", resource);
                *found.entry((at, taken.resource.name)).or_default() += number.unwrap_or_default();
                prop_assert_eq!(&resource.name, taken.resource.name);
                let role = resource.allocation_info.as_ref().and_then(|it| it.role.as_deref());
                prop_assert_eq!(role, Some("eng"));
                prop_assert_eq!(kept(resource), to_keep(taken.resource));
                let mut reserved = resource.reservation.iter().chain(&resource.reservations);
                let labelled = |it: &ReservationInfo| it.labels.as_ref().map(|it| it.labels.len());
                prop_assert!(reserved.all(|it| labelled(it) == Some(2)));
            }
        }
        prop_assert_eq!(found, wanted);
    }
}

/// Goal: a host and its tasks have one executor, whose program is the host's; all resources are taken once; a task of
/// another host isn't sent. Method: a host with a setup and two tasks in one accept, a third one later, and one in a
/// host that isn't the agent's last.
#[test]
fn tasks_in_a_host_have_its_executor() {
    let (cpus, mem) = (Offered::scalar("cpus", 8.0), Offered::scalar("mem", 4096.0));
    let taken = |resource, thousandths| {
        TakenResource::new(resource, Amount::Scalar(Thousandths::from_thousandths(thousandths)))
    };
    let pieces = || vec![taken(&cpus, 100), taken(&mem, 32_000)];
    let mut host = launch("h", &["offermill", "task-host"], pieces());
    host.command.hosting = Hosting::Host;
    let setup = Setup { user: Some("nobody".to_owned()), ..Setup::default() };
    host.command.setup = Some(Arc::new(setup));
    let task = |name| {
        let mut task = launch(name, &["sh", "-c", "exit 3"], pieces());
        task.command.hosting = Hosting::In("h".into());
        task
    };
    let hosts = HostExecutors::default();
    let offer = Offer::new("O1", "S2", "h", &[], &[]);
    let sent = |executors: &[Launch<'_>]| {
        let accepted = accept("etl", &hosts, &Accept::new(1, "S2", &[&offer], executors))?;
        Ok::<_, Error>(accepted.operations[0].launch.clone().unwrap().task_infos)
    };
    assert!(sent(&[task("early")]).is_err());
    let tasks = [sent(&[host, task("t1"), task("t2")]).unwrap(), sent(&[task("t3")]).unwrap()];
    let tasks = tasks.concat();
    let executor = tasks[0].executor.clone().unwrap();
    assert!(tasks.iter().all(|task| task.executor.as_ref() == Some(&executor)));
    assert!(tasks.iter().all(|task| task.command.is_none()));
    assert_eq!((executor.executor_id.value.as_str(), tasks[0].task_id.value.as_str()), ("h", "h"));
    let command = executor.command.unwrap();
    assert_eq!(command.arguments, ["offermill", "task-host"]);
    assert_eq!(command.user.as_deref(), Some("nobody"));
    let amounts = |resources: &[Resource]| -> Vec<(String, f64)> {
        let amount = |it: &Resource| (it.name.clone(), it.scalar.as_ref().unwrap().value);
        resources.iter().map(amount).collect()
    };
    let expected = [("cpus".to_owned(), 0.099), ("mem".to_owned(), 32.0)];
    assert_eq!(amounts(&executor.resources), expected);
    assert_eq!(amounts(&tasks[0].resources), [("cpus".to_owned(), 0.001)]);
    assert_eq!(tasks[0].data, None);
    let expected = [("cpus".to_owned(), 0.1), ("mem".to_owned(), 32.0)];
    for task in &tasks[1..] {
        assert_eq!(amounts(&task.resources), expected);
        let command = CommandInfo::decode(task.data.as_deref().unwrap()).unwrap();
        assert_eq!(command.arguments, ["sh", "-c", "exit 3"]);
    }
    let mut other = launch("other", &["offermill", "task-host"], pieces());
    other.command.hosting = Hosting::Host;
    sent(&[other]).unwrap();
    let refused = sent(&[task("late")]).unwrap_err().to_string();
    assert!(
        refused.contains("its host h isn't one that was started on its agent last"),
        "{refused}"
    );
}
