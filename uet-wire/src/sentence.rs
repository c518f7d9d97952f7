//! Displays a packet as one line: `RUD_REQ PSN 73728 SYN 0x4001 > ? UET_WRITE 16384 B [SOM]`.

use crate::pds::{Ack, Control, Nack, Pds, Request, Rudi, Sack};
use crate::registry::{AckRequest, CtlType};
use crate::ses::{Ext, RequestHead, Ses};
use crate::tss::Tss;
use crate::{Content, Packet, PdcId, Uet};
use core::fmt::{self, Display, Formatter};

/// Displays the packet in one line. For other protocols, displays the kind of packet.
impl Display for Packet<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let packet = self;
        let length = packet.uet.payload.len();
        match packet.content {
            Content::Uet if packet.uet.pds.is_none() && packet.uet.tss.is_none() => f.write_str("UET")?,
            Content::Uet => packet.uet.fmt(f)?,
            Content::Fragment => write!(f, "fragment of an IP packet, {length} B")?,
            Content::Jumbogram => write!(f, "jumbogram, {length} B")?,
            Content::Other => match packet.udp {
                Some(udp) => write!(f, "UDP {} > {}, {length} B", udp.src_port(), udp.dst_port())?,
                // A packet that ends within a lower header has no payload to count.
                None if packet.error().is_some() => f.write_str("not UET")?,
                None => write!(f, "not UET, {length} B")?,
            },
        }
        if let Some(trimmed) = packet.trimmed {
            let place = if trimmed.last_hop { " at the last hop" } else { "" };
            write!(f, ", trimmed{place} in {}", trimmed.layer)?;
            if let Some(missing) = trimmed.missing {
                write!(f, " by {missing} B")?;
            }
        }
        if let Some(sliced) = packet.sliced {
            write!(f, ", {} of {} B captured", sliced.captured, sliced.wire)?;
        }
        if packet.error().is_some() { f.write_str(", malformed") } else { Ok(()) }
    }
}

/// Displays the packet in one line.
///
/// ```
/// let nack = [0x50, 0, 0x0d, 0, 0, 0, 1, 0x4f, 0x80, 1, 0x40, 1, 0, 0, 0, 0];
/// let nack = uet_wire::Uet::parse(&nack)?;
/// assert_eq!(nack.to_string(), "NACK ROD_OOO PSN 335 0x8001 > 0x4001");
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
impl Display for Uet<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let packet = self;
        if let Some(tss) = packet.tss {
            security(f, tss)?;
            if packet.pds.is_none() {
                return write!(f, ", {} B encrypted", packet.payload.len());
            }
            // The packet has been decrypted.
            f.write_str(": ")?;
        }
        let Some(pds) = packet.pds else { return Ok(()) };
        write!(f, "{}", pds.kind())?;
        match pds {
            Pds::Request(header) => request(f, header)?,
            Pds::RequestCc(header) => {
                request(f, header.request())?;
                write!(f, " CCC {:#04x} wants {} B", header.ccc_id(), header.credit_target().bytes())?;
            }
            Pds::Rudi(header) => rudi(f, header)?,
            Pds::Ack(header) => ack(f, header)?,
            Pds::AckCc(header) => {
                ack(f, header.ack())?;
                sack(f, header.ack(), header.sack())?;
                if let Some(credit) = header.credit() {
                    write!(f, " credit {} B", credit.bytes())?;
                }
            }
            Pds::AckCcx(header) => {
                ack(f, header.ack())?;
                sack(f, header.ack(), header.sack())?;
            }
            Pds::Nack(header) => nack(f, header)?,
            Pds::NackCcx(header) => nack(f, header.nack())?,
            Pds::Control(header) => control(f, header)?,
            Pds::Uud(_) => {}
            Pds::Prologue(_) => write!(f, " (reserved type), {} B", packet.payload.len())?,
        }
        match packet.ses {
            Some(ses) => semantics(f, ses, packet.ext),
            None => Ok(()),
        }
    }
}

/// Writes the words of set flags in brackets.
fn flags(f: &mut Formatter<'_>, flags: &[(bool, &str)]) -> fmt::Result {
    let mut separator = " [";
    for (_, word) in flags.iter().filter(|(on, _)| *on) {
        write!(f, "{separator}{word}")?;
        separator = " ";
    }
    if separator == " " { f.write_str("]") } else { Ok(()) }
}

/// Writes the two ends of a context. Before the first reply, the receiver's identifier is unknown.
fn context(f: &mut Formatter<'_>, source: PdcId, target: Option<PdcId>) -> fmt::Result {
    match target {
        Some(target) => write!(f, " {source} > {target}"),
        None => write!(f, " SYN {source} > ?"),
    }
}

fn request(f: &mut Formatter<'_>, header: Request<&[u8; 12]>) -> fmt::Result {
    write!(f, " PSN {}", header.psn())?;
    context(f, header.spdcid(), header.dpdcid())?;
    flags(f, &[(header.retx(), "RETX")])
}

fn rudi(f: &mut Formatter<'_>, header: Rudi<&[u8; 8]>) -> fmt::Result {
    write!(f, " {:#010x}", header.pkt_id())?;
    flags(f, &[(header.m() == Some(true), "M"), (header.retx(), "RETX")])
}

fn ack(f: &mut Formatter<'_>, header: Ack<&[u8; 12]>) -> fmt::Result {
    match header.ack_psn() {
        Some(psn) => write!(f, " PSN {psn}")?,
        None => write!(f, " probe {:#06x}", header.probe_opaque().unwrap_or_default())?,
    }
    write!(f, " CACK {}", header.cack_psn())?;
    context(f, header.spdcid(), Some(header.dpdcid()))?;
    if header.req() != AckRequest::NO_REQUEST {
        write!(f, " {}", header.req())?;
    }
    flags(f, &[(header.m(), "M"), (header.retx(), "RETX")])
}

fn sack(f: &mut Formatter<'_>, ack: Ack<&[u8; 12]>, sack: Sack<&[u8; 11]>) -> fmt::Result {
    let mut separator = " SACK ";
    for (first, last) in sack.sacked(ack.cack_psn()).ranges() {
        write!(f, "{separator}{first}")?;
        if last != first {
            write!(f, "-{last}")?;
        }
        separator = ",";
    }
    Ok(())
}

fn nack(f: &mut Formatter<'_>, header: Nack<&[u8; 16]>) -> fmt::Result {
    write!(f, " {}", header.nack_code())?;
    match header.nack_psn() {
        Some(psn) => write!(f, " PSN {psn}")?,
        None => write!(f, " {:#010x}", header.nack_pkt_id().unwrap_or_default())?,
    }
    // The NACK of a RUDI packet belongs to no context.
    if !header.nt() {
        context(f, header.spdcid(), Some(header.dpdcid()))?;
    }
    if header.payload() != 0 {
        write!(f, " payload {}", header.payload())?;
    }
    flags(f, &[(header.m(), "M"), (header.retx(), "RETX")])
}

fn control(f: &mut Formatter<'_>, header: Control<&[u8; 16]>) -> fmt::Result {
    let kind = header.ctl_type();
    write!(f, " {kind}")?;
    if kind.takes_psn() || [CtlType::ACK_REQUEST, CtlType::PROBE].contains(&kind) {
        write!(f, " PSN {}", header.psn())?;
    }
    context(f, header.spdcid(), header.dpdcid())?;
    if let Some(opaque) = header.probe_opaque() {
        write!(f, " probe {opaque:#06x}")?;
    }
    if let Some(psn) = header.clear_psn() {
        write!(f, " up to PSN {psn}")?;
    }
    if let Some(credit) = header.credit() {
        write!(f, " {} B", credit.bytes())?;
    }
    if let Some((ccc, wanted)) = header.credit_target() {
        write!(f, " CCC {ccc:#04x} wants {} B", wanted.bytes())?;
    }
    flags(f, &[(header.isrod(), "ROD"), (header.retx(), "RETX")])
}

fn semantics(f: &mut Formatter<'_>, ses: Ses<'_>, ext: Option<Ext<'_>>) -> fmt::Result {
    match ses {
        Ses::Std(header) => {
            write!(f, " {}", header.head().opcode())?;
            part(f, header.payload_length().zip(header.message_offset()), header.request_length())?;
            extension(f, ext)?;
            message(f, header.head())
        }
        Ses::Medium(header) => whole(f, " MEDIUM", header.head(), header.request_length(), ext),
        Ses::Small(header) => whole(f, " SMALL", header.head(), header.request_length(), ext),
        Ses::Response(header) => {
            let head = header.head();
            write!(f, " {} {}", head.opcode(), head.return_code())?;
            if header.modified_length() != 0 { write!(f, " {} B", header.modified_length()) } else { Ok(()) }
        }
        Ses::ResponseData(header) => {
            let head = header.head();
            write!(f, " {} {}", head.opcode(), head.return_code())?;
            part(f, Some((header.payload_length(), header.message_offset())), header.modified_length())
        }
        Ses::ResponseDataSmall(header) => {
            let (head, length) = (header.head(), header.payload_length());
            write!(f, " {} {} {length} B", head.opcode(), head.return_code())?;
            write!(f, " for PSN {}", header.original_request_psn())
        }
    }
}

/// Writes the part of a message that a packet carries. For the start of a message, writes only the total length.
fn part(f: &mut Formatter<'_>, part: Option<(u16, u32)>, whole: u32) -> fmt::Result {
    match part {
        Some((length, offset)) => write!(f, " {length} B at {offset} of {whole} B"),
        None => write!(f, " {whole} B"),
    }
}

/// Writes a request whose message is one packet. The form of its header, if it is not the standard one, follows the opcode.
fn whole(
    f: &mut Formatter<'_>,
    form: &str,
    head: RequestHead<&[u8; 2]>,
    length: u16,
    ext: Option<Ext<'_>>,
) -> fmt::Result {
    write!(f, " {}{form} {length} B", head.opcode())?;
    extension(f, ext)?;
    message(f, head)
}

fn extension(f: &mut Formatter<'_>, ext: Option<Ext<'_>>) -> fmt::Result {
    match ext {
        None => Ok(()),
        Some(Ext::Rendezvous(header)) => write!(f, " with the first {} B", header.eager_length()),
        Some(Ext::Atomic(header)) => write!(f, " {} {}", header.atomic_opcode(), header.atomic_datatype()),
        Some(Ext::CompareSwap(header)) => {
            let atomic = header.atomic();
            write!(f, " {} {}", atomic.atomic_opcode(), atomic.atomic_datatype())?;
            write!(f, " {:#x} to {:#x}", header.compare_value(), header.swap_value())
        }
    }
}

fn message(f: &mut Formatter<'_>, head: RequestHead<&[u8; 2]>) -> fmt::Result {
    let hd = (head.hd(), "HD");
    flags(f, &[(head.som(), "SOM"), (head.eom(), "EOM"), hd, (head.dc(), "DC"), (head.ie(), "IE")])
}

fn security(f: &mut Formatter<'_>, tss: Tss<'_>) -> fmt::Result {
    let (head, counter) = (tss.head(), tss.tsc());
    write!(f, "TSS SDI {:#08x}", head.sdi())?;
    if let Some(ssi) = tss.ssi() {
        write!(f, " SSI {ssi:#010x}")?;
    }
    let key = u8::from(head.an());
    write!(f, " AN {key} epoch {} counter {}", counter.epoch(), counter.counter())
}
