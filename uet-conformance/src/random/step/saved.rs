//! The form of numbers and lists in a file: without defaults, and up to their limits.

use super::{ContextPlan, RegionPlan, Step};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Maximum number of steps.
const MAX_STEPS: usize = 1 << 14;

/// Maximum number of contexts, and of regions. Several cases of the fuzzer may become one script.
const MAX_PLACES: usize = 256;

/// Maximum length of a message or a region, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Maximum pause, in microseconds.
const MAX_PAUSE: u64 = 10_000_000;

/// Maximum number of peers.
pub(in crate::random) const PEERS: u8 = 3;

/// Maximum number of jobs.
pub(in crate::random) const JOBS: u8 = 2;

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a number of at most `limit`.
fn at_most<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    from: D,
    (name, limit): (&str, u64),
) -> Result<T, D::Error> {
    let number = u64::deserialize(from)?;
    let fits = Some(number).filter(|number| *number <= limit).and_then(|number| T::try_from(number).ok());
    fits.ok_or_else(|| D::Error::custom(format!("`{name}` is {number}, above the limit of {limit}")))
}

pub(super) fn length<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    at_most(from, ("length", MAX_LENGTH))
}

pub(super) fn pause<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    at_most(from, ("us", MAX_PAUSE))
}

pub(super) fn peer<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    at_most(from, ("peer", u64::from(PEERS) - 1))
}

pub(super) fn job<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    at_most(from, ("job", u64::from(JOBS) - 1))
}

/// Reads a list of at most `limit` entries.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    (name, limit): (&str, usize),
) -> Result<Vec<T>, D::Error> {
    let all = Vec::deserialize(from)?;
    if all.len() <= limit {
        Ok(all)
    } else {
        Err(D::Error::custom(format!("{} {name}, above the limit of {limit}", all.len())))
    }
}

pub(super) fn regions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RegionPlan>, D::Error> {
    list(from, ("regions", MAX_PLACES))
}

pub(super) fn contexts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ContextPlan>, D::Error> {
    list(from, ("contexts", MAX_PLACES))
}

/// Reads the steps. An error names the step.
pub(super) fn steps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Step>, D::Error> {
    let steps: Vec<Value> = list(from, ("steps", MAX_STEPS))?;
    let read = |(index, step)| {
        serde_json::from_value(step).map_err(|error| D::Error::custom(format!("step {}: {error}", index + 1)))
    };
    steps.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Sequence;

    fn read(step: &str) -> Result<Sequence, String> {
        let text = format!(r#"{{"regions":[],"contexts":[],"steps":[{step}]}}"#);
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn nonsense_is_refused_with_its_step() {
        assert!(read(r#"{"step":"message","context":0,"kind":"write","length":8}"#).is_ok());
        for (step, wanted) in [
            (
                r#"{"step":"message","context":0,"kind":"write","length":4294967295}"#,
                "`length` is 4294967295, above the limit of 1048576",
            ),
            (r#"{"step":"pause","us":10000001}"#, "`us` is 10000001, above the limit of 10000000"),
            (r#"{"step":"post","peer":3,"kind":"read","length":1}"#, "`peer` is 3, above the limit of 2"),
            (r#"{"step":"dance"}"#, "unknown variant `dance`"),
            (
                r#"{"step":"hostile","context":0,"packet":"ack","edits":[{"edit":"cut","bytes":1}]}"#,
                "unknown field `bytes`",
            ),
            (r#"{"step":"pause","us":1,"often":2}"#, "unknown field `often`"),
            (r#"{"step":"message","context":0,"kind":"write","length":8,"x":1}"#, "unknown field `x`"),
            (r#"{"step":"message","context":-1,"kind":"write","length":8}"#, "invalid value"),
        ] {
            let error = read(step).unwrap_err();
            assert!(error.contains(wanted) && error.contains("step 1: "), "{step}: {error}");
        }
        let many = vec![r#"{"step":"pause","us":1}"#; MAX_STEPS + 1].join(",");
        assert!(read(&many).unwrap_err().contains("16385 steps, above the limit of 16384"));
    }

    #[test]
    fn a_conversation_has_at_most_256_contexts() {
        let read = |count: usize| {
            let contexts = vec![r#"{"pdcid":1,"start":1}"#; count].join(",");
            let text = format!(r#"{{"regions":[],"contexts":[{contexts}],"steps":[]}}"#);
            serde_json::from_str::<Sequence>(&text).map_err(|error| error.to_string())
        };
        assert!(read(MAX_PLACES).is_ok());
        assert!(read(MAX_PLACES + 1).unwrap_err().contains("257 contexts, above the limit of 256"));
    }
}
