//! One stand-in at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::Error;

/// The lock, held until it is dropped (or the process ends).
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or says that another one has it. Does not wait.
    pub(super) fn take(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Lock { path: path.to_owned(), source };
        let file =
            File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
