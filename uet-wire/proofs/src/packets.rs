//! The ways through whole packets.

use crate::operations;
use core::hint::black_box;
use uet_wire::layout::{self, Layout};
use uet_wire::pds::{Ack, AckCc, AckCcx, Control, NackCcx, Pds, PdsBuf, Prologue, Request, RequestCc};
use uet_wire::registry::{NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Atomic, Ext, Response, Ses, Small, Std};
use uet_wire::trailer::TrailerKind;
use uet_wire::tss::{Tss, TssShort};
use uet_wire::{FrameBuilder, Options, Packet, PacketMut, ParseError, Psn, Start, Uet, Units24};

operations! {
    "uet" => |received, buffer| {
        let (packet, cut) = Uet::parse_lax(received);
        if let Some(error) = cut {
            read_error(error);
        }
        read_uet(&packet);
        let _ = black_box(packet.emit(buffer));
        let _ = black_box(Uet::parse(received));
        #[cfg(feature = "nom")]
        let _ = black_box(Uet::nom::<nom::error::Error<&[u8]>>(received));
    };
    "layers of uet" => |received, _| {
        let _ = black_box(Tss::parse(received));
        for code in 0..32 {
            if let (Some(code), Some(next)) = (PdsType::new(code), NextHdr::new(code & 15)) {
                let _ = black_box(Pds::parse_as(code, received));
                if let Some(Ok((ses, rest))) = Ses::parse_as(next, received) {
                    let _ = black_box(Ext::parse_after(&ses, rest));
                }
            }
        }
    };
    "packet from ethernet" => |received, _| read_packet(Start::Eth, received);
    "packet from a tag" => |received, _| read_packet(Start::EtherType(0x8100), received);
    "packet from ip" => |received, _| read_packet(Start::Ip, received);
    "packet from udp" => |received, _| read_packet(Start::Udp, received);
    "packet from uet" => |received, _| read_packet(Start::Uet, received);
    "packet in place" => |received, buffer| {
        let options = options(received);
        for start in [Start::Eth, Start::Ip, Start::Udp, Start::Uet] {
            if let Ok(mut packet) = PacketMut::new(start, buffer, &options) {
                let _ = black_box(packet.mark_ce());
                let _ = black_box(packet.set_ecn(2));
                let _ = black_box(packet.set_dscp(number(received) as u8));
                let _ = black_box(packet.retransmit(Psn(number(received))));
                let _ = black_box(packet.set_entropy(number(received) as u16));
                #[cfg(feature = "crc")]
                let _ = black_box(packet.refresh_crc());
                let _ = black_box(packet.trim(number(received) as usize, 5));
            }
        }
    };
    "frame" => |received, buffer| {
        let Ok((pds, _)) = Request::parse(received) else { return };
        let Ok((ses, _)) = Std::parse(received) else { return };
        let request = FrameBuilder::new(pds.copied()).ses(ses.copied()).payload(received);
        let request = if let Ok((ext, _)) = Atomic::parse(received) { request.ext(ext.copied()) } else { request };
        let vlans = [number(received) as u16, 7];
        let ip = request.dscp(received.len() as u8).ecn(1).ttl(9).pad_to(64);
        emit(&ip.clone().udp(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ipv4_options(received), buffer);
        emit(&ip.clone().udp_to(7, 9).ipv6([1; 16], [2; 16]).ethernet([2; 6], [4; 6]).vlans(&vlans), buffer);
        emit(&ip.clone().native(7).as_given().ipv6([1; 16], [2; 16]), buffer);
        emit(&ip.clone().native_as(7, 200).ipv4([10, 0, 0, 1], [10, 0, 0, 2]), buffer);
        emit(&ip.as_given(), buffer);
        if let Ok((tss, _)) = TssShort::parse(received) {
            emit(&FrameBuilder::secured(tss.copied(), received, [7; 16]).udp(7).ipv6([1; 16], [2; 16]), buffer);
        }
    };
    "computing a crc" => |_received, _| {
        #[cfg(feature = "crc")]
        black_box((uet_wire::crc::crc32c(_received), uet_wire::crc::over_ip_packet(_received)));
    };
    "derived values" => |received, _| {
        let (psn, units) = (Psn(number(received)), Units24::from_bytes(number(received).into()));
        black_box((psn + 7, psn - 7, psn - Psn(7), psn.offset(-7), psn.offset_from(Psn(7))));
        black_box((psn.serial_cmp(Psn(7)), psn.is_after(Psn(7)), psn.is_within(Psn(7), Psn(9))));
        black_box((units + number(received), units.since(Units24::default()), units.bytes()));
        if let Ok((ack, _)) = AckCc::parse(received) {
            black_box((ack.ack().ack_psn(), ack.sack_psn(), ack.service_time_ns(), ack.sack().mp_range()));
            ack.sacked().for_each(|psn| _ = black_box(psn));
            ack.sacked().ranges().for_each(|range| _ = black_box(range));
        }
        if let Ok((control, _)) = Control::parse(received) {
            black_box((control.start_psn(), control.clear_psn(), control.credit(), control.credit_target()));
        }
        if let Ok((request, _)) = RequestCc::parse(received) {
            black_box((request.request().start_psn(), request.request().clear_psn()));
            let _ = black_box(request.request().edit().clear_psn(psn).done());
        }
        let code = NackCode::new(number(received) as u8).unwrap_or_default();
        black_box((code.name(), code.class(), code.status(uet_wire::Version::V1_0_3)));
    };
    "builders" => |received, _| {
        let opcode = Opcode::new(number(received) as u8).unwrap_or_default();
        let code = NackCode::new(number(received) as u8).unwrap_or_default();
        let _ = black_box((Ack::build().done(), AckCcx::build().done(), NackCcx::build(code).done()));
        let _ = black_box((Request::rod().done(), RequestCc::rud().done(), Prologue::of(PdsType::ACK)));
        let _ = black_box((Std::build(opcode).done(), Small::build(opcode).done()));
        let _ = black_box(Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).done());
    };
    "tables" => |received, buffer| {
        for layout in layout::ALL {
            read_table(layout, received);
            for place in layout.places() {
                black_box(place.write(buffer, number(received).into()));
            }
        }
    };
    // The control: with this configuration the proof must fail.
    "planted" => |_received, _| {
        #[cfg(planted)]
        black_box(_received[7]);
    };
}

fn number(received: &[u8]) -> u32 {
    received.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// All settings occur, chosen by what was received.
fn options(received: &[u8]) -> Options {
    let choice = number(received);
    let trailer = match choice & 12 {
        4 => TrailerKind::Crc,
        8 => TrailerKind::Icv,
        _ => TrailerKind::None,
    };
    Options::DEFAULT
        .udp_port(if choice & 1 == 0 { 4793 } else { choice as u16 })
        .ip_proto(if choice & 2 == 0 { 253 } else { choice as u8 })
        .trailer(trailer)
        .trimmed_dscp((choice & 16 == 0).then_some(5))
        .trimmed_lasthop_dscp((choice & 32 == 0).then_some(6))
}

fn read_packet(start: Start, received: &[u8]) {
    let options = options(received);
    for wire in [received.len(), received.len().saturating_add(number(received) as usize)] {
        let packet = Packet::parse_sliced(start, received, wire, &options).0;
        read_uet(&packet.uet);
        black_box((packet.parts(), packet.offsets(), packet.entropy_value()));
        packet.headers().for_each(|header| _ = black_box(header));
        if let Some(ip) = packet.ip {
            black_box((ip.src(), ip.dst(), ip.dscp(), ip.ecn(), ip.extra(), ip.bytes(), ip.layout()));
        }
        #[cfg(feature = "crc")]
        black_box(packet.crc_check());
        packet.cut.into_iter().chain(packet.error()).for_each(read_error);
    }
    let _ = black_box(Packet::parse(start, received, &options));
}

fn read_uet(packet: &Uet<'_>) {
    black_box((packet.len(), packet.is_empty(), packet.parts()));
    if let Some(tss) = packet.tss {
        black_box((tss.head(), tss.ssi(), tss.tsc(), tss.copied(), tss.layout()));
    }
    if let Some(pds) = packet.pds {
        let owned: PdsBuf = pds.copied();
        black_box((
            pds.kind(),
            pds.next_hdr(),
            pds.request(),
            pds.ack(),
            pds.nack(),
            pds.layout(),
            owned.view(),
        ));
    }
    if let Some(ses) = packet.ses {
        black_box((ses.next_hdr(), ses.request_head(), ses.opcode(), ses.address(), ses.payload_length()));
        black_box((ses.copied(), ses.layout()));
    }
    if let Some(ext) = packet.ext {
        black_box((ext.copied(), ext.layout()));
    }
}

fn read_error(error: ParseError) {
    black_box((error.layer(), error.field(), error.offset(), error.needed(), error.present()));
}

fn read_table(layout: &'static Layout, header: &[u8]) {
    for (place, value) in layout.present(header) {
        black_box((place.row.name, value));
        black_box(layout.field(place.row.name));
    }
}

fn emit(frame: &FrameBuilder<'_>, buffer: &mut [u8]) {
    black_box(frame.len());
    let _ = black_box(frame.emit(buffer));
}
