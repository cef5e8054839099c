//! The views that read a column of a table which is dropped or gets another type.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, Select, TableAlias, TableFactor, Visitor,
};
use engine::{Table, Transaction};

use crate::error::{Result, SqlError};
use crate::parsing::parse::{Places, parse_query};
use crate::semantics::naming::columns::label;
use crate::statements::view_text::{each_table, without_column};
use crate::statements::view_users::{User, change_users, users};
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::walk::Walk;

/// Whether a view reads a column of a table, as far as the text of its query tells.
pub(crate) fn reads(user: &User, table: &Table, column: usize) -> Result<bool> {
    Ok(reads_column(&*parse_query(&user.query, Places::Unknown)?, table, column))
}

/// Refuses another type for a column that a view reads.
pub(crate) fn check_retyped(transaction: &Transaction, table: &Table, column: usize) -> Result<()> {
    for user in users(transaction)? {
        if reads(&user, table, column)? {
            let name = &table.schema().columns()[column].name;
            let error = SqlError::new("0A000", "cannot alter type of a column used by a view or rule");
            return Err(error.detail(format!("rule _RETURN on {} depends on column \"{name}\"", user.shown())));
        }
    }
    Ok(())
}

/// Has views go on finding the other columns of a table, of which some are gone.
pub(crate) fn forget(transaction: &mut Transaction, table: &str, columns: &[usize]) -> Result<()> {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    for column in columns.into_iter().rev() {
        change_users(transaction, table, |text| without_column(text, table, column))?;
    }
    Ok(())
}

/// Whether a query reads a column of a table. Where the text does not tell of which of several tables a column is, it does.
fn reads_column(query: &Query, table: &Table, column: usize) -> bool {
    let mut reads = ReadsColumn { read: Vec::new(), found: false };
    let _ = each_table(query, |name, factor| {
        if let TableFactor::Table { alias, .. } = factor
            && name == table.name()
        {
            reads.read.push((label(factor).map(|label| fold(&label)), known_as(alias.as_ref(), table, column)));
        }
    });
    let _ = query.walk(&mut reads);
    reads.found
}

/// What a column of a table is called in a query.
fn known_as(alias: Option<&TableAlias>, table: &Table, column: usize) -> String {
    let renamed = alias.and_then(|alias| alias.columns.get(column));
    renamed.map_or_else(|| table.schema().columns()[column].name.clone(), |renamed| fold(&renamed.name))
}

struct ReadsColumn {
    /// How the table is called where it is read, and its column there.
    read: Vec<(Option<String>, String)>,
    found: bool,
}

impl ReadsColumn {
    fn note(&mut self, is_read: impl Fn(&Option<String>, &str) -> bool) {
        self.found |= self.read.iter().any(|(label, column)| is_read(label, column));
    }
}

impl Visitor for ReadsColumn {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|table| &table.joins) {
            match merging(&join.join_operator) {
                Some(JoinConstraint::Using(names)) => {
                    let names: Vec<String> = names.iter().filter_map(last_part).collect();
                    self.note(|_, column| names.iter().any(|name| name == column));
                }
                Some(JoinConstraint::Natural) => self.note(|_, _| true),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            // It may also be a whole row.
            Expr::Identifier(ident) => {
                let name = fold(ident);
                self.note(|label, column| column == name || label.as_ref() == Some(&name));
            }
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(fold).collect();
                if let [.., table, last] = &parts[..] {
                    self.note(|label, column| column == last && label.as_ref().is_none_or(|label| label == table));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn merging(join: &JoinOperator) -> Option<&JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}
