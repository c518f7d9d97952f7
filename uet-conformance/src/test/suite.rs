//! The suite's own side of the protocol: its numbers and contexts, its part in a secure domain, and the sends
//! that carry writes.

use super::sends::Sends;
use super::watch::Watch;
use crate::axis::Start;
use crate::{Pdc, Region, RxPacket, Shield, Stop};
use core::net::IpAddr;
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::{PdcId, Psn};

/// The peer that the suite is to the device.
pub(super) struct SuiteSide {
    rng: fastrand::Rng,
    /// The suite's PDCID of the next context; each context of a rule has its own.
    next_pdcid: u16,
    /// The context and region of the liveness check.
    liveness: Option<(Pdc, Region)>,
    sends: Sends,
    shield: Option<Box<Shield>>,
    /// The last control packet of a type that a device need not support, and its number.
    optional_control: Option<(CtlType, usize)>,
    watch: Watch,
}

impl SuiteSide {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        SuiteSide {
            next_pdcid: rng.u16(1..),
            rng,
            liveness: None,
            sends: Sends::default(),
            shield: None,
            optional_control: None,
            watch: Watch::default(),
        }
    }

    /// Forgets what a reset of the device has ended.
    pub(super) fn restart(&mut self) {
        self.liveness = None;
        self.sends = Sends::default();
        self.watch.restart();
    }

    pub(super) fn rng(&mut self) -> &mut fastrand::Rng {
        &mut self.rng
    }

    /// Returns a context for the suite to open between these ends, with random numbers.
    pub(super) fn initiate(&mut self, (from, to): (IpAddr, IpAddr), start: Start, rod: bool) -> Pdc {
        Pdc {
            from,
            to,
            local: self.pdcid(),
            remote: None,
            start: self.start_at(start),
            rod,
            entropy: self.rng.u16(0xc000..),
        }
    }

    pub(super) fn start_at(&mut self, start: Start) -> Psn {
        match start {
            // `PDS-SYN-007`: in a secure domain, the floor of a new key is 0.
            Start::Any if self.shield.is_some() => Psn(self.rng.u32(1 << 16..1 << 31)),
            Start::Any => Psn(self.rng.u32(..)),
            Start::Wrap => Psn(u32::MAX - 1),
            Start::Half => Psn((1 << 31) - 2),
        }
    }

    fn pdcid(&mut self) -> PdcId {
        let id = self.next_pdcid;
        self.next_pdcid = id.checked_add(1).unwrap_or(1);
        PdcId(id)
    }

    /// Returns the suite's side of the context that a request of the device opens.
    pub(super) fn accept(&mut self, first: &RxPacket) -> Result<Pdc, Stop> {
        let request = first.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
        let start =
            request.start_psn().ok_or_else(|| Stop::Inconclusive("a request that opens nothing".into()))?;
        Ok(Pdc {
            from: first.wire.dst,
            to: first.wire.src,
            local: self.pdcid(),
            remote: Some(request.spdcid()),
            start,
            rod: matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ),
            entropy: first.wire.entropy,
        })
    }

    /// Takes the context and the region of the last liveness check.
    pub(super) fn take_liveness(&mut self) -> Option<(Pdc, Region)> {
        self.liveness.take()
    }

    pub(super) fn keep_liveness(&mut self, pdc: Pdc, region: Region) {
        self.liveness = Some((pdc, region));
    }

    pub(super) fn sends(&mut self) -> &mut Sends {
        &mut self.sends
    }

    pub(super) fn shield(&self) -> Option<&Shield> {
        self.shield.as_deref()
    }

    pub(super) fn shield_mut(&mut self) -> Option<&mut Shield> {
        self.shield.as_deref_mut()
    }

    pub(super) fn secure(&mut self, shield: Shield) {
        self.shield = Some(Box::new(shield));
    }

    pub(super) fn optional_control(&self) -> Option<(CtlType, usize)> {
        self.optional_control
    }

    pub(super) fn sent_optional_control(&mut self, kind: CtlType, number: usize) {
        self.optional_control = Some((kind, number));
    }

    pub(super) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(super) fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }
}
