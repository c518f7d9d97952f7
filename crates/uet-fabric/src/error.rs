use core::fmt;
use std::borrow::Cow;
use uet_model::Failure;
use uet_model::ses::{OperationError, PostError};
use uet_wire::registry::ReturnCode;

/// An error code of libfabric, as a positive number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

#[allow(missing_docs, reason = "the names are those of libfabric")]
impl Code {
    pub const EIO: Code = Code(5);
    pub const EAGAIN: Code = Code(11);
    pub const ENOMEM: Code = Code(12);
    pub const EACCES: Code = Code(13);
    pub const EBUSY: Code = Code(16);
    pub const EINVAL: Code = Code(22);
    pub const ENOSYS: Code = Code(38);
    pub const ENOMSG: Code = Code(42);
    pub const ENODATA: Code = Code(61);
    pub const EMSGSIZE: Code = Code(90);
    pub const EOPNOTSUPP: Code = Code(95);
    pub const EADDRINUSE: Code = Code(98);
    pub const EADDRNOTAVAIL: Code = Code(99);
    pub const ECONNABORTED: Code = Code(103);
    pub const ETIMEDOUT: Code = Code(110);
    pub const EHOSTUNREACH: Code = Code(113);
    pub const ECANCELED: Code = Code(125);
    pub const EOTHER: Code = Code(256);
    pub const ETOOSMALL: Code = Code(257);
    pub const EOPBADSTATE: Code = Code(258);
    pub const EAVAIL: Code = Code(259);
    pub const EBADFLAGS: Code = Code(260);
    pub const ENOCQ: Code = Code(263);
    pub const ETRUNC: Code = Code(265);
    pub const ENOKEY: Code = Code(266);
    pub const ENOAV: Code = Code(267);
    pub const ENORX: Code = Code(269);
}

/// An error: a code of libfabric, and a sentence for its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The code.
    pub code: Code,
    /// The cause, and the remedy if there is one.
    pub message: Cow<'static, str>,
}

/// A result with an [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    /// Creates an error.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Error { code, message: message.into() }
    }

    pub(crate) fn from_io(what: &str, error: &std::io::Error) -> Self {
        let code = error.raw_os_error().map_or(Code::EIO, Code);
        Error::new(code, format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Error {}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Error::new(code, "")
    }
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        let code = match error {
            // The application tries again, so this is nothing for the log.
            PostError::Full => return Code::EAGAIN.into(),
            PostError::TooLong { .. } => Code::EMSGSIZE,
            PostError::Mode | PostError::Form | PostError::Header(_) | PostError::Source => Code::EINVAL,
        };
        Error::new(code, error.to_string())
    }
}

impl Code {
    /// Returns the code for a failed operation.
    pub(crate) fn of_operation(error: &OperationError) -> Code {
        match error.why {
            Some(Failure::TimedOut | Failure::Refused(_)) => Code::ETIMEDOUT,
            Some(Failure::Ended(_) | Failure::Closed) => Code::ECONNABORTED,
            Some(Failure::NoContext) => Code::ENOMEM,
            None => Code::of_response(error.code),
        }
    }

    /// Returns the code for an error response, or for a receive that did not complete.
    pub(crate) fn of_response(code: ReturnCode) -> Code {
        match code {
            ReturnCode::NO_MATCH | ReturnCode::DISABLED | ReturnCode::DISABLED_GEN => Code::ENORX,
            ReturnCode::BAD_MKEY => Code::ENOKEY,
            ReturnCode::OP_VIOLATION | ReturnCode::PERM_VIOLATION | ReturnCode::AT_PERM => Code::EACCES,
            ReturnCode::AT_OUT_OF_RANGE | ReturnCode::BAD_ADDR => Code::EINVAL,
            ReturnCode::BAD_INDEX | ReturnCode::BAD_PID | ReturnCode::BAD_JOB_ID => Code::EHOSTUNREACH,
            ReturnCode::BAD_GENERATION => Code::EHOSTUNREACH,
            ReturnCode::TOO_LONG => Code::ETRUNC,
            ReturnCode::CANCELLED => Code::ECANCELED,
            _ => Code::EIO,
        }
    }
}
