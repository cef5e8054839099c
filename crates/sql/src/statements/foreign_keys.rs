//! `FOREIGN KEY` constraints that a statement asks for, and what depends on the tables and keys at their other ends.
//!
//! The engine keeps both ends in step and looks at the rows; see its `transaction/references`. Here constraints are made.
use datafusion::sql::sqlparser::ast::{
    ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial, ForeignKeyConstraint, Ident,
    ReferentialAction,
};
use engine::{DataType, ForeignKey, IndexPart, Referential, Referrer, Schema, Table, Transaction};

use crate::access::folded_parts;
use crate::error::{Result, SqlError};
use crate::names::schemas::{is_temporary, local, schema_of};
use crate::names::{fold, position, table_name};
use crate::statements::checks::Names;
use crate::syntax::constraint_tokens::SET;
use crate::syntax::source::Source;
use crate::values::long_name;

/// A constraint that is asked for.
pub(crate) struct AskedKey<'a> {
    name: Option<&'a Ident>,
    columns: Vec<String>,
    constraint: &'a ForeignKeyConstraint,
    deferrable: bool,
    deferred: bool,
}

impl<'a> AskedKey<'a> {
    /// The constraint of a table.
    ///
    /// # Errors
    /// As [`of_column`](Self::of_column).
    pub(crate) fn of_table(constraint: &'a ForeignKeyConstraint, source: &Source) -> Result<AskedKey<'a>> {
        AskedKey::read(constraint, constraint.name.as_ref(), constraint.columns.iter().map(fold).collect(), source)
    }

    /// The constraint of a column, which may give it a name.
    ///
    /// # Errors
    /// If it says what there is not, or contradicts itself.
    pub(crate) fn of_column(
        constraint: &'a ForeignKeyConstraint,
        name: Option<&'a Ident>,
        column: &str,
        source: &Source,
    ) -> Result<AskedKey<'a>> {
        AskedKey::read(constraint, name, vec![column.to_owned()], source)
    }

    fn read(
        constraint: &'a ForeignKeyConstraint,
        name: Option<&'a Ident>,
        columns: Vec<String>,
        source: &Source,
    ) -> Result<AskedKey<'a>> {
        if constraint.match_kind == Some(ConstraintReferenceMatchKind::Partial) {
            return Err(SqlError::new("0A000", "MATCH PARTIAL not yet implemented").at(source.find_word("partial")));
        }
        let (deferrable, deferred) = deferral(constraint.characteristics.as_ref(), source)?;
        Ok(AskedKey { name, columns, constraint, deferrable, deferred })
    }

    /// The constraint as the catalog keeps it, of a table that is there.
    ///
    /// # Errors
    /// PostgreSQL's, where there can be none.
    pub(crate) fn define(
        &self,
        transaction: &Transaction,
        (table, name): (&Table, &str),
        names: &mut Names<'_>,
        source: &Source,
    ) -> Result<ForeignKey> {
        let referenced_name = table_name(&self.constraint.foreign_table, source)?;
        let at = position(&self.constraint.foreign_table, source);
        let referenced = transaction.table(&referenced_name).map_err(|error| SqlError::from(error).at(at))?;
        if referenced.sequence().is_some() || referenced.view().is_some() || referenced.is_materialized() {
            let message = format!("referenced relation \"{referenced_name}\" is not a table");
            return Err(SqlError::new("42809", message).at(at));
        }
        check_both_stay(name, &referenced_name).map_err(|error| error.at(at))?;
        let columns = positions(table, &self.columns)?;
        let mut referred = self.constraint.referred_columns.iter().map(fold).collect::<Vec<_>>();
        let mark = referred.iter().position(|name| name == SET);
        let set = mark.map(|mark| referred.split_off(mark)).unwrap_or_default();
        let positions = match &referred[..] {
            [] => match referenced.schema().primary_key() {
                [] => return Err(no_key(transaction, &referenced, &referenced_name).at(at)),
                key => key.to_vec(),
            },
            named => positions(&referenced, named)?,
        };
        if columns.len() != positions.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new("42830", message).at(at));
        }
        if (1..positions.len()).any(|at| positions[..at].contains(&positions[at])) {
            let message = "foreign key referenced-columns list must not contain duplicates";
            return Err(SqlError::new("42830", message).at(at));
        }
        if !has_key(transaction, &referenced, &positions, None) {
            if has_deferrable_key(transaction, &referenced, &positions) {
                let message =
                    format!("cannot use a deferrable unique constraint for referenced table \"{referenced_name}\"");
                return Err(SqlError::new("55000", message).at(at));
            }
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{referenced_name}\"");
            return Err(SqlError::new("42830", message).at(at));
        }
        let chosen = match self.name {
            Some(name) => names.take(fold(name)).map_err(|error| error.at(source.start(name.span)))?,
            None => names.find(local(name), &self.columns.join("_"), "fkey"),
        };
        let set_on_delete = set_columns(table, set.get(1..).unwrap_or_default(), &columns)?;
        check_types(&chosen, (table, &columns), (&referenced, &positions)).map_err(|error| error.at(at))?;
        Ok(ForeignKey {
            name: chosen,
            columns,
            table: referenced_name,
            referenced: positions,
            on_delete: action(self.constraint.on_delete),
            on_update: action(self.constraint.on_update),
            set_on_delete,
            is_full: self.constraint.match_kind == Some(ConstraintReferenceMatchKind::Full),
            deferrable: self.deferrable,
            deferred: self.deferred,
            validated: true,
        })
    }
}

/// The columns that a delete sets, by their names, which are of the constraint's.
fn set_columns(table: &Table, names: &[String], columns: &[usize]) -> Result<Vec<usize>> {
    let set = positions(table, names)?;
    match set.iter().zip(names).find(|(column, _)| !columns.contains(column)) {
        None => Ok(set),
        Some((_, name)) => {
            let message = format!("column \"{name}\" referenced in ON DELETE SET action must be part of foreign key");
            Err(SqlError::new("42P10", message))
        }
    }
}

/// Whether a transaction may put a constraint off, and whether it does where it says nothing else.
///
/// # Errors
/// If what is said of that contradicts itself.
pub(crate) fn deferral(asked: Option<&ConstraintCharacteristics>, source: &Source) -> Result<(bool, bool)> {
    match asked {
        None => Ok((false, false)),
        Some(ConstraintCharacteristics { enforced: Some(_), .. }) => {
            Err(SqlError::unsupported("ENFORCED").at(source.find_word("enforced")))
        }
        Some(ConstraintCharacteristics { deferrable, initially, .. }) => {
            let deferred = *initially == Some(DeferrableInitial::Deferred);
            if deferred && *deferrable == Some(false) {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(SqlError::syntax(message).at(source.find_word("initially")));
            }
            Ok((deferrable.unwrap_or(deferred), deferred))
        }
    }
}

fn action(asked: Option<ReferentialAction>) -> Referential {
    match asked {
        None | Some(ReferentialAction::NoAction) => Referential::NoAction,
        Some(ReferentialAction::Restrict) => Referential::Restrict,
        Some(ReferentialAction::Cascade) => Referential::Cascade,
        Some(ReferentialAction::SetNull) => Referential::SetNull,
        Some(ReferentialAction::SetDefault) => Referential::SetDefault,
    }
}

fn positions(table: &Table, names: &[String]) -> Result<Vec<usize>> {
    let position = |name: &String| {
        let message = format!("column \"{name}\" referenced in foreign key constraint does not exist");
        table.schema().position(name).ok_or_else(|| SqlError::new("42703", message))
    };
    names.iter().map(position).collect()
}

/// Whether a table has a key over exactly these columns, other than that of an index of this name.
fn has_key(transaction: &Transaction, table: &Table, columns: &[usize], without: Option<&str>) -> bool {
    has_key_of(transaction, (table, table.schema().as_ref()), columns, without)
}

/// Why there is no primary key to refer to.
fn no_key(transaction: &Transaction, table: &Table, name: &str) -> SqlError {
    match has_primary_key(transaction, table) {
        true => SqlError::new("55000", format!("cannot use a deferrable primary key for referenced table \"{name}\"")),
        false => SqlError::new("42704", format!("there is no primary key for referenced table \"{name}\"")),
    }
}

/// Whether it has a primary key, be it one that a transaction may put off.
pub(crate) fn has_primary_key(transaction: &Transaction, table: &Table) -> bool {
    !table.schema().primary_key().is_empty() || !put_off_key(transaction, table).is_empty()
}

/// The columns of its primary key if a transaction may put that off.
pub(crate) fn put_off_key(transaction: &Transaction, table: &Table) -> Vec<usize> {
    let indexes = transaction.indexes(table);
    let parts =
        indexes.iter().filter(|index| index.definition().is_primary).flat_map(|index| &index.definition().parts);
    parts.filter_map(folded_parts::column_of).collect()
}

/// Whether it has one that a transaction may put off.
fn has_deferrable_key(transaction: &Transaction, table: &Table, columns: &[usize]) -> bool {
    let is_it = |index: &engine::Index| {
        let parts = &index.definition().parts;
        index.definition().deferral.is_some()
            && parts.len() == columns.len()
            && columns.iter().all(|column| parts.contains(&IndexPart::Column(*column)))
    };
    transaction.indexes(table).iter().any(is_it)
}

/// Likewise, of a table with the primary key of another schema.
fn has_key_of(
    transaction: &Transaction,
    (table, schema): (&Table, &Schema),
    columns: &[usize],
    without: Option<&str>,
) -> bool {
    let is_over = |key: &[usize]| key.len() == columns.len() && columns.iter().all(|column| key.contains(column));
    let is_unique = |index: &engine::Index| {
        let definition = index.definition();
        let plain = || definition.parts.iter().map(folded_parts::column_of).collect::<Option<Vec<usize>>>();
        let is_other = without != Some(&*definition.name);
        is_other && definition.unique && definition.predicate.is_none() && plain().is_some_and(|key| is_over(&key))
    };
    is_over(schema.primary_key()) || transaction.indexes(table).iter().any(is_unique)
}

/// The constraints that refer to the primary key of a table, and to no unique index beside it.
pub(crate) fn of_primary_key(transaction: &Transaction, table: &Table) -> Result<Vec<Referrer>> {
    let without_key = Schema::new(table.schema().columns().to_vec(), &[]);
    let without_key = without_key.map_err(|error| SqlError::from(engine::Error::from(error)))?;
    let mut referrers = transaction.settings(table).referrers;
    referrers.retain(|known| !has_key_of(transaction, (table, &without_key), &known.columns, None));
    Ok(referrers)
}

/// Refuses columns whose values are not compared with those of the columns that they refer to.
fn check_types(
    name: &str,
    (table, columns): (&Table, &[usize]),
    (referenced, positions): (&Table, &[usize]),
) -> Result<()> {
    for (column, position) in columns.iter().zip(positions) {
        let (from, to) = (&table.schema().columns()[*column], &referenced.schema().columns()[*position]);
        if [from, to].iter().any(|column| column.data_type == DataType::CITEXT) {
            let refused = SqlError::unsupported("a foreign key of columns of citext");
            return Err(refused.hint("Refer to a key of another type, and keep the citext beside it under UNIQUE."));
        }
        if is_comparable(from.data_type, to.data_type) {
            continue;
        }
        let error = SqlError::mismatch(format!("foreign key constraint \"{name}\" cannot be implemented"));
        let [of, with] = [from, to].map(|column| long_name(column.data_type));
        let names = format!("\"{}\" and \"{}\"", from.name, to.name);
        return Err(error.detail(format!("Key columns {names} are of incompatible types: {of} and {with}.")));
    }
    Ok(())
}

fn is_comparable(from: DataType, to: DataType) -> bool {
    let is_integer = |of| matches!(of, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    match (from, to) {
        (from, to) if is_integer(from) => is_integer(to),
        (DataType::Text { .. }, DataType::Text { .. }) | (DataType::Char { .. }, DataType::Char { .. }) => true,
        (DataType::Decimal { scale, .. }, DataType::Decimal { scale: other, .. }) => scale == other,
        (from, to) => from.whole() == to.whole(),
    }
}

/// The constraints that refer to a table.
pub(crate) fn of_table(transaction: &Transaction, name: &str) -> Result<Vec<Referrer>> {
    Ok(transaction.settings(&transaction.table(name)?).referrers)
}

/// The constraints that refer to a column of a table.
pub(crate) fn of_column(transaction: &Transaction, table: &Table, column: usize) -> Vec<Referrer> {
    let mut referrers = transaction.settings(table).referrers;
    referrers.retain(|known| known.columns.contains(&column));
    referrers
}

/// The constraints that refer to a key which an index of this name is alone in keeping.
pub(crate) fn of_index(transaction: &Transaction, name: &str) -> Result<Vec<Referrer>> {
    let (table, _) = transaction.index(name)?;
    let table = transaction.table(&table)?;
    let mut referrers = transaction.settings(&table).referrers;
    referrers.retain(|known| !has_key(transaction, &table, &known.columns, Some(name)));
    Ok(referrers)
}

/// Drops a constraint of a table.
pub(crate) fn drop(transaction: &mut Transaction, table: &str, constraint: &str) -> Result<()> {
    let mut keys = transaction.settings(&transaction.table(table)?).foreign_keys;
    keys.retain(|key| key.name != constraint);
    Ok(transaction.set_foreign_keys(table, keys)?)
}

/// The tables that are emptied with some tables: these, and with `cascade` those that refer to them.
///
/// # Errors
/// PostgreSQL's, if another table refers to one of them.
pub(crate) fn emptied_with(
    transaction: &Transaction,
    names: Vec<String>,
    cascade: bool,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut all, mut notices) = (names, Vec::new());
    let mut next = 0;
    while next < all.len() {
        let referrers = of_table(transaction, &all[next])?.into_iter().map(|referrer| referrer.table);
        for table in referrers.filter(|table| !all.contains(table)).collect::<Vec<_>>() {
            if !cascade {
                let error = SqlError::new("0A000", "cannot truncate a table referenced in a foreign key constraint");
                let detail = format!("Table \"{table}\" references \"{}\".", all[next]);
                let hint = format!("Truncate table \"{table}\" at the same time, or use TRUNCATE ... CASCADE.");
                return Err(error.detail(detail).hint(hint));
            }
            if !all.contains(&table) {
                notices.push(format!("truncate cascades to table \"{table}\""));
                all.push(table);
            }
        }
        next += 1;
    }
    Ok((all, notices))
}

/// Refuses a table that stays with one that goes with its session.
fn check_both_stay(name: &str, referenced: &str) -> Result<()> {
    let kind = match (is_temporary(schema_of(name)), is_temporary(schema_of(referenced))) {
        (true, false) => "temporary",
        (false, true) => "permanent",
        _ => return Ok(()),
    };
    let message = format!("constraints on {kind} tables may reference only {kind} tables");
    Err(SqlError::new("42P16", message))
}
