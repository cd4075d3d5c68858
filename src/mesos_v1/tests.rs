//! Tests of the codec: random calls in both encodings, and unusual JSON.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use prost::Message as _;

use super::codec::{Codec, Encoding};
use super::json::{Named, UNRECOGNIZED};
use super::messages::*;

const JSON: Codec = Codec::new(Encoding::Json);
const PROTOBUF: Codec = Codec::new(Encoding::Protobuf);

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,4}", any::<String>()]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

/// Numbers as in Mesos. (With more than 15 digits JSON may lose the last bit.)
fn number() -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(|thousandths| f64::from(thousandths) / 1000.0)
}

fn value_of<E: Named + std::fmt::Debug>() -> impl Strategy<Value = i32> {
    prop::sample::select(E::NAMES).prop_map(|(value, _)| value.into())
}

fn labels() -> BoxedStrategy<Labels> {
    let label = (text(), option::of(text())).prop_map(|(key, value)| Label { key, value });
    vec(label, 0..3).prop_map(|labels| Labels { labels }).boxed()
}

fn ranges() -> BoxedStrategy<Ranges> {
    vec(any::<(u64, u64)>(), 0..3)
        .prop_map(|all| Ranges {
            range: all.into_iter().map(|(begin, end)| Range { begin, end }).collect(),
        })
        .boxed()
}

fn reservation() -> BoxedStrategy<ReservationInfo> {
    (
        option::of(value_of::<ReservationType>()),
        option::of(text()),
        option::of(text()),
        option::of(labels()),
    )
        .prop_map(|(r#type, role, principal, labels)| ReservationInfo {
            r#type,
            role,
            principal,
            labels,
        })
        .boxed()
}

fn disk() -> BoxedStrategy<DiskInfo> {
    let source = (value_of::<DiskSourceType>(), option::of(text()), option::of(labels())).prop_map(
        |(r#type, root, metadata)| DiskSource {
            r#type,
            path: Some(DiskPath { root }),
            metadata,
            ..DiskSource::default()
        },
    );
    let persistence =
        (text(), option::of(text())).prop_map(|(id, principal)| Persistence { id, principal });
    (option::of(persistence), option::of(source), option::of(volume()))
        .prop_map(|(persistence, source, volume)| DiskInfo { persistence, volume, source })
        .boxed()
}

fn resource() -> BoxedStrategy<Resource> {
    let amount = (option::of(number()), option::of(ranges()), option::of(vec(text(), 0..3)));
    let whose = (
        option::of(text()),
        option::of(text()),
        option::of(reservation()),
        vec(reservation(), 0..3),
    );
    let more = (option::of(disk()), any::<bool>(), any::<bool>());
    (text(), value_of::<ValueType>(), amount, whose, more)
        .prop_map(|(name, r#type, amount, whose, more)| Resource {
            name,
            r#type,
            scalar: amount.0.map(|value| Scalar { value }),
            ranges: amount.1,
            set: amount.2.map(|item| Set { item }),
            role: whose.0,
            allocation_info: Some(AllocationInfo { role: whose.1 }),
            reservation: whose.2,
            reservations: whose.3,
            disk: more.0.map(Box::new),
            revocable: more.1.then(RevocableInfo::default),
            shared: more.2.then(SharedInfo::default),
            provider_id: None,
        })
        .boxed()
}

fn secret() -> BoxedStrategy<Secret> {
    (option::of(value_of::<SecretType>()), text(), option::of(bytes()))
        .prop_map(|(r#type, name, data)| Secret {
            r#type,
            reference: Some(SecretReference { name, key: None }),
            value: data.map(|data| SecretValue { data }),
        })
        .boxed()
}

fn command() -> BoxedStrategy<CommandInfo> {
    let uri = (text(), option::of(any::<bool>()), option::of(any::<bool>()), option::of(text()))
        .prop_map(|(value, executable, extract, output_file)| Uri {
            value,
            executable,
            extract,
            cache: executable,
            output_file,
        });
    let variable =
        (text(), option::of(value_of::<VariableType>()), option::of(text()), option::of(secret()))
            .prop_map(|(name, r#type, value, secret)| Variable { name, r#type, value, secret });
    let environment = vec(variable, 0..3).prop_map(|variables| Environment { variables });
    let run =
        (option::of(any::<bool>()), option::of(text()), vec(text(), 0..3), option::of(text()));
    (vec(uri, 0..3), option::of(environment), run)
        .prop_map(|(uris, environment, (shell, value, arguments, user))| CommandInfo {
            uris,
            environment,
            shell,
            value,
            arguments,
            user,
        })
        .boxed()
}

fn image() -> BoxedStrategy<Image> {
    (value_of::<ImageType>(), text(), option::of(secret()), option::of(any::<bool>()))
        .prop_map(|(r#type, name, config, cached)| Image {
            r#type,
            appc: None,
            docker: Some(DockerImage { name, config }),
            cached,
        })
        .boxed()
}

fn volume() -> BoxedStrategy<Volume> {
    let source = (option::of(value_of::<VolumeSourceType>()), text(), option::of(secret()))
        .prop_map(|(r#type, name, secret)| VolumeSource {
            r#type,
            docker_volume: Some(DockerVolume { name: name.clone(), ..DockerVolume::default() }),
            sandbox_path: Some(SandboxPath { r#type: None, path: name }),
            secret,
            host_path: None,
        });
    (value_of::<VolumeMode>(), text(), option::of(text()), option::of(image()), option::of(source))
        .prop_map(|(mode, container_path, host_path, image, source)| Volume {
            mode,
            container_path,
            host_path,
            image,
            source,
        })
        .boxed()
}

fn container() -> BoxedStrategy<ContainerInfo> {
    let port = || any::<(u32, u32)>();
    let docker = (
        text(),
        option::of(value_of::<DockerNetwork>()),
        vec(port(), 0..3),
        vec((text(), text()), 0..3),
    )
        .prop_map(|(image, network, ports, parameters)| DockerInfo {
            image,
            network,
            port_mappings: ports
                .into_iter()
                .map(|(host_port, container_port)| DockerPortMapping {
                    host_port,
                    container_port,
                    protocol: None,
                })
                .collect(),
            parameters: parameters
                .into_iter()
                .map(|(key, value)| Parameter { key, value })
                .collect(),
            privileged: Some(true),
            ..DockerInfo::default()
        });
    let network = (
        option::of(text()),
        option::of(value_of::<Protocol>()),
        vec(text(), 0..3),
        option::of(labels()),
    )
        .prop_map(|(name, protocol, groups, labels)| NetworkInfo {
            ip_addresses: vec![IpAddress { protocol, ip_address: name.clone() }],
            name,
            groups,
            labels,
            port_mappings: vec![],
        });
    let mesos = option::of(image()).prop_map(|image| MesosInfo { image });
    let who = (value_of::<ContainerType>(), option::of(docker), option::of(mesos));
    (who, vec(volume(), 0..3), option::of(text()), vec(network, 0..3))
        .prop_map(|((r#type, docker, mesos), volumes, hostname, network_infos)| ContainerInfo {
            r#type,
            volumes,
            hostname,
            docker,
            mesos,
            network_infos,
        })
        .boxed()
}

fn task() -> BoxedStrategy<TaskInfo> {
    let grace = option::of(any::<i64>()).prop_map(|nanoseconds| KillPolicy {
        grace_period: nanoseconds.map(|nanoseconds| DurationInfo { nanoseconds }),
    });
    let ids = (text(), text(), text());
    let runs = (option::of(command()), option::of(container()), option::of(grace));
    let more = (option::of(bytes()), option::of(labels()), btree_map(text(), number(), 0..3));
    (ids, vec(resource(), 0..3), runs, more)
        .prop_map(|(ids, resources, runs, more)| TaskInfo {
            name: ids.0,
            task_id: ids.1.into(),
            agent_id: ids.2.into(),
            resources,
            command: runs.0,
            container: runs.1.map(Box::new),
            kill_policy: runs.2,
            data: more.0,
            labels: more.1,
            limits: more.2.into_iter().map(|(name, value)| (name, Scalar { value })).collect(),
            ..TaskInfo::default()
        })
        .boxed()
}

fn framework() -> BoxedStrategy<FrameworkInfo> {
    let quantities = btree_map(text(), number().prop_map(|value| Scalar { value }), 0..3);
    let least = vec(quantities.prop_map(|quantities| ResourceQuantities { quantities }), 0..3);
    let filters = least.prop_map(|quantities| OfferFilters {
        min_allocatable_resources: Some(MinAllocatableResources { quantities }),
    });
    let capability =
        option::of(value_of::<CapabilityType>()).prop_map(|r#type| Capability { r#type });
    let who = (text(), text(), option::of(text()), option::of(text()));
    (
        who,
        option::of(number()),
        vec(text(), 0..3),
        vec(capability, 0..3),
        btree_map(text(), filters, 0..3),
    )
        .prop_map(
            |(
                (user, name, id, principal),
                failover_timeout,
                roles,
                capabilities,
                offer_filters,
            )| FrameworkInfo {
                user,
                name,
                id: id.map(FrameworkId::from),
                failover_timeout,
                checkpoint: Some(true),
                roles,
                principal,
                capabilities,
                offer_filters,
                ..FrameworkInfo::default()
            },
        )
        .boxed()
}

fn constraints() -> BoxedStrategy<OfferConstraints> {
    let selector = (option::of(text()), option::of(value_of::<Pseudoattribute>())).prop_map(
        |(attribute_name, pseudoattribute_type)| Selector { attribute_name, pseudoattribute_type },
    );
    let predicate = prop_oneof![
        Just(Predicate { exists: Some(Exists {}), ..Predicate::default() }),
        Just(Predicate { not_exists: Some(NotExists {}), ..Predicate::default() }),
        text().prop_map(|value| Predicate {
            text_equals: Some(TextEquals { value }),
            ..Predicate::default()
        }),
        text().prop_map(|regex| Predicate {
            text_matches: Some(TextMatches { regex }),
            ..Predicate::default()
        }),
    ];
    let constraint = (selector, predicate)
        .prop_map(|(selector, predicate)| AttributeConstraint { selector, predicate });
    let group = vec(constraint, 0..3)
        .prop_map(|attribute_constraints| ConstraintGroup { attribute_constraints });
    let role = vec(group, 0..3).prop_map(|groups| RoleConstraints { groups });
    btree_map(text(), role, 0..3)
        .prop_map(|role_constraints| OfferConstraints { role_constraints })
        .boxed()
}

fn operation() -> BoxedStrategy<Operation> {
    prop_oneof![
        vec(task(), 0..3).prop_map(|task_infos| Operation {
            r#type: Some(OperationType::Launch.into()),
            launch: Some(Launch { task_infos }),
            ..Operation::default()
        }),
        (vec(resource(), 0..2), vec(resource(), 0..2), text()).prop_map(
            |(source, resources, id)| Operation {
                r#type: Some(OperationType::Reserve.into()),
                id: Some(id.into()),
                reserve: Some(Reserve { source, resources }),
                ..Operation::default()
            }
        ),
    ]
    .boxed()
}

/// The parts of a call. A real call has only one of them, which makes no difference here.
fn a_call() -> BoxedStrategy<Call> {
    let filters =
        || option::of(option::of(number()).prop_map(|refuse_seconds| Filters { refuse_seconds }));
    let offers = || vec(text().prop_map(OfferId::from), 0..3);
    let subscribe = (framework(), vec(text(), 0..3), option::of(constraints())).prop_map(
        |(framework_info, suppressed_roles, offer_constraints)| call::Subscribe {
            framework_info,
            suppressed_roles,
            offer_constraints,
        },
    );
    let accept = (offers(), vec(operation(), 0..3), filters()).prop_map(
        |(offer_ids, operations, filters)| call::Accept { offer_ids, operations, filters },
    );
    let decline =
        (offers(), filters()).prop_map(|(offer_ids, filters)| call::Decline { offer_ids, filters });
    let acknowledge = (text(), text(), bytes()).prop_map(|(agent, task, uuid)| call::Acknowledge {
        agent_id: agent.into(),
        task_id: task.into(),
        uuid,
    });
    let what = prop_oneof![
        subscribe.prop_map(|subscribe| Call { subscribe: Some(subscribe), ..Call::default() }),
        accept.prop_map(|accept| Call { accept: Some(accept), ..Call::default() }),
        decline.prop_map(|decline| Call { decline: Some(decline), ..Call::default() }),
        acknowledge
            .prop_map(|acknowledge| Call { acknowledge: Some(acknowledge), ..Call::default() }),
    ];
    (what, value_of::<call::Type>(), option::of(text()))
        .prop_map(|(what, r#type, id)| Call {
            r#type: Some(r#type),
            framework_id: id.map(FrameworkId::from),
            ..what
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Goal: decoding reverses encoding, in both encodings. Method: random calls; the JSON contains no null.
    #[test]
    fn calls_come_back(call in a_call()) {
        prop_assert_eq!(&Call::decode(&PROTOBUF.encode(&call)[..]).unwrap(), &call);
        let json = JSON.encode(&call);
        prop_assert_eq!(&serde_json::from_slice::<Call>(&json).unwrap(), &call);
        prop_assert!(!has_null(&serde_json::from_slice(&json).unwrap()));
    }

    /// Goal: decoding never panics, and error messages are short. Method: random bytes, and a real event with some
    /// bytes changed.
    #[test]
    fn reading_is_total(
        noise in vec(any::<u8>(), 0..100),
        changes in vec((0..OFFERS.len(), any::<u8>()), 0..4),
    ) {
        let mut changed = OFFERS.to_vec();
        for (at, byte) in changes {
            changed[at] = byte;
        }
        let again = serde_json::from_slice::<Event>(&changed).map(|event| event.encode_to_vec());
        for record in [noise, changed].into_iter().chain(again.ok()) {
            for error in [JSON, PROTOBUF].into_iter().filter_map(|codec| codec.decode(&record).err()) {
                let text = error.to_string();
                prop_assert!(text.chars().count() <= 250 && !text.contains(char::is_control), "{:?}", text);
            }
        }
    }
}

const OFFERS: &[u8] = br#"{"type":"OFFERS","offers":{"offers":[{"id":{"value":"O1"},"framework_id":{"value":"F"},
    "agent_id":{"value":"S1"},"hostname":"h","resources":[{"name":"ports","type":"RANGES","ranges":{"range":
    [{"begin":31000,"end":18446744073709551615}]},"role":"*"}],"attributes":[{"name":"t","type":"SCALAR",
    "scalar":{"value":3}}],"unavailability":{"start":{"nanoseconds":-5}}}]}}"#;

fn has_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(values) => values.iter().any(has_null),
        serde_json::Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Goal: JSON may contain unknown fields and names, and numbers of any form. Method: one event with all of them.
#[test]
fn json_is_read_leniently() {
    let record = br#"{"type":"UPDATE","new":{"deep":[1,{}]},"update":{"more":null,"status":{"task_id":{"value":"t"},
        "state":"TASK_SOMETHING","reason":{},"source":1,"uuid":"AAE","data":null,"timestamp":5,
        "unreachable_time":{"nanoseconds":9223372036854775807}}}}"#;
    let event = JSON.decode(record).unwrap();
    let status = event.update.unwrap().status;
    assert_eq!(
        (status.state, status.reason, status.source),
        (UNRECOGNIZED, Some(UNRECOGNIZED), Some(1))
    );
    assert!(TaskState::try_from(status.state).is_err());
    assert_eq!((status.uuid, status.data, status.timestamp), (Some(vec![0, 1]), None, Some(5.0)));
    assert_eq!(status.unreachable_time.unwrap().nanoseconds, i64::MAX);
    assert_eq!(JSON.decode(OFFERS).unwrap().offers.unwrap().offers[0].resources[0].role(), "*");
}

/// Goal: deep nesting can't overflow the stack. Method: nested containers, which both encodings reject if they are too
/// deep; an unknown field may be of any depth, because it is skipped.
#[test]
fn nesting_is_limited() {
    let skipped = format!("{{\"new\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(JSON.decode(skipped.as_bytes()).is_ok());
    for (depth, read) in [(90, true), (200, false), (1000, false)] {
        let id = ContainerId::from_depth(depth);
        assert_eq!(ContainerId::decode(&id.encode_to_vec()[..]).is_ok(), read, "{depth}");
        assert_eq!(
            serde_json::from_slice::<ContainerId>(&serde_json::to_vec(&id).unwrap()).is_ok(),
            read,
            "{depth}"
        );
    }
}

impl ContainerId {
    fn from_depth(depth: usize) -> ContainerId {
        let wrap = |inner| ContainerId { value: String::new(), parent: Some(Box::new(inner)) };
        (0..depth).fold(ContainerId::default(), |id, _| wrap(id))
    }
}

/// Goal: every name maps back to its value. Method: all values of the enumerations that events contain.
#[test]
fn names_are_unique() {
    fn check<E: Named + PartialEq + std::fmt::Debug>() {
        let names: BTreeMap<_, _> = E::NAMES.iter().map(|(value, name)| (*name, *value)).collect();
        assert_eq!(names.len(), E::NAMES.len());
        for (name, value) in names {
            assert_eq!((E::from_name(name), value.name()), (Some(value), name));
        }
    }
    check::<event::Type>();
    check::<call::Type>();
    check::<TaskState>();
    check::<Reason>();
    check::<Source>();
    check::<OperationState>();
    check::<ValueType>();
}

/// Goal: a secret can't be logged by accident. Method: print one.
#[test]
fn secrets_are_not_printed() {
    let secret = SecretValue { data: b"hunter2".to_vec() };
    assert_eq!(
        format!("{:?}", Secret { value: Some(secret), ..Secret::default() }).matches("104").count(),
        0
    );
}
