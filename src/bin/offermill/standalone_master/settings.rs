//! The settings of a master, from its arguments.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::mesos::Masters;
use offermill::cluster::standalone::server::{CredentialsError, MasterAccess, MasterOptions};
use offermill::config::text::{TimeUnit, format_duration, parse_duration};
use offermill::http_server::{ServerTls, server_tls};
use offermill::private_files::FileAccess;
use offermill::resources::Scalar;

use crate::settings::values::http::parse_address;
use crate::standalone_master::arguments::MasterArguments;

/// The shortest silence after which a worker is unreachable.
const WORKER_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// The longest of the times.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// What the arguments say.
#[derive(Debug)]
pub(super) struct MasterPlan {
    pub(super) address: SocketAddr,
    pub(super) options: MasterOptions,
    /// Where it is reached, if that is given: `HOST:PORT`.
    pub(super) advertise: Option<String>,
    /// What the operator should know.
    pub(super) remark: Option<String>,
}

/// Reads the arguments, and the files that they name.
///
/// # Errors
/// With a sentence for each that is wrong.
pub(super) fn read(arguments: &MasterArguments) -> Result<MasterPlan, Vec<String>> {
    let mut problems = Vec::new();
    let listen = &arguments.listen;
    let address = parse_address(listen.trim());
    if address.is_none() {
        let allowed = "IP:PORT, or a port, such as 127.0.0.1:5050";
        problems.push(format!("--listen is {listen:?}, but must be {allowed}"));
    }
    let max_cores = read_cores(arguments, &mut problems);
    let advertise = read_advertised(arguments, &mut problems);
    let mut access = MasterAccess::default()
        .with_hosts(arguments.hosts.iter().map(|host| host.trim().to_owned()));
    let (principals, tokens) = (&arguments.principals_file, &arguments.worker_tokens_file);
    let mut add = |flag: &str, file: &Option<PathBuf>, with: AddCredentials| {
        let Some(path) = file else { return };
        match with(access.clone(), path) {
            Ok(read) => access = read,
            Err(why) => problems.push(format!("{flag} {}: {why}", path.display())),
        }
    };
    add("--principals-file", principals, |access, path| access.with_principals(path));
    add("--worker-tokens-file", tokens, |access, path| access.with_worker_tokens(path));
    if arguments.worker_ca_file.is_some() {
        access = access.with_worker_certificates();
    }
    let tls = match read_tls(arguments) {
        Ok(tls) => tls,
        Err(why) => {
            problems.push(why);
            None
        }
    };
    let (tls, remark) = tls.map_or((None, None), |tls| (Some(tls.acceptor), tls.remark));
    let mut time = |flag, text, least| read_time(flag, text, least, &mut problems);
    let worker_timeout = time("--worker-timeout", &arguments.worker_timeout, WORKER_TIMEOUT_MIN);
    let recovery_timeout = time("--recovery-timeout", &arguments.recovery_timeout, Duration::ZERO);
    let options = MasterOptions {
        max_cores,
        recovery_timeout,
        worker_timeout,
        access,
        tls,
        is_insecure: arguments.insecure,
        ..MasterOptions::default()
    };
    let refused = address.and_then(|address| options.address_problem(address));
    if problems.is_empty() {
        problems.extend(refused.map(|why| {
            format!(
                "--listen is {listen:?}, but {why}; give --certificate-file, --key-file, --principals-file, and \
                 --worker-tokens-file or --worker-ca-file (or both), or else --insecure"
            )
        }));
    }
    match address {
        Some(address) if problems.is_empty() => {
            Ok(MasterPlan { address, options, advertise, remark })
        }
        _ => Err(problems),
    }
}

/// Adds the credentials of a file.
type AddCredentials = fn(MasterAccess, &std::path::Path) -> Result<MasterAccess, CredentialsError>;

/// Reads where the master is reached: the address of one master.
fn read_advertised(arguments: &MasterArguments, problems: &mut Vec<String>) -> Option<String> {
    let text = arguments.advertise.as_ref()?.trim();
    let masters = format!("http://{text}").parse::<Masters>().ok();
    match masters.as_ref().map(Masters::all) {
        // Without a port it is that of masters, as for workers.
        Some([master]) if !text.contains('/') => Some(master.to_string()),
        _ => {
            problems.push(format!("--advertise is {text:?}, but must be HOST:PORT"));
            None
        }
    }
}

fn read_cores(arguments: &MasterArguments, problems: &mut Vec<String>) -> Option<Scalar> {
    let text = arguments.max_cores.as_ref()?;
    let cores = text.trim().parse::<f64>().ok().and_then(|it| Scalar::from_f64(it).ok());
    if cores.is_none_or(|cores| cores == Scalar::ZERO) {
        problems.push(format!("--max-cores is {text:?}, but must be a number above 0"));
    }
    cores
}

/// Reads a time of at most an hour.
fn read_time(flag: &str, text: &str, least: Duration, problems: &mut Vec<String>) -> Duration {
    match parse_duration(flag, text, TimeUnit::Seconds) {
        Ok(time) if (least..=TIME_MAX).contains(&time) => time,
        Ok(_) => {
            let least = format_duration(least);
            problems.push(format!("{flag} is {text:?}, but must be from {least} to 1h"));
            Duration::ZERO
        }
        Err(why) => {
            problems.push(why.to_string());
            Duration::ZERO
        }
    }
}

/// Reads the files of TLS. The key's must be this user's alone: what was opened is what is checked.
fn read_tls(arguments: &MasterArguments) -> Result<Option<ServerTls>, String> {
    let MasterArguments { certificate_file, key_file, worker_ca_file, .. } = arguments;
    let (Some(certificate), Some(key)) = (certificate_file, key_file) else { return Ok(None) };
    let tls = server_tls(certificate, key, FileAccess::check_private, worker_ca_file.as_deref());
    tls.map(Some).map_err(|why| format!("TLS can't be used: {why}"))
}

/// The number of connections that may wait to be accepted. Beyond it a client tries again after 1 s, then ever more
/// rarely: with the standard library's 128, a thousand workers that come at once need many seconds.
const BACKLOG: i32 = 4096;

/// Listens at the address.
///
/// # Errors
/// With a sentence if it can't be used.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let listening = TcpListener::bind(address).and_then(|listener| {
        // It listens already; this makes the queue longer.
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(listener)
    });
    listening.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there".to_owned(),
            _ => format!("this program can't listen there: {error}"),
        };
        format!("--listen is {address}, but {why}")
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// Goal: workers that come at once needn't try again. Method: 300 connections, of which none is accepted.
    #[test]
    fn many_connections_may_wait() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
        let waiting: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
        assert_eq!(waiting.len(), 300);
    }
}
