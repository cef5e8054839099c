//! The contestants behind one interface: the database and the bounds beside it.
use super::bounds::{BareColumns, HashMapRows};
use super::lstore::{Lstore, StoreOptions};
use super::workload::{COLUMNS, Statement, Workload};
use crate::LabError;

/// Something that holds the table.
pub(super) trait Contestant: Sync {
    /// The worker with which one thread runs transactions.
    fn worker(&self) -> Box<dyn Worker + '_>;

    /// The sum of a column over all rows.
    fn sum(&self, column: usize) -> Result<i64, LabError>;

    /// Brings work that was left to the background to its end, so that it does not weigh on another contestant's
    /// run.
    fn settle(&self) {}

    /// Tail records that no merge has taken in yet.
    fn pending(&self) -> u64 {
        0
    }

    /// Transactions that had to start again, since the load.
    fn conflicts(&self) -> u64 {
        0
    }

    /// How often a transaction waited for another one, since the load.
    fn waits(&self) -> u64 {
        0
    }
}

/// Runs transactions on one thread.
pub(super) trait Worker {
    /// Runs a transaction to its commit; returns the sum of all values read, wrapped.
    fn transact(&mut self, statements: &[Statement<'_>]) -> Result<i64, LabError>;
}

/// The contestants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Lstore,
    HashMap,
    BareColumns,
}

impl Kind {
    /// All of them, ours first.
    pub(super) const ALL: [Kind; 3] = [Kind::Lstore, Kind::HashMap, Kind::BareColumns];

    /// The names of those beside lstore.
    pub(super) const RIVALS: [&'static str; 2] = [Kind::HashMap.name(), Kind::BareColumns.name()];

    /// The name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Lstore => "lstore",
            Kind::HashMap => "hash map",
            Kind::BareColumns => "bare columns",
        }
    }

    /// Loads the table.
    pub(super) fn load(self, rows: u64, options: &StoreOptions) -> Result<Box<dyn Contestant>, LabError> {
        Ok(match self {
            Kind::Lstore => Box::new(Lstore::load(rows, options)?),
            Kind::HashMap => Box::new(HashMapRows::load(rows)),
            Kind::BareColumns => Box::new(BareColumns::load(rows)),
        })
    }
}

/// Has each contestant run the same few transactions.
///
/// # Errors
/// If they don't read the same values, or sum up to different ones afterwards.
pub(super) fn check_agreement(contestants: &[Box<dyn Contestant>], workload: &Workload) -> Result<(), LabError> {
    let mut expected: Option<Vec<i64>> = None;
    for (contestant, kind) in contestants.iter().zip(Kind::ALL) {
        let mut transactions = workload.transactions(0);
        let mut worker = contestant.worker();
        let mut seen = Vec::new();
        for _ in 0..200 {
            seen.push(worker.transact(transactions.next())?);
        }
        for column in 0..COLUMNS {
            seen.push(contestant.sum(column)?);
        }
        if expected.get_or_insert_with(|| seen.clone()) != &seen {
            let why =
                format!("{} and {} read different values after the same updates", Kind::ALL[0].name(), kind.name());
            return Err(LabError::Failed(why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::args::Layout;
    use super::*;

    fn loaded(rows: u64, options: &StoreOptions) -> Vec<Box<dyn Contestant>> {
        Kind::ALL.iter().map(|kind| kind.load(rows, options).unwrap()).collect()
    }

    #[test]
    fn all_contestants_read_the_same_after_the_same_updates() {
        for layout in [Layout::Column, Layout::Row] {
            // Small ranges, merged often: the checks meet base pages and tail pages of all ages.
            let small =
                StoreOptions { range_records: Some(64), merge_tail_records: Some(16), ..StoreOptions::default() };
            let contestants = loaded(1000, &StoreOptions { layout, ..small });
            for workload in [Workload::new(1000, 8, 2, 4), Workload::new(10, 0, 10, 9), Workload::new(100, 10, 0, 10)] {
                check_agreement(&contestants, &workload).unwrap();
                contestants[0].settle();
            }
            assert_eq!(contestants[0].pending(), 0);
            assert_eq!(contestants[0].conflicts(), 0);
        }
    }

    #[test]
    fn a_difference_is_found() {
        let mut contestants = loaded(1000, &StoreOptions::default());
        contestants[1] = Kind::HashMap.load(999, &StoreOptions::default()).unwrap();
        let Err(LabError::Failed(why)) = check_agreement(&contestants, &Workload::new(1000, 0, 0, 4)) else { panic!() };
        assert!(why.starts_with("lstore and hash map read different values"), "{why}");
    }
}
