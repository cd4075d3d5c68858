//! Checks who can reach the page about a run.

use offermill::private_files::FileAccess;

use crate::settings::draft::SettingsDraft;
use crate::settings::file_access::report_file_access;
use crate::settings::values::http::HttpPlan;

/// Where and for whom the page is served; `None` if it isn't, or if there are problems. Beyond loopback it needs a
/// token, and TLS or the word that there is none.
pub(crate) fn plan(draft: &mut SettingsDraft) -> Option<HttpPlan> {
    let certificate = certificate(draft);
    let (given, address) = draft.http.address.clone()?;
    let is_public = !address.ip().is_loopback();
    let is_tokenless = draft.http.token.is_none() && draft.is_read("offermill.http.tokenFile");
    if is_public && is_tokenless {
        let allowed = "an address of loopback, or there must be a token too: --http-token-file";
        draft.reject(&given, allowed);
    } else if is_public
        && draft.http.token.is_some()
        && certificate.is_none()
        && !draft.http.plain_token
    {
        draft.problems.push(format!(
            "{}: the token would go over the network unencrypted; give offermill.http.certificateFile and \
             offermill.http.keyFile, or offermill.http.tokenOverHttp=true",
            given.name
        ));
    }
    Some(HttpPlan {
        given: (given.name, given.text),
        address,
        token: draft.http.token.clone(),
        hosts: draft.http.hosts.clone(),
        certificate,
    })
}

/// The files of the certificate and the key. Reports one without the other, and files that may be another user's.
fn certificate(draft: &mut SettingsDraft) -> Option<(std::path::PathBuf, std::path::PathBuf)> {
    let (certificate, key) =
        match (draft.http.certificate_file.clone(), draft.http.key_file.clone()) {
            (None, None) => return None,
            (Some(certificate), Some(key)) => (certificate, key),
            (Some((given, _)), None) => {
                let name = given.name;
                draft
                    .problems
                    .push(format!("{name} is given alone; give offermill.http.keyFile too"));
                return None;
            }
            (None, Some((given, _))) => {
                let name = given.name;
                let missing = "offermill.http.certificateFile";
                draft.problems.push(format!("{name} is given alone; give {missing} too"));
                return None;
            }
        };
    if let Err(error) = FileAccess::of_path(&certificate.1).and_then(FileAccess::check_author) {
        draft.reject(&certificate.0, &format!("a file with certificates ({error})"));
    }
    match FileAccess::of_path(&key.1) {
        Ok(access) => {
            let SettingsDraft { remarks, problems, .. } = draft;
            report_file_access(access, &key.0.text, remarks, problems);
        }
        Err(error) => draft.reject(&key.0, &format!("a file with a private key ({error})")),
    }
    Some((certificate.1, key.1))
}
