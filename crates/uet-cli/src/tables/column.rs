//! Columns of a table and their values.

use jiff::Timestamp;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::schema::types::Type;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// True or false.
    Boolean,
    /// A number of at most 31 bits, or a signed one of 32 bits.
    Int32,
    /// A number of at most 63 bits, or a signed one of 64 bits.
    Int64,
    /// Nanoseconds since 1970, UTC.
    Timestamp,
    /// UTF-8.
    Text,
}

impl ColumnType {
    /// Returns the name in docs/analysis.md.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Boolean => "boolean",
            ColumnType::Int32 => "int32",
            ColumnType::Int64 => "int64",
            ColumnType::Timestamp => "timestamp",
            ColumnType::Text => "text",
        }
    }

    /// Returns the type of an unsigned field.
    pub(super) fn of_width(bits: usize) -> Self {
        match bits {
            0..=1 => ColumnType::Boolean,
            2..=31 => ColumnType::Int32,
            _ => ColumnType::Int64,
        }
    }

    fn physical(self) -> (Physical, Option<LogicalType>) {
        match self {
            ColumnType::Boolean => (Physical::BOOLEAN, None),
            ColumnType::Int32 => (Physical::INT32, None),
            ColumnType::Int64 => (Physical::INT64, None),
            ColumnType::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        }
    }
}

/// A column of a table. Any of its values may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// The name. In the table of packets, it is the key of the JSON with `_` for each dot.
    pub name: String,
    /// The type.
    pub kind: ColumnType,
    /// The meaning.
    pub doc: String,
}

impl TableColumn {
    pub(super) fn new(name: &str, kind: ColumnType, doc: &str) -> Self {
        TableColumn { name: name.replace('.', "_"), kind, doc: doc.to_owned() }
    }

    pub(super) fn schema(&self) -> Result<Type> {
        let (physical, logical) = self.kind.physical();
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

/// A value in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum CellValue {
    #[default]
    Null,
    Boolean(bool),
    Number(i64),
    Text(ByteArray),
}

impl From<bool> for CellValue {
    fn from(value: bool) -> Self {
        CellValue::Boolean(value)
    }
}

impl From<i64> for CellValue {
    fn from(value: i64) -> Self {
        CellValue::Number(value)
    }
}

impl From<u32> for CellValue {
    fn from(value: u32) -> Self {
        CellValue::Number(value.into())
    }
}

/// Numbers of packets and sums fit; a larger number becomes the largest one.
impl From<u64> for CellValue {
    fn from(value: u64) -> Self {
        CellValue::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<&str> for CellValue {
    fn from(value: &str) -> Self {
        CellValue::Text(value.into())
    }
}

impl From<Timestamp> for CellValue {
    fn from(time: Timestamp) -> Self {
        nanoseconds(time).into()
    }
}

impl<T: Into<CellValue>> From<Option<T>> for CellValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(CellValue::Null, T::into)
    }
}

/// Returns the nanoseconds since 1970; `None` for a time after the year 2262.
pub(super) fn nanoseconds(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}
