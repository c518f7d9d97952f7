//! Converts errors into `std::io::Error` (feature `std`), so functions that read packets from files or sockets can use
//! `?`.

use crate::{ParseError, WriteError};
use std::io;

impl From<ParseError> for io::Error {
    fn from(error: ParseError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}
