//! An implementation in Rust that tests itself within `cargo test`: a target of RUD writes, as small as it can be.
//!
//! The suite and the implementation are in the same process. [`Dut`] makes it a device: packets in, packets out,
//! the control channel's operations, and a clock. Here the clock moves only while the suite waits. Your own stack
//! replaces `Target`.
//!
//!     cargo run -p uet-conformance --example own_device
//!     cargo test -p uet-conformance --example own_device

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use uet_conformance::{Dut, DutError, Facts, Options, Wire, run};
use uet_control::{
    Answer, CallError, Done, ErrorCode, ExposeRegion, Hex, Link, Memory, Op, Refusal, Welcome,
};
use uet_wire::pds::{Ack, AckCc, Nack, PdsBuf, Request};
use uet_wire::registry::{
    AckRequest, CcType, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Response, Ses};
use uet_wire::{PdcId, Psn, Uet, UetBuf, WriteError};

const DEVICE: [u8; 4] = [10, 0, 0, 1];
const SUITE: [[u8; 4]; 2] = [[10, 0, 1, 1], [10, 0, 1, 2]];
const WINDOW: u32 = 1024;

fn main() {
    let options = Options { groups: vec!["write".into()], ..Options::default() };
    let result =
        run(&mut Device::new(), &options, |case| println!("{:<30} {}", case.id, case.verdict.name()));
    std::process::exit(result.exit_code().into());
}

/// The implementation.
#[derive(Default)]
struct Target {
    contexts: BTreeMap<PdcId, Context>,
    regions: Vec<(ExposeRegion, Vec<u8>)>,
}

/// A context of the target.
struct Context {
    peer: (IpAddr, PdcId),
    start: Psn,
    cack: Psn,
    /// The PSNs received above `cack`.
    above: BTreeSet<u32>,
    /// Errors that have not been cleared.
    kept: BTreeMap<u32, Response>,
    /// The bytes received of each unfinished message.
    messages: BTreeMap<u16, u32>,
    /// Last packets of incomplete messages. They are answered when the message is complete.
    waiting: Vec<(u16, Request, Response)>,
}

impl Target {
    /// Handles a packet and returns the replies.
    fn take(&mut self, from: IpAddr, bytes: &[u8]) -> Result<Vec<UetBuf>, WriteError> {
        let Ok(uet) = Uet::parse(bytes) else { return Ok(Vec::new()) };
        let Some(request) = uet.pds.and_then(|pds| pds.request()) else { return Ok(Vec::new()) };
        if request.prologue().kind() != PdsType::RUD_REQ {
            return Ok(Vec::new());
        }
        let own = match self.find(from, &request) {
            Ok(own) => own,
            Err(code) => return Ok(vec![nack(code, &request, PdcId::NONE)?]),
        };
        let Target { contexts, regions } = self;
        let Some(context) = contexts.get_mut(&own) else { return Ok(Vec::new()) };
        let psn = request.psn();
        let distance = psn.0.wrapping_sub(context.cack.0) as i32;
        if distance.unsigned_abs() > WINDOW {
            let code = if request.syn() { NackCode::INVALID_SYN } else { NackCode::PSN_OOR_WINDOW };
            return Ok(vec![nack(code, &request, own)?]);
        }
        context.clear(request.clear_psn());
        if distance <= 0 || context.above.contains(&psn.0) {
            if context.waiting.iter().any(|(_, waiting, _)| waiting.psn() == psn) {
                return Ok(vec![nack(NackCode::RCVD_SES_PROCG, &request, own)?]);
            }
            let answer = context.kept.get(&psn.0).copied().unwrap_or(response(ReturnCode::OK, 0, 0)?);
            return Ok(vec![context.ack(own, &request, answer)?]);
        }
        context.above.insert(psn.0);
        context.deliver(regions, own, &request, &uet)
    }

    /// The context of a request, which a first one makes.
    fn find(&mut self, from: IpAddr, request: &Request) -> Result<PdcId, NackCode> {
        let peer = (from, request.spdcid());
        let Some(start) = request.start_psn() else {
            let own = request.dpdcid().unwrap_or(PdcId::NONE);
            return match self.contexts.get(&own) {
                None => Err(NackCode::INV_DPDCID),
                Some(context) if context.peer != peer => Err(NackCode::PDC_HDR_MISMATCH),
                Some(_) => Ok(own),
            };
        };
        let known = self.contexts.iter().find(|(_, context)| context.peer == peer);
        if let Some((own, context)) = known {
            return if context.start == start { Ok(*own) } else { Err(NackCode::INVALID_SYN) };
        }
        let own = (1..=u16::MAX).map(PdcId).find(|own| !self.contexts.contains_key(own));
        let own = own.ok_or(NackCode::NO_PDC_AVAIL)?;
        let (above, kept, messages) = Default::default();
        let context = Context { peer, start, cack: start - 1, above, kept, messages, waiting: Vec::new() };
        self.contexts.insert(own, context);
        Ok(own)
    }
}

impl Context {
    fn clear(&mut self, clear: Psn) {
        self.kept.retain(|psn, _| Psn(*psn).is_after(clear));
        self.advance();
    }

    fn advance(&mut self) {
        let next = |context: &Self| (context.cack + 1).0;
        while !self.kept.contains_key(&next(self)) && self.above.remove(&next(self)) {
            self.cack = self.cack + 1;
        }
    }

    /// A request that is new: memory, and the answers that are due.
    fn deliver(
        &mut self,
        regions: &mut [(ExposeRegion, Vec<u8>)],
        own: PdcId,
        request: &Request,
        uet: &Uet<'_>,
    ) -> Result<Vec<UetBuf>, WriteError> {
        let Some(write) = Write::of(uet) else {
            self.advance();
            return Ok(vec![self.ack(own, request, response(ReturnCode::UNSUPPORTED_OP, 0, 0)?)?]);
        };
        let code = write.store(regions, uet.payload);
        let answer = response(code, write.message, write.job)?;
        if code != ReturnCode::OK {
            self.kept.insert(request.psn().0, answer);
            self.advance();
            return Ok(vec![self.ack(own, request, answer)?]);
        }
        self.advance();
        let come = self.messages.entry(write.message).or_default();
        *come += uet.payload.len() as u32;
        if *come < write.length {
            if write.last && write.delivery_complete {
                self.waiting.push((write.message, *request, answer));
                return Ok(Vec::new());
            }
            return Ok(vec![self.ack(own, request, answer)?]);
        }
        self.messages.remove(&write.message);
        let (due, waiting) = self.waiting.drain(..).partition(|(message, ..)| *message == write.message);
        self.waiting = waiting;
        let due: Vec<(u16, Request, Response)> = due;
        let due = due.into_iter().map(|(_, late, answer)| (late, answer)).chain([(*request, answer)]);
        due.map(|(request, answer)| self.ack(own, &request, answer)).collect()
    }

    /// An ACK for a request, with a bitmap where something is missing below it.
    fn ack(&self, own: PdcId, request: &Request, answer: Response) -> Result<UetBuf, WriteError> {
        let psn = request.psn();
        let clear = match self.kept.contains_key(&psn.0) {
            true => AckRequest::REQ_CLEAR,
            false => AckRequest::NO_REQUEST,
        };
        let ack = Ack::build().prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_RESPONSE));
        let ack = ack.retx(request.retx()).req(clear).cack_psn(self.cack).spdcid(own).dpdcid(self.peer.1);
        let ack = ack.ack_psn_offset(psn.offset_from(self.cack).unwrap_or(0)).done()?;
        let pds: PdsBuf = match psn.is_after(self.cack) {
            false => ack.into(),
            true => AckCc::build()
                .ack(|a| a.copy_from(&ack).prologue(|prologue| prologue.kind(PdsType::ACK_CC)))
                .cc_type(CcType::CREDIT)
                .sack(|sack| {
                    sack.mpr(8).sack_psn_offset(psn.offset_from(self.cack).unwrap_or(0)).sack_bitmap(1)
                })
                .done()?
                .into(),
        };
        let mut packet = UetBuf::new(pds);
        packet.ses = Some(answer.into());
        Ok(packet)
    }
}

/// The fields of a write request.
struct Write {
    message: u16,
    job: u32,
    process: u16,
    index: u16,
    key: Option<u64>,
    place: u64,
    length: u32,
    last: bool,
    delivery_complete: bool,
}

impl Write {
    fn of(uet: &Uet<'_>) -> Option<Self> {
        let (head, address, message, key, offset, at, length) = match uet.ses.as_ref()? {
            Ses::Std(ses) => {
                let at = ses.message_offset().unwrap_or(0);
                let offset = ses.buffer_offset()?;
                (
                    ses.head(),
                    ses.address(),
                    ses.message_id(),
                    ses.memory_key(),
                    offset,
                    at,
                    ses.request_length(),
                )
            }
            Ses::Medium(ses) => {
                let offset = ses.buffer_offset().unwrap_or(0);
                (ses.head(), ses.address(), 0, ses.memory_key(), offset, 0, ses.request_length().into())
            }
            Ses::Small(ses) => {
                (ses.head(), ses.address(), 0, None, ses.buffer_offset(), 0, ses.request_length().into())
            }
            _ => return None,
        };
        (head.opcode() == Opcode::UET_WRITE).then(|| Write {
            message,
            job: address.job_id(),
            process: address.pid_on_fep(),
            index: address.resource_index(),
            key,
            place: offset + u64::from(at),
            length,
            last: head.eom(),
            delivery_complete: head.dc(),
        })
    }

    fn store(&self, regions: &mut [(ExposeRegion, Vec<u8>)], payload: &[u8]) -> ReturnCode {
        let found = regions.iter_mut().find(|(region, _)| {
            let named = match self.key {
                Some(key) => region.index == self.index && region.key.0 == key,
                // A small request has no key: its index names the region.
                None => region.key.0 & 0xfff == u64::from(self.index),
            };
            region.job == Some(self.job) && region.process == self.process && named
        });
        let Some((_, memory)) = found else { return ReturnCode::BAD_MKEY };
        let start = usize::try_from(self.place).unwrap_or(usize::MAX);
        match start.checked_add(payload.len()).and_then(|end| memory.get_mut(start..end)) {
            Some(place) => {
                place.copy_from_slice(payload);
                ReturnCode::OK
            }
            None => ReturnCode::BAD_ADDR,
        }
    }
}

fn response(code: ReturnCode, message: u16, job: u32) -> Result<Response, WriteError> {
    let opcode = match code {
        ReturnCode::OK => ResponseOpcode::UET_DEFAULT_RESPONSE,
        _ => ResponseOpcode::UET_RESPONSE,
    };
    Response::build(opcode, code).message_id(message).job_id(job).done()
}

fn nack(code: NackCode, request: &Request, own: PdcId) -> Result<UetBuf, WriteError> {
    let nack = Nack::build(code).nack_psn(request.psn()).retx(request.retx());
    Ok(UetBuf::new(nack.spdcid(own).dpdcid(request.spdcid()).done()?))
}

/// The implementation as a device of the suite.
struct Device {
    target: Target,
    sent: VecDeque<Wire>,
    now: Duration,
    welcome: Welcome,
    facts: Facts,
}

impl Device {
    fn new() -> Self {
        Device {
            target: Target::default(),
            sent: VecDeque::new(),
            now: Duration::ZERO,
            welcome: Welcome {
                version: env!("CARGO_PKG_VERSION").into(),
                specification: "1.0.3".into(),
                capabilities: vec!["rud".into(), "write".into()],
                ..Welcome::new("own-device", Link::Inside { addr: DEVICE.into() })
            },
            facts: Facts { virtual_time: true, ..Facts::new(&SUITE.map(IpAddr::from), DEVICE.into()) },
        }
    }
}

impl Dut for Device {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        let answers = self.target.take(packet.src, &packet.bytes);
        for answer in answers.map_err(|error| DutError(error.to_string()))? {
            let bytes = answer.to_bytes();
            self.sent.push_back(Wire { src: packet.dst, dst: packet.src, bytes, ..packet.clone() });
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        let next = self.sent.pop_front();
        if next.is_none() {
            // Nothing will happen before the suite acts again.
            self.now = self.now.max(until);
        }
        Ok(next)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let name = op.name();
        let refused = |code, message: &str| {
            Err(CallError::Refused { op: name, refusal: Refusal { code, message: message.into() } })
        };
        let regions = &mut self.target.regions;
        let answer = match op {
            Op::Reset(_) => {
                (self.target, self.sent) = Default::default();
                Answer::ok(0, &Done {})
            }
            Op::ExposeRegion(region) => {
                let memory = region.fill.as_ref().map_or_else(
                    || vec![0; region.length as usize],
                    |fill| fill.bytes(region.length as usize),
                );
                regions.push((region, memory));
                Answer::ok(0, &uet_control::Region { region: regions.len() as u64, key: None })
            }
            Op::ReadMemory(read) => {
                let (start, end) = (read.offset as usize, (read.offset + read.length) as usize);
                let memory =
                    regions.get(read.region as usize - 1).and_then(|(_, memory)| memory.get(start..end));
                let Some(memory) = memory else { return refused(ErrorCode::NotFound, "no such memory") };
                Answer::ok(0, &Memory { data: Hex(memory.to_vec()) })
            }
            _ => return refused(ErrorCode::Unsupported, "a target of writes only"),
        };
        Ok(answer.result)
    }
}

/// The test, as a crate of its own would contain it.
#[cfg(test)]
mod tests {
    use super::*;
    use uet_conformance::Verdict;

    #[test]
    fn it_keeps_what_a_target_of_writes_has_to() {
        let groups = ["write", "sack"].map(Into::into).to_vec();
        let mut told = Vec::new();
        let options = Options { groups, ..Options::default() };
        let result = run(&mut Device::new(), &options, |case| {
            if !matches!(case.verdict, Verdict::Pass | Verdict::Skipped) {
                let traces = case.failing.iter().map(|it| format!("{}again: {}\n", it.ladder, it.rerun));
                told.push(format!("{}: {}\n{}", case.id, case.reason, traces.collect::<String>()));
            }
        });
        assert_eq!(result.exit_code(), 0, "{}", told.concat());
        assert!(result.count(Verdict::Pass) > 20, "{} passed", result.count(Verdict::Pass));
    }

    #[test]
    fn the_suite_would_notice() {
        // Each third packet is lost, and nothing is said of it.
        struct Lossy(Device, usize);
        impl Dut for Lossy {
            fn welcome(&self) -> &Welcome {
                self.0.welcome()
            }
            fn facts(&self) -> &Facts {
                self.0.facts()
            }
            fn now(&self) -> Duration {
                self.0.now()
            }
            fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
                self.1 += 1;
                if self.1 % 3 == 0 { Ok(()) } else { self.0.send(packet) }
            }
            fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
                self.0.receive(until)
            }
            fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
                self.0.ask(op)
            }
        }
        let options = Options { groups: vec!["write".into()], ..Options::default() };
        assert_eq!(run(&mut Lossy(Device::new(), 0), &options, |_| ()).exit_code(), 1);
    }
}
