//! Pages against what they say of themselves, and versions against the constraints of their table.
use lineage::Cell;
use types::{Snapshot, Timestamp};

use super::Verification;
use crate::error::Result;
use crate::outcomes::Transactions;
use crate::table::TableData;

/// Every page of a table.
pub(super) fn check_pages(table: &TableData) -> Vec<String> {
    let of_range = |range| {
        let faults = table.storage.check_range(range).into_iter();
        faults.map(move |fault| format!("range {range}, {fault}"))
    };
    (0..table.storage.range_count()).flat_map(of_range).collect()
}

/// Every version that is kept, as far as the table can be read: NOT NULL. Counts them, and the rows.
pub(super) fn check_versions(
    table: &TableData,
    transactions: &Transactions,
    verification: &mut Verification,
    faults: &mut Vec<String>,
) -> Result<()> {
    let columns = table.schema().columns();
    let required: Vec<usize> = (0..columns.len()).filter(|column| !columns[*column].nullable).collect();
    let (newest, horizon) = (transactions.0.now(), table.storage.horizon());
    let storage = &table.storage;
    for range in 0..storage.range_count() {
        let mut moments: Vec<_> = storage.changed(range, Timestamp::ZERO, newest, transactions)?;
        // What was there at the horizon is the first version that is known.
        moments.iter_mut().for_each(|moment| moment.at = moment.at.max(horizon));
        moments.sort_unstable_by_key(|moment| (moment.rid, moment.at));
        moments.dedup();
        for (at, moment) in moments.iter().enumerate() {
            let view = transactions.view(Snapshot::at(moment.at));
            let nulls = storage.read(view, moment.rid, &required, |cells| {
                let nulls = cells.iter().zip(&required).filter(|(cell, _)| **cell == Cell::Null);
                nulls.map(|(_, column)| *column).collect::<Vec<_>>()
            })?;
            let Some(nulls) = nulls else { continue };
            let is_newest = moments.get(at + 1).is_none_or(|next| next.rid != moment.rid);
            verification.versions += 1;
            verification.rows += u64::from(is_newest);
            for column in nulls {
                let (rid, column) = (moment.rid, &columns[column].name);
                faults.push(format!("{rid:?} as of commit {}: NULL in column \"{column}\"", moment.at.0));
            }
        }
    }
    Ok(())
}
