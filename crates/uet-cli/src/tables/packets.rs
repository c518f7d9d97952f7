//! The table of packets: a row for each packet, with the fields of its headers.

use super::column::{CellValue, ColumnType, TableColumn};
use parquet::data_type::ByteArray;
use std::collections::HashMap;
use std::net::IpAddr;
use uet_packet_io::json::Decoded;
use uet_wire::derived::{DERIVED, Derived, derived};
use uet_wire::layout::{ALL, Kind, Layout, Place};

/// Where the value of a column comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The packet as a whole.
    Whole(ColumnType, &'static str),
    /// A field, by its canonical name.
    Field,
    /// A field with code points: its number, and their names in a column that ends with `_name`.
    Code,
    /// A derived value.
    Derived,
}
use Source::{Code, Field, Whole};

/// The columns by the keys of the JSON. The values of `Whole` are in this order, too.
const SOURCES: &[(&str, Source)] = &[
    ("number", Whole(ColumnType::Int64, "the packet's place in the input, from 1")),
    ("time", Whole(ColumnType::Timestamp, "time of capture")),
    ("src", Whole(ColumnType::Text, "source address")),
    ("dst", Whole(ColumnType::Text, "destination address")),
    ("context", Whole(ColumnType::Int64, "the context, only from `uet check`")),
    ("entropy", Whole(ColumnType::Int32, "entropy value: the UDP source port, or `pds.entropy`")),
    ("payload.length", Whole(ColumnType::Int32, "bytes of payload in the capture")),
    ("trimmed", Whole(ColumnType::Boolean, "true if a switch trimmed the packet")),
    ("sliced", Whole(ColumnType::Boolean, "true if the capture cut the packet")),
    ("error.message", Whole(ColumnType::Text, "the error of a malformed packet")),
    ("ip.dscp", Field),
    ("ip.ecn", Field),
    ("ip.ttl", Field),
    ("udp.dst_port", Field),
    ("tss.sdi", Field),
    ("pds.type", Code),
    ("pds.ctl_type", Code),
    ("pds.next_hdr", Code),
    ("pds.flags.retx", Field),
    ("pds.flags.ar", Field),
    ("pds.flags.syn", Field),
    ("pds.flags.m", Field),
    ("pds.flags.p", Field),
    ("pds.flags.isrod", Field),
    ("pds.flags.req", Code),
    ("pds.spdcid", Field),
    ("pds.dpdcid", Field),
    ("pds.psn", Field),
    ("pds.clear_psn", Source::Derived),
    ("pds.start_psn", Source::Derived),
    ("pds.pkt_id", Field),
    ("pds.ccc_id", Field),
    ("pds.credit_target", Field),
    ("pds.cack_psn", Field),
    ("pds.ack_psn", Source::Derived),
    ("pds.sack_psn", Source::Derived),
    ("pds.probe_opaque", Field),
    ("pds.mp_range", Source::Derived),
    ("pds.cc_type", Code),
    ("pds.service_time", Field),
    ("pds.service_time_ns", Source::Derived),
    ("pds.rc", Field),
    ("pds.rcv_cwnd_pend", Field),
    ("pds.rcvd_bytes", Field),
    ("pds.rcvd_bytes_bytes", Source::Derived),
    ("pds.credit", Field),
    ("pds.credit_bytes", Source::Derived),
    ("pds.ooo_count", Field),
    ("pds.nack_code", Code),
    ("pds.nack_psn", Field),
    ("pds.payload", Field),
    ("ses.opcode", Code),
    ("ses.som", Field),
    ("ses.eom", Field),
    ("ses.message_id", Field),
    ("ses.job_id", Field),
    ("ses.pid_on_fep", Field),
    ("ses.resource_index", Field),
    ("ses.ri_generation", Field),
    ("ses.initiator", Field),
    ("ses.request_length", Field),
    ("ses.payload_length", Field),
    ("ses.message_offset", Field),
    ("ses.end_offset", Source::Derived),
    ("ses.return_code", Code),
    ("ses.modified_length", Field),
    ("ses.read_request_message_id", Field),
    ("ses.response_message_id", Field),
];

/// Returns the columns of the table.
pub(super) fn columns() -> Vec<TableColumn> {
    let columns = SOURCES.iter().flat_map(|(name, source)| match source {
        Whole(kind, doc) => vec![TableColumn::new(name, *kind, doc)],
        Source::Derived => {
            let doc = DERIVED.iter().find(|(derived, _)| derived == name).map_or("", |(_, doc)| doc);
            vec![TableColumn::new(name, ColumnType::Int64, doc)]
        }
        Field | Code => {
            let mut places: Vec<Place> = ALL.iter().flat_map(|layout| layout.fields()).collect();
            places.retain(|place| place.row.name == *name);
            let width = places.iter().map(|place| place.row.width()).max().unwrap_or(0);
            let doc = places.first().map_or("", |place| place.row.doc);
            let number = TableColumn::new(name, ColumnType::of_width(width), doc);
            let text = TableColumn::new(
                &format!("{name}_name"),
                ColumnType::Text,
                &format!("the name of `{}`", number.name),
            );
            if let Code = source { vec![number, text] } else { vec![number] }
        }
    });
    columns.collect()
}

/// The maximum number of addresses whose text is kept.
const ADDRESSES: usize = 1 << 16;

/// Fills the rows of packets.
pub(super) struct PacketRows {
    /// The fields of each header that have a column.
    plans: Vec<Plan>,
    /// The column of each entry of [`DERIVED`].
    derived: Vec<(&'static str, usize)>,
    addresses: HashMap<IpAddr, ByteArray>,
    row: Vec<CellValue>,
}

struct Plan {
    layout: &'static Layout,
    cells: Vec<Cell>,
}

/// A field, and its column.
struct Cell {
    place: Place,
    is_flag: bool,
    column: usize,
    /// For a code point, the names of all values. Their column is the next one.
    names: Option<Vec<CellValue>>,
}

impl PacketRows {
    /// Creates a row of nulls.
    pub(super) fn new() -> Self {
        let row = vec![CellValue::Null; columns().len()];
        PacketRows {
            plans: Vec::new(),
            derived: placed(|source| matches!(source, Source::Derived)),
            addresses: HashMap::new(),
            row,
        }
    }

    /// Returns the row of a packet.
    pub(super) fn row(
        &mut self,
        decoded: &Decoded<'_>,
        context: Option<u64>,
    ) -> impl Iterator<Item = CellValue> + use<'_> {
        let packet = &decoded.packet;
        let [src, dst] = match packet.ip {
            Some(ip) => [ip.src(), ip.dst()].map(|address| self.address(address)),
            None => [CellValue::Null, CellValue::Null],
        };
        let whole = [
            decoded.record.number.into(),
            decoded.record.time.into(),
            src,
            dst,
            context.into(),
            packet.entropy_value().map(u32::from).into(),
            (packet.uet.payload.len() as u64).into(),
            packet.trimmed.is_some().into(),
            packet.sliced.is_some().into(),
            decoded.error().map(|error| CellValue::from(&*error.to_string())).into(),
        ];
        self.row.iter_mut().zip(whole).for_each(|(cell, value)| *cell = value);
        for (layout, header) in decoded.view().headers() {
            let plan = match self.plans.iter().position(|plan| std::ptr::eq(plan.layout, layout)) {
                Some(known) => known,
                None => {
                    self.plans.push(Plan::new(layout, decoded.spec));
                    self.plans.len() - 1
                }
            };
            for Cell { place, is_flag, column, names } in
                self.plans.get(plan).into_iter().flat_map(|plan| &plan.cells)
            {
                let Some(value) = place.read(header).filter(|_| place.exists(header)) else { continue };
                let cells = self.row.get_mut(*column..).unwrap_or_default();
                let [cell, rest @ ..] = cells else { continue };
                *cell =
                    if *is_flag { CellValue::Boolean(value != 0) } else { CellValue::Number(value as i64) };
                if let (Some(names), [name, ..]) = (names, rest) {
                    *name = names.get(value as usize).cloned().unwrap_or_default();
                }
            }
        }
        for (name, value) in derived(&packet.uet) {
            let column = self.derived.iter().find(|(known, _)| *known == name);
            if let (Some((_, column)), Derived::Number(number)) = (column, value) {
                self.row[*column] = number.into();
            }
        }
        self.row.iter_mut().map(std::mem::take)
    }

    fn address(&mut self, address: IpAddr) -> CellValue {
        if self.addresses.len() >= ADDRESSES {
            self.addresses.clear();
        }
        let text = self.addresses.entry(address).or_insert_with(|| ByteArray::from(&*address.to_string()));
        CellValue::Text(text.clone())
    }
}

/// Returns the sources that a condition selects, with their columns.
fn placed(selected: impl Fn(&Source) -> bool) -> Vec<(&'static str, usize)> {
    let mut column = 0;
    let mut found = Vec::new();
    for (name, source) in SOURCES {
        if selected(source) {
            found.push((*name, column));
        }
        column += if let Code = source { 2 } else { 1 };
    }
    found
}

impl Plan {
    fn new(layout: &'static Layout, spec: &'static uet_wire::Spec) -> Self {
        let columns = placed(|source| matches!(source, Field | Code));
        let cells = layout.fields().filter_map(|place| {
            let (_, column) = *columns.iter().find(|(name, _)| *name == place.row.name)?;
            let code = SOURCES.iter().any(|(name, source)| *name == place.row.name && matches!(source, Code));
            let names = match place.row.kind {
                Kind::Code(registry) if code => {
                    let name = |code| spec.entry(registry, code).map(|entry| entry.name).into();
                    Some((0..=u8::MAX).map(name).collect())
                }
                _ => None,
            };
            let is_flag = super::column::ColumnType::of_width(place.row.width()) == ColumnType::Boolean;
            Some(Cell { place, is_flag, column, names })
        });
        Plan { layout, cells: cells.collect() }
    }
}
