//! The operations and their answers.

use crate::{Completion, Fill, Hex, Hex64, InstallKeys, PROTOCOL};
use core::net::IpAddr;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An operation with its arguments and its answer type.
pub trait Operation: Into<Op> {
    /// The name in the channel.
    const NAME: &'static str;
    /// The result of a successful operation.
    type Answer: Serialize + DeserializeOwned;
}

/// Defines the operations: name in the channel, type, answer.
macro_rules! operations {
    ($($(#[$meta:meta])* $name:literal $Op:ident -> $Answer:ty;)*) => {
        /// An operation of any kind.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "op")]
        pub enum Op {
            $($(#[$meta])* #[serde(rename = $name)] $Op($Op),)*
        }

        impl Op {
            /// The names of all operations.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Returns the name of the operation.
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
    /// Asks for the identity and capabilities of the device.
    "hello" Hello -> Welcome;
    /// Discards all contexts, peers, memory and completions, and restores the configured parameters.
    "reset" Reset -> Done;
    /// Sets parameters.
    "configure" Configure -> Configured;
    /// Adds a peer.
    "add_peer" AddPeer -> Peer;
    /// Creates or changes resource indices at which peers reach the device.
    "set_indices" SetIndices -> Done;
    /// Exposes memory to peers.
    "expose_region" ExposeRegion -> Region;
    /// Reads memory.
    "read_memory" ReadMemory -> Memory;
    /// Starts an operation as initiator.
    "post" Post -> Operated;
    /// Posts a buffer for a send from a peer.
    "post_receive" PostReceive -> Received;
    /// Waits until an operation or a receive ends.
    "wait_completion" WaitCompletion -> Completion;
    /// Installs the secure domains and keys of the device, for transport security.
    "install_keys" InstallKeys -> Done;
    /// Closes a context.
    "close_pdc" ClosePdc -> Done;
    /// Asks a peer to close the contexts that it opened.
    "request_close" RequestClose -> Done;
    /// Reads the counters.
    "counters" Counters -> Counted;
    /// Reads the clock of the device.
    "now" Now -> Clock;
    /// Lets time pass in the device.
    "advance" Advance -> Advanced;
    /// Ends the session.
    "bye" Bye -> Done;
}

impl Op {
    /// Returns a copy for reports: it names how many keys there are, and shows none.
    pub fn without_secrets(&self) -> Op {
        let mut shown = self.clone();
        if let Op::InstallKeys(keys) = &mut shown {
            for secrets in keys.domains.iter_mut().flat_map(|domain| domain.keys.values_mut()) {
                *secrets = secrets.hidden();
            }
        }
        shown
    }
}

/// The empty result of a successful operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {}

/// The first request of the suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The version of the channel that the suite speaks: [`PROTOCOL`](crate::PROTOCOL).
    pub protocol: u32,
}

/// The device's identity and capabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Welcome {
    /// The version of the channel that the device speaks.
    pub protocol: u32,
    /// The name of the device.
    pub name: String,
    /// The version of the device.
    #[serde(default)]
    pub version: String,
    /// The version of the specification that the device implements: `"1.0.3"`.
    #[serde(default)]
    pub specification: String,
    /// The capabilities, by their names in the documentation: modes, kinds of operation, algorithms.
    pub capabilities: Vec<String>,
    /// The parameters, by their names in the documentation. Times are in nanoseconds.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// The limits: contexts, regions, bytes of memory.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
    /// The link on which the device sends and receives packets.
    pub link: Link,
}

impl Welcome {
    /// Creates the answer of a device with this name and link, and nothing else.
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

/// The link on which a device sends and receives packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Link {
    /// UDP. The device listens on this address and port.
    Udp {
        /// The address of the device.
        addr: IpAddr,
        /// The UDP port of the device.
        port: u16,
    },
    /// Ethernet frames on an interface.
    Raw {
        /// The name of the interface.
        iface: String,
        /// The device's address on the interface, if it already has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        addr: Option<IpAddr>,
        /// The device's Ethernet address, such as `02:00:00:00:00:01`. If absent, frames are broadcast.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mac: Option<String>,
        /// The UDP destination port of packets. The registered port if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The IP protocol number of the native encapsulation, if packets use IP without UDP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proto: Option<u8>,
    },
    /// A link within the process.
    Inside {
        /// The address of the device.
        addr: IpAddr,
    },
}

/// Discards all state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reset {}

/// Parameters to set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configure {
    /// The values, by the parameter names in the answer to `hello`.
    pub parameters: BTreeMap<String, Value>,
}

/// The result of setting parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configured {
    /// The names of the parameters that were set. The others keep their values.
    pub taken: Vec<String>,
    /// The names of the parameters that were refused, with the reasons.
    #[serde(default)]
    pub refused: BTreeMap<String, String>,
}

/// A peer of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddPeer {
    /// The address of the peer's FEP.
    pub address: IpAddr,
    /// The destination port of packets to the peer, over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The job of the device and the peer.
    pub job: u32,
    /// The process of the peer.
    #[serde(default)]
    pub process: u16,
    /// The value of `ses.initiator` in requests of the device to the peer.
    #[serde(default)]
    pub initiator: u32,
}

/// The result of adding a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peer {
    /// The number of the peer in later operations.
    pub peer: u64,
}

/// A range of resource indices of a process. Creates them if necessary. Absent settings stay unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetIndices {
    /// The job. Absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process.
    #[serde(default)]
    pub process: u16,
    /// The first index.
    #[serde(default)]
    pub index: u16,
    /// The number of indices.
    #[serde(default = "one")]
    pub count: u16,
    /// The generation. A new generation enables an index that ran out of buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u8>,
    /// True if the indices accept no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// True if an index that runs out of buffers accepts no messages until its generation increases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<bool>,
}

fn one() -> u16 {
    1
}

/// Memory to expose to peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExposeRegion {
    /// The length in bytes.
    pub length: u64,
    /// The memory key of the region.
    pub key: Hex64,
    /// The job that may access the region. Absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process that owns the region.
    #[serde(default)]
    pub process: u16,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The generation of the index.
    #[serde(default)]
    pub generation: u8,
    /// The operations that peers may perform.
    #[serde(default = "all")]
    pub permissions: Vec<Permission>,
    /// The initial content. Zeros if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
}

fn all() -> Vec<Permission> {
    vec![Permission::Read, Permission::Write, Permission::Atomic]
}

/// An operation that peers may perform on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Read from the region.
    Read,
    /// Write to the region.
    Write,
    /// Perform atomic operations on the region.
    Atomic,
}

/// The result of exposing a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Region {
    /// The number of the region in later operations.
    pub region: u64,
    /// The memory key, if the device has chosen another one. Its two highest bits are those of the requested key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Hex64>,
}

/// A range of memory to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadMemory {
    /// The region, from `expose_region` or `post_receive`.
    pub region: u64,
    /// The offset in the region in bytes.
    #[serde(default)]
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// The content of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// The bytes.
    pub data: Hex,
}

/// An operation to start as initiator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Post {
    /// The kind of operation.
    pub kind: PostKind,
    /// The number of the peer.
    pub peer: u64,
    /// The delivery mode.
    #[serde(default)]
    pub mode: Mode,
    /// The traffic class.
    #[serde(default)]
    pub class: u8,
    /// The number of bytes.
    #[serde(default)]
    pub length: u64,
    /// The content of the message, or the operands of an atomic. Zeros if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// The location at the peer.
    #[serde(default)]
    pub remote: Remote,
    /// The header form, if the device supports a choice: `"std"`, `"medium"`, `"small"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The header data for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_data: Option<Hex64>,
    /// The match bits of a tagged send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Hex64>,
    /// The number of bytes sent with a rendezvous request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager: Option<u64>,
    /// The atomic operation by its canonical name: `"SUM"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_opcode: Option<String>,
    /// The data type by its canonical name: `"UINT64"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_datatype: Option<String>,
    /// The compare value of a compare-and-swap, at most 16 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Hex>,
    /// The swap value of a compare-and-swap, at most 16 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Hex>,
    /// Delivery complete: the response waits until the data is visible at the target.
    #[serde(default)]
    pub delivery_complete: bool,
    /// True if the completion must contain the data that was read.
    #[serde(default)]
    pub want_data: bool,
}

impl Post {
    /// Creates an operation with defaults: mode `rud`, zeros as content, key and index 0, offset 0.
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

/// The kinds of operations of an initiator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    /// Writes to a region.
    #[default]
    Write,
    /// Reads from a region.
    Read,
    /// Sends to a receive queue.
    Send,
    /// Sends to a tagged receive.
    Tsend,
    /// Sends one packet that needs no message of its own.
    Datagram,
    /// Performs an atomic operation on a region.
    Atomic,
    /// Performs an atomic operation on a region and returns the old value.
    FetchAtomic,
    /// Starts a rendezvous send: the target reads the rest of the message.
    RendezvousSend,
    /// Starts a tagged rendezvous send: the target reads the rest of the message.
    RendezvousTsend,
    /// Sends a message that the target may defer.
    DeferrableSend,
    /// Sends a tagged message that the target may defer.
    DeferrableTsend,
    /// Sends a message without an effect.
    NoOp,
}

/// The delivery modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reliable, unordered delivery.
    #[default]
    Rud,
    /// Reliable, ordered delivery.
    Rod,
    /// Reliable delivery of idempotent operations.
    Rudi,
    /// Unreliable datagrams.
    Uud,
}

impl Mode {
    /// Returns the name of the mode, which is also that of the capability: `rud`, `rod`, `rudi` or `uud`.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Rud => "rud",
            Mode::Rod => "rod",
            Mode::Rudi => "rudi",
            Mode::Uud => "uud",
        }
    }
}

/// The forms of a request header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Standard: 44 bytes, any message.
    Std,
    /// Medium: 32 bytes, one packet.
    Medium,
    /// Small: 20 bytes, one packet.
    Small,
}

/// A location at the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remote {
    /// The memory key.
    #[serde(default)]
    pub key: Hex64,
    /// The offset in the region.
    #[serde(default)]
    pub offset: Hex64,
    /// The process. The process of the peer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u16>,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The generation of the index.
    #[serde(default)]
    pub generation: u8,
    /// Absolute addressing: only the process, without the job.
    #[serde(default)]
    pub absolute: bool,
}

/// The result of starting an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operated {
    /// The number of the operation in later operations and in its completion.
    pub operation: u64,
}

/// A buffer for a send from a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostReceive {
    /// The size of the buffer in bytes.
    pub length: u64,
    /// The job that may send. Absent for absolute addressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The process that receives.
    #[serde(default)]
    pub process: u16,
    /// The resource index.
    #[serde(default)]
    pub index: u16,
    /// The match bits of a tagged receive. Without them, the buffer receives untagged sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Hex64>,
    /// The match bits to ignore.
    #[serde(default)]
    pub ignore: Hex64,
    /// The only initiator from which to accept messages. Any initiator if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<u32>,
}

/// The result of posting a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Received {
    /// The number of the receive in its completion.
    pub operation: u64,
    /// The region of the buffer, for `read_memory`.
    pub region: u64,
}

/// A wait for the end of an operation or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitCompletion {
    /// The number of the operation or receive.
    pub operation: u64,
    /// The timeout in nanoseconds. 0 returns immediately. The error is `timeout` if the operation has not ended.
    pub timeout_ns: u64,
}

/// A context to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosePdc {
    /// The number of the peer.
    pub peer: u64,
    /// The delivery mode of the context.
    #[serde(default)]
    pub mode: Mode,
    /// The traffic class of the context.
    #[serde(default)]
    pub class: u8,
}

/// The contexts of a peer that the device, their target, wants closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestClose {
    /// The number of the peer.
    pub peer: u64,
    /// The delivery mode of the contexts.
    #[serde(default)]
    pub mode: Mode,
    /// The traffic class of the contexts.
    #[serde(default)]
    pub class: u8,
}

/// A request for the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {}

/// The counters since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// The number of packets received.
    #[serde(default)]
    pub received: u64,
    /// The number of packets sent.
    #[serde(default)]
    pub sent: u64,
    /// The number of packets dropped, by reason in the device's own words.
    #[serde(default)]
    pub dropped: BTreeMap<String, u64>,
    /// The number of open contexts.
    #[serde(default)]
    pub pdcs: u64,
    /// Other counters of the device.
    #[serde(default)]
    pub more: BTreeMap<String, u64>,
}

/// A question for the device's own time. A device in a simulator supports it, together with [`Advance`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Now {}

/// The device's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// The time in nanoseconds since a moment that the device chooses. It never decreases.
    pub now_ns: u64,
}

/// A span for which the device runs. It stands still before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advance {
    /// The span in nanoseconds. 0 only takes in the packets that have arrived, and sends those that are due.
    pub by_ns: u64,
}

/// The result of letting time pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advanced {
    /// The time in nanoseconds, from a device that stops early: at the first packet that it sends, and when an operation
    /// or a receive ends. Absent from a device that always runs for the whole span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_ns: Option<u64>,
}

/// The end of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bye {}
