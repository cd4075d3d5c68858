//! Volumes of pods, as Spark's keys describe them: `spark.kubernetes.executor.volumes.TYPE.NAME.` and a part of the
//! volume.

use std::collections::BTreeMap;

use offermill::cluster::kubernetes::{PodVolume, PodVolumeSource};
use offermill::config::text::parse_bool;

use crate::settings::draft::SettingsDraft;
use crate::settings::sources::Sourced;

/// The name that stands for a claim of each executor's own.
const ON_DEMAND: &str = "OnDemand";

/// Reads the volumes. What is missing or unknown is reported.
pub(super) fn volumes(draft: &mut SettingsDraft) -> Vec<PodVolume> {
    let given = std::mem::take(&mut draft.kubernetes.volume_keys);
    let read = |((kind, name), keys): (&(String, String), &BTreeMap<String, Sourced>)| {
        let mut keys = VolumeKeys { kind, name, keys: keys.clone() };
        let volume = keys.volume(draft);
        match (volume, keys.keys.into_values().next()) {
            (Ok(_), Some(unknown)) => {
                Err(format!("{} is no setting of such a volume", unknown.name))
            }
            (volume, _) => volume,
        }
        .map_err(|problem| draft.problems.push(problem))
        .ok()
    };
    given.iter().filter_map(read).collect()
}

/// The keys of one volume that haven't been read.
struct VolumeKeys<'a> {
    kind: &'a str,
    name: &'a str,
    keys: BTreeMap<String, Sourced>,
}

impl VolumeKeys<'_> {
    fn volume(&mut self, draft: &mut SettingsDraft) -> Result<PodVolume, String> {
        let source = self.source()?;
        let mount_path = self.needed("mount.path")?;
        let mut volume = PodVolume::new(self.name, source, mount_path);
        volume.sub_path = self.optional("mount.subPath");
        if let Some(given) = self.keys.remove("mount.readOnly") {
            match parse_bool(&given.name, &given.text) {
                Ok(is_read_only) => volume.is_read_only = is_read_only,
                Err(error) => draft.report_error(&error),
            }
        }
        Ok(volume)
    }

    fn source(&mut self) -> Result<PodVolumeSource, String> {
        Ok(match self.kind {
            "hostPath" => PodVolumeSource::HostPath {
                path: self.needed("options.path")?,
                kind: self.optional("options.type"),
            },
            "emptyDir" => PodVolumeSource::EmptyDir {
                medium: self.optional("options.medium"),
                size_limit: self.optional("options.sizeLimit"),
            },
            "nfs" => PodVolumeSource::Nfs {
                server: self.needed("options.server")?,
                path: self.needed("options.path")?,
            },
            "persistentVolumeClaim" => {
                let name = self.needed("options.claimName")?;
                if name != ON_DEMAND {
                    return Ok(PodVolumeSource::Claim { name });
                }
                PodVolumeSource::OwnClaim {
                    storage_class: self.optional("options.storageClass"),
                    size: self.needed("options.sizeLimit")?,
                }
            }
            _ => {
                let key = self.keys.values().next().map(|given| given.name.as_str());
                let key = key.unwrap_or_default();
                return Err(format!(
                    "{key} is of a type that isn't supported: hostPath, emptyDir, nfs, persistentVolumeClaim are"
                ));
            }
        })
    }

    fn optional(&mut self, key: &str) -> Option<String> {
        let text = self.keys.remove(key)?.text;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn needed(&mut self, key: &str) -> Result<String, String> {
        let VolumeKeys { kind, name, .. } = *self;
        self.optional(key).ok_or_else(|| {
            format!("volume {name} needs spark.kubernetes.executor.volumes.{kind}.{name}.{key}")
        })
    }
}
