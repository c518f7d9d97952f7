//! Messages of the suite.

use super::Fate;
use super::saved::{is_default, length};
use crate::{Message, Part};
use serde::{Deserialize, Serialize};
use uet_control::PostKind;
use uet_wire::WriteError;
use uet_wire::registry::Opcode;

/// A message of the suite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePlan {
    /// The context, which gives addresses and job also to packets without one.
    pub context: usize,
    /// The kind of operation.
    pub kind: PostKind,
    /// How it is delivered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The region that it accesses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub region: usize,
    /// Offset in the region.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u64,
    /// Its length.
    #[serde(deserialize_with = "length")]
    pub length: u32,
    /// The form of its header.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
    /// Seed of its data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u32,
    /// `ses.atomic_opcode` and `ses.atomic_datatype` of an atomic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic: Option<(u8, u8)>,
    /// Match bits of a tagged send.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tag: u8,
    /// Bytes that a rendezvous send carries.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "length")]
    pub eager: u32,
    /// True if it has header data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub header_data: bool,
    /// True if its last packet is answered when all data is visible.
    #[serde(default, skip_serializing_if = "is_default")]
    pub complete: bool,
    /// True if its packets do not ask for an ACK.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quiet: bool,
    /// True if its packets have reserved bits set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved: bool,
    /// Its mistake.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wrong: Wrong,
    /// Effects of the network on its packets, one after the other, each for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fates: Vec<Fate>,
    /// Effects of the network on the packets that answer it, each for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Fate>,
}

impl MessagePlan {
    /// Returns its match bits, if its kind has some.
    pub fn match_bits(&self) -> Option<u64> {
        let tagged =
            matches!(self.kind, PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend);
        tagged.then(|| bits(self.tag))
    }

    /// Returns its opcode.
    pub fn opcode(&self) -> Opcode {
        opcode(self.kind)
    }
}

/// The match bits of a tag.
pub(in crate::random) fn bits(tag: u8) -> u64 {
    // Tags differ at either end.
    0x7a60_0000_0000_0100 | u64::from(tag & 1) | u64::from(tag >> 1) << 48
}

/// Returns the opcode of a message of this kind.
pub(in crate::random) fn opcode(kind: PostKind) -> Opcode {
    match kind {
        PostKind::Write => Opcode::UET_WRITE,
        PostKind::Read => Opcode::UET_READ,
        PostKind::Send => Opcode::UET_SEND,
        PostKind::Tsend => Opcode::UET_TAGGED_SEND,
        PostKind::Datagram => Opcode::UET_DATAGRAM_SEND,
        PostKind::Atomic => Opcode::UET_ATOMIC,
        PostKind::FetchAtomic => Opcode::UET_FETCHING_ATOMIC,
        PostKind::RendezvousSend => Opcode::UET_RENDEZVOUS_SEND,
        PostKind::RendezvousTsend => Opcode::UET_RENDEZVOUS_TSEND,
        PostKind::DeferrableSend => Opcode::UET_DEFERRABLE_SEND,
        PostKind::DeferrableTsend => Opcode::UET_DEFERRABLE_TSEND,
        PostKind::NoOp => Opcode::UET_NO_OP,
    }
}

/// How a message is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// On its context.
    #[default]
    Context,
    /// As idempotent requests.
    Rudi,
    /// As a datagram.
    Uud,
}

/// The form of a request header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Standard.
    #[default]
    Std,
    /// Medium.
    Medium,
    /// Small.
    Small,
}

impl Form {
    /// Returns the parts of a message with a header of this form, for packets with at most `mtu` bytes of it.
    pub fn parts(self, message: &Message, mtu: usize) -> Result<Vec<Part>, WriteError> {
        match self {
            Form::Medium if message.data.len() <= mtu => Ok(vec![message.medium()?]),
            Form::Small if message.data.len() <= mtu => Ok(vec![message.small()?]),
            _ => message.parts(mtu),
        }
    }
}

/// Mistake in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    /// Nothing, except that the region may not permit it.
    #[default]
    Nothing,
    /// No region has its key.
    Key,
    /// It reaches beyond the end of its region.
    Range,
    /// Nobody has this job.
    Job,
    /// Nobody has this process.
    Process,
    /// Nobody has this index.
    Index,
    /// The generation of its index is another one.
    Generation,
    /// Nobody knows its opcode.
    Opcode,
    /// The suite gives it up with its last packet.
    GivenUp,
    /// The address of an atomic is not aligned.
    Alignment,
}
