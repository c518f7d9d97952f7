//! Applies a packet to its context.

use crate::context::KEPT;
use crate::{
    Context, Direction, Event, MessagePart, Observed, RcvdBytes, ReadData, ReadRequest, SentRequest, Side,
};
use std::collections::BTreeMap;
use uet_wire::Psn;
use uet_wire::pds::{Ack, Control, Nack, Pds, Request, Sack};
use uet_wire::registry::{CtlType, NackCode, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::Ses;

/// The number of PSNs kept below those that are acknowledged and cleared: for packets that come late.
const LATE: i64 = 16;

impl Context {
    /// Applies a packet of `sender`. Returns the read whose data it carries, and the event.
    pub(crate) fn apply(
        &mut self,
        sender: Side,
        packet: &Observed<'_>,
        pds: Pds<'_>,
    ) -> Option<(Option<ReadRequest>, Event)> {
        let receiver = sender.other();
        if pds.ack().is_some() || pds.nack().is_some() {
            let replies = &mut self.direction_mut(receiver).replies;
            *replies = replies.saturating_add(1);
        } else {
            self.direction_mut(sender).has_spoken = true;
        }
        if let Some(request) = pds.request() {
            let read = self.direction_mut(receiver).data(packet, false);
            let data_of = read.and_then(|read| whole_read(packet, read));
            Some((read, self.direction_mut(sender).request(packet, request, pds, data_of)))
        } else if let Some(ack) = pds.ack() {
            let (closes, event) = self.direction_mut(receiver).ack(packet, ack, pds);
            self.closed = closes.then_some(packet.number);
            Some((self.direction_mut(receiver).data(packet, true), event))
        } else if let Some(nack) = pds.nack() {
            Some((None, self.direction_mut(receiver).nack(nack)))
        } else if let Pds::Control(control) = pds {
            Some((None, self.direction_mut(sender).control(packet, control.copied())))
        } else {
            None
        }
    }
}

impl Direction {
    fn request(
        &mut self,
        packet: &Observed<'_>,
        request: Request,
        pds: Pds<'_>,
        data_of: Option<u16>,
    ) -> Event {
        let rod = matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ);
        self.mixed_modes |= *self.rod.get_or_insert(rod) != rod;
        let index = self.place(request.psn());
        if let Some(Ses::Std(header)) = packet.uet.ses {
            let bytes = match header.head().opcode() {
                Opcode::UET_READ => Some(header.request_length()),
                Opcode::UET_FETCHING_ATOMIC | Opcode::UET_TSEND_FETCH_ATOMIC => Some(u32::MAX),
                _ => None,
            };
            if let Some(bytes) = bytes {
                if self.reads.len() >= KEPT {
                    self.reads.clear();
                }
                let job_id = header.address().job_id();
                // The other packets of a read continue it. The message ID of a finished read is free.
                let known =
                    self.reads.get(&header.message_id()).filter(|read| !header.head().som() && !read.over);
                let data = known.and_then(|read| read.data);
                self.reads.insert(header.message_id(), ReadRequest { bytes, job_id, data, over: false });
            }
        }
        let sent = SentRequest {
            number: packet.number,
            retx: request.retx(),
            clear: request.clear_psn(),
            digest: packet.digest(),
            entropy: [packet.entropy, None],
            marked: packet.marked,
            times: 1,
            changed: false,
            demand: matches!(pds, Pds::RequestCc(_)),
            part: part(packet),
            opcode: packet.uet.ses.and_then(|ses| ses.opcode()),
            data_of,
            syn: request.syn(),
        };
        self.demands_credit |= sent.demand;
        self.retransmitted |= sent.retx;
        let earlier = self.requests.get(&index).map(|sent| (**sent).clone());
        let is_forgotten = self.is_forgotten(index);
        match self.requests.get_mut(&index) {
            Some(known) => {
                known.times += 1;
                known.marked |= sent.marked;
                if !known.entropy.contains(&packet.entropy) {
                    known.entropy[1] = packet.entropy;
                }
                known.changed |= known.digest.zip(sent.digest).is_some_and(|(first, now)| first != now);
                known.digest = known.digest.or(sent.digest);
                known.part = known.part.or(sent.part).filter(|_| !known.changed);
                known.opcode = known.opcode.filter(|_| !known.changed);
            }
            None if is_forgotten => {}
            None => {
                if !sent.retx {
                    let clear = self.place(sent.clear);
                    self.cleared = self.cleared.max(Some(clear));
                }
                self.sent(index, packet);
                self.requests.insert(index, Box::new(sent.clone()));
                self.forget();
                while self.sacked.len() > KEPT {
                    let Some((lowest, _)) = self.sacked.first_range_value() else { break };
                    self.sacked.remove(lowest.clone());
                }
            }
        }
        Event::Request { index, sent, earlier }
    }

    /// Records a new packet with a PSN.
    fn sent(&mut self, index: i64, packet: &Observed<'_>) {
        self.highest = self.highest.max(Some(index));
        if self.cack.is_none_or(|(cack, _)| index > cack) && self.sacked(index).is_none() {
            let bytes = packet.uet.parts().iter().skip(1).map(|part| part.len()).sum();
            keep(&mut self.unacknowledged, index, (packet.number, bytes));
        }
        // The capture has its ACK before it.
        if self.counted.is_some_and(|(above, to)| above < index && index <= to) {
            self.unseen = self.unseen.saturating_sub(1);
        }
    }

    /// Counts the packets up to a new cumulative PSN that were not observed. A capture may start in the middle, so it
    /// begins at the first observed packet.
    fn count_unseen(&mut self, cack: i64) {
        let firsts = [self.requests.keys().next(), self.controls.keys().next()];
        let Some(first) = firsts.into_iter().flatten().min() else { return };
        let (above, to) = self.counted.unwrap_or((first - 1, first - 1));
        if self.renumbered || cack <= to {
            return;
        }
        // Requests beyond the limit are forgotten before their ACK.
        if self.forgotten.is_none_or(|(_, last)| last <= to) {
            let seen = self.sent_between(to, cack) as u64;
            self.unseen += ((cack - to) as u64).saturating_sub(seen);
        }
        self.counted = Some((above, cack));
    }

    /// Forgets the oldest requests: beyond the limit, or if they are acknowledged and the sender will not repeat them.
    fn forget(&mut self) {
        let cack = self.cack.map(|(cack, _)| cack);
        let settled = cack.min(self.cleared).filter(|_| !self.renumbered).map(|settled| settled - LATE);
        while let Some((&index, _)) = self.requests.first_key_value().filter(|_| self.requests.len() > 1) {
            if settled.is_none_or(|settled| index > settled) && self.requests.len() <= KEPT {
                break;
            }
            self.requests.remove(&index);
            let (from, to) = self.forgotten.unwrap_or((index, index));
            self.forgotten = Some((from.min(index), to.max(index)));
        }
        let first = self.requests.first_key_value().map(|(first, _)| *first);
        while self.asked.first().is_some_and(|asked| first.is_some_and(|first| *asked < first)) {
            self.asked.pop_first();
        }
    }

    fn control(&mut self, packet: &Observed<'_>, control: Control) -> Event {
        let kind = control.ctl_type();
        let index = match kind.takes_psn() || kind == CtlType::ACK_REQUEST {
            true => self.place(control.psn()),
            false => self.index(control.psn()),
        };
        if kind.takes_psn() && !self.controls.contains_key(&index) {
            self.sent(index, packet);
            keep(&mut self.controls, index, (kind, packet.number));
        }
        match kind {
            CtlType::CLOSE_COMMAND => {
                self.close.get_or_insert((index, packet.number));
                self.closing.get_or_insert(packet.number);
            }
            CtlType::NOOP | CtlType::NEGOTIATION if control.syn() => {
                self.rod.get_or_insert(control.isrod());
            }
            CtlType::CLOSE_REQUEST => drop(self.closing.get_or_insert(packet.number)),
            CtlType::ACK_REQUEST => {
                self.asked.insert(index);
                if self.asked.len() > KEPT {
                    self.asked.pop_first();
                }
            }
            CtlType::CLEAR_COMMAND if self.highest.is_some() => {
                let clear = self.index(Psn(control.payload()));
                self.cleared = self.cleared.max(Some(clear));
            }
            CtlType::CREDIT_REQUEST => self.demands_credit = true,
            CtlType::PROBE => {
                self.probes.extend(control.probe_opaque());
            }
            _ => {}
        }
        Event::Control { kind, index }
    }

    /// Applies an ACK to the direction that it acknowledges. Returns true if it closes the context, and the event.
    fn ack(&mut self, packet: &Observed<'_>, ack: Ack, pds: Pds<'_>) -> (bool, Event) {
        let cack = self.place(ack.cack_psn());
        // The cumulative PSN in an answer to a PROBE has no effect.
        let Some(named) = ack.ack_psn().map(|psn| self.place(psn)) else {
            let (named, acknowledged, rcvd_before) = (None, Vec::new(), None);
            return (false, Event::Ack { cack, named, acknowledged, rcvd_before });
        };
        self.told = self.told.max(Some(cack.max(named)));
        if self.highest.is_some_and(|highest| named > highest)
            && self.ahead.is_none_or(|(ahead, _)| named > ahead)
        {
            self.ahead = Some((named, packet.number));
        }
        let closes = self.close.is_some_and(|(close, _)| cack >= close || named == close);
        if let Some(Ses::Response(response)) = packet.uet.ses {
            let head = response.head();
            if head.opcode() == ResponseOpcode::UET_RESPONSE && head.return_code() != ReturnCode::OK {
                self.end_read(response.message_id());
            }
        }
        let (mut rcvd_before, mut sack): (_, Option<Sack>) = (None, None);
        match pds {
            Pds::AckCc(header) => {
                let header = header.copied();
                if let Some(bytes) = header.rcvd_bytes() {
                    let now = RcvdBytes { bytes, cack, number: packet.number };
                    rcvd_before = self.rcvd.map(|(_, last)| last);
                    self.rcvd = Some((self.rcvd.map_or(now, |(first, _)| first), now));
                }
                self.credit = header.credit().or(self.credit);
                sack = Some(header.sack().copied());
            }
            Pds::AckCcx(header) => sack = Some(header.sack().copied()),
            _ => {}
        }
        self.announced.extend(sack.as_ref().map(Sack::mpr));
        self.permit(cack, sack.as_ref().map(Sack::mp_range));
        let mut acknowledged = Vec::new();
        acknowledged.extend(self.unacknowledged.remove(&named).map(|(number, _)| number));
        if self.cack.is_none_or(|(before, _)| cack > before) {
            self.count_unseen(cack);
            self.cack = Some((cack, packet.number));
            self.sacked.remove(i64::MIN..=cack);
            while let Some(entry) = self.unacknowledged.first_entry().filter(|entry| *entry.key() <= cack) {
                acknowledged.push(entry.remove().0);
            }
        }
        for psn in sack.iter().flat_map(|sack| sack.sacked(ack.cack_psn())) {
            let index = self.place(psn);
            if index > cack {
                if self.sacked(index).is_none() {
                    self.sacked.insert(index..=index, packet.number);
                }
                acknowledged.extend(self.unacknowledged.remove(&index).map(|(number, _)| number));
            }
        }
        (closes, Event::Ack { cack, named: Some(named), acknowledged, rcvd_before })
    }

    /// Records the PSNs that an ACK permits, by its announced window or the previous one. An announcement with an older
    /// cumulative PSN does not count (3.5.12.6). Before the first announcement, the largest window applies.
    fn permit(&mut self, cack: i64, announced: Option<Option<u32>>) {
        const LARGEST: i64 = 255 * 128;
        const NO_LIMIT: i64 = i64::MAX / 4;
        if let (Some(window), true) = (announced, self.cack.is_none_or(|(before, _)| cack >= before)) {
            self.window = Some(window.map_or(NO_LIMIT, i64::from));
        }
        let before = self.permitted.unwrap_or(cack + LARGEST);
        self.permitted = Some(before.max(cack + self.window.unwrap_or(LARGEST)));
    }

    fn nack(&mut self, nack: Nack) -> Event {
        let code = nack.nack_code();
        self.renumbered |= code == NackCode::NEW_START_PSN;
        Event::Nack { code, named: nack.nack_psn().map(|psn| self.place(psn)) }
    }

    /// Returns the read of this direction whose data the packet carries. The last byte ends the read.
    fn data(&mut self, packet: &Observed<'_>, in_ack: bool) -> Option<ReadRequest> {
        let Some(Ses::ResponseData(header)) = packet.uet.ses else { return None };
        let known = self.reads.get_mut(&header.read_request_message_id());
        let read = known.as_deref().copied();
        if let Some(known) = known {
            known.data.get_or_insert(ReadData {
                number: packet.number,
                in_ack,
                response_message_id: header.response_message_id(),
                modified_length: header.modified_length(),
            });
        }
        let end = header.message_offset().saturating_add(header.payload_length().into());
        if end >= header.modified_length() {
            self.end_read(header.read_request_message_id());
        }
        read
    }

    fn end_read(&mut self, message_id: u16) {
        if let Some(read) = self.reads.get_mut(&message_id) {
            read.over = true;
        }
    }
}

/// Inserts an item, and removes the lowest one if the limit is exceeded.
fn keep<T>(kept: &mut BTreeMap<i64, T>, index: i64, item: T) {
    kept.insert(index, item);
    if kept.len() > KEPT {
        kept.pop_first();
    }
}

fn part(packet: &Observed<'_>) -> Option<MessagePart> {
    let Some(Ses::Std(header)) = packet.uet.ses.filter(|_| packet.whole) else { return None };
    let (head, payload) = (header.head(), packet.uet.payload.len() as u32);
    let address = header.address();
    Some(MessagePart {
        opcode: head.opcode(),
        rel: head.rel(),
        message_id: header.message_id(),
        ri_generation: address.ri_generation(),
        job_id: address.job_id(),
        pid_on_fep: address.pid_on_fep(),
        resource_index: address.resource_index(),
        initiator: header.initiator(),
        key: header.memory_key().or_else(|| header.match_bits()),
        som: head.som(),
        eom: head.eom(),
        ie: head.ie(),
        message_offset: header.message_offset().unwrap_or(0),
        payload_length: header.payload_length().map_or(payload, u32::from),
        request_length: header.request_length(),
        buffer_offset: header.buffer_offset(),
    })
}

/// Returns the message ID of an open read, if the packet carries all of its data.
fn whole_read(packet: &Observed<'_>, read: ReadRequest) -> Option<u16> {
    let Some(Ses::ResponseData(header)) = packet.uet.ses else { return None };
    let bytes = u32::from(header.payload_length());
    let all = header.message_offset() == 0 && bytes == read.bytes && header.modified_length() == bytes;
    (all && !read.over && read.data.is_none()).then(|| header.read_request_message_id())
}
