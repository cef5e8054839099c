//! `INSERT`: a list of values, or a query's rows as they come.
use datafusion::sql::sqlparser::ast::{
    Insert, ObjectName, Query, SelectItem, SetExpr, Spanned, Statement, TableObject,
};

use crate::error::{Result, SqlError};
use crate::names::{column_name, position};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::state::target::Target;
use crate::statements::constants;
use crate::statements::values_list;
use crate::syntax::source::Source;
use crate::values::assign::{Texts, is_assignable};
use crate::values::literals::is_untyped_literal;

/// Runs an `INSERT`.
pub(crate) fn run(session: &mut Session, insert: &Insert, source: &Source) -> Result<Command> {
    let name = check(insert, source)?;
    let inserted = session.write("INSERT", |session, write| {
        let table = write.table(name, source)?;
        let named: Result<Vec<_>> =
            insert.columns.iter().map(|name| Ok((column_name(name, source)?, position(name, source)))).collect();
        let target = Target::new(table, &named?)?;
        let is_named = !insert.columns.is_empty();
        match &insert.source {
            None => {
                let rows = target.first(0).rows_of_null()?;
                Ok(write.transaction.insert_batch(&rows.0.table, &rows.1)?)
            }
            Some(query) => match plain_values(query) {
                Some(values) => values_list::insert(session, write, target, is_named, values, source),
                None => insert_query(session, write, target, is_named, query, source),
            },
        }
    })?;
    Ok(Command::new(format!("INSERT 0 {inserted}")))
}

/// Refuses the clauses that are not there, and finds the table's name.
fn check<'a>(insert: &'a Insert, source: &Source) -> Result<&'a ObjectName> {
    let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
    match insert {
        _ if insert.on.is_some() => refuse("ON CONFLICT", "conflict"),
        _ if insert.returning.is_some() || insert.output.is_some() => refuse("RETURNING", "returning"),
        _ if insert.or.is_some() || insert.ignore || insert.overwrite || insert.replace_into => {
            refuse("this form of INSERT", "insert")
        }
        _ if insert.partitioned.is_some() || !insert.assignments.is_empty() || !insert.after_columns.is_empty() => {
            refuse("this form of INSERT", "insert")
        }
        _ => match &insert.table {
            TableObject::TableName(name) => Ok(name),
            _ => refuse("INSERT into anything but a table", "into"),
        },
    }
}

impl Target {
    /// One row of nothing but NULL, for `DEFAULT VALUES`.
    fn rows_of_null(self) -> Result<(Target, arrow_array::RecordBatch)> {
        let rows = self.rows(Vec::new(), 1)?;
        Ok((self, rows))
    }
}

/// The rows of a query that is a `VALUES` list and nothing else.
fn plain_values(query: &Query) -> Option<&datafusion::sql::sqlparser::ast::Values> {
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match query.body.as_ref() {
        SetExpr::Values(values) if is_plain => Some(values),
        _ => None,
    }
}

/// Refuses rows of the wrong width. Without a list of columns a row may leave the last ones out.
pub(crate) fn check_width(width: usize, target: &Target, is_named: bool, at: Option<usize>) -> Result<()> {
    let columns = target.columns().len();
    match width {
        _ if width > columns => Err(SqlError::syntax("INSERT has more expressions than target columns").at(at)),
        _ if width < columns && is_named => {
            Err(SqlError::syntax("INSERT has more target columns than expressions").at(at))
        }
        _ => Ok(()),
    }
}

fn insert_query(
    session: &Session,
    write: &mut Write<'_>,
    target: Target,
    is_named: bool,
    query: &Query,
    source: &Source,
) -> Result<u64> {
    let view = session.view(write.moment()?, Vec::new());
    let plan = session.planner.plan(Statement::Query(Box::new(query.clone())), view, source)?;
    let schema = plan.schema();
    let at = source.start(query.span());
    check_width(schema.fields().len(), &target, is_named, at)?;
    let target = target.first(schema.fields().len());
    let texts = literal_columns(query, schema.fields().len());
    for ((field, column), texts) in schema.fields().iter().zip(target.columns()).zip(&texts) {
        if !is_assignable(field, column.data_type, *texts) {
            let from = crate::values::types::type_name(field.data_type());
            return Err(crate::values::Misfit::Kind.error(&column.name, column.data_type, "", &from).at(at));
        }
    }
    // The query does not see the rows being inserted, and need not end before the first of them.
    let mut inserted = 0;
    for batch in plan.start()? {
        inserted += write.transaction.insert_batch(&target.table, &target.assign(&batch?, &texts)?)?;
    }
    if inserted == 0 {
        check_constants(session, write, &target, query, &texts, source)?;
    }
    Ok(inserted)
}

/// The constants of a query that is inserted, each with the column that it goes to.
fn check_constants(
    session: &Session,
    write: &mut Write<'_>,
    target: &Target,
    query: &Query,
    texts: &[Texts],
    source: &Source,
) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let columns = select.projection.iter().zip(target.columns()).zip(texts);
    let assigned = columns.filter_map(|((item, column), texts)| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some((expr, column, *texts)),
        _ => None,
    });
    constants::check(session, write, assigned, source)
}

/// Which columns of a query are untyped literals, which take the type of the column that they go to.
fn literal_columns(query: &Query, width: usize) -> Vec<Texts> {
    let mut texts = vec![Texts::Stay; width];
    if let SetExpr::Select(select) = query.body.as_ref()
        && select.projection.len() == width
    {
        for (item, texts) in select.projection.iter().zip(&mut texts) {
            if is_untyped_literal(item) {
                *texts = Texts::AreRead;
            }
        }
    }
    texts
}
