//! A conversation as data: generated, saved, shrunk and replayed.

use crate::{Edit, Message, Part};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use std::collections::BTreeMap;
use uet_control::{Hex, KeyMode, PostKind};
use uet_wire::WriteError;
use uet_wire::registry::{CtlType, Opcode};

/// Maximum number of steps.
const MAX_STEPS: usize = 1 << 14;

/// Maximum number of contexts, and of regions. Several cases of the fuzzer may become one script.
const MAX_PLACES: usize = 256;

/// Maximum length of a message or a region, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Maximum pause, in microseconds.
const MAX_PAUSE: u64 = 10_000_000;

/// Maximum number of peers.
pub(super) const PEERS: u8 = 3;

/// Maximum number of jobs.
pub(super) const JOBS: u8 = 2;

/// A conversation with a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Parameters that the device takes before the conversation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// True for the other IP version than the run has, if the link carries both.
    #[serde(default, skip_serializing_if = "is_default")]
    pub other_ip: bool,
    /// The secure domain of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secured: Option<Secured>,
    /// Regions of the device. Messages refer to them by index.
    #[serde(deserialize_with = "regions")]
    pub regions: Vec<RegionPlan>,
    /// Contexts that the suite opens with the first message on them. Steps refer to them by index.
    #[serde(deserialize_with = "contexts")]
    pub contexts: Vec<ContextPlan>,
    /// The steps, in order.
    #[serde(deserialize_with = "steps")]
    pub steps: Vec<Step>,
}

/// A secure domain of the device, with a fresh key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secured {
    /// The device's part in it.
    pub mode: KeyMode,
    /// True if packets carry a source identifier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ssi: bool,
    /// The first epoch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub epoch: u16,
    /// True if the header of a request is readable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub readable: bool,
    /// True if bits of the packet counter select the key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rekeys: bool,
}

/// A change of the keys of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rekey {
    /// It sends with the key in the other slot, which gets one if it is empty.
    Switch,
    /// It sends with a fresh key in the other slot.
    Replace,
    /// It sends in the next epoch.
    Epoch,
}

/// A region of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionPlan {
    /// Its length in bytes.
    #[serde(deserialize_with = "length")]
    pub length: u32,
    /// Number of its job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// Peers may not read it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_read: bool,
    /// Peers may not write it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_write: bool,
    /// Peers may not perform atomics on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_atomic: bool,
    /// Its key is marked as safe for idempotent operations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub safe: bool,
}

/// A context that the suite opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPlan {
    /// Number of the address of the suite, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
    pub peer: u8,
    /// Number of its job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// True for a ROD context.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rod: bool,
    /// PDCID of the suite.
    pub pdcid: u16,
    /// The first PSN.
    pub start: u32,
}

/// A step of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// The suite sends a message.
    Message(MessagePlan),
    /// The device posts an operation to a peer.
    Post(Posting),
    /// The device posts a receive.
    Receive {
        /// Number of the job, from 0.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
        job: u8,
        /// Length of the buffer.
        #[serde(deserialize_with = "length")]
        length: u32,
        /// Match bits of a tagged receive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<u8>,
        /// Match bits to ignore.
        #[serde(default, skip_serializing_if = "is_default")]
        ignore: u8,
        /// The only initiator that it takes messages of: 0 for that of its job, others for nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initiator: Option<u8>,
    },
    /// The suite sends a control packet on a context that it opened.
    Control {
        /// The context.
        context: usize,
        /// Its type.
        kind: ControlKind,
        /// Number of the PSN that it names, counted back from the last one sent.
        #[serde(default, skip_serializing_if = "is_default")]
        back: u8,
        /// Effect of the network on it.
        #[serde(default, skip_serializing_if = "is_default")]
        fate: Fate,
    },
    /// The suite sends a control packet on a context that the device opened.
    Ask {
        /// Number of the context, in the order of opening.
        target: usize,
        /// Its type.
        kind: ControlKind,
    },
    /// The suite sends an earlier packet again.
    Repeat {
        /// The context.
        context: usize,
        /// Number of the packet, counted back from the last one sent.
        #[serde(default, skip_serializing_if = "is_default")]
        back: u8,
        /// True if it is marked as a retransmission.
        #[serde(default, skip_serializing_if = "is_default")]
        retx: bool,
    },
    /// The suite closes a context that it opened. The next message opens it again.
    Close {
        /// The context.
        context: usize,
        /// True if the next one has the same PDCID.
        #[serde(default, skip_serializing_if = "is_default")]
        same: bool,
    },
    /// The device closes its contexts to a peer.
    CloseByDevice {
        /// Number of the address of the suite.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
        peer: u8,
        /// Number of the job.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
        job: u8,
        /// True for its ROD context.
        #[serde(default, skip_serializing_if = "is_default")]
        rod: bool,
    },
    /// The device asks a peer to close the contexts that the peer opened.
    RequestClose {
        /// Number of the address of the suite.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
        peer: u8,
        /// Number of the job.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
        job: u8,
        /// True for the ROD contexts.
        #[serde(default, skip_serializing_if = "is_default")]
        rod: bool,
    },
    /// The suite ends a context that the device opened, with a NACK that is fatal to it.
    Abort {
        /// Number of the context, in the order of opening.
        target: usize,
        /// `pds.nack_code`.
        code: u8,
    },
    /// A packet of somebody who has no part in the conversation.
    Stranger {
        /// The context whose numbers it uses.
        context: usize,
        /// Packet that it sends.
        kind: StrangerKind,
    },
    /// A packet that no peer sends, from an address that is no peer.
    Hostile {
        /// The context whose numbers it uses.
        context: usize,
        /// The packet before its changes.
        packet: Hostile,
        /// Changes of the packet.
        edits: Vec<Edit>,
    },
    /// The device gets another key or epoch.
    Rekey {
        /// The change.
        change: Rekey,
    },
    /// A pause.
    Pause {
        /// Microseconds.
        #[serde(deserialize_with = "pause")]
        us: u32,
    },
    /// A step with a changed packet. Only `uet fuzz` plays it.
    Changed {
        /// The step.
        of: Box<Step>,
        /// Number of the packet among those of the step.
        #[serde(default, skip_serializing_if = "is_default")]
        packet: u8,
        /// Changes of the packet before it leaves.
        edits: Vec<Edit>,
    },
    /// A recorded packet. Only `uet fuzz` plays it, with the present PDCIDs of the device.
    Recorded {
        /// The bytes, from the first of UET.
        bytes: Hex,
    },
}

impl Step {
    /// Returns the step without changes of its packets.
    pub fn plain(&self) -> &Step {
        match self {
            Step::Changed { of, .. } => of.plain(),
            plain => plain,
        }
    }

    pub(super) fn plain_mut(&mut self) -> &mut Step {
        match self {
            Step::Changed { of, .. } => of.plain_mut(),
            plain => plain,
        }
    }

    /// Returns the number of its context, if it has one.
    pub fn context_mut(&mut self) -> Option<&mut usize> {
        match self.plain_mut() {
            Step::Message(message) => Some(&mut message.context),
            Step::Control { context, .. }
            | Step::Repeat { context, .. }
            | Step::Close { context, .. }
            | Step::Stranger { context, .. }
            | Step::Hostile { context, .. } => Some(context),
            _ => None,
        }
    }

    /// Returns the changes of its packets.
    pub fn edits(&self) -> &[Edit] {
        match self {
            Step::Hostile { edits, .. } | Step::Changed { edits, .. } => edits,
            _ => &[],
        }
    }

    pub(super) fn edits_mut(&mut self) -> Option<&mut Vec<Edit>> {
        match self {
            Step::Hostile { edits, .. } | Step::Changed { edits, .. } => Some(edits),
            _ => None,
        }
    }
}

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
pub(super) fn bits(tag: u8) -> u64 {
    // Tags differ at either end.
    0x7a60_0000_0000_0100 | u64::from(tag & 1) | u64::from(tag >> 1) << 48
}

/// Returns the opcode of a message of this kind.
pub(super) fn opcode(kind: PostKind) -> Opcode {
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

/// Effect of the network on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Delivers it.
    #[default]
    Arrives,
    /// Loses it.
    Lost,
    /// Delivers it twice.
    Twice,
    /// Delivers it after later ones.
    Late,
    /// Marks it.
    Marked,
    /// Trims it.
    Trimmed,
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

/// A control packet of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // named as the registry names them
pub enum ControlKind {
    Noop,
    Negotiation,
    AckRequest,
    ClearCommand,
    ClearRequest,
    CloseRequest,
    Probe,
    Credit,
    CreditRequest,
}

impl ControlKind {
    /// Returns its type.
    pub fn ctl_type(self) -> CtlType {
        match self {
            ControlKind::Noop => CtlType::NOOP,
            ControlKind::Negotiation => CtlType::NEGOTIATION,
            ControlKind::AckRequest => CtlType::ACK_REQUEST,
            ControlKind::ClearCommand => CtlType::CLEAR_COMMAND,
            ControlKind::ClearRequest => CtlType::CLEAR_REQUEST,
            ControlKind::CloseRequest => CtlType::CLOSE_REQUEST,
            ControlKind::Probe => CtlType::PROBE,
            ControlKind::Credit => CtlType::CREDIT,
            ControlKind::CreditRequest => CtlType::CREDIT_REQUEST,
        }
    }
}

/// A packet of somebody who has no part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrangerKind {
    /// A request with the PDCIDs of a context, from another address.
    Request,
    /// A request without `syn` for a context that nobody has.
    Unknown,
    /// A request with the right `dpdcid` and another `spdcid`.
    OtherSource,
    /// CLOSE_COMMAND from another address.
    Close,
    /// CLEAR_COMMAND from another address.
    Clear,
    /// An ACK of everything that the device has sent, from another address.
    Ack,
    /// A NACK that is fatal to a context, from another address.
    Nack,
    /// Read data from another address.
    Data,
    /// RUDI responses to all requests that wait, from another address.
    Rudi,
    /// A datagram for a region that may be written, but has not these bytes.
    Token,
    /// A request of the other delivery mode, on the context itself.
    Mode,
    /// A packet cut short within its header.
    Cut,
    /// A request above the receive window, on the context itself.
    Window,
    /// An ACK for PSNs that were never sent, from the peer itself.
    Future,
    /// An ACK for the PSN that the device will send next, from the peer itself.
    Next,
    /// An ACK or a NACK for a context that the device has closed, from the peer itself.
    Late,
    /// The packet that opened a context which is closed, once more.
    Copy,
    /// Packets with the numbers of secured contexts in the clear.
    Plain,
}

/// A packet that becomes one that no peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hostile {
    /// A request that opens a context, unless it is changed.
    Opening,
    /// A request on a context.
    Request,
    /// An idempotent request.
    Rudi,
    /// A datagram.
    Datagram,
    /// CLEAR_COMMAND.
    Control,
    /// CLOSE_COMMAND.
    Close,
    /// An ACK.
    Ack,
    /// A NACK.
    Nack,
    /// The last packet that the peer of the context has sent.
    Replay,
    /// Nothing, to which its changes add bytes.
    Bytes,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
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

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    at_most(from, ("length", MAX_LENGTH))
}

fn pause<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    at_most(from, ("us", MAX_PAUSE))
}

fn peer<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    at_most(from, ("peer", u64::from(PEERS) - 1))
}

fn job<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
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

fn regions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RegionPlan>, D::Error> {
    list(from, ("regions", MAX_PLACES))
}

fn contexts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ContextPlan>, D::Error> {
    list(from, ("contexts", MAX_PLACES))
}

/// Reads the steps. An error names the step.
fn steps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Step>, D::Error> {
    let steps: Vec<Value> = list(from, ("steps", MAX_STEPS))?;
    let read = |(index, step)| {
        serde_json::from_value(step).map_err(|error| D::Error::custom(format!("step {}: {error}", index + 1)))
    };
    steps.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
