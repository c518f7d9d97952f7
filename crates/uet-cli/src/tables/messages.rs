//! The table of messages: a row for each message, when all its packets are acknowledged.

use super::column::{CellValue, ColumnType};
use super::rows::{Described, TableRow};
use std::collections::HashMap;
use std::net::IpAddr;
use uet_observe::{Event, SentRequest, Side};
use uet_packet_io::json::Decoded;
use uet_wire::registry::{Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Ext, Ses};

/// A message of a context.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageRow {
    context: u64,
    /// First and last packet, and the packet that acknowledged the last missing one.
    packets: [Option<u64>; 3],
    times: [Option<i64>; 2],
    ends: Option<[IpAddr; 2]>,
    opcode: Option<&'static str>,
    message_id: Option<u16>,
    job_id: Option<u32>,
    request_length: Option<u32>,
    /// The number of payload bytes that all its packets carry, and those of the observed ones.
    expected: Option<u32>,
    bytes: u64,
    sent: u32,
    retransmissions: u32,
    unacknowledged: u32,
    has_first: bool,
    has_last: bool,
    return_code: Option<ReturnCode>,
}

impl MessageRow {
    /// Returns true if all packets of the message were observed and acknowledged.
    fn is_complete(&self) -> bool {
        self.has_last
            && self.unacknowledged == 0
            && self.expected.is_none_or(|expected| self.bytes >= expected.into())
    }

    /// Keeps the first response other than OK.
    fn answered(&mut self, code: ReturnCode) {
        if self.return_code.is_none_or(|before| before == ReturnCode::OK) {
            self.return_code = Some(code);
        }
    }

    fn duration(&self) -> Option<i64> {
        let [start, end] = self.times;
        end?.checked_sub(start?)
    }
}

impl TableRow for MessageRow {
    const TABLE: &'static str = "messages";
    const COLUMNS: &'static [Described<Self>] = &[
        ("context", ColumnType::Int64, "the context", |row| row.context.into()),
        ("src", ColumnType::Text, "the address that sent it", |row| address(row.ends.map(|[src, _]| src))),
        ("dst", ColumnType::Text, "the address that received it", |row| {
            address(row.ends.map(|[_, dst]| dst))
        }),
        ("ses_opcode_name", ColumnType::Text, "the operation; null for the data of a read", |row| {
            row.opcode.into()
        }),
        ("ses_message_id", ColumnType::Int32, "the message ID; null for headers without one", |row| {
            row.message_id.map(u32::from).into()
        }),
        ("ses_job_id", ColumnType::Int32, "the job", |row| row.job_id.into()),
        ("ses_request_length", ColumnType::Int64, "the length that the first packet states", |row| {
            row.request_length.into()
        }),
        ("first_number", ColumnType::Int64, "its first packet", |row| row.packets[0].into()),
        ("last_number", ColumnType::Int64, "its last packet, without retransmissions", |row| {
            row.packets[1].into()
        }),
        ("end_number", ColumnType::Int64, "the ACK of the last packet to be acknowledged", |row| {
            row.packets[2].into()
        }),
        ("start_time", ColumnType::Timestamp, "time of the first packet", |row| row.times[0].into()),
        ("end_time", ColumnType::Timestamp, "time of that ACK", |row| row.times[1].into()),
        ("duration_ns", ColumnType::Int64, "from the first packet to that ACK", |row| row.duration().into()),
        ("packets", ColumnType::Int64, "number of packets, without retransmissions", |row| row.sent.into()),
        ("retransmissions", ColumnType::Int64, "number of retransmissions", |row| row.retransmissions.into()),
        ("ses_return_code_name", ColumnType::Text, "`OK`, or the first other code of a response", |row| {
            row.return_code.and_then(ReturnCode::name).into()
        }),
        ("complete", ColumnType::Boolean, "true if each of its bytes was sent and acknowledged", |row| {
            row.is_complete().into()
        }),
    ];
}

pub(super) fn address(address: Option<IpAddr>) -> CellValue {
    address.map(|address| CellValue::from(&*address.to_string())).into()
}

/// The identity of a message among those of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Identity {
    Request(u16),
    /// The data of a read.
    Response(u16),
    /// A message without ID, which is one packet: the index of its PSN.
    Packet(i64),
}

/// The sender of a message (true for side A) and its identity.
type Key = (bool, Identity);

/// A packet of a context, as it was observed.
#[derive(Clone, Copy)]
pub(super) struct Seen<'s> {
    pub(super) context: u64,
    pub(super) sender: Side,
    pub(super) decoded: &'s Decoded<'s>,
    pub(super) now: Option<i64>,
}

/// The messages of a context that are not complete.
#[derive(Debug, Default)]
pub(super) struct OpenMessages {
    rows: HashMap<Key, MessageRow>,
    /// The messages of unacknowledged packets, by packet number.
    owners: HashMap<u64, Key>,
}

impl OpenMessages {
    /// Returns the number of messages and packets in memory.
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.owners.len()
    }

    /// Ends the context, and passes on the messages that are not complete, in order.
    pub(super) fn end(self, done: &mut Vec<MessageRow>) {
        let mut rows: Vec<_> = self.rows.into_values().collect();
        rows.sort_unstable_by_key(|row| row.packets[0]);
        done.extend(rows);
    }

    /// Applies a packet, and passes on the messages that it completes.
    pub(super) fn packet(&mut self, seen: Seen<'_>, event: &Event, done: &mut Vec<MessageRow>) {
        match event {
            Event::Request { index, sent, earlier } => match earlier {
                None => self.request(seen, *index, sent, done),
                Some(earlier) => {
                    let key = self.owners.get(&earlier.number);
                    if let Some(row) = key.and_then(|key| self.rows.get_mut(key)) {
                        row.retransmissions += 1;
                    }
                }
            },
            Event::Ack { acknowledged, .. } => self.ack(seen, acknowledged, done),
            _ => {}
        }
    }

    fn request(&mut self, seen: Seen<'_>, index: i64, sent: &SentRequest, done: &mut Vec<MessageRow>) {
        let uet = &seen.decoded.packet.uet;
        let Some(ses) = uet.ses else { return };
        let part = Part::of(seen.decoded, ses, index);
        let key = (seen.sender == Side::A, part.identity);
        let number = seen.decoded.record.number;
        if part.is_first && self.rows.get(&key).is_some_and(|row| row.has_first) {
            // The sender uses the message ID again.
            done.extend(self.rows.remove(&key));
        }
        let row = self.rows.entry(key).or_insert_with(|| MessageRow {
            context: seen.context,
            packets: [Some(number), None, None],
            times: [seen.now, None],
            ends: seen.decoded.packet.ip.map(|ip| [ip.src(), ip.dst()]),
            opcode: ses.opcode().and_then(Opcode::name),
            message_id: match part.identity {
                Identity::Request(id) | Identity::Response(id) => Some(id),
                Identity::Packet(_) => None,
            },
            job_id: ses.address().map(|address| address.job_id()),
            ..MessageRow::default()
        });
        row.packets[1] = Some(number);
        row.has_first |= part.is_first;
        row.has_last |= part.is_last;
        row.request_length = row.request_length.or(part.request_length);
        // A message of one packet is complete, although a read or a rendezvous sends fewer bytes than it states.
        row.expected = if part.is_first && part.is_last { Some(0) } else { row.expected.or(part.expected) };
        row.bytes += part.bytes;
        row.sent += 1;
        row.retransmissions += u32::from(sent.retx);
        row.unacknowledged += 1;
        self.owners.insert(number, key);
    }

    fn ack(&mut self, seen: Seen<'_>, acknowledged: &[u64], done: &mut Vec<MessageRow>) {
        // A default response answers a packet, and any other response answers a message.
        let mut default = None;
        let answer = match seen.decoded.packet.uet.ses {
            Some(Ses::Response(header)) => match header.head().opcode() {
                ResponseOpcode::UET_DEFAULT_RESPONSE => {
                    default = Some(header.head().return_code());
                    None
                }
                _ => Some((header.message_id(), header.head().return_code())),
            },
            Some(Ses::ResponseData(header)) => {
                Some((header.read_request_message_id(), header.head().return_code()))
            }
            _ => None,
        };
        if let Some((id, code)) = answer {
            let key = (seen.sender == Side::B, Identity::Request(id));
            self.rows.entry(key).and_modify(|row| row.answered(code));
        }
        for number in acknowledged {
            let Some(key) = self.owners.remove(number) else { continue };
            let Some(row) = self.rows.get_mut(&key) else { continue };
            default.into_iter().for_each(|code| row.answered(code));
            row.unacknowledged = row.unacknowledged.saturating_sub(1);
            row.packets[2] = Some(seen.decoded.record.number);
            row.times[1] = seen.now;
            if row.is_complete() {
                done.extend(self.rows.remove(&key));
            }
        }
    }
}

/// The part of a message that a packet carries.
struct Part {
    identity: Identity,
    is_first: bool,
    is_last: bool,
    request_length: Option<u32>,
    /// The number of bytes that all packets of the message carry.
    expected: Option<u32>,
    bytes: u64,
}

impl Part {
    fn of(decoded: &Decoded<'_>, ses: Ses<'_>, index: i64) -> Self {
        let packet = &decoded.packet;
        let sliced = packet.sliced.map_or(0, |sliced| sliced.wire.saturating_sub(sliced.captured));
        let missing = packet.trimmed.and_then(|trimmed| trimmed.missing).unwrap_or(sliced);
        let bytes = ses.payload_length().map_or((packet.uet.payload.len() + missing) as u64, u64::from);
        match ses {
            Ses::Std(header) => {
                let head = header.head();
                let length = header.request_length();
                let expected = match packet.uet.ext {
                    Some(Ext::Rendezvous(rendezvous)) => Some(rendezvous.eager_length()),
                    // The first packet of a read does not state its part.
                    _ => (head.opcode() != Opcode::UET_READ).then_some(length),
                };
                Part {
                    identity: Identity::Request(header.message_id()),
                    is_first: head.som(),
                    is_last: head.eom(),
                    request_length: Some(length),
                    expected,
                    bytes,
                }
            }
            Ses::ResponseData(header) => {
                let length = header.modified_length();
                Part {
                    identity: Identity::Response(header.response_message_id()),
                    is_first: header.message_offset() == 0,
                    is_last: u64::from(header.message_offset()) + bytes >= length.into(),
                    request_length: Some(length),
                    expected: Some(length),
                    bytes,
                }
            }
            _ => {
                let request_length = match ses {
                    Ses::Medium(header) => Some(header.request_length().into()),
                    Ses::Small(header) => Some(header.request_length().into()),
                    _ => None,
                };
                let identity = Identity::Packet(index);
                Part { identity, is_first: true, is_last: true, request_length, expected: None, bytes }
            }
        }
    }
}
