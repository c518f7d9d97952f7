//! Finds the reason why the ends disagree in packets that break no requirement by themselves. Each rule is certain: no
//! loss, duplicate or reordering explains what it reports.

use super::grants::Grants;
use super::memory::OperationMemory;
use super::misnamed::Misnamed;
use super::new_starts::NewStarts;
use super::posted::Posted;
use super::sent::{Passed, SentPsns};
use core::net::IpAddr;
use core::time::Duration;
use uet_conformance::passive::CaptureFinding;
use uet_control::PostKind;
use uet_wire::catalogue::{
    PDS_OPEN_005, PDS_ROD_002, PDS_SYN_003, RCCC_COUNT_001, Requirement, SES_AMO_007, SES_PLACE_003,
    SES_READ_001, TSS_START_003,
};
use uet_wire::registry::NackCode;
use uet_wire::validate::Severity;

/// Follows the packets of a scenario.
#[derive(Debug)]
pub(super) struct Causes<'a> {
    posted: &'a Posted,
    sent: SentPsns,
    misnamed: Misnamed,
    grants: Grants,
    new_starts: NewStarts,
    memory: OperationMemory<'a>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(posted: &'a Posted) -> Self {
        Causes {
            posted,
            sent: SentPsns::default(),
            misnamed: Misnamed::default(),
            grants: Grants::default(),
            new_starts: NewStarts::default(),
            memory: OperationMemory::new(posted),
        }
    }

    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: &Passed<'_>) {
        if let Some(pds) = &packet.uet.pds {
            self.sent.packet(packet.src, pds);
        }
        // Earlier packets may be late ones of another scenario.
        if packet.time < self.posted.begun {
            return;
        }
        self.misnamed.packet(packet, &self.sent);
        self.grants.packet(packet, &self.sent);
        self.new_starts.packet(packet, &self.sent);
        self.memory.packet(packet);
    }

    /// Returns what packets prove about an end.
    pub(super) fn found(&self) -> Vec<CaptureFinding> {
        let refused = self.memory.refused().map(|(end, number, code)| {
            let requirement = if self.posted.kind == PostKind::Read { SES_READ_001 } else { SES_PLACE_003 };
            error(number, end, requirement, format!("its sender answers {code} to a right request"))
        });
        let value = self.memory.other_value().map(|(end, number)| {
            error(number, end, SES_AMO_007, "it returns another value than memory held before".into())
        });
        let exchanged = self.misnamed.acks().map(|(end, number)| {
            error(number, end, PDS_SYN_003, "several ACKs have exchanged PDCIDs".into())
        });
        let unsent = self.misnamed.nacks().map(|(end, number, code)| {
            let requirement = if code == NackCode::ROD_OOO { PDS_ROD_002 } else { PDS_OPEN_005 };
            error(number, end, requirement, "many NACKs name a PSN that nobody sent".into())
        });
        let ignored = self.new_starts.ignored().map(|(end, number)| {
            error(number, end, TSS_START_003, "its sender ignores NACK NEW_START_PSN".into())
        });
        [refused, value, exchanged, unsent, ignored].into_iter().flatten().collect()
    }

    /// Returns an end whose credit is not cumulative, if both ends use receiver credit.
    pub(super) fn credit_back(&self) -> Option<CaptureFinding> {
        let (end, number) = self.grants.back()?;
        let message = "many CREDITs are behind an earlier one";
        Some(error(number, end, RCCC_COUNT_001, message.into()))
    }

    /// Returns a target that has sent nothing but ACKs in answer to reads, one of them, and its time since 1970.
    pub(super) fn silent(&self) -> Option<(IpAddr, u64, Duration)> {
        self.memory.silent()
    }
}

pub(super) fn error(
    number: u64,
    culprit: IpAddr,
    requirement: &Requirement,
    message: String,
) -> CaptureFinding {
    let (id, severity) = (requirement.id, Severity::Error);
    CaptureFinding { number, with: None, id, severity, culprit: Some(culprit), message }
}

#[cfg(test)]
mod tests {
    use super::super::posted::Place;
    use super::*;
    use core::net::Ipv4Addr;
    use std::collections::BTreeMap;
    use uet_wire::pds::{Ack, Control, Nack, Request};
    use uet_wire::registry::{CtlType, Opcode, ResponseOpcode, ReturnCode};
    use uet_wire::ses::{Response, ResponseData, SesBuf, Std};
    use uet_wire::{PdcId, Psn, PsnOffset, Uet, UetBuf};

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    const NOTHING: [(&str, u64, IpAddr); 0] = [];

    /// A packet, its sender, and its time in milliseconds.
    type Sending = (IpAddr, UetBuf, u64);

    /// Returns an operation of eight bytes from A at B.
    fn posted(kind: PostKind) -> Posted {
        let before = (1..=8).collect();
        let places = vec![Place { job: 101, process: 2, index: 10, key: 7, offset: 64, before }];
        let (data, ssis, begun, ended) = (vec![vec![9; 8]], BTreeMap::new(), Duration::ZERO, Duration::MAX);
        Posted { kind, initiator: A, mtu: 4096, data, places, ssis, begun, ended, restarted: None }
    }

    fn play<'a>(posted: &'a Posted, packets: &[Sending], is_authentic: bool) -> Causes<'a> {
        let mut causes = Causes::new(posted);
        for ((src, packet, at), number) in packets.iter().zip(1..) {
            let bytes = packet.clone().consistent().to_bytes();
            let (uet, dst) = (Uet::parse_lax(&bytes).0, if *src == A { B } else { A });
            let (src, time) = (*src, Duration::from_millis(*at));
            causes.packet(&Passed { src, dst, number, time, uet: &uet, is_authentic });
        }
        causes
    }

    /// Returns the requirement, the packet and the end of each finding.
    fn found(posted: &Posted, packets: &[Sending]) -> Vec<(&'static str, u64, IpAddr)> {
        let errors = play(posted, packets, true).found();
        errors.iter().map(|error| (error.id, error.number, error.culprit.unwrap())).collect()
    }

    fn opens(pdcid: u16, psn: u32, offset: u16) -> UetBuf {
        let request = Request::rud().syn(true).psn_offset(PsnOffset::new(offset).unwrap());
        let request = request.spdcid(PdcId(pdcid)).psn(Psn(psn)).clear_psn_offset(-1);
        UetBuf::new(request.done().unwrap())
    }

    /// Returns a request for the operation under this PSN.
    fn request(opcode: Opcode, psn: u32, offset: u64) -> UetBuf {
        let ses = Std::build(opcode).head(|head| head.som(true).eom(true).rel(true)).message_id(3);
        let ses = ses.address(|address| address.job_id(101).pid_on_fep(2).resource_index(10));
        let ses = ses.buffer_offset(offset).memory_key(7).request_length(8).done().unwrap();
        let payload = if opcode == Opcode::UET_READ { Vec::new() } else { vec![9; 8] };
        UetBuf { ses: Some(ses.into()), payload, ..opens(1, psn, 0) }
    }

    fn ack(spdcid: u16, dpdcid: u16, psn: u32) -> UetBuf {
        let ack = Ack::build().cack_psn(Psn(psn)).spdcid(PdcId(spdcid)).dpdcid(PdcId(dpdcid));
        UetBuf::new(ack.done().unwrap())
    }

    fn answer(psn: u32, code: ReturnCode) -> UetBuf {
        let ses: SesBuf = Response::build(ResponseOpcode::UET_RESPONSE, code).done().unwrap().into();
        UetBuf { ses: Some(ses), ..ack(2, 1, psn) }
    }

    #[test]
    fn only_the_refusal_of_right_requests_is_wrong() {
        let (write, refusal) = (Opcode::UET_WRITE, ReturnCode::OP_VIOLATION);
        let of = |requests: Vec<UetBuf>, code| {
            let mut packets: Vec<Sending> = requests.into_iter().map(|one| (A, one, 1)).collect();
            packets.push((B, answer(700, code), 2));
            found(&posted(PostKind::Write), &packets)
        };
        let right = request(write, 700, 64);
        assert_eq!(of(vec![right.clone()], refusal), [("SES-PLACE-003", 2, B)]);
        assert_eq!(of(vec![right.clone(), right.clone()], refusal), [("SES-PLACE-003", 3, B)]);
        for code in [ReturnCode::OK, ReturnCode::UNDELIVERABLE] {
            assert_eq!(of(vec![right.clone()], code), NOTHING);
        }
        let mut other_bytes = right.clone();
        other_bytes.payload[7] = 8;
        // Another place, other bytes, another operation, and the same part under two PSNs.
        let wrong = [request(write, 700, 65), other_bytes, request(Opcode::UET_READ, 700, 64)];
        for one in wrong {
            assert_eq!(of(vec![one.clone()], refusal), NOTHING);
            assert_eq!(of(vec![one, right.clone()], refusal), NOTHING);
        }
        assert_eq!(of(vec![request(write, 701, 64), right], refusal), NOTHING);
    }

    #[test]
    fn late_packets_of_an_earlier_scenario_prove_nothing() {
        let packets =
            [(A, request(Opcode::UET_WRITE, 700, 64), 1), (B, answer(700, ReturnCode::BAD_MKEY), 2)];
        let of = |begun| {
            let begun = Duration::from_millis(begun);
            found(&Posted { begun, ..posted(PostKind::Write) }, &packets)
        };
        assert_eq!(of(1), [("SES-PLACE-003", 2, B)]);
        assert_eq!(of(2), NOTHING);
    }

    #[test]
    fn fetched_value_is_the_old_one_in_either_byte_order() {
        let of = |values: &[[u8; 8]]| {
            let asks = request(Opcode::UET_FETCHING_ATOMIC, 700, 64);
            let mut packets = vec![(A, asks, 1)];
            for value in values {
                let ses = ResponseData::build().payload_length(8).modified_length(8).done().unwrap();
                let packet = UetBuf { ses: Some(ses.into()), payload: value.to_vec(), ..ack(2, 1, 700) };
                packets.push((B, packet, 2));
            }
            found(&posted(PostKind::FetchAtomic), &packets)
        };
        assert_eq!(of(&[[1, 2, 3, 4, 5, 6, 7, 8], [9; 8]]), NOTHING);
        assert_eq!(of(&[[8, 7, 6, 5, 4, 3, 2, 1]]), NOTHING);
        assert_eq!(of(&[[10, 11, 12, 13, 14, 15, 16, 17]]), [("SES-AMO-007", 2, B)]);
    }

    #[test]
    fn target_that_only_acknowledges_reads_is_silent() {
        let posted = posted(PostKind::Read);
        let read = (A, request(Opcode::UET_READ, 700, 64), 1);
        let ok = (B, answer(700, ReturnCode::OK), 2);
        let silent = |packets: &[Sending]| play(&posted, packets, true).silent();
        let shown = Some((B, 2, Duration::from_millis(2)));
        assert_eq!(silent(&[read.clone(), ok.clone()]), shown);
        assert_eq!(silent(&[read.clone(), (B, answer(700, ReturnCode::NULL), 2)]), None);
        let data = ResponseData::build().payload_length(8).modified_length(8).done().unwrap();
        let data = UetBuf { ses: Some(data.into()), payload: vec![1; 8], ..ack(2, 1, 700) };
        for other in [data, opens(2, 700, 0)] {
            assert_eq!(silent(&[read.clone(), ok.clone(), (B, other, 3)]), None);
        }
    }

    #[test]
    fn three_acks_with_exchanged_pdcids_show_it() {
        let of = |spdcid, dpdcid, count| {
            let mut packets = vec![(A, opens(1, 700, 0), 1), (A, opens(2, 1 << 20, 0), 1)];
            packets.extend((0..count).map(|_| (B, ack(spdcid, dpdcid, 700), 2)));
            found(&posted(PostKind::Write), &packets)
        };
        assert_eq!(of(1, 2, 3), [("PDS-SYN-003", 5, B)]);
        assert_eq!(of(1, 9, 3), [("PDS-SYN-003", 5, B)]);
        for (spdcid, dpdcid, count) in [(1, 2, 2), (2, 1, 9), (1, 1, 9), (7, 8, 9)] {
            assert_eq!(of(spdcid, dpdcid, count), NOTHING);
        }
    }

    #[test]
    fn many_nacks_of_packets_that_nobody_sent_show_it() {
        let of = |code, psn, count: u64, step: u64| {
            let nack = Nack::build(code).nack_psn(Psn(psn)).spdcid(PdcId(2)).dpdcid(PdcId(1));
            let nack = UetBuf::new(nack.done().unwrap());
            let mut packets = vec![(A, opens(1, 1 << 20, 0), 0)];
            packets.extend((0..count).map(|n| (B, nack.clone(), n * step)));
            found(&posted(PostKind::Write), &packets)
        };
        assert_eq!(of(NackCode::INVALID_SYN, 0, 16, 70), [("PDS-OPEN-005", 17, B)]);
        assert_eq!(of(NackCode::ROD_OOO, 0, 16, 70), [("PDS-ROD-002", 17, B)]);
        // Too few, too early, another code, and a PSN of the context.
        assert_eq!(of(NackCode::INVALID_SYN, 0, 15, 100), NOTHING);
        assert_eq!(of(NackCode::INVALID_SYN, 0, 90, 10), NOTHING);
        assert_eq!(of(NackCode::INV_DPDCID, 0, 90, 70), NOTHING);
        assert_eq!(of(NackCode::INVALID_SYN, (1 << 20) + 5, 90, 70), NOTHING);
    }

    #[test]
    fn many_late_credits_behind_an_earlier_one_show_it() {
        let posted = posted(PostKind::Write);
        let credit = |units| {
            let control = Control::build(CtlType::CREDIT).spdcid(PdcId(2)).dpdcid(PdcId(1)).payload(units);
            UetBuf::new(control.done().unwrap())
        };
        let of = |starts: &[u32], last, wait: u64| {
            let mut packets: Vec<Sending> = starts.iter().map(|psn| (A, opens(1, *psn, 0), 0)).collect();
            packets.push((B, credit(81), 0));
            packets.extend((0..16).map(|n| (B, credit(last), wait + n)));
            play(&posted, &packets, true).credit_back().map(|error| (error.id, error.number))
        };
        assert_eq!(of(&[700], 0, 1000), Some(("RCCC-COUNT-001", 18)));
        // Equal or more credit, late packets, and a second context with the PDCID.
        assert_eq!(of(&[700], 81, 1000), None);
        assert_eq!(of(&[700], 90, 1000), None);
        assert_eq!(of(&[700], 0, 900), None);
        assert_eq!(of(&[700, 1 << 20], 0, 1000), None);
    }

    #[test]
    fn initiator_that_keeps_its_start_psn_after_four_nacks_ignores_them() {
        let posted = posted(PostKind::Write);
        let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(Psn(700)).dpdcid(PdcId(1)).payload(5000);
        let nack = UetBuf::new(nack.done().unwrap());
        let of = |count: u64, between: Option<UetBuf>, is_authentic| {
            let mut packets = vec![(A, opens(1, 700, 0), 0)];
            packets.extend((0..count).map(|n| (B, nack.clone(), 10 * n)));
            packets.extend(
                between.map(|packet| if packet.ses.is_some() { (B, packet, 50) } else { (A, packet, 50) }),
            );
            packets.push((A, opens(1, 700, 0), 200));
            let errors = play(&posted, &packets, is_authentic).found();
            errors.first().map(|error| (error.id, error.number, error.culprit))
        };
        assert_eq!(of(4, None, true), Some(("TSS-START-003", 6, Some(A))));
        assert_eq!(of(3, None, true), None);
        assert_eq!(of(4, None, false), None);
        // It has renumbered, so this is a late packet. After an ACK, it ignores refusals.
        assert_eq!(of(4, Some(opens(1, 5003, 3)), true), None);
        assert_eq!(of(4, Some(answer(700, ReturnCode::OK)), true), None);
    }
}
