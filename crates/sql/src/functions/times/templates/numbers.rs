//! Numbers by templates such as `9,999.99`: `9` is a digit or a blank, `0` a digit or a zero; a sign stands before the first
//! digit, unless `S`, `MI`, `PL`, `SG` or `PR` say where.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, Decimal128Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::dates::ending;
use crate::error::SqlError;
use crate::values::input;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// `9`, or `0` where zeros are written.
    Digit {
        is_zero: bool,
    },
    Point,
    Group,
    /// `S`: the sign, `+` or `-`.
    Sign,
    /// `MI`: a minus or a blank.
    Minus,
    /// `PL`: a plus or a blank.
    Plus,
    /// `SG`: the sign just here.
    SignHere,
    /// `L`, which is empty in this locale.
    Currency,
    Ordinal {
        is_upper: bool,
    },
    Copied(char),
}

/// A template.
#[derive(Debug, Default)]
struct Template {
    tokens: Vec<Token>,
    is_short: bool,
    has_brackets: bool,
    roman: Option<bool>,
    has_exponent: bool,
    /// The digits behind `V`, by which the number is shifted.
    shift: Option<usize>,
    before: usize,
    after: usize,
}

fn wrong(message: &str) -> SqlError {
    SqlError::new("42601", message)
}

impl Template {
    fn read(text: &str) -> Result<Template, SqlError> {
        let mut template = Template::default();
        let mut rest = text;
        let mut has_point = false;
        while let Some(sign) = rest.chars().next() {
            let word = |word: &str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
            let (token, length) = match sign {
                _ if word("FM") => {
                    (template.is_short, rest) = (true, &rest[2..]);
                    continue;
                }
                _ if word("PR") => {
                    (template.has_brackets, rest) = (true, &rest[2..]);
                    continue;
                }
                _ if word("RN") => {
                    (template.roman, rest) = (Some(sign == 'R'), &rest[2..]);
                    continue;
                }
                _ if word("EEEE") => {
                    (template.has_exponent, rest) = (true, &rest[4..]);
                    continue;
                }
                'V' | 'v' => {
                    (template.shift, rest) = (Some(0), &rest[1..]);
                    continue;
                }
                _ if word("MI") => (Token::Minus, 2),
                _ if word("PL") => (Token::Plus, 2),
                _ if word("SG") => (Token::SignHere, 2),
                _ if word("TH") => (Token::Ordinal { is_upper: sign == 'T' }, 2),
                '9' | '0' => (Token::Digit { is_zero: sign == '0' }, 1),
                '.' | 'D' | 'd' if has_point => return Err(wrong("multiple decimal points")),
                '.' | 'D' | 'd' => (Token::Point, 1),
                ',' | 'G' | 'g' => (Token::Group, 1),
                'S' | 's' => (Token::Sign, 1),
                'L' | 'l' => (Token::Currency, 1),
                '"' => {
                    let (quoted, behind) = rest[1..].split_once('"').unwrap_or((&rest[1..], ""));
                    template.tokens.extend(quoted.chars().map(Token::Copied));
                    rest = behind;
                    continue;
                }
                other => (Token::Copied(other), other.len_utf8()),
            };
            match (token, &mut template.shift, has_point) {
                (Token::Digit { .. }, Some(shift), _) => {
                    *shift += 1;
                    template.before += 1;
                }
                (Token::Digit { .. }, None, false) => template.before += 1,
                (Token::Digit { .. }, None, true) => template.after += 1,
                (Token::Point, ..) => has_point = true,
                _ => {}
            }
            template.tokens.push(token);
            rest = &rest[length..];
        }
        Ok(template)
    }
}

/// Writes a number, given with all of its digits, by a template.
pub(super) fn write(number: &str, template: &str) -> Result<String, SqlError> {
    let template = Template::read(template)?;
    let shifted = match template.shift {
        Some(shift) => format!("{number}e{shift}"),
        None => number.to_owned(),
    };
    if template.has_exponent {
        let value: f64 = number.parse().unwrap_or(0.0);
        return Ok(scientific(value, &template));
    }
    let (is_negative, whole, fraction) = rounded(&shifted, template.after);
    Ok(template.write(is_negative, &whole, &fraction))
}

/// Writes a float by a template.
pub(super) fn write_float(value: f64, template: &str) -> Result<String, SqlError> {
    let known = Template::read(template)?;
    if known.has_exponent {
        return Ok(scientific(value, &known));
    }
    if !value.is_finite() {
        return Ok(known.write(value < 0.0, "#", ""));
    }
    let digits = known.after + known.shift.unwrap_or(0);
    write(&format!("{value:.digits$}"), template)
}

fn scientific(value: f64, template: &Template) -> String {
    let shown = format!("{:.*e}", template.after, value.abs());
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = match (value < 0.0, template.is_short) {
        (true, _) => "-",
        (false, true) => "",
        (false, false) => " ",
    };
    format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The sign of a number and its digits before and behind the point, rounded to so many of these.
fn rounded(number: &str, after: usize) -> (bool, String, String) {
    let (mantissa, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let shift: usize = exponent.parse().unwrap_or(0);
    let (is_negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let point = whole.len() + shift;
    digits.resize(digits.len().max(point + after + 1), 0);
    let is_up = digits[point + after] >= 5;
    digits.truncate(point + after);
    let mut carry = is_up;
    for digit in digits.iter_mut().rev() {
        if !carry {
            break;
        }
        (*digit, carry) = if *digit == 9 { (0, true) } else { (*digit + 1, false) };
    }
    let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let whole = format!("{}{}", if carry { "1" } else { "" }, &text[..point]);
    let fraction = text[point..].to_owned();
    let whole = whole.trim_start_matches('0').to_owned();
    let is_zero = whole.is_empty() && fraction.bytes().all(|digit| digit == b'0');
    (is_negative && !is_zero, whole, fraction)
}

impl Template {
    fn write(&self, is_negative: bool, whole: &str, fraction: &str) -> String {
        if let Some(is_upper) = self.roman {
            return self.roman(is_negative, whole, is_upper);
        }
        // A zero before the point needs its place, too.
        let is_too_long = whole.len().max(1) > self.before || whole == "#";
        // A zero stands for itself where nothing else would be written.
        let decimals: Vec<char> = fraction.chars().collect();
        let has_fraction = self.tokens.contains(&Token::Point) && self.kept_decimals(&decimals) > 0;
        let whole = if whole.is_empty() && !has_fraction { "0" } else { whole };
        let digits = format!("{whole:>width$}", width = self.before);
        let digits: Vec<char> = if is_too_long { vec!['#'; self.before] } else { digits.chars().collect() };
        let fraction: Vec<char> = if is_too_long { vec!['#'; self.after] } else { decimals };
        let body = self.body(&digits, &fraction, is_negative, whole);
        self.signed(body, is_negative)
    }

    /// Everything but the sign that moves; where it would stand there is a mark.
    fn body(&self, digits: &[char], fraction: &[char], is_negative: bool, whole: &str) -> String {
        const MARK: char = '\0';
        let blank = if self.is_short { "" } else { " " };
        let kept = self.kept_decimals(fraction);
        let (mut out, mut at, mut behind, mut is_started, mut zeros) = (String::new(), 0, 0, false, false);
        let mut is_behind_point = false;
        for token in &self.tokens {
            match token {
                Token::Digit { is_zero } if !is_behind_point => {
                    zeros |= is_zero;
                    let digit = digits.get(at).copied().unwrap_or(' ');
                    at += 1;
                    if digit != ' ' || zeros {
                        if !is_started {
                            out.push(MARK);
                            is_started = true;
                        }
                        out.push(if digit == ' ' { '0' } else { digit });
                    } else {
                        out.push_str(blank);
                    }
                }
                Token::Digit { .. } => {
                    if behind < kept {
                        out.push(fraction.get(behind).copied().unwrap_or('0'));
                    }
                    behind += 1;
                }
                Token::Point => {
                    if !is_started {
                        out.push(MARK);
                        is_started = true;
                    }
                    is_behind_point = true;
                    out.push('.');
                }
                Token::Group if is_started => out.push(','),
                Token::Group | Token::Currency => out.push_str(blank),
                Token::Minus => out.push_str(if is_negative { "-" } else { blank }),
                Token::Plus => out.push_str(if is_negative { blank } else { "+" }),
                Token::SignHere => out.push(if is_negative { '-' } else { '+' }),
                Token::Ordinal { is_upper } if !is_negative && self.after == 0 => {
                    let ending = ending(whole);
                    out.push_str(&if *is_upper { ending.to_uppercase() } else { ending.to_owned() });
                }
                Token::Sign | Token::Ordinal { .. } => {}
                Token::Copied(sign) => out.push(*sign),
            }
        }
        out
    }

    /// With `FM` zeros at the end are written for `0` only.
    fn kept_decimals(&self, fraction: &[char]) -> usize {
        if !self.is_short {
            return self.after;
        }
        let behind = self.tokens.iter().skip_while(|token| **token != Token::Point);
        let wanted = behind.filter(|token| matches!(token, Token::Digit { .. })).enumerate();
        let zeros = wanted.filter(|(_, token)| **token == Token::Digit { is_zero: true }).last();
        let least = zeros.map_or(0, |(at, _)| at + 1);
        fraction.iter().rposition(|digit| *digit != '0').map_or(0, |at| at + 1).max(least)
    }

    /// Puts the sign where it belongs.
    fn signed(&self, body: String, is_negative: bool) -> String {
        let place = |sign: &str| body.replace('\0', sign);
        let has = |token: Token| self.tokens.contains(&token);
        if self.has_brackets {
            return match (is_negative, self.is_short) {
                (true, _) => format!("{}>", place("<")),
                (false, true) => place(""),
                (false, false) => format!("{} ", place(" ")),
            };
        }
        if has(Token::Sign) {
            let sign = if is_negative { "-" } else { "+" };
            let is_last = self.tokens.iter().position(|token| *token == Token::Sign)
                > self.tokens.iter().rposition(|token| matches!(token, Token::Digit { .. }));
            return if is_last { format!("{}{sign}", place("")) } else { place(sign) };
        }
        if has(Token::Minus) || has(Token::Plus) || has(Token::SignHere) {
            return place(if has(Token::Plus) && is_negative && !has(Token::Minus) { "-" } else { "" });
        }
        match (is_negative, self.is_short) {
            (true, _) => place("-"),
            (false, true) => place(""),
            // The column of the sign, before the blanks or behind them.
            (false, false) => place(" "),
        }
    }

    fn roman(&self, is_negative: bool, whole: &str, is_upper: bool) -> String {
        const PARTS: [(u32, &str); 13] = [
            (1000, "M"),
            (900, "CM"),
            (500, "D"),
            (400, "CD"),
            (100, "C"),
            (90, "XC"),
            (50, "L"),
            (40, "XL"),
            (10, "X"),
            (9, "IX"),
            (5, "V"),
            (4, "IV"),
            (1, "I"),
        ];
        let Some(mut rest) = whole.parse::<u32>().ok().filter(|number| (1..4000).contains(number) && !is_negative)
        else {
            return "#".repeat(15);
        };
        let mut roman = String::new();
        for (value, letters) in PARTS {
            while rest >= value {
                roman.push_str(letters);
                rest -= value;
            }
        }
        let roman = if is_upper { roman } else { roman.to_lowercase() };
        if self.is_short { roman } else { format!("{roman:>15}") }
    }
}

/// `to_number`.
pub(super) fn to_number() -> ScalarUDF {
    ScalarUDF::from(ToNumber { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToNumber {
    signature: Signature,
}

/// The decimals where the template is not known beforehand.
const DECIMALS: i8 = 10;

impl ScalarUDFImpl for ToNumber {
    fn name(&self) -> &str {
        "to_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(38, DECIMALS))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let template = args.scalar_arguments.get(1).copied().flatten().and_then(|value| value.try_as_str().flatten());
        let after = template.and_then(|template| Template::read(template).ok()).map(|template| template.after);
        let scale = after.and_then(|after| i8::try_from(after).ok()).map_or(DECIMALS, |after| after.min(30));
        Ok(Arc::new(Field::new(self.name(), DataType::Decimal128(38, scale), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let texts = args.args.into_iter().map(|arg| Ok(cast(&arg.into_array(rows)?, &DataType::Utf8View)?));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let (values, templates) = (texts[0].as_string_view(), texts[1].as_string_view());
        let DataType::Decimal128(_, scale) = args.return_field.data_type() else {
            return Err(DataFusionError::Internal("a number that is no decimal".to_owned()));
        };
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        let value = |row: usize| match values.is_null(row) || templates.is_null(row) {
            true => Ok(None),
            false => read(values.value(row), templates.value(row), *scale).map(Some).map_err(external),
        };
        let numbers = (0..rows).map(value).collect::<Result<Decimal128Array>>()?;
        let numbers = numbers.with_data_type(args.return_field.data_type().clone());
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&numbers, 0)?),
            false => ColumnarValue::Array(Arc::new(numbers)),
        })
    }
}

/// The number that a text is by a template, without its point.
fn read(text: &str, template: &str, scale: i8) -> Result<i128, SqlError> {
    let template = Template::read(template)?;
    let is_negative = text.contains(['-', '<']);
    let (mut number, mut before, mut after, mut is_behind) = (String::new(), 0, 0, false);
    for sign in text.chars() {
        match sign {
            '0'..='9' if !is_behind && before < template.before => before += 1,
            '0'..='9' if is_behind && after < template.after => after += 1,
            '.' if !is_behind && template.after > 0 => is_behind = true,
            _ => continue,
        }
        number.push(sign);
    }
    let wrong = || SqlError::new("22P02", "invalid input syntax for type numeric: \" \"");
    let unscaled = input::decimal(&number, 38, scale).map_err(|_| wrong())?;
    Ok(if is_negative { -unscaled } else { unscaled })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: &str, template: &str) -> String {
        write(number, template).unwrap()
    }

    #[test]
    fn numbers_fill_their_templates() {
        assert_eq!(of("1234.5", "9,999.99"), " 1,234.50");
        assert_eq!(of("-12", "9999"), "  -12");
        assert_eq!((of("12", "0000"), of("0.1", "0.99"), of("0.1", "9.99")), {
            (" 0012".to_owned(), " 0.10".to_owned(), "  .10".to_owned())
        });
        assert_eq!((of("12345", "999"), of("0", "999")), (" ###".to_owned(), "   0".to_owned()));
        assert_eq!((of("12.5", "FM999.99"), of("12.5", "FM999.00"), of("1234567", "FM9,999,999")), {
            ("12.5".to_owned(), "12.50".to_owned(), "1,234,567".to_owned())
        });
        assert_eq!((of("-125.8", "999D99S"), of("-5", "S99"), of("-7", "9PR")), {
            ("125.80-".to_owned(), " -5".to_owned(), "<7>".to_owned())
        });
        assert_eq!((of("485", "RN"), of("12", "99th"), of("9.96", "9.9")), {
            ("        CDLXXXV".to_owned(), " 12th".to_owned(), " #.#".to_owned())
        });
    }

    #[test]
    fn numbers_are_read() {
        assert_eq!(read("12,454.8-", "99G999D9S", 1), Ok(-124_548));
        assert_eq!(read("-12", "S99", 0), Ok(-12));
        assert_eq!(read("x", "99", 0).map_err(|error| error.sqlstate), Err("22P02"));
    }
}
