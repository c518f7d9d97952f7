//! Steps shared by many scripts.

use crate::observation::that;
use crate::{Outcome, Pdc, Phase, Region, RxPacket, Stop, Test, skip};
use core::time::Duration;
use uet_control::PostKind;
use uet_wire::Psn;
use uet_wire::catalogue::{
    CC_PATH_001, Level, PDS_ASK_001, PDS_NACK_001, PDS_OPEN_002, PDS_OPEN_003, PDS_OPEN_005, PDS_OPEN_006,
    PDS_OPEN_008, PDS_ROD_002, Requirement, WIRE_NACK_001, WIRE_NACK_003,
};
use uet_wire::pds::{Ack, Nack};
use uet_wire::registry::{CtlType, NackCode};

/// Factor for the device's times on a real link, if the device accepts them.
const SLOWER: u64 = 5;

/// Requirements about the fields of a NACK. They say nothing about a device that sends none.
const ABOUT_NACK_FIELDS: [&Requirement; 4] = [PDS_NACK_001, WIRE_NACK_001, WIRE_NACK_003, CC_PATH_001];

/// Returns the requirement that demands a NACK of this code.
fn of_nack(code: NackCode) -> Option<&'static Requirement> {
    Some(match code {
        NackCode::INV_DPDCID => PDS_OPEN_002,
        NackCode::PDC_HDR_MISMATCH => PDS_OPEN_003,
        NackCode::INVALID_SYN => PDS_OPEN_005,
        NackCode::PSN_OOR_WINDOW => PDS_OPEN_006,
        NackCode::PDC_MODE_MISMATCH => PDS_OPEN_008,
        NackCode::ROD_OOO => PDS_ROD_002,
        NackCode::PKT_NOT_RCVD => PDS_ASK_001,
        _ => return None,
    })
}

impl Test<'_> {
    /// Opens a context with request 0. Returns it with a region of 64 KiB of zeros.
    ///
    /// With [`carrier=send`](crate::axis::CARRIER), the region exists in the script only: each write to it,
    /// from request 0 on, travels as a send to a receive of its own. A note in the timeline says `write
    /// carried as send`.
    pub fn open(&mut self) -> Result<(Pdc, Region), Stop> {
        let region = self.region(1 << 16)?;
        let mut pdc = self.initiate();
        self.establish(&mut pdc, &region)?;
        Ok((pdc, region))
    }

    /// Opens this context with request 0, which writes a zero to the last byte of the region.
    pub fn establish(&mut self, pdc: &mut Pdc, region: &Region) -> Outcome {
        self.during(Phase::Arrange, |test| test.opened(pdc, region))
    }

    fn opened(&mut self, pdc: &mut Pdc, region: &Region) -> Outcome {
        self.request(pdc, pdc.request(0).write(region, region.length - 1, &[0])?)?;
        // A target in a secure domain may want another Start_PSN.
        let within = self.soon();
        let reacts =
            |seen: &RxPacket| seen.new_start(pdc).is_some() || seen.acknowledges(pdc, pdc.psn(0)).is_some();
        if self.is_secure() && self.hear(within, reacts)? {
            if let Some((_, start)) = self.wait(Duration::ZERO, |seen| seen.new_start(pdc))? {
                pdc.start = start;
                self.request(pdc, pdc.request(0).write(region, region.length - 1, &[0])?)?;
            }
        }
        let (_, ack) =
            self.need("an open context", self.soon(), |seen| seen.acknowledges(pdc, pdc.psn(0)))?;
        pdc.remote = Some(ack.spdcid());
        Ok(())
    }

    /// Sends a packet that names the device's PDCID. It proves that the suite got the ACK.
    ///
    /// The sources leave open if a device may give up a context without this proof when it runs out of
    /// resources.
    pub fn prove_established(&mut self, pdc: &Pdc) -> Outcome {
        self.during(Phase::Arrange, |test| {
            test.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(0), 0)?)?;
            let soon = test.soon();
            test.wait(soon, |seen| seen.acknowledges(pdc, pdc.psn(0)))?;
            Ok(())
        })
    }

    /// Returns the windows that the device has announced on this context, in units of 128 PSNs.
    pub fn windows(&self, pdc: &Pdc) -> Vec<u8> {
        let ours = self.contexts(pdc.from, pdc.local).map(|(context, side)| context.direction(side));
        ours.flat_map(|direction| direction.announced.iter().copied()).collect()
    }

    /// Returns MP_RANGE as a source of this context knows it. Skips the test of a device that states no
    /// limit.
    pub fn range(&self, pdc: &Pdc) -> Result<u32, Stop> {
        if self.windows(pdc).contains(&0) {
            return match self.reported("override_mpr_zero_value") {
                None => skip("the device states no limit"),
                // The rules about windows send a few dozen packets each.
                Some(range @ 0..64) => skip(format!("a window of {range} is too small for this rule")),
                Some(range) => Ok(range as u32),
            };
        }
        let window =
            self.contexts(pdc.from, pdc.local).find_map(|(context, side)| context.direction(side).window);
        Ok(window.map_or(self.default_range(), |window| window as u32))
    }

    /// Returns MP_RANGE before the device has announced one.
    pub fn default_range(&self) -> u32 {
        self.parameter("default_mpr") as u32 * 128
    }

    /// Returns a distance above the cumulative PSN that the device has never permitted.
    pub fn beyond(&self, pdc: &Pdc) -> Result<u32, Stop> {
        self.range(pdc)?;
        let widest = self.windows(pdc).iter().max().map_or(0, |mpr| u32::from(*mpr) * 128);
        Ok(widest.max(self.default_range()) + 1)
    }

    /// Returns the minimum length of read data that uses the return direction.
    pub fn beyond_ack(&self) -> Result<u32, Stop> {
        let length = self.parameter("max_ack_data_size") + 1;
        if length <= self.mtu() as u64 {
            Ok(length as u32)
        } else {
            Err(Stop::Skipped("all that a packet can bring fits an ACK".into()))
        }
    }

    /// Before a read of so many bytes, lets the device request all of them at once, if it accepts that.
    pub(crate) fn requests_all(&mut self, kind: PostKind, length: usize) -> Outcome {
        if kind == PostKind::Read {
            self.try_configure("max_awaited", 2 * length.max(self.mtu()))?;
        }
        Ok(())
    }

    /// Sets longer times on a device on a real link, if it accepts them, since a busy machine blurs times of
    /// few milliseconds. The network still holds as much as before.
    pub fn slowed(&mut self) -> Outcome {
        if self.facts().virtual_time {
            return Ok(());
        }
        for name in ["rto_init_time", "nack_retx_time", "base_rtt"] {
            if let longer @ 1.. = self.reported(name).unwrap_or(0).saturating_mul(SLOWER) {
                self.try_configure(name, longer)?;
            }
        }
        for name in ["sender_rate", "receiver_rate"] {
            if let less @ 1.. = self.reported(name).unwrap_or(0) / SLOWER {
                self.try_configure(name, less)?;
            }
        }
        Ok(())
    }

    /// Expects that this context can be opened with a write of 16 ones, once the device has forgotten ended
    /// contexts.
    pub fn expect_room(&mut self, requirement: &Requirement, pdc: &Pdc, region: &Region) -> Outcome {
        let first = pdc.request(0).write(region, 0, &[1; 16])?;
        // The sources leave open how long an ended context is kept for late packets.
        let told = Duration::from_nanos(self.parameter("syn_retx_safety_time"));
        self.pause(self.scaled(told))?;
        for _ in 0..50 {
            self.request(pdc, first.clone())?;
            let soon = self.soon();
            if self.wait(soon, |seen| seen.acknowledges(pdc, pdc.psn(0)))?.is_some() {
                return self.expect_memory(requirement, region, 0, &[1; 16]);
            }
        }
        self.check(requirement, "room for a context after another has been closed:", true, false);
        if self.heard() { Ok(()) } else { Err(Stop::Silent) }
    }

    /// Expects an ACK that reports the arrival of this PSN: by name, cumulatively or by a bit.
    pub fn expect_ack(
        &mut self,
        requirement: &Requirement,
        pdc: &Pdc,
        psn: Psn,
    ) -> Result<(RxPacket, Ack), Stop> {
        let expected = format!("an ACK that covers {psn}");
        self.expect(requirement, &expected, self.soon(), |seen| seen.acknowledges(pdc, psn))
    }

    /// Expects an ACK that names this PSN.
    pub fn expect_answer(
        &mut self,
        requirement: &Requirement,
        pdc: &Pdc,
        psn: Psn,
    ) -> Result<(RxPacket, Ack), Stop> {
        let expected = format!("an ACK that names {psn}");
        self.expect(requirement, &expected, self.soon(), |seen| seen.answers(pdc, psn))
    }

    /// Expects the cumulative PSN to advance to this PSN.
    pub fn expect_cack(&mut self, requirement: &Requirement, pdc: &Pdc, cack: Psn) -> Result<RxPacket, Stop> {
        let expected = format!("an ACK with cack_psn {cack}");
        let soon = self.soon();
        // A slow device may still answer earlier packets: as long as it does, its answer is not late.
        let mut answers = 0;
        loop {
            let (before, within) = (core::mem::take(&mut answers), self.patience(soon));
            let there = self.hear(within, |seen| {
                answers += usize::from(seen.cack(pdc).is_some());
                seen.cack(pdc) == Some(cack)
            })?;
            if there || answers == before {
                break;
            }
        }
        let (seen, ()) =
            self.expect(requirement, &expected, soon, |seen| (seen.cack(pdc)? == cack).then_some(()))?;
        Ok(seen)
    }

    /// Expects that this PSN is refused with one of these codes.
    pub fn expect_nack(
        &mut self,
        requirement: &Requirement,
        pdc: &Pdc,
        psn: Psn,
        codes: &[NackCode],
    ) -> Result<(RxPacket, Nack), Stop> {
        let words: Vec<String> = codes.iter().map(|code| code.to_string()).collect();
        let expected = format!("NACK {} for {psn}", words.join(" or "));
        let wanted =
            |seen: &RxPacket| seen.refuses(pdc, psn).filter(|nack| codes.contains(&nack.nack_code()));
        let within = self.patience(self.soon());
        if self.hear(within, |seen| wanted(seen).is_some())? {
            return self.expect(requirement, &expected, Duration::ZERO, wanted);
        }
        let own = codes.first().and_then(|code| of_nack(*code));
        let requirement = own.filter(|_| ABOUT_NACK_FIELDS.contains(&requirement)).unwrap_or(requirement);
        self.expect(requirement, &expected, Duration::ZERO, wanted)
    }

    /// Expects a NACK as [`expect_nack`](Self::expect_nack) does. `PDS-OPEN-006`: a device may drop a
    /// retransmission outside the window without an answer; then it returns `None`.
    pub fn expect_nack_of(
        &mut self,
        requirement: &Requirement,
        (pdc, psn, retx): (&Pdc, Psn, bool),
        codes: &[NackCode],
    ) -> Result<Option<(RxPacket, Nack)>, Stop> {
        if retx && codes.contains(&NackCode::PSN_OOR_WINDOW) {
            let within = self.patience(self.soon());
            let answers =
                |seen: &RxPacket| seen.refuses(pdc, psn).is_some() || seen.answers(pdc, psn).is_some();
            if !self.hear(within, answers)? {
                self.holds(requirement, "a NACK of the retransmission, or no answer", true, "");
                return Ok(None);
            }
        }
        self.expect_nack(requirement, pdc, psn, codes).map(Some)
    }

    /// Waits for an ACK that reports the arrival of this PSN, without judging.
    pub fn need_ack(&mut self, pdc: &Pdc, psn: Psn) -> Result<(RxPacket, Ack), Stop> {
        let covers = format!("an ACK that covers {psn}");
        self.need(&covers, self.soon(), |seen| seen.acknowledges(pdc, psn))
    }

    /// Checks a packet of the device against all single-packet requirements, and records these requirements
    /// as checked.
    pub fn check_packet(&mut self, seen: &RxPacket, requirements: &[&'static Requirement]) {
        let (uet, cut) = uet_wire::Uet::parse_lax(&seen.wire.bytes);
        let findings: Vec<_> =
            uet.validate(self.spec()).filter(|finding| finding.requirement.level > Level::May).collect();
        let clean = |requirement: &Requirement| findings.iter().all(|it| it.requirement.id != requirement.id);
        for requirement in requirements.iter().filter(|requirement| clean(requirement)) {
            let held = cut.is_none();
            let told = cut.as_ref().map(ToString::to_string).unwrap_or_default();
            self.holds(requirement, &format!("{uet}, whole"), held, told);
        }
        for finding in &findings {
            self.holds(finding.requirement, &that(finding.requirement), false, finding);
        }
    }
}
