//! What is set for a Mesos cluster while it is read, and how the odd ones are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use offermill::Error;
use offermill::cluster::mesos::{Credential, Encoding, Secret};
use offermill::config::text::{TimeUnit, parse_duration};

use crate::settings::draft::Draft;
use crate::settings::sources::{Sourced, is_open_to_all, open_to_all};

/// The largest file with a principal or a secret, in bytes.
const PROOF_BYTES_MAX: u64 = 64 * 1024;
/// The longest failover timeout: what Spark's dispatcher asks for, 68 years.
const FAILOVER_MAX: Duration = Duration::from_secs(i32::MAX as u64);

/// What the rows of the table of Mesos' keys write to.
#[derive(Debug, Default)]
pub(crate) struct MesosSettings {
    pub(crate) roles: Vec<String>,
    pub(crate) user: Option<String>,
    principal: Option<(Sourced, String)>,
    secret: Option<(Sourced, Secret)>,
    pub(crate) plain_secret: bool,
    pub(crate) failover_timeout: Duration,
    pub(crate) framework_id_file: Option<(Sourced, PathBuf)>,
    pub(crate) checkpoint: bool,
    pub(crate) webui_url: Option<String>,
    pub(crate) encoding: Encoding,
    pub(crate) ca_file: Option<(Sourced, PathBuf)>,
    pub(crate) repeats: bool,
    pub(crate) subscribe_timeout: Duration,
    pub(crate) call_timeout: Duration,
}

impl MesosSettings {
    /// Who this framework is. `Err` is a complaint.
    pub(crate) fn credential(&self) -> Result<Option<Credential>, String> {
        match (&self.principal, &self.secret) {
            (None, None) => Ok(None),
            (None, Some((given, _))) => Err(format!(
                "{} is given without a principal, which says whose secret it is; give --principal \
                 (spark.mesos.principal) too",
                given.name
            )),
            (Some((_, principal)), secret) => {
                let secret = secret.as_ref().map(|(_, secret)| secret.clone());
                Ok(Some(Credential { principal: principal.clone(), secret }))
            }
        }
    }

    /// How the secret was named by whoever gave it.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        self.secret.as_ref().map(|(given, _)| given.name.as_str())
    }
}

/// Takes a principal as it is given.
pub(crate) fn principal(draft: &mut Draft, given: &Sourced) {
    take_principal(draft, given, given.text.clone());
}

/// Takes the principal in a file.
pub(crate) fn principal_file(draft: &mut Draft, given: &Sourced) {
    match proof(given) {
        Ok((_, text)) => take_principal(draft, given, text),
        Err(why) => draft.refuse(given, &format!("a file with a principal ({why})")),
    }
}

fn take_principal(draft: &mut Draft, given: &Sourced, text: String) {
    if let Some((before, _)) = &draft.mesos.principal {
        let before = before.clone();
        check_one(draft, &before, given);
    }
    if is_above(&draft.mesos.principal, given) {
        draft.mesos.principal = Some((given.clone(), text));
    }
}

/// Takes a secret as it is given.
pub(crate) fn secret(draft: &mut Draft, given: &Sourced) {
    let secret = given.secret.clone().unwrap_or_else(|| Secret::new(""));
    take_secret(draft, given, secret);
}

/// Takes the secret in a file. The name of the file isn't repeated: it may be the secret, by mistake.
pub(crate) fn secret_file(draft: &mut Draft, given: &Sourced) {
    match proof(given) {
        Ok((file, text)) => {
            if is_open_to_all(&file) {
                draft.remarks.push(open_to_all(&given.text));
            }
            take_secret(draft, given, Secret::new(text));
        }
        Err(why) => {
            let sentence = format!("{} must be a file with a secret ({why})", given.name);
            draft.problems.push(sentence);
        }
    }
}

fn take_secret(draft: &mut Draft, given: &Sourced, secret: Secret) {
    if let Some((before, _)) = &draft.mesos.secret {
        let before = before.clone();
        check_one(draft, &before, given);
    }
    if secret.is_empty() {
        draft.problems.push(format!("{} must not be empty", given.name));
    } else if is_above(&draft.mesos.secret, given) {
        draft.mesos.secret = Some((given.clone(), secret));
    }
}

/// Complains about the same thing said twice in one place, which can't both be meant.
fn check_one(draft: &mut Draft, before: &Sourced, given: &Sourced) {
    if before.layer == given.layer {
        let (one, other) = (&before.name, &given.name);
        draft.problems.push(format!("{one} and {other} are both given; give one of them"));
    }
}

/// Complains about a secret that is nobody's.
pub(crate) fn check(draft: &mut Draft) {
    let is_read = ["spark.mesos.principal", "spark.mesos.principal.file"];
    if is_read.into_iter().all(|key| draft.is_read(key))
        && let Err(complaint) = draft.mesos.credential()
    {
        draft.problems.push(complaint);
    }
}

/// Whether `given` counts more than what was read before it.
fn is_above<T>(before: &Option<(Sourced, T)>, given: &Sourced) -> bool {
    before.as_ref().is_none_or(|(before, _)| before.layer < given.layer)
}

/// A file's text, without the line break that editors put at its end.
fn proof(given: &Sourced) -> io::Result<(File, String)> {
    let mut file = File::open(&given.text)?;
    let mut text = String::new();
    let bytes = (&mut file).take(PROOF_BYTES_MAX + 1).read_to_string(&mut text)?;
    if bytes as u64 > PROOF_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {PROOF_BYTES_MAX} bytes")));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok((file, line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

/// Reads a number of seconds, with decimals as Spark has it, or a duration.
pub(crate) fn failover_timeout(draft: &mut Draft, given: &Sourced) -> Result<(), Error> {
    let seconds = given.text.trim().parse::<f64>().ok();
    let timeout = match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(timeout)) => timeout,
        Some(Err(_)) => FAILOVER_MAX.saturating_mul(2),
        None => parse_duration(&given.name, &given.text, TimeUnit::Seconds)?,
    };
    if timeout > FAILOVER_MAX {
        draft.refuse(given, &format!("from 0 to {} seconds", FAILOVER_MAX.as_secs()));
    }
    draft.mesos.failover_timeout = timeout.min(FAILOVER_MAX);
    Ok(())
}

/// Reads roles with commas between. Which are allowed, the library knows.
pub(crate) fn roles(draft: &mut Draft, given: &Sourced) {
    draft.mesos.roles = given.text.split(',').map(|role| role.trim().to_owned()).collect();
}

/// Reads a word for an encoding.
pub(crate) fn encoding(draft: &mut Draft, given: &Sourced) {
    match given.text.trim() {
        "protobuf" => draft.mesos.encoding = Encoding::Protobuf,
        "json" => draft.mesos.encoding = Encoding::Json,
        _ => draft.refuse(given, "protobuf or json"),
    }
}

/// Takes a path; nothing for an empty text.
pub(crate) fn path(given: &Sourced) -> Option<(Sourced, PathBuf)> {
    (!given.text.is_empty()).then(|| (given.clone(), PathBuf::from(&given.text)))
}

/// Refuses what isn't longer than nothing.
pub(crate) fn positive(draft: &mut Draft, given: &Sourced) -> Result<Duration, Error> {
    let duration = given.duration(TimeUnit::Milliseconds)?;
    if duration.is_zero() {
        draft.refuse(given, "more than 0");
    }
    Ok(duration)
}
