//! The user that executors run as on the agents.

use nix::unistd::{Uid, User};

use crate::error::Error;

/// Returns the name of the user as whom this program acts: the default of [`MesosConfig::user`].
///
/// [`MesosConfig::user`]: super::MesosConfig::user
///
/// # Errors
/// If the effective user is root, which executors are never by default, or has no name on this machine.
pub fn default_user() -> Result<String, Error> {
    let uid = Uid::effective();
    let why = match User::from_uid(uid) {
        _ if uid.is_root() => {
            "this program runs as root, and executors do so only on request".to_owned()
        }
        Ok(Some(user)) if !user.name.is_empty() => return Ok(user.name),
        Ok(_) => format!("the id of this program's user, {uid}, has no name on this machine"),
        Err(error) => format!("the name of this program's user, {uid}, can't be told: {error}"),
    };
    let allowed = format!("the name of the user that executors run as on the agents ({why})");
    Err(Error::setting("user", "", allowed))
}
