//! [`RunOwner`]: the object with which all that a run has made is deleted.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::Api;
use super::objects::Metadata;

/// What owns the lease of a run, and with it the run's pods and files: they are deleted with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunOwner {
    /// Nothing: the lease stays until the run or a [`RunCleaner`](super::RunCleaner) deletes it.
    #[default]
    Nobody,
    /// The pod of this name, in the run's namespace: that in which this program runs.
    Pod(String),
    /// The pod of this name, if the namespace has one; else nothing.
    PodIfThere(String),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnerPod {
    metadata: Metadata,
}

impl RunOwner {
    /// Looks for the owner. Returns the reference to it.
    ///
    /// # Errors
    /// If a pod that must be there isn't, and if its deletion was requested: what it owned would be deleted at once.
    pub(super) async fn find(&self, api: &Api) -> Result<Option<Value>, String> {
        let (name, is_needed) = match self {
            RunOwner::Nobody => return Ok(None),
            RunOwner::Pod(name) => (name, true),
            RunOwner::PodIfThere(name) => (name, false),
        };
        let found = async {
            let answer = api.pod(name).await?;
            if !answer.is_success() {
                return Err(answer.why());
            }
            let OwnerPod { metadata } = answer.read()?;
            match metadata.deletion_timestamp {
                Some(_) => Err("it is being deleted".to_owned()),
                None => Ok(
                    json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": metadata.uid }),
                ),
            }
        };
        match found.await {
            Ok(owner) => Ok(Some(owner)),
            Err(_) if !is_needed => Ok(None),
            Err(why) => {
                Err(format!("pod {name}, which is to own the run's lease, can't be used: {why}"))
            }
        }
    }
}
