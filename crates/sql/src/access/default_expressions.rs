//! What fills columns, as the catalog has it: as text, which is read for statements and shown to users.
//!
//! A constant is kept as a literal without a type, and takes the type of its column wherever it is put in; it is shown with that
//! type, as PostgreSQL shows it.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use engine::{Column, ColumnDefault, DataType};

use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, written};
use crate::error::Result;
use crate::names::name_in_text;
use crate::names::schemas::spelled;
use crate::syntax::identifiers::last_part;
use crate::syntax::walk::{Walk, WalkMut, walk_expressions};
use crate::values::literals::{Literal, literal};
use crate::values::long_kept_name;
use crate::values::numerics;
use crate::values::text::lasting_text;

/// What fills a column, if anything but NULL and the other columns does.
pub(crate) fn expression_of(defaults: &[ColumnDefault], column: usize) -> Result<Option<Expr>> {
    let found = defaults.iter().find(|default| default.column == column && !default.is_generated);
    found.and_then(|default| default.expression.as_deref()).map(parsed).transpose()
}

/// What fills a column as PostgreSQL's catalog shows it; a generated one is worked out from these columns.
pub(crate) fn shown(text: &str, column: &Column, columns: &[Column], style: Style) -> String {
    let Ok(expr) = parsed(text) else { return text.to_owned() };
    match literal(&expr) {
        // A length or digits that are said stay as they are written.
        Some(Literal::Typed(_, DataType::Decimal { .. })) => written(&expr, columns, style),
        Some(literal) => constant(literal, column),
        None => written(&expr, columns, style),
    }
}

fn constant(literal: Literal, column: &Column) -> String {
    match literal {
        Literal::Null => "NULL".to_owned(),
        Literal::Boolean(value) => value.to_string(),
        Literal::Text(text) => of_type(&text, column.data_type),
        Literal::Number(number) => {
            // One with an exponent is told without, as a text.
            if let Some(digits) = number.contains(['e', 'E']).then(|| numerics::read(&number).ok()).flatten() {
                return format!("'{digits}'::numeric");
            }
            let data_type = match number.parse::<i64>() {
                Ok(whole) if i32::try_from(whole).is_ok() => DataType::Integer,
                Ok(_) => DataType::BigInt,
                Err(_) => DataType::Decimal { precision: 38, scale: 0 },
            };
            of_type(&number, data_type)
        }
        Literal::Typed(value, data_type) => {
            lasting_text(&value, 0).map_or("NULL".to_owned(), |text| of_type(&text, data_type))
        }
    }
}

/// A constant with its type, where the type is not that which a reader would find.
fn of_type(text: &str, data_type: DataType) -> String {
    let starts_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
    match data_type {
        DataType::Boolean => (text == "t" || text == "true").to_string(),
        DataType::Integer if starts_with_digit => text.to_owned(),
        DataType::Decimal { .. } | DataType::Numeric if starts_with_digit && text.contains(['.', 'e', 'E']) => {
            text.to_owned()
        }
        _ => format!("'{}'::{}", text.replace('\'', "''"), type_label(data_type)),
    }
}

fn type_label(data_type: DataType) -> String {
    match data_type {
        DataType::CITEXT | DataType::HSTORE => data_type.to_string(),
        DataType::Text { max_chars: Some(_) } => "character varying".to_owned(),
        DataType::Char { .. } => "bpchar".to_owned(),
        DataType::Decimal { .. } => "numeric".to_owned(),
        other => long_kept_name(other),
    }
}

/// The sequences that an expression names by literals.
pub(crate) fn sequences_named(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    each_sequence(expr, |name, _| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}

/// Looks at each literal in a part of a statement that names a sequence.
pub(crate) fn each_sequence(part: &impl Walk, mut look: impl FnMut(String, Span)) {
    let _ = walk_expressions::<()>(part, |expr| {
        if let Expr::Function(function) = expr
            && let Some((text, span)) = sequence_text(function)
            && let Ok(name) = name_in_text(text)
        {
            look(name, span);
        }
        ControlFlow::Continue(())
    });
}

/// The sequence that a default takes its numbers from, if it does nothing else.
pub(crate) fn next_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => next_of(inner),
        Expr::Function(function) if last_part(&function.name).as_deref() == Some("nextval") => {
            name_in_text(sequence_text(function)?.0).ok()
        }
        _ => None,
    }
}

/// Whether a function is one of those that take the name of a sequence.
fn is_of_sequences(function: &Function) -> bool {
    matches!(last_part(&function.name).as_deref(), Some("nextval" | "currval" | "setval"))
}

/// The literal that names the sequence of a call, and where it stands.
fn sequence_text(function: &Function) -> Option<(&str, Span)> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(name))) = list.args.first() else { return None };
    let name = match name {
        Expr::Cast { expr, data_type: SqlType::Regclass, .. } => expr.as_ref(),
        other => other,
    };
    match name {
        Expr::Value(value) if is_of_sequences(function) => match &value.value {
            Value::SingleQuotedString(text) => Some((text, value.span)),
            _ => None,
        },
        _ => None,
    }
}

/// The text of an expression that names a sequence by what it is called from now on.
pub(crate) fn renamed(text: &str, from: &str, to: &str) -> String {
    let Ok(mut expr) = parsed(text) else { return text.to_owned() };
    if !sequences_named(&expr).iter().any(|name| name == from) {
        return text.to_owned();
    }
    let named = |name: String| if name == from { to.to_owned() } else { name };
    let _ = expr.walk_mut(&mut WithSequences { named: &named });
    written(&expr, &[], Style::Kept)
}

/// Writes the names of sequences with the type that PostgreSQL's catalog shows them with.
pub(crate) struct WithSequences<'a> {
    /// The name by which the catalog is to know the sequence of a name.
    pub(crate) named: &'a dyn Fn(String) -> String,
}

impl VisitorMut for WithSequences<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(name) = sequence_text(function).and_then(|(text, _)| name_in_text(text).ok())
            && let FunctionArguments::List(list) = &mut function.args
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) = list.args.first_mut()
        {
            let name = (self.named)(name);
            *argument = Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(Expr::value(Value::SingleQuotedString(spelled(&name)))),
                data_type: SqlType::Regclass,
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

/// The expression that gives the next number of a sequence, as the catalog keeps it.
pub(crate) fn next_of_text(sequence: &str) -> String {
    let name = spelled(sequence).replace('\'', "''");
    format!("nextval('{name}'::regclass)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_shown_with_their_types() {
        let cases = [
            ("'it''s'", DataType::TEXT, "'it''s'::text"),
            ("'x'", DataType::Text { max_chars: Some(3) }, "'x'::character varying"),
            ("'x'", DataType::Char { chars: 3 }, "'x'::bpchar"),
            ("5", DataType::BigInt, "5"),
            ("-5", DataType::Integer, "'-5'::integer"),
            ("5000000000", DataType::BigInt, "'5000000000'::bigint"),
            ("1.50", DataType::Decimal { precision: 9, scale: 2 }, "1.50"),
            ("-1.5", DataType::Double, "'-1.5'::numeric"),
            ("'f'", DataType::Boolean, "false"),
            ("'2020-01-31'", DataType::Date, "'2020-01-31'::date"),
            ("DATE '2020-01-31'", DataType::TEXT, "'2020-01-31'::date"),
            ("nextval('s'::regclass)", DataType::BigInt, "nextval('s'::regclass)"),
            ("current_timestamp", DataType::TimestampTz, "CURRENT_TIMESTAMP"),
            ("1+2", DataType::Integer, "(1 + 2)"),
            ("now()::date", DataType::Date, "(now())::date"),
        ];
        for (text, data_type, expected) in cases {
            assert_eq!(shown(text, &Column::new("c", data_type), &[], Style::Plain), expected, "{text}");
        }
    }

    #[test]
    fn sequences_are_found_by_their_names() {
        let names = |text: &str| sequences_named(&parsed(text).unwrap());
        assert_eq!(names("nextval('a') + currval('\"B\"'::regclass)"), ["a", "B"]);
        assert_eq!(names("nextval(lower('A')) + length('b')"), [""; 0]);
        assert_eq!(renamed("nextval('a') + 1", "a", "B"), "nextval('\"B\"'::regclass) + 1");
        assert_eq!(next_of(&parsed(&next_of_text("Odd's")).unwrap()).as_deref(), Some("Odd's"));
    }
}
