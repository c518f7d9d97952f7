//! Builds the unchanged packets of steps.

use uet_conformance::elements::kind;
use uet_conformance::random::step::{By, MessagePlan, RegionPlan, Wrong};
use uet_conformance::{Message, Part, Pdc, Region, Request, rudi, uud};
use uet_control::{Fill, PostKind};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, CtlType, NackCode};
use uet_wire::{UetBuf, WriteError};

/// Memory of the device as requests name it.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// Region with all permissions.
    pub(super) home: Region,
    /// Read-only region; its contents never change.
    pub(super) witness: Region,
    /// Region written only to check that the device is alive.
    pub(super) pulse: Region,
    /// Bytes of a message in each packet.
    pub(super) mtu: usize,
}

impl Memory {
    /// Creates regions with random keys.
    pub(super) fn new(seed: u64, mtu: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut region = |index, length| Region {
            number: 0,
            job: 101,
            process: 2,
            index,
            generation: 0,
            key: u64::from(rng.u32(1..)),
            message_id: rng.u16(1..),
            length,
        };
        Memory { home: region(10, 1 << 16), witness: region(11, 1 << 9), pulse: region(12, 8), mtu }
    }

    /// Returns the regions of a conversation.
    pub(super) fn plans(&self) -> Vec<RegionPlan> {
        let plan = |region: &Region, no_write| RegionPlan {
            length: region.length as u32,
            no_write,
            no_atomic: no_write,
            ..RegionPlan::default()
        };
        vec![plan(&self.home, false), plan(&self.witness, true)]
    }

    /// Returns the parts of a message.
    pub(super) fn parts(&self, plan: &MessagePlan) -> Result<Vec<Part>, WriteError> {
        plan.form.parts(&self.message(plan)?, self.mtu)
    }

    fn message(&self, plan: &MessagePlan) -> Result<Message, WriteError> {
        let region = if plan.region == 1 { &self.witness } else { &self.home };
        let data = Fill::Seed(plan.seed).bytes(plan.length as usize);
        let send = Message::send(&data).selector(plan.match_bits().unwrap_or(0));
        let mut message = match plan.kind {
            PostKind::Write => Message::write(region, plan.offset, &data),
            PostKind::Read => Message::read(region, plan.offset, plan.length),
            PostKind::Atomic | PostKind::FetchAtomic => {
                let (opcode, datatype) = plan.atomic.unwrap_or_default();
                let opcode = AtomicOpcode::new(opcode).unwrap_or(AtomicOpcode::SUM);
                let datatype = AtomicDatatype::new(datatype).unwrap_or(AtomicDatatype::UINT64);
                let size = kind(opcode, datatype).size;
                match opcode.is_compare_and_swap() {
                    true => Message::swap(region, plan.offset, (opcode, datatype, size as u32), (0, 1))?,
                    false => Message::atomic(region, plan.offset, (opcode, datatype), &[1].repeat(size))?,
                }
            }
            PostKind::RendezvousSend | PostKind::RendezvousTsend => {
                let eager = plan.eager.min(plan.length).min(self.mtu as u32);
                send.data(&data[..eager as usize]).rendezvous(plan.length, &self.home, 0)?
            }
            PostKind::DeferrableSend | PostKind::DeferrableTsend => {
                Message { tokens: Some((plan.seed, 0)), ..send }
            }
            _ => send,
        };
        message = message.opcode(plan.opcode());
        message.complete = plan.complete;
        message.header_data = plan.header_data.then_some(0xfeed);
        match plan.wrong {
            Wrong::Key => message.selector ^= 0x5a_0000,
            // As far from the end of the address space as from the end of the region.
            Wrong::Range => {
                message.offset = if plan.seed % 2 == 0 { u64::MAX - 7 } else { region.length - 8 }
            }
            Wrong::Job => message.job = 999,
            Wrong::Process => message.process = 0x7e,
            Wrong::Index => message.index = 0x301,
            Wrong::Generation => message.generation = 7,
            Wrong::Alignment => message.offset += 1,
            Wrong::Nothing | Wrong::Opcode | Wrong::GivenUp => {}
        }
        Ok(message)
    }
}

/// Builds a part of a message as a request of a context, or as one without a context.
pub(super) fn request(
    pdc: &Pdc,
    request: Request,
    plan: &MessagePlan,
    part: Part,
) -> Result<UetBuf, WriteError> {
    let Part { ses, ext, payload } = part;
    let request = Request { ses: Some(ses), ext, payload, ar: !plan.quiet, ..request };
    match plan.by {
        By::Context => request.build(),
        By::Rudi => rudi(pdc.start.0, &request),
        By::Uud => uud(&request),
    }
}

/// Builds a control packet. If there is no context, a type that can open one does so.
pub(super) fn control(pdc: &Pdc, n: u32, kind: CtlType) -> Result<UetBuf, WriteError> {
    match kind {
        CtlType::NOOP | CtlType::NEGOTIATION => pdc.numbered(kind, n),
        CtlType::PROBE => pdc.probe(n as u16, pdc.psn(n)),
        // The PSN to clear.
        CtlType::CLEAR_COMMAND => pdc.control(kind, pdc.psn(n), pdc.psn(n).0),
        _ => pdc.control(kind, pdc.psn(n), 0),
    }
}

/// Builds a NACK; `None` if the code is invalid in a NACK.
pub(super) fn nack(pdc: &Pdc, code: u8, psn: uet_wire::Psn) -> Option<UetBuf> {
    pdc.nack(NackCode::new(code)?, psn).ok()
}
