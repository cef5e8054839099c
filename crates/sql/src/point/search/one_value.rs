//! A query for one value that a change compares a column with: `key = (SELECT min(key) FROM t WHERE ...)`.
//!
//! Its value stands behind those of the statement's parameters, and the condition compares with it as with one of these.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use engine::DataType;

use super::Search;
use super::condition::Condition;
use crate::names::tables::Tables;
use crate::point::exact::is_integer;
use crate::point::scope::{Named, Scope, is_plain};
use crate::point::shape::{Action, Shape};
use crate::point::term::Origin;

/// A query for the smallest or the largest value of a column.
#[derive(Debug)]
pub(crate) struct OneValue {
    pub(crate) table: String,
    pub(crate) id: u32,
    pub(crate) search: Search,
    /// The type of its value.
    pub(crate) data_type: DataType,
}

/// The condition that an expression is, whose other side may be such a query, which joins the others then.
pub(super) fn condition(
    expr: &Expr,
    scope: &Scope<'_>,
    tables: &Tables,
    queries: &mut Vec<OneValue>,
) -> Option<Condition> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return scope.condition(expr) };
    let Expr::Subquery(query) = &**right else { return scope.condition(expr) };
    let column = scope.column(left)?;
    let query = OneValue::plan(Shape::of_query(query)?, tables, scope.types)?;
    let to = scope.known(column).data_type;
    if to != query.data_type && !(is_integer(to) && is_integer(query.data_type)) {
        return None;
    }
    queries.push(query);
    Some(Condition::equal(column, Origin::Parameter(scope.types.len() + queries.len() - 1, to)))
}

impl OneValue {
    fn plan(shape: Shape<'_>, tables: &Tables, types: &[DataType]) -> Option<OneValue> {
        let Action::Select(selection) = &shape.action else { return None };
        let table = tables.find(&shape.table).ok()?;
        if !is_plain(&table) {
            return None;
        }
        let named = [Named::only(&shape.label, &table)];
        let scope = Scope { tables: &named, types, compiles: false };
        let search = Search::plan(&shape.conditions, selection, None, &scope)?;
        let place = search.answer.extreme()?.place;
        let data_type = scope.known(search.reads[place]).data_type;
        Some(OneValue { id: table.id(), search, data_type, table: shape.table })
    }
}
