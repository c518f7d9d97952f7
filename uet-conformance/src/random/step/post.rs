//! Operations that the device posts, and the replies of its peer.

use super::saved::{is_default, job, length, peer};
use serde::{Deserialize, Serialize};
use uet_control::PostKind;

/// An operation of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posting {
    /// Number of the address of the suite, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
    pub peer: u8,
    /// Number of the job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// The kind of operation.
    pub kind: PostKind,
    /// The delivery mode.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: uet_control::Mode,
    /// Its length.
    #[serde(deserialize_with = "length")]
    pub length: u32,
    /// Offset at the peer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u64,
    /// Seed of its data, and of the data that it reads.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u32,
    /// The form of its header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<uet_control::Form>,
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
    /// Replies of the peer to its packets, one after the other, each for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<Reply>,
}

/// Reply of a peer to the first transmission of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Acknowledges it.
    #[default]
    Ack,
    /// Never sees it.
    Lost,
    /// Acknowledges it, and the ACK is lost.
    AckLost,
    /// Acknowledges it later.
    Late,
    /// Acknowledges it twice.
    Twice,
    /// Acknowledges it as one that arrived marked.
    Marked,
    /// Reports it in a bitmap before it answers.
    Bitmap,
    /// Refuses it for lack of room.
    Busy,
    /// Refuses it as one whose response is not ready, and answers later.
    NotReady,
    /// Refuses it as trimmed.
    Trimmed,
    /// Refuses it with an error of its semantics.
    Refused,
    /// Accepts half of its bytes.
    Short,
    /// Acknowledges it, and the network delivers the ACK after later ones.
    Stale,
    /// Acknowledges it, and says that the receiver cannot keep up.
    Slowed,
    /// Acknowledges it, and says that the receiver can keep up again.
    Restored,
    /// Acknowledges it by an ACK_CCX.
    Extended,
    /// Puts a deferrable send off.
    PutOff,
    /// Tells that it has arrived, and the response later: an error for some operations.
    Null,
    /// Demands another Start_PSN, in a secure domain and before the context is open.
    NewStart,
}
