//! Pages of rows, the meta-data columns of base records, and sketches as bytes.
//!
//! ```text
//! rows            rows | columns | type (24) of each | words | NULLs, in words | size | bytes | sketch of each column
//! start times     packed, 0 for a tombstone
//! update columns  Last Updated Time, packed | Schema Encoding, packed, word by word | deletes, in words
//! sketch          registers that are not 0, positions | their ranks (8 each)
//! ```
use types::StartTime;

use super::cells::{check_bytes, check_word};
use super::{BlobKind, Damage, Reader, Shape, Writer};
use crate::content::meta_columns::UpdateColumns;
use crate::content::row_page::RowPage;
use crate::history::positions::Positions;
use crate::value::cell::{Cell, is_wide};
use crate::value::sketch::{RANK_MAX, REGISTERS, Sketch};

/// The bytes of a page of rows, and of the sketches of its columns.
pub(crate) fn encode_rows<'a>(shape: Shape<'_>, page: &RowPage, sketches: impl Iterator<Item = &'a Sketch>) -> Vec<u8> {
    let mut writer = BlobKind::Rows.begin();
    writer.number(shape.len as u64);
    writer.number(shape.types.len() as u64);
    shape.types.iter().for_each(|data_type| writer.data_type(*data_type));
    writer.array(&page.words);
    writer.array(&page.nulls);
    writer.number(page.bytes.len() as u64);
    writer.bytes(&page.bytes);
    sketches.for_each(|sketch| encode_sketch(sketch, &mut writer));
    writer.finish()
}

/// The rows of a range, and the sketch of each column.
pub(crate) fn decode_rows(bytes: &[u8], shape: Shape<'_>) -> Result<(RowPage, Vec<Sketch>), Damage> {
    let mut reader = BlobKind::Rows.open(bytes)?;
    let reader = &mut reader;
    let (len, width) = (reader.count(shape.len, "rows")?, reader.count(shape.types.len(), "columns")?);
    reader.check(len == shape.len && width == shape.types.len(), || {
        format!("has {len} rows of {width} columns, and its range {} of {}", shape.len, shape.types.len())
    })?;
    shape.types.iter().try_for_each(|data_type| reader.data_type(*data_type))?;
    let words = reader.array::<u64>(len * width, "words")?;
    let nulls = reader.array::<u64>(len * shape.set_words(), "NULLs")?;
    let size = reader.count(u32::MAX as usize, "the size of long values")?;
    let long = reader.bytes(size, "long values")?;
    let wide = shape.types.iter().map(|data_type| is_wide(*data_type)).collect();
    let page = RowPage { wide, words: words.into(), nulls: nulls.into(), bytes: long.into() };
    check_rows(reader, shape, &page)?;
    let sketches = shape.types.iter().map(|_| decode_sketch(reader)).collect::<Result<Vec<_>, _>>()?;
    reader.check_end()?;
    Ok((page, sketches))
}

/// Long values lie within the page's bytes, and all values are of their types.
fn check_rows(reader: &Reader<'_>, shape: Shape<'_>, page: &RowPage) -> Result<(), Damage> {
    let width = shape.types.len();
    for (at, word) in page.words.iter().enumerate() {
        let (slot, column) = (at / width, at % width);
        let (end, is_null) = (u64::from(*word as u32) + (word >> 32), page.is_null(column, slot));
        if page.wide[column] && !is_null {
            reader.check(end <= page.bytes.len() as u64, || format!("has a value that ends at {end}"))?;
        }
        match page.cell(column, slot) {
            Cell::Null => {}
            Cell::Word(word) => check_word(reader, word, shape.types[column])?,
            Cell::Bytes(bytes) => check_bytes(reader, bytes, shape.types[column])?,
        }
    }
    Ok(())
}

/// The bytes of Start Time, one word for each base record.
pub(crate) fn encode_start_times(words: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut writer = BlobKind::StartTimes.begin();
    let number = |word: u64| if word == StartTime::TOMBSTONE { 0 } else { word };
    writer.numbers(&words.map(number).collect::<Vec<u64>>());
    writer.finish()
}

/// Start Time of the base records.
pub(crate) fn decode_start_times(bytes: &[u8], shape: Shape<'_>) -> Result<Vec<u64>, Damage> {
    let mut reader = BlobKind::StartTimes.open(bytes)?;
    let numbers = reader.numbers_of(shape.len, "start times")?;
    let words = numbers.into_iter().map(|number| start_word(&reader, shape, number));
    let words = words.collect::<Result<Vec<u64>, Damage>>()?;
    reader.check_end()?;
    Ok(words)
}

/// The Start Time that is written as this number.
pub(crate) fn start_word(reader: &Reader<'_>, shape: Shape<'_>, number: u64) -> Result<u64, Damage> {
    reader.check(number == 0 || shape.is_committed(number), || {
        format!("has a record inserted at {number}, and its image is of {}", shape.at.0)
    })?;
    Ok(if number == 0 { StartTime::TOMBSTONE } else { number })
}

/// The bytes of the meta-data columns of updated records.
pub(crate) fn encode_update_columns(shape: Shape<'_>, updates: &UpdateColumns) -> Vec<u8> {
    let mut writer = BlobKind::UpdateColumns.begin();
    writer.numbers(&updates.last_updated);
    let set_words = shape.set_words();
    for i in 0..set_words {
        writer.numbers(&updates.ever.iter().copied().skip(i).step_by(set_words).collect::<Vec<u64>>());
    }
    writer.array(&updates.deleted);
    writer.finish()
}

/// The meta-data columns of updated records.
pub(crate) fn decode_update_columns(bytes: &[u8], shape: Shape<'_>) -> Result<UpdateColumns, Damage> {
    let mut reader = BlobKind::UpdateColumns.open(bytes)?;
    let set_words = shape.set_words();
    let mut updates = UpdateColumns::untouched(shape.len, set_words);
    updates.last_updated = reader.numbers_of(shape.len, "times of updates")?.into();
    let wrong = updates.last_updated.iter().find(|at| **at != 0 && !shape.is_committed(**at));
    reader.check(wrong.is_none(), || format!("has an update at {wrong:?}, and its image is of {}", shape.at.0))?;
    for i in 0..set_words {
        let words = reader.numbers_of(shape.len, "sets of updated columns")?;
        let is_within = words.iter().all(|word| word & !shape.columns_of_word(i) == 0);
        reader.check(is_within, || "has updates of columns that are not there".into())?;
        words.into_iter().enumerate().for_each(|(slot, word)| updates.ever[slot * set_words + i] = word);
    }
    updates.deleted = reader.array::<u64>(shape.len.div_ceil(64), "deletes")?.into();
    updates.note_newest();
    reader.check_end()?;
    Ok(updates)
}

pub(crate) fn encode_sketch(sketch: &Sketch, writer: &mut Writer) {
    let ranks = || sketch.registers.iter().copied();
    let used: Vec<u64> = ranks().enumerate().filter(|(_, rank)| *rank != 0).map(|(at, _)| at as u64).collect();
    writer.positions(&Positions::of(&used, REGISTERS));
    writer.bytes(&ranks().filter(|rank| *rank != 0).collect::<Vec<u8>>());
}

pub(crate) fn decode_sketch(reader: &mut Reader<'_>) -> Result<Sketch, Damage> {
    let mut sketch = Sketch::default();
    let used = reader.positions(REGISTERS, "registers of a sketch")?;
    let ranks = reader.bytes(used.len(), "ranks of a sketch")?;
    let greatest = ranks.iter().fold(0, |greatest: u8, rank| greatest.max(*rank));
    reader.check(greatest <= RANK_MAX, || format!("has a sketch with rank {greatest}"))?;
    match used {
        // As of a column with many values, which most are.
        Positions::All(len) => sketch.registers[..len].copy_from_slice(ranks),
        _ => used.iter().zip(ranks).for_each(|(at, rank)| sketch.registers[at] = *rank),
    }
    Ok(sketch)
}
