//! The function that runs a subquery when it is called: its arguments are what is compared, if anything is, and the
//! parameters.
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, new_empty_array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, Fields};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, ExprSchemable, FetchType, LogicalPlan, LogicalPlanBuilder, Operator,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SkipType, TypeSignature, Volatility,
    cast, lit, when,
};

use super::answer::Answer;
use super::run::{Statement, waiting};
use super::scope;
use crate::error::SqlError;
use crate::functions::statement::each_row;
use crate::semantics::operations::{constants, mixed};
use crate::syntax::walk::{WalkPlan, WalkTree};

/// How many answers a call keeps for parameters that come again.
const ANSWERS_MAX: usize = 16_384;

/// The question to a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whether it has a row.
    Exists,
    /// The value of its one row.
    Scalar,
    /// Whether a value compares so with one of its values, or with all.
    Members { op: Operator, is_all: bool },
    /// Whether there are values to compare with.
    HasMembers,
    /// Its rows, as a list.
    Rows,
}

impl Kind {
    /// `IN`.
    pub(super) fn any_equal() -> Kind {
        Kind::Members { op: Operator::Eq, is_all: false }
    }
}

/// The name of a column within a row of a list.
pub(super) fn item_name(at: usize) -> String {
    format!("c{at}")
}

/// The call that answers what is asked of a subquery, where `visible` are the columns that may be its arguments.
pub(super) fn call(
    statement: &Arc<Statement>,
    kind: Kind,
    operand: Option<Expr>,
    plan: LogicalPlan,
    visible: &DFSchema,
) -> Result<Expr> {
    let is_order = |op: Operator| matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    match kind {
        Kind::Members { op, .. } if !is_order(op) && !matches!(op, Operator::Eq | Operator::NotEq) => {
            let error = SqlError::unsupported(format!("{op} with ANY or ALL of a subquery"));
            return Err(DataFusionError::External(Box::new(error)));
        }
        _ => {}
    }
    let plan = if kind == Kind::Exists { rows_alone(plan)? } else { plan };
    let (operand, plan) = alike(operand, scope::without_wrappers(plan)?, visible)?;
    // Of a column of which nothing but NULL was known, the type may be known by now.
    let typed = |(field, column): (FieldRef, Column)| match visible.field_from_column(&column) {
        Ok(known) if field.data_type().is_null() => (known.clone(), column),
        _ => (field, column),
    };
    let references: Vec<_> = scope::open_references(&plan)?.into_iter().map(typed).collect();
    let plan = scope::replace_references(plan, &|reference| {
        let at = references.iter().position(|known| known.1 == reference.1)?;
        Some(scope::parameter(at, &references[at]))
    })?;
    let returns = returned(kind, &plan);
    let parameters = references.iter().map(|(field, _)| field.data_type().clone()).collect();
    let (is_volatile, is_each_row) = (is_volatile(&plan)?, is_each_row(&plan)?);
    let plan = limited(kind, plan)?;
    let failure = constants::check(&plan, &failure).err().map(Arc::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let subquery = Arc::new(Subquery {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        kind,
        plan: statement.optimize(plan)?,
        parameters,
        is_volatile,
        is_each_row,
        statement: statement.clone(),
        returns: returns.data_type().clone(),
        failure,
        answers: Mutex::new(HashMap::new()),
    });
    let argument = |(field, column)| match visible.has_column(&column) {
        true => Expr::Column(column),
        false => Expr::OuterReferenceColumn(field, column),
    };
    let args: Vec<Expr> = references.into_iter().map(argument).collect();
    let call = |kind, operand: Option<Expr>| {
        let signature =
            Signature::one_of(vec![TypeSignature::VariadicAny, TypeSignature::Nullary], Volatility::Volatile);
        let function = Call { kind, subquery: subquery.clone(), returns: returns.clone(), signature };
        let args = operand.into_iter().chain(args.iter().cloned()).collect();
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args))
    };
    match (kind, operand) {
        // With nothing to compare it with, the operand is not worked out.
        (Kind::Members { is_all, .. }, Some(operand)) if !is_volatile && may_fail(&operand, visible) => {
            let members = call(kind, Some(operand));
            when(call(Kind::HasMembers, None), members).otherwise(lit(is_all))
        }
        (_, operand) => Ok(call(kind, operand)),
    }
}

/// Whether an operand may be an error, as far as can be seen.
fn may_fail(operand: &Expr, visible: &DFSchema) -> bool {
    match operand {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Literal(..) | Expr::Placeholder(_) => false,
        Expr::Alias(alias) => may_fail(&alias.expr, visible),
        Expr::Cast(cast) => {
            use ArrowType::{Int16, Int32, Int64, LargeUtf8, Utf8, Utf8View};
            let is_wider = |from: &ArrowType, to: &ArrowType| {
                matches!(
                    (from, to),
                    (Int16, Int32 | Int64) | (Int32, Int64) | (Utf8 | Utf8View, Utf8 | Utf8View | LargeUtf8)
                )
            };
            let from = cast.expr.get_type(visible);
            !from.is_ok_and(|from| is_wider(&from, cast.field.data_type())) || may_fail(&cast.expr, visible)
        }
        _ => true,
    }
}

/// An error if a constant in the plan of a call fails.
pub(super) fn failure(function: &ScalarFunction) -> Result<()> {
    let failure = function.func.inner().downcast_ref::<Call>().and_then(|call| call.subquery.failure.clone());
    failure.map_or(Ok(()), |error| Err(DataFusionError::Shared(error)))
}

/// The value that is compared and the column that it is compared with, of one type. They were of one, but the quotient of
/// two numbers may have got more digits since.
fn alike(operand: Option<Expr>, plan: LogicalPlan, visible: &DFSchema) -> Result<(Option<Expr>, LogicalPlan)> {
    let Some(operand) = operand else { return Ok((None, plan)) };
    let (of_operand, of_column) = (operand.get_type(visible)?, plan.schema().field(0).data_type().clone());
    let common = mixed::common_of([&of_operand, &of_column].into_iter(), true);
    match common.or_else(|| comparison_coercion(&of_operand, &of_column)) {
        Some(common) if of_operand != of_column => {
            let column = Expr::Column(plan.schema().columns().swap_remove(0));
            let plan = LogicalPlanBuilder::from(plan).project([cast(column, common.clone())])?.build()?;
            Ok((Some(cast(operand, common)), plan))
        }
        _ => Ok((Some(operand), plan)),
    }
}

/// The rows without what is selected of them and without their order: nothing of that is looked at, and none of it may fail.
fn rows_alone(mut plan: LogicalPlan) -> Result<LogicalPlan> {
    loop {
        let below = match &plan {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
                (SkipType::Literal(0), FetchType::Literal(fetch)) if fetch != Some(0) => &limit.input,
                _ => return Ok(plan),
            },
            _ => return Ok(plan),
        };
        plan = below.as_ref().clone();
    }
}

/// No more rows than are needed to know the answer.
fn limited(kind: Kind, plan: LogicalPlan) -> Result<LogicalPlan> {
    match kind {
        Kind::Exists => LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build(),
        Kind::Scalar => LogicalPlanBuilder::from(plan).limit(0, Some(2))?.build(),
        Kind::Members { .. } | Kind::HasMembers | Kind::Rows => Ok(plan),
    }
}

fn returned(kind: Kind, plan: &LogicalPlan) -> FieldRef {
    let fields = plan.schema().fields();
    match kind {
        Kind::Exists | Kind::Members { .. } | Kind::HasMembers => {
            Arc::new(Field::new("subplan", ArrowType::Boolean, true))
        }
        Kind::Scalar => Arc::new(fields[0].as_ref().clone().with_name("subplan").with_nullable(true)),
        Kind::Rows => {
            let item = |(at, field): (usize, &FieldRef)| {
                Arc::new(field.as_ref().clone().with_name(item_name(at)).with_nullable(true))
            };
            let items: Fields = fields.iter().enumerate().map(item).collect();
            Arc::new(Field::new_list("subplan", Field::new_list_field(ArrowType::Struct(items), true), true))
        }
    }
}

/// Whether a plan may give other rows when it runs again.
pub(super) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|node| {
        node.look_at_expressions(|expr| {
            expr.look(|expr| {
                if let Expr::ScalarFunction(function) = expr {
                    found |= match function.func.inner().downcast_ref::<Call>() {
                        Some(call) => call.subquery.is_volatile,
                        None if function.name() == super::joinable::NULLABLE => false,
                        None => expr.is_volatile_node(),
                    };
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a query is to be worked out for each row of the query around it, whatever columns of that it names.
pub(super) fn is_each_row(plan: &LogicalPlan) -> Result<bool> {
    let is_mark = |expr: &Expr| matches!(expr, Expr::ScalarFunction(function) if function.name() == each_row::NAME);
    let mut found = false;
    plan.look(|node| {
        node.look_at_expressions(|expr| {
            found |= expr.has(|expr| Ok(is_mark(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a function asks a subquery that gives the same rows whenever it runs.
pub(crate) fn is_steady(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Call>().is_some_and(|call| !call.subquery.is_volatile)
}

/// A subquery that functions ask.
#[derive(Debug)]
struct Subquery {
    id: u64,
    kind: Kind,
    plan: LogicalPlan,
    /// The types of the parameters.
    parameters: Vec<ArrowType>,
    is_volatile: bool,
    /// Whether it is run for each row though it has no parameters.
    is_each_row: bool,
    statement: Arc<Statement>,
    returns: ArrowType,
    /// What a constant in it fails with.
    failure: Option<Arc<DataFusionError>>,
    /// The answers of the plan for parameters that it was run with.
    answers: Mutex<HashMap<Vec<ScalarValue>, Arc<Answer>>>,
}

/// A question to a subquery as a function.
#[derive(Debug)]
struct Call {
    kind: Kind,
    subquery: Arc<Subquery>,
    returns: FieldRef,
    signature: Signature,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.subquery.id == other.subquery.id && self.kind == other.kind
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.subquery.id.hash(state);
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Exists => "exists_subplan",
            Kind::Scalar => "subplan",
            Kind::Members { is_all: false, .. } => "any_of_subplan",
            Kind::Members { is_all: true, .. } => "all_of_subplan",
            Kind::HasMembers => "has_subplan",
            Kind::Rows => "rows_of_subplan",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if rows == 0 {
            // So it is asked while a plan is made, too.
            return Ok(ColumnarValue::Array(new_empty_array(self.returns.data_type())));
        }
        let arrays: Result<Vec<ArrayRef>> = args.args.iter().map(|arg| arg.to_array(rows)).collect();
        let mut arrays = arrays?;
        let operand = match self.kind {
            Kind::Members { .. } if !arrays.is_empty() => Some(arrays.remove(0)),
            _ => None,
        };
        if self.subquery.parameters.is_empty() && !self.subquery.is_each_row {
            return self.subquery.once()?.values(self.kind, operand.as_ref());
        }
        self.collect(rows, |row| {
            let parameters: Result<Vec<ScalarValue>> =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect();
            let operand = operand.as_ref().map(|array| array.slice(row, 1));
            self.subquery.answer(parameters?)?.value(self.kind, operand.as_ref())
        })
    }
}

impl Call {
    fn collect(&self, rows: usize, value: impl Fn(usize) -> Result<ScalarValue>) -> Result<ColumnarValue> {
        let values: Result<Vec<ScalarValue>> = (0..rows).map(value).collect();
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values?)?))
    }
}

impl Subquery {
    fn answers(&self) -> MutexGuard<'_, HashMap<Vec<ScalarValue>, Arc<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer of a plan without parameters, which is found once even where several threads ask for it.
    fn once(&self) -> Result<Arc<Answer>> {
        waiting(|| {
            let mut answers = self.answers();
            if let Some(known) = answers.get(&Vec::new()) {
                return Ok(known.clone());
            }
            let answer = Arc::new(self.run(&[])?);
            answers.insert(Vec::new(), answer.clone());
            Ok(answer)
        })
    }

    fn answer(&self, parameters: Vec<ScalarValue>) -> Result<Arc<Answer>> {
        if self.is_volatile {
            return self.run(&parameters).map(Arc::new);
        }
        if let Some(known) = self.answers().get(&parameters) {
            return Ok(known.clone());
        }
        let answer = Arc::new(self.run(&parameters)?);
        let mut answers = self.answers();
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(parameters, answer.clone());
        Ok(answer)
    }

    fn run(&self, parameters: &[ScalarValue]) -> Result<Answer> {
        // The type of a column may have become a wider one since the subquery was planned.
        let cast = |(value, to): (&ScalarValue, &ArrowType)| match value.data_type() == *to {
            true => Ok(value.clone()),
            false => value.cast_to(to),
        };
        let parameters: Result<Vec<ScalarValue>> = parameters.iter().zip(&self.parameters).map(cast).collect();
        let batches = self.statement.rows(&self.plan, &parameters?)?;
        Answer::of(self.kind, &self.returns, &batches)
    }
}
