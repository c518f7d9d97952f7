//! The operations, and what each answers.

use crate::{Completion, Fill, Hex, Hex64, PROTOCOL};
use core::net::IpAddr;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An operation with its arguments, and what it answers.
pub trait Operation: Into<Op> {
    /// Its name in the channel.
    const NAME: &'static str;
    /// The result, when it was done.
    type Answer: Serialize + DeserializeOwned;
}

/// The operations: name in the channel, type, answer.
macro_rules! operations {
    ($($(#[$meta:meta])* $name:literal $Op:ident -> $Answer:ty;)*) => {
        /// Any operation.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "op")]
        pub enum Op {
            $($(#[$meta])* #[serde(rename = $name)] $Op($Op),)*
        }

        impl Op {
            /// The names of all.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Op::$Op(_) => $name,)*
                }
            }
        }

        $(
            impl From<$Op> for Op {
                fn from(op: $Op) -> Op {
                    Op::$Op(op)
                }
            }

            impl Operation for $Op {
                const NAME: &'static str = $name;
                type Answer = $Answer;
            }
        )*
    };
}

operations! {
    /// Who are you, and what can you do?
    "hello" Hello -> Welcome;
    /// Forget all contexts, peers, memory and completions, and go back to the configured parameters.
    "reset" Reset -> Done;
    /// Set parameters.
    "configure" Configure -> Configured;
    /// Someone to talk to.
    "add_peer" AddPeer -> Peer;
    /// Be reached at these indices, in this way.
    "set_indices" SetIndices -> Done;
    /// Memory that others may reach.
    "expose_region" ExposeRegion -> Region;
    /// What memory holds.
    "read_memory" ReadMemory -> Memory;
    /// Do something as an initiator.
    "post" Post -> Operated;
    /// Be ready for a send.
    "post_receive" PostReceive -> Received;
    /// Wait until an operation or a receive has ended.
    "wait_completion" WaitCompletion -> Completion;
    /// Close a context.
    "close_pdc" ClosePdc -> Done;
    /// What has been counted.
    "counters" Counters -> Counted;
    /// The suite goes.
    "bye" Bye -> Done;
}

/// Nothing but that it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {}

/// The first line of the suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The version of the channel that the suite speaks: [`PROTOCOL`](crate::PROTOCOL).
    pub protocol: u32,
}

/// What the device is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Welcome {
    /// The version of the channel that the device speaks.
    pub protocol: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// The version of the specification that it implements: `"1.0.3"`.
    #[serde(default)]
    pub specification: String,
    /// What it can do, by the names in the documentation: modes, kinds of operation, algorithms.
    pub capabilities: Vec<String>,
    /// Its parameters, by the names in the documentation. Times are in nanoseconds.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// Its limits: contexts, regions, bytes of memory.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
    /// Where its packets are.
    pub link: Link,
}

impl Welcome {
    /// A device of this name that says only where its packets are.
    pub fn new(name: impl Into<String>, link: Link) -> Self {
        Welcome {
            protocol: PROTOCOL,
            name: name.into(),
            version: String::new(),
            specification: String::new(),
            capabilities: Vec::new(),
            parameters: BTreeMap::new(),
            limits: BTreeMap::new(),
            link,
        }
    }
}

/// Where packets of a device come from and go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Link {
    /// UDP: it listens here.
    Udp {
        /// Its address.
        addr: IpAddr,
        /// Its port.
        port: u16,
    },
    /// Ethernet frames on an interface.
    Raw {
        /// The interface.
        iface: String,
        /// The device's address there, where it has one already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        addr: Option<IpAddr>,
        /// Its Ethernet address, `02:00:00:00:00:01`; when it is not said, frames go to all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mac: Option<String>,
        /// The UDP port that packets go to; the registered one when nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The IP protocol number of the native encapsulation, where packets are in IP without UDP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proto: Option<u8>,
    },
    /// Handed over within the process.
    Inside {
        /// The device's address.
        addr: IpAddr,
    },
}

/// Forget everything that has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reset {}

/// Parameters to set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configure {
    /// By the names that `hello` answers.
    pub parameters: BTreeMap<String, Value>,
}

/// Which parameters are set now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configured {
    /// Those that were taken. The others keep their value.
    pub taken: Vec<String>,
    /// Those that were not, and why.
    #[serde(default)]
    pub refused: BTreeMap<String, String>,
}

/// Someone that the device is to talk to, or to be talked to by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddPeer {
    /// The address of its FEP.
    pub address: IpAddr,
    /// The port that its packets are sent to, over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The job that both are in.
    pub job: u32,
    /// Its process.
    #[serde(default)]
    pub process: u16,
    /// What the device writes into `ses.initiator` towards it.
    #[serde(default)]
    pub initiator: u32,
}

/// A peer, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peer {
    /// Its number in later operations.
    pub peer: u64,
}

/// A run of indices of a process: they are there from now on. What is not said of them stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetIndices {
    /// The job; absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process.
    #[serde(default)]
    pub process: u16,
    /// The first index.
    #[serde(default)]
    pub index: u16,
    /// How many.
    #[serde(default = "one")]
    pub count: u16,
    /// Their generation. One that has run out of buffers is enabled by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u8>,
    /// Whether they take nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Whether one that runs out of buffers takes nothing until its generation is raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<bool>,
}

fn one() -> u16 {
    1
}

/// Memory that others may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExposeRegion {
    /// Its length in bytes.
    pub length: u64,
    /// The memory key that reaches it.
    pub key: Hex64,
    /// The job that may; absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process that owns it.
    #[serde(default)]
    pub process: u16,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The generation of the index.
    #[serde(default)]
    pub generation: u8,
    /// What others may do.
    #[serde(default = "all")]
    pub permissions: Vec<Permission>,
    /// What it holds at first; zeros when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
}

fn all() -> Vec<Permission> {
    vec![Permission::Read, Permission::Write, Permission::Atomic]
}

/// What others may do to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Read it.
    Read,
    /// Write into it.
    Write,
    /// Act on it atomically.
    Atomic,
}

/// A region, exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Region {
    /// Its number in later operations.
    pub region: u64,
}

/// A piece of memory to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadMemory {
    /// The region, of `expose_region` or `post_receive`.
    pub region: u64,
    /// Where in it.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// What memory holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// The bytes.
    pub data: Hex,
}

/// Something to do as an initiator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Post {
    /// What.
    pub kind: PostKind,
    /// Whom with.
    pub peer: u64,
    /// How packets are delivered.
    #[serde(default)]
    pub mode: Mode,
    /// The traffic class.
    #[serde(default)]
    pub class: u8,
    /// How many bytes.
    #[serde(default)]
    pub length: u64,
    /// What they are: the message, or the operands of an atomic. Zeros when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// Where at the other side.
    #[serde(default)]
    pub remote: Remote,
    /// The header form, where the device lets one choose: `"std"`, `"medium"`, `"small"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Header data, given to the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_data: Option<Hex64>,
    /// Match bits of a tagged send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Hex64>,
    /// Bytes that go with a rendezvous request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager: Option<u64>,
    /// The atomic operation, by its canonical name: `"SUM"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_opcode: Option<String>,
    /// The data type, by its canonical name: `"UINT64"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_datatype: Option<String>,
    /// What compare-and-swap compares with, at most 16 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Hex>,
    /// What compare-and-swap swaps in, at most 16 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Hex>,
    /// Delivery complete: the response waits until the data can be seen.
    #[serde(default)]
    pub delivery_complete: bool,
    /// Whether the completion is to carry what was read.
    #[serde(default)]
    pub want_data: bool,
}

impl Post {
    /// This and nothing more: by reliable unordered delivery, of zeros, for the start of what key and index 0 name.
    pub fn new(kind: PostKind, peer: u64, length: u64) -> Self {
        Post {
            kind,
            peer,
            mode: Mode::default(),
            class: 0,
            length,
            fill: None,
            remote: Remote::default(),
            form: None,
            header_data: None,
            tag: None,
            eager: None,
            atomic_opcode: None,
            atomic_datatype: None,
            compare: None,
            swap: None,
            delivery_complete: false,
            want_data: false,
        }
    }
}

/// What an initiator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    /// Write into a region.
    Write,
    /// Read from a region.
    Read,
    /// Send to a receive queue.
    Send,
    /// Send to a tagged receive.
    Tsend,
    /// A send of one packet that needs no message of its own.
    Datagram,
    /// Act on a region atomically.
    Atomic,
    /// The same, and bring the old value.
    FetchAtomic,
    /// A send whose rest the target reads.
    RendezvousSend,
    /// The same, tagged.
    RendezvousTsend,
    /// A send that the target may put off.
    DeferrableSend,
    /// The same, tagged.
    DeferrableTsend,
    /// Nothing, on the way of a message.
    NoOp,
}

/// How packets are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reliable, unordered.
    #[default]
    Rud,
    /// Reliable, ordered.
    Rod,
    /// Reliable for what may happen twice.
    Rudi,
    /// Unreliable.
    Uud,
}

/// The forms of a request header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// 44 bytes, any message.
    Std,
    /// 32 bytes, one packet.
    Medium,
    /// 20 bytes, one packet.
    Small,
}

/// A place at the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remote {
    /// The memory key.
    #[serde(default)]
    pub key: Hex64,
    /// The offset in the region.
    #[serde(default)]
    pub offset: Hex64,
    /// The process; that of the peer when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u16>,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The generation of the index.
    #[serde(default)]
    pub generation: u8,
    /// Absolute addressing: the process alone, without the job.
    #[serde(default)]
    pub absolute: bool,
}

/// An operation, begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operated {
    /// Its number in later operations and in its completion.
    pub operation: u64,
}

/// Room for a send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostReceive {
    /// Bytes of room.
    pub length: u64,
    /// The job that may send; absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process that receives.
    #[serde(default)]
    pub process: u16,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The match bits of a tagged receive; without them it is for plain sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Hex64>,
    /// Match bits that do not matter.
    #[serde(default)]
    pub ignore: Hex64,
    /// Take only what this initiator sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<u32>,
}

/// A receive, posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Received {
    /// Its number in its completion.
    pub operation: u64,
    /// Its memory, for `read_memory`.
    pub region: u64,
}

/// Wait until something has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitCompletion {
    /// The operation or receive.
    pub operation: u64,
    /// How long; 0 asks whether it has. When it has not: error `timeout`.
    pub timeout_ns: u64,
}

/// Close the context to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosePdc {
    /// The peer.
    pub peer: u64,
    /// The mode of the context.
    #[serde(default)]
    pub mode: Mode,
    /// The traffic class of the context.
    #[serde(default)]
    pub class: u8,
}

/// Ask for counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {}

/// What has been counted since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// Packets received.
    #[serde(default)]
    pub received: u64,
    /// Packets sent.
    #[serde(default)]
    pub sent: u64,
    /// Packets dropped, by reason in words of the device.
    #[serde(default)]
    pub dropped: BTreeMap<String, u64>,
    /// Contexts that are open.
    #[serde(default)]
    pub pdcs: u64,
    /// Whatever else the device counts.
    #[serde(default)]
    pub more: BTreeMap<String, u64>,
}

/// The end of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bye {}
