//! The nouns that several crates share: identifiers of records, points in time, types, values and schemas.
//!
//! Nothing here acts: this crate gives words to the others and depends on none of them. The one foreign
//! world it names is Arrow's schema, as every column type has exactly one Arrow type (see [`DataType::to_arrow`]).
#![forbid(unsafe_code)]

mod array;
mod array_items;
mod ascii;
mod blob;
mod calendar;
mod collation;
mod data_type;
mod enums;
mod extent;
mod float;
pub mod geometry;
mod interval;
pub mod json;
pub mod network;
pub mod numeric;
pub mod range;
mod range_bounds;
mod rid;
mod schema;
mod stable_hash;
mod time;
mod time_digits;
pub mod trigrams;
mod value;
mod zoned_time;

pub use array::ArrayValue;
pub use ascii::is_ascii;
pub use blob::BlobRef;
pub use calendar::civil;
pub use collation::Collation;
pub use data_type::{ArrayItem, DataType};
pub use enums::{EnumDefinition, EnumType, EnumValue};
pub use extent::{EXTENT_DIMENSIONS_MAX, Extent};
pub use float::{double_text, real_text};
pub use geometry::{Geometry, GeometryKind};
pub use interval::Interval;
pub use network::{Network, NetworkKind};
pub use numeric::Numeric;
pub use range::{RangeKind, RangeValue};
pub use rid::Rid;
pub use schema::{COLUMNS_MAX, Column, Schema, SchemaError};
pub use stable_hash::{STABLE_SEED, stable_hash};
pub use time::{Command, Snapshot, StartTime, Timestamp, TxnId};
pub use time_digits::{IntervalFields, SECOND_DIGITS_MAX, TimeKind};
pub use value::{Decimal, Value, has_at_most};
pub use zoned_time::{ZONED_TIME_BYTES, ZonedTime};
