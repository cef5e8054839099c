//! Casts to domains: `x::posint` as a call of a function that looks at the value once it is of the type below the domain.
//!
//! The function is made for the statement, and holds the conditions of the domain as they are when the statement runs.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{
    CastKind, CharacterLength, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Statement, VisitorMut,
};
use engine::{Column, DomainDefinition};
use types::DataType;

use crate::access::index_expressions::compiled::CompiledExpression;
use crate::error::{DOMAIN_RULE, Result, SqlError, of_domain};
use crate::names::schemas::shown_error;
use crate::syntax::walk::WalkMut;
use crate::values::literals::field_of;
use crate::values::types::{domain_of, sql_type};

/// Makes a condition over columns ready to be worked out.
pub(crate) type CompileCheck = fn(&str, &[Column]) -> Result<CompiledExpression>;

/// Puts calls in the place of a statement's casts to domains.
///
/// # Errors
/// What is wrong with a condition of a domain, which `compile` finds.
pub(crate) fn spell_out(statement: &mut Statement, state: &mut SessionState, compile: CompileCheck) -> Result<()> {
    if !engine::has_made_types() {
        return Ok(());
    }
    match statement.walk_mut(&mut Casts { state, compile }) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Casts<'a> {
    state: &'a mut SessionState,
    compile: CompileCheck,
}

impl Casts<'_> {
    /// The call that looks at a value of a domain; nothing where a type is none.
    fn call(&mut self, value: Expr, to: &SqlType) -> Result<Option<Expr>> {
        let Some((name, domain)) = domain_of(to) else { return Ok(None) };
        let function = InDomain::new(&name, &domain, self.compile)?;
        let called = Ident::with_quote('"', function.name.clone());
        let registered = self.state.register_udf(Arc::new(ScalarUDF::from(function)));
        registered.map_err(|error| SqlError::new("XX000", error.to_string()))?;
        let (kind, data_type) = (CastKind::Cast, cast_type(domain.base));
        let base = Expr::Cast { kind, expr: Box::new(value), data_type, array: false, format: None };
        let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(base))];
        Ok(Some(Expr::Function(Function {
            name: ObjectName::from(vec![called]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args,
                clauses: Vec::new(),
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        })))
    }
}

/// The type below a domain as a cast names it: a text that is too long is cut.
fn cast_type(base: DataType) -> SqlType {
    let length = |length: u32| Some(CharacterLength::IntegerLength { length: length.into(), unit: None });
    match base {
        DataType::VARCHAR => SqlType::Varchar(None),
        DataType::Text { max_chars: Some(chars) } => SqlType::Varchar(length(chars)),
        DataType::Char { chars } => SqlType::Character(length(chars)),
        other => sql_type(other),
    }
}

impl VisitorMut for Casts<'_> {
    type Break = Box<SqlError>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let call = match expr {
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
                self.call(expr.as_ref().clone(), &data_type.clone())
            }
            Expr::TypedString(typed) => self.call(Expr::Value(typed.value.clone()), &typed.data_type.clone()),
            _ => return ControlFlow::Continue(()),
        };
        match call {
            Ok(Some(call)) => *expr = call,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }
}

/// Gives back values of a domain; an error for others.
#[derive(Debug)]
struct InDomain {
    name: String,
    domain: String,
    definition: DomainDefinition,
    /// by the names of constraints, in the order in which they are looked at
    checks: Vec<(String, CompiledExpression)>,
    signature: Signature,
}

impl PartialEq for InDomain {
    fn eq(&self, other: &InDomain) -> bool {
        (&self.name, &self.definition) == (&other.name, &other.definition)
    }
}

impl Eq for InDomain {}

impl std::hash::Hash for InDomain {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl InDomain {
    fn new(domain: &str, definition: &DomainDefinition, compile: CompileCheck) -> Result<InDomain> {
        let value = [Column::new("value", definition.base)];
        let check = |(name, text): &(String, String)| Ok((name.clone(), compile(text, &value)?));
        let mut checks = definition.checks.iter().map(check).collect::<Result<Vec<_>>>()?;
        checks.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(InDomain {
            name: format!("\0domain {domain}"),
            domain: domain.to_owned(),
            definition: definition.clone(),
            checks,
            signature: Signature::any(1, Volatility::Immutable),
        })
    }

    fn broken(&self, constraint: &str) -> DataFusionError {
        let rule = format!("{DOMAIN_RULE}{DOMAIN_RULE}{}{DOMAIN_RULE}{constraint}", self.domain);
        let error = of_domain(&rule).unwrap_or_else(|| SqlError::new("23514", "a value is not of its domain"));
        DataFusionError::External(Box::new(shown_error(error)))
    }

    fn check(&self, values: &ArrayRef) -> PlanResult<()> {
        if self.definition.not_null && values.null_count() > 0 {
            return Err(self.broken(""));
        }
        for (name, check) in &self.checks {
            let rows = RecordBatch::try_new(check.schema.clone(), vec![values.clone()])?;
            let truths = check.physical.evaluate(&rows)?.into_array(rows.num_rows())?;
            if truths.as_boolean_opt().is_some_and(|truths| truths.false_count() > 0) {
                return Err(self.broken(name));
            }
        }
        Ok(())
    }
}

impl ScalarUDFImpl for InDomain {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> PlanResult<ArrowType> {
        Ok(self.definition.base.to_arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> PlanResult<FieldRef> {
        Ok(Arc::new(field_of(self.definition.base).with_name(&self.name)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return Err(DataFusionError::Internal("a value of a domain is missing".to_owned()));
        };
        let values = match &value {
            ColumnarValue::Array(array) => array.clone(),
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        };
        let form = self.definition.base.to_arrow();
        let values = if *values.data_type() == form { values } else { arrow_cast::cast(&values, &form)? };
        self.check(&values)?;
        Ok(match value {
            ColumnarValue::Array(_) => ColumnarValue::Array(values),
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&values, 0)?)
            }
        })
    }
}
