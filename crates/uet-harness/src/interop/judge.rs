//! Judges a scenario: what both ends report, beside the packets between them.

use super::causes::{Causes, error};
use super::closes::Closes;
use super::ignored::Ignored;
use super::posted::Posted;
use super::sent::Passed;
use super::starts::Starts;
use super::unrepeated::{Unanswered, Unrepeated};
use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use uet_conformance::passive::{CaptureChecker, CaptureFinding, CapturedPacket};
use uet_control::PostKind;
use uet_packet_io::json::Decoded;
use uet_packet_io::keys::KeyRing;
use uet_packet_io::{Decoder, input};
use uet_wire::catalogue::{PDS_ACK_004, PDS_SYN_007, Requirement, TSS_CLEAR_002, TSS_HDR_001};
use uet_wire::registry::{Opcode, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::validate::Severity;
use uet_wire::{Options, Start, Uet};

/// The evidence of the packets of a scenario.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Errors of an end, over one packet or several.
    pub(super) errors: Vec<CaptureFinding>,
    /// An end that ignores `ar`, if the network drops nothing.
    pub(super) ignored: Option<CaptureFinding>,
    /// An end whose contexts have one Start_PSN, unless they are protected.
    pub(super) equal_starts: Option<CaptureFinding>,
    /// The sender of payload that no message has there, and the packet.
    pub(super) stray: Option<(IpAddr, u64)>,
    /// A request for a place in memory that no operation names: its sender, the packet and the place.
    pub(super) misplaced: Option<(IpAddr, u64, u64)>,
    /// True if packets carried each byte of each write or send before the last operation ended.
    pub(super) is_complete: bool,
    /// A request without an answer when the last operation ended.
    pub(super) unanswered: Option<Unanswered>,
    /// A packet that its sender sent once, although nothing answered it.
    pub(super) unrepeated: Option<Unanswered>,
    /// Errors that only matter if the result is wrong.
    pub(super) causes: Vec<CaptureFinding>,
    /// An end whose credit is not cumulative, if both use receiver credit.
    pub(super) credit_back: Option<CaptureFinding>,
    /// A target that acknowledges reads and sends nothing else, an ACK of a read, and its time.
    pub(super) silent: Option<(IpAddr, u64, Duration)>,
    /// The CLOSE_COMMANDs of both ends.
    pub(super) closes: Closes,
    /// The last refusal: its sender and a sentence.
    pub(super) refusal: Option<(IpAddr, String)>,
    /// The time of the reading since 1970, by the clock of the relay.
    pub(super) read_at: Duration,
}

/// Reads a capture of a scenario. `keys` open protected packets.
pub(super) fn read(capture: &[u8], posted: &Posted, keys: Option<KeyRing>) -> io::Result<Evidence> {
    let mut judge = Judge::new(posted, keys.is_some());
    let mut decoder = Decoder::new(Options::default(), false).recognizing_trailers();
    if let Some(keys) = keys {
        decoder = decoder.with_keys(keys);
    }
    let taken = input::read(capture, Start::Eth, &mut |record| {
        judge.packet(&decoder.decode(record));
        Ok(ControlFlow::Continue(()))
    });
    taken.map_err(io::Error::other)?;
    Ok(judge.end())
}

/// Follows the packets of a scenario.
struct Judge<'a> {
    posted: &'a Posted,
    /// True if both ends have keys.
    is_protected: bool,
    /// Number of packets so far.
    number: u64,
    evidence: Evidence,
    checker: CaptureChecker,
    /// The length of each piece of each message or read that packets carried in time, by its offset.
    carried: Vec<BTreeMap<usize, usize>>,
    ignored: Ignored,
    starts: Starts,
    unrepeated: Unrepeated,
    /// As `unrepeated`, when the last operation ended.
    at_end: Unrepeated,
    causes: Causes<'a>,
}

impl<'a> Judge<'a> {
    fn new(posted: &'a Posted, is_protected: bool) -> Self {
        Judge {
            posted,
            is_protected,
            number: 0,
            evidence: Evidence::default(),
            checker: CaptureChecker::default(),
            carried: vec![BTreeMap::new(); posted.data.len()],
            ignored: Ignored::default(),
            starts: Starts::default(),
            unrepeated: Unrepeated::default(),
            at_end: Unrepeated::default(),
            causes: Causes::new(posted),
        }
    }

    /// Takes the next packet.
    fn packet(&mut self, decoded: &Decoded<'_>) {
        self.number += 1;
        let (number, time, uet) = (self.number, decoded.since_1970(), &decoded.packet.uet);
        let protection = decoded.protection.as_ref();
        let authenticated = protection.and_then(|protection| protection.authenticated);
        if let (Some(ip), Some(time)) = (decoded.packet.ip, time) {
            let (src, dst, is_authentic) = (ip.src(), ip.dst(), authenticated == Some(true));
            let passed = Passed { src, dst, number, time, uet, is_authentic };
            self.causes.packet(&passed);
            self.follow_delivery(&passed);
            self.compare_content(&passed);
        }
        let seen = CapturedPacket {
            number,
            time,
            packet: &decoded.packet,
            findings: &decoded.findings,
            error: None,
            authenticated,
            key: protection.and_then(|protection| protection.key),
        };
        let found = self.checker.packet_with(seen, |facts| self.evidence.closes.packet(number, facts));
        // The packets of two lives of an end contradict each other.
        let is_of_first_life = self.posted.restarted.is_none_or(|at| time.is_some_and(|time| time < at));
        let counts = |finding: &CaptureFinding| finding.severity == Severity::Error && is_of_first_life;
        self.evidence.errors.extend(found.into_iter().filter(counts));
    }

    /// Follows the delivery of a packet: its numbers and its protection.
    fn follow_delivery(&mut self, packet: &Passed<'_>) {
        let Passed { src, dst, number, time, uet, .. } = *packet;
        let Some(pds) = &uet.pds else { return };
        self.ignored.packet((src, dst), pds, number, time);
        self.starts.packet(src, pds, number);
        self.unrepeated.packet((src, dst), pds, number, time);
        if time <= self.posted.ended {
            self.at_end.packet((src, dst), pds, number, time);
        }
        // Earlier packets may be late ones of a scenario without keys.
        if self.is_protected && time >= self.posted.begun {
            let wrong = misprotected(uet, self.posted.ssis.get(&src).copied());
            self.evidence.errors.extend(wrong.map(|(broken, message)| error(number, src, broken, message)));
        }
    }

    /// Compares the content of a packet with the operations.
    fn compare_content(&mut self, packet: &Passed<'_>) {
        let Passed { src, number, time, uet, .. } = *packet;
        let (posted, carried) = (self.posted, &mut self.carried);
        if let Some((offset, bytes)) = piece(uet, posted.kind) {
            let fits = |data: &Vec<u8>| data.get(offset..offset + bytes.len()) == Some(bytes);
            let owners = (0..carried.len()).filter(|message| fits(&posted.data[*message]));
            // Short messages may be equal.
            let (first, new) =
                (owners.clone().next(), |message: &usize| !carried[*message].contains_key(&offset));
            match owners.clone().find(new).or(first) {
                Some(message) if time <= posted.ended => drop(carried[message].insert(offset, bytes.len())),
                Some(_) => {}
                None => drop(self.evidence.stray.get_or_insert((src, number))),
            }
        }
        // In a rendezvous, the target reads at places of its peer's choice.
        let names_places = matches!(posted.kind, PostKind::Write | PostKind::Read);
        if let Some(place) =
            place(uet).filter(|place| names_places && !posted.places.iter().any(|one| one.offset == *place))
        {
            self.evidence.misplaced.get_or_insert((src, number, place));
        }
        if let Some(what) = refusal(uet) {
            self.evidence.refusal = Some((src, format!("{what} (packet {number})")));
        }
    }

    /// Returns the evidence of all packets.
    fn end(self) -> Evidence {
        let Judge { posted, mut evidence, causes, .. } = self;
        if posted.restarted.is_none() {
            (evidence.unanswered, evidence.unrepeated) = (self.at_end.unanswered(), self.unrepeated.first());
        }
        (evidence.causes, evidence.credit_back, evidence.silent) =
            (causes.found(), causes.credit_back(), causes.silent());
        let is_plain = matches!(posted.kind, PostKind::Write | PostKind::Send | PostKind::Tsend);
        // The response to another operation may take long, and an ACK may wait for it.
        evidence.ignored = self.ignored.end().filter(|_| is_plain).map(|(end, number)| {
            let message = "its receiver acknowledges no packet with ar before the retransmission";
            error(number, end, PDS_ACK_004, message.into())
        });
        // A secured initiator begins where the close of an earlier context told it to.
        let equal = self.starts.equal().filter(|_| !self.is_protected);
        evidence.equal_starts = equal.map(|(end, number, start)| {
            error(number, end, PDS_SYN_007, format!("opens its third context at Start_PSN {start}"))
        });
        let length = |pieces: &BTreeMap<usize, usize>| pieces.values().sum::<usize>();
        let mut messages = posted.data.iter().zip(&self.carried);
        evidence.is_complete = !is_plain || messages.all(|(data, pieces)| length(pieces) >= data.len());
        evidence
    }
}

/// Returns the requirement that the protection of a packet breaks, and how. Both ends have keys. `own` is the source
/// identifier of the sender, if its domain uses them.
fn misprotected(uet: &Uet<'_>, own: Option<u32>) -> Option<(&'static Requirement, String)> {
    let Some(tss) = uet.tss else {
        // `TSS-CLEAR-002`: sources disagree about a NACK of an end without a context.
        let is_lone = uet.pds?.nack().is_some_and(|nack| !nack.spdcid().is_valid());
        return (!is_lone).then(|| (TSS_CLEAR_002, "in the clear, although both ends have keys".into()));
    };
    let (seen, own) = (tss.ssi(), own?);
    let told =
        seen.map_or_else(|| "no source identifier".to_owned(), |ssi| format!("source identifier {ssi:#x}"));
    (seen != Some(own)).then(|| (TSS_HDR_001, format!("{told}, although that of its sender is {own:#x}")))
}

/// Returns the bytes of a message that a packet carries, and their offset in the message.
fn piece<'p>(uet: &Uet<'p>, kind: PostKind) -> Option<(usize, &'p [u8])> {
    const PLAIN: [Opcode; 5] = [
        Opcode::UET_WRITE,
        Opcode::UET_SEND,
        Opcode::UET_TAGGED_SEND,
        Opcode::UET_DATAGRAM_SEND,
        Opcode::UET_DEFERRABLE_SEND,
    ];
    let offset = match uet.ses? {
        Ses::Std(header) if PLAIN.contains(&header.head().opcode()) => header.message_offset(),
        Ses::Medium(header) if PLAIN.contains(&header.head().opcode()) => None,
        Ses::Small(header) if PLAIN.contains(&header.head().opcode()) => None,
        Ses::ResponseData(header) if kind == PostKind::Read && !uet.payload.is_empty() => {
            Some(header.message_offset())
        }
        _ => return None,
    };
    Some((offset.unwrap_or_default() as usize, uet.payload))
}

/// Returns the place in the memory of the target that a request names.
fn place(uet: &Uet<'_>) -> Option<u64> {
    const ON_MEMORY: [Opcode; 2] = [Opcode::UET_WRITE, Opcode::UET_READ];
    match uet.ses? {
        Ses::Std(header) if ON_MEMORY.contains(&header.head().opcode()) => header.buffer_offset(),
        Ses::Medium(header) if ON_MEMORY.contains(&header.head().opcode()) => header.buffer_offset(),
        Ses::Small(header) if ON_MEMORY.contains(&header.head().opcode()) => Some(header.buffer_offset()),
        _ => None,
    }
}

/// Returns the refusal that a packet carries.
fn refusal(uet: &Uet<'_>) -> Option<String> {
    if let Some(nack) = uet.pds.and_then(|pds| pds.nack()) {
        return Some(format!("NACK {}", nack.nack_code()));
    }
    let code = uet.ses?.return_code()?;
    (![ReturnCode::OK, ReturnCode::NULL].contains(&code)).then(|| format!("return code {code}"))
}

#[cfg(test)]
mod tests {
    use super::super::Shared;
    use super::*;
    use uet_emulator::capture::Capture;
    use uet_emulator::frame::{Outer, Record};
    use uet_model::{Packet, Time};
    use uet_wire::catalogue::PDS_SYN_001;
    use uet_wire::pds::{Nack, PdsBuf, Request};
    use uet_wire::registry::NackCode;
    use uet_wire::{PdcId, Psn, PsnOffset, UetBuf};

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    /// Returns no operations, from the first second on.
    fn nothing() -> Posted {
        let (data, places, ssis) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (kind, initiator, mtu) = (PostKind::Write, [127, 0, 0, 1].into(), 4096);
        let (begun, ended) = (at(1), at(9));
        Posted { kind, initiator, mtu, data, places, ssis, begun, ended, restarted: None }
    }

    /// Reads packets of the initiator, one in each second.
    fn evidence(packets: &[PdsBuf], posted: &Posted, keys: Option<KeyRing>) -> Evidence {
        let file = Shared::default();
        let mut capture = Capture::new(Box::new(file.clone()), Outer::default()).unwrap();
        for (pds, second) in packets.iter().zip(1..) {
            let bytes = UetBuf::new(*pds).to_bytes();
            let packet = Packet::from_wire([127, 0, 0, 1], [127, 0, 0, 2], bytes.into()).unwrap();
            capture.write(&Record::new(Time::ZERO + at(second), &packet));
        }
        capture.finish().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        read(&bytes, posted, keys).unwrap()
    }

    /// Returns a request that opens a context.
    fn opens(pdcid: u16, psn: u32) -> PdsBuf {
        let request = Request::rud().syn(true).psn_offset(PsnOffset::ZERO).spdcid(PdcId(pdcid));
        request.psn(Psn(psn)).clear_psn_offset(-1).done().unwrap().into()
    }

    #[test]
    fn packets_in_the_clear_are_errors_of_an_end_with_keys() {
        let key = "00".repeat(32);
        let file = format!("[[domain]]\nsdi = 7\nmode = \"direct\"\nkeys = {{ 0 = \"{key}\" }}\n");
        let nack = Nack::build(NackCode::INV_DPDCID).nack_psn(Psn(1)).dpdcid(PdcId(1)).done().unwrap();
        // The first is a late packet of an earlier scenario.
        let packets = [opens(1, 700), opens(1, 700), nack.into()];
        let clear = |keys| {
            let errors = evidence(&packets, &Posted { begun: at(2), ..nothing() }, keys).errors;
            let clear = errors.iter().filter(|error| error.id == TSS_CLEAR_002.id);
            clear.map(|error| error.number).collect::<Vec<_>>()
        };
        assert_eq!(clear(Some(KeyRing::from_toml(&file).unwrap())), [2]);
        assert!(clear(None).is_empty());
    }

    #[test]
    fn only_packets_before_a_restart_are_judged() {
        // Two Start_PSNs of one context.
        let packets = [opens(1, 700), opens(1, 701), opens(1, 702)];
        let contradictions = |restarted| {
            let errors = evidence(&packets, &Posted { restarted, ..nothing() }, None).errors;
            let wrong = errors.iter().filter(|error| error.id == PDS_SYN_001.id);
            wrong.map(|error| error.number).collect::<Vec<_>>()
        };
        assert_eq!(contradictions(None), [2, 3]);
        assert_eq!(contradictions(Some(at(3))), [2]);
        assert!(contradictions(Some(at(2))).is_empty());
    }

    #[test]
    fn three_contexts_at_one_start_psn_are_not_random() {
        let told = Nack::build(NackCode::NEW_START_PSN).nack_psn(Psn(1)).dpdcid(PdcId(1)).payload(1);
        let told = told.done().unwrap().into();
        let (first, second, third) = (opens(1, 1), opens(2, 1), opens(3, 1));
        for (packets, expected) in [
            (&[first, second, third, opens(4, 1)][..], Some(3)),
            // A late packet of a closed context, another Start_PSN, and one that the target chose.
            (&[first, second, first, second], None),
            (&[first, second, opens(3, 2)], None),
            (&[told, first, second, third], None),
        ] {
            let found = evidence(packets, &nothing(), None).equal_starts;
            assert_eq!(found.map(|error| error.number), expected);
        }
    }
}
