use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The content of a buffer or a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// These bytes.
    Hex(Hex),
    /// The [`pattern`] of this seed.
    Seed(u32),
}

impl Fill {
    /// Returns the first `length` bytes. Given bytes that are too few are padded with zeros.
    pub fn bytes(&self, length: usize) -> Vec<u8> {
        self.part(0, length)
    }

    /// Returns `length` bytes from `offset` on, padded in the same way.
    pub fn part(&self, offset: usize, length: usize) -> Vec<u8> {
        match self {
            Fill::Hex(Hex(bytes)) => {
                let given = bytes.get(offset..).unwrap_or_default();
                let mut part = given[..given.len().min(length)].to_vec();
                part.resize(length, 0);
                part
            }
            Fill::Seed(seed) => {
                let mut product = seed.wrapping_add(offset as u32).wrapping_mul(FACTOR);
                let mut part = vec![0; length];
                // A loop, because a debug build takes ten times as long for iterators, and operations are large.
                // Additions take half as long as products.
                for byte in &mut part {
                    *byte = (product >> 24) as u8;
                    product = product.wrapping_add(FACTOR);
                }
                part
            }
        }
    }
}

/// Returns the bytes of a seed. Byte i is the most significant byte of (seed + i) * 2,654,435,761 modulo 2^32. Every
/// language can compute the pattern, and no shifted part of it resembles another part.
///
/// ```
/// assert_eq!(uet_control::pattern(1).take(4).collect::<Vec<_>>(), [0x9e, 0x3c, 0xda, 0x78]);
/// ```
pub fn pattern(seed: u32) -> impl Iterator<Item = u8> {
    (0u32..=u32::MAX).map(move |i| (seed.wrapping_add(i).wrapping_mul(FACTOR) >> 24) as u8)
}

const FACTOR: u32 = 2_654_435_761;

/// Bytes. In JSON, a string of hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&const_hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        if digits.len() % 2 != 0 {
            return Err(D::Error::custom(format_args!(
                "{} hexadecimal digits are not a whole number of bytes",
                digits.len()
            )));
        }
        // The library skips a prefix, and the contract has none.
        match const_hex::decode(&digits) {
            Ok(bytes) if !digits.starts_with("0x") => Ok(Hex(bytes)),
            _ => Err(D::Error::custom("not a string of hexadecimal digits")),
        }
    }
}

/// A number of up to 64 bits. In JSON, a string `"0x..."`, because many languages lose JSON digits beyond 53 bits.
/// Plain numbers are accepted too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex64(pub u64);

impl Serialize for Hex64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Hex64(number)),
            Either::Text(text) => text
                .strip_prefix("0x")
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .map(Hex64)
                .ok_or_else(|| {
                    D::Error::custom(format_args!("'{text}' is not \"0x\" with up to 16 hexadecimal digits"))
                }),
        }
    }
}

#[cfg(feature = "schema")]
mod schema {
    use super::{Hex, Hex64};
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use std::borrow::Cow;

    impl JsonSchema for Hex {
        fn schema_name() -> Cow<'static, str> {
            "Hex".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2})*$" })
        }
    }

    impl JsonSchema for Hex64 {
        fn schema_name() -> Cow<'static, str> {
            "Hex64".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "anyOf": [
                { "type": "string", "pattern": "^0x[0-9a-fA-F]{1,16}$" },
                { "type": "integer", "minimum": 0 },
            ] })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_pairs() {
        assert_eq!(serde_json::from_str::<Hex>(r#""0aFF""#).unwrap().0, [0x0a, 0xff]);
        for bad in [r#""abc""#, r#""zz""#, r#""é""#, "7"] {
            assert!(serde_json::from_str::<Hex>(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_string(&Hex(vec![0x0a, 0xff])).unwrap(), r#""0aff""#);
    }

    #[test]
    fn wide_numbers_keep_their_digits() {
        let highest = r#""0xffffffffffffffff""#;
        assert_eq!(serde_json::from_str::<Hex64>(highest).unwrap(), Hex64(u64::MAX));
        assert_eq!(serde_json::to_string(&Hex64(u64::MAX)).unwrap(), highest);
        assert_eq!(serde_json::from_str::<Hex64>("12").unwrap(), Hex64(12));
        for bad in [r#""0x10000000000000000""#, r#""12""#, "-1", r#""0x""#] {
            assert!(serde_json::from_str::<Hex64>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_given_is_zero() {
        assert_eq!(Fill::Hex(Hex(vec![1, 2])).bytes(4), [1, 2, 0, 0]);
        assert_eq!(Fill::Hex(Hex(vec![1, 2])).bytes(1), [1]);
        assert_eq!(Fill::Seed(2).bytes(2), [0x3c, 0xda]);
    }

    #[test]
    fn parts_are_parts_of_the_whole() {
        for fill in [Fill::Hex(Hex((0..20).collect())), Fill::Seed(u32::MAX - 4)] {
            let whole = fill.bytes(40);
            for (offset, length) in [(0, 40), (3, 9), (15, 10), (20, 20), (40, 0)] {
                assert_eq!(fill.part(offset, length), whole[offset..offset + length]);
            }
        }
        assert!(pattern(u32::MAX - 4).take(40).eq(Fill::Seed(u32::MAX - 4).bytes(40)));
    }
}
