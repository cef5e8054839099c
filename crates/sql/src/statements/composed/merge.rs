//! `MERGE`: the rows of a source are matched with those of a table once, and each clause is then an `UPDATE`, `DELETE` or `INSERT` of the
//! rows that it is the first to take.
//!
//! ```text
//! MERGE INTO t USING s ON c WHEN MATCHED AND p THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a)
//!
//! match    SELECT t.rid AS r, CASE WHEN t.rid IS NOT NULL AND p THEN 1 WHEN t.rid IS NULL THEN 2 END AS do, s.* FROM s LEFT JOIN t ON c
//! clause   UPDATE t SET a = s.a FROM matched AS s WHERE t.rid = s.r AND s.do = 1 AND c AND p
//! clause   INSERT INTO t SELECT s.a FROM matched AS s WHERE s.do = 2
//! ```
//!
//! Under READ COMMITTED a row that others have changed meanwhile is changed if the conditions still hold for it, and else left alone:
//! a later clause does not take it instead.
use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Delete, Expr, FromTable, Ident, Insert, Merge, MergeAction, MergeClause, MergeClauseKind,
    MergeInsertExpr, MergeInsertKind, ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned,
    Statement, TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use engine::Table;

use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{fold, table_name};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Outcome};
use crate::state::view::RowTarget;
use crate::statements::change::{self, rows_of};
use crate::statements::insert;
use crate::statements::target_factor::target_factor;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::tokens::NOTHING;
use crate::values::literals::is_default;

/// The column with the id of the row that a row of the source matches.
const MATCHED: &str = "\0matched";
/// The column with the number of the clause that takes it, from 1.
const CLAUSE: &str = "\0clause";

/// Runs a `MERGE`.
pub(super) fn write_merge(session: &Session, write: &mut Write<'_>, merge: &Merge, source: &Source) -> Result<Outcome> {
    let merging = Merging::read(merge, source)?;
    let table = write.table(merging.name, source)?;
    let matched = merging.matched(session, write, &table)?;
    let taken = merging.taken(&matched)?;
    let rows = write.with.keep(&matched.schema(), std::slice::from_ref(&matched))?;
    let mut count = 0;
    for (at, clause) in merge.clauses.iter().enumerate() {
        if !taken.contains(&at) || is_nothing(&clause.action) {
            continue;
        }
        let done = match &clause.action {
            MergeAction::Update(update) => {
                let statement = merging.update(&update.assignments, &rows, at)?;
                change::write_update(session, write, &statement, source)?
            }
            MergeAction::Delete { .. } => change::write_delete(session, write, &merging.delete(&rows, at)?, source)?,
            MergeAction::Insert(new) => {
                insert::write_insert(session, write, &merging.insert(new, &table, &rows, at)?, source)?
            }
        };
        count += count_of(&done);
    }
    Ok(Command::new(format!("MERGE {count}")).into())
}

/// How many rows a part has changed.
fn count_of(done: &Outcome) -> u64 {
    match done {
        Outcome::Done(command) => command.rows().unwrap_or(0),
        Outcome::Rows(_) => 0,
    }
}

/// Whether a clause is `DO NOTHING`.
fn is_nothing(action: &MergeAction) -> bool {
    match action {
        MergeAction::Update(update) => update.assignments.iter().any(|set| set.target.to_string().contains(NOTHING)),
        MergeAction::Insert(MergeInsertExpr { kind: MergeInsertKind::Values(values), .. }) => {
            let mut cells = values.rows.iter().flat_map(|row| &row.content);
            cells.any(|cell| matches!(cell, Expr::Identifier(ident) if ident.value == NOTHING))
        }
        _ => false,
    }
}

struct Merging<'a> {
    merge: &'a Merge,
    name: &'a ObjectName,
    /// What the columns of the table are called by, and those of the source.
    label: String,
    of_source: String,
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn column(label: &str, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![quoted(label), quoted(name)])
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn number(value: usize) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

fn wrong_template() -> SqlError {
    SqlError::new("XX000", "the template is another statement")
}

/// The syntax tree of a statement of our own.
fn statement(text: &str) -> Result<Statement> {
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, text).map(|mut statements| statements.pop());
    parsed.ok().flatten().ok_or_else(wrong_template)
}

impl<'a> Merging<'a> {
    fn read(merge: &'a Merge, source: &Source) -> Result<Merging<'a>> {
        if merge.output.is_some() {
            return Err(SqlError::syntax("syntax error at or near \"returning\"").at(source.find_word("returning")));
        }
        let TableFactor::Table { name, alias, args: None, version: None, .. } = &merge.table else {
            return Err(SqlError::unsupported("MERGE into anything but a table"));
        };
        let label = alias.as_ref().map(|alias| fold(&alias.name));
        let label = label.map_or_else(|| Ok(local(&table_name(name, source)?).to_owned()), Ok::<_, SqlError>)?;
        let of_source = match &merge.source {
            TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
                fold(&alias.name)
            }
            TableFactor::Table { name, .. } => last_part(name).unwrap_or_default(),
            other => {
                let error = SqlError::syntax("subquery in FROM must have an alias");
                return Err(error.at(source.start(other.span())).hint("For example, FROM (SELECT ...) [AS] foo."));
            }
        };
        if label == of_source {
            let error = SqlError::new("42712", format!("name \"{label}\" specified more than once"));
            return Err(error.detail("The name is used both as MERGE target table and data source."));
        }
        let mut ends = HashSet::new();
        for clause in &merge.clauses {
            let is_matched = match clause.clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched => false,
                _ => return Err(SqlError::syntax("syntax error at or near \"by\"").at(source.find_word("by"))),
            };
            if ends.contains(&is_matched) {
                let message = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(SqlError::syntax(message));
            }
            if clause.predicate.is_none() {
                ends.insert(is_matched);
            }
        }
        Ok(Merging { merge, name, label, of_source })
    }

    /// Each row of the source with the row that it matches, and the clause that takes it.
    fn matched(&self, session: &Session, write: &mut Write<'_>, table: &Table) -> Result<RecordBatch> {
        let mut query = template("SELECT x.*, CASE WHEN true THEN 1 END AS b FROM s AS x LEFT JOIN t ON true")?;
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(wrong_template()) };
        let Some(from) = select.from.first_mut() else { return Err(wrong_template()) };
        from.relation = self.merge.source.clone();
        let Some(join) = from.joins.first_mut() else { return Err(wrong_template()) };
        join.relation = target_factor(&self.label, 0)?.relation;
        if let datafusion::sql::sqlparser::ast::JoinOperator::Left(constraint)
        | datafusion::sql::sqlparser::ast::JoinOperator::LeftOuter(constraint) = &mut join.join_operator
        {
            *constraint = datafusion::sql::sqlparser::ast::JoinConstraint::On((*self.merge.on).clone());
        }
        let rid = column(&self.label, &rid_column(0));
        let mut items = std::mem::take(&mut select.projection).into_iter();
        let (Some(mut all), Some(SelectItem::ExprWithAlias { expr: mut case, .. })) = (items.next(), items.next())
        else {
            return Err(wrong_template());
        };
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = &mut all {
            *name = ObjectName::from(vec![quoted(&self.of_source)]);
        }
        if let Expr::Case { conditions, .. } = &mut case
            && let Some(template) = conditions.pop()
        {
            for (at, clause) in self.merge.clauses.iter().enumerate() {
                let mut when = template.clone();
                (when.condition, when.result) = (condition(clause, &rid), number(at + 1));
                conditions.push(when);
            }
        }
        let named = |expr: Expr, name: &str| SelectItem::ExprWithAlias { expr, alias: quoted(name) };
        select.projection = vec![named(rid, MATCHED), named(case, CLAUSE), all];
        write.with.surround(&mut query)?;
        let moment = write.moment()?;
        let view = write.view(session, moment.clone(), vec![RowTarget::new(table.clone(), moment, None)]);
        rows_of(session.planner.plan(Statement::Query(query), view, &Source::new(""))?)
    }

    /// The places of the clauses that take rows. A row of the table is changed by one row of the source alone.
    fn taken(&self, matched: &RecordBatch) -> Result<HashSet<usize>> {
        let (mut seen, mut taken) = (HashSet::new(), HashSet::new());
        let rids = matched.column(0).as_primitive_opt::<UInt64Type>();
        let clauses = cast(matched.column(1), &ArrowType::Int64);
        let (Some(rids), Ok(clauses)) = (rids, clauses) else { return Err(wrong_template()) };
        let clauses = clauses.as_primitive::<Int64Type>();
        for row in (0..matched.num_rows()).filter(|row| clauses.is_valid(*row)) {
            let at = usize::try_from(clauses.value(row) - 1).unwrap_or(usize::MAX);
            taken.insert(at);
            let changes = self.merge.clauses.get(at).is_some_and(|clause| !is_nothing(&clause.action));
            if changes && rids.is_valid(row) && !seen.insert(rids.value(row)) {
                let error = SqlError::new("21000", "MERGE command cannot affect row a second time");
                return Err(error.hint("Ensure that not more than one source row matches any one target row."));
            }
        }
        Ok(taken)
    }

    /// The rows that were matched, under the name of the source.
    fn from(&self, rows: &Query) -> Result<TableWithJoins> {
        let query = template("SELECT 1 FROM (SELECT 1) AS y")?;
        let SetExpr::Select(mut select) = *query.body else { return Err(wrong_template()) };
        let mut from = select.from.pop().ok_or_else(wrong_template)?;
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut from.relation {
            **subquery = rows.clone();
            alias.name = quoted(&self.of_source);
        }
        Ok(from)
    }

    /// Which rows a clause takes that changes rows of the table.
    fn selection(&self, at: usize) -> Expr {
        let rid = both(column(&self.label, &rid_column(0)), BinaryOperator::Eq, column(&self.of_source, MATCHED));
        let conditions = std::iter::once((*self.merge.on).clone()).chain(self.merge.clauses[at].predicate.clone());
        let nested = conditions.map(|condition| Expr::Nested(Box::new(condition)));
        nested.fold(both(rid, BinaryOperator::And, self.is_taken(at)), |all, condition| {
            both(all, BinaryOperator::And, condition)
        })
    }

    fn is_taken(&self, at: usize) -> Expr {
        both(column(&self.of_source, CLAUSE), BinaryOperator::Eq, number(at + 1))
    }

    fn target(&self) -> TableWithJoins {
        TableWithJoins { relation: self.merge.table.clone(), joins: Vec::new() }
    }

    fn update(
        &self,
        assignments: &[datafusion::sql::sqlparser::ast::Assignment],
        rows: &Query,
        at: usize,
    ) -> Result<Update> {
        let Statement::Update(mut update) = statement("UPDATE t SET a = 1 FROM (SELECT 1) AS y WHERE true")? else {
            return Err(wrong_template());
        };
        (update.table, update.assignments) = (self.target(), assignments.to_vec());
        update.from = Some(UpdateTableFromKind::AfterSet(vec![self.from(rows)?]));
        update.selection = Some(self.selection(at));
        Ok(update)
    }

    fn delete(&self, rows: &Query, at: usize) -> Result<Delete> {
        let Statement::Delete(mut delete) = statement("DELETE FROM t USING (SELECT 1) AS y WHERE true")? else {
            return Err(wrong_template());
        };
        delete.from = FromTable::WithFromKeyword(vec![self.target()]);
        delete.using = Some(vec![self.from(rows)?]);
        delete.selection = Some(self.selection(at));
        Ok(delete)
    }

    fn insert(&self, new: &MergeInsertExpr, table: &Table, rows: &Query, at: usize) -> Result<Insert> {
        let MergeInsertKind::Values(values) = &new.kind else { return Err(SqlError::unsupported("INSERT ROW")) };
        let [row] = &values.rows[..] else {
            return Err(SqlError::syntax("MERGE inserts one row for each that is not matched"));
        };
        let Statement::Insert(mut insert) = statement("INSERT INTO t SELECT 1 FROM (SELECT 1) AS y WHERE true")? else {
            return Err(wrong_template());
        };
        insert.table = TableObject::TableName(self.name.clone());
        let all = table.schema().columns().iter().map(|column| ObjectName::from(vec![quoted(&column.name)]));
        let columns: Vec<ObjectName> = if new.columns.is_empty() { all.collect() } else { new.columns.clone() };
        let message = match row.content.len() {
            given if given > columns.len() => Some("INSERT has more expressions than target columns"),
            given if given < columns.len() && !new.columns.is_empty() => {
                Some("INSERT has more target columns than expressions")
            }
            _ => None,
        };
        if let Some(message) = message {
            return Err(SqlError::syntax(message));
        }
        // What says DEFAULT is left to it.
        let given = columns.into_iter().zip(&row.content).filter(|(_, expr)| !is_default(expr));
        let (columns, exprs): (Vec<ObjectName>, Vec<&Expr>) = given.unzip();
        insert.columns = columns;
        if exprs.is_empty() {
            return Err(SqlError::unsupported("a row of nothing but DEFAULT in MERGE"));
        }
        if let Some(SetExpr::Select(select)) = insert.source.as_mut().map(|query| query.body.as_mut()) {
            select.projection = exprs.into_iter().cloned().map(SelectItem::UnnamedExpr).collect();
            select.from = vec![self.from(rows)?];
            select.selection = Some(self.is_taken(at));
        }
        Ok(insert)
    }
}

/// Whether a clause takes a row of the source that matches the row with this id, if any.
fn condition(clause: &MergeClause, rid: &Expr) -> Expr {
    let rid = Box::new(rid.clone());
    let is_there = match clause.clause_kind {
        MergeClauseKind::Matched => Expr::IsNotNull(rid),
        _ => Expr::IsNull(rid),
    };
    match clause.predicate.clone() {
        Some(predicate) => both(is_there, BinaryOperator::And, Expr::Nested(Box::new(predicate))),
        None => is_there,
    }
}
