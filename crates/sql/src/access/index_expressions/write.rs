//! Writing expressions as PostgreSQL's catalog shows them.
//!
//! ```text
//! as it was given    a+b > 0 and c='x'
//! plain              (((a + b) > 0) AND (c = 'x'::text))       pg_get_indexdef(oid), pg_indexes
//! pretty             (a + b) > 0 AND c = 'x'::text              psql
//! kept               a + b > 0 AND c = 'x'::text                the catalog of the engine
//! ```
//!
//! The kept form is pretty, and always read again, so it says what was meant: no type is written that the planner
//! would not have found. The others are told in PostgreSQL's words (`told`).
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    TimezoneInfo, UnaryOperator, Value,
};
use engine::{Column, DataType};

use super::told::told;
use crate::syntax::identifiers::{fold, quoted};
use crate::values::long_kept_name;
use crate::values::types::column_type;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// With parentheses around every operator, and the types of texts.
    Plain,
    /// With those that are needed.
    Pretty,
    /// As the catalog of the engine keeps it: pretty, and as it was given.
    Kept,
}

/// An expression over these columns as text.
pub(crate) fn written(expr: &Expr, columns: &[Column], style: Style) -> String {
    let writer = Writer { columns, style };
    if style == Style::Kept { writer.expr(expr) } else { writer.expr(&told(expr, columns)) }
}

/// An expression as it stands in the list of an index: in parentheses, but for calls of functions.
pub(crate) fn in_list(expr: &Expr, columns: &[Column], style: Style) -> String {
    let text = written(expr, columns, style);
    if is_call(expr) { text } else { format!("({text})") }
}

/// Whether an expression may stand in the list of an index as it is.
pub(crate) fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_call(inner),
        Expr::Function(_)
        | Expr::Extract { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Position { .. }
        | Expr::Overlay { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. } => true,
        _ => false,
    }
}

struct Writer<'a> {
    columns: &'a [Column],
    style: Style,
}

/// How tightly an operator binds, where that decides about parentheses.
fn strength(expr: &Expr) -> u8 {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => 1,
        Expr::BinaryOp { op: BinaryOperator::And, .. } => 2,
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => 3,
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_) => 4,
        Expr::BinaryOp { op, .. } if is_comparison(op) => 5,
        Expr::Between { .. } | Expr::InList { .. } | Expr::Like { .. } | Expr::ILike { .. } => 5,
        Expr::AnyOp { .. } | Expr::AllOp { .. } | Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => 5,
        Expr::BinaryOp { op: BinaryOperator::Plus | BinaryOperator::Minus, .. } => 7,
        Expr::BinaryOp { op: BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo, .. } => 8,
        Expr::BinaryOp { .. } => 6,
        Expr::UnaryOp { .. } => 9,
        Expr::Nested(inner) => strength(inner),
        _ => 10,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

/// Whether an expression is an operator between two operands, which PostgreSQL puts into parentheses wherever no other one for numbers
/// is around.
fn is_operation(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_operation(inner),
        Expr::BinaryOp { op, .. } => !matches!(op, BinaryOperator::And | BinaryOperator::Or),
        _ => false,
    }
}

fn is_string(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// Functions that are words of the language, with the digits of their seconds.
const TIMES: [&str; 4] = ["current_time", "current_timestamp", "localtime", "localtimestamp"];

/// Functions that take no other type of texts.
const OF_TEXTS: [&str; 39] = [
    "ascii",
    "btrim",
    "current_setting",
    "date_part",
    "date_trunc",
    "decode",
    "encode",
    "initcap",
    "left",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "overlay",
    "quote_ident",
    "quote_literal",
    "regexp_match",
    "regexp_matches",
    "regexp_replace",
    "regexp_split_to_array",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "set_config",
    "split_part",
    "starts_with",
    "string_to_array",
    "strpos",
    "substr",
    "timezone",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    "translate",
    "upper",
];

impl Writer<'_> {
    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => self.expr(inner),
            Expr::Identifier(ident) => name(ident),
            Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, name),
            Expr::Value(value) => value.value.to_string(),
            Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                self.whole(format!("NOT {}", self.below(inner, strength(expr))))
            }
            Expr::UnaryOp { op, expr: inner } => match inner.as_ref() {
                Expr::Value(value) => format!("{op}{}", value.value),
                _ => self.whole(format!("{op} {}", self.below(inner, strength(expr) + 1))),
            },
            Expr::IsNull(inner) => self.test(expr, inner, "IS NULL"),
            Expr::IsNotNull(inner) => self.test(expr, inner, "IS NOT NULL"),
            Expr::IsTrue(inner) => self.test(expr, inner, "IS TRUE"),
            Expr::IsNotTrue(inner) => self.test(expr, inner, "IS NOT TRUE"),
            Expr::IsFalse(inner) => self.test(expr, inner, "IS FALSE"),
            Expr::IsNotFalse(inner) => self.test(expr, inner, "IS NOT FALSE"),
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, .. } => {
                let known = || column_type(data_type).ok().map(|(known, _)| type_text(known));
                let to = time_text(data_type).or_else(known);
                self.cast(inner, &to.unwrap_or_else(|| data_type.to_string().to_lowercase()))
            }
            Expr::InList { expr: inner, list, negated } => {
                let (of, not) = (self.below(inner, strength(expr) + 1), if *negated { "NOT " } else { "" });
                let list: Vec<String> = list.iter().map(|item| self.beside(item, inner)).collect();
                self.whole(format!("{of} {not}IN ({})", list.join(", ")))
            }
            Expr::Between { expr: inner, negated, low, high } => {
                let (of, not) = (self.below(inner, strength(expr) + 1), if *negated { "NOT " } else { "" });
                let (low, high) = (self.beside(low, inner), self.beside(high, inner));
                self.whole(format!("{of} {not}BETWEEN {low} AND {high}"))
            }
            Expr::Function(function) => self.call(expr, function),
            Expr::AtTimeZone { timestamp, time_zone } => {
                let zone = if is_string(time_zone) { self.cast(time_zone, "text") } else { self.below(time_zone, 10) };
                self.whole(format!("{} AT TIME ZONE {zone}", self.below(timestamp, 10)))
            }
            Expr::AnyOp { left, compare_op, right, .. } => self.quantified(expr, left, compare_op, ("ANY", right)),
            Expr::AllOp { left, compare_op, right } => self.quantified(expr, left, compare_op, ("ALL", right)),
            Expr::IsDistinctFrom(left, right) => self.distinct(expr, left, right, "IS DISTINCT FROM"),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(expr, left, right, "IS NOT DISTINCT FROM"),
            other => self.words(other),
        }
    }

    /// What is written as words of the language.
    fn words(&self, expr: &Expr) -> String {
        match expr {
            Expr::Case { operand, conditions, else_result: Some(otherwise), .. } if self.style != Style::Kept => {
                let results = conditions.iter().map(|when| &when.result).chain([&**otherwise]);
                let are_strings = results.clone().all(is_string);
                let result = |of: &Expr| if are_strings { self.cast(of, "text") } else { self.expr(of) };
                let of = operand.as_ref().map_or_else(String::new, |operand| format!(" {}", self.expr(operand)));
                let mut text = format!("\nCASE{of}");
                for when in conditions {
                    let (condition, value) = (self.expr(&when.condition), result(&when.result));
                    text.push_str(&format!("\n    WHEN {condition} THEN {value}"));
                }
                format!("{text}\n    ELSE {}\nEND", result(otherwise))
            }
            Expr::Array(array) => {
                let items: Vec<String> = array.elem.iter().map(|item| self.expr(item)).collect();
                format!("ARRAY[{}]", items.join(", "))
            }
            Expr::Substring { expr: of, substring_from: Some(from), substring_for, shorthand: true, .. } => {
                let rest = [Some(from), substring_for.as_ref()].into_iter().flatten().map(|part| self.expr(part));
                let all: Vec<String> = std::iter::once(self.as_text(of)).chain(rest).collect();
                format!("substr({})", all.join(", "))
            }
            Expr::Trim { trim_where, trim_what, expr: of, trim_characters: None } if self.style != Style::Kept => {
                let side = trim_where.map_or_else(|| "BOTH".to_owned(), |side| side.to_string());
                let what = trim_what.as_ref().map_or_else(String::new, |what| format!("{} ", self.as_text(what)));
                format!("TRIM({side} {what}FROM {})", self.as_text(of))
            }
            Expr::Extract { field, expr: of, .. } => {
                format!("EXTRACT({} FROM {})", field.to_string().to_lowercase(), self.expr(of))
            }
            other => other.to_string(),
        }
    }

    /// With parentheses, where every operator has them.
    fn whole(&self, text: String) -> String {
        if self.style == Style::Plain { format!("({text})") } else { text }
    }

    /// An operand of an operator of this strength.
    fn below(&self, operand: &Expr, outer: u8) -> String {
        let text = self.expr(operand);
        let is_told = self.style == Style::Pretty && is_operation(operand) && matches!(outer, 5 | 6);
        let is_open = is_told || self.style != Style::Plain && strength(operand) < outer;
        if is_open { format!("({text})") } else { text }
    }

    fn quantified(&self, whole: &Expr, left: &Expr, op: &BinaryOperator, (word, right): (&str, &Expr)) -> String {
        let left = self.below(left, strength(whole) + 1);
        self.whole(format!("{left} {op} {word} ({})", self.expr(right)))
    }

    fn distinct(&self, whole: &Expr, left: &Expr, right: &Expr, what: &str) -> String {
        let outer = strength(whole) + 1;
        self.whole(format!("{} {what} {}", self.compared(left, right, outer), self.compared(right, left, outer)))
    }

    fn test(&self, whole: &Expr, inner: &Expr, what: &str) -> String {
        self.whole(format!("{} {what}", self.below(inner, strength(whole) + 1)))
    }

    fn binary(&self, whole: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> String {
        let outer = strength(whole);
        if is_comparison(op) {
            let (left, right) = (self.compared(left, right, outer + 1), self.compared(right, left, outer + 1));
            return self.whole(format!("{left} {op} {right}"));
        }
        // Operators of one strength are read from the left; AND and OR may be regrouped.
        let is_chain = matches!(op, BinaryOperator::And | BinaryOperator::Or);
        let right_outer = if is_chain { outer } else { outer + 1 };
        let operand = |operand: &Expr, outer| match self.is_made_text(operand) {
            true if *op == BinaryOperator::StringConcat => self.cast(operand, "text"),
            _ => self.below(operand, outer),
        };
        let mut text = format!("{} {op} {}", operand(left, outer), operand(right, right_outer));
        // The key of a part of JSON.
        let is_key = matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow | BinaryOperator::Question);
        if is_key && self.style != Style::Kept && is_string(right) {
            text.push_str("::text");
        }
        if is_chain && self.style == Style::Plain {
            return format!("({})", self.chain(whole, op));
        }
        self.whole(text)
    }

    /// All that is joined by one of AND and OR, without parentheses in between.
    fn chain(&self, expr: &Expr, joining: &BinaryOperator) -> String {
        match expr {
            Expr::Nested(inner) => self.chain(inner, joining),
            Expr::BinaryOp { left, op, right } if op == joining => {
                format!("{} {op} {}", self.chain(left, joining), self.chain(right, joining))
            }
            other => self.expr(other),
        }
    }

    /// One side of a comparison, which may be a text that has the type of the other.
    fn compared(&self, side: &Expr, other: &Expr, outer: u8) -> String {
        match self.column_of(side) {
            Some(column) if is_varchar(column.data_type) && is_text_literal(other) => self.cast(side, "text"),
            _ if is_text_literal(side) => self.beside(side, other),
            _ => self.below(side, outer),
        }
    }

    /// Writes an operand beside an expression: a text has its type.
    fn beside(&self, expr: &Expr, other: &Expr) -> String {
        let text = self.below(expr, 6);
        match self.column_of(other) {
            Some(column) if is_text_literal(expr) => {
                let data_type = if is_varchar(column.data_type) { DataType::TEXT } else { column.data_type };
                format!("{text}::{}", type_text(data_type))
            }
            _ => text,
        }
    }

    fn column_of(&self, expr: &Expr) -> Option<&Column> {
        let name = match expr {
            Expr::Nested(inner) => return self.column_of(inner),
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(parts) => parts.last().map(fold)?,
            _ => return None,
        };
        self.columns.iter().find(|column| column.name == name)
    }

    fn cast(&self, inner: &Expr, to: &str) -> String {
        if let Expr::Nested(inner) = inner {
            return self.cast(inner, to);
        }
        let text = self.expr(inner);
        let is_bare = match inner {
            Expr::Value(value) => self.style != Style::Plain || !matches!(value.value, Value::Number(..)),
            Expr::Array(array) => array.elem.is_empty() || self.style == Style::Pretty,
            Expr::Function(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Cast { .. } => {
                self.style != Style::Plain
            }
            _ => false,
        };
        if is_bare { format!("{text}::{to}") } else { format!("({text})::{to}") }
    }

    /// Whether an operand of a function or an operator of texts is cast to one.
    fn is_made_text(&self, operand: &Expr) -> bool {
        is_string(operand) || self.column_of(operand).is_some_and(|column| is_varchar(column.data_type))
    }

    /// An argument of a function that takes texts.
    fn as_text(&self, argument: &Expr) -> String {
        if self.is_made_text(argument) { self.cast(argument, "text") } else { self.expr(argument) }
    }

    fn call(&self, whole: &Expr, function: &datafusion::sql::sqlparser::ast::Function) -> String {
        let FunctionArguments::List(list) = &function.args else { return whole.to_string().to_uppercase() };
        let is_plain = list.duplicate_treatment.is_none()
            && list.clauses.is_empty()
            && function.filter.is_none()
            && function.within_group.is_empty();
        let name = function.name.to_string().to_lowercase();
        // These are written as words of the language.
        let is_time = TIMES.contains(&name.as_str());
        let is_word = is_time || ["coalesce", "nullif", "greatest", "least"].contains(&name.as_str());
        let is_of_strings = is_word && list.args.iter().all(|of| argument_of(of).is_some_and(is_string));
        let takes_texts = OF_TEXTS.contains(&name.as_str());
        let first = list.args.first().and_then(argument_of).and_then(|first| self.column_of(first));
        let is_measured = |column: &Column| !matches!(column.data_type, DataType::Char { .. });
        let is_literal = list.args.first().and_then(argument_of).is_some_and(is_string);
        let is_length = name == "length" && (is_literal || first.is_some_and(is_measured));
        let unlimited =
            |column: &Column| if is_varchar(column.data_type) { DataType::VARCHAR } else { column.data_type };
        let argument = |argument: &FunctionArg| {
            let expr = argument_of(argument)?;
            Some(match first {
                _ if takes_texts || is_length || is_of_strings => self.as_text(expr),
                Some(column) if is_word && is_string(expr) => self.cast(expr, &type_text(unlimited(column))),
                _ => self.expr(expr),
            })
        };
        match list.args.iter().map(argument).collect::<Option<Vec<String>>>().filter(|_| is_plain) {
            Some(arguments) => {
                let name = if is_word { name.to_uppercase() } else { name };
                format!("{name}({})", arguments.join(", "))
            }
            None => whole.to_string(),
        }
    }
}

fn argument_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn is_varchar(data_type: DataType) -> bool {
    ![DataType::CITEXT, DataType::HSTORE].contains(&data_type)
        && matches!(data_type, DataType::Text { max_chars: Some(_) } | DataType::Char { .. })
}

fn is_text_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text_literal(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

fn type_text(data_type: DataType) -> String {
    match data_type {
        DataType::Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        other => long_kept_name(other),
    }
}

/// A type of times with the digits of its seconds, or of intervals with their fields as well, which a column's type says nothing of.
fn time_text(data_type: &SqlType) -> Option<String> {
    let in_parentheses = |digits: &u64| format!("({digits})");
    Some(match data_type {
        SqlType::Interval { fields, precision } => {
            let fields = fields.map_or_else(String::new, |fields| format!(" {}", fields.to_string().to_lowercase()));
            format!("interval{fields}{}", precision.as_ref().map_or_else(String::new, in_parentheses))
        }
        SqlType::Timestamp(Some(digits), zone) => {
            let zone = match zone {
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => "with",
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => "without",
            };
            format!("timestamp({digits}) {zone} time zone")
        }
        SqlType::Time(Some(digits), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            format!("time({digits}) without time zone")
        }
        _ => return None,
    })
}

fn name(ident: &Ident) -> String {
    quoted(&fold(ident))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::index_expressions::text::parsed;

    fn columns() -> Vec<Column> {
        let types = [("a", DataType::Integer), ("b", DataType::BigInt), ("c", DataType::TEXT)];
        let more = [("v", DataType::Text { max_chars: Some(9) }), ("d", DataType::Date), ("Odd", DataType::Boolean)];
        types.into_iter().chain(more).map(|(name, data_type)| Column::new(name, data_type)).collect()
    }

    #[test]
    fn expressions_are_written_as_postgresql_does() {
        let cases = [
            ("lower(C)", "lower(c)", "lower(c)"),
            ("a+b", "(a + b)", "a + b"),
            ("a+b*2", "(a + (b * 2))", "a + b * 2"),
            ("(a+b)*2", "((a + b) * 2)", "(a + b) * 2"),
            ("a-(b-2)", "(a - (b - 2))", "a - (b - 2)"),
            ("lower(c || 'x')", "lower((c || 'x'::text))", "lower(c || 'x'::text)"),
            (
                "a + b > 0 or a in (1, 2)",
                "(((a + b) > 0) OR (a = ANY (ARRAY[1, 2])))",
                "(a + b) > 0 OR a = ANY (ARRAY[1, 2])",
            ),
            ("a > 0 and b < 1 and c is null", "((a > 0) AND (b < 1) AND (c IS NULL))", "a > 0 AND b < 1 AND c IS NULL"),
            (
                "(a > 0 or b < 1) and not \"Odd\"",
                "(((a > 0) OR (b < 1)) AND (NOT \"Odd\"))",
                "(a > 0 OR b < 1) AND NOT \"Odd\"",
            ),
            ("c = 'it''s'", "(c = 'it''s'::text)", "c = 'it''s'::text"),
            ("v <> 'x'", "((v)::text <> 'x'::text)", "v::text <> 'x'::text"),
            ("d >= '2020-01-31'", "(d >= '2020-01-31'::date)", "d >= '2020-01-31'::date"),
            ("cast(a as text)", "(a)::text", "a::text"),
            ("(a + 1)::bigint", "((a + 1))::bigint", "(a + 1)::bigint"),
            ("a::bigint::text", "((a)::bigint)::text", "a::bigint::text"),
            ("upper(v)", "upper((v)::text)", "upper(v::text)"),
            ("length(v)", "length((v)::text)", "length(v::text)"),
            ("coalesce(a, -1)", "COALESCE(a, '-1'::integer)", "COALESCE(a, '-1'::integer)"),
            ("coalesce(v, 'x')", "COALESCE(v, 'x'::character varying)", "COALESCE(v, 'x'::character varying)"),
            ("t.a in (1, 2)", "(a = ANY (ARRAY[1, 2]))", "a = ANY (ARRAY[1, 2])"),
            ("a between 1 and 2", "((a >= 1) AND (a <= 2))", "a >= 1 AND a <= 2"),
            ("- a", "(- a)", "- a"),
        ];
        for (given, plain, pretty) in cases {
            let expr = parsed(given).unwrap();
            assert_eq!(written(&expr, &columns(), Style::Plain), plain, "{given}");
            assert_eq!(written(&expr, &columns(), Style::Pretty), pretty, "{given}");
            let kept = written(&expr, &columns(), Style::Kept);
            for text in [plain, pretty, &kept] {
                let again = written(&parsed(text).unwrap(), &columns(), Style::Pretty);
                assert_eq!(again, pretty, "{text} is read as it was meant");
            }
        }
    }

    #[test]
    fn in_a_list_all_but_calls_stand_in_parentheses() {
        let shown = |text: &str, style| in_list(&parsed(text).unwrap(), &columns(), style);
        assert_eq!(
            (shown("lower(c)", Style::Plain), shown("a+b", Style::Pretty)),
            ("lower(c)".into(), "(a + b)".into())
        );
        assert_eq!(shown("a+b", Style::Plain), "((a + b))");
    }
}
