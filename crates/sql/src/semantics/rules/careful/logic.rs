//! `AND`, `OR`, `IN` and rows of conditions whose operands are worked out for open rows only.
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType as ArrowType, FieldRef, Schema};
use datafusion::arrow::compute::kernels::boolean::{and_kleene, not, or_kleene};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, InListExpr, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr_common::datum::apply_cmp;
use datafusion::physical_expr_common::physical_expr::is_volatile;

use super::cost::{cost, has_columns, may_fail};
use crate::syntax::walk::WalkTree;

/// An expression that is worked out as it is, and where that fails, with care. One that does more than give a value is
/// worked out with care at once.
#[derive(Debug)]
pub(super) struct Twice {
    plain: Arc<dyn PhysicalExpr>,
    careful: Careful,
    /// Whether it is the condition of a filter.
    is_condition: bool,
}

/// The form of an expression that is worked out with care.
#[derive(Debug)]
enum Careful {
    Value(Arc<dyn PhysicalExpr>),
    Conditions(Conditions),
}

impl Twice {
    /// An expression, if care makes a difference to it.
    pub(super) fn of(plain: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        if !may_fail(plain) {
            return None;
        }
        let careful = careful(plain)?;
        Some(Arc::new(Twice { plain: plain.clone(), careful: Careful::Value(careful), is_condition: false }))
    }

    /// The condition of a filter, for which NULL is as good as false, if care makes a difference to it.
    pub(super) fn of_condition(plain: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        if !may_fail(plain) {
            return None;
        }
        let mut conditions: Vec<Arc<dyn PhysicalExpr>> = split_conjunction(plain).into_iter().cloned().collect();
        if conditions.len() == 1 {
            return Twice::of(plain);
        }
        // The sort keeps the order of equals.
        conditions.sort_by_cached_key(|one| if has_columns(one) { 1 + cost(one) } else { 0 });
        let conditions = conditions.into_iter().map(|one| careful(&one).unwrap_or(one)).collect();
        let careful = Careful::Conditions(Conditions(conditions));
        Some(Arc::new(Twice { plain: plain.clone(), careful, is_condition: true }))
    }
}

/// The expression that one which is worked out with care stands for.
pub(crate) fn plain_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    expr.downcast_ref::<Twice>().map(|twice| &twice.plain)
}

/// An expression with the operators of this module in place of the library's, if there are some.
fn careful(plain: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let changed = plain.clone().change_up(|expr| {
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            let decides = match binary.op() {
                Operator::And => false,
                Operator::Or => true,
                _ => return Ok(Transformed::no(expr)),
            };
            let sides = [binary.left().clone(), binary.right().clone()];
            return Ok(Transformed::yes(Arc::new(Logic { decides, sides }) as _));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>()
            && list.list().iter().any(|item| !item.is::<Literal>())
        {
            let mut operands = vec![list.expr().clone()];
            // Constants are one set in PostgreSQL, which is searched first.
            let (constants, others): (Vec<_>, Vec<_>) =
                list.list().iter().cloned().partition(|item| !has_columns(item));
            operands.extend(constants.into_iter().chain(others));
            return Ok(Transformed::yes(Arc::new(Member { operands, negated: list.negated() }) as _));
        }
        Ok(Transformed::no(expr))
    });
    changed.ok().filter(|changed| changed.transformed).map(|changed| changed.data)
}

/// The values as booleans, one for each row.
fn booleans(value: ColumnarValue, rows: usize) -> Result<BooleanArray> {
    let array = value.into_array(rows)?;
    let no_boolean = || DataFusionError::Internal("a condition that is no boolean".to_owned());
    array.as_boolean_opt().cloned().ok_or_else(no_boolean)
}

/// The rows that hold a value, and those of which it is not known.
fn not_decided(values: &BooleanArray, decides: bool) -> BooleanArray {
    values.iter().map(|value| Some(value != Some(decides))).collect()
}

impl PhysicalExpr for Twice {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.plain.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if !is_volatile(&self.plain)
            && let Ok(value) = self.plain.evaluate(batch)
        {
            return Ok(value);
        }
        match &self.careful {
            Careful::Value(careful) => careful.evaluate(batch),
            Careful::Conditions(conditions) => conditions.evaluate(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.plain]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let plain =
            children.pop().ok_or_else(|| DataFusionError::Internal("an expression without its parts".into()))?;
        let twice = if self.is_condition { Twice::of_condition(&plain) } else { Twice::of(&plain) };
        Ok(twice.unwrap_or(plain))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_sql(f)
    }
}

impl PartialEq for Twice {
    fn eq(&self, other: &Self) -> bool {
        self.plain.eq(&other.plain)
    }
}

impl Eq for Twice {}

impl Hash for Twice {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.plain.hash(state);
    }
}

impl fmt::Display for Twice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt(f)
    }
}

/// Conditions that all have to hold, each asked of the rows that those before it have taken.
#[derive(Debug)]
struct Conditions(Vec<Arc<dyn PhysicalExpr>>);

impl Conditions {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut taken = BooleanArray::from(vec![true; rows]);
        for condition in &self.0 {
            let holds = booleans(condition.evaluate_selection(batch, &taken)?, rows)?;
            taken = without_nulls(&and_kleene(&taken, &holds)?);
        }
        Ok(ColumnarValue::Array(Arc::new(taken)))
    }
}

/// NULL as false.
fn without_nulls(values: &BooleanArray) -> BooleanArray {
    values.iter().map(|value| Some(value == Some(true))).collect()
}

/// `AND` and `OR`: the right side is worked out for rows that the left side does not decide.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Logic {
    decides: bool,
    sides: [Arc<dyn PhysicalExpr>; 2],
}

impl PhysicalExpr for Logic {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.sides[0].return_field(schema)
    }

    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let left = booleans(self.sides[0].evaluate(batch)?, rows)?;
        let open = not_decided(&left, self.decides);
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left)));
        }
        let right = booleans(self.sides[1].evaluate_selection(batch, &open)?, rows)?;
        let both = if self.decides { or_kleene(&left, &right)? } else { and_kleene(&left, &right)? };
        Ok(ColumnarValue::Array(Arc::new(both)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.sides.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children)
            .map_err(|_| DataFusionError::Internal("an operator without its operands".into()))?;
        Ok(Arc::new(Logic { decides: self.decides, sides }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Logic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.sides;
        write!(f, "({left} {} {right})", if self.decides { "OR" } else { "AND" })
    }
}

/// `IN` a list: an item is worked out for rows that no item before it equals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Member {
    /// The value and the items of the list.
    operands: Vec<Arc<dyn PhysicalExpr>>,
    negated: bool,
}

impl PhysicalExpr for Member {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(arrow_schema::Field::new("member", ArrowType::Boolean, true)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let Some((value, items)) = self.operands.split_first() else {
            return Err(DataFusionError::Internal("a list without a value".to_owned()));
        };
        let value = value.evaluate(batch)?;
        let mut is_member = BooleanArray::from(vec![false; rows]);
        for item in items {
            let open = not_decided(&is_member, true);
            if !open.has_true() {
                break;
            }
            let item = item.evaluate_selection(batch, &open)?;
            let equal = booleans(apply_cmp(Operator::Eq, &value, &item)?, rows)?;
            is_member = or_kleene(&is_member, &equal)?;
        }
        let answer = if self.negated { not(&is_member)? } else { is_member };
        Ok(ColumnarValue::Array(Arc::new(answer)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.operands.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, operands: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Member { operands, negated: self.negated }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: Vec<String> = self.operands.iter().map(ToString::to_string).collect();
        write!(f, "{}member({})", if self.negated { "NOT " } else { "" }, operands.join(", "))
    }
}
