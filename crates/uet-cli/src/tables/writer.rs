//! Writes the rows of a table to a Parquet file, in groups.

use super::column::{CellValue, ColumnType, TableColumn};
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use uet_packet_io::file::Replacement;

/// The maximum number of rows in memory. A full group is written to the file.
pub(super) const GROUP: usize = 1 << 16;

/// A table, until it is finished under a temporary name.
pub(super) struct TableWriter {
    file: Replacement,
    writer: SerializedFileWriter<File>,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl TableWriter {
    /// Creates the file of a table, `NAME.parquet`.
    pub(super) fn create(directory: &Path, name: &str, columns: &[TableColumn]) -> io::Result<Self> {
        let file = Replacement::new(&directory.join(format!("{name}.parquet")))?;
        let out = file.handle()?;
        let writer = Self::writer(out, name, columns).map_err(into_io)?;
        let buffers = columns.iter().map(Buffer::new).collect();
        Ok(TableWriter { file, writer, buffers, rows: 0 })
    }

    fn writer(out: File, name: &str, columns: &[TableColumn]) -> Result<SerializedFileWriter<File>> {
        let fields = columns.iter().map(|column| column.schema().map(Arc::new)).collect::<Result<_>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_created_by(format!("uet {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::LZ4_RAW)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
    }

    /// Adds a row: a value for each column. A value of another type than its column is an error.
    pub(super) fn row(&mut self, values: impl IntoIterator<Item = CellValue>) -> io::Result<()> {
        let mut values = values.into_iter();
        for buffer in &mut self.buffers {
            buffer.push(values.next().unwrap_or_default())?;
        }
        self.rows += 1;
        if self.rows >= GROUP { self.write_group().map_err(into_io) } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        self.rows = 0;
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.buffers {
            let Some(mut column) = group.next_column()? else { break };
            buffer.write(&mut column)?;
            column.close()?;
        }
        group.close().map(drop)
    }

    /// Ends the file. It still has its temporary name.
    pub(super) fn finish(mut self) -> io::Result<Replacement> {
        if self.rows > 0 {
            self.write_group().map_err(into_io)?;
        }
        self.writer.finish().map_err(into_io)?;
        Ok(self.file)
    }
}

fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// The values of a column that are not yet written.
struct Buffer {
    name: String,
    /// 1 for a value, 0 for a null.
    levels: Vec<i16>,
    cells: Cells,
}

enum Cells {
    Booleans(Vec<bool>),
    Int32s(Vec<i32>),
    Int64s(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl Buffer {
    fn new(column: &TableColumn) -> Self {
        let cells = match column.kind {
            ColumnType::Boolean => Cells::Booleans(Vec::new()),
            ColumnType::Int32 => Cells::Int32s(Vec::new()),
            ColumnType::Int64 | ColumnType::Timestamp => Cells::Int64s(Vec::new()),
            ColumnType::Text => Cells::Texts(Vec::new()),
        };
        Buffer { name: column.name.clone(), levels: Vec::new(), cells }
    }

    fn push(&mut self, value: CellValue) -> io::Result<()> {
        self.levels.push(i16::from(value != CellValue::Null));
        match (&mut self.cells, value) {
            (_, CellValue::Null) => {}
            (Cells::Booleans(cells), CellValue::Boolean(value)) => cells.push(value),
            (Cells::Int64s(cells), CellValue::Number(value)) => cells.push(value),
            (Cells::Int32s(cells), CellValue::Number(value)) if i32::try_from(value).is_ok() => {
                cells.push(value as i32)
            }
            (Cells::Texts(cells), CellValue::Text(value)) => cells.push(value),
            (_, value) => {
                let name = &self.name;
                return Err(io::Error::other(format!(
                    "column {name} cannot hold {value:?}: this is a bug of uet"
                )));
            }
        }
        Ok(())
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match &mut self.cells {
            Cells::Booleans(cells) => batch(column.typed::<BoolType>(), cells, &self.levels)?,
            Cells::Int32s(cells) => batch(column.typed::<Int32Type>(), cells, &self.levels)?,
            Cells::Int64s(cells) => batch(column.typed::<Int64Type>(), cells, &self.levels)?,
            Cells::Texts(cells) => batch(column.typed::<ByteArrayType>(), cells, &self.levels)?,
        }
        self.levels.clear();
        Ok(())
    }
}

fn batch<D: DataType>(
    column: &mut ColumnWriterImpl<'_, D>,
    cells: &mut Vec<D::T>,
    levels: &[i16],
) -> Result<()> {
    column.write_batch(cells, Some(levels), None)?;
    cells.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> [TableColumn; 2] {
        [TableColumn::new("number", ColumnType::Int32, ""), TableColumn::new("a.name", ColumnType::Text, "")]
    }

    fn table() -> TableWriter {
        TableWriter::create(&std::env::temp_dir(), "rows", &columns()).unwrap()
    }

    #[test]
    fn full_group_leaves_the_memory() {
        let mut table = table();
        for number in 0..3 * GROUP as i64 + 7 {
            table.row([CellValue::Number(number), CellValue::Null]).unwrap();
            let held = table.buffers.iter().map(|buffer| buffer.levels.len()).max();
            assert_eq!(held, Some(table.rows));
            assert!(table.rows < GROUP);
        }
        assert_eq!((table.rows, table.writer.flushed_row_groups().len()), (7, 3));
    }

    #[test]
    fn value_of_another_column_is_an_error() {
        let mut table = table();
        table.row([CellValue::Number(1), "text".into()]).unwrap();
        let swapped = table.row(["text".into(), CellValue::Number(1)]).unwrap_err().to_string();
        assert!(swapped.starts_with("column number cannot hold"), "{swapped}");
        let wide = table.row([CellValue::Number(1 << 31), CellValue::Null]).unwrap_err().to_string();
        assert!(wide.starts_with("column number cannot hold"), "{wide}");
    }
}
