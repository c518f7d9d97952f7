//! Writes of a script that travel as sends, for devices without writes.
//!
//! Each write gets a receive on a resource index of its own, so that the order of arrival does not matter.
//! The memory of the region is the receives, each at the offset of its write.

use crate::axis::{CARRIER, Carrier, MODE};
use crate::{Pdc, Region, Stop, Test};
use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_control::{Hex64, Mode, Post, PostKind, PostReceive};
use uet_wire::registry::Opcode;
use uet_wire::ses::{Ses, SesBuf, Std};
use uet_wire::{UetBuf, WriteError};

/// The first of the indices that receives use. Scripts use small ones.
const FIRST_INDEX: u16 = 1000;

/// Maximum number of bytes of a receive.
const LONGEST: u64 = 1 << 24;

/// Regions of these numbers exist in the script only.
const FIRST_REGION: u64 = 1 << 48;

/// The context of the suite that a write uses, and its PSN or message id.
type Written = (IpAddr, u16, u64);

/// The sends of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sends {
    regions: u64,
    /// Memory keys of the regions.
    pub(crate) keys: Vec<u64>,
    receives: BTreeMap<Written, Receive>,
    /// The order in which they were sent first.
    order: Vec<Written>,
}

#[derive(Clone, Debug)]
struct Receive {
    index: u16,
    number: u64,
    before: Vec<u8>,
    /// Memory key of the region that the write was for, and the offset there.
    key: u64,
    offset: u64,
}

impl Test<'_> {
    fn sends(&self) -> bool {
        self.value(&CARRIER) == Carrier::Send
    }

    /// A region that exists in the script only; `None` if writes travel as writes.
    pub(crate) fn unexposed(&mut self) -> Option<u64> {
        self.sends().then(|| {
            self.sends.regions += 1;
            FIRST_REGION + self.sends.regions
        })
    }

    /// The operation as it is posted in this instance.
    pub(crate) fn carried(&self, post: Post) -> Post {
        let kind = match post.kind {
            PostKind::Write if self.sends() => PostKind::Send,
            kind => kind,
        };
        let mode = match post.mode {
            Mode::Rud => self.value(&MODE),
            mode => mode,
        };
        Post { kind, mode, ..post }
    }

    /// The packet as it is sent in this instance.
    pub(crate) fn carry(&mut self, pdc: &Pdc, packet: &UetBuf) -> Result<UetBuf, Stop> {
        let Some(Ses::Std(header)) = packet.ses.as_ref().map(SesBuf::view).filter(|_| self.sends()) else {
            return Ok(packet.clone());
        };
        let (head, id) = (header.head(), header.message_id());
        if head.opcode() != Opcode::UET_WRITE {
            return Ok(packet.clone());
        }
        let (som, eom, dc, rel) = (head.som(), head.eom(), head.dc(), head.rel());
        let psn = packet.pds.as_ref().and_then(|pds| pds.view().request()).map(|request| request.psn().0);
        let of = match (som && eom, psn) {
            (true, Some(psn)) => (pdc.from, pdc.local.0, u64::from(psn)),
            _ => (pdc.from, pdc.local.0, 1 << 32 | u64::from(id)),
        };
        let offset = header.buffer_offset().unwrap_or_default();
        let (key, length) = (header.memory_key().unwrap_or_default(), header.request_length());
        let known = self.sends.receives.get(&of).map(|receive| receive.index);
        let index = match known {
            Some(index) => index,
            None => self.receive_for(of, key, offset, length)?,
        };
        if let (Some(receive), true) = (self.sends.receives.get_mut(&of), som) {
            receive.offset = offset;
        }
        let (job, process) = (header.address().job_id(), header.address().pid_on_fep());
        let send = || -> Result<SesBuf, WriteError> {
            let send = Std::build(Opcode::UET_SEND).head(|head| head.som(som).eom(eom).dc(dc).rel(rel));
            let send = send.message_id(index - FIRST_INDEX + 1);
            let send = send.address(|a| a.job_id(job).pid_on_fep(process).resource_index(index));
            let send = match (header.payload_length(), header.message_offset()) {
                (Some(length), Some(offset)) => send.payload_length(length).message_offset(offset),
                _ => send,
            };
            Ok(send.request_length(length).done()?.into())
        };
        Ok(UetBuf { ses: Some(send()?), ..packet.clone() })
    }

    /// Posts a receive for a write, or none where the write was for no region; the resource index.
    fn receive_for(&mut self, of: Written, key: u64, offset: u64, length: u32) -> Result<u16, Stop> {
        if u64::from(length) > LONGEST {
            return Err(Stop::Skipped(format!("no receive for a write of {length} bytes")));
        }
        let count = self.sends.order.len();
        let index = u16::try_from(count).ok().and_then(|count| FIRST_INDEX.checked_add(count));
        let index = index.ok_or_else(|| Stop::Skipped("the script has more writes than indices".into()))?;
        let mut receive = Receive { index, number: 0, before: Vec::new(), key, offset };
        if self.sends.keys.contains(&key) {
            let posted = self.posted(PostReceive {
                length: length.into(),
                job: Some(101),
                process: 2,
                index,
                tag: None,
                ignore: Hex64(0),
                initiator: None,
            });
            let posted = posted.map_err(|stop| match stop {
                Stop::Inconclusive(reason) => Stop::Skipped(format!("no receive for each write: {reason}")),
                stop => stop,
            })?;
            (receive.number, receive.before) = (posted.buffer.number, posted.before);
        }
        self.sends.receives.insert(of, receive);
        self.sends.order.push(of);
        Ok(index)
    }

    /// Returns the bytes of a region that exists only in the script.
    pub(crate) fn carried_memory(
        &mut self,
        region: &Region,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Stop> {
        let mut held = vec![0; length as usize];
        for of in self.sends.order.clone() {
            let Some(receive) =
                self.sends.receives.get(&of).filter(|it| it.key == region.key && it.number > 0)
            else {
                continue;
            };
            let (number, before, start) = (receive.number, receive.before.clone(), receive.offset);
            let now = self.raw_memory(number, 0, before.len() as u64)?;
            if now == before {
                continue;
            }
            for (place, byte) in (start..).zip(now) {
                let place = place.checked_sub(offset).and_then(|place| held.get_mut(place as usize));
                place.into_iter().for_each(|held| *held = byte);
            }
        }
        Ok(held)
    }

    /// Returns true if the region exists only in the script.
    pub(crate) fn is_carried(region: &Region) -> bool {
        region.number >= FIRST_REGION
    }
}
