//! What a column is filled with: an expression checked, planned for its type, and written out for the catalog.
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Spanned, Statement, Value};
use engine::{Column, DataType};

use crate::access::default_expressions::{WithSequences, sequences_named};
use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, written};
use crate::error::{Result, SqlError};
use crate::planning::functions;
use crate::planning::index_compile::{Kind, check_syntax};
use crate::planning::planner::Planner;
use crate::state::user_functions::UserFunctions;
use crate::state::view::View;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::WalkMut;
use crate::values::assign::{Texts, is_assignable};
use crate::values::builder::ColumnBuilder;
use crate::values::literals::{Literal, append_literal, literal};
use crate::values::text::lasting_text;
use crate::values::types::type_name_of_field;
use crate::values::{Misfit, long_name};

/// The text that the catalog keeps of a column's default; `None` for NULL.
///
/// # Errors
/// PostgreSQL's, where the expression is none that may fill a column, or this column.
pub(crate) fn define(
    planner: &Planner,
    view: View,
    expr: &Expr,
    column: &Column,
    source: &Source,
) -> Result<Option<String>> {
    check_syntax(expr, Kind::Default, source)?;
    let expr = &functions::kept::inlined(expr.clone(), &[], source)?;
    let at = source.start(expr.span());
    if let Some(literal) = literal(expr) {
        return of_literal(literal, expr, column).map_err(|error| error.at(at));
    }
    for name in sequences_named(expr) {
        view.tables.find(&view.tables.resolved(name)).map_err(|error| SqlError::from(error).at(at))?;
    }
    let tables = view.tables.clone();
    // Other sessions, which fill the column too, do not have the functions of this one's program.
    let view = View { user_functions: UserFunctions::default(), ..view };
    check_type(planner, view, expr, column, source)?;
    let mut expr = expr.clone();
    let _ = expr.walk_mut(&mut WithSequences { named: &|name| tables.resolved(name) });
    let text = written(&expr, &[], Style::Kept);
    // It is read again by each statement that leaves the column out.
    let is_read_again = parsed(&text).is_ok_and(|again| written(&again, &[], Style::Kept) == text);
    Ok(Some(if is_read_again { text } else { expr.to_string() }))
}

/// A constant, which is a value of the column's type from here on if it has no other.
fn of_literal(literal: Literal, expr: &Expr, column: &Column) -> Result<Option<String>> {
    let mut builder = ColumnBuilder::new(column.data_type);
    match literal {
        Literal::Null => Ok(None),
        Literal::Text(text) => match append_literal(&mut builder, Literal::Text(text.clone()), column) {
            // As in PostgreSQL a number is cut to the column's digits only where it is put in.
            Ok(()) if let DataType::Decimal { .. } = column.data_type => {
                let mut builder = ColumnBuilder::new(DataType::Numeric);
                let number = builder.append_text(&text).ok().and_then(|()| lasting_text(&builder.finish(), 0));
                Ok(Some(quoted_text(&number.unwrap_or(text))))
            }
            Ok(()) => {
                let value = builder.finish();
                Ok(Some(quoted_text(&lasting_text(&value, 0).unwrap_or(text))))
            }
            // As in PostgreSQL a text that is too long is one only where it is put in.
            Err(error) if error.sqlstate == "22001" => Ok(Some(quoted_text(&text))),
            Err(error) => Err(error),
        },
        other => match append_literal(&mut builder, other, column) {
            Err(error) if error.sqlstate == "42804" => Err(of_default(error)),
            // A number that is out of range is one only where it is put in.
            _ => Ok(Some(written(expr, &[], Style::Kept))),
        },
    }
}

fn quoted_text(text: &str) -> String {
    Value::SingleQuotedString(text.to_owned()).to_string()
}

/// Says of a default what was said of an expression.
fn of_default(error: SqlError) -> SqlError {
    let message = error.message.replacen("but expression is", "but default expression is", 1);
    SqlError { message, ..error }
}

/// Plans the expression as a query's, and looks whether its values go into the column.
///
/// # Errors
/// 42804 where they do not; what is wrong with the expression.
pub(crate) fn check_type(planner: &Planner, view: View, expr: &Expr, column: &Column, source: &Source) -> Result<()> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
    }
    let schema = planner.plan(Statement::Query(query), view, source)?.schema();
    let field = schema.field(0);
    if is_assignable(field, column.data_type, Texts::Stay) {
        return Ok(());
    }
    let from = type_name_of_field(field);
    let error = of_default(Misfit::Kind.error(&column.name, column.data_type, "", &from));
    debug_assert!(error.message.contains(&long_name(column.data_type)), "{error} names the type of its column");
    Err(error.at(source.start(expr.span())))
}
