//! Single packets: what the network does to one, and those that belong to no message.

use serde::{Deserialize, Serialize};
use uet_wire::registry::CtlType;

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
