//! A history page as bytes.
//!
//! ```text
//! slots     positions     which slots have versions
//! first     packed        the number of each one's newest version, and of all versions
//! sequences packed        snapshots, deletes: positions        starts, snapshot starts: packed
//! columns   for each: 0 where no version has a value, or 1 and
//!             present, nulls   positions
//!             values           | 0 | packed                                   plain
//!                              | 1 | distinct, packed | codes, packed         dictionary
//!                              | 2 | heads, positions | newest | others       delta
//!                              | 3 | begins, packed | bytes | codes, packed   bytes
//! ```
use std::ops::Range;
use std::sync::Arc;

use types::DataType;

use super::cells::{check_bytes, check_word};
use super::{BlobKind, Damage, Reader, Shape, Writer};
use crate::history::HistoryPage;
use crate::history::column::{Column, Values};
use crate::history::packed::Packed;
use crate::history::page::span_of;
use crate::value::cell::{Cell, is_wide};

/// The most versions that a page may have.
const VERSIONS_MAX: usize = u32::MAX as usize;

/// The bytes of a page.
pub(crate) fn encode_history_page(page: &HistoryPage) -> Vec<u8> {
    let mut writer = BlobKind::HistoryPage.begin();
    writer.positions(&page.slots);
    writer.packed(&page.first);
    writer.packed(&page.sequences);
    writer.positions(&page.snapshots);
    writer.positions(&page.deletes);
    writer.packed(&page.starts);
    writer.packed(&page.snapshot_starts);
    for column in &page.columns {
        writer.byte(u8::from(column.is_some()));
        if let Some(column) = column {
            encode_column(column, &mut writer);
        }
    }
    writer.finish()
}

fn encode_column(column: &Column, writer: &mut Writer) {
    writer.positions(&column.present);
    writer.positions(&column.nulls);
    match &column.values {
        Values::Plain(words) => {
            writer.byte(0);
            writer.packed(words);
        }
        Values::Dictionary { distinct, codes } => {
            writer.byte(1);
            writer.packed(distinct);
            writer.packed(codes);
        }
        Values::Delta { heads, newest, others } => {
            writer.byte(2);
            writer.positions(heads);
            writer.packed(newest);
            writer.packed(others);
        }
        Values::Bytes { distinct, begins, codes } => {
            writer.byte(3);
            writer.packed(begins);
            writer.number(distinct.len() as u64);
            writer.bytes(distinct);
            writer.packed(codes);
        }
    }
}

/// Decodes the page of versions of the records in `slots`. Their tail records were numbered at most `through`.
pub(crate) fn decode_history_page(
    bytes: &[u8],
    shape: Shape<'_>,
    slots: Range<usize>,
    through: u64,
) -> Result<HistoryPage, Damage> {
    let mut reader = BlobKind::HistoryPage.open(bytes)?;
    let of_slots = reader.positions(slots.end, "slots")?;
    let first_slot = of_slots.iter().next();
    reader.check(first_slot.is_none_or(|first| first >= slots.start), || {
        format!("has slot {first_slot:?}, and its records begin at {}", slots.start)
    })?;
    let first = reader.packed_of(of_slots.len() + 1, "numbers of newest versions")?;
    let versions = check_first(&first, &reader)?;
    let sequences = reader.packed_of(versions, "sequences")?;
    let is_late = sequences.iter().any(|sequence| sequence > through);
    reader.check(!is_late, || format!("has a sequence above {through}"))?;
    let snapshots = reader.positions(versions, "snapshot records")?;
    let deletes = reader.positions(versions, "deletes")?;
    let starts = reader.packed_of(versions - snapshots.len(), "starts")?;
    let snapshot_starts = reader.packed_of(snapshots.len(), "starts of snapshot records")?;
    let is_wrong = starts.iter().chain(snapshot_starts.iter()).any(|start| !shape.is_committed(start));
    reader.check(!is_wrong, || format!("has a version that began at no time up to {}", shape.at.0))?;
    let mut columns = Vec::with_capacity(shape.types.len());
    for data_type in shape.types {
        let is_there = reader.flag("whether a column has values")?;
        columns.push(is_there.then(|| decode_column(&mut reader, versions, *data_type).map(Box::new)).transpose()?);
    }
    let all = |packed: &Packed| packed.iter().collect::<Vec<u64>>();
    let page = HistoryPage {
        sequence_span: span_of(&all(&sequences)),
        start_span: span_of(&all(&starts)),
        slots: Arc::new(of_slots),
        first,
        sequences,
        snapshots,
        deletes,
        starts,
        snapshot_starts,
        columns: columns.into(),
    };
    check_order(&page, &reader)?;
    reader.check_end()?;
    Ok(page)
}

/// Where each record's versions begin ascends from 0, and every record has some. Returns how many versions there are.
fn check_first(first: &Packed, reader: &Reader<'_>) -> Result<usize, Damage> {
    let mut least = 0;
    for (record, number) in first.iter().enumerate() {
        let is_right = if record == 0 { number == 0 } else { number >= least };
        reader.check(is_right && number <= VERSIONS_MAX as u64, || {
            format!("has record {record} begin at version {number}")
        })?;
        least = number + 1;
    }
    Ok(least as usize - 1)
}

/// The updates and deletes of a record come newest first: a search relies on it.
fn check_order(page: &HistoryPage, reader: &Reader<'_>) -> Result<(), Damage> {
    for record in 0..page.slots.len() {
        let numbers = page.numbers(record);
        let before = |number: usize| number - page.snapshots.rank(number);
        let mut newer = u64::MAX;
        for at in before(numbers.start)..before(numbers.end) {
            let start = page.starts.get(at);
            reader.check(start <= newer, || format!("has an older version of record {record} that began later"))?;
            newer = start;
        }
    }
    Ok(())
}

fn decode_column(reader: &mut Reader<'_>, versions: usize, data_type: DataType) -> Result<Column, Damage> {
    let present = reader.positions(versions, "versions with a value")?;
    let nulls = reader.positions(present.len(), "NULLs")?;
    let len = present.len() - nulls.len();
    let form = reader.byte("the form of a column")?;
    reader.check((form == 3) == is_wide(data_type), || format!("has a column of {data_type} in form {form}"))?;
    let values = match form {
        0 => Values::Plain(reader.packed_of(len, "values")?),
        1 => {
            let distinct = reader.packed(len, "distinct values")?;
            let codes = codes(reader, len, distinct.len())?;
            Values::Dictionary { distinct, codes }
        }
        2 => {
            let heads = reader.positions(len, "newest values")?;
            reader.check(len == 0 || heads.contains(0), || "has values before a record's newest".into())?;
            let newest = reader.packed_of(heads.len(), "newest values")?;
            let others = reader.packed_of(len - heads.len(), "older values")?;
            Values::Delta { heads, newest, others }
        }
        3 => decode_bytes(reader, len, data_type)?,
        form => return Err(reader.damage(&format!("has a column in form {form}"))),
    };
    if form != 3 {
        for number in 0..len {
            let Cell::Word(word) = values.get(number) else { continue };
            check_word(reader, word, data_type)?;
        }
    }
    Ok(Column { present, nulls, values })
}

fn decode_bytes(reader: &mut Reader<'_>, len: usize, data_type: DataType) -> Result<Values, Damage> {
    let begins = reader.packed(len + 1, "places of distinct values")?;
    let size = reader.count(usize::MAX, "the size of distinct values")?;
    let distinct = reader.bytes(size, "distinct values")?;
    reader.check(begins.len() > 0 && begins.get(0) == 0, || "has no first distinct value".into())?;
    for i in 1..begins.len() {
        let (from, to) = (begins.get(i - 1), begins.get(i));
        reader.check(from <= to && to <= size as u64, || format!("has a value from {from} to {to} of {size} bytes"))?;
        check_bytes(reader, &distinct[from as usize..to as usize], data_type)?;
    }
    let codes = codes(reader, len, begins.len() - 1)?;
    Ok(Values::Bytes { distinct: distinct.into(), begins, codes })
}

fn codes(reader: &mut Reader<'_>, len: usize, entries: usize) -> Result<Packed, Damage> {
    let codes = reader.packed_of(len, "codes")?;
    let is_outside = codes.iter().any(|code| code >= entries as u64);
    reader.check(!is_outside, || format!("has a code beyond its {entries} distinct values"))?;
    Ok(codes)
}
