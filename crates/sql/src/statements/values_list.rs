//! `INSERT ... VALUES`: each cell takes the type of its column on its own, so that literals need no planner.
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Field;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Spanned, Statement, Value, Values};
use engine::Column;

use crate::access::default_expressions::expression_of;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::statements::insert::{Into, check_width};
use crate::statements::returning::Inserted;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::Misfit;
use crate::values::assign::{Texts, assign};
use crate::values::builder::ColumnBuilder;
use crate::values::literals::{append_literal, is_default, literal};
use crate::values::types::type_name;

/// Rows that are built and inserted together.
const ROWS_AT_ONCE: usize = 8_192;
/// Expressions that are computed by one query.
const EXPRESSIONS_AT_ONCE: usize = 100;

/// Inserts the rows of a `VALUES` list.
pub(crate) fn insert<'a>(
    session: &Session,
    write: &mut Write<'_>,
    Into { target, width: asked, overriding, mut inserted }: Into<'a>,
    values: &Values,
    source: &Source,
) -> Result<Inserted<'a>> {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    // The first expression that is too much, or where they begin.
    let row = values.rows.first().map_or(&[][..], |row| &row.content);
    let wrong = row.get(target.columns().len()).or(row.first());
    check_width(width, &target, &asked, wrong.and_then(|expr| source.start(expr.span())))?;
    let mut target = target.first(width);
    if let Some(row) = values.rows.iter().find(|row| row.content.len() != width) {
        let at = row.content.first().and_then(|expr| source.start(expr.span()));
        return Err(SqlError::syntax("VALUES lists must all be the same length").at(at));
    }
    let only_defaults = |at: usize| values.rows.iter().all(|row| row.content.get(at).is_some_and(is_default));
    let ignored = overriding.ignored(write, &target, only_defaults)?;
    target.retain(|at| !ignored.contains(&at));
    let taken: Vec<usize> = (0..width).filter(|at| !ignored.contains(at)).collect();
    let defaults = defaults_of(write, &target)?;
    let filling = Filling::of(session, write, &target)?;
    let mut builders: Vec<ColumnBuilder> =
        target.columns().map(|column| ColumnBuilder::new(column.data_type)).collect();
    for (at, rows) in values.rows.chunks(ROWS_AT_ONCE).enumerate() {
        write.check()?;
        let cells = rows.iter().flat_map(|row| taken.iter().map(|at| &row.content[*at]).zip(&defaults));
        let cells: Vec<&Expr> = cells.map(|(expr, default)| if is_default(expr) { default } else { expr }).collect();
        let exprs = cells.iter().copied().filter(|expr| literal(expr).is_none());
        let mut computed = compute(session, write, &exprs.collect::<Vec<_>>(), source)?.into_iter();
        if (at + 1) * ROWS_AT_ONCE >= values.rows.len() {
            write.end_reading();
        }
        for row in cells.chunks(taken.len().max(1)) {
            for ((expr, column), builder) in row.iter().zip(target.columns()).zip(&mut builders) {
                let appended = match literal(expr) {
                    Some(literal) => append_literal(builder, literal, column),
                    None => append_computed(builder, computed.next(), column),
                };
                appended.map_err(|error| error.at(source.start(expr.span())))?;
            }
        }
        let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = filling.rows(write, &target, arrays, rows.len())?;
        inserted.insert(write, &target.table, &batch)?;
    }
    Ok(inserted)
}

/// What `DEFAULT` stands for in each of the columns to fill.
fn defaults_of(write: &Write<'_>, target: &Target) -> Result<Vec<Expr>> {
    let known = write.transaction.settings(&target.table).defaults;
    let null = || Expr::Value(Value::Null.with_empty_span());
    target.positions().iter().map(|column| Ok(expression_of(&known, *column)?.unwrap_or_else(null))).collect()
}

fn append_computed(builder: &mut ColumnBuilder, computed: Option<(ArrayRef, Field)>, column: &Column) -> Result<()> {
    let Some((array, field)) = computed else {
        return Err(SqlError::new("XX000", "a value was not computed"));
    };
    if array.len() != 1 {
        let from = type_name(array.data_type());
        return Err(Misfit::Kind.error(&column.name, column.data_type, "", &from));
    }
    let array = assign(&array, &field, &column.name, column.data_type, Texts::Stay)?;
    builder.append_cell(&array, 0);
    Ok(())
}

/// The values of expressions, each as an array of one.
fn compute(
    session: &Session,
    write: &mut Write<'_>,
    exprs: &[&Expr],
    source: &Source,
) -> Result<Vec<(ArrayRef, Field)>> {
    let mut computed = Vec::with_capacity(exprs.len());
    for exprs in exprs.chunks(EXPRESSIONS_AT_ONCE) {
        let mut query = select_of(exprs)?;
        write.with.surround(&mut query)?;
        let moment = write.moment()?;
        let view = write.view(session, moment, Vec::new());
        let plan = session.planner.plan(Statement::Query(query), view, source)?;
        let schema = plan.schema();
        let batches = plan.collect()?;
        let row: Option<&RecordBatch> = batches.iter().find(|batch| batch.num_rows() == 1);
        let Some(row) = row.filter(|_| batches.iter().map(RecordBatch::num_rows).sum::<usize>() == 1) else {
            return Err(SqlError::unsupported("a function that returns a set, in VALUES"));
        };
        let fields = schema.fields().iter().map(|field| field.as_ref().clone());
        computed.extend(row.columns().iter().cloned().zip(fields));
    }
    Ok(computed)
}

/// `SELECT` of these expressions without a table.
fn select_of(exprs: &[&Expr]) -> Result<Box<Query>> {
    let mut query = template("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    let item = |(at, expr): (usize, &&Expr)| SelectItem::ExprWithAlias {
        expr: (*expr).clone(),
        alias: Ident::with_quote('"', format!("\0{at}")),
    };
    select.projection = exprs.iter().enumerate().map(item).collect();
    Ok(query)
}
