//! Files of this machine that executors find in their containers.

use std::io::Read;
use std::path::Path;

use offermill::cluster::kubernetes::{POD_FILES_BYTES_MAX, PodFiles};
use offermill::launch::spark::CONF_DIR;
use offermill::private_files::{FileAccess, open_input};

use crate::settings::draft::SettingsDraft;

/// The folder of the files.
const FOLDER: &str = "/opt/offermill/files";

/// Reads the files. One that can't be read, or that another user may have written, and more than there is room for are
/// reported.
pub(super) fn read(draft: &mut SettingsDraft) -> PodFiles {
    let default = if draft.kubernetes.runs_spark { CONF_DIR } else { FOLDER };
    let mut files = PodFiles::new(draft.kubernetes.files_folder.as_deref().unwrap_or(default));
    let Some((given, paths)) = draft.kubernetes.files.clone() else { return files };
    if draft.kubernetes.has_no_config_map {
        let why = "files are in a config map";
        draft.report_conflict(
            &["spark.kubernetes.executor.disableConfigMap", "offermill.kubernetes.files"],
            why,
        );
        return files;
    }
    for path in &paths {
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match read_file(Path::new(path)) {
            Ok(_) if files.contents.contains_key(name) => {
                let problem = format!("{} has two files named {name:?}", given.name);
                draft.problems.push(problem);
            }
            Ok(bytes) => {
                files.contents.insert(name.to_owned(), bytes);
            }
            Err(error) => draft.problems.push(format!("{}: {path:?} ({error})", given.name)),
        }
    }
    let most = draft.kubernetes.config_map_bytes_max;
    if files.bytes() > most {
        let problem = format!(
            "{} has more than {most} bytes, which is the most that executors can be given \
             (spark.kubernetes.configMap.maxSize)",
            given.name
        );
        draft.problems.push(problem);
    }
    files
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = open_input(path)?;
    FileAccess::of(&file)?.check_author()?;
    let mut bytes = Vec::new();
    // One more than there is room for, so that a longer file is known to be one.
    file.take(POD_FILES_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
