//! Observations of a rule, each with the expected and the observed value.

use core::fmt::Display;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use uet_control::{Completion, Form, Hex, Hex64, Status};
use uet_wire::catalogue::Requirement;
use uet_wire::registry::{
    AckRequest, AtomicDatatype, AtomicOpcode, CcType, CtlType, List, NackCode, NextHdr, Opcode, PdsType,
    ResponseOpcode, ReturnCode,
};
use uet_wire::ses::Response;
use uet_wire::{PdcId, Psn, PsnOffset, Units24};

/// One comparison of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The requirement that the comparison checks.
    pub requirement: String,
    /// The quantity or packet, for example `cack_psn`.
    pub what: String,
    /// The relation that must hold.
    pub relation: Relation,
    /// The expected value; empty where `what` says everything.
    #[serde(default)]
    pub expected: String,
    /// The observed value.
    pub seen: String,
    /// The tolerance that is part of `expected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// The parameter that `expected` follows from, with its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The number in the trace of the packet that it is about, or of the last one before.
    pub packet: usize,
    /// The number of the suite's packet that caused it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<usize>,
    /// True if the relation held. Results in JSON list only observations for which it did not.
    #[serde(default, skip_serializing)]
    pub held: bool,
}

impl Observation {
    /// Creates an observation without an expected value, about no packet.
    pub(crate) fn new(
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        seen: String,
    ) -> Self {
        Observation {
            requirement: requirement.id.to_owned(),
            what: what.to_owned(),
            relation,
            expected: String::new(),
            seen,
            tolerance: None,
            from: None,
            packet: 0,
            request: None,
            held,
        }
    }

    /// The expectation, in words: `the time between them at least 2 ms (nack_retx_time, device)`.
    pub fn expectation(&self) -> String {
        let mut text = self.what.clone();
        if !self.expected.is_empty() {
            let word = self.relation.word();
            let gap = if word.is_empty() { "" } else { " " };
            text = format!("{} {word}{gap}{}", text.trim_end_matches(':'), self.expected);
        }
        let notes: Vec<&str> = self.from.iter().chain(&self.tolerance).map(String::as_str).collect();
        if notes.is_empty() { text } else { format!("{text} ({})", notes.join(", ")) }
    }
}

/// Returns the sentence of a requirement as an expectation: `that an ACK repeats m`.
pub(crate) fn that(requirement: &Requirement) -> String {
    let sentence = requirement.sentence;
    let first = sentence.split(' ').next().unwrap_or_default();
    // Names such as ROD, ACKs and Start_PSN keep their capitals.
    let is_word = first.chars().skip(1).all(|c| c.is_ascii_lowercase());
    match sentence.get(..1).filter(|_| is_word) {
        Some(letter) => format!("that {}{}", letter.to_ascii_lowercase(), &sentence[1..]),
        None => format!("that {sentence}"),
    }
}

/// The required relation of an observed value to the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// It equals the value.
    Equal,
    /// It is the value or more.
    AtLeast,
    /// It is the value or less.
    AtMost,
    /// It lies in the range.
    Between,
    /// It is one of the values.
    OneOf,
    /// A packet or event comes.
    Present,
    /// No such packet or event comes.
    Absent,
    /// Memory holds the bytes.
    Memory,
    /// The statement holds.
    True,
}

impl Relation {
    /// Returns the operator: `==`, `>=`, `<=`, `in` or `one of`; empty for other relations.
    pub const fn operator(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::AtLeast => ">=",
            Relation::AtMost => "<=",
            Relation::Between => "in",
            Relation::OneOf => "one of",
            Relation::Present | Relation::Absent | Relation::Memory | Relation::True => "",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Relation::AtLeast => "at least",
            Relation::AtMost => "at most",
            Relation::Between => "from",
            Relation::OneOf => "one of",
            _ => "",
        }
    }
}

/// A bound that a value is compared with, and the parameter that it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound<T> {
    /// The value, tolerance included.
    pub value: T,
    /// The parameter and its source.
    pub from: Option<String>,
    /// The tolerance, in words.
    pub tolerance: Option<String>,
}

impl<T> From<T> for Bound<T> {
    fn from(value: T) -> Self {
        Bound { value, from: None, tolerance: None }
    }
}

impl<T> Bound<T> {
    /// The bound with the parameter that it follows from.
    pub fn from_parameter(self, from: impl Into<String>) -> Self {
        Bound { from: Some(from.into()), ..self }
    }

    /// The bound with the tolerance that its value includes.
    pub fn tolerating(self, tolerance: impl Into<String>) -> Self {
        Bound { tolerance: Some(tolerance.into()), ..self }
    }
}

/// A value that a report can show to a person.
pub trait Show {
    /// True for a time, which a busy machine makes longer.
    const IS_TIME: bool = false;

    /// The value, in words.
    fn show(&self) -> String;

    /// Several values, in words.
    fn show_all(values: &[Self]) -> String
    where
        Self: Sized,
    {
        match values {
            [] => "none".into(),
            values => values.iter().map(Show::show).collect::<Vec<_>>().join(", "),
        }
    }
}

/// Bytes of a long value that a report shows.
const SHOWN: usize = 32;

impl Show for u8 {
    fn show(&self) -> String {
        self.to_string()
    }

    /// Bytes are data, and so hexadecimal.
    fn show_all(bytes: &[u8]) -> String {
        let hex: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        match bytes.len() {
            0 => "no bytes".into(),
            length if length > SHOWN => format!("{hex}… ({length} bytes)"),
            _ => hex,
        }
    }
}

impl Show for bool {
    fn show(&self) -> String {
        if *self { "yes" } else { "no" }.into()
    }
}

impl Show for () {
    fn show(&self) -> String {
        "present".into()
    }
}

impl Show for Duration {
    const IS_TIME: bool = true;

    fn show(&self) -> String {
        let nanos = self.as_nanos();
        let scaled = |unit: u128| {
            let text = format!("{:.3}", nanos as f64 / unit as f64);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match nanos {
            0..1_000 => format!("{nanos} ns"),
            1_000..1_000_000 => format!("{} µs", scaled(1_000)),
            1_000_000..1_000_000_000 => format!("{} ms", scaled(1_000_000)),
            _ => format!("{} s", scaled(1_000_000_000)),
        }
    }
}

/// The word by which the control channel names a value.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".into(),
    }
}

impl Show for Status {
    fn show(&self) -> String {
        word(self)
    }
}

impl Show for Form {
    fn show(&self) -> String {
        word(self)
    }
}

impl Show for Completion {
    fn show(&self) -> String {
        let status = self.status.show();
        match (&self.return_code, self.length) {
            (Some(code), length) => format!("{status}, return code {code}, {length} bytes"),
            (None, length) => format!("{status}, {length} bytes"),
        }
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "nothing".into(), Show::show)
    }
}

impl<T: Show> Show for [T] {
    fn show(&self) -> String {
        T::show_all(self)
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> String {
        T::show_all(self)
    }
}

impl<T: Show, const N: usize> Show for [T; N] {
    fn show(&self) -> String {
        T::show_all(self)
    }
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self) -> String {
        (**self).show()
    }
}

impl<T: Show> Show for RangeInclusive<T> {
    fn show(&self) -> String {
        format!("{} to {}", self.start().show(), self.end().show())
    }
}

impl<A: Show, B: Show> Show for (A, B) {
    fn show(&self) -> String {
        format!("{}, {}", self.0.show(), self.1.show())
    }
}

impl<A: Show, B: Show, C: Show> Show for (A, B, C) {
    fn show(&self) -> String {
        format!("{}, {}, {}", self.0.show(), self.1.show(), self.2.show())
    }
}

impl<A: Show, B: Show, C: Show, D: Show> Show for (A, B, C, D) {
    fn show(&self) -> String {
        format!("{}, {}, {}, {}", self.0.show(), self.1.show(), self.2.show(), self.3.show())
    }
}

/// Shows values by their `Display`.
macro_rules! shown_by_display {
    ($($name:ty),*) => {
        $(impl Show for $name {
            fn show(&self) -> String {
                displayed(self)
            }
        })*
    };
}

fn displayed(value: &(impl Display + ?Sized)) -> String {
    value.to_string()
}

shown_by_display!(
    IpAddr,
    str,
    String,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    f64,
    Psn,
    PdcId,
    AckRequest,
    AtomicDatatype,
    AtomicOpcode,
    CcType,
    CtlType,
    List,
    NackCode,
    NextHdr,
    Opcode,
    PdsType,
    ResponseOpcode,
    ReturnCode
);

impl Show for Units24 {
    fn show(&self) -> String {
        format!("{} units", self.get())
    }
}

impl Show for PsnOffset {
    fn show(&self) -> String {
        self.get().to_string()
    }
}

impl Show for Hex {
    fn show(&self) -> String {
        self.0.show()
    }
}

impl Show for Hex64 {
    fn show(&self) -> String {
        format!("{:#018x}", self.0)
    }
}

impl Show for Response {
    fn show(&self) -> String {
        let head = self.head();
        let (opcode, code, id) = (head.opcode(), head.return_code(), self.message_id());
        format!("{opcode} {code}, message {id}, {} bytes", self.modified_length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_follows_that() {
        use uet_wire::catalogue::{PDS_ACK_002, SES_RESP_004};
        let expected = "that an ACK repeats m and retx of the packet that it answers";
        assert_eq!(that(PDS_ACK_002), expected);
        assert!(that(SES_RESP_004).starts_with("that if a target accepts only part of a message, "));
    }

    #[test]
    fn values_read_as_words() {
        assert_eq!(Duration::from_micros(2500).show(), "2.5 ms");
        assert_eq!(Some(vec![0u8, 255]).show(), "00ff");
        assert_eq!(vec![7u8; 100].show().chars().count(), 2 * SHOWN + "… (100 bytes)".chars().count());
        assert_eq!((Some(Psn(3)), true).show(), "3, yes");
        assert_eq!(None::<u32>.show(), "nothing");
        assert_eq!(vec![1u32, 2].show(), "1, 2");
        assert_eq!(Status::Ok.show(), "ok");
    }

    #[test]
    fn expectation_names_relation_tolerance_and_source() {
        let observation = Observation {
            requirement: "PDS-RTO-003".into(),
            what: "time to the retransmission".into(),
            relation: Relation::AtLeast,
            expected: "2 ms".into(),
            seen: "1 ms".into(),
            tolerance: Some("10 % tolerance".into()),
            from: Some("rto_init_time, device".into()),
            packet: 3,
            request: None,
            held: false,
        };
        let text = "time to the retransmission at least 2 ms (rto_init_time, device, 10 % tolerance)";
        assert_eq!(observation.expectation(), text);
    }
}
