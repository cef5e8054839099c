//! `INSERT`: a list of values, or a query's rows as they come.
//!
//! Columns without a value are filled by `filling`; `identity` tells which values of identity columns are taken.
use datafusion::sql::sqlparser::ast::{
    Insert, ObjectName, Query, SelectItem, SetExpr, Spanned, Statement, TableObject,
};
use engine::Table;

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{column_name, fold, position, table_name};
use crate::planning::planner::Planner;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Outcome;
use crate::state::target::Target;
use crate::statements::change::{given_back, outcome};
use crate::statements::constants;
use crate::statements::filling::Filling;
use crate::statements::identity::Overriding;
use crate::statements::on_conflict::OnConflict;
use crate::statements::returning::{Inserted, Returning};
use crate::statements::values_list;
use crate::statements::view_target::{self, ViewTarget};
use crate::syntax::source::Source;
use crate::values::assign::{Texts, is_assignable};
use crate::values::literals::is_untyped_literal;

/// Runs an `INSERT`.
pub(crate) fn run(session: &mut Session, insert: &Insert, source: &Source) -> Result<Outcome> {
    session.write("INSERT", |session, write| write_insert(session, write, insert, source))
}

/// Puts in the rows of an `INSERT`.
pub(crate) fn write_insert(
    session: &Session,
    write: &mut Write<'_>,
    insert: &Insert,
    source: &Source,
) -> Result<Outcome> {
    let (name, returning) = returning(insert, &session.planner, source)?;
    let (table, view) = view_target::find(write, name, source)?;
    let returning = returning.map(|returning| returning.through(view.clone()));
    let named: Result<Vec<_>> =
        insert.columns.iter().map(|name| Ok((column_name(name, source)?, position(name, source)))).collect();
    let (named, overriding) = Overriding::taken_from(named?);
    let (target, computed) = match &view {
        None => (Target::new(table.clone(), &named)?, None),
        Some(view) => target_through(view, table.clone(), &named)?,
    };
    let label = label(insert, name, source)?;
    let conflicts = OnConflict::read(insert.on.as_ref(), &label, (write, &table, view.as_ref()), source)?;
    if let Some(conflicts) = &conflicts {
        conflicts.check(session, write, &table)?;
    }
    let tells_apart = returning.as_ref().is_some_and(|returning| returning.tells_apart(&table));
    let conflicts = conflicts.map(|known| if tells_apart { known.marked_by(write) } else { known });
    let is_kept = returning.is_some() || view.as_ref().is_some_and(ViewTarget::has_checks);
    let inserted = Inserted::none(session, is_kept, conflicts);
    let into = Into { target, width: Width { is_named: !named.is_empty(), computed }, overriding, inserted };
    let moment = returning.as_ref().map_or(Ok(None), |returning| returning.moment(write))?;
    let inserted = match &insert.source {
        None => insert_defaults(session, write, into)?,
        Some(query) => match plain_values(query) {
            Some(values) => values_list::insert(session, write, into, values, source)?,
            None => insert_query(session, write, into, query, source)?,
        },
    };
    let (count, rows) = (inserted.count, inserted.into_rows());
    view.as_ref().map_or(Ok(()), |view| view.check(session, write, &rows, source))?;
    let rows = given_back(session, write, returning.as_ref(), (&table, rows, moment), source)?;
    Ok(outcome(format!("INSERT 0 {count}"), rows))
}

/// The columns of the table that an `INSERT` into a view fills; where it names none, also the error of one value more, if the next
/// column is computed.
fn target_through(
    view: &ViewTarget,
    table: Table,
    named: &[(String, Option<usize>)],
) -> Result<(Target, Option<SqlError>)> {
    const VERB: &str = "insert into";
    if named.is_empty() {
        let (columns, next) = view.leading();
        let columns: Vec<(String, Option<usize>)> = columns.into_iter().map(|name| (name, None)).collect();
        let computed = next.map(|column| view.computed(column, VERB));
        check_once(&[], &columns)?;
        let target = Target::new(table, &columns)?;
        // No columns at all would stand for those of the table.
        return Ok((target.first(columns.len()), computed));
    }
    let columns = named.iter().map(|(name, at)| Ok((view.column(name, VERB, *at)?, *at)));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    check_once(named, &columns)?;
    Ok((Target::new(table, &columns)?, None))
}

/// Refuses two columns of a view that are one of its table. Of one name that comes twice the target tells.
fn check_once(named: &[(String, Option<usize>)], columns: &[(String, Option<usize>)]) -> Result<()> {
    let is_named_twice =
        named.iter().enumerate().any(|(at, (name, _))| named[..at].iter().any(|(other, _)| other == name));
    let twice =
        columns.iter().enumerate().find(|(at, (name, _))| columns[..*at].iter().any(|(other, _)| other == name));
    match twice {
        Some((_, (name, at))) if !is_named_twice => {
            Err(SqlError::syntax(format!("multiple assignments to same column \"{name}\"")).at(*at))
        }
        _ => Ok(()),
    }
}

/// The table, and what is given back of its new rows.
pub(crate) fn returning<'a>(
    insert: &'a Insert,
    planner: &Planner,
    source: &Source,
) -> Result<(&'a ObjectName, Option<Returning<'a>>)> {
    let name = check(insert, source)?;
    let label = label(insert, name, source)?;
    let returning = Returning::read(insert.returning.as_ref(), label, planner, source)?;
    Ok((name, returning.map(Returning::of_insert)))
}

/// What the columns of the table are called by.
fn label(insert: &Insert, name: &ObjectName, source: &Source) -> Result<String> {
    match &insert.table_alias {
        Some(alias) => Ok(fold(&alias.alias)),
        None => Ok(local(&table_name(name, source)?).to_owned()),
    }
}

/// `DEFAULT VALUES`: one row.
fn insert_defaults<'a>(session: &Session, write: &mut Write<'_>, into: Into<'a>) -> Result<Inserted<'a>> {
    let (target, mut inserted) = (into.target.first(0), into.inserted);
    let row = Filling::of(session, write, &target)?.rows(write, &target, Vec::new(), 1)?;
    inserted.insert(write, &target.table, &row)?;
    Ok(inserted)
}

/// Where the rows of an `INSERT` go.
pub(crate) struct Into<'a> {
    pub(crate) target: Target,
    pub(crate) width: Width,
    pub(crate) overriding: Overriding,
    /// What becomes of them.
    pub(crate) inserted: Inserted<'a>,
}

/// What rows of another width are refused with.
pub(crate) struct Width {
    /// Whether the statement names the columns.
    pub(crate) is_named: bool,
    /// The error of one value more, if it is that of a computed column.
    pub(crate) computed: Option<SqlError>,
}

/// Refuses the clauses that are not there, and finds the table's name.
fn check<'a>(insert: &'a Insert, source: &Source) -> Result<&'a ObjectName> {
    let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
    match insert {
        _ if insert.output.is_some()
            || insert.or.is_some()
            || insert.ignore
            || insert.overwrite
            || insert.replace_into =>
        {
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
pub(crate) fn check_width(width: usize, target: &Target, asked: &Width, at: Option<usize>) -> Result<()> {
    let columns = target.columns().len();
    match width {
        _ if width > columns
            && let Some(error) = &asked.computed =>
        {
            Err(error.clone())
        }
        _ if width > columns => Err(SqlError::syntax("INSERT has more expressions than target columns").at(at)),
        _ if width < columns && asked.is_named => {
            Err(SqlError::syntax("INSERT has more target columns than expressions").at(at))
        }
        _ => Ok(()),
    }
}

fn insert_query<'a>(
    session: &Session,
    write: &mut Write<'_>,
    Into { target, width, overriding, mut inserted }: Into<'a>,
    query: &Query,
    source: &Source,
) -> Result<Inserted<'a>> {
    let moment = write.moment()?;
    let view = write.view(session, moment, Vec::new());
    let mut asked = Box::new(query.clone());
    write.with.surround(&mut asked)?;
    let plan = session.planner.plan(Statement::Query(asked), view, source)?;
    let schema = plan.schema();
    let at = source.start(query.span());
    check_width(schema.fields().len(), &target, &width, at)?;
    let mut target = target.first(schema.fields().len());
    let ignored = overriding.ignored(write, &target, |_| false)?;
    let texts = literal_columns(query, schema.fields().len());
    for ((field, column), texts) in schema.fields().iter().zip(target.columns()).zip(&texts) {
        if !is_assignable(field, column.data_type, *texts) {
            let from = crate::values::types::type_name(field.data_type());
            return Err(crate::values::Misfit::Kind.error(&column.name, column.data_type, "", &from).at(at));
        }
    }
    let given = target.clone();
    target.retain(|at| !ignored.contains(&at));
    let filling = Filling::of(session, write, &target)?;
    // The query does not see the rows being inserted, and need not end before the first of them.
    for batch in plan.start()? {
        let batch = batch?;
        let mut arrays = given.assign(&batch, &texts)?;
        ignored.iter().rev().for_each(|at| drop(arrays.remove(*at)));
        let rows = filling.rows(write, &target, arrays, batch.num_rows())?;
        inserted.insert(write, &target.table, &rows)?;
    }
    if inserted.count == 0 {
        check_constants(session, write, &given, query, &texts, source)?;
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
