//! The constructors of SQL/JSON: `JSON_OBJECT(key VALUE value, key: value ...)` and `JSON_ARRAY(value, ...)`, each with what becomes of
//! NULL (`NULL ON NULL`, `ABSENT ON NULL`) and with the type of what is made (`RETURNING jsonb`).
//!
//! They become calls of functions that take keys and values one after the other. A `json_object` without keys that are said so is the
//! function of texts that PostgreSQL has had before.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArgumentClause,
    FunctionArguments, Ident, JsonNullClause, ObjectName, ObjectNamePart, Statement, Value, VisitorMut,
};

use super::spellings::cast;
use crate::error::{Result, SqlError};
use crate::functions::json::build;
use crate::syntax::identifiers::last_part;
use crate::syntax::walk::WalkMut;

/// Spells the constructors of a statement out.
///
/// # Errors
/// Where they return a type that JSON is not.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Constructors) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Constructors;

impl VisitorMut for Constructors {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        match made(call) {
            Ok(Some(made)) => *expr = made,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// What a call stands for, if it is of a constructor.
fn made(call: &mut Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &mut call.args else { return Ok(None) };
    let is_object = match last_part(&call.name).as_deref() {
        Some("json_object") => true,
        Some("json_array") => false,
        _ => return Ok(None),
    };
    let of_nulls = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::JsonNullClause(clause) => Some(clause.clone()),
        _ => None,
    });
    let returning = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::JsonReturningClause(clause) => Some(clause.data_type.clone()),
        _ => None,
    });
    let is_plain = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(_));
    let is_said = !list.clauses.is_empty() || list.args.is_empty() || !list.args.iter().all(is_plain);
    if is_object && !is_said {
        return Ok(None);
    }
    let has_nulls = match of_nulls {
        Some(clause) => clause == JsonNullClause::NullOnNull,
        // As the standard has it.
        None => is_object,
    };
    let (is_kept, to) = match returning {
        None | Some(DataType::JSON) => (false, None),
        Some(DataType::JSONB) => (true, None),
        Some(text @ (DataType::Text | DataType::Varchar(_))) => (false, Some(text)),
        Some(other) => {
            let message = format!("cannot cast type json to {}", other.to_string().to_lowercase());
            return Err(SqlError::new("42846", message));
        }
    };
    list.args = std::mem::take(&mut list.args).into_iter().flat_map(operands).collect();
    list.clauses.clear();
    let name = build::constructor(is_object, has_nulls, is_kept);
    call.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', name))]);
    let made = Expr::Function(call.clone());
    Ok(Some(match to {
        Some(to) => cast(made, to),
        None => made,
    }))
}

/// A key and its value as two arguments.
fn operands(arg: FunctionArg) -> Vec<FunctionArg> {
    let plain = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    match arg {
        FunctionArg::ExprNamed { name, arg, operator: FunctionArgOperator::Value | FunctionArgOperator::Colon } => {
            vec![plain(name), FunctionArg::Unnamed(arg)]
        }
        FunctionArg::Named { name, arg, operator: FunctionArgOperator::Value | FunctionArgOperator::Colon } => {
            // The parser has a text for a name, too.
            let key = match name.quote_style {
                Some('\'') => Expr::Value(Value::SingleQuotedString(name.value).into()),
                _ => Expr::Identifier(name),
            };
            vec![plain(key), FunctionArg::Unnamed(arg)]
        }
        other => vec![other],
    }
}
