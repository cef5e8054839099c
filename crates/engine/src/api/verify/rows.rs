//! Pages against what they say of themselves, and versions against the constraints of their table.
use lineage::Cell;

use super::report::Verification;
use crate::error::Result;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

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
    if let Some(array) = &table.array {
        let rows = array.rows();
        (verification.rows, verification.versions) = (verification.rows + rows, verification.versions + rows);
        return Ok(());
    }
    let columns = table.schema().columns();
    let required: Vec<usize> = (0..columns.len()).filter(|column| !columns[*column].nullable).collect();
    let storage = &table.storage;
    let between = (storage.horizon(), transactions.0.now());
    for range in 0..storage.range_count() {
        let mut last = None;
        storage.for_each_moment(
            range,
            &required,
            between,
            transactions,
            |_| true,
            |moment, cells| {
                let is_newest = last.replace(moment.rid) != Some(moment.rid);
                let Some(cells) = cells else { return };
                verification.versions += 1;
                verification.rows += u64::from(is_newest);
                for (_, column) in cells.iter().zip(&required).filter(|(cell, _)| **cell == Cell::Null) {
                    let (rid, column) = (moment.rid, &columns[*column].name);
                    faults.push(format!("{rid:?} as of commit {}: NULL in column \"{column}\"", moment.at.0));
                }
            },
        )?;
    }
    debug_assert!(verification.rows <= verification.versions, "rows are newest versions: {verification:?}");
    Ok(())
}
