//! The return direction of a context that the device has opened, which carries the data of its reads.

use super::steps::other_pdcid;
use crate::prelude::*;
use uet_control::Fill;
use uet_wire::ses::{ResponseData, Ses};

/// Read data, valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadData {
    Valid,
    OtherMessage,
    BeyondEnd,
    OtherJob,
    TooLong,
}

const DATA: Axis<ReadData> = axis("data").values(&[
    ("valid", ReadData::Valid),
    ("other-message", ReadData::OtherMessage),
    ("beyond-end", ReadData::BeyondEnd),
    ("other-job", ReadData::OtherJob),
    ("too-long", ReadData::TooLong),
]);

/// True if the context of the read is established, so that the device knows the target's PDCID.
const OPENED: Axis<bool> = axis("context").values(&[("established", true), ("new", false)]);

/// True for the last PSN of the window.
const EDGE: Axis<bool> = axis("psn").values(&[("last", true), ("next", false)]);

/// The PSN of read data outside the window. Its low bits may be those of a PSN in the window.
const DISTANCE: Axis<u32> = axis("psn").values(&[
    // No target can announce more than 255 * 128.
    ("above", 32_700),
    ("2-24-above", 1 << 24),
    ("2-16-above", 1 << 16),
    ("2-24-below", (1u32 << 24).wrapping_neg()),
]);

/// A read of two packets by the device. Both requests have arrived.
struct Read {
    target: Target,
    operation: Operated,
    mtu: usize,
    bytes: Vec<u8>,
}

pub(super) const RULES: &[Rule] = &[
    rule("source-return-direction/acknowledged", "Read data is acknowledged and completes the read")
        .checks(&[PDS_ACK_004, PDS_GTD_004, PDS_PSN_002])
        .needs(&[READ])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            for n in 0..2 {
                t.request(&pdc, read.data(n, n as usize)?)?;
                let (_, ack) = t.expect_ack(PDS_ACK_004, &pdc, pdc.psn(n))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(n), ack.cack_psn());
                t.check(PDS_GTD_004, "req", AckRequest::NO_REQUEST, ack.req());
            }
            read.expect_end(t, PDS_PSN_002)
        }),
    rule("source-return-direction/no-request", "An ACK of read data always has req = NO_REQUEST")
        .checks(&[PDS_GTD_004])
        .needs(&[READ])
        .over(&[&DATA, &MODE])
        .run(|t| {
            let read = Read::new(t, Mode::Rud)?;
            read.ack(t)?;
            let (pdc, data) = (read.pdc(), read.data_as(0, 0, t.value(&DATA))?);
            let mut acknowledged = false;
            for retx in [false, true, true] {
                t.forget();
                t.request(&pdc, Request { retx, ..data.clone() })?;
                // The sources leave the reply to invalid data open.
                let within = t.soon();
                if let Some((_, ack)) = t.wait(within, |seen| seen.acknowledges(&pdc, data.psn))? {
                    t.check(PDS_GTD_004, "req", AckRequest::NO_REQUEST, ack.req());
                    acknowledged = true;
                }
            }
            require(acknowledged, "the device does not acknowledge such data")
        }),
    rule("source-return-direction/any-order", "An unordered context accepts read data in any order")
        .checks(&[PDS_RUD_001, PDS_PSN_002])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            // The second packet arrives first, with the higher PSN.
            t.request(&pdc, read.data(1, 1)?)?;
            t.expect_ack(PDS_RUD_001, &pdc, pdc.psn(1))?;
            t.request(&pdc, read.data(0, 0)?)?;
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(1))?;
            read.expect_end(t, PDS_RUD_001)
        }),
    rule("source-return-direction/gap", "Read data above a gap does not move the cumulative PSN")
        .checks(&[PDS_PSN_002, PDS_SACK_001])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            t.request(&pdc, read.data(1, 0)?)?;
            let (seen, ack) = t.expect_ack(PDS_SACK_001, &pdc, pdc.psn(1))?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(0) - 1, ack.cack_psn());
            let missing = seen.ack_cc().is_some_and(|ack| ack.sacked().any(|psn| psn == pdc.psn(0)));
            t.holds(PDS_SACK_001, "the bitmap has no bit for the missing packet", !missing, seen.uet());
            Ok(())
        }),
    rule("source-return-direction/duplicate", "Duplicate read data is acknowledged but delivered once")
        .checks(&[PDS_DUP_001, PDS_DUP_002, PDS_ACK_002])
        .needs(&[READ])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            t.request(&pdc, read.data(0, 0)?)?;
            t.need_ack(&pdc, pdc.psn(0))?;
            for _ in 0..2 {
                t.request(&pdc, read.data(0, 0)?.retx())?;
                let (_, ack) = t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(0))?;
                t.check(PDS_ACK_002, "flag retx", true, ack.retx());
            }
            // Two copies of the first half do not complete the read.
            t.is_open(PDS_DUP_001, read.operation)?;
            t.request(&pdc, read.data(1, 1)?)?;
            read.expect_end(t, PDS_DUP_001)
        }),
    rule("source-return-direction/own-record", "An ACK of requests does not make a device forget read data")
        .checks(&[PDS_DUP_001, PDS_DUP_002])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            // The data has arrived above a gap. Its PSN is also that of a request.
            let read = Read::new(t, Mode::Rud)?;
            let pdc = read.pdc();
            t.request(&pdc, read.data(1, 1)?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            read.ack(t)?;
            t.settle()?;
            t.request(&pdc, read.data(1, 1)?.retx())?;
            t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(1))?;
            t.is_open(PDS_DUP_001, read.operation)?;
            t.request(&pdc, read.data(0, 0)?)?;
            read.expect_end(t, PDS_DUP_001)
        }),
    rule("source-return-direction/mark", "An ACK reports whether its read data carried a congestion mark")
        .checks(&[PDS_ACK_002])
        .needs(&[READ, ECN, SET_ECN])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            for (n, marked) in [(0, true), (1, false)] {
                t.send_marked(&pdc, &read.data(n, n as usize)?.build()?, marked)?;
                let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            }
            Ok(())
        }),
    rule("source-return-direction/before-ack", "Read data is accepted before the ACK of its request")
        .checks(&[PDS_RUD_001])
        .needs(&[READ])
        .over(&[&OPENED, &MODE, &CARRIER, &START])
        .run(|t| {
            let read = if t.value(&OPENED) { Read::new(t, Mode::Rud)? } else { Read::opening(t, Mode::Rud)? };
            let pdc = read.pdc();
            for n in 0..2 {
                t.request(&pdc, read.data(n, n as usize)?)?;
                t.expect_ack(PDS_RUD_001, &pdc, pdc.psn(n))?;
            }
            read.ack(t)?;
            read.expect_end(t, PDS_RUD_001)
        }),
    rule("source-return-direction/spoofed-ack", "An ACK from another address after read data is ignored")
        .checks(&[PDS_PDC_003])
        .needs(&[READ, TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let from = t.address(1)?;
            let read = Read::opening(t, Mode::Rud)?;
            let pdc = read.pdc();
            t.request(&pdc, read.data(0, 0)?)?;
            t.need_ack(&pdc, pdc.psn(0))?;
            let other = Pdc { from, ..pdc.clone() };
            let spdcid = other_pdcid(&pdc);
            t.send(&other, &AckBuilder { spdcid, ..read.target.acking(1) }.build()?)?;
            t.settle()?;
            t.is_open(PDS_PDC_003, read.operation)?;
            t.request(&pdc, read.data(1, 1)?)?;
            t.expect_ack(PDS_PDC_003, &pdc, pdc.psn(1))?;
            read.ack(t)?;
            read.expect_end(t, PDS_PDC_003)
        }),
    rule("source-return-direction/ordered-gap", "An ordered context refuses read data above a gap")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .needs(&[ROD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rod)?;
            t.request(&pdc, read.data(1, 1)?)?;
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(1), &[NackCode::ROD_OOO])?;
            t.request(&pdc, read.data(0, 0)?)?;
            let (_, ack) = t.expect_ack(PDS_ROD_001, &pdc, pdc.psn(0))?;
            t.check(PDS_ROD_001, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.is_open(PDS_ROD_001, read.operation)?;
            t.request(&pdc, read.data(1, 1)?.retx())?;
            t.expect_cack(PDS_ROD_001, &pdc, pdc.psn(1))?;
            read.expect_end(t, PDS_ROD_001)
        }),
    rule("source-return-direction/outside-window", "Read data far outside the window is refused")
        .checks(&[PDS_OPEN_006])
        .needs(&[READ])
        .over(&[&DISTANCE, &MODE, &CARRIER, &START])
        .run(|t| {
            require(t.parameter("announced_mpr") != 0, "the device announces no limit")?;
            let read = Read::new(t, Mode::Rud)?;
            read.ack(t)?;
            let invalid = read.data(t.value(&DISTANCE), 0)?;
            let below = invalid.psn - 1;
            let invalid = invalid.clear(below);
            expect_refused(t, PDS_OPEN_006, &read, (&read.pdc(), invalid), &[NackCode::PSN_OOR_WINDOW])
        }),
    rule("source-return-direction/window-edge", "Read data is accepted up to the last PSN of the window")
        .checks(&[PDS_WIN_001, PDS_OPEN_006, SES_DONE_001])
        .needs(&[READ, RUD])
        .over(&[&EDGE, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            if !t.value(&EDGE) {
                let invalid = read.data(t.beyond(&pdc)? - 1, 0)?;
                return expect_refused(t, PDS_OPEN_006, &read, (&pdc, invalid), &[NackCode::PSN_OOR_WINDOW]);
            }
            let last = t.range(&pdc)? - 1;
            for (n, k) in [(last, 1), (0, 0)] {
                t.must_take_data(&pdc, pdc.psn(n));
                t.request(&pdc, read.data(n, k)?)?;
                t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(n))?;
            }
            t.ends_with(SES_DONE_001, read.operation, (Status::Ok, read.bytes.len() as u64)).map(drop)
        }),
    rule("source-return-direction/other-address", "Read data from another address is refused")
        .checks(&[PDS_OPEN_003])
        .needs(&[READ, TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let from = t.address(1)?;
            let read = Read::new(t, Mode::Rud)?;
            read.ack(t)?;
            let other = Pdc { from, ..read.pdc() };
            let invalid = read.data(0, 1)?;
            expect_refused(t, PDS_OPEN_003, &read, (&other, invalid), &[NackCode::PDC_HDR_MISMATCH])
        }),
    rule("source-return-direction/other-mode", "An unordered context refuses ordered read data")
        .checks(&[PDS_OPEN_008])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let read = Read::new(t, Mode::Rud)?;
            read.ack(t)?;
            let invalid = Request { rod: true, ..read.data(0, 1)? };
            expect_refused(t, PDS_OPEN_008, &read, (&read.pdc(), invalid), &[NackCode::PDC_MODE_MISMATCH])
        }),
    rule("source-return-direction/start-psn", "The return direction starts at the device's Start_PSN")
        .checks(&[PDS_SYN_008])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (read, pdc) = Read::acknowledged(t, Mode::Rud)?;
            // The forward direction has used three PSNs.
            t.request(&pdc, read.data(3, 0)?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_008, &pdc, pdc.psn(3))?;
            t.check(PDS_SYN_008, "cack_psn", pdc.psn(0) - 1, ack.cack_psn());
            t.is_open(PDS_SYN_008, read.operation)
        }),
];

impl Read {
    /// Starts a read on an established context.
    fn new(t: &mut Test<'_>, mode: Mode) -> Result<Self, Stop> {
        let (peer, mut target) = Target::with_peer(t, mode)?;
        let (operation, bytes) = Self::post(t, peer, mode)?;
        target.collect(t, 3)?;
        Ok(Self::of(t, target, operation, bytes))
    }

    /// Starts a read on an established context and acknowledges its requests.
    fn acknowledged(t: &mut Test<'_>, mode: Mode) -> Result<(Self, Pdc), Stop> {
        let read = Self::new(t, mode)?;
        read.ack(t)?;
        let pdc = read.pdc();
        Ok((read, pdc))
    }

    /// Starts a read that opens its context.
    fn opening(t: &mut Test<'_>, mode: Mode) -> Result<Self, Stop> {
        let peer = t.peer(0)?;
        let (operation, bytes) = Self::post(t, peer, mode)?;
        let mut target = Target::accept(t)?;
        target.collect(t, 2)?;
        Ok(Self::of(t, target, operation, bytes))
    }

    /// Posts the read. Returns the operation and its data.
    fn post(t: &mut Test<'_>, peer: u64, mode: Mode) -> Result<(Operated, Vec<u8>), Stop> {
        let length = 2 * t.mtu();
        let operation = t.post(Post { mode, want_data: true, ..post(PostKind::Read, peer, length) })?;
        Ok((operation, Fill::Seed(5).bytes(length)))
    }

    /// Returns the read. The device must accept its data.
    fn of(t: &mut Test<'_>, target: Target, operation: Operated, bytes: Vec<u8>) -> Self {
        for n in 0..2 {
            t.must_take_data(&target.pdc, target.psn(n));
        }
        Read { target, operation, mtu: t.mtu(), bytes }
    }

    /// Acknowledges both requests.
    fn ack(&self, t: &mut Test<'_>) -> Outcome {
        self.target.ack(t, self.target.highest())
    }

    /// Returns the data of the `k`-th packet, with the `n`-th PSN of the return direction.
    fn data(&self, n: u32, k: usize) -> Result<Request, Stop> {
        self.data_as(n, k, ReadData::Valid)
    }

    /// Returns such data, changed as `data` says.
    fn data_as(&self, n: u32, k: usize, data: ReadData) -> Result<Request, Stop> {
        let uet = self.target.packet(1)?.seen.uet();
        let Some(Ses::Std(request)) = uet.ses else {
            return skip("the device reads by a short header");
        };
        let (mut message, mut job) = (request.message_id(), request.address().job_id());
        let (mut length, mut offset) = (self.mtu, k * self.mtu);
        match data {
            ReadData::Valid => {}
            ReadData::OtherMessage => message ^= 0x5a5a,
            ReadData::OtherJob => job ^= 1,
            ReadData::BeyondEnd => offset += self.bytes.len(),
            ReadData::TooLong => length -= 1,
        }
        let head = ResponseData::build().read_request_message_id(message);
        let head = head.job_id(job).response_message_id(9).payload_length(length as u16);
        let head = head.modified_length(self.bytes.len() as u32).message_offset(offset as u32);
        Ok(self.target.pdc.request(n).ses(head.done()?, &self.bytes[k * self.mtu..(k + 1) * self.mtu]))
    }

    /// Returns the suite's side of the context.
    fn pdc(&self) -> Pdc {
        self.target.pdc.clone()
    }

    /// Expects that the read completes with its data.
    fn expect_end(&self, t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
        let within = t.soon();
        let ended = t.completion(self.operation, within)?;
        t.check(requirement, "the completion", Some(Status::Ok), ended.as_ref().map(|ended| ended.status));
        let data = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
        t.same_bytes(requirement, "the data of the read", &self.bytes, &data);
        Ok(())
    }
}

/// Expects a NACK with one of these codes for invalid data. The valid data after it completes the read.
fn expect_refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    read: &Read,
    invalid: (&Pdc, Request),
    codes: &[NackCode],
) -> Outcome {
    let (path, data) = invalid;
    let psn = data.psn;
    t.request(path, data)?;
    let local = path.from;
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let within = t.soon();
    t.expect(requirement, &format!("NACK {} for {psn}", names.join(" or ")), within, |seen| {
        let nack = seen.nack().filter(|nack| nack.nack_psn() == Some(psn) && seen.wire.dst == local)?;
        codes.contains(&nack.nack_code()).then_some(())
    })?;
    t.is_open(requirement, read.operation)?;
    let pdc = read.pdc();
    for n in 0..2 {
        t.request(&pdc, read.data(n, n as usize)?)?;
        t.expect_ack(requirement, &pdc, pdc.psn(n))?;
    }
    read.expect_end(t, requirement)
}
