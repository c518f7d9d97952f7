//! Writes of a script that travel as sends, for devices without writes.
//!
//! In an instance with `carrier=send`, no write of the script reaches the device. [`Test::send`] replaces the
//! write by a send to a receive that it posts first, and [`Test::post`] has the device send instead of write.
//! The timeline says so before the first of them.
//!
//! Each write gets a receive on a resource index of its own, so that the order of arrival does not matter.
//! The memory of the region is the receives, each at the offset of its write.

use super::Test;
use super::sends::{CarryingReceive, FIRST_INDEX, Written};
use crate::axis::{CARRIER, Carrier, MODE};
use crate::region::room;
use crate::{Pdc, Region, Stop};
use uet_control::{Mode, Post, PostKind, PostReceive};
use uet_wire::registry::Opcode;
use uet_wire::ses::{Ses, SesBuf, Std};
use uet_wire::{UetBuf, WriteError};

/// Maximum number of bytes of a receive.
const LONGEST: u64 = 1 << 24;

impl Test<'_> {
    fn carries_by_send(&self) -> bool {
        self.value(&CARRIER) == Carrier::Send
    }

    /// Says in the timeline, once, that it shows sends in place of the writes of the script.
    fn announce_carrier(&mut self) {
        if self.suite.sends().announce() {
            self.note("write carried as send: carrier=send replaces each write of the script");
        }
    }

    /// Returns the number of a region that exists in the script only; `None` if writes travel as writes.
    pub(super) fn unexposed(&mut self, key: u64) -> Option<u64> {
        self.carries_by_send().then(|| self.suite.sends().new_region(key))
    }

    /// The operation as it is posted in this instance.
    pub(super) fn carried(&mut self, post: Post) -> Post {
        let kind = match post.kind {
            PostKind::Write if self.carries_by_send() => {
                self.announce_carrier();
                PostKind::Send
            }
            kind => kind,
        };
        let mode = match post.mode {
            Mode::Rud => self.value(&MODE),
            mode => mode,
        };
        Post { kind, mode, ..post }
    }

    /// The packet as it is sent in this instance.
    pub(super) fn carry(&mut self, pdc: &Pdc, packet: &UetBuf) -> Result<UetBuf, Stop> {
        let Some(Ses::Std(header)) = packet.ses.as_ref().map(SesBuf::view).filter(|_| self.carries_by_send())
        else {
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
        self.announce_carrier();
        let index = match self.suite.sends().index(&of) {
            Some(index) => index,
            None => self.receive_for(of, key, offset, length)?,
        };
        if som {
            self.suite.sends().starts_at(&of, offset);
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
        let index = self.suite.sends().next_index();
        let index = index.ok_or_else(|| Stop::Skipped("the script has more writes than indices".into()))?;
        let mut receive = CarryingReceive { index, number: 0, before: Vec::new(), key, offset };
        if self.suite.sends().has_region(key) {
            let post = PostReceive { index, ..room(length.into()) };
            let posted = self
                .call(post)
                .and_then(|posted| Ok((posted.region, self.raw_memory(posted.region, 0, length.into())?)));
            (receive.number, receive.before) = posted.map_err(|stop| match stop {
                Stop::Inconclusive(reason) => Stop::Skipped(format!("no receive for each write: {reason}")),
                stop => stop,
            })?;
        }
        self.suite.sends().add(of, receive);
        Ok(index)
    }

    /// Returns the bytes of a region that exists only in the script.
    pub(super) fn carried_memory(
        &mut self,
        region: &Region,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Stop> {
        let mut held = vec![0; length as usize];
        for receive in self.suite.sends().receives_of(region.key) {
            let now = self.raw_memory(receive.number, 0, receive.before.len() as u64)?;
            if now == receive.before {
                continue;
            }
            for (place, byte) in (receive.offset..).zip(now) {
                let place = place.checked_sub(offset).and_then(|place| held.get_mut(place as usize));
                place.into_iter().for_each(|held| *held = byte);
            }
        }
        Ok(held)
    }
}
