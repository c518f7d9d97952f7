//! Tables of packets, contexts, messages and findings in Parquet files (docs/analysis.md).

mod column;
mod contexts;
mod messages;
mod packets;
mod rows;
mod writer;

pub use column::{ColumnType, TableColumn};

use contexts::{ContextRow, OpenContexts};
use messages::{MessageRow, Seen};
use packets::PacketRows;
use rows::FindingRow;
use std::fs;
use std::io;
use std::path::Path;
use uet_conformance::passive::CaptureFinding;
use uet_observe::Facts;
use uet_packet_io::json::Decoded;
use writer::TableWriter;

const PACKETS: &str = "packets";

/// Returns each table with its columns, in order.
pub fn schemas() -> [(&'static str, Vec<TableColumn>); 4] {
    [
        (PACKETS, packets::columns()),
        rows::schema::<ContextRow>(),
        rows::schema::<MessageRow>(),
        rows::schema::<FindingRow>(),
    ]
}

/// The tables of an input. Their files have temporary names until [`finish`](Self::finish).
pub struct Tables {
    packets: TableWriter,
    rows: PacketRows,
    checked: Option<Checked>,
    /// The context of the current packet.
    context: Option<u64>,
}

/// The tables of `uet check`.
struct Checked {
    contexts: TableWriter,
    messages: TableWriter,
    findings: TableWriter,
    open: OpenContexts,
}

impl Tables {
    /// Creates the table of packets, in a directory that need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory or the file cannot be created.
    pub fn of_packets(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let packets = TableWriter::create(directory, PACKETS, &packets::columns())?;
        Ok(Tables { packets, rows: PacketRows::new(), checked: None, context: None })
    }

    /// Creates all tables, in a directory that need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory or a file cannot be created.
    pub fn of_contexts(directory: &Path) -> io::Result<Self> {
        let tables = Self::of_packets(directory)?;
        let checked = Checked {
            contexts: rows::create::<ContextRow>(directory)?,
            messages: rows::create::<MessageRow>(directory)?,
            findings: rows::create::<FindingRow>(directory)?,
            open: OpenContexts::default(),
        };
        Ok(Tables { checked: Some(checked), ..tables })
    }

    /// Takes the facts of the next packet, before [`packet`](Self::packet). The identifiers of contexts count from
    /// `earlier`.
    pub fn facts(&mut self, decoded: &Decoded<'_>, earlier: usize, facts: &Facts<'_>) {
        let (Some(checked), Facts::Context { context, sender, event, .. }) = (&mut self.checked, facts)
        else {
            return;
        };
        let number = earlier as u64 + context.id.0 + 1;
        self.context = Some(number);
        let now = decoded.record.time.and_then(column::nanoseconds);
        let seen = Seen { context: number, sender: *sender, decoded, now };
        checked.open.packet(seen, context, event);
    }

    /// Adds a packet and the findings that it shows.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn packet(&mut self, decoded: &Decoded<'_>, findings: &[CaptureFinding]) -> io::Result<()> {
        let context = self.context.take();
        self.packets.row(self.rows.row(decoded, context))?;
        self.findings(findings, context)?;
        self.checked.as_mut().map_or(Ok(()), Checked::write)
    }

    /// Adds findings about a context, if it is known.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn findings(&mut self, findings: &[CaptureFinding], context: Option<u64>) -> io::Result<()> {
        let Some(checked) = &mut self.checked else { return Ok(()) };
        for finding in findings {
            checked.findings.add(&FindingRow { finding: finding.clone(), context })?;
        }
        Ok(())
    }

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written or renamed.
    pub fn finish(self) -> io::Result<()> {
        let mut complete = vec![self.packets.finish()?];
        if let Some(mut checked) = self.checked {
            checked.open.end();
            checked.write()?;
            for table in [checked.contexts, checked.messages, checked.findings] {
                complete.push(table.finish()?);
            }
        }
        complete.into_iter().try_for_each(|file| file.commit())
    }
}

impl Checked {
    /// Writes the contexts and messages that have ended.
    fn write(&mut self) -> io::Result<()> {
        self.open.contexts.drain(..).try_for_each(|row| self.contexts.add(&row))?;
        self.open.messages.drain(..).try_for_each(|row| self.messages.add(&row))
    }
}
