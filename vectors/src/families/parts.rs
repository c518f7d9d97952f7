//! Parts of handmade packets: the two ends of the articles' example and their headers.

use crate::case::{Bytes, Case, Direction, Step};
use uet_wire::pds::{
    Ack, AckCc, AckCcMut, AckCcx, AckCcxMut, AckMut, Control, Nack, Request, RequestCc, RequestCcMut,
    RequestMut,
};
use uet_wire::registry::{AckRequest, CtlType, NackCode, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{AddressMut, RequestHeadMut, Response, Std, StdMut};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset};

pub(super) const JOB: u32 = 101;
/// The initiator's identifier of the context.
pub(super) const INITIATOR: PdcId = PdcId(0x4001);
/// The target's identifier of the context.
pub(super) const TARGET: PdcId = PdcId(0x8001);
pub(super) const INITIATOR_IP: [u8; 4] = [10, 0, 0, 1];
pub(super) const TARGET_IP: [u8; 4] = [10, 0, 1, 12];
const INITIATOR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TARGET_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const INITIATOR_IPV6: [u16; 8] = [0xfd00, 0, 0, 0, 0, 0, 0, 1];
const TARGET_IPV6: [u16; 8] = [0xfd00, 0, 0, 0, 0, 0, 0, 2];
/// Traffic classes of requests and of their answers.
const LOW: u8 = 10;
const HIGH: u8 = 46;
/// Data that shows its offset: byte `i` is `i` modulo 251.
static DATA: [u8; 16_384] = {
    let mut data = [0; 16_384];
    let mut i = 0;
    while i < data.len() {
        data[i] = (i % 251) as u8;
        i += 1;
    }
    data
};

/// Returns the bytes of a message from `offset` on.
pub(super) fn data(offset: usize, length: usize) -> &'static [u8] {
    &DATA[offset..offset + length]
}

/// Unwraps a header that must be valid.
pub(super) fn built<T>(header: Result<T, uet_wire::WriteError>) -> T {
    match header {
        Ok(header) => header,
        // A case that cannot be built is a mistake in its declaration.
        Err(error) => panic!("{error}"),
    }
}

/// Puts a packet of the initiator into IPv4.
pub(super) fn v4(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ipv4(INITIATOR_IP, TARGET_IP)
}

/// Puts a packet of the initiator into IPv6.
pub(super) fn v6(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ipv6(INITIATOR_IPV6, TARGET_IPV6)
}

/// Puts a packet of the initiator into Ethernet.
pub(super) fn eth(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ethernet(INITIATOR_MAC, TARGET_MAC)
}

/// Builds a request of the initiator that requests an ACK.
pub(super) fn request(psn: u32, clear: u32) -> RequestMut {
    Request::rud().ar(true).psn(Psn(psn)).clear_psn(Psn(clear)).spdcid(INITIATOR).dpdcid(TARGET)
}

/// Builds a request of the target, in the return direction.
pub(super) fn returned(psn: u32, clear: u32) -> RequestMut {
    Request::rud().ar(true).psn(Psn(psn)).clear_psn(Psn(clear)).spdcid(TARGET).dpdcid(INITIATOR)
}

/// Builds a request that may open the context: no ACK has arrived yet.
pub(super) fn opening(kind: PdsType, psn: u32, offset: u16) -> RequestMut {
    let request = Request::rud().prologue(|p| p.kind(kind)).ar(true).syn(true).psn(Psn(psn));
    let clear = psn.wrapping_sub(u32::from(offset) + 1);
    let request = request.clear_psn(Psn(clear)).spdcid(INITIATOR);
    request.pdc_info(0).psn_offset(PsnOffset::new(offset).unwrap_or_default())
}

/// Builds an ACK of the target. `cack` is its cumulative PSN, `answered` the PSN of the acknowledged packet.
pub(super) fn ack(cack: u32, answered: u32) -> AckMut {
    let offset = answered.wrapping_sub(cack) as i16;
    Ack::build().ack_psn_offset(offset).cack_psn(Psn(cack)).spdcid(TARGET).dpdcid(INITIATOR)
}

/// Appends congestion state to a request.
pub(super) fn with_credit(request: RequestMut) -> RequestCcMut {
    let request = built(request.done());
    let kind = match request.prologue().kind() {
        PdsType::ROD_REQ => PdsType::ROD_CC_REQ,
        _ => PdsType::RUD_CC_REQ,
    };
    RequestCc::from_bytes(extended(request.bytes())).edit().request(|r| r.prologue(|p| p.kind(kind)))
}

/// Appends congestion state to an ACK.
pub(super) fn with_state(ack: AckMut) -> AckCcMut {
    let ack = built(ack.done());
    AckCc::from_bytes(extended(ack.bytes())).edit().ack(|a| a.prologue(|p| p.kind(PdsType::ACK_CC)))
}

/// Appends the larger congestion state to an ACK.
pub(super) fn with_large_state(ack: AckMut) -> AckCcxMut {
    let ack = built(ack.done());
    AckCcx::from_bytes(extended(ack.bytes())).edit().ack(|a| a.prologue(|p| p.kind(PdsType::ACK_CCX)))
}

/// Copies the header to the start of a longer one.
fn extended<const N: usize>(header: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..header.len()].copy_from_slice(header);
    bytes
}

/// Builds an ACK with a response that the target keeps until it is cleared.
pub(super) fn guaranteed(cack: u32, answered: u32) -> AckMut {
    ack(cack, answered).req(AckRequest::REQ_CLEAR)
}

/// Builds an ACK of the initiator, in the return direction.
pub(super) fn ack_back(cack: u32, answered: u32) -> Ack {
    built(ack(cack, answered).spdcid(INITIATOR).dpdcid(TARGET).done())
}

/// Builds a NACK of the target.
pub(super) fn nack(code: NackCode, psn: u32) -> Nack {
    built(Nack::build(code).nack_psn(Psn(psn)).spdcid(TARGET).dpdcid(INITIATOR).done())
}

/// Builds a control packet of the initiator.
pub(super) fn control(kind: CtlType) -> uet_wire::pds::ControlMut {
    Control::build(kind).spdcid(INITIATOR).dpdcid(TARGET)
}

/// Builds a request of the article's job, to the article's process and index.
pub(super) fn std(opcode: Opcode, message: u16) -> StdMut {
    Std::build(opcode).head(|h| h.rel(true)).message_id(message).address(address)
}

/// A write of one packet.
pub(super) fn write(message: u16, length: u32) -> Std {
    built(std(Opcode::UET_WRITE, message).head(whole).memory_key(0xacce5).request_length(length).done())
}

/// A tagged send of one packet.
pub(super) fn tagged(message: u16, length: u32) -> Std {
    built(std(Opcode::UET_TAGGED_SEND, message).head(whole).match_bits(0x77).request_length(length).done())
}

/// Marks a message of one packet.
pub(super) fn whole(head: RequestHeadMut<&mut [u8; 2]>) -> RequestHeadMut<&mut [u8; 2]> {
    head.som(true).eom(true)
}

/// Sets the process and the index of the article's target.
pub(super) fn address(address: AddressMut<&mut [u8; 8]>) -> AddressMut<&mut [u8; 8]> {
    address.job_id(JOB).pid_on_fep(2).resource_index(10)
}

/// A response without data.
pub(super) fn response(opcode: ResponseOpcode, code: ReturnCode, message: u16) -> uet_wire::ses::ResponseMut {
    Response::build(opcode, code).message_id(message).job_id(JOB)
}

/// Builds a plain success response.
pub(super) fn ok(message: u16) -> Response {
    built(response(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK, message).done())
}

/// A conversation, packet by packet.
pub(super) struct Ladder {
    now: u64,
    steps: Vec<Step>,
}

impl Ladder {
    pub(super) fn new() -> Self {
        Ladder { now: 0, steps: Vec::new() }
    }

    /// Adds a delay; each packet also takes a microsecond.
    pub(super) fn wait(mut self, nanoseconds: u64) -> Self {
        self.now += nanoseconds;
        self
    }

    /// Adds a packet of the initiator.
    pub(super) fn initiator(self, what: &str, frame: FrameBuilder<'_>) -> Self {
        self.step(Direction::Initiator, what, &frame)
    }

    /// Adds a packet of the target.
    pub(super) fn target(self, what: &str, frame: FrameBuilder<'_>) -> Self {
        self.step(Direction::Target, what, &frame)
    }

    fn step(mut self, direction: Direction, what: &str, frame: &FrameBuilder<'_>) -> Self {
        let case = Case::eth("", what, around(direction, &frame.bytes()));
        self.steps.push(Step { direction, at: self.now, case });
        self.now += 1_000;
        self
    }

    pub(super) fn steps(self) -> Vec<Step> {
        self.steps
    }
}

/// Builds the frame of a packet from one end to the other.
pub(super) fn around(direction: Direction, uet: &[u8]) -> Vec<u8> {
    let carries_data = |kind: u8| {
        let requests =
            [PdsType::RUD_REQ, PdsType::ROD_REQ, PdsType::RUD_CC_REQ, PdsType::ROD_CC_REQ, PdsType::RUDI_REQ];
        requests.iter().any(|request| request.code() == kind)
    };
    let low = uet.first().is_some_and(|byte| carries_data(byte >> 3));
    let frame = FrameBuilder::opaque(uet).udp(0xbeef).dscp(if low { LOW } else { HIGH }).ecn(1);
    let frame = match direction {
        Direction::Initiator => eth(v4(frame)),
        Direction::Target => frame.ipv4(TARGET_IP, INITIATOR_IP).ethernet(TARGET_MAC, INITIATOR_MAC),
    };
    frame.pad_to(FrameBuilder::SHORTEST).bytes()
}
