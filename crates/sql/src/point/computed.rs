//! Expressions of a row's columns and of parameters, compiled once for a statement that comes again.
//!
//! ```text
//! price * $1  ── names of columns and parameters made plain, compiled as the planner would ──▶  [price, $1] ── one value a row
//! an execution: the parameters put in as constants; then worked out for all rows that were found, column by column
//! ```
//!
//! Only what the row and the parameters say may have a say in it: what reads the session's settings (a time zone, how a date or a
//! float is written) or the clock is left to the planner. So is a parameter that is a text, which may stand for another type.
//! An expression that fails for a row is left to the planner as well, which tells where.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as ArrowType, FieldRef, Schema as ArrowSchema, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr as Planned, ExprSchemable};
use datafusion::physical_expr::expressions::{Column as ColumnExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, VisitorMut};
use engine::{Column, DataType, Value};

use super::exact::{exact, is_integer};
use super::scope::Scope;
use crate::access::index_expressions::compiled::CompiledExpression;
use crate::planning::index_compile::{Kind, compile};
use crate::planning::kept_plans::is_steady;
use crate::syntax::parameter::number_of;
use crate::syntax::source::Source;
use crate::syntax::walk::{WalkMut, WalkTree, walk_expressions};
use crate::values::single::{scalar_of_value, value_of_scalar};
use crate::values::stored::as_queried;
use crate::values::types::is_space;

/// Expressions of more parts are left to the planner.
const PARTS_MAX: usize = 64;

/// An expression that is ready to be worked out.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    physical: Arc<dyn PhysicalExpr>,
    /// What it gives.
    pub(crate) field: FieldRef,
    /// The columns that it names and then the parameters, as it sees them.
    schema: SchemaRef,
    /// The columns' places among those that are read.
    places: Vec<usize>,
    /// Each counted from 0, with its type.
    parameters: Vec<(usize, DataType)>,
}

/// What an expression is for, which tells what it may be of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A value, which is of plain types.
    Value,
    /// A condition, which may also ask documents and arrays.
    Condition,
}

impl Purpose {
    /// Whether values of a type may have a part in it.
    fn takes(self, data_type: DataType) -> bool {
        let is_asked = match data_type {
            DataType::Jsonb => true,
            DataType::Array(item) => is_plain(item.data_type()),
            _ => false,
        };
        is_plain(data_type) || (is_asked && self == Purpose::Condition)
    }

    /// Whether it is the form of values of such a type.
    fn takes_form(self, data_type: &ArrowType) -> bool {
        let is_asked = match data_type {
            ArrowType::LargeBinary => true,
            ArrowType::List(item) => is_plain_form(item.data_type()),
            _ => false,
        };
        is_plain_form(data_type) || (is_asked && self == Purpose::Condition)
    }
}

/// What an expression names.
struct Named {
    purpose: Purpose,
    columns: Vec<usize>,
    parameters: Vec<usize>,
    parts: usize,
}

impl Scope<'_> {
    /// The columns that an expression names join those that are read.
    pub(crate) fn note_columns(&self, expr: &Expr, purpose: Purpose, reads: &mut Vec<usize>) -> Option<()> {
        let named = Named::of(expr, purpose, self)?;
        let is_new = |column: &usize, reads: &[usize]| !reads.contains(column);
        for column in named.columns {
            if is_new(&column, reads) {
                reads.push(column);
            }
        }
        Some(())
    }

    /// A value of columns that are read, and of parameters.
    pub(crate) fn computed(&self, expr: &Expr, reads: &[usize]) -> Option<Computed> {
        self.compiled(expr, Purpose::Value, reads)
    }

    /// A condition on columns that are read.
    pub(crate) fn computed_condition(&self, expr: &Expr, reads: &[usize]) -> Option<Computed> {
        self.compiled(expr, Purpose::Condition, reads).filter(Computed::is_condition)
    }

    fn compiled(&self, expr: &Expr, purpose: Purpose, reads: &[usize]) -> Option<Computed> {
        if !self.compiles || self.tables.len() != 1 {
            return None;
        }
        let named = Named::of(expr, purpose, self)?;
        let places = named.columns.iter().map(|column| reads.iter().position(|read| read == column));
        let places = places.collect::<Option<Vec<_>>>()?;
        let mut plain = expr.clone();
        let renamed = plain.walk_mut(&mut Rename { scope: self });
        if renamed.is_break() || !is_steady(&plain) {
            return None;
        }
        let mut columns: Vec<Column> = named.columns.iter().map(|column| self.known(*column).clone()).collect();
        columns.extend(named.parameters.iter().map(|at| Column::new(parameter_name(*at), self.types[*at])));
        let compiled = compile(&plain, &columns, Kind::Computed, &Source::new("")).ok()?;
        let field = compiled.physical.return_field(&compiled.schema).ok()?;
        let parameters = named.parameters.iter().map(|at| (*at, self.types[*at])).collect();
        let schema = compiled.schema.clone();
        is_settled(&compiled, purpose).then(|| Computed {
            physical: compiled.physical,
            field,
            schema,
            places,
            parameters,
        })
    }
}

/// The name of a parameter as a column, which no column of a table has.
fn parameter_name(at: usize) -> String {
    format!("\0{}", at + 1)
}

impl Named {
    /// What an expression names, if that is columns and parameters alone.
    fn of(expr: &Expr, purpose: Purpose, scope: &Scope<'_>) -> Option<Named> {
        let mut named = Named { purpose, columns: Vec::new(), parameters: Vec::new(), parts: 0 };
        let found = walk_expressions(expr, |part| named.note(part, scope));
        found.is_continue().then_some(named)
    }

    fn note(&mut self, part: &Expr, scope: &Scope<'_>) -> ControlFlow<()> {
        self.parts += 1;
        let known = match part {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let column = scope.column(part).filter(|column| self.purpose.takes(scope.known(*column).data_type));
                column.map(|column| {
                    if !self.columns.contains(&column) {
                        self.columns.push(column);
                    }
                })
            }
            Expr::Value(value) => match number_of(&value.value) {
                Some(at) => self.parameter(at, scope),
                None => Some(()),
            },
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => None,
            _ => Some(()),
        };
        match known.filter(|()| self.parts <= PARTS_MAX) {
            Some(()) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    }

    fn parameter(&mut self, at: usize, scope: &Scope<'_>) -> Option<()> {
        let data_type = *scope.types.get(at)?;
        if !self.purpose.takes(data_type) || matches!(data_type, DataType::Text { .. }) {
            return None;
        }
        if !self.parameters.contains(&at) {
            self.parameters.push(at);
        }
        Some(())
    }
}

/// Gives columns and parameters the names by which they are compiled.
struct Rename<'a> {
    scope: &'a Scope<'a>,
}

impl VisitorMut for Rename<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                self.scope.column(expr).map(|column| self.scope.known(column).name.clone())
            }
            Expr::Value(value) => number_of(&value.value).map(parameter_name),
            _ => None,
        };
        if let Some(name) = name {
            *expr = Expr::Identifier(Ident::with_quote('"', name));
        }
        ControlFlow::Continue(())
    }
}

/// Whether nothing but the row and the parameters has a say in an expression: its parts are of types that know no setting, and none
/// of them is read from a text or written as one but numbers and truths.
fn is_settled(compiled: &CompiledExpression, purpose: Purpose) -> bool {
    let Ok(schema) = DFSchema::try_from(compiled.schema.as_ref().clone()) else { return false };
    let type_of = |expr: &Planned| expr.get_type(&schema).ok();
    let mut is_settled = true;
    let looked = compiled.logical.look(|part| {
        let fits = |gives: &ArrowType| {
            let mut fits = purpose.takes_form(gives);
            let parts = part.apply_children(|inner| {
                fits &= type_of(inner).is_some_and(|takes| may_become(&takes, gives));
                Ok(TreeNodeRecursion::Continue)
            });
            fits && parts.is_ok()
        };
        is_settled &= type_of(part).as_ref().is_some_and(fits);
        Ok(if is_settled { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    looked.is_ok() && is_settled
}

/// Whether a value of one type may go into one of the other without a setting.
fn may_become(takes: &ArrowType, gives: &ArrowType) -> bool {
    let is_bare = |data_type: &ArrowType| {
        is_text(data_type)
            || data_type.is_integer()
            || matches!(data_type, ArrowType::Boolean | ArrowType::Decimal128(..) | ArrowType::Binary | ArrowType::Null)
            || *data_type == ArrowType::LargeBinary
    };
    match (is_text(takes), is_text(gives)) {
        (false, false) => true,
        (true, _) => is_bare(gives),
        (false, true) => is_bare(takes),
    }
}

fn is_text(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8)
}

/// Whether it is a type whose values are the same in each session, and have one form.
fn is_plain(data_type: DataType) -> bool {
    use DataType::{Boolean, Date, Decimal, Double, Geometry, Network, Numeric, Range, Real, Text, Timestamp};

    match data_type.whole() {
        Boolean | Decimal { .. } | Numeric | Real | Double | Text { .. } | Date | Timestamp => true,
        Geometry(_) | Network(_) => true,
        Range(kind) => kind.bound_type() != DataType::TimestampTz,
        other => is_integer(other),
    }
}

/// Whether it is the form of values of such a type.
fn is_plain_form(data_type: &ArrowType) -> bool {
    let is_of_session = is_space(data_type) && !DataType::from_arrow(data_type).is_some_and(is_plain);
    let is_known = match data_type {
        ArrowType::Boolean | ArrowType::Date32 | ArrowType::Decimal128(..) | ArrowType::Binary | ArrowType::Null => {
            true
        }
        ArrowType::Timestamp(unit, zone) => *unit == TimeUnit::Microsecond && zone.is_none(),
        other => is_text(other) || other.is_integer() || other.is_floating() || is_space(other),
    };
    is_known && !is_of_session
}

impl Computed {
    /// Whether it names a column.
    pub(crate) fn names_columns(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether it is a condition on columns.
    pub(crate) fn is_condition(&self) -> bool {
        self.names_columns() && *self.field.data_type() == ArrowType::Boolean
    }

    /// The parameters of an execution, of which these values are given; `None` if one is not plainly of its type.
    fn parameters(&self, given: &[Value]) -> Option<Vec<ScalarValue>> {
        let scalar = |(at, to): &(usize, DataType)| scalar_of_value(&exact(given.get(*at)?, *to)?, *to);
        self.parameters.iter().map(scalar).collect()
    }

    /// With parameters put in.
    fn with(&self, parameters: Vec<ScalarValue>) -> Option<Arc<dyn PhysicalExpr>> {
        if parameters.is_empty() {
            return Some(self.physical.clone());
        }
        let literals: Vec<Arc<dyn PhysicalExpr>> =
            parameters.into_iter().map(|value| Arc::new(Literal::new(value)) as _).collect();
        self.with_literals(self.places.len(), &literals)
    }

    /// With literals in the place of columns and parameters from `first` on, as it sees them.
    fn with_literals(&self, first: usize, literals: &[Arc<dyn PhysicalExpr>]) -> Option<Arc<dyn PhysicalExpr>> {
        let put_in = |part: Arc<dyn PhysicalExpr>| {
            let at = part.downcast_ref::<ColumnExpr>().and_then(|column| column.index().checked_sub(first));
            Ok(match at {
                Some(at) => Transformed::yes(literals[at].clone()),
                None => Transformed::no(part),
            })
        };
        self.physical.clone().transform_up(put_in).data().ok()
    }

    /// Its values for rows that were read, with the parameters that are given; `None` if that is for the planner to say.
    pub(crate) fn of_rows(&self, rows: &RecordBatch, given: &[Value]) -> Option<ArrayRef> {
        self.of_rows_with(rows, self.parameters(given)?)
    }

    /// As [`of_rows`](Self::of_rows), with these parameters.
    pub(crate) fn of_rows_with(&self, rows: &RecordBatch, parameters: Vec<ScalarValue>) -> Option<ArrayRef> {
        let physical = self.with(parameters)?;
        let fields = &self.schema.fields()[..self.places.len()];
        let arrays = self.places.iter().zip(fields);
        let arrays = arrays.map(|(place, field)| as_queried(rows.column(*place), field.data_type())).collect();
        let rows = batch(ArrowSchema::new(fields.to_vec()), arrays, rows.num_rows())?;
        physical.evaluate(&rows).and_then(|values| values.into_array(rows.num_rows())).ok()
    }

    /// Its value, where it names no columns.
    pub(crate) fn value(&self, given: &[Value]) -> Option<ScalarValue> {
        debug_assert!(!self.names_columns(), "{self:?} is of rows");
        self.of_row(Vec::new(), given)
    }

    /// Its value for one row, of which these are the columns that it names.
    pub(crate) fn of_row(&self, columns: Vec<ScalarValue>, given: &[Value]) -> Option<ScalarValue> {
        let known = columns.into_iter().chain(self.parameters(given)?);
        let literals: Vec<Arc<dyn PhysicalExpr>> = known.map(|value| Arc::new(Literal::new(value)) as _).collect();
        let physical = self.with_literals(0, &literals)?;
        match physical.evaluate(&batch(ArrowSchema::empty(), Vec::new(), 1)?).ok()? {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0).ok(),
        }
    }

    /// The operator, the column and the other side of an expression of the two; whether the column stands on the right.
    pub(crate) fn of_operator(&self) -> Option<OfOperator<'_>> {
        let call = self.physical.downcast_ref::<ScalarFunctionExpr>()?;
        let [left, right] = call.args() else { return None };
        let place = |side: &Arc<dyn PhysicalExpr>| {
            let column = side.downcast_ref::<ColumnExpr>()?;
            self.places.get(column.index()).copied()
        };
        let (place, other, is_reversed) = match (place(left), place(right)) {
            (Some(place), None) => (place, right, false),
            (None, Some(place)) => (place, left, true),
            _ => return None,
        };
        let other = self.without_columns(other)?;
        let value: Arc<dyn PhysicalExpr> = Arc::new(ColumnExpr::new("", self.places.len()));
        let column = call.args()[usize::from(is_reversed)].clone();
        let sides = if is_reversed { vec![value, column] } else { vec![column, value] };
        let physical = self.physical.clone().with_new_children(sides).ok()?;
        let of_value = Computed { physical, parameters: Vec::new(), ..self.clone() };
        Some(OfOperator { name: call.fun().name(), place, is_reversed, other, of_value })
    }

    /// A part of it, if it is of parameters alone.
    fn without_columns(&self, part: &Arc<dyn PhysicalExpr>) -> Option<Computed> {
        let mut is_free = true;
        let width = self.places.len();
        let move_up = |part: Arc<dyn PhysicalExpr>| {
            let moved = match part.downcast_ref::<ColumnExpr>() {
                Some(column) if column.index() < width => {
                    is_free = false;
                    None
                }
                Some(column) => Some(Arc::new(ColumnExpr::new(column.name(), column.index() - width)) as _),
                None => None,
            };
            Ok(moved.map_or_else(|| Transformed::no(part), Transformed::yes))
        };
        let physical = part.clone().transform_up(move_up).data().ok()?;
        let schema: SchemaRef = Arc::new(ArrowSchema::new(self.schema.fields()[width..].to_vec()));
        let field = if is_free { physical.return_field(&schema).ok()? } else { return None };
        Some(Computed { physical, field, schema, places: Vec::new(), parameters: self.parameters.clone() })
    }
}

/// An expression of a column and a value.
pub(crate) struct OfOperator<'a> {
    pub(crate) name: &'a str,
    /// of the column among those that are read
    pub(crate) place: usize,
    pub(crate) is_reversed: bool,
    pub(crate) other: Computed,
    /// The whole, with the other side as its only parameter.
    pub(crate) of_value: Computed,
}

/// Rows of these columns.
fn batch(schema: ArrowSchema, arrays: Vec<ArrayRef>, rows: usize) -> Option<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options).ok()
}

/// The value that a scalar is.
pub(crate) fn value_of(scalar: &ScalarValue) -> Option<Value> {
    value_of_scalar(scalar, DataType::from_arrow(&scalar.data_type())?)
}
