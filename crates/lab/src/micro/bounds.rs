//! The cost of the same work without a database: the bounds that every figure stands beside.
//!
//! None of them has isolation, history or a log. The hash map is what a program would write for point access, bare
//! columns are what it would write for scans; the arrays are what the machine can do.
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use foldhash::fast::FixedState;
use parking_lot::RwLock;

use super::contestant::{Contestant, Worker};
use super::process;
use super::workload::{COLUMNS, Random, Statement, loaded_row};
use crate::LabError;

/// Maps of a [`HashMapRows`].
const SHARDS: usize = 64;
/// The array for the bandwidth is so many times a column's size, so that no cache holds it ...
const BANDWIDTH_COLUMNS: u64 = 128;
/// ... but no smaller than this ...
const BANDWIDTH_BYTES_MIN: u64 = 64 << 20;
/// ... and no larger than this, nor than a quarter of the memory that is left.
const BANDWIDTH_BYTES_MAX: u64 = 1 << 30;
/// An array that fits a cache is summed up for this long at least.
const ARRAY_SECONDS: f64 = 0.01;

type Shard = RwLock<HashMap<u64, [i64; COLUMNS], FixedState>>;

/// Rows in hash maps, each under its latch.
pub(super) struct HashMapRows {
    shards: Vec<Shard>,
}

impl HashMapRows {
    pub(super) fn load(rows: u64) -> HashMapRows {
        let shard = |_| Shard::new(HashMap::with_hasher(FixedState::with_seed(1)));
        let map = HashMapRows { shards: (0..SHARDS).map(shard).collect() };
        for key in 0..rows {
            map.shard(key).write().insert(key, loaded_row(key));
        }
        map
    }

    fn shard(&self, key: u64) -> &Shard {
        &self.shards[key as usize % SHARDS]
    }

    fn run(&self, statement: &Statement<'_>) -> Option<i64> {
        let shard = self.shard(statement.key);
        match statement.new_values() {
            None => {
                let rows = shard.read();
                let row = rows.get(&statement.key)?;
                Some(statement.columns.iter().fold(0, |sum, column| row[*column].wrapping_add(sum)))
            }
            Some(values) => {
                let mut rows = shard.write();
                let row = rows.get_mut(&statement.key)?;
                statement.columns.iter().zip(values).for_each(|(column, value)| row[*column] = *value);
                Some(0)
            }
        }
    }
}

impl Contestant for HashMapRows {
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(self)
    }

    fn sum(&self, column: usize) -> Result<i64, LabError> {
        let sum_of = |shard: &Shard| shard.read().values().fold(0_i64, |sum, row| sum.wrapping_add(row[column]));
        Ok(self.shards.iter().map(sum_of).fold(0, i64::wrapping_add))
    }
}

impl Worker for &HashMapRows {
    fn transact(&mut self, statements: &[Statement<'_>]) -> Result<i64, LabError> {
        let add = |sum: i64, statement| self.run(statement).map(|values| sum.wrapping_add(values));
        let sum = statements.iter().try_fold(0, add);
        sum.ok_or_else(|| LabError::Failed("the hash map lost a row".to_owned()))
    }
}

/// One array a column; the key is the position.
pub(super) struct BareColumns {
    columns: Vec<Vec<AtomicI64>>,
}

impl BareColumns {
    pub(super) fn load(rows: u64) -> BareColumns {
        let mut columns: Vec<Vec<AtomicI64>> = (0..COLUMNS).map(|_| Vec::with_capacity(rows as usize)).collect();
        for key in 0..rows {
            for (column, value) in columns.iter_mut().zip(loaded_row(key)) {
                column.push(AtomicI64::new(value));
            }
        }
        BareColumns { columns }
    }
}

impl Contestant for BareColumns {
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(self)
    }

    fn sum(&self, column: usize) -> Result<i64, LabError> {
        let add = |sum: i64, value: &AtomicI64| sum.wrapping_add(value.load(Ordering::Relaxed));
        Ok(self.columns[column].iter().fold(0, add))
    }
}

impl Worker for &BareColumns {
    fn transact(&mut self, statements: &[Statement<'_>]) -> Result<i64, LabError> {
        let mut sum = 0_i64;
        for statement in statements {
            let slots = statement.columns.iter().map(|column| &self.columns[*column][statement.key as usize]);
            match statement.new_values() {
                None => sum = slots.fold(sum, |sum, slot| sum.wrapping_add(slot.load(Ordering::Relaxed))),
                Some(values) => slots.zip(values).for_each(|(slot, value)| slot.store(*value, Ordering::Relaxed)),
            }
        }
        Ok(sum)
    }
}

/// Plain arrays to sum up: one that no cache holds, and one of a column's size.
pub(super) struct Arrays {
    large: Vec<u64>,
    column: Vec<u64>,
}

impl Arrays {
    /// For columns of so many rows.
    pub(super) fn new(rows: u64) -> Arrays {
        let available = process::available_bytes().unwrap_or(BANDWIDTH_BYTES_MAX);
        let wanted = (rows * 8 * BANDWIDTH_COLUMNS).clamp(BANDWIDTH_BYTES_MIN, BANDWIDTH_BYTES_MAX);
        let filled = |count: u64| {
            let mut random = Random::new(count);
            (0..count).map(|_| random.next()).collect()
        };
        Arrays { large: filled(wanted.min(available / 4).max(8) / 8), column: filled(rows) }
    }

    /// The milliseconds that a column's bytes take at the rate of the large array, measured now.
    pub(super) fn bandwidth_ms(&self) -> f64 {
        time_ms(&self.large) * self.column.len() as f64 / self.large.len() as f64
    }

    /// The milliseconds that an array of a column's size takes, measured now.
    pub(super) fn array_ms(&self) -> f64 {
        let start = Instant::now();
        let mut times = vec![time_ms(&self.column)];
        while start.elapsed().as_secs_f64() < ARRAY_SECONDS {
            times.push(time_ms(&self.column));
        }
        crate::figures::median(&times)
    }
}

/// The milliseconds that summing up an array takes. A plain fold: the compiler knows how to unroll it.
fn time_ms(values: &[u64]) -> f64 {
    let start = Instant::now();
    black_box(black_box(values).iter().fold(0_u64, |sum, value| sum.wrapping_add(*value)));
    start.elapsed().as_secs_f64() * 1000.0
}
