//! An API server that does what a real one can't be made to do: it answers a creation with a failure after it took
//! effect, falls silent, cuts a line of a watch, and forgets old versions. It serves pods and leases of one namespace
//! over HTTP, and nodes, and acts as scheduler and node: by default each pod gets the node `n1` and runs at once.

mod access;
mod http;
mod objects;
mod reads;

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use http::{Request, read_request, respond, respond_with};
use reads::{list, watch};

/// What happens to a creation instead of the usual.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It is answered so, and has no effect.
    Refuse(u16, Value),
    /// It takes effect, and is answered so.
    FailAfter(u16),
    /// It takes effect, and the connection is closed without an answer.
    CloseAfter,
    /// The connection is closed without an answer or an effect.
    CloseBefore,
    /// It is answered so, and takes effect just before the next creation.
    Defer(u16),
    /// It is answered so, and takes effect after this time.
    Late(u16, Duration),
    /// It takes effect, the pod is deleted by others, and the connection is closed without an answer.
    Vanish,
    /// As usual, after this time.
    Delay(Duration),
}

/// How watches behave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watches {
    #[default]
    Usual,
    /// They stay open and say nothing, but for those of one pod.
    Silent,
    /// They end at once.
    Brief,
    /// They say at once that their version is forgotten.
    Expired,
}

#[derive(Default)]
pub(crate) struct State {
    version: u64,
    /// Versions up to this one are forgotten.
    compacted: u64,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) leases: BTreeMap<String, Value>,
    pub(crate) config_maps: BTreeMap<String, Value>,
    /// Each change of a pod: its version, the pod before and the pod now.
    log: Vec<(u64, Option<Value>, Option<Value>)>,
    nodes: BTreeMap<String, Value>,
    node_log: Vec<(u64, Option<Value>, Option<Value>)>,
    uids: u64,
    /// Faults of the next creations, the last one first.
    pub(crate) faults: Vec<Fault>,
    /// A fault of all creations.
    pub(crate) always: Option<Fault>,
    /// The maximum number of pods that haven't ended.
    pub(crate) quota: Option<usize>,
    /// Whether pods get no node.
    pub(crate) is_full: bool,
    /// The scheduler looks at the pod again just before the next deletion that wants it unchanged, without success.
    pub(crate) schedules_again: bool,
    /// Whether deletions that want a pod unchanged wait, and haven't had an effect, until this is unset.
    pub(crate) holds_conditional: bool,
    pub(crate) watches: Watches,
    /// What lists show that needn't be up to date: the pods as they were when this was set.
    pub(crate) cache: Option<BTreeMap<String, Value>>,
    /// Whether nodes are silent, so that pods don't end when they are deleted.
    pub(crate) is_silent: bool,
    /// Watches with a lower number end at once.
    watch_floor: u64,
    watches_begun: u64,
    /// Whether watches that end show before up to which version nothing else has happened.
    pub(crate) sends_bookmarks: bool,
    /// Whether watches that end are cut in the middle of a line.
    pub(crate) cuts_lines: bool,
    /// Requests, as `VERB path` without the query; a list is `LIST`, a watch `WATCH`.
    pub(crate) requests: Vec<String>,
    /// The manifests of all creations that took effect.
    pub(crate) created: Vec<Value>,
    /// The grace periods of deletions, in seconds.
    pub(crate) graces: Vec<Option<u64>>,
    /// Creations that take effect before the next.
    deferred: Vec<Value>,
    pub(crate) is_forbidden: bool,
    /// Whether requests get no answer.
    pub(crate) hangs: bool,
    /// Requests that begin so fail with this status and have no effect.
    pub(crate) failing: Vec<(&'static str, u16)>,
    /// Rights that the user doesn't have, each `VERB RESOURCE`.
    pub(crate) denied_rights: Vec<&'static str>,
    /// The namespace that doesn't exist.
    pub(crate) missing_namespace: Option<&'static str>,
    creating: usize,
    pub(crate) creating_most: usize,
    is_stopped: bool,
}

/// A running fake API server.
pub(crate) struct ApiServer {
    shared: Arc<(Mutex<State>, Condvar)>,
    pub(crate) url: String,
}

impl ApiServer {
    pub(crate) fn start() -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.0.lock().unwrap().is_stopped {
                    return;
                }
                let serving = Arc::clone(&serving);
                thread::spawn(move || serve(&serving, stream));
            }
        });
        ApiServer { shared, url }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap()
    }

    /// Changes a pod, which watches show.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let mut pod = state.pods.get(name).cloned().unwrap_or_else(|| panic!("no pod {name}"));
        change(&mut pod);
        state.put(name, pod);
        drop(state);
        self.shared.1.notify_all();
    }

    /// Ends a pod's container with this code.
    pub(crate) fn exit(&self, name: &str, code: i32) {
        self.change(name, |pod| objects::end(pod, code));
    }

    /// Adds a node with these labels, or gives it these in place of others.
    pub(crate) fn label_node(&self, name: &str, labels: &[(&str, &str)]) {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let node = json!({ "metadata": { "name": name, "labels": labels } });
        self.state().put_node(name, Some(node));
        self.shared.1.notify_all();
    }

    pub(crate) fn remove_node(&self, name: &str) {
        self.state().put_node(name, None);
        self.shared.1.notify_all();
    }

    /// A pod gets a node, and runs there.
    pub(crate) fn place(&self, name: &str, node: &str) {
        self.change(name, |pod| {
            pod["spec"]["nodeName"] = node.into();
            objects::run(pod, "fake://1");
        });
    }

    /// Deletions that want a pod unchanged go on.
    pub(crate) fn release_conditional(&self) {
        self.state().holds_conditional = false;
        self.shared.1.notify_all();
    }

    /// Removes a pod, as others might.
    pub(crate) fn remove(&self, name: &str) {
        self.state().remove(name);
        self.shared.1.notify_all();
    }

    /// Ends the watches that are open now.
    pub(crate) fn end_watches(&self) {
        let mut state = self.state();
        state.watch_floor = state.watches_begun + 1;
        drop(state);
        self.shared.1.notify_all();
    }

    /// Lets watches say nothing.
    pub(crate) fn silence(&self) {
        self.state().watches = Watches::Silent;
    }

    /// Lets watches say what they have to, and ends those that are open.
    pub(crate) fn speak(&self) {
        self.state().watches = Watches::Usual;
        self.end_watches();
    }

    /// Forgets the versions up to now.
    pub(crate) fn compact(&self) {
        let mut state = self.state();
        state.version += 1;
        state.compacted = state.version;
        state.log.clear();
        state.node_log.clear();
    }

    /// The number of requests of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.state().requests.iter().filter(|request| request.starts_with(kind)).count()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let Ok(mut state) = self.shared.0.lock() {
            state.is_stopped = true;
        }
        self.shared.1.notify_all();
        let _unblocked = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

impl State {
    fn put(&mut self, name: &str, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = self.version.to_string().into();
        let before = self.pods.insert(name.to_owned(), pod.clone());
        self.log.push((self.version, before, Some(pod)));
    }

    fn put_node(&mut self, name: &str, node: Option<Value>) {
        self.version += 1;
        let before = match node.clone() {
            Some(node) => self.nodes.insert(name.to_owned(), node),
            None => self.nodes.remove(name),
        };
        self.node_log.push((self.version, before, node));
    }

    fn remove(&mut self, name: &str) {
        let Some(mut pod) = self.pods.remove(name) else { return };
        self.version += 1;
        pod["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.log.push((self.version, Some(pod), None));
    }

    fn uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    pub(crate) fn alive(&self) -> usize {
        self.pods.values().filter(|pod| !objects::has_ended(pod)).count()
    }

    /// Creates a pod: its status and what to answer.
    fn create(&mut self, manifest: &Value) -> (u16, Value) {
        let name = manifest["metadata"]["name"].as_str().unwrap().to_owned();
        if self.pods.contains_key(&name) {
            return (409, objects::failure(409, &format!("pods \"{name}\" already exists")));
        }
        if let Some(quota) = self.quota.filter(|quota| self.alive() >= *quota) {
            let message = format!(
                "pods \"{name}\" is forbidden: exceeded quota: q, requested: pods=1, used: \
                 pods={quota}, limited: pods={}",
                quota.max(1)
            );
            return (403, objects::failure(403, &message));
        }
        let mut pod = manifest.clone();
        pod["metadata"]["uid"] = self.uid().into();
        pod["status"] = json!({ "phase": "Pending" });
        self.created.push(manifest.clone());
        self.put(&name, pod.clone());
        let answer = self.pods[&name].clone();
        if !self.is_full {
            pod["spec"]["nodeName"] = "n1".into();
            self.put(&name, pod.clone());
            objects::run(&mut pod, "fake://1");
            self.put(&name, pod);
        }
        (201, answer)
    }

    /// Merges labels into a pod, if it has the uid that the patch names.
    fn patch(&mut self, name: &str, patch: &Value) -> (u16, Value) {
        let Some(mut pod) = self.pods.get(name).cloned() else {
            return (404, objects::failure(404, &format!("pods \"{name}\" not found")));
        };
        let uid = &patch["metadata"]["uid"];
        if !uid.is_null() && *uid != pod["metadata"]["uid"] {
            return (409, objects::failure(409, "the UID in the precondition does not match"));
        }
        for (key, value) in patch["metadata"]["labels"].as_object().into_iter().flatten() {
            pod["metadata"]["labels"][key] = value.clone();
        }
        self.put(name, pod.clone());
        (200, pod)
    }

    /// Deletes a pod as its node would: a running one ends with 143, and is gone.
    fn delete(&mut self, name: &str, options: &Value) -> (u16, Value) {
        let Some(pod) = self.pods.get(name).cloned() else {
            return (404, objects::failure(404, &format!("pods \"{name}\" not found")));
        };
        let uid = &options["preconditions"]["uid"];
        if !uid.is_null() && *uid != pod["metadata"]["uid"] {
            return (409, objects::failure(409, "the UID in the precondition does not match"));
        }
        let version = &options["preconditions"]["resourceVersion"];
        if !version.is_null() && std::mem::take(&mut self.schedules_again) {
            let mut pod = pod.clone();
            pod["status"]["conditions"] = json!([{ "type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/6 nodes are available" }]);
            self.put(name, pod);
            let why = "the ResourceVersion in the precondition does not match";
            return (409, objects::failure(409, why));
        }
        if !version.is_null() && *version != pod["metadata"]["resourceVersion"] {
            return (
                409,
                objects::failure(409, "the ResourceVersion in the precondition does not match"),
            );
        }
        let grace = options["gracePeriodSeconds"].as_u64();
        self.graces.push(grace);
        let mut ending = pod.clone();
        ending["metadata"]["deletionTimestamp"] = "2026-11-23T21:00:00Z".into();
        if self.is_silent && grace != Some(0) && !objects::has_ended(&pod) {
            self.put(name, ending);
            return (200, pod);
        }
        if pod["status"]["phase"] == "Running" {
            self.put(name, ending.clone());
            objects::end(&mut ending, 143);
            self.put(name, ending);
        }
        self.remove(name);
        (200, pod)
    }
}

type Shared = (Mutex<State>, Condvar);

fn serve(shared: &Arc<Shared>, mut stream: TcpStream) {
    let _set = stream.set_nodelay(true);
    while let Some(request) = read_request(&mut stream) {
        let kind = request.kind();
        shared.0.lock().unwrap().requests.push(kind.clone());
        if shared.0.lock().unwrap().is_forbidden && !kind.contains("leases") {
            respond(&mut stream, 403, &objects::failure(403, "pods is forbidden"));
            continue;
        }
        if shared.0.lock().unwrap().hangs {
            let state = shared.0.lock().unwrap();
            drop(shared.1.wait_while(state, |state| !state.is_stopped));
            return;
        }
        let failing = shared.0.lock().unwrap().failing.clone();
        if let Some((_, status)) = failing.iter().find(|(it, _)| kind.starts_with(it)) {
            respond(&mut stream, *status, &objects::failure(*status, "made to fail"));
            continue;
        }
        let goes_on = match kind.split(' ').next().unwrap_or_default() {
            "WATCH" => {
                watch(shared, &mut stream, &request);
                false
            }
            "POST" if request.path.ends_with("/pods") => create(shared, &mut stream, &request.body),
            _ => {
                if !request.body["preconditions"]["resourceVersion"].is_null() {
                    let state = shared.0.lock().unwrap();
                    let is_held = |state: &mut State| state.holds_conditional && !state.is_stopped;
                    drop(shared.1.wait_while(state, is_held));
                }
                let (status, body) = answer(shared, &request);
                respond(&mut stream, status, &body)
            }
        };
        shared.1.notify_all();
        if !goes_on {
            return;
        }
    }
}

fn create(shared: &Arc<Shared>, stream: &mut TcpStream, manifest: &Value) -> bool {
    let fault = {
        let mut state = shared.0.lock().unwrap();
        state.creating += 1;
        state.creating_most = state.creating_most.max(state.creating);
        state.faults.pop().or_else(|| state.always.clone())
    };
    if let Some(Fault::Delay(time)) = &fault {
        thread::sleep(*time);
    }
    let has_effect = !matches!(
        fault,
        Some(Fault::Refuse(..) | Fault::CloseBefore | Fault::Defer(_) | Fault::Late(..))
    );
    let (status, body) = {
        let mut state = shared.0.lock().unwrap();
        state.creating -= 1;
        for deferred in std::mem::take(&mut state.deferred) {
            state.create(&deferred);
        }
        if let Some(Fault::Defer(_)) = fault {
            state.deferred.push(manifest.clone());
        }
        let answer = if has_effect { state.create(manifest) } else { (0, Value::Null) };
        if let (Some(Fault::Vanish), Some(name)) = (&fault, manifest["metadata"]["name"].as_str()) {
            state.remove(name);
        }
        answer
    };
    if let Some(Fault::Late(_, after)) = fault {
        let (shared, manifest) = (Arc::clone(shared), manifest.clone());
        thread::spawn(move || {
            thread::sleep(after);
            shared.0.lock().unwrap().create(&manifest);
            shared.1.notify_all();
        });
    }
    shared.1.notify_all();
    match fault {
        Some(Fault::Refuse(status, body)) => {
            let pause = (status == 429).then_some(("Retry-After", "1"));
            respond_with(stream, status, pause, &body)
        }
        Some(Fault::FailAfter(status) | Fault::Defer(status) | Fault::Late(status, _)) => {
            respond(stream, status, &objects::failure(status, "upstream request timeout"))
        }
        Some(Fault::CloseAfter | Fault::CloseBefore | Fault::Vanish) => false,
        Some(Fault::Delay(_)) | None => respond(stream, status, &body),
    }
}

fn answer(shared: &Shared, request: &Request) -> (u16, Value) {
    let mut state = shared.0.lock().unwrap();
    if let Some(answer) = access::answer(&state, request) {
        return answer;
    }
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let (kind, name) = match parts.as_slice() {
        [.., kind @ ("pods" | "leases" | "configmaps" | "nodes")] => (*kind, None),
        [.., kind, name] => (*kind, Some((*name).to_owned())),
        _ => return (404, objects::failure(404, "no such path")),
    };
    match (request.method.as_str(), kind, name) {
        ("GET", "pods" | "nodes", None) => list(&state, request),
        ("GET", "pods", Some(name)) => objects::found(state.pods.get(&name)),
        ("PATCH", "pods", Some(name)) => state.patch(&name, &request.body),
        ("DELETE", "pods", Some(name)) => state.delete(&name, &request.body),
        ("DELETE", "pods", None) => {
            let selected = state.pods.iter().filter(|(_, pod)| request.selects(pod));
            let names: Vec<String> = selected.map(|(name, _)| name.clone()).collect();
            for name in names {
                state.delete(&name, &Value::Null);
            }
            (200, json!({}))
        }
        (_, "configmaps", None) => objects::config_maps(&mut state, request),
        (_, "leases", name) => objects::lease(&mut state, &request.method, name, &request.body),
        _ => (405, objects::failure(405, "method not allowed")),
    }
}
