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
            ("Gb/s", 1_000_000_000),
            ("G", 1_000_000_000),
            ("Tb/s", 1_000_000_000_000),
            ("T", 1_000_000_000_000),
            ("Mb/s", 1_000_000),
            ("M", 1_000_000),
            ("kb/s", 1_000),
            ("b/s", 1),
        ];
        Ok(Rate(scaled(text, &units).ok_or("a rate, such as 100Gb/s or 1.6Tb/s")?))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
            ("KB", 1_000),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("B", 1),
            ("", 1),
        ];
        Ok(Size(scaled(text, &units).ok_or("a size in whole bytes, such as 2MB, 64KiB or 1500")?))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let nanos = scaled(text, &units).ok_or("a time in whole nanoseconds, such as 14us or 1.5ms")?;
        Ok(Span(Duration::from_nanos(nanos)))
    }
}

/// Parses a number of at least 0 in one of these units. The result is exact: a fraction of 1 gives `None`.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = [whole, decimals].concat().parse().ok()?;
    let scaled = digits.checked_mul((*factor).into())?;
    let divisor = 10_u128.checked_pow(decimals.len().try_into().ok()?)?;
    if scaled % divisor == 0 { u64::try_from(scaled / divisor).ok() } else { None }
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
        for text in ["", "us", ".us", "-1us", "1e3us", "14", "14 parsecs", "1.2.3us", "0.5ns"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!("1.001KB".parse(), Ok(Size(1001)));
        assert!("1.5".parse::<Size>().is_err() && "0.1KiB".parse::<Size>().is_err());
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
