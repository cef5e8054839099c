//! What the payload of a log frame says: the operations of one transaction, one after the other.
//!
//! ```text
//! insert  1 | table (4) | rid (8) | cells (2) | cell ...
//! update  2 | table (4) | rid (8) | cells (2) | (column (2) | cell) ...
//! delete  3 | table (4) | rid (8)
//! create  4 | table (4) | length (4) | name, schema and settings as JSON
//! drop    5 | table (4)
//! clock   6 | 0 (4)     | microseconds (8)   the time of this commit, see `wall_clock`
//! settings 7 | table (4) | length (4) | settings as JSON
//! taken back 8 | 0 (4)  | from (8)           the transaction's redo from this byte on to here does not hold
//! rename  9 | table (4) | length (4) | the new name as JSON
//! create index 10 | table (4) | length (4) | definition as JSON
//! drop index 11 | table (4) | length (4) | the name as JSON
//! insert rows 12 | table (4) | rid of the first (8) | length (4) | neighbouring rows, column by column (`lineage::write_rows`)
//! array rows 13 | table (4) | leaf (8) | written (8) | there (8) | length (4) | zigzag varint ...
//!         of 64 keys of an array table: those that were written, those of them that have a row, and the words of these rows
//! update words 14 | table (4) | columns (1) | width (1) | 0 (1) | rid (8) | columns and words, see `narrow_words`
//! insert columns 15 | table (4) | rid of the last (8) | length (4) | all records of its range (`lineage::Table::build_columns`)
//! insert blobs 16 | table (4) | rid of the last (8) | file (8) | salt (8) | length (4) | all records of its range, by the blobs of its
//!         columns in a file of a load (`lineage::EarlyColumns::with_blobs`)
//! cell    0                                  NULL
//!         1 | zigzag varint                  word
//!         2 | length (4) | bytes             bytes
//! ```
//!
//! Numbers are little-endian. Records are named by base Rid, which recovery gives back to them.
use std::cell::Cell as Shell;
use std::ops::Range;

use lineage::{ArrayCells, Cell};
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::{Rid, Schema};

use super::narrow_words;
use crate::error::{Error, Result};
use crate::keys::definition::KeptIndex;
use crate::state::array::leaf::{Leaf, slots};
use crate::terms::settings::TableSettings;
use crate::terms::table_name::TableId;
use crate::terms::wall_clock::Micros;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const CREATE: u8 = 4;
const DROP: u8 = 5;
const CLOCK: u8 = 6;
const SETTINGS: u8 = 7;
const TAKEN_BACK: u8 = 8;
const RENAME: u8 = 9;
const CREATE_INDEX: u8 = 10;
const DROP_INDEX: u8 = 11;
const INSERT_ROWS: u8 = 12;
const ARRAY_ROWS: u8 = 13;
const UPDATE_WORDS: u8 = 14;
const INSERT_COLUMNS: u8 = 15;
const INSERT_BLOBS: u8 = 16;

/// One operation as it was read from a frame.
pub(crate) enum Operation<'a> {
    Insert { table: TableId, rid: Rid, cells: Vec<Cell<'a>> },
    InsertRows { table: TableId, first: Rid, rows: &'a [u8] },
    InsertColumns { table: TableId, last: Rid, columns: &'a [u8] },
    InsertBlobs { table: TableId, last: Rid, file: u64, salt: u64, columns: &'a [u8] },
    Update { table: TableId, rid: Rid, values: Vec<(usize, Cell<'a>)> },
    Delete { table: TableId, rid: Rid },
    Create { table: TableId, name: String, schema: Schema, settings: TableSettings },
    Drop { table: TableId },
    Clock { time: Micros },
    TakenBack { from: u64 },
    Settings { table: TableId, settings: TableSettings },
    Rename { table: TableId, name: String },
    CreateIndex { table: TableId, index: KeptIndex },
    DropIndex { table: TableId, name: String },
    ArrayRows { table: TableId, number: u64, leaf: WrittenLeaf },
}

/// Rows of 64 neighbouring keys of an array table.
pub(crate) struct WrittenLeaf {
    /// a bit for each key
    pub(crate) touched: u64,
    /// of these, a bit for each that has a row; the others were deleted
    pub(crate) present: u64,
    /// of row after row
    pub(crate) words: Vec<u64>,
}

/// Room for the redo of a short transaction, so that it need not grow bit by bit; still a size that allocators keep at hand.
const FIRST_BYTES: usize = 512;

/// Room of more than so many bytes is not kept for the next transaction.
const SPARE_BYTES_MAX: usize = 1 << 14;

thread_local! {
    /// What the last transaction of this thread had, for the next one.
    static SPARE: Shell<Vec<u8>> = const { Shell::new(Vec::new()) };
}

/// The first room of a transaction.
fn make_room(out: &mut Vec<u8>) {
    *out = SPARE.try_with(Shell::take).unwrap_or_default();
    out.reserve(FIRST_BYTES);
}

/// Takes back the room of a transaction that has ended.
#[inline]
pub(crate) fn give_back(mut redo: Vec<u8>) {
    if (1..=SPARE_BYTES_MAX).contains(&redo.capacity()) {
        redo.clear();
        // Where the thread ends there is no next transaction.
        let _ = SPARE.try_with(|spare| spare.set(redo));
    }
}

/// Appends the first `len` bytes of a few. All are copied, as a copy of a fixed size takes one instruction.
#[inline]
fn put_some(out: &mut Vec<u8>, bytes: &[u8; 16], len: usize) {
    debug_assert!(len <= bytes.len(), "{len} of a few bytes");
    let end = out.len() + len;
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// Appends how an operation begins, with a number of cells if it has some.
#[inline]
fn put_head(out: &mut Vec<u8>, operation: u8, table: TableId, rid: Rid, count: Option<usize>) {
    if out.capacity() == 0 {
        make_room(out);
    }
    debug_assert!(count.is_none_or(|count| u16::try_from(count).is_ok()), "invariant 8: {count:?} cells are too many");
    let mut head = [operation; 16];
    head[1..5].copy_from_slice(&table.to_le_bytes());
    head[5..13].copy_from_slice(&rid.word().to_le_bytes());
    head[13..15].copy_from_slice(&(count.unwrap_or(0) as u16).to_le_bytes());
    put_some(out, &head, if count.is_some() { 15 } else { 13 });
}

/// A word as zigzag varint: its bytes, the first of them lowest, and how many they are.
///
/// Groups of seven bits are moved apart by halves, all at once; a word whose varint has more than eight bytes goes byte by byte.
#[inline]
fn varint(word: u64) -> (u128, usize) {
    const GROUPS_MAX: u64 = 1 << 56;
    let zigzag = (word << 1) ^ ((word as i64) >> 63) as u64;
    if zigzag >= GROUPS_MAX {
        return long_varint(zigzag);
    }
    let halves = (zigzag & 0x0fff_ffff) | (zigzag & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    let groups = (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    let last = (63 - (groups | 1).leading_zeros()) / 8;
    let goes_on = 0x8080_8080_8080_8080 & ((1_u64 << (8 * last)) - 1);
    (u128::from(groups | goes_on), last as usize + 1)
}

#[cold]
fn long_varint(mut rest: u64) -> (u128, usize) {
    let (mut bytes, mut len) = ([0; 16], 0);
    while rest >= 0x80 {
        bytes[len] = rest as u8 | 0x80;
        rest >>= 7;
        len += 1;
    }
    bytes[len] = rest as u8;
    (u128::from_le_bytes(bytes), len + 1)
}

/// Appends a word after the first `len` bytes of `before`, 2 at most.
#[inline]
fn put_word(out: &mut Vec<u8>, before: u128, len: usize, word: u64) {
    let (bytes, count) = varint(word);
    let cell = 1 | bytes << 8;
    put_some(out, &(before | cell << (8 * len)).to_le_bytes(), len + 1 + count);
}

/// Appends a cell after the first `len` bytes of `before`, 2 at most.
#[inline]
fn put_cell(out: &mut Vec<u8>, before: u128, len: usize, cell: &Cell<'_>) {
    match cell {
        Cell::Null => put_some(out, &before.to_le_bytes(), len + 1),
        Cell::Word(word) => put_word(out, before, len, *word),
        Cell::Bytes(value) => {
            debug_assert!(u32::try_from(value.len()).is_ok(), "invariant 8: a value of {} bytes", value.len());
            let head = 2 | u128::from(value.len() as u32) << 8;
            put_some(out, &(before | head << (8 * len)).to_le_bytes(), len + 5);
            out.extend_from_slice(value);
        }
    }
}

/// Appends the insertion of a row.
pub(crate) fn put_insert(out: &mut Vec<u8>, table: TableId, rid: Rid, cells: &[Cell<'_>]) {
    put_head(out, INSERT, table, rid, Some(cells.len()));
    cells.iter().for_each(|cell| put_cell(out, 0, 0, cell));
}

/// Appends the insertion of some rows of a batch, which are neighbours from `first` on.
pub(crate) fn put_insert_rows(
    out: &mut Vec<u8>,
    table: TableId,
    first: Rid,
    columns: &[ArrayCells<'_>],
    rows: Range<usize>,
) {
    put_head(out, INSERT_ROWS, table, first, None);
    let length_at = out.len();
    out.extend([0; 4]);
    lineage::write_rows(out, columns, rows);
    let length = out.len() - length_at - 4;
    debug_assert!(u32::try_from(length).is_ok(), "invariant 8: rows of {length} bytes");
    out[length_at..][..4].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Appends the insertion of all records of a range, by its columns.
pub(crate) fn put_insert_columns(out: &mut Vec<u8>, table: TableId, last: Rid, columns: &[u8]) {
    debug_assert!(u32::try_from(columns.len()).is_ok(), "invariant 8: columns of {} bytes", columns.len());
    put_head(out, INSERT_COLUMNS, table, last, None);
    out.extend((columns.len() as u32).to_le_bytes());
    out.extend_from_slice(columns);
}

/// Appends the insertion of all records of a range, by the blobs of its columns in a file with this number and salt.
pub(crate) fn put_insert_blobs(out: &mut Vec<u8>, table: TableId, last: Rid, (file, salt): (u64, u64), columns: &[u8]) {
    debug_assert!(u32::try_from(columns.len()).is_ok(), "invariant 8: blobs that take {} bytes", columns.len());
    put_head(out, INSERT_BLOBS, table, last, None);
    [file, salt].into_iter().for_each(|number| out.extend(number.to_le_bytes()));
    out.extend((columns.len() as u32).to_le_bytes());
    out.extend_from_slice(columns);
}

/// Appends what was written to 64 neighbouring keys of an array table with so many stored columns.
pub(crate) fn put_array_rows(out: &mut Vec<u8>, table: TableId, number: u64, leaf: &Leaf, width: usize) {
    put_head(out, ARRAY_ROWS, table, Rid::from_word(number), None);
    out.extend(leaf.touched.to_le_bytes());
    out.extend(leaf.present.to_le_bytes());
    let length_at = out.len();
    out.extend([0; 4]);
    for slot in slots(leaf.present) {
        for (bytes, len) in (0..width).map(|place| varint(leaf.word(place, slot))) {
            put_some(out, &bytes.to_le_bytes(), len);
        }
    }
    let length = out.len() - length_at - 4;
    debug_assert!(u32::try_from(length).is_ok(), "invariant 8: a leaf of {length} bytes");
    out[length_at..][..4].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Appends an update.
pub(crate) fn put_update(out: &mut Vec<u8>, table: TableId, rid: Rid, values: &[(usize, Cell<'_>)]) {
    put_head(out, UPDATE, table, rid, Some(values.len()));
    for (column, cell) in values {
        debug_assert!(u16::try_from(*column).is_ok(), "invariant 8: column {column} would be another one");
        put_cell(out, u128::from(*column as u16), 2, cell);
    }
}

/// Appends an update by words.
#[inline]
pub(crate) fn put_words(out: &mut Vec<u8>, table: TableId, rid: Rid, columns: &[usize], words: &[u64]) {
    if out.capacity() == 0 {
        make_room(out);
    }
    if words.len() <= narrow_words::COUNT_MAX {
        let mut head = [UPDATE_WORDS; narrow_words::HEAD_BYTES];
        head[1..5].copy_from_slice(&table.to_le_bytes());
        head[8..].copy_from_slice(&rid.word().to_le_bytes());
        narrow_words::put(out, head, columns, words);
    } else {
        put_head(out, UPDATE, table, rid, Some(words.len()));
        columns.iter().zip(words).for_each(|(column, word)| put_word(out, u128::from(*column as u16), 2, *word));
    }
}

/// Appends a delete.
pub(crate) fn put_delete(out: &mut Vec<u8>, table: TableId, rid: Rid) {
    put_head(out, DELETE, table, rid, None);
}

/// Appends the creation of a table.
pub(crate) fn put_create(out: &mut Vec<u8>, table: TableId, name: &str, schema: &Schema, settings: &TableSettings) {
    put_json(out, CREATE, table, &(name, schema, settings));
}

/// Appends new settings of a table.
pub(crate) fn put_settings(out: &mut Vec<u8>, table: TableId, settings: &TableSettings) {
    put_json(out, SETTINGS, table, settings);
}

/// Appends a new name of a table.
pub(crate) fn put_rename(out: &mut Vec<u8>, table: TableId, name: &str) {
    put_json(out, RENAME, table, &name);
}

/// Appends the creation of an index.
pub(crate) fn put_create_index(out: &mut Vec<u8>, table: TableId, index: &KeptIndex) {
    put_json(out, CREATE_INDEX, table, index);
}

/// Appends the end of an index.
pub(crate) fn put_drop_index(out: &mut Vec<u8>, table: TableId, name: &str) {
    put_json(out, DROP_INDEX, table, &name);
}

fn put_json(out: &mut Vec<u8>, operation: u8, table: TableId, content: &impl Serialize) {
    let json = serde_json::to_vec(content).expect("names, schemas and settings are plain data");
    let start = out.len();
    out.push(operation);
    out.extend(table.to_le_bytes());
    out.extend((json.len() as u32).to_le_bytes());
    out.extend(json);
    debug_assert!(
        (Reader { rest: &out[start..] }).operation().is_ok(),
        "invariant 8: recovery would refuse what is written"
    );
}

/// Appends the time of the commit.
pub(crate) fn put_clock(out: &mut Vec<u8>, time: Micros) {
    out.push(CLOCK);
    out.extend(0u32.to_le_bytes());
    out.extend(time.to_le_bytes());
}

/// Appends that what the transaction's redo says from byte `from` on was taken back.
pub(crate) fn put_taken_back(out: &mut Vec<u8>, from: u64) {
    out.push(TAKEN_BACK);
    out.extend(0u32.to_le_bytes());
    out.extend(from.to_le_bytes());
}

/// Appends the end of a table.
pub(crate) fn put_drop(out: &mut Vec<u8>, table: TableId) {
    out.push(DROP);
    out.extend(table.to_le_bytes());
}

/// The parts of a transaction's redo that hold, in order: all but what it took back.
pub(crate) fn held(redo: &[u8]) -> Result<Vec<&[u8]>> {
    let mut held: Vec<Range<usize>> = Vec::new();
    let (mut reader, mut start) = (Reader { rest: redo }, 0);
    while !reader.rest.is_empty() {
        let at = redo.len() - reader.rest.len();
        if let Operation::TakenBack { from } = reader.operation()? {
            held.push(start..at);
            held.retain(|part| (part.start as u64) < from);
            held.iter_mut().for_each(|part| part.end = part.end.min(from as usize));
            start = redo.len() - reader.rest.len();
        }
    }
    held.push(start..redo.len());
    debug_assert!(
        held.iter().all(|part| part.start <= part.end) && held.is_sorted_by_key(|part| part.start),
        "parts of the redo are out of order: {held:?}"
    );
    Ok(held.into_iter().map(|part| &redo[part]).collect())
}

/// Reads the operations of a payload, passing each to `apply`.
pub(crate) fn read(payload: &[u8], mut apply: impl FnMut(Operation<'_>) -> Result<()>) -> Result<()> {
    let mut reader = Reader { rest: payload };
    while !reader.rest.is_empty() {
        apply(reader.operation()?)?;
    }
    Ok(())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| Error::BadRedo("an operation ends early".into()))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn u16(&mut self) -> Result<usize> {
        Ok(u16::from_le_bytes(self.array()?).into())
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn rid(&mut self) -> Result<Rid> {
        Ok(Rid::from_word(u64::from_le_bytes(self.array()?)))
    }

    fn cell(&mut self) -> Result<Cell<'a>> {
        match self.array::<1>()?[0] {
            0 => Ok(Cell::Null),
            1 => Ok(Cell::Word(self.word()?)),
            2 => {
                let len = self.u32()? as usize;
                Ok(Cell::Bytes(self.take(len)?))
            }
            other => Err(Error::BadRedo(format!("unknown cell {other}"))),
        }
    }

    fn json<T: DeserializeOwned>(&mut self, what: &str) -> Result<T> {
        let len = self.u32()? as usize;
        serde_json::from_slice(self.take(len)?).map_err(|error| Error::BadRedo(format!("{what}: {error}")))
    }

    fn word(&mut self) -> Result<u64> {
        let (mut zigzag, mut shift) = (0u64, 0);
        loop {
            let byte = self.array::<1>()?[0];
            if shift > 63 {
                return Err(Error::BadRedo("a number is too long".into()));
            }
            zigzag |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Ok((zigzag >> 1) ^ (zigzag & 1).wrapping_neg());
            }
        }
    }

    fn leaf(&mut self) -> Result<WrittenLeaf> {
        let [touched, present] = [self.array()?, self.array()?].map(u64::from_le_bytes);
        let length = self.u32()? as usize;
        let (mut words, mut reader) = (Vec::new(), Reader { rest: self.take(length)? });
        while !reader.rest.is_empty() {
            words.push(reader.word()?);
        }
        Ok(WrittenLeaf { touched, present, words })
    }

    fn operation(&mut self) -> Result<Operation<'a>> {
        let operation = self.array::<1>()?[0];
        let table = self.u32()?;
        Ok(match operation {
            INSERT => {
                let (rid, count) = (self.rid()?, self.u16()?);
                Operation::Insert { table, rid, cells: (0..count).map(|_| self.cell()).collect::<Result<_>>()? }
            }
            UPDATE => {
                let (rid, count) = (self.rid()?, self.u16()?);
                let values = (0..count).map(|_| Ok((self.u16()?, self.cell()?))).collect::<Result<_>>()?;
                Operation::Update { table, rid, values }
            }
            UPDATE_WORDS => {
                let [count, width, _] = self.array()?.map(usize::from);
                let rid = self.rid()?;
                let words = self.take(narrow_words::bytes_of(count, width)?)?;
                Operation::Update { table, rid, values: narrow_words::read(words, count, width) }
            }
            INSERT_ROWS => {
                let (first, length) = (self.rid()?, self.u32()? as usize);
                Operation::InsertRows { table, first, rows: self.take(length)? }
            }
            INSERT_COLUMNS => {
                let (last, length) = (self.rid()?, self.u32()? as usize);
                Operation::InsertColumns { table, last, columns: self.take(length)? }
            }
            INSERT_BLOBS => {
                let last = self.rid()?;
                let [file, salt] = [self.array()?, self.array()?].map(u64::from_le_bytes);
                let length = self.u32()? as usize;
                Operation::InsertBlobs { table, last, file, salt, columns: self.take(length)? }
            }
            ARRAY_ROWS => Operation::ArrayRows { table, number: self.rid()?.word(), leaf: self.leaf()? },
            DELETE => Operation::Delete { table, rid: self.rid()? },
            CREATE => {
                let (name, schema, settings) = self.json("the description of a table")?;
                Operation::Create { table, name, schema, settings }
            }
            SETTINGS => Operation::Settings { table, settings: self.json("the settings of a table")? },
            CLOCK => Operation::Clock { time: Micros::from_le_bytes(self.array()?) },
            TAKEN_BACK => Operation::TakenBack { from: u64::from_le_bytes(self.array()?) },
            RENAME => Operation::Rename { table, name: self.json("the name of a table")? },
            CREATE_INDEX => Operation::CreateIndex { table, index: self.json("the description of an index")? },
            DROP_INDEX => Operation::DropIndex { table, name: self.json("the name of an index")? },
            DROP => Operation::Drop { table },
            other => return Err(Error::BadRedo(format!("unknown operation {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use lineage::WrittenRows;
    use types::DataType;

    use super::*;

    #[test]
    fn a_varint_has_seven_bits_a_byte() {
        let shifted = (0..64).flat_map(|shift| [1_u64 << shift, (1 << shift) - 1, !(1 << shift), u64::MAX >> shift]);
        for word in shifted.chain((0..10_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 64))) {
            let (bytes, len) = varint(word);
            let bytes = bytes.to_le_bytes();
            assert_eq!(bytes[len..], [0; 16][len..], "nothing behind {word:#x}");
            assert!(bytes[..len - 1].iter().all(|byte| byte & 0x80 != 0) && bytes[len - 1] & 0x80 == 0, "{word:#x}");
            assert!(len == 1 || bytes[len - 1] != 0, "{word:#x} is no longer than it has to be");
            let groups = bytes[..len].iter().rev().fold(0_u64, |word, byte| word << 7 | u64::from(byte & 0x7f));
            assert_eq!((groups >> 1) ^ (groups & 1).wrapping_neg(), word);
        }
    }

    #[test]
    fn operations_come_back_as_they_were_written() {
        let cells = [Cell::Null, Cell::Word(0), Cell::Word(u64::MAX), Cell::Word(1 << 62), Cell::Bytes(b"abc")];
        let values: Vec<(usize, Cell<'_>)> = cells.iter().copied().enumerate().collect();
        let mut payload = Vec::new();
        put_insert(&mut payload, 7, Rid::base(3, 4), &cells);
        put_update(&mut payload, 8, Rid::base(3, 5), &values);
        put_delete(&mut payload, 9, Rid::base(0, 0));
        let numbers = Int64Array::from(vec![Some(5), None, Some(-7)]);
        let columns = [ArrayCells::new(&numbers, DataType::BigInt)];
        put_insert_rows(&mut payload, 6, Rid::base(2, 9), &columns, 1..3);
        let mut seen = 0;
        read(&payload, |operation| {
            match operation {
                Operation::Insert { table, rid, cells: read } => {
                    assert_eq!((table, rid, read.as_slice()), (7, Rid::base(3, 4), &cells[..]));
                }
                Operation::Update { table, rid, values: read } => {
                    assert_eq!((table, rid, read), (8, Rid::base(3, 5), values.clone()));
                }
                Operation::Delete { table, rid } => assert_eq!((table, rid), (9, Rid::base(0, 0))),
                Operation::InsertRows { table, first, rows } => {
                    assert_eq!((table, first), (6, Rid::base(2, 9)));
                    let (rows, mut read) = (WrittenRows::read(rows, &[DataType::BigInt]).unwrap(), Vec::new());
                    let _: Result<(), ()> = rows.each(|_, cells| {
                        read.push(cells[0] == Cell::Null);
                        Ok(())
                    });
                    assert_eq!(read, [true, false]);
                }
                _ => panic!("no other was written"),
            }
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 4);
        for cut in 1..payload.len() {
            let mut operations = 0;
            let outcome = read(&payload[..cut], |_| {
                operations += 1;
                Ok(())
            });
            assert!(outcome.is_err() || operations < 4, "a payload cut at {cut} is not whole");
        }
    }
}
