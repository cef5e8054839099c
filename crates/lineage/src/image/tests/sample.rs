//! A table of every type, with a past, and all that can be asked of it.
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema};
use types::json::{Json, Jsonb};
use types::{
    ArrayItem, ArrayValue, Column, DataType, Interval, Numeric, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId,
    Value,
};

use super::{Blobs, Shelf};
use crate::image::{PageReading, RestoreError};
use crate::page::text::simple;
use crate::record::view::{Outcome, Outcomes, View};
use crate::value::cell::{Cell, Scratch, cell_of_value};
use crate::{Change, Comparison, Layout, MemoryBudget, Projection, Request, Table, Test};

/// Everything is stamped, but for what one transaction wrote that still runs.
pub(crate) struct OneRuns;

impl Outcomes for OneRuns {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Active
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nobody is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

pub(crate) const TYPES: [DataType; 20] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 12, scale: 2 },
    DataType::Decimal { precision: 38, scale: 2 },
    DataType::Numeric,
    DataType::Text { max_chars: Some(40) },
    DataType::Bytea,
    DataType::Date,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Uuid,
    DataType::Json,
    DataType::Jsonb,
    DataType::Time,
    DataType::Interval,
    DataType::Array(ArrayItem::TEXT),
];

/// Numbers of no kind.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24 ^ self.0 >> 50
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A value: one of many or of few, now and then NULL.
pub(crate) fn value(data_type: DataType, random: &mut Random, distinct: u64) -> Value {
    let number = random.next() % distinct;
    if random.below(9) == 0 {
        return Value::Null;
    }
    match data_type.whole() {
        DataType::TimeDigits { .. } => Value::Null,
        DataType::Boolean => Value::Boolean(number.is_multiple_of(2)),
        DataType::SmallInt => Value::SmallInt(number as i16),
        DataType::Integer => Value::Integer(number as i32 - 50),
        DataType::BigInt => Value::BigInt((number * number) as i64),
        DataType::Real => Value::Real(number as f32 / 4.0),
        DataType::Double if number.is_multiple_of(97) => Value::Double(f64::NAN),
        DataType::Double => Value::Double(number as f64 / 4.0),
        DataType::Decimal { precision: 12, scale } => Value::decimal(number as i128 % 1_000_000 - 5, scale),
        DataType::Decimal { scale, .. } => Value::decimal(i128::from(number) << 60, scale),
        DataType::Numeric => Value::from(Numeric::new(number.into(), 3)),
        DataType::Text { .. } | DataType::Char { .. } => {
            Value::from(format!("{}text {number} ä", "long ".repeat((number % 5) as usize)))
        }
        DataType::Bytea => Value::from(vec![number as u8; (number % 40) as usize]),
        DataType::Date => Value::Date(number as i32),
        DataType::Timestamp => Value::Timestamp(number as i64 * 1_000_000),
        DataType::TimestampTz => Value::TimestampTz(-(number as i64)),
        DataType::Uuid => Value::Uuid(std::array::from_fn(|i| (number >> (i % 8)) as u8)),
        DataType::Json => Value::Json(format!("{{\"a\": {number}}}")),
        DataType::Jsonb => Value::Jsonb(Jsonb::of(&Json::Array(vec![Json::Null; number as usize % 9]))),
        DataType::Time => Value::Time(number as i64),
        DataType::TimeTz => Value::TimeTz(types::ZonedTime { micros: number as i64, east: -3600 }),
        DataType::Array(item) => Value::Array(ArrayValue::of(item, &[Value::from(format!("{number}")), Value::Null])),
        DataType::Interval => Value::Interval(Interval { months: number as i32, days: 1, micros: -5 }),
        DataType::Enum(of) => Value::Enum(types::EnumValue { of, position: number as i64 }),
        DataType::Range(kind) => {
            types::RangeValue::new(kind, Some((number.into(), true)), None).expect("no upper bound").into()
        }
        DataType::Geometry(kind) => Value::Geometry(types::Geometry::of_numbers(kind, [number as f64, 0.5, 1.0, 0.0])),
        DataType::Network(kind) => {
            let bytes = (number as u32).to_be_bytes();
            let address = types::Network::new(kind, types::network::Family::V4, &bytes, 32);
            Value::Network(address.expect("a host is a network, too"))
        }
    }
}

/// A table with a past up to a time.
pub(crate) struct Sample {
    pub(crate) table: Table,
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) distinct: u64,
}

pub(super) fn empty(layout: Layout, range_records: usize, update_range_records: usize) -> Table {
    let columns = TYPES.iter().enumerate();
    let columns = columns.map(|(i, data_type)| Column::new(format!("c{i}"), *data_type)).collect();
    let options = simple::options(layout, range_records, update_range_records);
    Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::default())
}

impl Sample {
    /// Two ranges of `range_records`, the second with a few records.
    pub(crate) fn new(layout: Layout, range_records: usize, distinct: u64, seed: u64) -> Sample {
        let table = empty(layout, range_records, range_records / 4);
        let mut sample = Sample { table, now: 1, random: Random(seed), distinct };
        (0..range_records + range_records / 3).for_each(|_| sample.insert());
        sample
    }

    pub(super) fn insert(&mut self) {
        let values = TYPES.map(|data_type| value(data_type, &mut self.random, self.distinct));
        let mut scratch: [Scratch; TYPES.len()] = Default::default();
        let cells = values.iter().zip(TYPES).zip(&mut scratch);
        let cells: Vec<Cell<'_>> = cells.map(|((value, of), scratch)| cell_of_value(value, of, scratch)).collect();
        self.now += self.random.next() % 2;
        let is_second = self.table.range_count() > 1;
        let word = match self.random.below(12) {
            0 => StartTime::TOMBSTONE,
            1 if is_second => TxnId::new(1).word(),
            _ => self.now,
        };
        self.table.insert(&cells, word);
    }

    /// Updates or deletes records of a range, commits most of it, and merges and archives in between.
    pub(crate) fn change(&mut self, range: usize, changes: usize) {
        for change in 0..changes {
            let slot = self.random.below(self.table.range(range).len());
            let column = self.random.below(TYPES.len());
            self.now += 1;
            let word = if self.random.below(7) == 0 { TxnId::new(1).word() } else { self.now };
            let (rid, view) = (Rid::base(range, slot), view(self.now));
            let value = value(TYPES[column], &mut self.random, self.distinct);
            let mut scratch = Scratch::default();
            let cells = [(column, cell_of_value(&value, TYPES[column], &mut scratch))];
            let is_delete = self.random.below(40) == 0;
            let change_of = if is_delete { Change::Delete } else { Change::Update(&cells) };
            let appended = self.table.append(view, word, rid, change_of);
            if let Ok(appended) = appended
                && word != self.now
                && (change * 4 < changes * 3 || self.random.below(4) > 0)
            {
                self.table.stamp_versions(&sync::pin(), rid, appended, TxnId::new(1), StartTime::TOMBSTONE);
            }
            match change % 97 {
                40 => drop(self.table.merge_range(range, &OneRuns, Timestamp::ZERO)),
                60 => drop(self.table.merge_columns(range, &[1, 5, 8], &OneRuns, Timestamp::ZERO)),
                80 => drop(self.table.archive_range(range, Timestamp::ZERO, true)),
                _ => {}
            }
        }
    }

    /// Writes images of all ranges; says which, and whether each is unchanged.
    pub(super) fn image(&self, blobs: &mut Blobs) -> Vec<(types::BlobRef, bool)> {
        blobs.begin();
        let images = (0..self.table.range_count()).map(|range| {
            let Ok(image) = self.table.image_range(range, &OneRuns, || Timestamp(self.now), blobs);
            let named = (image.blob, image.is_unchanged);
            assert_eq!(image.at, Timestamp(self.now));
            image.published();
            named
        });
        images.collect()
    }

    pub(super) fn restored(
        &self,
        images: &[(types::BlobRef, bool)],
        blobs: &Blobs,
    ) -> Result<Table, RestoreError<&'static str>> {
        let options = self.table.options();
        let table = empty(options.layout, options.range_records, options.update_range_records);
        restore(&table, images, blobs, PageReading::AtOnce)?;
        Ok(table)
    }

    /// The table with its pages on a shelf, none of which was read yet, and the account of its memory.
    pub(super) fn restored_unread(
        &self,
        images: &[(types::BlobRef, bool)],
        blobs: &Blobs,
    ) -> Result<(Table, Arc<MemoryBudget>), RestoreError<&'static str>> {
        let (shelf, budget) = Shelf::with_budget();
        shelf.fill(blobs);
        let table = Table::new(self.table.schema().clone(), *self.table.options(), budget.clone());
        restore(&table, images, blobs, PageReading::WhenUsed)?;
        Ok((table, budget))
    }
}

fn restore(
    table: &Table,
    images: &[(types::BlobRef, bool)],
    blobs: &Blobs,
    reading: PageReading,
) -> Result<(), RestoreError<&'static str>> {
    for (range, (blob, _)) in images.iter().enumerate() {
        table.restore_range(range, *blob, blobs, (reading, "t"))?;
    }
    table.finish_recovery();
    Ok(())
}

pub(crate) fn view(at: u64) -> View<'static, OneRuns> {
    View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &OneRuns }
}

/// All that a table answers about a moment, in words.
pub(super) fn answers(table: &Table, at: u64) -> Vec<String> {
    let (all, view): (Vec<usize>, _) = ((0..TYPES.len()).collect(), view(at));
    let mut answers = Vec::new();
    let field = |(i, data_type): (usize, &DataType)| Field::new(format!("c{i}"), data_type.to_stored_arrow(), true);
    let mut fields: Vec<Field> = TYPES.iter().enumerate().map(field).collect();
    fields.push(Field::new("rid", arrow_schema::DataType::UInt64, false));
    let schema = Arc::new(ArrowSchema::new(fields));
    for range in 0..table.range_count() {
        for slot in 0..table.range(range).len() {
            let rid = Rid::base(range, slot);
            answers.push(format!("{rid:?} {:?}", table.read_values(view, rid, &all)));
            answers.push(format!("{rid:?} {:?}", table.read_values(view, rid, &[slot % TYPES.len()])));
        }
        let test = (3, Test::Compare(Comparison::Less, Value::BigInt(900)));
        let text = (8, Test::Compare(Comparison::Greater, Value::from("long")));
        for tests in [vec![], vec![test], vec![text]] {
            let request = Request { columns: all.clone(), tests: tests.clone() };
            let totals = table.aggregate_range(range, view, &request);
            answers.push(format!("{range}: {totals:?}"));
            let request = Request { columns: all.clone(), tests };
            let projection = Projection { request, with_rid: true, schema: schema.clone() };
            answers.extend(table.scan_range(range, view, &projection).iter().map(|batch| format!("{batch:?}")));
        }
    }
    answers
}

/// A table's knowledge of its past.
pub(super) fn history(table: &Table, now: u64) -> Vec<String> {
    let mut answers = vec![format!("{:?} {:?}", table.statistics(), table.horizon())];
    for range in 0..table.range_count() {
        answers.push(format!("{:?}", table.changed(range, Timestamp(now / 3), Timestamp(now), &OneRuns)));
        for slot in 0..table.range(range).len() {
            let rid = Rid::base(range, slot);
            answers.push(format!("{:?}", table.version_times(rid, Timestamp(now), &OneRuns)));
        }
    }
    answers
}

/// Every value of some columns that records had at some time: what an index has to find.
pub(super) fn versions(table: &Table, range: usize, columns: &[usize]) -> std::collections::BTreeSet<String> {
    let mut seen = std::collections::BTreeSet::new();
    table
        .for_each_version_of_columns(range, columns, |rid, cells| {
            seen.insert(format!("{rid:?} {cells:?}"));
        })
        .unwrap();
    seen
}
