//! What an index is of: columns and expressions, as `CREATE INDEX` and exclusion constraints list them.
use datafusion::sql::sqlparser::ast::{CastKind, Expr, IndexColumn, Spanned};
use engine::{Collation, DataType, IndexMethod, IndexPart, PartOrder, Table, TermClass};

use crate::access::folded_parts;
use crate::access::index_expressions::write::is_call;
use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::planning::index_compile::Kind;
use crate::semantics::spelling::collations;
use crate::statements::operator_classes;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::collated::DEFAULT;

/// A column, or an expression. Whichever order they are asked for in, the index is read from either end.
pub(super) fn part(column: &IndexColumn, table: &Table, method: IndexMethod, source: &Source) -> Result<IndexPart> {
    let mut expr = &column.column.expr;
    while let Expr::Collate { expr: collated, .. } = expr {
        expr = collated;
    }
    let mut inner = expr;
    loop {
        inner = match inner {
            Expr::Nested(nested) => nested,
            Expr::Collate { expr: collated, .. } => collated,
            _ => break,
        };
    }
    let part = match inner {
        Expr::Identifier(ident) if method == IndexMethod::Gin => IndexPart::Column(place(table, &fold(ident))?),
        Expr::Identifier(ident) => folded_parts::of_column(place(table, &fold(ident))?, table.schema().columns()),
        _ if matches!(expr, Expr::Nested(_) | Expr::Cast { kind: CastKind::Cast, .. }) || is_call(expr) => {
            IndexPart::Expression(crate::planning::index_define::define(inner, table, Kind::Expression, source)?)
        }
        _ => {
            let message = format!("an index of {expr}, which is no call of a function, needs parentheses");
            let hint = format!("Write ({expr}) with parentheses of its own.");
            return Err(SqlError::syntax(message).hint(hint).at(source.start(expr.span())));
        }
    };
    check_order(column, method)?;
    let data_type = type_of(&part, table);
    match &column.operator_class {
        Some(class) if method == IndexMethod::Gin => operator_classes::check(class, data_type, method, source)?,
        Some(class) => {
            operator_classes::check_default(data_type, method)?;
            operator_classes::check(class, data_type, method, source)?;
        }
        None => operator_classes::check_default(data_type, method)?,
    }
    Ok(part)
}

pub(super) fn type_of(part: &IndexPart, table: &Table) -> DataType {
    match part {
        part if let Some(column) = folded_parts::column_of(part) => table.schema().columns()[column].data_type,
        IndexPart::Expression(expression) => expression.data_type,
        IndexPart::Column(column) => table.schema().columns()[*column].data_type,
    }
}

/// The collation that a part says, by its name, if it is not that of its column.
pub(super) fn collation(
    column: &IndexColumn,
    part: &IndexPart,
    table: &Table,
    source: &Source,
) -> Result<Option<String>> {
    let mut expr = &column.column.expr;
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    let Expr::Collate { collation, .. } = expr else { return Ok(None) };
    let said = collations::of_type(collation, type_of(part, table), source)?;
    let own = match part {
        part if let Some(column) = folded_parts::column_of(part) => table.schema().columns()[column].collation.clone(),
        _ => None,
    };
    let name = |of: Option<Collation>| of.map_or_else(|| DEFAULT.to_owned(), |of| of.name);
    Ok((said != own).then(|| name(said)))
}

/// The terms of a part of an inverted index: those of the class that it names, or of its type.
pub(super) fn term_class(column: &IndexColumn, part: &IndexPart, table: &Table) -> Option<TermClass> {
    match &column.operator_class {
        Some(class) => TermClass::named(&last_part(class)?),
        None => TermClass::of_type(type_of(part, table)),
    }
}

/// The order that a part is asked for in.
pub(super) fn order(column: &IndexColumn) -> PartOrder {
    let options = &column.column.options;
    let descending = options.asc == Some(false);
    PartOrder { descending, nulls_first: options.nulls_first.unwrap_or(descending) }
}

/// A method without an order has no direction. Ordered ones are read from either end.
fn check_order(column: &IndexColumn, method: IndexMethod) -> Result<()> {
    let options = &column.column.options;
    let refused = match method {
        _ if method.is_ordered() => return Ok(()),
        _ if options.asc.is_some() => "ASC/DESC",
        _ if options.nulls_first.is_some() => "NULLS FIRST/LAST",
        _ => return Ok(()),
    };
    let message = format!("access method \"{}\" does not support {refused} options", method.name());
    Err(SqlError::new("0A000", message))
}

fn place(table: &Table, column: &str) -> Result<usize> {
    let missing = || SqlError::new("42703", format!("column \"{column}\" does not exist"));
    table.schema().position(column).ok_or_else(missing)
}
