//! The constructors of SQL/JSON: `JSON_OBJECT(key VALUE value, key: value ...)` and `JSON_ARRAY(value, ...)`, each with what becomes of
//! NULL (`NULL ON NULL`, `ABSENT ON NULL`) and with the type of what is made (`RETURNING jsonb`); and `JSON_ARRAYAGG` and
//! `JSON_OBJECTAGG`, which are calls of the aggregates that PostgreSQL has had before.
//!
//! They become calls of functions that take keys and values one after the other. A `json_object` without keys that are said so is the
//! function of texts that PostgreSQL has had before.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, JsonNullClause, ObjectName, ObjectNamePart,
    Statement, Value, VisitorMut, helpers::attached_token::AttachedToken,
};

use super::spellings::{calling, cast};
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
        match aggregated(call).and_then(|aggregated| aggregated.map_or_else(|| made(call), |made| Ok(Some(made)))) {
            Ok(Some(made)) => *expr = made,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// The clauses about NULL and about the type.
fn said(list: &FunctionArgumentList) -> (Option<JsonNullClause>, Option<DataType>) {
    let of_nulls = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::JsonNullClause(clause) => Some(clause.clone()),
        _ => None,
    });
    let returning = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::JsonReturningClause(clause) => Some(clause.data_type.clone()),
        _ => None,
    });
    (of_nulls, returning)
}

/// Whether a type is `jsonb`, and the one that a `json` is cast to then, if it is another.
///
/// # Errors
/// Where `json` is not cast to it.
fn returned(returning: Option<DataType>) -> Result<(bool, Option<DataType>)> {
    Ok(match returning {
        None | Some(DataType::JSON) => (false, None),
        Some(DataType::JSONB) => (true, None),
        Some(text @ (DataType::Text | DataType::Varchar(_))) => (false, Some(text)),
        Some(other) => {
            let message = format!("cannot cast type json to {}", other.to_string().to_lowercase());
            return Err(SqlError::new("42846", message));
        }
    })
}

/// What a call stands for, if it is of an aggregate: `JSON_ARRAYAGG(value)`, which leaves NULL out unless it says otherwise, and
/// `JSON_OBJECTAGG(key VALUE value)`, which has it. Of rows that are all left out there is an empty array or object, of none NULL.
fn aggregated(call: &mut Function) -> Result<Option<Expr>> {
    let is_object = match last_part(&call.name).as_deref() {
        Some("json_objectagg") => true,
        Some("json_arrayagg") => false,
        _ => return Ok(None),
    };
    let FunctionArguments::List(list) = &mut call.args else { return Ok(None) };
    let (of_nulls, returning) = said(list);
    let (is_kept, to) = returned(returning)?;
    let has_nulls = of_nulls.map_or(is_object, |clause| clause == JsonNullClause::NullOnNull);
    list.args = std::mem::take(&mut list.args).into_iter().flat_map(operands).collect();
    list.clauses.retain(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    let value = list.args.last().cloned();
    let name = match (is_object, is_kept) {
        (true, true) => "jsonb_object_agg",
        (true, false) => "json_object_agg",
        (false, true) => "jsonb_agg",
        (false, false) => "json_agg",
    };
    call.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]);
    let made = match value {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) if !has_nulls => of_some(call, value, is_object),
        _ => Expr::Function(call.clone()),
    };
    Ok(Some(to.map_or_else(|| made.clone(), |to| cast(made.clone(), to))))
}

/// An aggregate of what is not NULL, or an empty one where all is.
fn of_some(call: &Function, value: Expr, is_object: bool) -> Expr {
    let mut some = call.clone();
    let is_there = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value))));
    some.filter = Some(Box::new(match some.filter.take() {
        Some(asked) => Expr::BinaryOp { left: asked, op: BinaryOperator::And, right: Box::new(is_there) },
        None => is_there,
    }));
    let mut count = Function { args: FunctionArguments::None, ..call.clone() };
    count.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("count"))]);
    let all = FunctionArg::Unnamed(FunctionArgExpr::Wildcard);
    count.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![all],
        clauses: Vec::new(),
    });
    let number = |number: &str| Expr::value(Value::Number(number.to_owned(), false));
    let count = Box::new(Expr::Function(count));
    let condition = Expr::BinaryOp { left: count, op: BinaryOperator::Gt, right: Box::new(number("0")) };
    let is_kept = last_part(&call.name).is_some_and(|name| name.starts_with("jsonb"));
    let empty = Expr::value(Value::SingleQuotedString(if is_object { "{}" } else { "[]" }.to_owned()));
    let result = cast(empty, if is_kept { DataType::JSONB } else { DataType::JSON });
    let conditions = vec![CaseWhen { condition, result }];
    let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
    let none = Expr::Case { case_token, end_token, operand: None, conditions, else_result: None };
    calling("coalesce", vec![Expr::Function(some), none])
}

/// What a call stands for, if it is of a constructor.
fn made(call: &mut Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &mut call.args else { return Ok(None) };
    let is_object = match last_part(&call.name).as_deref() {
        Some("json_object") => true,
        Some("json_array") => false,
        _ => return Ok(None),
    };
    let (of_nulls, returning) = said(list);
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
    let (is_kept, to) = returned(returning)?;
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
