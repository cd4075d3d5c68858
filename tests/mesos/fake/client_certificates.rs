//! A master behind TLS that demands a certificate of each client, as a proxy in front of Mesos does.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::spawn;
use std::time::Duration;

use offermill::cluster::mesos::{ClientCertificate, MesosConfig};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::master::FakeMaster;
use super::script::{offers, sound};
use super::{framework, mesos, refusal_of};

const AUTHORITY: &str = include_str!("certificates/authority.pem");
const SERVER: &str = include_str!("certificates/server.pem");
const SERVER_KEY: &str = include_str!("certificates/server-key.pem");
const CLIENT: &str = include_str!("certificates/client.pem");
const CLIENT_KEY: &str = include_str!("certificates/client-key.pem");

/// Accepts connections over TLS from clients with a certificate of the authority, and passes their bytes on to the
/// master at `port`. Returns the port.
fn proxy(port: u16) -> u16 {
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(AUTHORITY)).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap());
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).unwrap();
    let server = Arc::new(server.with_single_cert(vec![certificate(SERVER)], key).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy_port = listener.local_addr().unwrap().port();
    spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = Arc::clone(&server);
            // The connection ends if either side does, or without a certificate.
            spawn(move || drop(pass_on(client, server, port)));
        }
    });
    proxy_port
}

fn pass_on(client: TcpStream, server: Arc<ServerConfig>, port: u16) -> io::Result<()> {
    let mut client = StreamOwned::new(ServerConnection::new(server).unwrap(), client);
    client.conn.complete_io(&mut client.sock)?;
    let mut master = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let turn = Some(Duration::from_millis(5));
    client.sock.set_read_timeout(turn)?;
    master.set_read_timeout(turn)?;
    while pass(&mut client, &mut master)? && pass(&mut master, &mut client)? {}
    Ok(())
}

/// Passes on what has arrived. Returns whether more may follow.
fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<bool> {
    let mut piece = [0; 4096];
    match from.read(&mut piece) {
        Ok(0) => Ok(false),
        Ok(length) => to.write_all(&piece[..length]).and_then(|()| to.flush()).map(|()| true),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// A folder with the authority, and with a client's certificate and key in files of this mode.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        for (name, text) in [("ca.pem", AUTHORITY), ("client.pem", CLIENT), ("key.pem", CLIENT_KEY)]
        {
            fs::write(files.path(name), text).unwrap();
            files.set_mode(name, 0o600);
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    /// Settings for a master at `port`, with these files as certificate and key.
    fn config(&self, port: u16, certificate: &str, key: &str) -> MesosConfig {
        let mut config = mesos(&[port]);
        config.masters = format!("https://127.0.0.1:{port}").parse().unwrap();
        config.ca_file = Some(self.path("ca.pem"));
        config.ca_file_only = true;
        let [certificate_file, key_file] = [certificate, key].map(|name| self.path(name));
        config.with_client_certificate(ClientCertificate { certificate_file, key_file })
    }
}

/// Goal: a master that demands a certificate gets it, on each connection, and without one there is no subscription.
/// Method: a framework with a certificate, whose calls arrive; the same without.
#[test]
fn masters_that_demand_certificates_get_them() {
    let files = Files::new();
    let fake = FakeMaster::new(sound);
    let port = proxy(fake.port());
    let framework = framework(files.config(port, "client.pem", "key.pem"), 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    fake.wait_for("ACCEPT", 0);
    drop(framework);
    let subscribed = fake.calls_of("SUBSCRIBE").len();
    let mut without = files.config(port, "client.pem", "key.pem");
    without.client_certificate = None;
    let why = refusal_of(without);
    assert!(why.contains("no master of"), "{why}");
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), subscribed);
}

/// Goal: certificates and keys that can't be used are refused before anything is sent, with the setting's name and
/// nothing of a key. Method: missing files, exchanged files, another certificate's key, a key that others may write.
#[test]
fn certificates_that_cannot_be_used_are_refused() {
    let files = Files::new();
    fs::write(files.path("other.pem"), SERVER_KEY).unwrap();
    fs::write(files.path("shared.pem"), CLIENT_KEY).unwrap();
    files.set_mode("other.pem", 0o600);
    files.set_mode("shared.pem", 0o666);
    for (certificate, key, words) in [
        ("none.pem", "key.pem", ["client certificate file", "a file of certificates in PEM ("]),
        ("key.pem", "key.pem", ["client certificate file", "it contains none"]),
        ("client.pem", "none.pem", ["client key file", "a private key in PEM"]),
        ("client.pem", "client.pem", ["client key file", "it contains none"]),
        ("client.pem", "other.pem", ["client key file", "the key of the client certificate"]),
        ("client.pem", "shared.pem", ["client key file", "can be written by others"]),
    ] {
        let why = refusal_of(files.config(1, certificate, key));
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
        assert!(!CLIENT_KEY.lines().any(|line| why.contains(line)), "{why}");
    }
}
