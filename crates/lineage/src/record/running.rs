//! What is kept of the sums of a range's columns, for `scan::running`.
use sync::blocking::Mutex;
use types::Timestamp;

/// Totals of one column as of some tail records of each update range.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) through: Box<[u64]>,
    pub(crate) newest: Timestamp,
    pub(crate) totals: Counts,
}

/// What there is of one column. Differences may be negative.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) rows: i64,
    /// that are not NULL
    pub(crate) values: i64,
    pub(crate) sum: i128,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.rows += other.rows;
        self.values += other.values;
        self.sum += other.sum;
    }

    /// Adds a value, or takes one away.
    pub(crate) fn add_value(&mut self, value: Option<i128>, times: i64) {
        if let Some(value) = value {
            self.values += times;
            self.sum += value * i128::from(times);
        }
    }
}

/// Those of the columns of a range, as far as somebody has added them up.
pub(crate) struct RunningTotals(Box<[Mutex<Option<Running>>]>);

impl RunningTotals {
    /// Of a range with so many columns.
    pub(crate) fn new(columns: usize) -> RunningTotals {
        RunningTotals((0..columns).map(|_| Mutex::new(None)).collect())
    }

    /// Those of a column.
    pub(crate) fn of(&self, column: usize) -> Option<&Mutex<Option<Running>>> {
        self.0.get(column)
    }
}
