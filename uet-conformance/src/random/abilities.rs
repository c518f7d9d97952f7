//! The abilities of a device and its link that conversations use.

use super::message::capability;
use super::setting::MTUS;
use crate::Dut;
use uet_control::{Mode, PostKind};

/// Abilities of a device and its link.
#[derive(Clone, Debug)]
pub struct Abilities {
    pub(super) kinds: Vec<PostKind>,
    pub(super) modes: Vec<Mode>,
    /// True if it takes operations to post.
    pub(super) posts: bool,
    pub(super) receive: bool,
    pub(super) close: bool,
    /// True if packets of others must change nothing.
    pub(super) strangers: bool,
    pub(super) mtu: u32,
    pub(super) congestion: Vec<&'static str>,
    pub(super) ack_data: u32,
    /// True if parameters can be set.
    pub(super) parameters: bool,
    /// The payload MTUs that can be set.
    pub(super) mtus: Vec<u32>,
    pub(super) both_ips: bool,
    /// True if it takes keys of a secure domain, and the link is one on which the suite can protect packets.
    pub(super) secures: bool,
    /// True if it can ask for a close as a target.
    pub(super) request_close: bool,
}

/// All kinds of operations.
const KINDS: [PostKind; 12] = [
    PostKind::Write,
    PostKind::Read,
    PostKind::Send,
    PostKind::Tsend,
    PostKind::Datagram,
    PostKind::Atomic,
    PostKind::FetchAtomic,
    PostKind::RendezvousSend,
    PostKind::RendezvousTsend,
    PostKind::DeferrableSend,
    PostKind::DeferrableTsend,
    PostKind::NoOp,
];

impl Abilities {
    /// Returns what this device can do.
    pub fn of(dut: &dyn Dut) -> Self {
        let welcome = dut.welcome();
        let claims = |name: &str| welcome.capabilities.iter().any(|claim| claim == name);
        let number = |name: &str, default: u64| {
            welcome.parameters.get(name).and_then(|value| value.as_u64()).unwrap_or(default)
        };
        let modes = [("rud", Mode::Rud), ("rod", Mode::Rod), ("rudi", Mode::Rudi), ("uud", Mode::Uud)];
        let mut congestion = Vec::new();
        if claims("parameters") {
            congestion.extend(claims("nscc").then_some("nscc"));
            congestion.extend(claims("rccc").then_some("rccc"));
            congestion.extend((claims("nscc") && claims("rccc")).then_some("both"));
            congestion.push("none");
        }
        let (facts, mtu) = (dut.facts(), number("payload_mtu", 4096) as u32);
        // A real link may not carry larger packets than those of the device.
        let longest = if facts.virtual_time { 8192 } else { mtu };
        Abilities {
            kinds: KINDS.into_iter().filter(|kind| claims(capability(*kind))).collect(),
            modes: modes.into_iter().filter(|(name, _)| claims(name)).map(|(_, mode)| mode).collect(),
            posts: true,
            receive: claims("receive"),
            close: claims("close"),
            strangers: true,
            mtu,
            congestion,
            ack_data: number("max_ack_data_size", 16) as u32,
            parameters: claims("parameters"),
            mtus: MTUS.into_iter().filter(|mtu| *mtu <= longest.max(1024)).collect(),
            both_ips: facts.second_device.is_some(),
            secures: claims("tss") && facts.virtual_time,
            request_close: claims("request_close"),
        }
    }

    /// Returns all abilities that packets can use, of a device that may say nothing about itself. It gets
    /// packets from one address only.
    pub fn any(mtu: u32, posts: bool) -> Self {
        Abilities {
            kinds: KINDS.to_vec(),
            modes: vec![Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud],
            posts,
            receive: true,
            close: posts,
            strangers: false,
            mtu,
            congestion: Vec::new(),
            ack_data: 16,
            parameters: false,
            mtus: Vec::new(),
            both_ips: false,
            secures: false,
            request_close: false,
        }
    }
}
