//! Errors as those of input and output (feature `std`): a function that reads packets from a file or a
//! socket gives them on with `?`.

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
