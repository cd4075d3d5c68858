//! The table of the settings that mean something on Mesos only. How it works is said in
//! `key_table.rs`.

use offermill::config::text::parse_bool;
use offermill::launch::Secret;

use crate::settings::containers as container;
use crate::settings::master::Kind;
use crate::settings::mesos as read;
use crate::settings::option::Key;
use crate::settings::sources::Sourced;

/// Mesos' settings.
pub(crate) const MESOS_KEYS: &[Key] = &[
    Key::spark_on_mesos("spark.mesos.role", "role[,role...]")
        .flag("--role")
        .inside("role")
        .default("*")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::roles(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.principal", "name")
        .flag("--principal")
        .variable("SPARK_MESOS_PRINCIPAL")
        .inside("principal")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::principal(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.principal.file", "file")
        .variable("SPARK_MESOS_PRINCIPAL_FILE")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::principal_file(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.secret", "text, for properties files")
        .variable("SPARK_MESOS_SECRET")
        .secret()
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::secret(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.secret.file", "file")
        .flag("--secret-file")
        .variable("SPARK_MESOS_SECRET_FILE")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::secret_file(draft, given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.secretOverHttp", "true or false")
        .flag("--allow-plain-secret")
        .default("false")
        .only(Kind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.mesos.plain_secret, parse_bool)),
    Key::spark_on_mesos("spark.mesos.driver.failoverTimeout", "seconds, or a duration")
        .flag("--failover-timeout")
        .inside("failover timeout")
        .default("0.0")
        .only(Kind::Mesos)
        .read(read::failover_timeout),
    Key::offermill("offermill.mesos.frameworkIdFile", "file")
        .flag("--framework-id-file")
        .inside("framework id file")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.framework_id_file = read::path(given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.checkpoint", "true or false")
        .flag("--checkpoint")
        .default("true")
        .only(Kind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.mesos.checkpoint, parse_bool)),
    Key::spark_on_mesos("spark.mesos.driver.webui.url", "URL")
        .inside("web page")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.webui_url = not_empty(given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.user", "name")
        .inside("user")
        .otherwise("who runs this")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.user = not_empty(given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.encoding", "protobuf or json")
        .default("protobuf")
        .only(Kind::Mesos)
        .read(|draft, given| {
            read::encoding(draft, given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.caFile", "file")
        .inside("CA file")
        .otherwise("the system's certificates")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.ca_file = read::path(given);
            Ok(())
        }),
    Key::offermill("offermill.mesos.subscribeTimeout", "duration (ms)")
        .inside("subscribe timeout")
        .default("60s")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.subscribe_timeout = read::positive(draft, given)?;
            Ok(())
        }),
    Key::offermill("offermill.mesos.callTimeout", "duration (ms)")
        .inside("call timeout")
        .default("10s")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.call_timeout = read::positive(draft, given)?;
            Ok(())
        }),
    Key::offermill(
        "offermill.mesos.repeatedAttributes",
        "true or false: has an agent several of a name",
    )
    .default("true")
    .only(Kind::Mesos)
    .read(|draft, given| given.read_into(&mut draft.mesos.repeats, parse_bool)),
    Key::spark_on_mesos("spark.mesos.executor.docker.image", "image")
        .flag("--container-image")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            draft.container.image = not_empty(given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.containerizer", "docker or mesos: who runs images")
        .default("docker")
        .only(Kind::Mesos)
        .read(|draft, given| {
            container::containerizer(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.executor.docker.forcePullImage", "true or false")
        .default("false")
        .only(Kind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.container.force_pull, parse_bool)),
    Key::spark_on_mesos("spark.mesos.executor.docker.volumes", "[HOST:]CONTAINER[:rw|:ro][,...]")
        .inside("volume")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(container::read_volumes),
    Key::spark_on_mesos("spark.mesos.executor.docker.portmaps", "HOST:CONTAINER[:tcp|:udp][,...]")
        .inside("port mapping")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(container::read_ports),
    Key::spark_on_mesos("spark.mesos.executor.docker.parameters", "KEY=VALUE[,...] for docker run")
        .inside("container parameter")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(container::read_parameters),
    Key::spark_on_mesos("spark.mesos.network.name", "name")
        .otherwise("the agent's network")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            draft.container.network = not_empty(given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.network.labels", "KEY:VALUE[,...]")
        .inside("label")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(container::read_network_labels),
    Key::spark_on_mesos("spark.mesos.uris", "URI[,...] to fetch into sandboxes")
        .inside("URI")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(container::read_uris),
    Key::spark_on_mesos("spark.mesos.fetcherCache.enable", "true or false")
        .default("false")
        .only(Kind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.container.is_cached, parse_bool)),
    Key::spark_on_mesos("spark.mesos.executor.secret.names", "NAME[,...] in the store of secrets")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            draft.container.secret_names = container::list(given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.executor.secret.values", "SECRET[,...], for properties files")
        .secret()
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            let secret = given.secret.as_ref();
            draft.container.secret_values = secret.map(Secret::list).unwrap_or_default();
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.executor.secret.envkeys", "VARIABLE[,...] for the secrets")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            container::read_secret_variables(draft, given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.executor.secret.filenames", "PATH[,...] for the secrets")
        .otherwise("none")
        .needs(Kind::Mesos)
        .read(|draft, given| {
            draft.container.secret_files = container::list(given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.task.labels", "KEY:VALUE[,...]")
        .inside("label")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(container::read_labels),
];

/// The text, unless it is empty.
fn not_empty(given: &Sourced) -> Option<String> {
    Some(given.text.trim().to_owned()).filter(|text| !text.is_empty())
}
