//! The fields of a request, from any of the three headers (section 3.4.2).

use super::Refusal;
use super::event::Why;
use uet_wire::registry::{NextHdr, Opcode, ReturnCode};
use uet_wire::ses::{self, Address, Ext, ExtBuf, RequestHead};

/// The header form of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// 44 bytes: any request.
    #[default]
    Std,
    /// 32 bytes: one packet, header data or an offset.
    Medium,
    /// 20 bytes: one packet, neither key nor match bits.
    Small,
}

impl core::fmt::Display for Form {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Form::Std => "standard",
            Form::Medium => "medium",
            Form::Small => "small",
        })
    }
}

/// The fields of a request.
#[derive(Clone, Debug)]
pub(super) struct SesRequest {
    pub(super) form: Form,
    pub(super) head: RequestHead,
    /// The message id; 0 if the header has none.
    pub(super) message: u16,
    pub(super) address: Address,
    /// The length of the message.
    pub(super) total: u32,
    /// The offset of this packet in the message.
    pub(super) offset: u32,
    /// The length of this packet's part, if the header states it.
    pub(super) stated: Option<u32>,
    pub(super) buffer_offset: u64,
    pub(super) initiator: u32,
    /// The memory key or the match bits; 0 if the header has neither.
    pub(super) selector: u64,
    pub(super) header_data: Option<u64>,
    /// The restart tokens of initiator and target.
    pub(super) tokens: Option<(u32, u32)>,
    pub(super) ext: Option<ExtBuf>,
}

/// A received request, or read data sent as a request.
pub(super) enum Incoming {
    Request(SesRequest),
    /// Read data, on the return direction.
    Data(ses::ResponseData),
    /// Read data for a request with a short header.
    DataSmall(ses::ResponseDataSmall),
}

impl SesRequest {
    pub(super) fn opcode(&self) -> Opcode {
        self.head.opcode()
    }

    /// Returns whether the packet is the whole message.
    pub(super) fn is_whole(&self) -> bool {
        self.head.som() && self.head.eom()
    }

    /// `SES-ERR-005`, `SES-ERR-007`: returns true if the initiator ends the message early with this packet.
    pub(super) fn gives_up(&self) -> bool {
        self.head.ie() || self.opcode() == Opcode::UET_MSG_ERROR
    }
}

/// Parses the headers of a request. Refuses malformed ones.
pub(super) fn read(next_hdr: NextHdr, head: &[u8]) -> Result<Incoming, Refusal> {
    let malformed = Refusal::new(ReturnCode::OP_VIOLATION, Why::Malformed);
    let Some(Ok((header, rest))) = ses::Ses::parse_as(next_hdr, head) else { return Err(malformed) };
    let ext = match Ext::parse_after(&header, rest) {
        None => None,
        Some(Ok((ext, _))) => Some(ext.copied()),
        Some(Err(_)) => return Err(malformed),
    };
    Ok(match header {
        ses::Ses::Std(std) => Incoming::Request(of_std(&std.copied(), ext)),
        ses::Ses::Medium(medium) => Incoming::Request(SesRequest {
            header_data: medium.header_data(),
            initiator: medium.initiator(),
            selector: medium.memory_key().or(medium.match_bits()).unwrap_or_default(),
            ..of_short(
                Form::Medium,
                medium.head().copied(),
                medium.address().copied(),
                medium.request_length(),
                medium.buffer_offset().unwrap_or_default(),
                ext,
            )
        }),
        ses::Ses::Small(small) => Incoming::Request(of_short(
            Form::Small,
            small.head().copied(),
            small.address().copied(),
            small.request_length(),
            small.buffer_offset(),
            ext,
        )),
        ses::Ses::ResponseData(data) => Incoming::Data(data.copied()),
        ses::Ses::ResponseDataSmall(data) => Incoming::DataSmall(data.copied()),
        _ => return Err(malformed),
    })
}

fn of_std(std: &ses::Std, ext: Option<ExtBuf>) -> SesRequest {
    SesRequest {
        form: Form::Std,
        head: std.head().copied(),
        message: std.message_id(),
        address: std.address().copied(),
        total: std.request_length(),
        offset: std.message_offset().unwrap_or_default(),
        stated: std.payload_length().map(u32::from),
        buffer_offset: std.buffer_offset().unwrap_or_default(),
        initiator: std.initiator(),
        selector: std.memory_key().or(std.match_bits()).unwrap_or_default(),
        header_data: std.header_data().filter(|_| std.head().hd()),
        tokens: std.initiator_restart_token().zip(std.target_restart_token()),
        ext,
    }
}

fn of_short(
    form: Form,
    head: RequestHead,
    address: Address,
    length: u16,
    buffer_offset: u64,
    ext: Option<ExtBuf>,
) -> SesRequest {
    SesRequest {
        form,
        head,
        message: 0,
        address,
        total: length.into(),
        offset: 0,
        stated: None,
        buffer_offset,
        initiator: 0,
        selector: 0,
        header_data: None,
        tokens: None,
        ext,
    }
}
