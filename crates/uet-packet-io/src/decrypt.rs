//! Frames in the clear, from secured ones.

use crate::json::Decoded;
use uet_wire::outer::{Ip, Ipv4, Ipv6, Udp};

/// Returns the frame of an opened packet without its security header and its ICV, with the lengths and the checksum of
/// the shorter packet. A wrong IPv4 checksum stays wrong. Returns `None` for a packet that was not opened.
pub fn in_the_clear(decoded: &Decoded<'_>) -> Option<Vec<u8>> {
    let opened = decoded.protection.as_ref()?.authenticated == Some(true);
    let packet = opened.then_some(decoded.packet)?;
    let (tss, offsets) = (packet.uet.tss?, packet.offsets());
    let bytes = decoded.record.bytes;
    let (header, gone) = (tss.bytes().len(), tss.bytes().len() + packet.trailer.len());
    let start = offsets.uet?;
    let mut frame = [bytes.get(..start)?, bytes.get(start + header..offsets.trailer)?].concat();
    if packet.udp.is_some() {
        let at = offsets.transport?;
        let udp = *frame.get(at..)?.first_chunk()?;
        let udp = Udp::from_bytes(udp);
        // A checksum of 0 means none, over IPv4 and in UET also over IPv6.
        let udp = udp
            .edit()
            .length(udp.length().checked_sub(u16::try_from(gone).ok()?)?)
            .checksum(0)
            .done()
            .ok()?;
        frame.get_mut(at..)?.first_chunk_mut::<8>()?.copy_from_slice(udp.bytes());
    }
    let at = offsets.ip?;
    match packet.ip? {
        Ip::V4 { options, .. } => {
            let ip = Ipv4::from_bytes(*frame.get(at..)?.first_chunk()?);
            let length = ip.total_length().checked_sub(u16::try_from(gone).ok()?)?;
            let shorter = ip.edit().total_length(length).done().ok()?;
            let (old, new) = (ip.computed_checksum(options), shorter.computed_checksum(options));
            let checksum = match ip.checksum() {
                // Left to the NIC.
                0 if old != 0 => 0,
                // A wrong one stays wrong, by the same bits. 0 would mean another thing, and no right one is 0xffff.
                checksum if checksum != old && checksum ^ old == new => 0xffff,
                checksum => checksum ^ old ^ new,
            };
            let ip = shorter.edit().checksum(checksum).done().ok()?;
            frame.get_mut(at..)?.first_chunk_mut::<20>()?.copy_from_slice(ip.bytes());
        }
        Ip::V6 { .. } => {
            let ip = Ipv6::from_bytes(*frame.get(at..)?.first_chunk()?);
            let length = ip.payload_length().checked_sub(u16::try_from(gone).ok()?)?;
            let ip = ip.edit().payload_length(length).done().ok()?;
            frame.get_mut(at..)?.first_chunk_mut::<40>()?.copy_from_slice(ip.bytes());
        }
    }
    Some(frame)
}
