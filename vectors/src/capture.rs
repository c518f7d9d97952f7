//! Writes vectors as captures.

use crate::case::{Case, Direction, Family, Vector};
use std::io;
use std::time::Duration;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_wire::outer::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet, Ipv4, PROTO_UDP, Udp};
use uet_wire::{Start, WriteError};

/// 2026-01-01 00:00:00 UTC: start of a capture, since single vectors have no time.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);
/// Interval between packets without a time of their own.
const GAP: Duration = Duration::from_micros(1);
/// Interval between sequences.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the capture of a family; the comment of each packet is the name of its vector.
pub(crate) fn of(family: &Family) -> Vec<u8> {
    match write(family) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("writing to memory: {error}"),
    }
}

fn write(family: &Family) -> io::Result<Vec<u8>> {
    let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet)?;
    let mut now = EPOCH;
    for vector in &family.vectors {
        match vector {
            Vector::Packet(case) => {
                write_case(&mut writer, case, Direction::Initiator, now)?;
                now += GAP;
            }
            Vector::Sequence { steps, .. } => {
                for step in steps {
                    let at = now + Duration::from_nanos(step.at);
                    write_case(&mut writer, &step.case, step.direction, at)?;
                }
                now += PAUSE;
            }
        }
    }
    writer.finish()
}

fn write_case(
    writer: &mut CaptureWriter<Vec<u8>>,
    case: &Case,
    direction: Direction,
    time: Duration,
) -> io::Result<()> {
    let unseen = case.wire.map_or(0, |wire| wire - case.bytes.len());
    let outer = match outer(case, direction, unseen) {
        Ok(outer) => outer,
        Err(error) => unreachable!("{}: {error}", case.name),
    };
    let data = [&outer[..], &case.bytes].concat();
    writer.write(&CapturedFrame { time, bytes: &data, wire: data.len() + unseen, comment: &case.name })
}

/// Builds the missing outer headers of a packet that does not start with Ethernet. Existing headers stay unchanged,
/// right or wrong.
fn outer(case: &Case, direction: Direction, unseen: usize) -> Result<Vec<u8>, WriteError> {
    let mut headers = Vec::new();
    let length = case.bytes.len() + unseen;
    if case.start == Start::Uet {
        let udp = Udp::zeroed().edit().src_port(0xbeef).dst_port(case.options.udp_port);
        headers.splice(0..0, *udp.length((Udp::LAYOUT.bytes + length) as u16).done()?.bytes());
    }
    if matches!(case.start, Start::Uet | Start::Udp) {
        let total = Ipv4::LAYOUT.bytes + headers.len() + length;
        let ip = Ipv4::zeroed().edit().version(4).ihl(5).total_length(total as u16).df(true).ttl(64);
        let (src, dst) = match direction {
            Direction::Initiator => ([10, 0, 0, 1], [10, 0, 1, 12]),
            Direction::Target => ([10, 0, 1, 12], [10, 0, 0, 1]),
        };
        let ip = ip.proto(PROTO_UDP).src(src.into()).dst(dst.into()).done()?;
        let ip = ip.edit().checksum(ip.computed_checksum(&[])).done()?;
        headers.splice(0..0, *ip.bytes());
    }
    if case.start != Start::Eth {
        let first = headers.first().or(case.bytes.first());
        let ethertype = match first.map(|byte| byte >> 4) {
            Some(6) => ETHERTYPE_IPV6,
            _ => ETHERTYPE_IPV4,
        };
        let eth = Ethernet::zeroed().edit().dst([2, 0, 0, 0, 0, 2]).src([2, 0, 0, 0, 0, 1]);
        headers.splice(0..0, *eth.ethertype(ethertype).done()?.bytes());
    }
    Ok(headers)
}
