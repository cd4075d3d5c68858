//! A file with a bearer token, which is read again from time to time, and after the server has refused the token:
//! tokens expire, and others replace the file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;

/// For how long the token in a file isn't read again.
const FRESH: Duration = Duration::from_secs(60);

/// A file with a bearer token.
#[derive(Clone)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// The header with the token, and until when it isn't read again.
    read: Arc<Mutex<Option<(HeaderValue, Instant)>>>,
}

impl TokenFile {
    pub(super) fn new(path: PathBuf) -> TokenFile {
        TokenFile { path, read: Arc::default() }
    }

    /// The header `Authorization` with the token, without blanks and line breaks around it. If the file can't be read
    /// any more, that with the last token.
    ///
    /// # Errors
    /// If the file can't be read, or has no token in it.
    pub(super) fn header(&self) -> Result<HeaderValue, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((header, until)) = &*read
            && Instant::now() < *until
        {
            return Ok(header.clone());
        }
        match (self.read(), &mut *read) {
            (Ok(header), read) => {
                *read = Some((header.clone(), Instant::now() + FRESH));
                Ok(header)
            }
            (Err(_), Some((header, _))) => Ok(header.clone()),
            (Err(why), None) => Err(why),
        }
    }

    /// The server has refused a token: the file is read again. Whether there is another in it.
    pub(super) fn refused(&self, token: &HeaderValue) -> bool {
        if let Some((read, until)) = &mut *self.read.lock().unwrap_or_else(PoisonError::into_inner)
            && read == token
        {
            *until = Instant::now();
        }
        self.header().is_ok_and(|now| now != token)
    }

    fn read(&self) -> Result<HeaderValue, String> {
        let text = std::fs::read_to_string(&self.path);
        let text = text.map_err(|error| format!("token file {}: {error}", self.path.display()))?;
        let no_token = || format!("token file {}: there is no token in it", self.path.display());
        let token = Some(text.trim()).filter(|token| !token.is_empty()).ok_or_else(no_token)?;
        let mut header =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Goal: the token is that of the file, with or without a line break; a file that is replaced is read again, at
    /// once if the server refuses the token, and one that is gone leaves the last token. Method: one file in each
    /// state, with the time of the last reading set back.
    #[test]
    fn tokens_are_read_again() {
        let path = std::env::temp_dir().join(format!("offermill-token-{}", std::process::id()));
        let file = TokenFile::new(path.clone());
        assert!(file.header().unwrap_err().contains("No such file"));
        fs::write(&path, " \n").unwrap();
        assert!(file.header().unwrap_err().contains("no token"));
        fs::write(&path, "one\n").unwrap();
        assert_eq!(file.header().unwrap(), "Bearer one");
        fs::write(&path, "two").unwrap();
        assert_eq!(file.header().unwrap(), "Bearer one", "it was read a moment ago");
        let expire = || {
            let mut read = file.read.lock().unwrap();
            let until = &mut read.as_mut().unwrap().1;
            assert!(*until > Instant::now());
            *until -= FRESH;
        };
        expire();
        assert_eq!(file.header().unwrap(), "Bearer two");
        fs::write(&path, "three").unwrap();
        let two = file.header().unwrap();
        assert!(
            file.refused(&two) && file.refused(&two),
            "the file has another token for each refused request"
        );
        let three = file.header().unwrap();
        assert_eq!(three, "Bearer three");
        assert!(!file.refused(&three));
        fs::remove_file(&path).unwrap();
        expire();
        assert_eq!(file.header().unwrap(), "Bearer three");
    }
}
