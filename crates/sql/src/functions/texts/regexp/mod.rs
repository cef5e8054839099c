//! `~` and its kin, `regexp_replace`, `regexp_match`, `substring(x FROM pattern)` and the others, by PostgreSQL's rules.
pub(crate) mod matcher;
mod similar;
pub(crate) mod syntax;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, ListBuilder, StringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use self::matcher::{Groups, Matcher};
use self::syntax::Flags;
use crate::error::SqlError;

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// `~`, or `~*` where case is ignored
    Operator {
        ignores_case: bool,
    },
    Like,
    Replace,
    Match,
    Matches,
    Count,
    Substring,
    Substr,
    Instr,
    Split,
    /// `SIMILAR TO`, and `substring` of such a pattern; the escape character is the third argument
    Similar,
    SimilarPart,
}

impl Kind {
    /// Whether the third argument is a text, and must be there.
    fn has_third_text(self) -> bool {
        matches!(self, Kind::Replace | Kind::Similar | Kind::SimilarPart)
    }
}

const NAMED: [(Kind, &str); 10] = [
    (Kind::Similar, SIMILAR),
    (Kind::SimilarPart, "similar_part"),
    (Kind::Like, "regexp_like"),
    (Kind::Replace, "regexp_replace"),
    (Kind::Match, "regexp_match"),
    (Kind::Matches, "regexp_matches_of"),
    (Kind::Count, "regexp_count"),
    (Kind::Substr, "regexp_substr"),
    (Kind::Instr, "regexp_instr"),
    (Kind::Split, "regexp_split_to_array"),
];

/// The function that `text SIMILAR TO pattern ESCAPE sign` calls.
pub(crate) const SIMILAR: &str = "similar_to";
/// The functions of the operators `~` and `~*`.
const MATCHES: &str = "matches";
const MATCHES_IGNORING_CASE: &str = "matches_ignoring_case";

/// Whether a function reads a `char(n)` with its blanks.
pub(crate) fn reads_blanks(name: &str) -> bool {
    [SIMILAR, MATCHES, MATCHES_IGNORING_CASE].contains(&name)
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMED.into_iter().map(|(kind, name)| ScalarUDF::from(Function::new(kind, name)))
}

/// `text ~ pattern`, or `~*` where case is ignored.
pub(crate) fn operator(text: Expr, pattern: Expr, ignores_case: bool) -> Expr {
    let name = if ignores_case { MATCHES_IGNORING_CASE } else { MATCHES };
    call(Function::new(Kind::Operator { ignores_case }, name), vec![text, pattern])
}

/// `substring(text FROM pattern)`.
pub(crate) fn substring(text: Expr, pattern: Expr) -> Expr {
    call(Function::new(Kind::Substring, "substring"), vec![text, pattern])
}

/// `substring(text FROM pattern FOR escape)`, where all are texts.
pub(crate) fn similar_part(args: Vec<Expr>) -> Expr {
    call(Function::new(Kind::SimilarPart, "similar_part"), args)
}

fn call(function: Function, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    kind: Kind,
    name: &'static str,
    signature: Signature,
}

impl Function {
    fn new(kind: Kind, name: &'static str) -> Function {
        Function { kind, name, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// The position of the flags, and how many arguments there may be.
    fn shape(&self, types: &[DataType]) -> (Option<usize>, usize) {
        match self.kind {
            Kind::Operator { .. } | Kind::Substring => (None, 2),
            Kind::Similar | Kind::SimilarPart => (None, 3),
            Kind::Like | Kind::Match | Kind::Matches | Kind::Split => (Some(2), 3),
            Kind::Count => (Some(3), 4),
            Kind::Substr => (Some(4), 6),
            Kind::Instr => (Some(5), 7),
            // regexp_replace(text, pattern, new, start, which, flags) beside (text, pattern, new, flags)
            Kind::Replace => match types.get(3).is_some_and(DataType::is_integer) {
                true => (Some(5), 6),
                false => (Some(3), 4),
            },
        }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let (flags, most) = self.shape(types);
        let least = if self.kind.has_third_text() { 3 } else { 2 };
        let texts = [Some(0), Some(1), flags, self.kind.has_third_text().then_some(2)];
        let is_text = |at: usize| types.get(at).is_none_or(|found| found.is_string() || found.is_null());
        if types.len() < least || types.len() > most || !texts.into_iter().flatten().all(is_text) {
            let message = format!("Function '{}' failed to match any signature", self.name);
            return Err(DataFusionError::Plan(message));
        }
        let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
        Ok(match self.kind {
            Kind::Operator { .. } | Kind::Like | Kind::Similar => DataType::Boolean,
            Kind::Count | Kind::Instr => DataType::Int32,
            Kind::Replace | Kind::Substring | Kind::Substr | Kind::SimilarPart => DataType::Utf8View,
            Kind::Match | Kind::Split => list(DataType::Utf8),
            Kind::Matches => list(list(DataType::Utf8)),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = self.compute(&Arguments::of(&arrays, self.shape(&types).0, self.kind)?, rows)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// The arguments, texts and numbers apart.
struct Arguments {
    texts: HashMap<usize, StringViewArray>,
    numbers: HashMap<usize, ArrayRef>,
    flags: Option<usize>,
    all: Vec<ArrayRef>,
}

impl Arguments {
    fn of(arrays: &[ArrayRef], flags: Option<usize>, kind: Kind) -> Result<Arguments> {
        let (mut texts, mut numbers) = (HashMap::new(), HashMap::new());
        for (at, array) in arrays.iter().enumerate() {
            if at < 2 || Some(at) == flags || (kind.has_third_text() && at == 2) {
                texts.insert(at, cast(array, &DataType::Utf8View)?.as_string_view().clone());
            } else {
                numbers.insert(at, cast(array, &DataType::Int64)?);
            }
        }
        Ok(Arguments { texts, numbers, flags, all: arrays.to_vec() })
    }

    fn text(&self, at: usize, row: usize) -> &str {
        self.texts.get(&at).map_or("", |texts| texts.value(row))
    }

    fn number(&self, at: usize, row: usize, otherwise: i64) -> i64 {
        self.numbers.get(&at).map_or(otherwise, |numbers| numbers.as_primitive::<Int64Type>().value(row))
    }

    /// Where in the text to begin, for a number of characters counted from 1.
    fn start(&self, at: usize, row: usize) -> Result<usize, SqlError> {
        let start = self.positive("start", at, row, 1)?;
        let text = self.text(0, row);
        Ok(text.char_indices().nth(start - 1).map_or(text.len(), |(at, _)| at))
    }

    fn positive(&self, name: &str, at: usize, row: usize, least: i64) -> Result<usize, SqlError> {
        let number = self.number(at, row, least);
        let wrong = || SqlError::new("22023", format!("invalid value for parameter \"{name}\": {number}"));
        usize::try_from(number).ok().filter(|_| number >= least).ok_or_else(wrong)
    }
}

/// What a row comes to.
enum Value {
    Boolean(bool),
    Number(usize),
    Text(String),
    List(Vec<Option<String>>),
    Lists(Vec<Vec<Option<String>>>),
}

impl Function {
    fn compute(&self, args: &Arguments, rows: usize) -> Result<ArrayRef> {
        let mut known: HashMap<(String, Flags), Matcher> = HashMap::new();
        let mut values: Vec<Option<Value>> = Vec::with_capacity(rows);
        for row in 0..rows {
            if args.all.iter().any(|array| array.is_null(row) || array.data_type().is_null()) {
                values.push(None);
                continue;
            }
            let external = |error: SqlError| DataFusionError::External(Box::new(error));
            let flags = self.flags(args, row).map_err(external)?;
            let pattern = match self.kind {
                Kind::Similar | Kind::SimilarPart => {
                    similar::translate(args.text(1, row), args.text(2, row)).map_err(external)?
                }
                _ => args.text(1, row).to_owned(),
            };
            let key = (pattern, flags);
            if !known.contains_key(&key) {
                known.insert(key.clone(), Matcher::new(&key.0, flags).map_err(external)?);
            }
            let Some(matcher) = known.get_mut(&key) else { continue };
            values.push(self.value(matcher, flags, args, row).map_err(external)?);
        }
        Ok(self.build(values))
    }

    fn flags(&self, args: &Arguments, row: usize) -> Result<Flags, SqlError> {
        if let Kind::Operator { ignores_case: true } = self.kind {
            return Ok(Flags::ignoring_case());
        }
        let letters = match args.flags {
            Some(at) if args.texts.contains_key(&at) => args.text(at, row),
            _ => "",
        };
        let flags = Flags::read(letters, false)?;
        let takes_global = matches!(self.kind, Kind::Replace | Kind::Matches);
        if flags.is_global && !takes_global {
            let message = format!("{}() does not support the \"global\" option", self.name);
            let error = SqlError::new("22023", message);
            return Err(match self.kind {
                Kind::Match => error.hint("Use the regexp_matches function instead."),
                _ => error,
            });
        }
        Ok(flags)
    }

    fn value(
        &self,
        matcher: &mut Matcher,
        flags: Flags,
        args: &Arguments,
        row: usize,
    ) -> Result<Option<Value>, SqlError> {
        let text = args.text(0, row);
        Ok(match self.kind {
            Kind::Operator { .. } | Kind::Like | Kind::Similar => Some(Value::Boolean(matcher.is_in(text)?)),
            Kind::Count => Some(Value::Number(matcher.find_all(text, args.start(2, row)?)?.len())),
            Kind::Match => matcher.find_from(text, 0)?.map(|groups| Value::List(listed(&groups, text))),
            Kind::Matches => {
                let found = match flags.is_global {
                    true => matcher.find_all(text, 0)?,
                    false => matcher.find_from(text, 0)?.into_iter().collect(),
                };
                Some(Value::Lists(found.iter().map(|groups| listed(groups, text)).collect()))
            }
            Kind::Substring | Kind::SimilarPart => {
                let at = usize::from(matcher.group_count() > 0);
                let found = matcher.find_from(text, 0)?;
                found.and_then(|groups| groups.get(at)?.clone()).map(|range| Value::Text(text[range].to_owned()))
            }
            Kind::Substr => {
                let which = self.occurrence(matcher, args, row)?;
                let at = args.positive("subexpr", 5, row, 0)?;
                let range = which.and_then(|groups| groups.get(at)?.clone());
                range.map(|range| Value::Text(text[range].to_owned()))
            }
            Kind::Instr => {
                let which = self.occurrence(matcher, args, row)?;
                let at = args.positive("subexpr", 6, row, 0)?;
                let is_end = match args.number(4, row, 0) {
                    0 => false,
                    1 => true,
                    other => {
                        let message = format!("invalid value for parameter \"endoption\": {other}");
                        return Err(SqlError::new("22023", message));
                    }
                };
                let range = which.and_then(|groups| groups.get(at)?.clone());
                let place = range.map(|range| if is_end { range.end } else { range.start });
                Some(Value::Number(place.map_or(0, |place| text[..place].chars().count() + 1)))
            }
            Kind::Split => Some(Value::List(split(matcher, text)?.into_iter().map(Some).collect())),
            Kind::Replace => Some(Value::Text(replace(matcher, flags, args, row)?)),
        })
    }

    /// The match that `start` and `N` ask for.
    fn occurrence(&self, matcher: &mut Matcher, args: &Arguments, row: usize) -> Result<Option<Groups>, SqlError> {
        let which = args.positive("n", 3, row, 1)?;
        Ok(matcher.find_all(args.text(0, row), args.start(2, row)?)?.into_iter().nth(which - 1))
    }

    fn build(&self, values: Vec<Option<Value>>) -> ArrayRef {
        match self.kind {
            Kind::Operator { .. } | Kind::Like | Kind::Similar => {
                let mut builder = BooleanBuilder::new();
                values.into_iter().for_each(|value| {
                    builder.append_option(value.map(|value| matches!(value, Value::Boolean(true))));
                });
                Arc::new(builder.finish())
            }
            Kind::Count | Kind::Instr => {
                let mut builder = Int32Builder::new();
                for value in values {
                    builder.append_option(match value {
                        Some(Value::Number(number)) => i32::try_from(number).ok(),
                        _ => None,
                    });
                }
                Arc::new(builder.finish())
            }
            Kind::Replace | Kind::Substring | Kind::Substr | Kind::SimilarPart => {
                let mut builder = StringViewBuilder::new();
                for value in values {
                    match value {
                        Some(Value::Text(text)) => builder.append_value(text),
                        _ => builder.append_null(),
                    }
                }
                Arc::new(builder.finish())
            }
            Kind::Match | Kind::Split => {
                let mut builder = ListBuilder::new(StringBuilder::new());
                for value in values {
                    match value {
                        Some(Value::List(items)) => builder.append_value(items),
                        _ => builder.append_null(),
                    }
                }
                Arc::new(builder.finish())
            }
            Kind::Matches => {
                let mut builder = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
                for value in values {
                    let Some(Value::Lists(lists)) = value else {
                        builder.append_null();
                        continue;
                    };
                    lists.into_iter().for_each(|items| builder.values().append_value(items));
                    builder.append(true);
                }
                Arc::new(builder.finish())
            }
        }
    }
}

/// The groups of a match, or all of it where the pattern has none.
fn listed(groups: &Groups, text: &str) -> Vec<Option<String>> {
    let first = usize::from(groups.len() > 1);
    groups[first..].iter().map(|range| range.clone().map(|range| text[range].to_owned())).collect()
}

/// The parts between matches. Empty matches at the start, at the end and right behind another part nothing.
fn split(matcher: &mut Matcher, text: &str) -> Result<Vec<String>, SqlError> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for groups in matcher.find_all(text, 0)? {
        let Some(Some(whole)) = groups.first() else { continue };
        let parts_nothing = whole.is_empty() && (whole.start == from || whole.start == text.len());
        if !parts_nothing {
            parts.push(text[from..whole.start].to_owned());
            from = whole.end;
        }
    }
    parts.push(text[from..].to_owned());
    Ok(parts)
}

fn replace(matcher: &mut Matcher, flags: Flags, args: &Arguments, row: usize) -> Result<String, SqlError> {
    let (text, new) = (args.text(0, row), args.text(2, row));
    let (start, which) = (args.start(3, row)?, args.positive("n", 4, row, 0)?);
    let is_first_only = if args.numbers.contains_key(&4) { which != 0 } else { !flags.is_global };
    let found = match is_first_only && which <= 1 {
        true => matcher.find_from(text, start)?.into_iter().collect(),
        false => matcher.find_all(text, start)?,
    };
    let chosen = found.into_iter().enumerate();
    let chosen = chosen.filter(|(at, _)| !is_first_only || *at + 1 == which.max(1)).map(|(_, groups)| groups);
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for groups in chosen {
        let Some(Some(whole)) = groups.first() else { continue };
        out.push_str(&text[from..whole.start]);
        expand(new, &groups, text, &mut out);
        from = whole.end;
    }
    out.push_str(&text[from..]);
    Ok(out)
}

/// Writes a replacement: `\1` to `\9` are groups, `\&` the whole match, `\\` a backslash.
fn expand(new: &str, groups: &Groups, text: &str, out: &mut String) {
    let mut signs = new.chars().peekable();
    while let Some(sign) = signs.next() {
        let group = match (sign, signs.peek()) {
            ('\\', Some('&')) => Some(0),
            ('\\', Some(digit @ '1'..='9')) => digit.to_digit(10).map(|digit| digit as usize),
            ('\\', Some('\\')) => {
                signs.next();
                out.push('\\');
                continue;
            }
            _ => None,
        };
        match group {
            Some(at) => {
                signs.next();
                if let Some(Some(range)) = groups.get(at) {
                    out.push_str(&text[range.clone()]);
                }
            }
            None => out.push(sign),
        }
    }
}
