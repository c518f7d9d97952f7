//! Tables whose rows are values of one type. A column is a name, and the function that reads it from a row.

use super::column::{CellValue, ColumnType, TableColumn};
use super::writer::TableWriter;
use std::io;
use std::path::Path;
use uet_conformance::passive::CaptureFinding;

/// Name, type, meaning and value of a column.
pub(super) type Described<R> = (&'static str, ColumnType, &'static str, fn(&R) -> CellValue);

/// A row of a table.
pub(super) trait TableRow: Sized + 'static {
    /// The name of the table.
    const TABLE: &'static str;
    /// The columns, in order.
    const COLUMNS: &'static [Described<Self>];
}

/// Returns the name and the columns of the table of this type.
pub(super) fn schema<R: TableRow>() -> (&'static str, Vec<TableColumn>) {
    (R::TABLE, R::COLUMNS.iter().map(|(name, kind, doc, _)| TableColumn::new(name, *kind, doc)).collect())
}

/// Creates the table of this type.
pub(super) fn create<R: TableRow>(directory: &Path) -> io::Result<TableWriter> {
    let (name, columns) = schema::<R>();
    TableWriter::create(directory, name, &columns)
}

impl TableWriter {
    /// Adds a row.
    pub(super) fn add<R: TableRow>(&mut self, row: &R) -> io::Result<()> {
        self.row(R::COLUMNS.iter().map(|(.., value)| value(row)))
    }
}

/// A finding, and the context of the packet that shows it.
pub(super) struct FindingRow {
    pub(super) finding: CaptureFinding,
    pub(super) context: Option<u64>,
}

impl TableRow for FindingRow {
    const TABLE: &'static str = "findings";
    const COLUMNS: &'static [Described<Self>] = &[
        ("number", ColumnType::Int64, "the packet that shows it", |row| row.finding.number.into()),
        ("with_number", ColumnType::Int64, "an earlier packet that it contradicts", |row| {
            row.finding.with.into()
        }),
        ("context", ColumnType::Int64, "the context of the packet", |row| row.context.into()),
        ("id", ColumnType::Text, "the requirement, or a word such as `malformed`", |row| {
            row.finding.id.into()
        }),
        ("severity", ColumnType::Text, "`error`, `warning` or `note`", |row| {
            row.finding.severity.name().into()
        }),
        ("culprit", ColumnType::Text, "the address of the end that broke it", |row| {
            row.finding.culprit.map(|culprit| CellValue::from(&*culprit.to_string())).into()
        }),
        ("message", ColumnType::Text, "description", |row| row.finding.message.as_str().into()),
    ];
}
