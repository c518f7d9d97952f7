//! The table of contexts: a row for each context, when it closes.

use super::column::{CellValue, ColumnType};
use super::messages::{MessageRow, OpenMessages, Seen, address};
use super::rows::{Described, TableRow};
use std::collections::HashMap;
use std::net::IpAddr;
use uet_observe::{Context, Event, Side};
use uet_wire::PdcId;

/// The maximum number of contexts, messages and packets in memory. Beyond it, all contexts are written.
const OPEN: usize = 1 << 18;

/// A context.
#[derive(Clone, Debug)]
pub(super) struct ContextRow {
    number: u64,
    ends: [IpAddr; 2],
    pdcids: [Option<PdcId>; 2],
    initiator: Option<IpAddr>,
    rod: Option<bool>,
    start_psn: Option<u32>,
    numbers: [u64; 2],
    times: [Option<i64>; 2],
    closed: Option<u64>,
    requests: u64,
    retransmissions: u64,
    acks: u64,
    nacks: u64,
    controls: u64,
    trimmed: u64,
    marked: u64,
    payload: u64,
}

impl TableRow for ContextRow {
    const TABLE: &'static str = "contexts";
    const COLUMNS: &'static [Described<Self>] = &[
        ("context", ColumnType::Int64, "the context, from 1 in order of observation", |row| {
            row.number.into()
        }),
        ("src", ColumnType::Text, "the address that sent the first packet", |row| address(Some(row.ends[0]))),
        ("dst", ColumnType::Text, "the other address", |row| address(Some(row.ends[1]))),
        ("src_pdcid", ColumnType::Int32, "the PDCID of `src`, if observed", |row| pdcid(row.pdcids[0])),
        ("dst_pdcid", ColumnType::Int32, "the PDCID of `dst`, if observed", |row| pdcid(row.pdcids[1])),
        ("initiator", ColumnType::Text, "the address that opened it, if observed", |row| {
            address(row.initiator)
        }),
        ("mode", ColumnType::Text, "`RUD` or `ROD`, by its first request", |row| {
            row.rod.map(|rod| if rod { "ROD" } else { "RUD" }).into()
        }),
        ("pds_start_psn", ColumnType::Int64, "Start_PSN, if observed", |row| row.start_psn.into()),
        ("first_number", ColumnType::Int64, "its first packet", |row| row.numbers[0].into()),
        ("last_number", ColumnType::Int64, "its last packet", |row| row.numbers[1].into()),
        ("closed_number", ColumnType::Int64, "the packet that closed it, if observed", |row| {
            row.closed.into()
        }),
        ("start_time", ColumnType::Timestamp, "time of its first packet", |row| row.times[0].into()),
        ("end_time", ColumnType::Timestamp, "time of its last packet", |row| row.times[1].into()),
        ("requests", ColumnType::Int64, "number of requests, with retransmissions", |row| {
            row.requests.into()
        }),
        (
            "retransmissions",
            ColumnType::Int64,
            "number of requests with `retx`, or with the PSN of an earlier one",
            |row| row.retransmissions.into(),
        ),
        ("acks", ColumnType::Int64, "number of ACKs", |row| row.acks.into()),
        ("nacks", ColumnType::Int64, "number of NACKs", |row| row.nacks.into()),
        ("controls", ColumnType::Int64, "number of control packets", |row| row.controls.into()),
        ("trimmed", ColumnType::Int64, "number of trimmed packets", |row| row.trimmed.into()),
        ("marked", ColumnType::Int64, "number of packets with an ECN mark (CE)", |row| row.marked.into()),
        (
            "payload_length",
            ColumnType::Int64,
            "bytes of payload in the capture, with retransmissions",
            |row| row.payload.into(),
        ),
    ];
}

fn pdcid(id: Option<PdcId>) -> CellValue {
    id.map(|id| u32::from(id.0)).into()
}

impl ContextRow {
    fn new(seen: Seen<'_>, context: &Context) -> Self {
        let number = seen.decoded.record.number;
        ContextRow {
            number: seen.context,
            ends: context.addresses,
            pdcids: [None; 2],
            initiator: None,
            rod: None,
            start_psn: None,
            numbers: [number; 2],
            times: [seen.now; 2],
            closed: None,
            requests: 0,
            retransmissions: 0,
            acks: 0,
            nacks: 0,
            controls: 0,
            trimmed: 0,
            marked: 0,
            payload: 0,
        }
    }

    /// Applies a packet of the context.
    fn packet(&mut self, seen: Seen<'_>, context: &Context, event: &Event) {
        const CONGESTION_EXPERIENCED: u8 = 3;
        let packet = &seen.decoded.packet;
        let directions = [Side::A, Side::B].map(|side| context.direction(side));
        self.pdcids = directions.map(|direction| direction.pdcid);
        self.rod = self.rod.or(directions[0].rod).or(directions[1].rod);
        self.initiator = context.initiator.map(|side| context.addresses[side as usize]);
        self.start_psn = context.start.map(|(psn, _)| psn.0);
        self.closed = context.closed;
        self.numbers[1] = seen.decoded.record.number;
        self.times[1] = seen.now;
        self.trimmed += u64::from(packet.trimmed.is_some());
        self.marked += u64::from(packet.ip.is_some_and(|ip| ip.ecn() == CONGESTION_EXPERIENCED));
        self.payload += packet.uet.payload.len() as u64;
        match event {
            Event::Request { sent, earlier, .. } => {
                self.requests += 1;
                self.retransmissions += u64::from(sent.retx || earlier.is_some());
            }
            Event::Control { .. } => self.controls += 1,
            Event::Ack { .. } => self.acks += 1,
            Event::Nack { .. } => self.nacks += 1,
            _ => {}
        }
    }
}

/// The contexts that are still open, and their messages.
#[derive(Debug)]
pub(super) struct OpenContexts {
    open: HashMap<u64, (ContextRow, OpenMessages)>,
    /// Number of messages and packets in memory.
    parts: usize,
    limit: usize,
    /// Rows to write.
    pub(super) contexts: Vec<ContextRow>,
    /// Rows to write.
    pub(super) messages: Vec<MessageRow>,
}

impl Default for OpenContexts {
    fn default() -> Self {
        OpenContexts::with_limit(OPEN)
    }
}

impl OpenContexts {
    fn with_limit(limit: usize) -> Self {
        OpenContexts { open: HashMap::new(), parts: 0, limit, contexts: Vec::new(), messages: Vec::new() }
    }

    /// Applies a packet of a context. Rows that it completes are to be written.
    pub(super) fn packet(&mut self, seen: Seen<'_>, context: &Context, event: &Event) {
        if self.open.len() + self.parts >= self.limit {
            self.end();
        }
        let (row, messages) = self
            .open
            .entry(seen.context)
            .or_insert_with(|| (ContextRow::new(seen, context), OpenMessages::default()));
        row.packet(seen, context, event);
        let before = messages.len();
        messages.packet(seen, event, &mut self.messages);
        self.parts = self.parts + messages.len() - before;
        if context.closed.is_some() {
            self.close(seen.context);
        }
    }

    fn close(&mut self, context: u64) {
        let Some((row, messages)) = self.open.remove(&context) else { return };
        self.parts -= messages.len();
        self.contexts.push(row);
        messages.end(&mut self.messages);
    }

    /// Ends all contexts, in order.
    pub(super) fn end(&mut self) {
        let mut open: Vec<u64> = self.open.keys().copied().collect();
        open.sort_unstable();
        open.into_iter().for_each(|context| self.close(context));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_observe::{Facts, Observed, Observer};
    use uet_packet_io::json::{Decoded, Record};
    use uet_wire::pds::Request;
    use uet_wire::registry::Opcode;
    use uet_wire::ses::Std;
    use uet_wire::{FrameBuilder, Options, Psn, PsnOffset, Start};

    /// Sends the first packet of a message of two, in a context of its own.
    fn open(number: u64, observer: &mut Observer, contexts: &mut OpenContexts) {
        let request = Request::rud().syn(true).spdcid(PdcId(number as u16)).psn_offset(PsnOffset::ZERO);
        let request = request.psn(Psn(7)).clear_psn_offset(-1).done().unwrap();
        let write =
            Std::build(Opcode::UET_WRITE).head(|head| head.som(true)).request_length(10).done().unwrap();
        let mut frame = [0; 256];
        let frame_builder = FrameBuilder::new(request).ses(write).payload(b"first").udp(1);
        let length = frame_builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).emit(&mut frame).unwrap();
        let bytes = &frame[..length];
        let record = Record { number, start: Start::Ip, bytes, wire: length, ..Record::default() };
        let decoded = Decoded::new(record, &Options::default(), false);
        let packet = Observed::of(number, &decoded.packet).unwrap();
        let Facts::Context { context, sender, event, .. } = observer.observe(&packet) else { panic!() };
        let seen = Seen { context: context.id.0, sender, decoded: &decoded, now: None };
        contexts.packet(seen, context, &event);
    }

    #[test]
    fn too_many_open_contexts_are_written() {
        const LIMIT: usize = 30;
        let (mut observer, mut contexts) = (Observer::default(), OpenContexts::with_limit(LIMIT));
        for number in 1..=100 {
            open(number, &mut observer, &mut contexts);
            assert!(contexts.open.len() + contexts.parts < LIMIT + 3);
        }
        // A context has a message and an unacknowledged packet.
        assert_eq!((contexts.open.len(), contexts.parts), (10, 20));
        contexts.end();
        assert_eq!((contexts.open.len(), contexts.parts), (0, 0));
        assert_eq!((contexts.contexts.len(), contexts.messages.len()), (100, 100));
    }
}
