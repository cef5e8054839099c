//! Rows of ten whole numbers, the first of which is their key: a table, and its rows as Arrow batches.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use engine::{Column, DataType, Database, Schema, Table};

/// How many numbers a row has.
pub(crate) const COLUMNS: usize = 10;

/// Makes the table, empty.
pub(crate) fn create(db: &Database) -> engine::Result<Table> {
    let columns = (0..COLUMNS).map(|column| Column::new(format!("c{column}"), DataType::BigInt).not_null()).collect();
    let schema = Schema::new(columns, &["c0"]).expect("the columns have names of their own");
    db.create_table("numbers", schema)
}

/// These rows, in batches of so many.
pub(crate) fn batches(rows: Range<usize>, of: usize) -> impl Iterator<Item = RecordBatch> {
    rows.clone().step_by(of).map(move |first| batch(first..rows.end.min(first + of)))
}

fn batch(rows: Range<usize>) -> RecordBatch {
    let value = |row: usize, column: usize| match column {
        0 => row as i64,
        _ => ((row * COLUMNS + column) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 >> 32,
    };
    let array = |column| -> (String, ArrayRef) {
        let values = Int64Array::from_iter_values(rows.clone().map(|row| value(row, column)));
        (format!("c{column}"), Arc::new(values))
    };
    RecordBatch::try_from_iter((0..COLUMNS).map(array)).expect("columns of one length")
}
