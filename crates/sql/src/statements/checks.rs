//! `CHECK` constraints that a statement asks for: their names, their conditions, and the rows that are there.
//!
//! The engine applies them to whatever is written; see its `state/rules.rs`. Here they are made.
use datafusion::sql::sqlparser::ast::{CheckConstraint, Expr, Ident, SetExpr, Spanned, Statement, UnaryOperator};
use engine::{Check, Column, Table, Transaction};

use crate::access::index_expressions::text::parsed;
use crate::error::{About, Result, SqlError, of_domain};
use crate::names::fold;
use crate::names::made_names::free_name;
use crate::names::moment::Moment;
use crate::names::schemas::{beside, local, schema_of};
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define_over;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::view::RowTarget;
use crate::statements::target_factor::target_factor;
use crate::syntax::source::Source;
use crate::syntax::template::template;

/// A constraint that is asked for.
pub(crate) struct AskedCheck<'a> {
    name: Option<&'a Ident>,
    expr: &'a Expr,
}

impl<'a> AskedCheck<'a> {
    /// The constraint of a table, or of a column that gives it this name.
    ///
    /// # Errors
    /// If it says more than PostgreSQL 15 knows.
    pub(crate) fn read(
        constraint: &'a CheckConstraint,
        name: Option<&'a Ident>,
        source: &Source,
    ) -> Result<AskedCheck<'a>> {
        if constraint.enforced.is_some() {
            return Err(SqlError::unsupported("ENFORCED").at(source.find_word("enforced")));
        }
        Ok(AskedCheck { name: name.or(constraint.name.as_ref()), expr: &constraint.expr })
    }

    /// The constraint as the catalog keeps it, for a table of this name with these columns.
    ///
    /// # Errors
    /// PostgreSQL's, where the condition is none.
    pub(crate) fn define(
        &self,
        (table, columns): (&str, &[Column]),
        names: &mut Names<'_>,
        source: &Source,
    ) -> Result<Check> {
        let condition = define_over(self.expr, (table, columns), Kind::Check, source)?;
        let name = match self.name {
            Some(name) => names.take(fold(name)).map_err(|error| error.at(source.start(name.span)))?,
            None => {
                let column = match &condition.columns[..] {
                    [column] => &columns[*column].name,
                    _ => "",
                };
                names.find(local(table), column, "check")
            }
        };
        Ok(Check { name, condition: condition.text, columns: condition.columns, validated: true })
    }

    /// Where the condition stands.
    pub(crate) fn position(&self, source: &Source) -> Option<usize> {
        source.start(self.expr.span())
    }
}

/// The names of constraints that are taken.
pub(crate) struct Names<'t> {
    transaction: &'t Transaction,
    /// the table that is given constraints, where it is there already
    table: Option<String>,
    own: Vec<String>,
}

impl<'t> Names<'t> {
    /// Those that a transaction sees, for a table that is about to be made.
    pub(crate) fn of_new(transaction: &'t Transaction) -> Names<'t> {
        Names { transaction, table: None, own: Vec::new() }
    }

    /// Those that a transaction sees, for a table that is there.
    pub(crate) fn of(transaction: &'t Transaction, table: &Table, name: &str) -> Names<'t> {
        Names { transaction, table: Some(name.to_owned()), own: names_of(transaction, table, name) }
    }

    /// Takes a name that a statement gives.
    pub(crate) fn take(&mut self, name: String) -> Result<String> {
        if self.own.contains(&name) {
            let message = match &self.table {
                Some(table) => format!("constraint \"{name}\" for relation \"{table}\" already exists"),
                None => format!("check constraint \"{name}\" already exists"),
            };
            return Err(SqlError::new("42710", message));
        }
        self.own.push(name.clone());
        Ok(name)
    }

    /// The first name for what is of columns of a table that no constraint has.
    pub(crate) fn find(&mut self, table: &str, columns: &str, label: &str) -> String {
        let of_this = self.table.as_deref();
        let is_taken = |name: &str| self.own.iter().any(|known| known == name);
        let is_free = |name: &str| !is_taken(name) && !self.transaction.has_constraint(name, of_this);
        let found = free_name(table, columns, label, is_free);
        self.own.push(found.clone());
        found
    }
}

/// The table whose primary key has this name, in the schema of the name.
pub(crate) fn table_of_key(transaction: &Transaction, name: &str) -> Result<Option<Table>> {
    let schema = schema_of(name);
    for table_name in transaction.table_names().into_iter().filter(|table| schema_of(table) == schema) {
        let table = transaction.table(&table_name)?;
        if table.primary_index().is_some() && transaction.settings(&table).name_of_key(&table_name) == name {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// Gives the primary key of a table another name.
pub(crate) fn rename_key(transaction: &mut Transaction, table: &str, to: String) -> Result<()> {
    let is_made = beside(table, &to) == format!("{table}_pkey");
    Ok(transaction.set_key_name(table, (!is_made).then_some(to))?)
}

/// The names of the constraints of a table.
pub(crate) fn names_of(transaction: &Transaction, table: &Table, name: &str) -> Vec<String> {
    let settings = transaction.settings(table);
    let key = table.primary_index().map(|_| local(&settings.name_of_key(name)).to_owned());
    let indexes = transaction.indexes(table);
    let uniques = indexes.iter().map(engine::Index::definition).filter(|definition| definition.is_constraint);
    let checks = settings.checks.into_iter().map(|check| check.name);
    let foreign = settings.foreign_keys.into_iter().map(|key| key.name);
    checks.chain(foreign).chain(key).chain(uniques.map(|definition| local(&definition.name).to_owned())).collect()
}

/// An error if a row that is there breaks a constraint. The caller has the table for itself.
pub(crate) fn check_rows(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    check: &Check,
) -> Result<()> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let condition = Box::new(Expr::Nested(Box::new(parsed(&check.condition)?)));
        select.from = vec![target_factor(name, 0)?];
        select.selection = Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: condition });
    }
    // Whatever the transaction's own snapshot is, all rows count.
    let moment = Moment::of(write.transaction.newest_view()?);
    let view = session.view(moment.clone(), vec![RowTarget::new(table.clone(), moment, None)]);
    let plan = session.planner.plan(Statement::Query(query), view, &Source::new(""))?;
    for batch in plan.start()? {
        if batch?.num_rows() > 0 {
            if let Some(error) = of_domain(&check.name) {
                return Err(error);
            }
            let message = format!("check constraint \"{}\" of relation \"{name}\" is violated by some row", check.name);
            let about = About::of(table.name(), None, Some(check.name.clone()));
            return Err(SqlError::new("23514", message).about(about));
        }
    }
    Ok(())
}
