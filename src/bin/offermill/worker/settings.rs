//! The settings of a worker, from flags and the environment.

use std::env;
use std::path::Path;

use offermill::Error;
use offermill::cluster::mesos::{ClientCertificate, Masters};
use offermill::cluster::standalone::protocol::WorkerAttribute;
use offermill::cluster::standalone::worker::WorkerConfig;
use offermill::config::text::{TimeUnit, parse_cores, parse_duration, parse_memory};

use crate::settings::token_file::{read_token, token_problem};
use crate::worker::arguments::WorkerArguments;

/// What attributes must be.
const ATTRIBUTES: &str = "NAME:VALUE, or several with semicolons between";
/// The names of settings in errors of the library, and their flags.
const FLAGS: [(&str, &str); 12] = [
    ("master", "--master"),
    ("token", "--token-file"),
    ("CA file", "--ca-file"),
    ("CA file only", "--ca-file-only"),
    ("client certificate file", "--client-certificate-file"),
    ("client key file", "--client-key-file"),
    ("work folder", "--work-dir"),
    ("host name", "--hostname"),
    ("address", "--address"),
    ("attributes", "--attributes"),
    ("memory", "--memory"),
    ("grace", "--grace"),
];

/// Reads all settings.
///
/// # Errors
/// With a sentence for each that is invalid.
pub(super) fn read_settings(arguments: &WorkerArguments) -> Result<WorkerConfig, Vec<String>> {
    let mut problems = Vec::new();
    let masters = keep(&mut problems, parse_masters(&arguments.master, names_tls_files(arguments)));
    let cores = sized(arguments.cores.as_deref(), "--cores", "SPARK_WORKER_CORES")
        .map(|(name, text)| parse_cores(name, &text));
    let cores = cores.and_then(|cores| keep(&mut problems, cores));
    let memory = sized(arguments.memory.as_deref(), "--memory", "SPARK_WORKER_MEMORY")
        .map(|(name, text)| parse_memory(name, &text));
    let memory = memory.and_then(|memory| keep(&mut problems, memory));
    let grace = parse_duration("--grace", &arguments.grace, TimeUnit::Seconds);
    let grace = keep(&mut problems, grace);
    let token = arguments.token_file.as_deref().map(|path| {
        read_token(Path::new(path)).map_err(|why| token_problem("--token-file", path, &why))
    });
    let token = token.and_then(|token| keep(&mut problems, token));
    let attributes = arguments.attributes.as_deref().map(parse_attributes);
    let attributes = attributes.and_then(|attributes| keep(&mut problems, attributes));
    let certificate = keep(&mut problems, client_certificate(arguments));
    let for_tls = [
        ("--ca-file", arguments.ca_file.is_some()),
        ("--ca-file-only", arguments.ca_file_only),
        ("--client-certificate-file", arguments.client_certificate_file.is_some()),
    ];
    if masters.as_ref().is_some_and(|masters| !masters.tls())
        && let Some((flag, _)) = for_tls.into_iter().find(|(_, is_given)| *is_given)
    {
        let master = &arguments.master;
        problems.push(format!("{flag} is for masters with https://, and --master is {master:?}"));
    }
    let Some(masters) = masters.filter(|_| problems.is_empty()) else { return Err(problems) };
    let mut config = WorkerConfig::new(masters);
    config.token = token;
    config.token_over_plain_http = arguments.insecure;
    config.ca_file.clone_from(&arguments.ca_file);
    config.ca_file_only = arguments.ca_file_only;
    config.takes_any_user = arguments.any_user;
    config.client_certificate = certificate.flatten();
    config.work_dir.clone_from(&arguments.work_dir);
    config.address.clone_from(&arguments.address);
    config.attributes = attributes.unwrap_or_default();
    if let Some(hostname) = &arguments.hostname {
        config.hostname.clone_from(hostname);
    }
    config.cores = cores.unwrap_or(config.cores);
    config.memory = memory.unwrap_or(config.memory);
    config.grace = grace.unwrap_or(config.grace);
    Ok(config)
}

/// The sentence about an error of the library, with the flag in the place of the library's name of the setting.
pub(super) fn describe(error: &Error) -> String {
    let Some(invalid) = error.invalid_setting() else { return error.to_string() };
    let flag = FLAGS.iter().find(|(name, _)| *name == invalid.name);
    let name = flag.map_or(invalid.name, |(_, flag)| flag);
    format!("{name} is {:?}, but must be {}", invalid.value, invalid.allowed)
}

fn keep<T, E: ToString>(problems: &mut Vec<String>, read: Result<T, E>) -> Option<T> {
    read.map_err(|problem| problems.push(problem.to_string())).ok()
}

/// The text of a size and its source: the flag's, or the variable's unless that is empty.
fn sized(
    given: Option<&str>,
    flag: &'static str,
    variable: &'static str,
) -> Option<(&'static str, String)> {
    let of_variable = || env::var(variable).ok().filter(|text| !text.trim().is_empty());
    match given {
        Some(text) => Some((flag, text.to_owned())),
        None => of_variable().map(|text| (variable, text)),
    }
}

/// Whether there are files that are for TLS alone.
fn names_tls_files(arguments: &WorkerArguments) -> bool {
    arguments.ca_file.is_some() || arguments.client_certificate_file.is_some()
}

/// Reads the masters. With `offermill://`, which says nothing about TLS, they have it if there are files for it.
fn parse_masters(text: &str, has_tls_files: bool) -> Result<Masters, String> {
    let is = |scheme: &str| text.trim().starts_with(scheme);
    let is_url = ["https://", "http://", "offermill://"].into_iter().any(is);
    let masters = text.parse::<Masters>().ok().filter(|_| is_url);
    let masters = masters.ok_or_else(|| {
        format!(
            "--master is {text:?}, but must be https://HOST[:PORT], http://HOST[:PORT] or offermill://HOST[:PORT], \
             or several with commas between"
        )
    })?;
    Ok(if is("offermill://") && has_tls_files { masters.with_tls() } else { masters })
}

fn parse_attributes(text: &str) -> Result<Vec<WorkerAttribute>, String> {
    let attributes = text.split(';').filter(|one| !one.trim().is_empty()).map(|one| {
        let (name, value) = one.split_once(':')?;
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        (!name.is_empty() && !value.is_empty()).then_some(WorkerAttribute { name, value })
    });
    let attributes = attributes.collect::<Option<Vec<_>>>();
    attributes.ok_or_else(|| format!("--attributes is {text:?}, but must be {ATTRIBUTES}"))
}

fn client_certificate(arguments: &WorkerArguments) -> Result<Option<ClientCertificate>, String> {
    let WorkerArguments { client_certificate_file, client_key_file, .. } = arguments;
    match (client_certificate_file.clone(), client_key_file.clone()) {
        (None, None) => Ok(None),
        (Some(certificate_file), Some(key_file)) => {
            Ok(Some(ClientCertificate { certificate_file, key_file }))
        }
        (Some(_), None) => {
            Err("--client-certificate-file is given alone; give --client-key-file too".to_owned())
        }
        (None, Some(_)) => {
            Err("--client-key-file is given alone; give --client-certificate-file too".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: attributes and masters are read, and what is neither is refused with what is allowed. Method: examples.
    #[test]
    fn attributes_and_masters_are_read() {
        let attribute = |name: &str, value: &str| WorkerAttribute {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let read = parse_attributes(" zone:east ; rack:7;url:a:b;").unwrap();
        assert_eq!(
            read,
            [attribute("zone", "east"), attribute("rack", "7"), attribute("url", "a:b")]
        );
        for text in ["zone", ":east", "zone:", "a:b;c"] {
            assert!(parse_attributes(text).unwrap_err().ends_with(ATTRIBUTES), "{text}");
        }
        for (text, has_files, tls) in [
            ("https://a:1,b", false, true),
            ("http://a", false, false),
            ("http://a", true, false),
            ("offermill://a,b:1", false, false),
            ("offermill://a,b:1", true, true),
        ] {
            assert_eq!(parse_masters(text, has_files).unwrap().tls(), tls, "{text}");
        }
        for text in ["a:1", "mesos://a", "offermill://", "https://", "http://a/b", "http://u@h"] {
            assert!(parse_masters(text, true).is_err(), "{text}");
        }
    }
}
