//! Offsets and lengths at the limits of their fields (section 3.4.1): offsets beyond 16 and 24 bits, and full
//! packets for each MTU and header form.

use crate::prelude::*;
use crate::rules::steps::FORM;
use crate::{Data, Part, assemble};
use uet_control::{Fill, Hex};

/// The offset of a packet in its message.
const OFFSET: Axis<u32> = axis("offset").values(&[
    ("below-64K", 0xfc00),
    ("64K", 0x1_0000),
    ("128K", 0x2_0000),
    ("1M", 0x10_0400),
    ("16M", 0x100_0800),
]);

/// True if the packets with read data arrive in reverse order.
const REVERSED: Axis<bool> = axis("data").values(&[("in-order", false), ("reversed", true)]);

/// The Payload_MTU that the script sets. 0 keeps that of the device.
const MTU: Axis<u64> =
    axis("mtu").values(&[("default", 0), ("1024", 1024), ("2048", 2048), ("4096", 4096), ("8192", 8192)]);

/// Payload_MTU, and the number of bytes by which the payload is shorter.
const SIZE: Axis<(u64, usize)> = axis("size").values(&[
    ("mtu", (0, 0)),
    ("mtu-minus-1", (0, 1)),
    ("1024", (1024, 0)),
    ("1023", (1024, 1)),
    ("2048", (2048, 0)),
    ("4096", (4096, 0)),
    ("4095", (4096, 1)),
    ("8192", (8192, 0)),
    ("8191", (8192, 1)),
]);

const SHORT_FORM: Axis<Form> = axis("form").values(&[("medium", Form::Medium), ("small", Form::Small)]);

const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

/// An operation that a short header can carry.
const SHORT_OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
]);

/// The number of full packets of the message, and of bytes after them.
const LENGTH: Axis<(usize, usize)> = axis("length").values(&[
    ("0", (0, 0)),
    ("1", (0, 1)),
    ("mtu", (1, 0)),
    ("mtu-plus-1", (1, 1)),
    ("2-mtu", (2, 0)),
    ("2-mtu-plus-512", (2, 512)),
]);

pub(super) const RULES: &[Rule] = &[
    rule("limits/write", "A write places its payload at any message_offset up to 16 MiB")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&OFFSET, &MODE])
        .run(|t| {
            let offset = t.value(&OFFSET);
            let total = offset + 0x800;
            let region = t.region(total.into())?;
            let mut session = t.session();
            let data: Vec<u8> = (1..=100).collect();
            // The bytes at an offset that lost its higher bits stay zero.
            let part = packet_at(
                &Message { complete: false, ..Message::write(&region, 0, &data) },
                offset,
                100,
                total,
            )?;
            let psn = session.ask(t, &part)?;
            session.accepted(t, SES_RESP_001, psn)?;
            t.expect_memory(SES_PLACE_001, &region, offset.into(), &data)?;
            for bits in [16, 20, 24] {
                let place = offset & ((1 << bits) - 1);
                if place != offset {
                    t.check_memory(SES_PLACE_001, &region, place.into(), &[0; 100])?;
                }
            }
            Ok(())
        }),
    rule("limits/read", "Read data comes from the requested message_offset and states it, up to 16 MiB")
        .checks(&[SES_READ_001, SES_READ_007, SES_CUT_001])
        .needs(&[READ])
        .over(&[&OFFSET, &MODE])
        .run(|t| {
            let offset = t.value(&OFFSET);
            let total = offset + 0x800;
            let length = t.beyond_ack()?.max(100) as usize;
            let (region, memory) = t.patterned(total.into())?;
            let mut session = t.session();
            let part = packet_at(
                &Message { data: Vec::new(), ..Message::read(&region, 0, length as u32) },
                offset,
                length,
                total,
            )?;
            let psn = session.ask(t, &part)?;
            session.some_answer(t, psn)?;
            let pieces = session.data(t, SES_READ_001, length)?;
            let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
            let expected = &memory[offset as usize..offset as usize + length];
            t.same_bytes(SES_READ_001, "the data compared with memory", expected, &bytes);
            let header = pieces.first().and_then(Data::long);
            t.check(
                SES_CUT_001,
                "message_offset",
                Some(offset),
                header.map(|header| header.message_offset()),
            );
            t.check(
                SES_READ_007,
                "modified_length",
                Some(total),
                header.map(|header| header.modified_length()),
            );
            Ok(())
        }),
    rule("limits/initiator-read", "An initiator places read data at its message_offset, even beyond 64 KiB")
        .checks(&[SES_DONE_001, SES_READ_002])
        .needs(&[READ])
        .over(&[&REVERSED, &MODE])
        .run(|t| {
            let mtu = t.mtu();
            let (packets, mode) = ((72 * 1024 / mtu) as u32, t.value(&MODE));
            let length = packets as usize * mtu - 100;
            t.requests_all(PostKind::Read, length)?;
            let peer = t.peer(0)?;
            let posted = t.post(Post { mode, want_data: true, ..post(PostKind::Read, peer, length) })?;
            let mut target = Target::accept(t)?;
            for n in 0..packets {
                let arrived = target.next(t, t.later())?.is_some() || target.times(n) > 0;
                t.holds(SES_READ_002, "a read request for each MTU arrives", arrived, n);
                if n % 4 == 3 {
                    target.ack(t, target.highest())?;
                }
            }
            target.collect(t, packets)?;
            target.ack(t, packets - 1)?;
            let whole = Fill::Seed(5).bytes(length);
            // On an ordered context, data arrives in order.
            let mut order: Vec<u32> = (0..packets).collect();
            if t.value(&REVERSED) && !target.pdc.rod {
                order.reverse();
            }
            for k in order {
                let start = k as usize * mtu;
                let piece = &whole[start..(start + mtu).min(length)];
                let ses = target.data_header(k, piece.len(), length, start)?;
                target.give_due(t, k, ses, piece)?;
            }
            let ended = t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64))?;
            let data = ended.and_then(|completion| completion.data).map_or(Vec::new(), |data| data.0);
            t.same_bytes(SES_DONE_001, "the data of the completion", &whole, &data);
            Ok(())
        }),
    rule("limits/full-read", "Read data of a full packet is complete and states its payload_length")
        .checks(&[SES_READ_001, WIRE_SES_006])
        .needs(&[READ])
        .over(&[&SIZE, &FORM, &MODE])
        .run(|t| {
            let (mtu, less) = t.value(&SIZE);
            let length = configure_mtu(t, mtu)? - less;
            let (region, _, held) = exposed_regions(t, length)?;
            let mut session = t.session();
            let part = Message::read(&region, 32, length as u32).in_form(t.value(&FORM))?;
            let psn = session.ask(t, &part)?;
            session.some_answer(t, psn)?;
            let pieces = session.data(t, SES_READ_001, length)?;
            let whole = assemble(&pieces, length).unwrap_or_default();
            t.same_bytes(SES_READ_001, "the data compared with memory", &held[32..32 + length], &whole);
            for piece in &pieces {
                let long = piece.long().map(|header| header.payload_length());
                let stated = long.or(piece.short().map(|header| header.payload_length()));
                t.check(WIRE_SES_006, "payload_length", Some(piece.bytes.len() as u16), stated);
            }
            Ok(())
        }),
    rule("limits/full-write", "A write that fills a packet is placed whole, for each MTU and header form")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&SIZE, &FORM, &MODE])
        .run(|t| {
            let (mtu, less) = t.value(&SIZE);
            let length = configure_mtu(t, mtu)? - less;
            let (region, regions, held) = exposed_regions(t, length)?;
            let mut session = t.session();
            let data = Fill::Seed(9).bytes(length);
            let part = Message::write(&region, 32, &data).in_form(t.value(&FORM))?;
            let psn = session.ask(t, &part)?;
            session.accepted(t, SES_RESP_001, psn)?;
            let mut expected = held.clone();
            expected[32..32 + length].copy_from_slice(&data);
            let changed = regions.len() > 1 && t.memory(&regions[1], 0, expected.len() as u64)? != held;
            t.expect_memory(SES_PLACE_001, &regions[usize::from(changed)], 0, &expected)
        }),
    rule("limits/full-packets", "A write of full packets is placed whole, for each MTU")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&MTU, &MODE])
        .run(|t| {
            let mtu = configure_mtu(t, t.value(&MTU))?;
            let (region, mut expected) = t.patterned(3 * mtu as u64 + 64)?;
            let data = Fill::Seed(9).bytes(3 * mtu);
            let mut session = t.session();
            let psns = session.ask_all(t, &Message::write(&region, 32, &data).parts(mtu)?)?;
            let last = psns.last().copied().ok_or_else(|| Stop::Inconclusive("nothing was sent".into()))?;
            session.accepted(t, SES_RESP_001, last)?;
            expected[32..32 + data.len()].copy_from_slice(&data);
            t.expect_memory(SES_PLACE_001, &region, 0, &expected)
        }),
    rule("limits/segmentation", "An initiator segments a message at its MTU and states each packet's offset")
        .checks(&[SES_CUT_001, SES_CUT_002, SES_CUT_003, SES_DONE_001])
        .over(&[&MTU, &OPERATION, &LENGTH, &MODE])
        .run(|t| {
            let mtu = configure_mtu(t, t.value(&MTU))?;
            let (packets, rest) = t.value(&LENGTH);
            let length = packets * mtu + rest;
            let packets = (length.div_ceil(mtu)).max(1);
            let (kind, mode) = (t.value(&OPERATION), t.value(&MODE));
            let data = Fill::Seed(6).bytes(length);
            t.requests_all(kind, length)?;
            let peer = t.peer(0)?;
            let fill = (kind != PostKind::Read).then(|| Fill::Hex(Hex(data.clone())));
            let form = Some(Form::Std);
            let posted = t.post(Post { mode, fill, form, want_data: true, ..post(kind, peer, length) })?;
            let mut target = Target::accept(t)?;
            target.collect(t, packets as u32)?;
            for n in 0..packets {
                let (said, payload) = (target.said(n as u32)?, target.packet(n as u32)?.payload());
                let start = n * mtu;
                let expected =
                    if kind == PostKind::Read { &[][..] } else { &data[start..(start + mtu).min(length)] };
                t.check(SES_CUT_003, "request_length", length as u32, said.request_length);
                let ends = (n == 0, n + 1 == packets);
                t.check(SES_CUT_002, "som and eom", ends, (said.head.som(), said.head.eom()));
                t.check(SES_CUT_001, "message_offset", start, said.start());
                t.same_bytes(SES_CUT_001, "the payload", expected, &payload);
            }
            target.ack(t, packets as u32 - 1)?;
            if kind == PostKind::Read && length > 0 {
                target.give_all(t, packets as u32, 0, &data)?;
            }
            let ended = t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64))?;
            if kind == PostKind::Read {
                let read = ended.and_then(|completion| completion.data).map_or(Vec::new(), |data| data.0);
                t.same_bytes(SES_DONE_001, "the data of the completion", &data, &read);
            }
            Ok(())
        }),
    rule("limits/short-header", "A medium or small header states the request_length of a full packet")
        .checks(&[SES_CUT_003, SES_DONE_001])
        .over(&[&SIZE, &SHORT_FORM, &SHORT_OPERATION])
        .run(|t| {
            let (mtu, less) = t.value(&SIZE);
            let length = configure_mtu(t, mtu)? - less;
            let (kind, form) = (t.value(&SHORT_OPERATION), t.value(&SHORT_FORM));
            let data = Fill::Seed(6).bytes(length);
            let peer = t.peer(0)?;
            let fill = (kind != PostKind::Read).then(|| Fill::Hex(Hex(data.clone())));
            let posted =
                t.post(Post { fill, form: Some(form), want_data: true, ..post(kind, peer, length) })?;
            let mut target = Target::accept(t)?;
            let said = target.said(0)?;
            require(said.form == form, "the device chose another header")?;
            t.check(SES_CUT_003, "request_length", length as u32, said.request_length);
            target.collect(t, 1)?;
            target.ack(t, 0)?;
            if kind == PostKind::Read {
                target.give_all(t, 1, 0, &data)?;
            } else {
                let payload = target.packet(0)?.payload();
                t.same_bytes(SES_CUT_003, "the payload", &data, &payload);
            }
            t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64)).map(drop)
        }),
];

/// Returns a packet at this offset of a longer message.
fn packet_at(message: &Message, offset: u32, length: usize, total: u32) -> Result<Part, Stop> {
    message.whole()?.edit(|std| {
        let std = std.head(|head| head.som(false).eom(false)).request_length(total);
        std.payload_length(length as u16).message_offset(offset)
    })
}

/// Sets the MTU of this instance, and returns it in bytes.
fn configure_mtu(t: &mut Test<'_>, mtu: u64) -> Result<usize, Stop> {
    if mtu != 0 && mtu != t.mtu() as u64 {
        t.configure("payload_mtu", mtu)?;
    }
    Ok(t.mtu())
}

/// Exposes memory for requests of any form. Open: the region that resource_index selects in a small header.
/// Both candidates hold the same bytes.
fn exposed_regions(t: &mut Test<'_>, length: usize) -> Result<(Region, Vec<Region>, Vec<u8>), Stop> {
    const OPTIMIZED: u64 = 1 << 62;
    let length = length as u64 + 64;
    if t.value(&FORM) != Form::Small {
        let (region, held) = t.patterned(length)?;
        return Ok((region.clone(), vec![region], held));
    }
    let (first, _) = t.exposed(length, |region| ExposeRegion { key: Hex64(OPTIMIZED), ..region })?;
    let (second, held) = t.exposed(length, |region| ExposeRegion { key: Hex64(OPTIMIZED | 10), ..region })?;
    Ok((first.clone(), vec![first, second], held))
}
