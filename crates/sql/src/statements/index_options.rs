//! The options of an index: `WITH (budget = '64MB')`, what the method `bwd` searches first.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Spanned, Value, ValueWithSpan};
use engine::IndexMethod;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::state::memory_limit::{self, BUDGET};
use crate::syntax::source::Source;

/// The budget in bytes that options say, if they do.
pub(super) fn budget(options: &[Expr], method: IndexMethod, source: &Source) -> Result<Option<u64>> {
    let mut budget = None;
    for option in options {
        let at = source.start(option.span());
        let (name, value) = match option {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match &**left {
                Expr::Identifier(name) => (fold(name), &**right),
                _ => return Err(SqlError::syntax("an option of an index is a name and a value").at(at)),
            },
            _ => return Err(SqlError::syntax("an option of an index is a name and a value").at(at)),
        };
        if name != BUDGET || method != IndexMethod::Bwd {
            return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\"")).at(at));
        }
        if budget.is_some() {
            return Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once")).at(at));
        }
        budget = Some(bytes(value).map_err(|error| error.at(at))?);
    }
    Ok(budget)
}

fn bytes(value: &Expr) -> Result<u64> {
    let invalid = |hint: &'static str| {
        let message = format!("invalid value for option \"{BUDGET}\": {value}");
        SqlError::new("22023", message).hint(hint)
    };
    let hint = "It is an amount of memory with its unit, such as '64MB'.";
    match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            memory_limit::parse(text).ok().flatten().ok_or_else(|| invalid(hint))
        }
        _ => Err(invalid(hint)),
    }
}
