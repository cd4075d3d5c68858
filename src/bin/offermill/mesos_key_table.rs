//! The table of the settings that mean something on Mesos only. How it works is said in
//! `key_table.rs`.

use offermill::config::text::parse_bool;

use crate::keys::Key;
use crate::master::Kind;
use crate::mesos_settings as read;

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
            draft.mesos.webui_url = Some(given.text.clone()).filter(|url| !url.is_empty());
            Ok(())
        }),
    Key::offermill("offermill.mesos.user", "name")
        .inside("user")
        .otherwise("who runs this")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.mesos.user = Some(given.text.clone()).filter(|user| !user.is_empty());
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
];
