//! Requests to the API server: one function sends them all, with a time limit, bounded answers, and no retries of its
//! own.

use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::names::{ACKNOWLEDGED_LABEL, RUN_LABEL};
use super::objects::ApiFailure;
use super::pods::PodRef;
use super::token_file::TokenFile;
use crate::cluster::error_chain::with_causes;

/// The maximum number of bytes of an answer: a page of a list, whose pods may be large.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The number of pods on a page of a list.
const PAGE_PODS: usize = 500;

/// The path of nodes, which are in no namespace.
const NODES: &str = "/api/v1/nodes";

/// How long the server keeps a watch open, in seconds.
const WATCH_SECONDS: u64 = 60;

/// After how long a watch counts as broken of which nothing was heard: the server ends it before.
pub(super) const WATCH_SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS + 5);

/// The API server, in one namespace.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    namespace: String,
    /// The selector of all pods of the run, as part of a URL.
    all: String,
    /// The selector of those whose ends haven't been applied.
    current: String,
    timeout: Duration,
    /// The file with the token, if the client has none of its own.
    token_file: Option<TokenFile>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(super) struct ApiAnswer {
    pub(super) status: u16,
    /// The `Retry-After` header, in seconds.
    pub(super) retry_after: Option<u64>,
    body: Vec<u8>,
}

impl ApiAnswer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// Says why it can't be read.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body)
            .map_err(|error| format!("an answer can't be read: {error}"))
    }

    /// Reads the body of a failure. A proxy's answer may be any text.
    pub(super) fn failure(&self) -> ApiFailure {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Says that a request failed.
    pub(super) fn why(&self) -> String {
        match self.failure().message {
            message if message.is_empty() => format!("HTTP status {}", self.status),
            message => message,
        }
    }
}

impl Api {
    pub(super) fn new(client: Client, namespace: String, run: &str, timeout: Duration) -> Api {
        let all = format!("labelSelector={}%3D{run}", encoded(RUN_LABEL));
        let current = format!("{all}%2C%21{}", encoded(ACKNOWLEDGED_LABEL));
        Api { client, namespace, all, current, timeout, token_file: None }
    }

    /// Sends the token of a file with each request.
    pub(super) fn with_token_file(self, token_file: Option<TokenFile>) -> Api {
        Api { token_file, ..self }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    fn leases(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    /// How long a request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks for the server's version.
    pub(super) async fn version(&self) -> Result<ApiAnswer, String> {
        self.send(Method::GET, "/version".to_owned(), None).await
    }

    /// Reads the namespace itself.
    pub(super) async fn namespace_object(&self) -> Result<ApiAnswer, String> {
        self.send(Method::GET, format!("/api/v1/namespaces/{}", self.namespace), None).await
    }

    /// Asks whether this program may do something in the namespace.
    pub(super) async fn review(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
    ) -> Result<ApiAnswer, String> {
        let attributes = json!({
            "namespace": self.namespace, "verb": verb, "group": group, "resource": resource,
        });
        self.review_of(&attributes).await
    }

    /// Asks whether this program may do something in the whole cluster.
    pub(super) async fn review_in_cluster(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
    ) -> Result<ApiAnswer, String> {
        let attributes = json!({ "verb": verb, "group": group, "resource": resource });
        self.review_of(&attributes).await
    }

    async fn review_of(&self, attributes: &Value) -> Result<ApiAnswer, String> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        self.send(Method::POST, path, Some(&review)).await
    }

    /// Asks what the creation of a lease would lead to, without creating one.
    pub(super) async fn try_create_lease(&self) -> Result<ApiAnswer, String> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "generateName": "offermill-" },
        });
        self.send(Method::POST, format!("{}?dryRun=All", self.leases()), Some(&lease)).await
    }

    /// Creates a pod. The server is told to drop the request when its time is up, so that it has no effect long after.
    pub(super) async fn create_pod(&self, manifest: &Value) -> Result<ApiAnswer, String> {
        let path = format!("{}?timeout={}ms", self.pods(), self.timeout.as_millis());
        self.send(Method::POST, path, Some(manifest)).await
    }

    fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Creates a config map.
    pub(super) async fn create_config_map(&self, map: &Value) -> Result<ApiAnswer, String> {
        self.send(Method::POST, self.config_maps(), Some(map)).await
    }

    /// Deletes all config maps of the run.
    pub(super) async fn delete_config_maps(&self) -> Result<ApiAnswer, String> {
        self.send(Method::DELETE, format!("{}?{}", self.config_maps(), self.all), None).await
    }

    /// Reads a pod.
    pub(super) async fn pod(&self, name: &str) -> Result<ApiAnswer, String> {
        self.send(Method::GET, format!("{}/{name}", self.pods()), None).await
    }

    /// Deletes a pod, within `grace` seconds. Without one, the pod's own grace period applies.
    pub(super) async fn delete_pod(
        &self,
        pod: &PodRef,
        grace: Option<u64>,
    ) -> Result<ApiAnswer, String> {
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        if let (Some(options), Some(uid)) = (options.as_object_mut(), &pod.uid) {
            options.insert("preconditions".to_owned(), json!({ "uid": uid }));
        }
        if let (Some(options), Some(grace)) = (options.as_object_mut(), grace) {
            options.insert("gracePeriodSeconds".to_owned(), grace.into());
        }
        self.send(Method::DELETE, format!("{}/{}", self.pods(), pod.name), Some(&options)).await
    }

    /// Deletes a pod at once, if it is still as it was at this version.
    pub(super) async fn delete_unchanged_pod(
        &self,
        pod: &PodRef,
        version: &str,
    ) -> Result<ApiAnswer, String> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": { "uid": pod.uid, "resourceVersion": version },
        });
        self.send(Method::DELETE, format!("{}/{}", self.pods(), pod.name), Some(&options)).await
    }

    /// Gives a pod a label, if it has this uid.
    pub(super) async fn label_pod(
        &self,
        pod: &PodRef,
        label: &str,
        value: &str,
    ) -> Result<ApiAnswer, String> {
        let mut metadata = json!({ "labels": { label: value } });
        if let (Some(metadata), Some(uid)) = (metadata.as_object_mut(), &pod.uid) {
            metadata.insert("uid".to_owned(), uid.as_str().into());
        }
        let patch = json!({ "metadata": metadata });
        self.send(Method::PATCH, format!("{}/{}", self.pods(), pod.name), Some(&patch)).await
    }

    /// Deletes all pods of the run, or those whose ends haven't been applied.
    pub(super) async fn delete_pods(&self, and_acknowledged: bool) -> Result<ApiAnswer, String> {
        let selector = if and_acknowledged { &self.all } else { &self.current };
        self.send(Method::DELETE, format!("{}?{selector}", self.pods()), None).await
    }

    /// Lists a page of the run's pods whose ends haven't been applied, as they are now: a list from the server's cache
    /// could lack pods that exist.
    pub(super) async fn page(&self, next: &str) -> Result<ApiAnswer, String> {
        self.page_of(&self.pods(), &self.current, next).await
    }

    /// Lists a page of all pods of the run.
    pub(super) async fn page_of_all(&self, next: &str) -> Result<ApiAnswer, String> {
        self.page_of(&self.pods(), &self.all, next).await
    }

    /// Lists a page of all nodes.
    pub(super) async fn nodes_page(&self, next: &str) -> Result<ApiAnswer, String> {
        self.page_of(NODES, "", next).await
    }

    async fn page_of(&self, of: &str, selector: &str, next: &str) -> Result<ApiAnswer, String> {
        let mut path = format!("{of}?{selector}&limit={PAGE_PODS}");
        if !next.is_empty() {
            path.push_str(&format!("&continue={}", encoded(next)));
        }
        self.send(Method::GET, path, None).await
    }

    /// Reads the run's lease.
    pub(super) async fn lease(&self, name: &str) -> Result<ApiAnswer, String> {
        self.send(Method::GET, format!("{}/{name}", self.leases()), None).await
    }

    /// Creates the run's lease.
    pub(super) async fn create_lease(&self, lease: &Value) -> Result<ApiAnswer, String> {
        self.send(Method::POST, self.leases(), Some(lease)).await
    }

    /// Replaces the run's lease, if it still has the version that `lease` names.
    pub(super) async fn replace_lease(
        &self,
        name: &str,
        lease: &Value,
    ) -> Result<ApiAnswer, String> {
        self.send(Method::PUT, format!("{}/{name}", self.leases()), Some(lease)).await
    }

    /// Deletes the run's lease, if it still has this uid and version.
    pub(super) async fn delete_lease(
        &self,
        name: &str,
        uid: &str,
        version: &str,
    ) -> Result<ApiAnswer, String> {
        let preconditions = json!({ "uid": uid, "resourceVersion": version });
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
        });
        self.send(Method::DELETE, format!("{}/{name}", self.leases()), Some(&options)).await
    }

    /// Begins a watch of the run's pods whose ends haven't been applied, at a version. The answer has no body if it
    /// is a success; its body is a stream.
    pub(super) async fn watch(&self, version: &str) -> Result<(ApiAnswer, Option<Body>), String> {
        self.begin_watch(&self.pods(), &self.current, WATCH_SECONDS, version).await
    }

    /// Begins a watch of the pod of this name at a version, for a second, as [`Api::watch`].
    pub(super) async fn watch_pod(
        &self,
        name: &str,
        version: &str,
    ) -> Result<(ApiAnswer, Option<Body>), String> {
        let selector = format!("fieldSelector=metadata.name%3D{name}");
        self.begin_watch(&self.pods(), &selector, 1, version).await
    }

    /// Begins a watch of all nodes at a version, as [`Api::watch`].
    pub(super) async fn watch_nodes(
        &self,
        version: &str,
    ) -> Result<(ApiAnswer, Option<Body>), String> {
        self.begin_watch(NODES, "", WATCH_SECONDS, version).await
    }

    async fn begin_watch(
        &self,
        of: &str,
        selector: &str,
        seconds: u64,
        version: &str,
    ) -> Result<(ApiAnswer, Option<Body>), String> {
        let path = format!(
            "{of}?{selector}&watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}",
            encoded(version),
        );
        let began = async {
            let (answer, body) = self.begin(Method::GET, path, None).await?;
            if answer.is_success() {
                return Ok((answer, Some(body)));
            }
            let body = collected(body).await?;
            Ok((ApiAnswer { body, ..answer }, None))
        };
        tokio::time::timeout(self.timeout, began).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
    ) -> Result<ApiAnswer, String> {
        let exchange = async {
            let (answer, body) = self.begin(method, path, body).await?;
            Ok(ApiAnswer { body: collected(body).await?, ..answer })
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    async fn begin(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
    ) -> Result<(ApiAnswer, Body), String> {
        let body = body.map(|body| body.to_string().into_bytes());
        let mut response = self.respond(&method, &path, body.clone()).await?;
        // Refused before it was looked at. Another token may be in the file by now.
        if let (StatusCode::UNAUTHORIZED, Some(token_file)) =
            (response.0.status(), &self.token_file)
            && response.1.is_some_and(|token| token_file.refused(&token))
        {
            response = self.respond(&method, &path, body).await?;
        }
        let (response, _) = response;
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status().as_u16();
        Ok((ApiAnswer { status, retry_after, body: Vec::new() }, response.into_body()))
    }

    /// The response to a request, and the token that was sent with it, if it is a file's.
    async fn respond(
        &self,
        method: &Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(Response<Body>, Option<HeaderValue>), String> {
        let content = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content);
        let token = self.token_file.as_ref().map(TokenFile::header).transpose()?;
        if let Some(token) = &token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let request = request.body(body.map_or_else(Body::empty, Body::from));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.client.send(request).await.map_err(|error| chain(&error))?;
        Ok((response, token))
    }

    fn too_slow(&self) -> String {
        format!("no answer within {:?}", self.timeout)
    }
}

/// Reads a body, up to the maximum.
async fn collected(mut body: Body) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| chain(&error))?;
        if let Some(data) = frame.data_ref() {
            if bytes.len() + data.len() > ANSWER_BYTES_MAX {
                return Err(format!("an answer has more than {ANSWER_BYTES_MAX} bytes"));
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

/// Encodes a value for a URL.
fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    value.bytes().map(byte).collect()
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let text = error.to_string();
    with_causes(text.strip_prefix("ServiceError: ").unwrap_or(&text).to_owned(), error)
}
