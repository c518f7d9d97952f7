//! A conversation as data: generated, saved, shrunk and replayed.

mod message;
mod packet;
mod post;
mod saved;
mod setup;

pub use message::{By, Form, MessagePlan, Wrong};
pub use packet::{ControlKind, Fate, Hostile, StrangerKind};
pub use post::{Posting, Reply};
pub use setup::{ContextPlan, RegionPlan, Rekey, Secured};

pub(super) use message::{bits, opcode};
pub(super) use saved::{JOBS, PEERS};

use crate::Edit;
use saved::{contexts, is_default, job, length, pause, peer, regions, steps};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use uet_control::Hex;

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
    CloseByDevice(ClosePlan),
    /// The device asks a peer to close the contexts that the peer opened.
    RequestClose(ClosePlan),
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

/// Contexts between the device and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosePlan {
    /// Number of the address of the suite, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
    pub peer: u8,
    /// Number of the job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// True for the ROD contexts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rod: bool,
}
