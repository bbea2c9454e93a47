//! Who may look: anybody on this machine; from elsewhere only with TLS and a token.

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A token shorter than this can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// No token is longer.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Why access cannot be set up like this.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Others could look without being known, or read what is sent.
    #[error("{0} can be reached from other machines: that needs TLS and a token")]
    Exposed(SocketAddr),
    /// The token's file cannot be used. Nothing of it is told.
    #[error("{}: {why}", path.display())]
    Token {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What a request has to show.
#[derive(Clone, Default)]
pub struct Access {
    token: Option<String>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Access {{ token: {} }}", if self.token.is_some() { "set" } else { "none" })
    }
}

impl Access {
    /// Reads the token, and refuses an address that others reach without TLS and a token.
    pub fn new(
        listen: SocketAddr,
        token_file: Option<&Path>,
        tls: bool,
    ) -> Result<Self, AccessError> {
        let token = token_file.map(read_token).transpose()?;
        if !listen.ip().is_loopback() && (token.is_none() || !tls) {
            return Err(AccessError::Exposed(listen));
        }
        Ok(Self { token })
    }

    /// Whether a request with this header may look. A browser sends the token as a password.
    pub(crate) fn allows(&self, authorization: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let Some((scheme, value)) = authorization.and_then(|text| text.split_once(' ')) else {
            return false;
        };
        let shown = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => value.trim().to_owned(),
            "basic" => {
                let decoded = STANDARD.decode(value.trim()).unwrap_or_default();
                let text = String::from_utf8(decoded).unwrap_or_default();
                text.split_once(':').map(|(_, word)| word.to_owned()).unwrap_or_default()
            }
            _ => return false,
        };
        same(shown.as_bytes(), token.as_bytes())
    }
}

/// Compares without telling by its duration where the first difference is.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0_u8, |seen, (a, b)| seen | (a ^ b));
    one.len() == other.len() && differs == 0
}

fn read_token(path: &Path) -> Result<String, AccessError> {
    let wrong = |why: String| AccessError::Token { path: path.to_owned(), why };
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mode = file.metadata().map_err(|error| wrong(error.to_string()))?.mode() & 0o077;
    if mode != 0 {
        return Err(wrong("group and others must have no access (0600)".to_owned()));
    }
    let mut text = String::new();
    file.take(TOKEN_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| wrong(error.to_string()))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN {
        return Err(wrong(format!("a token has at least {TOKEN_BYTES_MIN} characters")));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn token_file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    /// Only this machine may look without being known; anything else needs both TLS and a token.
    #[test]
    fn exposure_needs_tls_and_a_token() {
        let file = token_file("correct-horse-battery\n", 0o600);
        let token = Some(file.path());
        for local in ["127.0.0.1:9470", "[::1]:9470"] {
            assert!(Access::new(local.parse().unwrap(), None, false).is_ok());
        }
        let open: SocketAddr = "0.0.0.0:9470".parse().unwrap();
        assert!(Access::new(open, None, true).is_err());
        assert!(Access::new(open, token, false).is_err());
        assert!(Access::new(open, token, true).is_ok());
    }

    /// The token is taken as bearer and as password, whole or not at all; it is never shown.
    #[test]
    fn the_token_is_whole_or_wrong() {
        let file = token_file("correct-horse-battery\n", 0o600);
        let local = "127.0.0.1:9470".parse().unwrap();
        let access = Access::new(local, Some(file.path()), false).unwrap();
        let basic = format!("Basic {}", STANDARD.encode("anybody:correct-horse-battery"));
        assert!(access.allows(Some("Bearer correct-horse-battery")));
        assert!(access.allows(Some(&basic)));
        for wrong in
            ["Bearer correct-horse-batter", "Bearer correct-horse-battery2", "Basic !!", "x", ""]
        {
            assert!(!access.allows(Some(wrong)), "{wrong}");
        }
        assert!(!access.allows(None));
        assert!(!format!("{access:?}").contains("horse"));
    }

    /// A token that others can read, or guess, is refused.
    #[test]
    fn a_weak_token_is_refused() {
        let local = "127.0.0.1:9470".parse().unwrap();
        for (text, mode) in [("correct-horse-battery", 0o644), ("short", 0o600)] {
            let file = token_file(text, mode);
            let error = Access::new(local, Some(file.path()), false).unwrap_err().to_string();
            assert!(!error.contains(text), "{error}");
        }
    }
}
