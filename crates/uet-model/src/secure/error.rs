use core::fmt;
use uet_wire::tss::DomainError;

/// The reason why the settings of a domain cannot be used safely (section 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// The domain's own settings.
    Domain(DomainError),
    /// Two domains have one number.
    TwoDomains,
    /// A client's key in a domain of another mode, or the key of the domain at a client.
    KeyKind,
    /// A member of a domain with source identifiers has none.
    NoSsi,
    /// A member of a domain without source identifiers has one.
    UnexpectedSsi,
    /// Both ends of a client-server domain with source identifiers would use one part of the counters.
    CounterBase,
    /// The counters hold as many keys and epochs as they can.
    TooManyKeys,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Domain(error) => error.fmt(f),
            SettingsError::TwoDomains => f.write_str("two domains have one SDI"),
            SettingsError::KeyKind => {
                f.write_str("a client holds a key of 44 bytes, and all other members one of 32 bytes")
            }
            SettingsError::NoSsi => {
                f.write_str("the domain uses source identifiers, and this endpoint has none")
            }
            SettingsError::UnexpectedSsi => {
                f.write_str("the domain uses no source identifiers, and this endpoint has one")
            }
            SettingsError::CounterBase => f.write_str(
                "counter_base is 0 or 2^47: client and server each need their own half of the counters",
            ),
            SettingsError::TooManyKeys => {
                f.write_str("1,048,576 keys and epochs have been used; restart the program to use others")
            }
        }
    }
}

impl core::error::Error for SettingsError {}

impl From<DomainError> for SettingsError {
    fn from(error: DomainError) -> Self {
        SettingsError::Domain(error)
    }
}
