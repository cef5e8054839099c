//! Items of a query that are more than columns: expressions of the row and of parameters, and an order by them.
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema};
use datafusion::sql::sqlparser::ast::{Expr, OrderBy, OrderByExpr, OrderByKind, SelectItem};
use engine::DataType;

use super::answer::Answer;
use super::condition::{is_compared_otherwise, is_sorted_otherwise};
use super::ordering::SortKey;
use crate::names::{fold, headings};
use crate::point::columns::field;
use crate::point::computed::{Computed, Purpose};
use crate::point::scope::Scope;
use crate::point::shape::{self, Selection};

/// The columns that items and an order name join those that are read.
pub(super) fn note_columns(selection: &Selection<'_>, reads: &mut Vec<usize>, scope: &Scope<'_>) -> Option<()> {
    for item in selection.items {
        match (shape::columns(std::slice::from_ref(item), scope), expression(item)) {
            (Some(columns), _) => columns.iter().for_each(|(column, _)| {
                if !reads.contains(column) {
                    reads.push(*column);
                }
            }),
            (None, Some(expr)) => scope.note_columns(expr, Purpose::Value, reads)?,
            (None, None) => return None,
        }
    }
    for OrderByExpr { expr, .. } in order_of(selection.order)? {
        // What is no column is the name of an item.
        if !matches!(expr, Expr::Identifier(_)) || scope.column(expr).is_some() {
            scope.note_columns(expr, Purpose::Value, reads)?;
        }
    }
    Some(())
}

fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The parts of an order; `None` if it is another one.
pub(super) fn order_of(order: Option<&OrderBy>) -> Option<&[OrderByExpr]> {
    match order {
        None => Some(&[]),
        Some(OrderBy { kind: OrderByKind::Expressions(exprs), interpolate: None }) => Some(exprs),
        Some(_) => None,
    }
}

impl Answer {
    /// What a query gives, if that is columns and expressions. Expressions are added to `values`, which follow the columns that
    /// are read.
    pub(super) fn of_items(
        selection: &Selection<'_>,
        reads: &[usize],
        values: &mut Vec<Computed>,
        scope: &Scope<'_>,
    ) -> Option<Answer> {
        let (mut places, mut fields) = (Vec::new(), Vec::new());
        for item in selection.items {
            if let Some(columns) = shape::columns(std::slice::from_ref(item), scope) {
                for (column, name) in columns {
                    places.push(reads.iter().position(|read| *read == column)?);
                    fields.push(field(scope, column, &name));
                }
                continue;
            }
            let computed = scope.computed(expression(item)?, reads)?;
            fields.push(headings::of_item(item, computed.field.as_ref().clone())?);
            places.push(reads.len() + values.len());
            values.push(computed);
        }
        let is_distinct = selection.is_distinct;
        let fits = !is_distinct || fields.iter().all(is_compared_plainly);
        fits.then(|| Answer::Items { places, schema: Arc::new(ArrowSchema::new(fields)), is_distinct })
    }

    /// The order of such a query: the name of an item, or a column, or an expression, which is added to `values`.
    pub(super) fn order_of_items(
        &self,
        order: Option<&OrderBy>,
        reads: &[usize],
        values: &mut Vec<Computed>,
        scope: &Scope<'_>,
    ) -> Option<Vec<SortKey>> {
        let Answer::Items { places, schema, is_distinct } = self else { return None };
        let mut keys = Vec::new();
        let exprs = order_of(order)?;
        for (at, OrderByExpr { expr, options, with_fill }) in exprs.iter().enumerate() {
            let item = match expr {
                Expr::Identifier(ident) => {
                    let name = fold(ident);
                    let mut same = (0..places.len()).filter(|at| *schema.field(*at).name() == name);
                    let first = same.next();
                    // Two items of one name are an error, unless they are one column.
                    if same.any(|other| Some(places[other]) != first.map(|first| places[first])) {
                        return None;
                    }
                    first
                }
                _ => None,
            };
            let (place, field) = match (item, scope.column(expr)) {
                (Some(item), _) => (places[item], schema.field(item).clone()),
                (None, Some(column)) => (reads.iter().position(|read| *read == column)?, field(scope, column, "")),
                (None, None) => {
                    let computed = scope.computed(expr, reads).filter(Computed::names_columns)?;
                    let field = computed.field.as_ref().clone();
                    values.push(computed);
                    (reads.len() + values.len() - 1, field)
                }
            };
            if with_fill.is_some()
                || !is_sorted_plainly(&field, at + 1 == exprs.len())
                || (*is_distinct && !places.contains(&place))
            {
                return None;
            }
            let is_down = options.asc == Some(false);
            keys.push(SortKey { place, is_down, nulls_first: options.nulls_first.unwrap_or(is_down) });
        }
        Some(keys)
    }
}

/// Whether values are compared by the planner as they are kept.
fn is_compared_plainly(field: &Field) -> bool {
    DataType::from_arrow(field.data_type()).is_some_and(|data_type| !is_compared_otherwise(data_type))
}

/// Whether values are put in order by the planner as they are sorted here, as the last of several or not.
fn is_sorted_plainly(field: &Field, is_last: bool) -> bool {
    DataType::from_arrow(field.data_type()).is_some_and(|data_type| !is_sorted_otherwise(data_type, is_last))
}
