//! Calls column by column, and their schema in Parquet.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, Repetition, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::Type;

/// The columns in their order. Changing any of them makes another version of the format.
pub(crate) const COLUMNS: [(&str, PhysicalType); 14] = [
    ("thread", PhysicalType::INT32),
    ("function", PhysicalType::INT32),
    ("computing_ns", PhysicalType::INT64),
    ("waiting_ns", PhysicalType::INT64),
    ("duration_ns", PhysicalType::INT64),
    ("session", PhysicalType::INT32),
    ("mechanism", PhysicalType::INT64),
    ("object", PhysicalType::INT32),
    ("input_bytes", PhysicalType::INT32),
    ("output_bytes", PhysicalType::INT32),
    ("shape", PhysicalType::INT64),
    ("detail", PhysicalType::INT32),
    ("result", PhysicalType::INT64),
    ("flags", PhysicalType::INT32),
];

/// Times differ from row to row and are packed as differences; all else repeats itself and is kept
/// as indices into a dictionary.
const TIMES: [&str; 2] = ["computing_ns", "duration_ns"];

/// A call has no mechanism.
pub(crate) const NO_MECHANISM: i64 = -1;

pub(crate) const FLAG_AFTER_WAIT: i32 = 1;
pub(crate) const FLAG_ONLY_LENGTH: i32 = 2;
pub(crate) const FLAG_ON_TOKEN: i32 = 4;
pub(crate) const FLAG_UNFINISHED: i32 = 8;
/// All that may be set.
pub(crate) const FLAGS: i32 = 15;

pub(crate) fn schema() -> Result<Arc<Type>> {
    let column = |(name, physical): (&str, PhysicalType)| {
        let column = Type::primitive_type_builder(name, physical);
        column.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let fields = COLUMNS.into_iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder("workload").with_fields(fields).build()?))
}

pub(crate) fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for times in TIMES {
        properties = properties
            .set_column_dictionary_enabled(times.into(), false)
            .set_column_encoding(times.into(), Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
