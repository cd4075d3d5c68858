//! The options that apply on Mesos only, except those of containers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use offermill::Error;
use offermill::cluster::mesos::{Encoding, Secret};
use offermill::config::text::{TimeUnit, parse_bool, parse_count, parse_duration};
use offermill::private_files::{FileAccess, open_input};

use crate::settings::draft::SettingsDraft;
use crate::settings::file_access::report_file_access;
use crate::settings::master::ClusterKind;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, non_empty, positive_duration};

/// The largest file with a principal or a secret, in bytes.
const CREDENTIAL_BYTES_MAX: u64 = 64 * 1024;
/// The longest failover timeout: that of Spark's dispatcher, 68 years.
const FAILOVER_MAX: Duration = Duration::from_secs(i32::MAX as u64);

/// The framework, its credential, and its connection to the master.
pub(super) const MESOS_ROWS: &[OptionRow] = &[
    OptionRow::spark_on_mesos("spark.mesos.role", "role[,role...]")
        .flag("--role")
        .library_name("role")
        .default("*")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_roles(draft, given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.principal", "name")
        .flag("--principal")
        .variable("SPARK_MESOS_PRINCIPAL")
        .library_name("principal")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_principal(draft, given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.principal.file", "file")
        .variable("SPARK_MESOS_PRINCIPAL_FILE")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_principal_file(draft, given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.secret", "text, for properties files")
        .variable("SPARK_MESOS_SECRET")
        .secret()
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_secret(draft, given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.secret.file", "file")
        .flag("--secret-file")
        .variable("SPARK_MESOS_SECRET_FILE")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_secret_file(draft, given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.secretOverHttp", "true or false")
        .flag("--allow-plain-secret")
        .default("false")
        .only(ClusterKind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.mesos.plain_secret, parse_bool)),
    OptionRow::spark_on_mesos("spark.mesos.driver.failoverTimeout", "seconds, or a duration")
        .flag("--failover-timeout")
        .library_name("failover timeout")
        .default("0.0")
        .only(ClusterKind::Mesos)
        .read(read_failover_timeout),
    OptionRow::offermill("offermill.mesos.frameworkIdFile", "file")
        .flag("--framework-id-file")
        .library_name("framework id file")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.framework_id_file = path(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.checkpoint", "true or false")
        .flag("--checkpoint")
        .default("true")
        .only(ClusterKind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.mesos.checkpoint, parse_bool)),
    OptionRow::spark_on_mesos("spark.mesos.driver.webui.url", "URL")
        .library_name("web page")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.webui_url = non_empty(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.user", "name")
        .library_name("user")
        .derived("the user of this program, never root")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.user = non_empty(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.encoding", "protobuf or json")
        .default("protobuf")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            read_encoding(draft, given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.caFile", "file")
        .flag("--ca-file")
        .library_name("CA file")
        .derived("the system's certificates")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.ca_file = path(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.caFileOnly", "true or false")
        .library_name("CA file only")
        .default("false")
        .only(ClusterKind::Mesos)
        .read(|draft, given| given.read_into(&mut draft.mesos.ca_file_only, parse_bool)),
    OptionRow::offermill("offermill.mesos.clientCertificateFile", "file")
        .library_name("client certificate file")
        .default("")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.client_certificate_file = path(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.clientKeyFile", "file")
        .library_name("client key file")
        .default("")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.client_key_file = path(given);
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.subscribeTimeout", "duration (ms)")
        .library_name("subscribe timeout")
        .default("60s")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.subscribe_timeout =
                positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.callTimeout", "duration (ms)")
        .library_name("call timeout")
        .default("10s")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.mesos.call_timeout = positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        }),
    OptionRow::offermill("offermill.mesos.agentPort", "port of agents, for links to logs")
        .default("5051")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            given.read_into(&mut draft.mesos.agent_port, |name, text| {
                parse_count(name, text, 1..=65_535).map(|port| port as u16)
            })
        }),
    OptionRow::offermill(
        "offermill.mesos.repeatedAttributes",
        "true or false: whether an agent may have several attributes of a name",
    )
    .default("true")
    .only(ClusterKind::Mesos)
    .read(|draft, given| given.read_into(&mut draft.mesos.repeats, parse_bool)),
];

/// Reads a principal.
fn read_principal(draft: &mut SettingsDraft, given: &Sourced) {
    set_principal(draft, given, given.text.clone());
}

/// Reads the principal in a file.
fn read_principal_file(draft: &mut SettingsDraft, given: &Sourced) {
    let read = credential_text(given)
        .and_then(|(file, text)| FileAccess::of(&file)?.check_author().map(|()| text));
    match read {
        Ok(text) => set_principal(draft, given, text),
        Err(why) => draft.reject(given, &format!("a file with a principal ({why})")),
    }
}

/// Sets the principal unless a source of higher precedence has.
fn set_principal(draft: &mut SettingsDraft, given: &Sourced, text: String) {
    if let Some((before, _)) = &draft.mesos.principal {
        let before = before.clone();
        check_single(draft, &before, given);
    }
    if takes_precedence(&draft.mesos.principal, given) {
        draft.mesos.principal = Some((given.clone(), text));
    }
}

/// Reads a secret.
fn read_secret(draft: &mut SettingsDraft, given: &Sourced) {
    let secret = given.secret.clone().unwrap_or_else(|| Secret::new(""));
    set_secret(draft, given, secret);
}

/// Reads the secret in a file. Messages contain the path only if there is such a file: otherwise it may be the secret
/// by mistake.
fn read_secret_file(draft: &mut SettingsDraft, given: &Sourced) {
    match credential_text(given) {
        Ok((file, text)) => {
            match FileAccess::of(&file) {
                Ok(file_access) => {
                    let SettingsDraft { remarks, problems, .. } = draft;
                    report_file_access(file_access, &given.text, remarks, problems);
                }
                Err(error) => draft.problems.push(format!("{}: {error}", given.name)),
            }
            set_secret(draft, given, Secret::new(text));
        }
        Err(why) => {
            let sentence = match Path::new(&given.text).exists() {
                true => {
                    format!("{} is {:?}, but must be a file with a secret", given.name, given.text)
                }
                false => format!("{} must be a file with a secret", given.name),
            };
            draft.problems.push(format!("{sentence} ({why})"));
        }
    }
}

/// Sets the secret unless a source of higher precedence has.
fn set_secret(draft: &mut SettingsDraft, given: &Sourced, secret: Secret) {
    if let Some((before, _)) = &draft.mesos.secret {
        let before = before.clone();
        check_single(draft, &before, given);
    }
    draft.redaction.add_secret(secret.expose());
    if secret.is_empty() {
        draft.problems.push(format!("{} must not be empty", given.name));
    } else if takes_precedence(&draft.mesos.secret, given) {
        draft.mesos.secret = Some((given.clone(), secret));
    }
}

/// Reports two settings of the same source for the same thing.
fn check_single(draft: &mut SettingsDraft, before: &Sourced, given: &Sourced) {
    if before.source == given.source {
        let problem =
            format!("{} and {} are both given; give one of them", before.name, given.name);
        draft.problems.push(problem);
    }
}

/// Whether `given` takes precedence over what was read before it.
fn takes_precedence<T>(before: &Option<(Sourced, T)>, given: &Sourced) -> bool {
    before.as_ref().is_none_or(|(before, _)| before.source < given.source)
}

/// The text of a file without the line break at its end.
fn credential_text(given: &Sourced) -> io::Result<(File, String)> {
    let mut file = open_input(Path::new(&given.text))?;
    let mut text = String::new();
    let bytes = (&mut file).take(CREDENTIAL_BYTES_MAX + 1).read_to_string(&mut text)?;
    if bytes as u64 > CREDENTIAL_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {CREDENTIAL_BYTES_MAX} bytes")));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok((file, line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

/// Reads a number of seconds, which may have decimals as in Spark, or a duration.
fn read_failover_timeout(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    let seconds = given.text.trim().parse::<f64>().ok();
    let timeout = match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(timeout)) => timeout,
        Some(Err(_)) => FAILOVER_MAX.saturating_mul(2),
        None => parse_duration(&given.name, &given.text, TimeUnit::Seconds)?,
    };
    if timeout > FAILOVER_MAX {
        draft.reject(given, &format!("from 0 to {} seconds", FAILOVER_MAX.as_secs()));
    }
    draft.mesos.failover_timeout = timeout.min(FAILOVER_MAX);
    Ok(())
}

/// Reads roles separated by commas. The library checks them.
fn read_roles(draft: &mut SettingsDraft, given: &Sourced) {
    draft.mesos.roles = given.text.split(',').map(|role| role.trim().to_owned()).collect();
}

/// Reads an encoding.
fn read_encoding(draft: &mut SettingsDraft, given: &Sourced) {
    match given.text.trim() {
        "protobuf" => draft.mesos.encoding = Encoding::Protobuf,
        "json" => draft.mesos.encoding = Encoding::Json,
        _ => draft.reject(given, "protobuf or json"),
    }
}

/// A path; `None` for an empty text.
fn path(given: &Sourced) -> Option<(Sourced, PathBuf)> {
    (!given.text.is_empty()).then(|| (given.clone(), PathBuf::from(&given.text)))
}
