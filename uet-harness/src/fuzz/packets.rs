//! Builds the unchanged packets of a script's acts.

use super::script::{Kind, Message};
use uet_conformance::{Message as Asked, Part, Pdc, Region, Request, rudi, uud};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, CtlType, NackCode, Opcode};
use uet_wire::{UetBuf, WriteError};

/// Memory of the device as requests name it.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Region with all permissions.
    pub home: Region,
    /// Read-only region; its contents never change.
    pub witness: Region,
    /// Region written only to check that the device is alive.
    pub pulse: Region,
    /// Bytes of a message in each packet.
    pub mtu: usize,
}

impl Memory {
    /// Creates regions with random keys.
    pub fn new(seed: u64, mtu: usize) -> Self {
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

    /// Returns the number of packets of a message.
    pub fn parts(&self, message: &Message) -> usize {
        self.asked(message).map_or(1, |asked| asked.count(self.mtu))
    }

    fn asked(&self, message: &Message) -> Result<Asked, WriteError> {
        let Message { kind, length, offset } = *message;
        let data: Vec<u8> = uet_control::pattern(length).take(length as usize).collect();
        Ok(match kind {
            Kind::Write => Asked::write(&self.home, offset, &data),
            Kind::WriteWitness => Asked::write(&self.witness, offset, &data),
            Kind::Read => Asked::read(&self.home, offset, length),
            Kind::ReadWitness => Asked::read(&self.witness, offset, length),
            Kind::Add => {
                Asked::atomic(&self.home, offset, (AtomicOpcode::SUM, AtomicDatatype::UINT64), &[1; 8])?
                    .opcode(Opcode::UET_FETCHING_ATOMIC)
            }
            Kind::Swap => {
                let how = (AtomicOpcode::CSWAP, AtomicDatatype::UINT64, 8);
                Asked::swap(&self.home, offset, how, (0, 1))?
            }
            Kind::Send | Kind::Nothing => Asked::send(&data),
            Kind::Tagged => Asked::tagged(0x7a, &data),
            Kind::Rendezvous => {
                let opcode = Opcode::UET_RENDEZVOUS_SEND;
                Asked::send(&data).opcode(opcode).rendezvous(length.saturating_mul(2), &self.home, offset)?
            }
        })
    }

    /// Builds packet `part` of a message without a context.
    fn part(&self, message: &Message, part: usize) -> Result<Part, WriteError> {
        self.asked(message)?.part(self.mtu, part)
    }

    /// Builds packet `part` of a message as the `n`-th request of a context.
    pub fn request(&self, pdc: &Pdc, n: u32, message: &Message, part: usize) -> Result<Request, WriteError> {
        let request = pdc.request(n);
        if message.kind == Kind::Nothing {
            return Ok(request);
        }
        let Part { ses, ext, payload } = self.part(message, part)?;
        Ok(Request { ses: Some(ses), ext, payload, ..request })
    }

    /// Builds a message of one packet without a context.
    pub fn lone(&self, pdc: &Pdc, message: &Message, idempotent: bool) -> Result<UetBuf, WriteError> {
        let request = self.request(pdc, 0, message, 0)?;
        if idempotent { rudi(pdc.start.0, &request) } else { uud(&request) }
    }
}

/// Builds a control packet. If there is no context, a type that can open one does so.
pub fn control(pdc: &Pdc, n: u32, kind: CtlType) -> Result<UetBuf, WriteError> {
    match kind {
        CtlType::NOOP | CtlType::NEGOTIATION => pdc.numbered(kind, n),
        CtlType::PROBE => pdc.probe(n as u16, pdc.psn(n)),
        // The PSN to clear.
        CtlType::CLEAR_COMMAND => pdc.control(kind, pdc.psn(n), pdc.psn(n).0),
        _ => pdc.control(kind, pdc.psn(n), 0),
    }
}

/// Builds a NACK; `None` if the code is invalid in a NACK.
pub fn nack(pdc: &Pdc, code: u8, psn: uet_wire::Psn) -> Option<UetBuf> {
    pdc.nack(NackCode::new(code)?, psn).ok()
}
