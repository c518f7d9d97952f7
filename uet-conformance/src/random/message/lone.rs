//! Messages without a context: datagrams and idempotent requests.

use super::{Reported, Sending, TRIES};
use crate::random::coverage::Event;
use crate::random::play::{Due, Player};
use crate::random::step::Fate;
use crate::{Outcome, Part, RxPacket, Trimmed, rudi};
use core::time::Duration;
use uet_wire::catalogue::*;
use uet_wire::pds::Rudi;
use uet_wire::registry::{AckRequest, PdsType};
use uet_wire::ses::Ses;

impl Player<'_, '_> {
    pub(super) fn send_datagram(&mut self, index: usize) -> Outcome {
        let sending = &mut self.messages[index];
        sending.over = true;
        self.coverage.operation(Event::Datagram);
        let sending = &self.messages[index];
        let (context, fate) = (sending.plan.context, sending.fate(0));
        let pdc = self.own[context].pdc.clone();
        let Some(Part { ses, ext, payload }) = sending.parts.first().cloned() else { return Ok(()) };
        let request = crate::Request { ext, ..pdc.request(0).ses(ses, &payload) };
        let packet = self.t.datagram(&request)?;
        match self.possible(fate) {
            Fate::Lost => Ok(()),
            Fate::Trimmed => self.carry(&pdc, &packet, Fate::Trimmed, Trimmed::Fabric),
            Fate::Marked => self.t.send_wire(&pdc.marked(&packet)),
            _ => self.t.send(&pdc, &packet),
        }
    }

    pub(super) fn send_lone(&mut self, index: usize) -> Outcome {
        let count = self.messages[index].parts.len() as u32;
        let first = self.next_id << 8;
        self.next_id += 1 + count / 256;
        self.messages[index].lone = (0..count).map(|part| (first + part, 0)).collect();
        self.coverage.operation(Event::Rudi);
        for part in 0..count as usize {
            let fate = self.messages[index].fate(part);
            self.transmit_lone(index, part, fate)?;
        }
        let at = self.t.now() + self.t.rto() * 2 + self.t.soon() / 16;
        self.later(at, Due::Lone(index));
        Ok(())
    }

    fn transmit_lone(&mut self, index: usize, part: usize, fate: Fate) -> Outcome {
        let sending = &mut self.messages[index];
        let Some((pkt_id, tries)) = sending.lone.get_mut(part) else { return Ok(()) };
        let (pkt_id, retx) = (*pkt_id, *tries > 0);
        *tries += 1;
        let context = sending.plan.context;
        let Part { ses, ext, payload } = sending.parts[part].clone();
        let pdc = self.own[context].pdc.clone();
        let request = crate::Request { ext, retx, ..pdc.request(0).ses(ses, &payload) };
        let packet = rudi(pkt_id, &request)?;
        self.carry(&pdc, &packet, self.possible(fate), Trimmed::Fabric)
    }

    pub(in crate::random) fn lone_timer(&mut self, index: usize) -> Outcome {
        let sending = &self.messages[index];
        if sending.over {
            return Ok(());
        }
        let missing: Vec<usize> =
            (0..sending.parts.len()).filter(|part| sending.answered[*part].is_none()).collect();
        let tries = sending.lone.iter().map(|(_, tries)| *tries).max().unwrap_or_default();
        if tries > TRIES {
            let told = format!("none to {tries} transmissions");
            return self.broken(PDS_RUDI_002, "a RUDI_RESP to each RUDI request", told);
        }
        for part in missing {
            self.transmit_lone(index, part, Fate::Arrives)?;
        }
        let span: Duration = (self.t.rto() * 2 + self.t.soon() / 16) * (1 << tries.min(6));
        let at = self.t.now() + span;
        self.later(at, Due::Lone(index));
        Ok(())
    }

    /// Takes a RUDI packet in.
    pub(in crate::random) fn take_rudi(&mut self, seen: &RxPacket, rudi: &Rudi, first: bool) -> Outcome {
        if rudi.prologue().kind() == PdsType::RUDI_REQ {
            return self.take_lone_request(seen, rudi, first);
        }
        self.coverage.operation(Event::RudiResponse);
        let id = rudi.pkt_id();
        let of = |sending: &Sending| sending.lone.iter().position(|(known, _)| *known == id);
        let found = self.messages.iter().enumerate().find_map(|(index, it)| Some((index, of(it)?)));
        let Some((message, part)) = found else {
            if self.t.watch().ignores_packet(id) {
                return Ok(());
            }
            return self.broken(PDS_RUDI_002, "the pkt_id of a request", format!("{id:#x}"));
        };
        let context = self.messages[message].plan.context;
        if seen.wire.dst != self.own[context].pdc.from {
            let told = format!("to {}", seen.wire.dst);
            return self.broken(PDS_RUDI_002, "a response to the source of the request", told);
        }
        if first && !self.settling && self.messages[message].answer_fate() == Fate::Lost {
            return Ok(());
        }
        let uet = seen.uet();
        let carries = matches!(uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)));
        let told = Reported {
            named: true,
            covered: true,
            request: AckRequest::NO_REQUEST,
            response: seen.response(),
            data: carries.then(|| (seen.return_code().unwrap_or_default(), seen.payload().to_vec())),
        };
        self.reported(message, part, &told).map(drop)
    }
}
