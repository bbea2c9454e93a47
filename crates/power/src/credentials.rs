//! User name and password from a file that only its owner can read.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dyad_http::Secret;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// No credentials file is larger.
const BYTES_MAX: u64 = 4096;

/// What a BMC asks for.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The account's name.
    pub username: String,
    /// The account's password.
    pub password: Secret,
}

/// Why a credentials file is refused. Nothing of its content is ever told.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the credentials file {path}: {why}", path = .path.display())]
pub struct CredentialsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl Credentials {
    /// Reads the file: lines `username=…` and `password=…`, empty lines, and comments that start with `#`.
    ///
    /// The file must be a regular one, not a symbolic link, belong to the user that reads it (root, under
    /// Pacemaker), and be closed to everyone else.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let fault = |why: String| CredentialsError { path: path.to_owned(), why };
        if !path.is_absolute() {
            return Err(fault("its path is not absolute".to_owned()));
        }
        let text = read_private(path).map_err(fault)?;
        parse(&text).map_err(fault)
    }
}

/// Reads a secret from a file that only its owner, who is the reader, can read; says what is wrong with it, never
/// what is in it.
pub fn read_private(path: &Path) -> Result<Zeroizing<String>, String> {
    // Not following links, and not waiting for the other end of a pipe. What was opened is what is checked.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => "it is a symbolic link".to_owned(),
        Errno::NOENT => "it does not exist".to_owned(),
        other => other.to_string(),
    })?;
    let status = rustix::fs::fstat(&file).map_err(|error| error.to_string())?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err("it is not a regular file".to_owned());
    }
    let me = rustix::process::geteuid().as_raw();
    if status.st_uid != me {
        return Err(format!("it belongs to user {}, not to user {me}", status.st_uid));
    }
    let mode = status.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return Err(format!("its mode is {mode:04o}; group and others must have no access (0600)"));
    }
    let mut text = Zeroizing::new(String::with_capacity(BYTES_MAX as usize + 1));
    File::from(file)
        .take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("it is larger than {BYTES_MAX} bytes"));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Credentials, String> {
    let (mut username, mut password) = (None, None);
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(format!("line {number} has no ="))?;
        let slot = match key.trim() {
            "username" => &mut username,
            "password" => &mut password,
            _ => return Err(format!("line {number} is neither username= nor password=")),
        };
        if slot.is_some() {
            return Err(format!("line {number} says the same a second time"));
        }
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(format!("line {number} has an empty value or a control character"));
        }
        *slot = Some(Zeroizing::new(value.to_owned()));
    }
    let username = username.ok_or("it has no username= line")?;
    if username.contains(':') {
        return Err("the user name has a colon, which basic authentication cannot carry".to_owned());
    }
    let password = password.ok_or("it has no password= line")?;
    Ok(Credentials { username: username.to_string(), password: Secret::new(password.as_str()) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn file(directory: &Path, text: &str, mode: u32) -> PathBuf {
        let path = directory.join("bmc");
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    const GOOD: &str = "# BMC of node2\nusername=admin\n\npassword= s=cret#1 \n";

    /// The value is everything behind the first `=`, blanks and all.
    #[test]
    fn a_good_file() {
        let directory = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400] {
            let credentials = Credentials::read(&file(directory.path(), GOOD, mode)).unwrap();
            assert_eq!(credentials.username, "admin");
            assert_eq!(credentials.password.expose(), " s=cret#1 ");
            assert!(!format!("{credentials:?}").contains("s=cret"));
        }
    }

    /// A file that anyone else could read or replace is refused, with the reason.
    #[test]
    fn open_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for mode in [0o640, 0o604, 0o660, 0o666, 0o644, 0o610, 0o601] {
            let error = Credentials::read(&file(directory.path(), GOOD, mode)).unwrap_err();
            assert!(error.to_string().contains(&format!("{mode:04o}")), "{error}");
        }
        let target = file(directory.path(), GOOD, 0o600);
        let link = directory.path().join("link");
        symlink(&target, &link).unwrap();
        assert!(Credentials::read(&link).unwrap_err().to_string().contains("symbolic link"));
        let error = Credentials::read(directory.path()).unwrap_err();
        assert!(error.to_string().contains("regular"), "{error}");
        let error = Credentials::read(&directory.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
        assert!(Credentials::read(Path::new("bmc")).unwrap_err().to_string().contains("absolute"));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&target, Some(65534), None).unwrap();
            let error = Credentials::read(&target).unwrap_err();
            assert!(error.to_string().contains("belongs to user 65534"), "{error}");
        }
    }

    /// A file with an error is refused by line, and nothing of it is told.
    #[test]
    fn broken_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let long = format!("password={}\n", "hunter2".repeat(1000));
        for (text, reason) in [
            ("", "no username"),
            ("username=a\n", "no password"),
            ("password=hunter2\n", "no username"),
            ("username=a\npassword=\n", "line 2 has an empty"),
            ("username=a\nhunter2\n", "line 2 has no ="),
            ("username=a\npasword=hunter2\n", "line 2 is neither"),
            ("username=a\npassword=hunter2\npassword=x\n", "line 3 says"),
            ("username=a:b\npassword=hunter2\n", "colon"),
            ("username=a\npassword=hunter2\u{7}\n", "control"),
            (&long, "larger"),
        ] {
            let message =
                Credentials::read(&file(directory.path(), text, 0o600)).unwrap_err().to_string();
            assert!(message.contains(reason), "{text:?}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
