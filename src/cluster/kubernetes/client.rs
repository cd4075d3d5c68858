//! The client: its settings made of a [`KubernetesConfig`], and the choice among the contexts of a kubeconfig.

use http::Uri;
use kube::Client;
use kube::config::{AuthInfo, Config as ClientConfig, KubeConfigOptions, Kubeconfig};
use tokio::runtime::Handle;

use super::api::{Api, chain};
use super::api_server::ApiServer;
use super::config::KubernetesConfig;
use super::token_file::TokenFile;
use crate::error::Error;

/// Connects to the API server. Reading credentials may run other programs and wait for
/// them, so that has a thread of its own, which isn't waited for past the connect timeout.
pub(super) async fn connect(config: &KubernetesConfig) -> Result<Api, String> {
    let (settings, runtime) = (config.clone(), Handle::current());
    let building = tokio::task::spawn_blocking(move || {
        let client_config = runtime.block_on(client_config(&settings));
        let client_config = client_config.map_err(|error| error.to_string())?;
        let namespace = client_config.default_namespace.clone();
        let client = Client::try_from(client_config).map_err(|error| chain(&error))?;
        let namespace = settings.namespace.unwrap_or(namespace);
        let api = Api::new(client, namespace, &settings.name, settings.request_timeout);
        let token_file = match settings.api_server {
            ApiServer::Url { token_file, .. } => token_file.map(TokenFile::new),
            _ => None,
        };
        Ok(api.with_token_file(token_file))
    });
    match tokio::time::timeout(config.connect_timeout, building).await {
        Ok(Ok(built)) => built,
        Ok(Err(panicked)) => Err(format!("the client could not be built: {panicked}")),
        Err(_) => Err("the credentials could not be read in time".to_owned()),
    }
}

async fn client_config(settings: &KubernetesConfig) -> Result<ClientConfig, Error> {
    let mut config = match &settings.api_server {
        ApiServer::Inferred => ClientConfig::infer().await.map_err(|error| nowhere(&error))?,
        ApiServer::Context(context) => of_context(context).await?,
        ApiServer::Known { url, context } => known(url, context.as_deref()).await?,
        ApiServer::Url { url, token, token_file: _, key_pair, authorities } => {
            let mut config = ClientConfig::new(parsed(url)?);
            let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
            config.auth_info = AuthInfo {
                token: token.as_ref().map(|token| token.expose().to_owned().into()),
                client_certificate: key_pair.as_ref().map(|it| text(&it.certificate_file)),
                client_key: key_pair.as_ref().map(|it| text(&it.key_file)),
                ..AuthInfo::default()
            };
            config.root_cert = authorities.as_deref().map(certificates).transpose()?;
            config
        }
    };
    // A request that is repeated unseen could create a pod that was created before.
    config.default_retry = false;
    config.connect_timeout = Some(settings.request_timeout);
    Ok(config)
}

fn failed(error: impl std::error::Error + 'static) -> Error {
    Error::cluster("Kubernetes", chain(&error))
}

/// Neither a kubeconfig nor the environment of a pod says where the API server is.
fn nowhere(error: &(impl std::error::Error + 'static)) -> Error {
    let sentence = "no kubeconfig can be used (that of $KUBECONFIG or ~/.kube/config), and this is no pod; give its \
                    path in KUBECONFIG, or the address of the API server";
    Error::cluster("Kubernetes", format!("{sentence} ({})", chain(error)))
}

fn parsed(url: &str) -> Result<Uri, Error> {
    url.parse().map_err(|_| Error::setting("API server", url, "https://HOST:PORT"))
}

async fn of_context(context: &str) -> Result<ClientConfig, Error> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
    ClientConfig::from_kubeconfig(&options).await.map_err(failed)
}

/// The settings for a server at this address. Credentials are sent only to the address for which they are meant, unless
/// the context was named.
async fn known(url: &str, context: Option<&str>) -> Result<ClientConfig, Error> {
    let address = parsed(url)?;
    if address.scheme_str() != Some("https") {
        return Ok(ClientConfig::new(address));
    }
    let chosen = match context {
        Some(context) => Some(context.to_owned()),
        None => Kubeconfig::read().ok().and_then(|kubeconfig| context_of(&kubeconfig, &address)),
    };
    if let Some(context) = chosen {
        let mut config = of_context(&context).await?;
        // A certificate is checked against the name by which its server is known to the context.
        config.cluster_url = address;
        return Ok(config);
    }
    match ClientConfig::incluster().ok().filter(|own| is_own_cluster(own, &address)) {
        Some(mut own) => {
            own.cluster_url = address;
            Ok(own)
        }
        None => Ok(ClientConfig::new(address)),
    }
}

/// Whether an address is that of the cluster in which this program is a pod.
fn is_own_cluster(own: &ClientConfig, address: &Uri) -> bool {
    const NAMES: [&str; 4] = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let host = address.host().unwrap_or_default();
    NAMES.contains(&host) || is_same_address(&own.cluster_url, address)
}

/// The name of the context for the server at this address: the current one, else the first that has it.
fn context_of(kubeconfig: &Kubeconfig, address: &Uri) -> Option<String> {
    let has_address = |cluster: &str| {
        let named = kubeconfig.clusters.iter().find(|it| it.name == cluster);
        let server = named.and_then(|it| it.cluster.as_ref()?.server.as_deref());
        server.and_then(|it| it.parse().ok()).is_some_and(|it: Uri| is_same_address(&it, address))
    };
    let is_meant = |name: &&str| {
        let named = kubeconfig.contexts.iter().find(|it| it.name == *name);
        named.and_then(|it| it.context.as_ref()).is_some_and(|it| has_address(&it.cluster))
    };
    let current = kubeconfig.current_context.as_deref();
    let all = kubeconfig.contexts.iter().map(|it| it.name.as_str());
    current.into_iter().chain(all).find(is_meant).map(str::to_owned)
}

/// Whether two addresses are the same but for the port that their scheme implies.
fn is_same_address(one: &Uri, other: &Uri) -> bool {
    let parts = |uri: &Uri| {
        let scheme = uri.scheme_str().map(str::to_ascii_lowercase);
        let host = uri.host().map(str::to_ascii_lowercase);
        let port = uri.port_u16().or(match scheme.as_deref() {
            Some("https") => Some(443),
            _ => Some(80),
        });
        (scheme, host, port, uri.path().trim_end_matches('/').to_owned())
    };
    parts(one) == parts(other)
}

/// The certificates of a PEM text, in DER.
fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|error| Error::cluster("Kubernetes: certificates", error))?;
    Ok(read.into_iter().map(|certificate| certificate.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: credentials go to the server for which they are meant, and to no other. Method: contexts of several
    /// clusters; addresses that are one of them in another spelling, and that are none.
    #[test]
    fn the_context_has_the_address() {
        let text = r#"{
            "current-context": "b",
            "clusters": [
                {"name": "one", "cluster": {"server": "https://one.example"}},
                {"name": "two", "cluster": {"server": "https://TWO.example:6443/"}},
                {"name": "none", "cluster": {}}
            ],
            "contexts": [
                {"name": "a", "context": {"cluster": "two"}},
                {"name": "b", "context": {"cluster": "two"}},
                {"name": "c", "context": {"cluster": "one"}},
                {"name": "d", "context": {"cluster": "missing"}},
                {"name": "e", "context": {"cluster": "none"}}
            ]
        }"#;
        let mut kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let context =
            |kubeconfig: &Kubeconfig, url: &str| context_of(kubeconfig, &url.parse().unwrap());
        for (url, name) in [
            ("https://two.example:6443", Some("b")),
            ("https://one.example:443", Some("c")),
            ("https://one.example/", Some("c")),
            ("https://one.example/proxy", None),
            ("https://one.example:6443", None),
            ("http://one.example", None),
            ("https://one.example.evil", None),
        ] {
            assert_eq!(context(&kubeconfig, url).as_deref(), name, "{url}");
        }
        kubeconfig.current_context = None;
        assert_eq!(context(&kubeconfig, "https://two.example:6443").as_deref(), Some("a"));
    }
}
