//! Numbers with units, as flags and files contain them and as they are printed.

use serde::de::{self, Deserializer, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

/// Bits per second: `100Gb/s`, `400G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

/// Bytes: `2MB`, `64KiB`, `1500`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A time: `14us`, `1.5ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("Gb/s", 1e9),
            ("G", 1e9),
            ("Tb/s", 1e12),
            ("T", 1e12),
            ("Mb/s", 1e6),
            ("M", 1e6),
            ("kb/s", 1e3),
            ("b/s", 1.0),
        ];
        Ok(Rate(scaled(text, &units).ok_or("a rate, such as 100Gb/s or 1.6Tb/s")? as u64))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("KiB", 1024.0),
            ("MiB", 1024.0 * 1024.0),
            ("GiB", 1024.0 * 1024.0 * 1024.0),
            ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0),
            ("KB", 1e3),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("B", 1.0),
            ("", 1.0),
        ];
        Ok(Size(scaled(text, &units).ok_or("a size, such as 2MB, 64KiB or 1500")? as u64))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let seconds = scaled(text, &units).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.map(Span).ok_or_else(|| "a time, such as 14us or 1.5ms".into())
    }
}

/// Parses a number of at least 0 in one of these units.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let number: f64 = number.parse().ok()?;
    Some(number * factor)
}

/// Deserializes a value that a flag also accepts: a text, or a number without a unit.
pub fn text<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(from: D) -> Result<Option<T>, D::Error> {
    struct Text<T>(PhantomData<T>);

    impl<T: FromStr<Err = String>> Visitor<'_> for Text<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a number")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            text.parse().map(Some).map_err(|reason| E::custom(format!("'{text}' is not {reason}")))
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
            self.visit_str(&number.to_string())
        }
    }
    from.deserialize_any(Text(PhantomData))
}

/// Displays a time with about three digits.
pub struct Time(pub Duration);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos() as f64;
        let text = match nanos {
            _ if nanos < 1e3 => format!("{nanos} ns"),
            _ if nanos < 1e6 => format!("{} us", digits(nanos / 1e3)),
            _ if nanos < 1e9 => format!("{} ms", digits(nanos / 1e6)),
            _ => format!("{} s", digits(nanos / 1e9)),
        };
        f.pad(&text)
    }
}

/// Displays bytes with about three digits.
pub struct Bytes(pub f64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            bytes if bytes < 1e3 => format!("{bytes:.0} B"),
            bytes if bytes < 1e6 => format!("{} KB", digits(bytes / 1e3)),
            bytes if bytes < 1e9 => format!("{} MB", digits(bytes / 1e6)),
            bytes => format!("{} GB", digits(bytes / 1e9)),
        };
        f.pad(&text)
    }
}

/// Displays bits per second with about three digits.
pub struct PerSecond(pub f64);

impl Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            bits if bits < 1e6 => format!("{} kb/s", digits(bits / 1e3)),
            bits if bits < 1e9 => format!("{} Mb/s", digits(bits / 1e6)),
            bits if bits < 1e12 => format!("{} Gb/s", digits(bits / 1e9)),
            bits => format!("{} Tb/s", digits(bits / 1e12)),
        };
        f.pad(&text)
    }
}

fn digits(number: f64) -> String {
    match number {
        _ if number < 9.995 => format!("{number:.2}"),
        _ if number < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        assert_eq!("100Gb/s".parse(), Ok(Rate(100_000_000_000)));
        assert_eq!("1.6 Tb/s".parse(), Ok(Rate(1_600_000_000_000)));
        assert_eq!("9.8kb/s".parse(), Ok(Rate(9_800)));
        assert_eq!("2MB".parse(), Ok(Size(2_000_000)));
        assert_eq!("1TiB".parse(), Ok(Size(1 << 40)));
        assert_eq!("64KiB".parse(), Ok(Size(65_536)));
        assert_eq!("1500".parse(), Ok(Size(1500)));
        assert_eq!("1.5us".parse(), Ok(Span(Duration::from_nanos(1500))));
        for text in ["", "us", "-1us", "1e3us", "14", "14 parsecs", "1.2.3us"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn printed_quantities_have_three_digits() {
        assert_eq!(Time(Duration::from_nanos(999)).to_string(), "999 ns");
        assert_eq!(Time(Duration::from_nanos(14_061)).to_string(), "14.1 us");
        assert_eq!(Time(Duration::from_millis(176)).to_string(), "176 ms");
        assert_eq!(Bytes(9_996.0).to_string(), "10.0 KB");
        assert_eq!(PerSecond(97.46e9).to_string(), "97.5 Gb/s");
        assert_eq!(PerSecond(9_800.0).to_string(), "9.80 kb/s");
    }
}
