//! Colors for terminals that support them.

use std::fmt::{self, Display, Formatter};
use std::io::{self, IsTerminal};

/// Displays an untrusted text on one line, [escaped](uet_control::escape).
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a str);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&uet_control::escape(self.0))
    }
}

/// True to print colors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint(bool);

impl Paint {
    /// Enables colors if standard output is a terminal and `NO_COLOR` is not set (<https://no-color.org>).
    pub fn stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let able = std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        Paint(wanted && able && io::stdout().is_terminal())
    }

    /// Styles the name of a thing.
    pub fn name<T: Display>(self, what: T) -> Painted<T> {
        self.paint("36", what)
    }

    /// Styles a heading.
    pub fn strong<T: Display>(self, what: T) -> Painted<T> {
        self.paint("1", what)
    }

    /// Styles secondary information.
    pub fn faint<T: Display>(self, what: T) -> Painted<T> {
        self.paint("2", what)
    }

    /// Styles an error.
    pub fn error<T: Display>(self, what: T) -> Painted<T> {
        self.paint("1;31", what)
    }

    /// Styles a warning.
    pub fn warning<T: Display>(self, what: T) -> Painted<T> {
        self.paint("33", what)
    }

    fn paint<T: Display>(self, code: &'static str, what: T) -> Painted<T> {
        Painted { code: self.0.then_some(code), what }
    }
}

/// Displays a value in a color; padding counts visible characters.
#[derive(Clone, Copy, Debug)]
pub struct Painted<T> {
    code: Option<&'static str>,
    what: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.code {
            None => self.what.fmt(f),
            Some(code) => {
                write!(f, "\x1b[{code}m")?;
                self.what.fmt(f)?;
                f.write_str("\x1b[0m")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_keeps_the_width() {
        assert_eq!(format!("{:<5}|", Paint(false).error("ab")), "ab   |");
        assert_eq!(format!("{:<5}|", Paint(true).error("ab")), "\x1b[1;31mab   \x1b[0m|");
    }
}
