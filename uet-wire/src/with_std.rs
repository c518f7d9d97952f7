//! Converts errors into `std::io::Error` (feature `std`), so functions that read packets from files or sockets can use
//! `?`.

use crate::{EditError, ParseError, WriteError};
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

impl From<EditError> for io::Error {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Parse(error) => error.into(),
            EditError::Write(error) => error.into(),
            EditError::Unfit { .. } => io::Error::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, PacketMut, Start};
    use std::string::ToString;

    #[test]
    fn an_edit_error_becomes_an_io_error() {
        let mut bytes = [0x38, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        let mut packet = PacketMut::new(Start::Uet, &mut bytes, &Options::default()).unwrap();
        let error = io::Error::from(packet.mark_ce().unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "field `ip.ecn` can be changed only in a packet with an IP header");
        let short = PacketMut::new(Start::Ip, &mut [], &Options::default()).unwrap_err();
        assert_eq!(io::Error::from(EditError::from(short)).kind(), io::ErrorKind::InvalidData);
    }
}
