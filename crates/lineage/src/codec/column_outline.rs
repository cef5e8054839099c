//! What a range image says of a column whose page has a blob of its own, so that the page need not be read before it is used.
//!
//! ```text
//! encoding (8) | bytes of a value that is found by one load (8), 0 = none; if not: base, and how many there are
//! zones        as in the page, see `column`
//! extremes     of wide types only: 0 (8) where all is NULL, or 1, and the least and the greatest: length, bytes
//! sketch       see `meta`
//! ```
use types::{DataType, Value};

use super::cells::{check_bytes, keys_of};
use super::column::{check_extremes, decode_zones_alone, encode_zones};
use super::meta::{decode_sketch, encode_sketch};
use super::{Damage, Reader, Shape, Writer};
use crate::encoding::{ColumnOutline, Encoding};
use crate::value::cell::{Cell, Scratch, cell_of_value, is_wide, value_of_cell};
use crate::value::sketch::Sketch;

/// Base, length and bytes of a value; `None` where values are not found by one load.
pub(crate) type FlatNumbers = Option<(u64, usize, usize)>;

/// All that is known of a column without its page.
pub(crate) struct ColumnSummary {
    pub(crate) outline: ColumnOutline,
    /// how its values lie, where each is found by one load
    pub(crate) flat: FlatNumbers,
    pub(crate) sketch: Sketch,
}

const ENCODINGS: [Encoding; 6] = [
    Encoding::Constant,
    Encoding::RunLength,
    Encoding::FrameOfReference,
    Encoding::Dictionary,
    Encoding::Float,
    Encoding::Raw,
];

/// Writes what is known of a column.
pub(crate) fn encode_column_outline(outline: &ColumnOutline, flat: FlatNumbers, sketch: &Sketch, writer: &mut Writer) {
    let encoding = ENCODINGS.iter().position(|encoding| *encoding == outline.encoding);
    writer.byte(encoding.expect("all encodings are listed") as u8);
    let (base, len, bytes) = flat.unwrap_or_default();
    writer.byte(bytes as u8);
    if bytes > 0 {
        writer.number(base);
        writer.number(len as u64);
    }
    encode_zones(&outline.zones, writer);
    if is_wide(outline.data_type) {
        let extremes = outline.zone.min.as_ref().zip(outline.zone.max.as_ref());
        writer.byte(u8::from(extremes.is_some()));
        for extreme in extremes.into_iter().flat_map(|(min, max)| [min, max]) {
            let mut scratch = Scratch::default();
            let Cell::Bytes(bytes) = cell_of_value(extreme, outline.data_type, &mut scratch) else {
                unreachable!("a wide value is bytes");
            };
            writer.number(bytes.len() as u64);
            writer.bytes(bytes);
        }
    }
    encode_sketch(sketch, writer);
}

/// Reads what is known of a column of this type.
pub(crate) fn decode_column_outline(
    reader: &mut Reader<'_>,
    shape: Shape<'_>,
    data_type: DataType,
) -> Result<ColumnSummary, Damage> {
    let number = usize::from(reader.byte("an encoding")?);
    let encoding = ENCODINGS.get(number).copied();
    let encoding = encoding.ok_or_else(|| reader.damage(&format!("has a column of encoding {number}")))?;
    let bytes = usize::from(reader.byte("the bytes of a value")?);
    reader.check(matches!(bytes, 0 | 1 | 2 | 4 | 8), || format!("has values of {bytes} bytes"))?;
    let flat = match bytes {
        0 => None,
        _ => Some((reader.number("the base of values")?, reader.count(usize::MAX, "values")?, bytes)),
    };
    let zones = decode_zones_alone(reader, shape.len)?;
    let mut extremes = None;
    if is_wide(data_type) {
        if reader.flag("whether there are values")? {
            extremes = Some((decode_extreme(reader, data_type)?, decode_extreme(reader, data_type)?));
        }
    } else {
        check_extremes(reader, &zones, shape.len, |_| keys_of(data_type), true)?;
    }
    let outline = ColumnOutline::of_zones((data_type, shape.len), encoding, zones, extremes);
    Ok(ColumnSummary { outline, flat, sketch: decode_sketch(reader)? })
}

fn decode_extreme(reader: &mut Reader<'_>, data_type: DataType) -> Result<Value, Damage> {
    let len = reader.count(usize::MAX, "the length of an extreme")?;
    let bytes = reader.bytes(len, "an extreme")?;
    check_bytes(reader, bytes, data_type)?;
    Ok(value_of_cell(Cell::Bytes(bytes), data_type))
}
