// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What can go wrong, by type.

use std::error;
use std::fmt;
use std::io;

/// An operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The deadline has passed.
    DeadlinePassed,
    /// The progress function said so.
    Cancelled,
    /// The system refused.
    System {
        operation: &'static str,
        /// as of errno(3)
        errno: i32,
        /// the first byte that failed, from the beginning of what was given; `None`
        /// where no byte has: a limit that was found out before
        offset: Option<usize>,
    },
}

// The same on every Linux that the library is compiled for.
const ETIMEDOUT: i32 = 110;
const ECANCELED: i32 = 125;

impl Error {
    /// Of a code that is not 0, as the library returns it.
    pub(crate) fn new(operation: &'static str, code: i32, offset: Option<usize>) -> Self {
        match -code {
            ETIMEDOUT => Error::DeadlinePassed,
            ECANCELED => Error::Cancelled,
            errno => Error::System {
                operation,
                errno,
                offset,
            },
        }
    }

    /// As of errno(3).
    pub fn errno(&self) -> i32 {
        match self {
            Error::DeadlinePassed => ETIMEDOUT,
            Error::Cancelled => ECANCELED,
            Error::System { errno, .. } => *errno,
        }
    }

    /// The first byte that failed, where one has.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Error::System { offset, .. } => *offset,
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::DeadlinePassed => write!(f, "the deadline has passed"),
            Error::Cancelled => write!(f, "cancelled"),
            Error::System {
                operation,
                errno,
                offset,
            } => {
                write!(f, "{operation}")?;
                if let Some(offset) = offset {
                    write!(f, " at byte {offset}")?;
                }
                write!(f, ": {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = io::Error::from_raw_os_error(error.errno()).kind();
        io::Error::new(kind, error)
    }
}

/// A job, or registering memory, failed and was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError<E> {
    /// A chunk or a piece failed; of several chunks, the one that begins lowest.
    Chunk {
        /// where it begins: a position, of a piece a byte
        start: usize,
        error: E,
    },
    /// The job was ended, or could not begin.
    Ended(Error),
}

impl<E: fmt::Display> fmt::Display for JobError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Chunk { start, error } => write!(f, "chunk at {start}: {error}"),
            JobError::Ended(error) => write!(f, "job: {error}"),
        }
    }
}

impl<E: error::Error + 'static> error::Error for JobError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            JobError::Chunk { error, .. } => Some(error),
            JobError::Ended(error) => Some(error),
        }
    }
}
