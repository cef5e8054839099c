//! Types of users as tables have them: which columns are of a type, and that types stay while tables are made of them.
use engine::{Column, ColumnDefault, DataType, EnumType, Table, Transaction, TypeDefinition, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::made_types::{definition, entry, name_of};
use crate::names::schemas::schema_of;

/// The types of a schema.
pub(crate) fn all_of(transaction: &Transaction, schema: &str) -> Vec<(String, TypeDefinition)> {
    let kept = transaction.views_now().into_iter();
    let of = |(name, table): (String, Table)| Some((name_of(&name)?, definition(&table)?.clone()));
    kept.filter(|(name, _)| schema_of(name) == schema).filter_map(of).collect()
}

/// Has the types of a table's columns stay until the transaction ends; waits for one that drops or changes them.
pub(crate) fn hold(transaction: &mut Transaction, columns: &[Column], defaults: &[ColumnDefault]) -> Result<()> {
    if !engine::has_made_types() {
        return Ok(());
    }
    let of = |data_type: DataType| match data_type {
        DataType::Enum(of) => Some(of.name()),
        DataType::Array(item) => match item.data_type() {
            DataType::Enum(of) => Some(of.name()),
            _ => None,
        },
        _ => None,
    };
    let enums = columns.iter().filter_map(|column| of(column.data_type));
    let domains = defaults.iter().filter_map(|default| default.domain.as_ref().map(|domain| domain.name.clone()));
    let mut names: Vec<String> = enums.chain(domains).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        transaction.claim_name(&entry(&name))?;
        if transaction.table(&entry(&name)).is_err() {
            return Err(SqlError::new("42704", format!("type \"{}\" does not exist", engine::shown_name(&name))));
        }
    }
    Ok(())
}

/// A type that a table or a view of this name would exclude.
///
/// # Errors
/// Where there is one.
pub(crate) fn check_no_type(transaction: &Transaction, name: &str) -> Result<()> {
    if !engine::has_made_types() || transaction.table(&entry(name)).is_err() {
        return Ok(());
    }
    let error = SqlError::new("42710", format!("type \"{}\" already exists", schema_and_name(name).1));
    let hint = "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.";
    Err(error.hint(hint))
}

/// Whether a type is an enum, or that of arrays of it.
pub(crate) fn is_of_enum(data_type: DataType, of: EnumType) -> bool {
    match data_type {
        DataType::Enum(found) => found == of,
        DataType::Array(item) => item.data_type() == DataType::Enum(of),
        _ => false,
    }
}

/// The columns of tables that are of a type or of arrays of it.
pub(crate) fn columns_of(
    transaction: &Transaction,
    known: &str,
    of_type: &TypeDefinition,
) -> Result<Vec<(String, String)>> {
    let is_of = |data_type: DataType| match (of_type, data_type) {
        (TypeDefinition::Enum(labels), data_type) => is_of_enum(data_type, labels.of),
        (TypeDefinition::Domain(_), _) => false,
    };
    let is_domain = matches!(of_type, TypeDefinition::Domain(_));
    let mut found = Vec::new();
    for name in transaction.table_names() {
        let table = transaction.table(&name)?;
        let columns = table.schema().columns();
        let of_domain = transaction.settings(&table).defaults.into_iter().filter_map(|default| {
            default.domain.filter(|domain| domain.name == known && is_domain).map(|_| default.column)
        });
        let of_enum = (0..columns.len()).filter(|at| is_of(columns[*at].data_type));
        let mut own: Vec<usize> = of_enum.chain(of_domain).collect();
        own.sort_unstable();
        found.extend(own.into_iter().map(|at| (name.clone(), columns[at].name.clone())));
    }
    Ok(found)
}
