//! Checking a range: whether what its pages say of themselves is what they hold, for `lstore verify`.
//!
//! ```text
//! columns       each block's zone (NULLs, extremes, sum) against the values, one by one
//! meta-data     live rows, tombstones, deletes, newest times against the slots
//! chains        Indirection leads to versions of its own record, numbers and times go down
//! ```
//!
//! Pages that are evicted are read back one at a time; that one can't be read is a fault of its own, and the others are
//! looked at.
//!
//! No thread writes to the range meanwhile.
use sync::atomic::Ordering;
use types::{DataType, StartTime, Value};

use crate::content::meta_columns::HINT_SLOTS;
use crate::content::meta_columns::UpdateColumns;
use crate::encoding::simd::BLOCK;
use crate::encoding::{Aggregates, EncodedColumn, Sum};
use crate::memory::source::PageError;
use crate::page::base::{MetaColumns, MetaPage, Page, Values};
use crate::page::lent::Lent;
use crate::record::range::{LATCH, Range};
use crate::table::Table;
use crate::value::kind::Kind;

impl Table {
    /// The faults of a range, each with its place. No thread may write to the range meanwhile.
    pub fn check_range(&self, range: usize) -> Vec<String> {
        self.range(range).check()
    }
}

impl Range {
    fn check(&self) -> Vec<String> {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let mut faults = Vec::new();
        for (number, (page, data_type)) in pages.columns.iter().zip(self.types.iter()).enumerate() {
            let found = check_page(page, *data_type, self.len()).unwrap_or_else(unreadable);
            faults.extend(found.into_iter().map(|fault| format!("column {number}, {fault}")));
            if page.lineage.len() != self.parts.len() {
                faults.push(format!("column {number}: a TPS for {} update ranges", page.lineage.len()));
            }
        }
        if let MetaPage::Base(meta) = &pages.meta {
            faults.extend(self.check_meta(&pages.meta, meta).unwrap_or_else(unreadable));
        }
        for slot in 0..self.len() {
            faults.extend(self.check_chain(slot).map(|fault| format!("slot {slot}: {fault}")));
        }
        faults
    }

    fn check_meta(&self, page: &MetaPage, meta: &MetaColumns) -> Result<Vec<String>, PageError> {
        let (guard, lent) = (&sync::pin(), Lent::new(0));
        let (starts, updates) = (lent.starts(guard, page)?, lent.updates(guard, meta)?);
        let mut faults = Vec::new();
        let slots = 0..self.len();
        let is_deleted = |slot| updates.is_some_and(|updates| updates.is_deleted(slot));
        let tombstones = slots.clone().filter(|slot| starts.is_tombstone(*slot)).count();
        let deleted = slots.clone().filter(|slot| !starts.is_tombstone(*slot) && is_deleted(*slot)).count();
        let live = (self.len() - tombstones - deleted) as u64;
        let mut differs = |what: &str, says: u64, has: u64| {
            if says != has {
                faults.push(format!("meta-data: {what} is said to be {says} and is {has}"));
            }
        };
        differs("the number of live rows", meta.live_rows, live);
        differs("the number of tombstones", meta.tombstones as u64, tombstones as u64);
        differs("whether there are deleted rows", meta.has_deleted.into(), u64::from(deleted > 0));
        for slot in slots {
            let word = starts.word(slot).load(Ordering::Acquire);
            let last_updated = updates.map_or(0, |updates| updates.last_updated[slot]);
            if let StartTime::Committed(at) = StartTime::from_word(word)
                && (at > meta.inserted || at.0.max(last_updated) > meta.newest.0)
            {
                faults.push(format!("meta-data: slot {slot} is newer than the newest time of all"));
            }
        }
        faults.extend(updates.into_iter().flat_map(check_hints));
        Ok(faults)
    }

    /// Walks the versions of a record that are in the tail.
    fn check_chain(&self, slot: usize) -> Option<String> {
        let guard = &sync::pin();
        let tails = &self.part(slot).tails;
        let mut sequence = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        let mut newer = u64::MAX;
        if sequence > tails.allocated() {
            return Some(format!("version {sequence} of {} that there are", tails.allocated()));
        }
        while let Some(record) = if sequence == 0 { None } else { tails.get(guard, sequence) } {
            if record.slot() != slot {
                return Some(format!("version {sequence} is one of slot {}", record.slot()));
            }
            let start = StartTime::from_word(record.start().load(Ordering::Acquire));
            if let (StartTime::Committed(at), Kind::Update | Kind::Delete) = (start, record.kind()) {
                if at.0 > newer {
                    return Some(format!("version {sequence} of commit {} follows one of {newer}", at.0));
                }
                newer = at.0;
            }
            if record.prev() >= sequence {
                return Some(format!("version {sequence} leads to {}", record.prev()));
            }
            sequence = record.prev();
        }
        None
    }
}

fn unreadable(error: PageError) -> Vec<String> {
    vec![error.to_string()]
}

/// The newest updates of every few slots against those of the slots.
fn check_hints(updates: &UpdateColumns) -> Vec<String> {
    let UpdateColumns { last_updated, newest, .. } = updates;
    let of_slots = last_updated.chunks(HINT_SLOTS).map(|chunk| chunk.iter().copied().fold(0, u64::max));
    let differing = newest.iter().zip(of_slots).enumerate().filter(|(_, (says, has))| *says != has);
    let told = |(chunk, (says, has)): (usize, (&u64, u64))| {
        format!("meta-data: the newest update from slot {} on is said to be {says}, not {has}", chunk * HINT_SLOTS)
    };
    differing.map(told).collect()
}

/// Block by block, what the zones say against the values. A page of rows has no zones, and is only read.
fn check_page(page: &Page, data_type: DataType, len: usize) -> Result<Vec<String>, PageError> {
    let guard = &sync::pin();
    let encoded = match &page.values {
        Values::Column(encoded) => encoded,
        Values::Rows(rows) => return rows.hold(guard).map(|_| Vec::new()),
        Values::Insert(_) => return Ok(Vec::new()),
    };
    let column = &*encoded.hold(guard)?;
    if column.len() != len {
        return Ok(vec![format!("{} values for {len} records", column.len())]);
    }
    let blocks = (0..len).step_by(BLOCK).map(|from| (from, len.min(from + BLOCK)));
    Ok(blocks.filter_map(|(from, to)| check_block(column, data_type, from, to)).collect())
}

fn check_block(column: &EncodedColumn, data_type: DataType, from: usize, to: usize) -> Option<String> {
    let mut held = Aggregates::new(data_type);
    (from..to).for_each(|slot| held.add(column.cell(slot)));
    let nulls = to - from - held.count as usize;
    let zone = column.zone(from, to);
    let fault = |what: &str, says: String, has: String| {
        let place = format!("slots {from} to {}", to - 1);
        Some(format!("{place}: {what} is said to be {says} and is {has}"))
    };
    if zone.null_count != nulls {
        return fault("the number of NULLs", zone.null_count.to_string(), nulls.to_string());
    }
    for (what, says, has) in [("the least value", &zone.min, &held.min), ("the greatest value", &zone.max, &held.max)] {
        if !is_same(says.as_ref(), has.as_ref()) {
            return fault(what, format!("{says:?}"), format!("{has:?}"));
        }
    }
    let said = column.aggregate(from, to, None);
    match (said.sum, held.sum) {
        (Sum::Integer(says), Sum::Integer(has)) if says != has && !held.sum_overflows => {
            fault("the sum", says.to_string(), has.to_string())
        }
        _ => None,
    }
}

/// Of two zeros, and of two values that are not numbers, either may stand for both.
fn is_same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Real(left)), Some(Value::Real(right))) => left == right || left.is_nan() && right.is_nan(),
        (Some(Value::Double(left)), Some(Value::Double(right))) => left == right || left.is_nan() && right.is_nan(),
        (left, right) => left == right,
    }
}

#[cfg(test)]
mod tests;
