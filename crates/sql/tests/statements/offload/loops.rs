//! A device made of plain loops, which fails when it is told to.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use sql::{
    ColumnTotals, Coprocessor, DeviceColumn, DeviceError, DeviceFacts, GroupTotals, GroupedColumn, GroupedRows,
    HashTable, JoinKeys, Offload, Partners, Probed, ResidentRows, Spent,
};

/// When calls fail.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Never,
    /// Each call with such a number.
    Every(u64, DeviceError),
}

#[derive(Debug)]
pub(super) struct Loops {
    facts: DeviceFacts,
    itself: Weak<Loops>,
    calls: AtomicU64,
    /// Calls over columns that stay.
    resident_calls: AtomicU64,
    /// Values of columns that stay.
    written: Arc<AtomicU64>,
    fault: Mutex<Fault>,
    /// How long a call says that each part of it took, in nanoseconds.
    part_ns: AtomicU64,
}

impl Loops {
    pub(super) fn new(is_emulated: bool) -> Arc<Loops> {
        let facts = DeviceFacts { name: "loops".to_owned(), memory_bytes: 1 << 30, is_emulated };
        Arc::new_cyclic(|itself| Loops {
            facts,
            itself: itself.clone(),
            calls: AtomicU64::new(0),
            resident_calls: AtomicU64::new(0),
            written: Arc::default(),
            fault: Mutex::new(Fault::Never),
            part_ns: AtomicU64::new(1_000),
        })
    }

    pub(super) fn offload(self: &Arc<Loops>) -> Offload {
        Offload::new(self.clone())
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn resident_calls(&self) -> u64 {
        self.resident_calls.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn fail(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub(super) fn take_longer(&self, part_ns: u64) {
        self.part_ns.store(part_ns, Ordering::Relaxed);
    }

    fn call(&self) -> Result<Spent, DeviceError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match &*self.fault.lock().unwrap() {
            Fault::Every(each, error) if number.is_multiple_of(*each) => Err(error.clone()),
            _ => {
                let part_ns = self.part_ns.load(Ordering::Relaxed) as f64;
                Ok(Spent { transfer_ns: part_ns, kernels_ns: part_ns, results_ns: part_ns, launches: 1 })
            }
        }
    }
}

/// A column that stays.
#[derive(Debug)]
struct Column {
    values: Mutex<Vec<i64>>,
    /// Of the device.
    written: Arc<AtomicU64>,
}

impl DeviceColumn for Column {
    fn write(&self, first: usize, values: &[i64]) -> Result<(), DeviceError> {
        self.written.fetch_add(values.len() as u64, Ordering::Relaxed);
        self.values.lock().unwrap()[first..first + values.len()].copy_from_slice(values);
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The values of a column at some rows.
fn values_at(column: &dyn DeviceColumn, rows: &[usize]) -> Vec<i64> {
    let values = column.as_any().downcast_ref::<Column>().unwrap().values.lock().unwrap();
    rows.iter().map(|row| values[*row]).collect()
}

/// The keys that are not NULL, by row.
fn rows_of(keys: &JoinKeys<'_>) -> Vec<Option<u64>> {
    let is_valid = |bits: Option<&[u8]>, at: usize| bits.is_none_or(|bits| bits[at / 8] >> (at % 8) & 1 == 1);
    match *keys {
        JoinKeys::Narrow(keys, valid) => {
            keys.iter().enumerate().map(|(at, key)| is_valid(valid, at).then_some(u64::from(*key))).collect()
        }
        JoinKeys::Wide(keys, valid) => {
            keys.iter().enumerate().map(|(at, key)| is_valid(valid, at).then_some(*key)).collect()
        }
    }
}

impl Coprocessor for Loops {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn group(&self, rows: &GroupedRows<'_>) -> Result<GroupTotals, DeviceError> {
        let (spent, groups) = (self.call()?, rows.group_count as usize);
        let mut totals = GroupTotals { counts: vec![0; groups], columns: Vec::new(), spent };
        rows.codes.iter().for_each(|code| totals.counts[*code as usize] += 1);
        for column in rows.columns {
            let of = |wanted: bool| if wanted { groups } else { 0 };
            let mut found = ColumnTotals {
                counts: vec![0; groups],
                sums: vec![0; of(column.sum)],
                mins: vec![i64::MAX; of(column.min)],
                maxs: vec![i64::MIN; of(column.max)],
            };
            for (code, value) in column.codes.unwrap_or(rows.codes).iter().zip(column.values) {
                let group = *code as usize;
                found.counts[group] += 1;
                found.sums.get_mut(group).into_iter().for_each(|sum| *sum += i128::from(*value));
                found.mins.get_mut(group).into_iter().for_each(|min| *min = (*value).min(*min));
                found.maxs.get_mut(group).into_iter().for_each(|max| *max = (*value).max(*max));
            }
            totals.columns.push(found);
        }
        Ok(totals)
    }

    fn column(&self, rows: usize) -> Result<Box<dyn DeviceColumn>, DeviceError> {
        self.call()?;
        Ok(Box::new(Column { values: Mutex::new(vec![-1; rows]), written: self.written.clone() }))
    }

    fn group_residents(&self, rows: &ResidentRows<'_>) -> Result<GroupTotals, DeviceError> {
        self.resident_calls.fetch_add(1, Ordering::Relaxed);
        let chosen: Vec<usize> = (0..rows.count).filter(|row| rows.rows[row / 64] >> (row % 64) & 1 == 1).collect();
        let mut codes = vec![0u32; chosen.len()];
        for key in rows.keys {
            for (code, value) in codes.iter_mut().zip(values_at(key.column, &chosen)) {
                let place = u32::try_from(value - key.min).expect("a value in its range");
                assert!(place < key.width, "a value in its range");
                *code = *code * key.width + place;
            }
        }
        let values: Vec<Vec<i64>> = rows.columns.iter().map(|of| values_at(of.column, &chosen)).collect();
        let columns = rows.columns.iter().zip(&values).map(|(of, values)| {
            assert!(
                values.iter().all(|value| value.unsigned_abs() <= of.largest),
                "a value further from 0 than is said"
            );
            GroupedColumn { codes: None, values, sum: of.sum, min: of.min, max: of.max }
        });
        let group_count = rows.keys.iter().map(|key| key.width).product();
        self.group(&GroupedRows { codes: &codes, group_count, columns: &columns.collect::<Vec<_>>() })
    }

    fn hash_table(&self, build: &JoinKeys<'_>) -> Result<(Box<dyn HashTable>, Spent), DeviceError> {
        let spent = self.call()?;
        let mut rows: HashMap<u64, Vec<u64>> = HashMap::new();
        for (row, key) in (0..).zip(rows_of(build)) {
            key.into_iter().for_each(|key| rows.entry(key).or_default().push(row));
        }
        let device = self.itself.upgrade().expect("the device of a call");
        Ok((Box::new(Table { rows, device }), spent))
    }
}

/// A hash table.
#[derive(Debug)]
struct Table {
    rows: HashMap<u64, Vec<u64>>,
    device: Arc<Loops>,
}

impl HashTable for Table {
    fn probe(&self, probe: &JoinKeys<'_>, pairs_max: usize) -> Result<Probed, DeviceError> {
        let (spent, mut pairs) = (self.device.call()?, Vec::new());
        for (row, key) in (0u64..).zip(rows_of(probe)) {
            let partners = key.and_then(|key| self.rows.get(&key)).into_iter().flatten();
            pairs.extend(partners.map(|build| build | row << 32));
        }
        if pairs.len() > pairs_max {
            return Err(DeviceError::Declined(format!("{} results", pairs.len())));
        }
        if pairs.windows(2).any(|pairs| pairs[0] >> 32 == pairs[1] >> 32) {
            return Ok(Probed { partners: Partners::Pairs(pairs), spent });
        }
        let mut bits = vec![0u32; rows_of(probe).len().div_ceil(32)];
        pairs.iter().map(|pair| (pair >> 32) as usize).for_each(|row| bits[row / 32] |= 1 << (row % 32));
        let rows = pairs.iter().map(|pair| *pair as u32).collect();
        Ok(Probed { partners: Partners::One { bits, rows }, spent })
    }
}
