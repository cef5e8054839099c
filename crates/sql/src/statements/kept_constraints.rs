//! The constraints of a table that another one takes the place of, by columns that stay, go, or are called otherwise.
//!
//! A condition or a foreign key of which a column goes, goes with it. What refers to such a column from another table is dropped by
//! CASCADE alone. What stays is taken from the old table, in silence, and given to the new one once its rows are there.
use engine::{Check, ForeignKey, Referrer, Table, TableSettings, Transaction};

use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::statements::checks::check_rows;
use crate::statements::index_columns::Moved;

/// Takes leave of a column: of the constraints of its table that involve it.
pub(crate) fn release(transaction: &mut Transaction, table: &Table, column: usize) -> Result<()> {
    let name = table.name().to_owned();
    let TableSettings { mut checks, mut foreign_keys, .. } = transaction.settings(table);
    let before = (checks.len(), foreign_keys.len());
    checks.retain(|check| !check.columns.contains(&column));
    let involves =
        |key: &ForeignKey| key.columns.contains(&column) || key.table == name && key.referenced.contains(&column);
    foreign_keys.retain(|key| !involves(key));
    if checks.len() < before.0 {
        transaction.set_checks(&name, checks)?;
    }
    if foreign_keys.len() < before.1 {
        transaction.set_foreign_keys(&name, foreign_keys)?;
    }
    Ok(())
}

/// Refuses another type for a column of a foreign key, at either end.
pub(crate) fn check_retyped(settings: &TableSettings, table: &Table, column: usize) -> Result<()> {
    let is_own = settings.foreign_keys.iter().any(|key| key.columns.contains(&column));
    if is_own || settings.referrers.iter().any(|referrer| referrer.columns.contains(&column)) {
        let name = &table.schema().columns()[column].name;
        let error = SqlError::unsupported(format!("another type for column \"{name}\", which is of a foreign key"));
        return Err(error.hint("Drop the constraint, change both columns, and add it again."));
    }
    Ok(())
}

/// Gives the new table the constraints that were taken from the old one.
pub(crate) fn give(
    session: &Session,
    write: &mut Write<'_>,
    taken: &TableSettings,
    moved: &Moved<'_>,
    retyped: &[usize],
) -> Result<()> {
    let name = moved.new.name().to_owned();
    let place = |column: &usize| moved.place(*column);
    let places = |columns: &[usize]| columns.iter().map(place).collect::<Option<Vec<usize>>>();
    let gone = || SqlError::new("XX000", format!("a constraint of table \"{name}\" names a column that is gone"));
    let check = |check: &Check| -> Result<Check> {
        let (condition, columns) = moved.condition(&check.condition, &check.columns)?.ok_or_else(gone)?;
        Ok(Check { condition, columns, ..check.clone() })
    };
    let key = |key: &ForeignKey| -> Result<ForeignKey> {
        let referenced = if key.table == name { places(&key.referenced) } else { Some(key.referenced.clone()) };
        let (columns, referenced) = places(&key.columns).zip(referenced).ok_or_else(gone)?;
        let set_on_delete = places(&key.set_on_delete).ok_or_else(gone)?;
        Ok(ForeignKey { columns, referenced, set_on_delete, ..key.clone() })
    };
    let referrer = |referrer: &Referrer| -> Result<Referrer> {
        Ok(Referrer { columns: places(&referrer.columns).ok_or_else(gone)?, ..referrer.clone() })
    };
    let given = TableSettings {
        checks: taken.checks.iter().map(check).collect::<Result<_>>()?,
        foreign_keys: taken.foreign_keys.iter().map(key).collect::<Result<_>>()?,
        referrers: taken.referrers.iter().map(referrer).collect::<Result<_>>()?,
        references_off: taken.references_off,
        ..TableSettings::default()
    };
    write.transaction.give_constraints(&name, &given)?;
    tell_referrers(write.transaction, &name, taken, &places)?;
    for (before, check) in taken.checks.iter().zip(&given.checks) {
        if check.validated && before.columns.iter().any(|column| retyped.contains(column)) {
            check_rows(session, write, (moved.new, &name), check)?;
        }
    }
    Ok(())
}

/// Tells other tables where the columns are to which they refer, if that has changed.
fn tell_referrers(
    transaction: &mut Transaction,
    name: &str,
    taken: &TableSettings,
    places: &impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Result<()> {
    let moved = taken.referrers.iter().filter(|referrer| places(&referrer.columns).as_ref() != Some(&referrer.columns));
    let mut others: Vec<&String> = moved.map(|referrer| &referrer.table).filter(|table| *table != name).collect();
    others.sort();
    others.dedup();
    for other in others {
        let mut keys = transaction.settings(&transaction.table(other)?).foreign_keys;
        for key in keys.iter_mut().filter(|key| key.table == name) {
            key.referenced = places(&key.referenced).unwrap_or_default();
        }
        transaction.set_foreign_keys(other, keys)?;
    }
    Ok(())
}
