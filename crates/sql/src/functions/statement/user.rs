//! The program's own functions in plans: which calls they take, and their results checked.
//!
//! PostgreSQL's implicit casts decide which calls they take: numbers become wider ones, dates become times, and a text without a type
//! becomes anything. A numeric keeps its precision and scale, as they belong to no function's signature there either.
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use crate::error::{SqlError, external};
use crate::interrupt::runtimes::blocking;
use crate::state::user_functions::{StopCheck, UserFunction};
use crate::state::view::View;
use crate::values::numerics::{is_exact, is_numeric};
use crate::values::types::{marked, type_name};

pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    for (name, function) in view.user_functions.iter() {
        let volatility = if function.is_pure() { Volatility::Immutable } else { Volatility::Volatile };
        let call = UserCall {
            name: name.clone(),
            function: function.clone(),
            signature: Signature::user_defined(volatility),
            stop: StopCheck(view.token.clone()),
        };
        state.register_udf(Arc::new(ScalarUDF::from(call)))?;
    }
    Ok(())
}

/// A function of the program's.
pub(crate) struct UserCall {
    name: String,
    function: Arc<dyn UserFunction>,
    signature: Signature,
    stop: StopCheck,
}

/// How wide a type of numbers is among those that become each other.
fn width(data_type: &ArrowType) -> Option<usize> {
    Some(match data_type {
        ArrowType::Int8 | ArrowType::Int16 => 0,
        ArrowType::Int32 => 1,
        ArrowType::Int64 => 2,
        ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => 3,
        ArrowType::Float32 => 4,
        ArrowType::Float64 => 5,
        _ => return None,
    })
}

/// How much a type of times says, among those that become each other.
fn detail(data_type: &ArrowType) -> Option<usize> {
    Some(match data_type {
        ArrowType::Date32 => 0,
        ArrowType::Timestamp(_, None) => 1,
        ArrowType::Timestamp(_, Some(_)) => 2,
        _ => return None,
    })
}

/// The type that an argument of a type is given in, to a parameter of another; `None` where it is not taken.
fn given(found: &ArrowType, wanted: DataType) -> Option<ArrowType> {
    let wanted = wanted.to_arrow();
    let becomes = |of: fn(&ArrowType) -> Option<usize>| of(found) <= of(&wanted) && of(found).is_some();
    match (found, &wanted) {
        (ArrowType::Decimal128(..), ArrowType::Decimal128(..)) => Some(found.clone()),
        (ArrowType::Null | ArrowType::Utf8, _) => Some(wanted),
        // A rule of its own makes one of the other.
        (found, wanted) if is_numeric(found) || is_numeric(wanted) => {
            let is_number = |of: &ArrowType| is_exact(of) || of.is_floating();
            (is_number(found) && is_number(wanted)).then(|| found.clone())
        }
        _ if *found == wanted || becomes(width) || becomes(detail) => Some(wanted),
        _ => None,
    }
}

impl UserCall {
    /// The types that the arguments are given in.
    pub(crate) fn wanted(&self) -> &[DataType] {
        self.function.parameters()
    }
}

impl ScalarUDFImpl for UserCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        let wanted = self.function.parameters();
        let taken = types.iter().zip(wanted).map(|(found, wanted)| given(found, *wanted)).collect::<Option<Vec<_>>>();
        taken.filter(|_| types.len() == wanted.len()).ok_or_else(|| {
            let named: Vec<String> = types.iter().map(type_name).collect();
            let message = format!("function {}({}) does not exist", self.name, named.join(", "));
            external(SqlError::new("42883", message))
        })
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.function.returns().to_arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let returns = self.function.returns();
        Ok(Arc::new(marked(Field::new(&self.name, returns.to_arrow(), true), returns)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arguments = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = blocking(|| {
            self.stop.check()?;
            self.function.compute(&arguments, rows, &self.stop)
        });
        let results = computed.map_err(external)?;
        let wanted = self.function.returns().to_arrow();
        if results.len() != rows || *results.data_type() != wanted {
            let message = format!(
                "function {} gave {} values of {} for {rows} rows of {wanted}",
                self.name,
                results.len(),
                results.data_type()
            );
            return Err(external(SqlError::new("39000", message)));
        }
        Ok(ColumnarValue::Array(results))
    }
}

impl PartialEq for UserCall {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.function, &other.function)
    }
}

impl Eq for UserCall {}

impl Hash for UserCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl std::fmt::Debug for UserCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserCall").field("name", &self.name).finish_non_exhaustive()
    }
}
