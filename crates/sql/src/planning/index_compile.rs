//! Planning the expression of an index as the planner does that of a query, so that the two can be compared.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Volatility, expr::ScalarFunction,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use datafusion::sql::sqlparser::ast::{
    self, Function, ObjectNamePart, Query, SelectItem, SetExpr, Spanned, Statement, Visitor,
};
use engine::{Column, DataType};

use crate::access::index_expressions::compiled::{CompiledExpression, comparable};
use crate::error::{Result, SqlError};
use crate::names::diagnose::diagnose;
use crate::names::fold;
use crate::planning::planner::{on_planner_thread, plain_state};
use crate::semantics::naming::cast_names;
use crate::semantics::spell_out;
use crate::syntax::check;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::{Walk, WalkTree};
use crate::values::types::arrow_columns;
use crate::values::types::{type_name, type_of_field};

/// Levels of operators that an expression may have: it is worked out on threads of any stack.
const DEPTH_MAX: usize = 100;

/// What an expression without a query is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of the keys of an index.
    Expression,
    /// The condition for its rows.
    Predicate,
    /// What fills a column; it names none.
    Default,
    /// A condition that rows must meet.
    Check,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Expression => "index expression",
            Kind::Predicate => "index predicate",
            Kind::Default => "DEFAULT expression",
            Kind::Check => "check constraint",
        }
    }
}

/// Compiles an expression over rows of these columns. The tables's name stands before none of them.
///
/// # Errors
/// PostgreSQL's, where it is none that an index may be of.
pub(crate) fn compile(expr: &ast::Expr, columns: &[Column], kind: Kind, source: &Source) -> Result<CompiledExpression> {
    check_syntax(expr, kind, source)?;
    let expr = adapted(expr, source)?;
    let arrow = arrow_columns(columns);
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let text: Arc<str> = Arc::from(source.text);
    on_planner_thread(move || {
        let source = Source::new(&text);
        let fields = DFSchema::try_from(arrow.as_ref().clone()).map(Arc::new);
        let planned = fields.and_then(|fields| Ok((plan(&plain_state(), expr, &fields)?, fields)));
        let (planned, fields) = planned.map_err(|error| diagnose(&error, &source))?;
        finish(planned, &fields, &names, kind, &source)
    })
}

/// An expression with the columns that it names.
struct PlannedExpression {
    raw: Expr,
    /// with the types of the planner, and simplified
    expr: Expr,
}

/// Goes the way of a query's expression through the planner, but for the rules that move expressions about.
fn plan(state: &SessionState, expr: ast::Expr, schema: &DFSchemaRef) -> Result<PlannedExpression, DataFusionError> {
    let expr = ast::ExprWithAlias { expr, alias: None };
    let raw = state.create_logical_expr_from_sql_expr(expr, schema)?;
    let rows = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: schema.clone() });
    let plan = LogicalPlanBuilder::from(rows).project(vec![raw.clone()])?.build()?;
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let expr = match plan {
        LogicalPlan::Projection(projection) => projection.expr.into_iter().next(),
        _ => None,
    };
    let expr = expr.ok_or_else(|| DataFusionError::NotImplemented("such an expression of an index".to_owned()))?;
    let context = SimplifyContext::builder()
        .with_schema(schema.clone())
        .with_config_options(state.config_options().clone())
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let expr = ExprSimplifier::new(context).simplify(expr.unalias_nested().data)?;
    Ok(PlannedExpression { raw, expr: comparable(expr) })
}

fn finish(
    planned: PlannedExpression,
    schema: &DFSchemaRef,
    names: &[String],
    kind: Kind,
    source: &Source,
) -> Result<CompiledExpression> {
    let failed = |error: DataFusionError| diagnose(&error, source);
    if let Some(name) = not_immutable(&planned.raw).map_err(failed)? {
        return Err(changes(kind).at(source.find_word(&name)));
    }
    let (_, field) = planned.expr.to_field(schema).map_err(failed)?;
    let data_type = type_of_field(&field).ok_or_else(|| {
        SqlError::unsupported(format!("an index of an expression of type {}", type_name(field.data_type())))
    })?;
    // The length of a text, which a query's column may have, is none of an index's entries.
    let data_type = match data_type {
        DataType::Text { .. } | DataType::Char { chars: 0 } => DataType::TEXT,
        other => other,
    };
    let condition = match kind {
        Kind::Predicate => Some("WHERE"),
        Kind::Check => Some("CHECK"),
        Kind::Expression | Kind::Default => None,
    };
    if let Some(clause) = condition.filter(|_| data_type != DataType::Boolean) {
        let found = type_name(field.data_type());
        return Err(SqlError::mismatch(format!("argument of {clause} must be type boolean, not type {found}")));
    }
    let state = plain_state();
    let context = PhysicalPlanningContext::default();
    let physical = create_physical_expr(&planned.expr, schema, state.execution_props(), &context).map_err(failed)?;
    let mut columns: Vec<usize> = planned
        .raw
        .column_refs()
        .iter()
        .filter_map(|column| names.iter().position(|name| *name == column.name))
        .collect();
    columns.sort_unstable();
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(CompiledExpression { logical: planned.expr, physical, data_type, columns, schema })
}

/// The name of a function that may give different answers for the same arguments, if there is one.
fn not_immutable(expr: &Expr) -> Result<Option<String>, DataFusionError> {
    let mut found = None;
    expr.look(|part| {
        if let Expr::ScalarFunction(ScalarFunction { func, .. }) = part
            && func.signature().volatility != Volatility::Immutable
        {
            found = Some(func.name().to_owned());
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn changes(kind: Kind) -> SqlError {
    if kind == Kind::Check {
        let error = SqlError::unsupported("a CHECK constraint with a function whose answers change");
        return error.hint("Use functions of the row's columns alone.");
    }
    SqlError::new("42P17", format!("functions in {} must be marked IMMUTABLE", kind.name()))
}

/// Brings an expression into words that the planner knows, as it is done with statements.
fn adapted(expr: &ast::Expr, source: &Source) -> Result<ast::Expr> {
    let mut query = template("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
    let mut statement = Statement::Query(query);
    check::query(&statement, source)?;
    spell_out(&mut statement)?;
    cast_names::tell_apart(&mut statement, &|_| false);
    if let Statement::Query(query) = statement
        && let SetExpr::Select(mut select) = *query.body
        && let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = select.projection.pop()
    {
        return Ok(expr);
    }
    Err(SqlError::new("XX000", "an expression was lost"))
}

/// Refuses what such an expression can't have, as far as it can be seen in the text.
pub(crate) fn check_syntax(expr: &ast::Expr, kind: Kind, source: &Source) -> Result<()> {
    let state = plain_state();
    let mut check = CheckSyntax { state: &state, kind, source, depth: 0 };
    match expr.walk(&mut check) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Functions of ours, which are made for each statement, and PostgreSQL's that are none: their answers change.
const CHANGING: [&str; 15] = [
    "nextval",
    "currval",
    "lastval",
    "setval",
    "lstore_commit",
    "pg_backend_pid",
    "current_user",
    "session_user",
    "user",
    "current_schema",
    "current_database",
    "current_setting",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
];

struct CheckSyntax<'a> {
    state: &'a SessionState,
    kind: Kind,
    source: &'a Source<'a>,
    depth: usize,
}

impl CheckSyntax<'_> {
    fn function(&self, function: &Function) -> Option<SqlError> {
        let ObjectNamePart::Identifier(ident) = function.name.0.last()? else { return None };
        let (name, kind) = (fold(ident), self.kind.name());
        let error = if function.over.is_some() {
            SqlError::new("42P20", format!("window functions are not allowed in {kind}s"))
        } else if self.state.aggregate_functions().contains_key(&name) {
            SqlError::new("42803", format!("aggregate functions are not allowed in {kind}s"))
        } else if self.state.window_functions().contains_key(&name) {
            SqlError::new("42P20", format!("window functions are not allowed in {kind}s"))
        } else if self.state.table_functions().contains_key(&name) || name == "unnest" {
            SqlError::new("0A000", format!("set-returning functions are not allowed in {kind}s"))
        } else if self.kind != Kind::Default && CHANGING.contains(&name.as_str()) {
            changes(self.kind)
        } else {
            return None;
        };
        Some(error.at(self.source.start(ident.span)))
    }
}

impl Visitor for CheckSyntax<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let message = format!("cannot use subquery in {}", self.kind.name());
        let place = self.source.start(query.span());
        ControlFlow::Break(Box::new(SqlError::new("0A000", message).at(place)))
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<Self::Break> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("the {} nests too deeply", self.kind.name());
            return ControlFlow::Break(Box::new(SqlError::new("54001", message)));
        }
        let error = match expr {
            ast::Expr::Function(function) => self.function(function),
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) if self.kind == Kind::Default => {
                let error = SqlError::new("0A000", "cannot use column reference in DEFAULT expression");
                Some(error.at(self.source.start(expr.span())))
            }
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(name) => {
                    let message = format!("there is no parameter {name}");
                    Some(SqlError::new("42P02", message).at(self.source.start(value.span)))
                }
                _ => None,
            },
            _ => None,
        };
        error.map_or(ControlFlow::Continue(()), |error| ControlFlow::Break(Box::new(error)))
    }

    fn post_visit_expr(&mut self, _: &ast::Expr) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}
