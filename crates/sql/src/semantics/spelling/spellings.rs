//! Functions that the planner knows by another name or as an operator, as `mod(a, b)`, which is `a % b`; and operators that it
//! knows as functions: `~ a`, `|/ a`, `a << b`, `a SIMILAR TO b`; and `a ~~ b`, which is `a LIKE b`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, Statement, Subscript, TimezoneInfo,
    UnaryOperator, Value, VisitorMut,
};

use super::{argument_names, called_types, variadics};
use crate::error::{Result, SqlError};
use crate::functions::arrays::fills;
use crate::functions::columns_of;
use crate::functions::json::path;
use crate::functions::numbers::unlimited::signs;
use crate::functions::statement::notify;
use crate::functions::texts::regexp;
use crate::functions::times::zones;
use crate::syntax::identifiers::fold;
use crate::syntax::walk::{WalkMut, walk_expressions};

/// Names of PostgreSQL and of the planner.
const NAMES: [(&str, &str); 7] = [
    ("sign", "signum"),
    ("variance", "var_samp"),
    ("every", "bool_and"),
    ("regexp_matches", "regexp_matches_of"),
    ("regexp_split_to_table", "regexp_split_to_array"),
    ("string_to_table", "string_to_array"),
    ("pg_listening_channels", notify::CHANNELS),
];

/// Functions of extensions, which PostgreSQL has in a schema of the user's; they are built in here.
const OF_EXTENSIONS: [&str; 12] = [
    "similarity",
    "word_similarity",
    "strict_word_similarity",
    "show_trgm",
    "unaccent",
    "digest",
    "hstore",
    "akeys",
    "avals",
    "exist",
    "defined",
    "hstore_to_json",
];

/// Functions that give rows, for which the planner has one that gives an array.
const GIVE_ROWS: [&str; 4] = ["regexp_matches", "regexp_split_to_table", "string_to_table", "pg_listening_channels"];

/// Rewrites the calls of a statement.
///
/// # Errors
/// If a function takes no array of arguments.
pub(crate) fn translate(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Calls) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Spells `CASE column WHEN 't' ...` as comparisons, where texts stand for values of the type that they are compared with.
fn compare_columns(expr: &mut Expr) {
    let Expr::Case { operand, conditions, .. } = expr else { return };
    let is_text =
        |expr: &Expr| matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    let column = operand.take_if(|operand| {
        matches!(**operand, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            && conditions.iter().any(|when| is_text(&when.condition))
    });
    if let Some(column) = column {
        for when in conditions {
            let right = Box::new(take(&mut when.condition));
            when.condition = Expr::BinaryOp { left: column.clone(), op: BinaryOperator::Eq, right };
        }
    }
}

struct Calls;

impl VisitorMut for Calls {
    type Break = Box<SqlError>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(call) = expr {
            leave_public(call);
            match variadics::spelled_out(call) {
                Ok(None) => {}
                Ok(Some(instead)) => *expr = instead,
                Err(error) => return ControlFlow::Break(Box::new(error)),
            }
        }
        compare_columns(expr);
        // A sign belongs to the number, not to its power: `-2 ^ 2` is 4.
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr
            && is_power(operand)
        {
            let mut power = take(operand);
            let mut base = &mut power;
            while let Expr::BinaryOp { left, op: BinaryOperator::PGExp, .. } = base {
                base = left;
            }
            let inner = take(base);
            *base = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(inner) };
            *expr = power;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Array(array) if array.elem.iter().any(has_names) => {
                *expr = calling("make_array", std::mem::take(&mut array.elem));
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let Some(places) = slice(access_chain) {
                    *expr = calling_quoted(fills::SLICED, std::iter::once(take(root)).chain(places).collect());
                }
            }
            Expr::Cast { expr: inner, data_type, .. } if is_named(data_type, path::CAST) => {
                *expr = calling(path::CAST, vec![take(inner)]);
            }
            Expr::Cast { data_type, .. } if is_named(data_type, "regdictionary") => *data_type = DataType::Text,
            // A numeric of more digits than the library has is one without limits, with so many decimals.
            Expr::Cast { expr: inner, data_type, .. } if let Some(scale) = scale_of_wide(data_type) => {
                let whole = |expr| cast(expr, DataType::Numeric(ExactNumberInfo::None));
                let scale = Expr::value(Value::Number(scale.to_string(), false));
                *expr = whole(calling("round", vec![whole(take(inner)), scale]));
            }
            Expr::Function(call) => {
                if let Some(operation) = called_types::cast_of(call).or_else(|| respell(call)) {
                    *expr = operation;
                }
            }
            Expr::UnaryOp { op, expr: operand } => {
                if let Some(call) = unary(*op, operand) {
                    *expr = call;
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let name = match op {
                    BinaryOperator::PGLikeMatch
                    | BinaryOperator::PGNotLikeMatch
                    | BinaryOperator::PGILikeMatch
                    | BinaryOperator::PGNotILikeMatch => {
                        *expr = like(op, take(left), take(right));
                        return ControlFlow::Continue(());
                    }
                    BinaryOperator::PGStartsWith => "starts_with",
                    BinaryOperator::PGExp => "power",
                    _ => return ControlFlow::Continue(()),
                };
                *expr = calling(name, vec![take(left), take(right)]);
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                *expr = calling(zones::NAME, vec![take(time_zone), take(timestamp)]);
            }
            Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
                let escape = escape_char.as_ref().map_or_else(|| "\\".to_owned(), |sign| plain(&sign.value));
                let escape = Expr::value(Value::SingleQuotedString(escape));
                let similar = calling(regexp::SIMILAR, vec![take(text), take(pattern), escape]);
                *expr = match negated {
                    true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(similar) },
                    false => similar,
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// An operator of one operand as the function that it stands for; `None` where the planner knows it.
fn unary(op: UnaryOperator, operand: &mut Expr) -> Option<Expr> {
    let (name, is_of_floats) = match op {
        UnaryOperator::Minus | UnaryOperator::Plus if is_constant(operand) => return None,
        UnaryOperator::Minus => return Some(calling_quoted(signs::MINUS, vec![take(operand)])),
        UnaryOperator::Plus => return Some(calling_quoted(signs::PLUS, vec![take(operand)])),
        UnaryOperator::BitwiseNot => ("bitwise_not", false),
        UnaryOperator::PGAbs => ("abs", false),
        UnaryOperator::PGSquareRoot => ("sqrt", true),
        UnaryOperator::PGCubeRoot => ("cbrt", true),
        _ => return None,
    };
    let operand = take(operand);
    Some(calling(name, vec![if is_of_floats { cast(operand, DataType::Float8) } else { operand }]))
}

/// A literal, within signs and parentheses.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
            is_constant(inner)
        }
        _ => false,
    }
}

/// `a ~~ b` and its kin by their names.
fn like(op: &BinaryOperator, text: Expr, pattern: Expr) -> Expr {
    let negated = matches!(op, BinaryOperator::PGNotLikeMatch | BinaryOperator::PGNotILikeMatch);
    let (expr, pattern) = (Box::new(text), Box::new(pattern));
    match op {
        BinaryOperator::PGLikeMatch | BinaryOperator::PGNotLikeMatch => {
            Expr::Like { negated, any: false, expr, pattern, escape_char: None }
        }
        _ => Expr::ILike { negated, any: false, expr, pattern, escape_char: None },
    }
}

fn is_power(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::PGExp, .. })
}

/// Gives a call the name that the planner knows, or says which operation stands for it.
fn respell(call: &mut Function) -> Option<Expr> {
    let name = fold(call.name.0.last().and_then(ObjectNamePart::as_ident)?);
    argument_names::put_in_place(&name, call);
    match name.as_str() {
        "mod" => {
            let [left, right] = two(call)?;
            let operation = Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Modulo, right: Box::new(right) };
            return Some(Expr::Nested(Box::new(operation)));
        }
        "array_cat" => {
            let [left, right] = two(call)?;
            let (left, right) = (Box::new(left), Box::new(right));
            return Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right })));
        }
        // Of one time, it is the age at the midnight that begins today.
        "age" => {
            let FunctionArguments::List(list) = &mut call.args else { return None };
            if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(_))] = &list.args[..] {
                let today = cast(calling("current_date", Vec::new()), DataType::Timestamp(None, TimezoneInfo::None));
                list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(today)));
            }
        }
        // Of a moment in a zone: of what its clocks show.
        zones::TRUNCATED => return in_zone(call),
        // The library counts without a sign.
        "ntile" if call.over.is_some() && is_of_null(call) => {
            return Some(cast(Expr::value(Value::Null), DataType::Int(None)));
        }
        "ntile" if call.over.is_some() => {
            return Some(cast(Expr::Function(call.clone()), DataType::Int(None)));
        }
        "row_number" | "rank" | "dense_rank" if call.over.is_some() => {
            return Some(cast(Expr::Function(call.clone()), DataType::BigInt(None)));
        }
        "pg_client_encoding" => {
            let name = Expr::value(Value::SingleQuotedString("client_encoding".to_owned()));
            return Some(calling("current_setting", vec![name]));
        }
        "regr_count" => return Some(cast(Expr::Function(call.clone()), DataType::BigInt(None))),
        // The library gives a text of another kind, which is that of `json` here.
        "string_agg" => return Some(joined(call)),
        "gen_random_uuid" | "uuid_generate_v4" => return Some(cast(calling("uuid", Vec::new()), DataType::Uuid)),
        // The library's has nanoseconds, which hold no `infinity`.
        "now" | "transaction_timestamp" | "localtimestamp" | "localtime" | "current_timestamp" | "current_time" => {
            return Some(cast(calling("now", Vec::new()), type_of_now(&name, &call.args)));
        }
        _ => {}
    }
    if let Some(([function], _)) = columns_of(&name) {
        let FunctionArguments::List(list) = &call.args else { return None };
        let arg = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        };
        let args = list.args.iter().map(arg).collect::<Option<Vec<_>>>()?;
        return Some(calling("unnest", vec![calling_quoted(function, args)]));
    }
    if let Some((_, known)) = NAMES.iter().find(|(own, _)| *own == name) {
        call.name = ObjectName::from(vec![Ident::new(*known)]);
        if GIVE_ROWS.contains(&&*name) {
            return Some(calling("unnest", vec![Expr::Function(call.clone())]));
        }
    }
    None
}

/// The type of a function that tells the time, with the digits of its seconds that it is asked for.
fn type_of_now(name: &str, args: &FunctionArguments) -> DataType {
    let digits = match args {
        FunctionArguments::List(list) => list.args.first().and_then(|arg| arg.to_string().parse().ok()),
        _ => None,
    };
    match name {
        "localtime" => DataType::Time(digits, TimezoneInfo::None),
        "current_time" => DataType::Time(digits, TimezoneInfo::Tz),
        "localtimestamp" => DataType::Timestamp(digits, TimezoneInfo::None),
        _ => DataType::Timestamp(digits, TimezoneInfo::Tz),
    }
}

/// The decimals of a numeric of more digits than 38, and at most as many as PostgreSQL has.
fn scale_of_wide(data_type: &DataType) -> Option<i64> {
    let (DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info)) = data_type else { return None };
    let (precision, scale) = match info {
        ExactNumberInfo::None => return None,
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    ((39..=1000).contains(&precision) && (0..=1000).contains(&scale)).then_some(scale)
}

/// Whether a type is that of PostgreSQL with this name.
fn is_named(data_type: &DataType, known: &str) -> bool {
    let DataType::Custom(name, modifiers) = data_type else { return false };
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    match &parts[..] {
        [local] => modifiers.is_empty() && local == known,
        [schema, local] => modifiers.is_empty() && schema == "pg_catalog" && local == known,
        _ => false,
    }
}

/// Leaves out the schema in which PostgreSQL has the functions of extensions.
fn leave_public(call: &mut Function) {
    let parts: Vec<String> = call.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    if let [schema, name] = &parts[..]
        && schema == "public"
        && OF_EXTENSIONS.contains(&name.as_str())
    {
        call.name.0.remove(0);
    }
}

/// An expression out of its place.
fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

/// The text of a literal.
fn plain(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An expression as one of a type.
pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn plain_args(call: &Function) -> impl Iterator<Item = &Expr> {
    let args = match &call.args {
        FunctionArguments::List(list) => &list.args[..],
        _ => &[],
    };
    args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

/// Whether an expression is written as one of bytes.
fn is_bytes(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Bytea),
        Expr::TypedString(typed) => matches!(typed.data_type, DataType::Bytea),
        Expr::Nested(inner) => is_bytes(inner),
        _ => false,
    }
}

/// `string_agg`; of bytes, of which the library knows none, that of their digits.
fn joined(call: &mut Function) -> Expr {
    if !plain_args(call).any(is_bytes) {
        return cast(Expr::Function(call.clone()), DataType::Text);
    }
    let hex = || Expr::value(Value::SingleQuotedString("hex".to_owned()));
    if let FunctionArguments::List(list) = &mut call.args {
        for arg in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                *expr = calling("encode", vec![cast(take(expr), DataType::Bytea), hex()]);
            }
        }
    }
    calling("decode", vec![cast(Expr::Function(call.clone()), DataType::Text), hex()])
}

/// Whether a function is given nothing but NULL.
fn is_of_null(call: &Function) -> bool {
    fn is_null(expr: &Expr) -> bool {
        match expr {
            Expr::Value(value) => value.value == Value::Null,
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_null(inner),
            _ => false,
        }
    }
    plain_args(call).all(is_null)
}

/// A call of a function.
pub(crate) fn calling(name: &str, args: Vec<Expr>) -> Expr {
    calling_named(Ident::new(name), args)
}

/// A call of a function whose name is taken as it is spelled.
pub(crate) fn calling_quoted(name: &str, args: Vec<Expr>) -> Expr {
    calling_named(Ident::with_quote('"', name), args)
}

fn calling_named(name: Ident, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Whether an expression names columns, which may be of a query around: as items of an array the planner does not find those.
fn has_names(expr: &Expr) -> bool {
    let visited = walk_expressions(expr, |expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}

/// The arguments of a call of two, in parentheses.
/// `date_trunc(unit, moment, zone)`, where it has three arguments.
fn in_zone(call: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let [unit, moment, zone] = &list.args.iter().map(plain).collect::<Option<Vec<Expr>>>()?[..] else { return None };
    let moment = cast(moment.clone(), DataType::Timestamp(None, TimezoneInfo::Tz));
    let shown = calling(zones::NAME, vec![zone.clone(), moment]);
    let truncated = calling(zones::TRUNCATED, vec![unit.clone(), shown]);
    Some(calling(zones::NAME, vec![zone.clone(), truncated]))
}

fn two(call: &Function) -> Option<[Expr; 2]> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let nested = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(Expr::Nested(Box::new(expr.clone()))),
        _ => None,
    };
    match &list.args[..] {
        [left, right] => Some([nested(left)?, nested(right)?]),
        _ => None,
    }
}

/// The bounds of a slice, two of each dimension; an index beside slices is the end of one.
fn slice(chain: &mut [AccessExpr]) -> Option<Vec<Expr>> {
    let is_slice = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { stride: None, .. }));
    let is_subscript =
        |access: &AccessExpr| is_slice(access) || matches!(access, AccessExpr::Subscript(Subscript::Index { .. }));
    if !chain.iter().any(is_slice) || !chain.iter().all(is_subscript) {
        return None;
    }
    let number = |number: i32| Expr::value(Value::Number(number.to_string(), false));
    let mut places = Vec::with_capacity(chain.len() * 2);
    for access in chain {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => places.extend([number(1), take(index)]),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
                places.push(lower_bound.take().unwrap_or_else(|| number(1)));
                places.push(upper_bound.take().unwrap_or_else(|| number(i32::MAX)));
            }
            AccessExpr::Dot(_) => {}
        }
    }
    Some(places)
}
