//! The views that read a table, a sequence or a view: what is dropped with it, or keeps it from being dropped, and what has to
//! follow its names.
//!
//! A view names what it reads by its text, so that this is looked up in the queries of all views. What they read is claimed by the
//! transaction that asks, so that none is added meanwhile.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, Query};
use engine::{DataType, MaterializedQuery, Table, Transaction, ViewDefinition};

use crate::error::Result;
use crate::names::schemas::is_relation;
use crate::parsing::parse::{Places, parse_query};
use crate::statements::view_text::{reads, with_columns_named, with_table_renamed};
use crate::statements::wrong_kind;
use crate::syntax::identifiers::quoted;
use crate::syntax::walk::walk_expressions;
use crate::values::types::{column_type, domain_of};

/// A view, materialized or not, and what it reads.
pub(crate) struct User {
    pub(crate) name: String,
    /// Its query.
    pub(crate) query: String,
    table: Table,
    reads: Vec<String>,
}

impl User {
    fn of((name, table): (String, Table), query: String) -> Result<User> {
        Ok(User { reads: reads(&*parse_query(&query, Places::Unknown)?), name, query, table })
    }

    /// What it is called in messages.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.kind(), quoted(&self.name))
    }

    /// A view, or a materialized one.
    pub(crate) fn kind(&self) -> &'static str {
        wrong_kind::kind(&self.table)
    }

    /// Drops it, which fails where it is newer than the transaction's snapshot.
    pub(crate) fn drop(&self, transaction: &mut Transaction) -> Result<()> {
        drop_view(transaction, &self.name, &self.table)
    }

    /// Gives it another query.
    pub(crate) fn set_query(&self, transaction: &mut Transaction, query: String) -> Result<()> {
        match self.table.view() {
            Some(before) => {
                let definition = ViewDefinition { query, ..before.clone() };
                transaction.replace_view(&self.name, self.table.schema().as_ref().clone(), definition)?;
            }
            None => {
                let before = transaction.settings(&self.table).materialized.unwrap_or_default();
                transaction.set_materialized(&self.name, MaterializedQuery { query, ..before })?;
            }
        }
        Ok(())
    }

    /// Whether its query reads a relation.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.reads.iter().any(|read| read == name)
    }
}

/// Drops a view, materialized or not.
pub(crate) fn drop_view(transaction: &mut Transaction, name: &str, view: &Table) -> Result<()> {
    let dropped = match view.is_materialized() {
        true => transaction.drop_table(name),
        false => transaction.drop_view(name),
    };
    Ok(dropped?)
}

/// All views, materialized or not.
pub(crate) fn users(transaction: &Transaction) -> Result<Vec<User>> {
    let of_view = |(name, table): (String, Table)| {
        let query = table.view().map(|definition| definition.query.clone()).unwrap_or_default();
        User::of((name, table), query)
    };
    let of_rows = |(name, table): (String, Table)| {
        let query = transaction.settings(&table).materialized.unwrap_or_default().query;
        User::of((name, table), query)
    };
    let views = transaction.views_now().into_iter().filter(|(name, _)| is_relation(name)).map(of_view);
    views.chain(transaction.materialized_views_now().into_iter().map(of_rows)).collect()
}

/// The views whose queries name a type.
pub(crate) fn naming_type(transaction: &Transaction, known: &str) -> Result<Vec<User>> {
    let mut found = Vec::new();
    for user in users(transaction)? {
        if names_type(&*parse_query(&user.query, Places::Unknown)?, known) {
            found.push(user);
        }
    }
    Ok(found)
}

/// Has views go on reading what gets another name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    change_users(transaction, from, |text| with_table_renamed(text, from, to))
}

/// Has views go on finding the columns of a table by the names that they have had so far.
pub(crate) fn rename_column(transaction: &mut Transaction, table: &str, names: &[String]) -> Result<()> {
    change_users(transaction, table, |text| with_columns_named(text, table, names))
}

/// Changes the texts of all views that read something.
pub(crate) fn change_users(
    transaction: &mut Transaction,
    read: &str,
    change: impl Fn(&str) -> Result<String>,
) -> Result<()> {
    let all = users(transaction)?;
    for user in all.into_iter().filter(|user| user.reads(read)) {
        user.set_query(transaction, change(&user.query)?)?;
    }
    Ok(())
}

fn names_type(query: &Query, known: &str) -> bool {
    let is_domain = |data_type: &SqlType| domain_of(data_type).is_some_and(|(found, _)| found == known);
    let is_it = |data_type: DataType| match data_type {
        DataType::Enum(of) => of.name() == known,
        DataType::Array(item) => matches!(item.data_type(), DataType::Enum(of) if of.name() == known),
        _ => false,
    };
    let found = walk_expressions(query, |expr| match expr {
        Expr::Cast { data_type, .. }
            if is_domain(data_type) || column_type(data_type).is_ok_and(|(found, _)| is_it(found)) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}
